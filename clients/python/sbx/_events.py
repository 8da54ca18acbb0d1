"""Events of a run that is on, as they happen."""

from __future__ import annotations

import base64
import dataclasses
from typing import Any, Mapping, Tuple, Union

from ._daemon import SBXD
from ._errors import Failed
from ._result import ExecutionResult, Layer


@dataclasses.dataclass(frozen=True)
class Started:
    """The run began, with these limits and layers."""

    seq: int
    id: str
    limits: Mapping[str, Any]
    layers: Tuple[Layer, ...]


@dataclasses.dataclass(frozen=True)
class Output:
    """Bytes that the program wrote to "stdout" or "stderr"."""

    seq: int
    stream: str
    data: bytes

    @property
    def text(self) -> str:
        """With U+FFFD for bytes that are not UTF-8."""
        return self.data.decode(errors="replace")


@dataclasses.dataclass(frozen=True)
class Lost:
    """Bytes of a stream that were not sent: over its limit, or read too slowly."""

    seq: int
    stream: str
    bytes: int


@dataclasses.dataclass(frozen=True)
class Finished:
    """The last event."""

    seq: int
    result: ExecutionResult


Event = Union[Started, Output, Lost, Finished]


def parse_event(json: Any) -> Event:
    """Raises Failed for what is no event of this version."""
    try:
        seq, name = int(json["seq"]), json["event"]
        if name == "started":
            layers = tuple(Layer(each["name"], each["state"], each["detail"])
                           for each in json["layers"])
            return Started(seq, json["id"], json["limits"], layers)
        if name in ("stdout", "stderr"):
            encoded = json.get("data_base64")
            data = json["data"].encode() if encoded is None else base64.b64decode(encoded)
            return Output(seq, name, data)
        if name == "lost":
            return Lost(seq, json["stream"], json["bytes"])
        if name == "result":
            return Finished(seq, ExecutionResult.from_json(json["result"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _unknown(json) from error
    raise _unknown(json)


def _unknown(json: Any) -> Failed:
    return SBXD.unknown("an event of the daemon", json)
