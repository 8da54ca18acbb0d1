"""ExecutionResult: what became of a run, as sbxd tells it."""

from __future__ import annotations

import base64
import dataclasses
from typing import Any, Dict, List, Mapping, Optional, Tuple, Type, TypeVar

from ._daemon import SBXD

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class OutputFile:
    """A file that the program left in /output."""

    path: str  #: relative to /output; bytes that are not UTF-8 as \\xNN
    size: int
    sha256: str
    media_type: str
    content: Optional[bytes] = None  #: None with collect="list"


@dataclasses.dataclass(frozen=True)
class RefusedEntry:
    """What was in /output and not collected, and why."""

    path: str
    reason: str


@dataclasses.dataclass(frozen=True)
class Workspace:
    """What became of a session's /work after one of its runs."""

    saved: bool
    reason: Optional[str]  #: why it was not saved
    size: int  #: bytes, in whole pages, as it is now
    inodes: int
    refused: Tuple[RefusedEntry, ...]  #: what of it was not kept


@dataclasses.dataclass(frozen=True)
class Denial:
    """A system call that was denied, how often; tier "deny" or "hostile"."""

    syscall: str
    tier: str
    count: int
    at_least: bool = False  #: the run was killed before the last calls were counted


@dataclasses.dataclass(frozen=True)
class Note:
    """One sentence about the run: from the kernel's facts, or from what the program wrote."""

    code: str
    text: str
    source: str  #: "kernel" or "program"


@dataclasses.dataclass(frozen=True)
class Layer:
    """One layer of the sandbox: "held", "degraded", "missing" or "off"."""

    name: str
    state: str
    detail: str


@dataclasses.dataclass(frozen=True)
class Usage:
    """What the cgroup measured. None is what this host does not measure."""

    cpu_seconds: Optional[float] = None
    memory_peak: Optional[int] = None
    pids_peak: Optional[int] = None
    oom_kills: Optional[int] = None
    throttled_seconds: Optional[float] = None
    pids_refused: Optional[int] = None


@dataclasses.dataclass(frozen=True)
class ErrorDetail:
    """Which step of the sandbox failed."""

    code: str
    step: str
    errno: int
    detail: str
    fix: str


@dataclasses.dataclass(frozen=True)
class Image:
    """The file system that the program saw."""

    name: str
    digest: str


@dataclasses.dataclass(frozen=True)
class Timings:
    """Seconds of each stage."""

    setup: float
    run: float
    collect: float


@dataclasses.dataclass(frozen=True)
class ExecutionResult:
    """A complete result, whatever the program did."""

    id: str
    status: str  #: ok, exit, signal, oom, timeout, cpu_time, output, security, cancelled
    ok: bool  #: the program exited with 0, and nothing else went wrong
    exit_code: int  #: -1 when a time limit ended it
    signal: Optional[int]
    timed_out: bool
    duration_seconds: float
    stdout: str  #: with U+FFFD for bytes that are not UTF-8; the bytes: stdout_bytes
    stdout_dropped: int  #: bytes that were cut out of the middle
    stderr: str
    stderr_dropped: int
    files: Tuple[OutputFile, ...]
    refused: Tuple[RefusedEntry, ...]
    denials: Tuple[Denial, ...]
    limits_hit: Tuple[str, ...]
    error: Optional[ErrorDetail]
    usage: Usage
    limits: Mapping[str, Any]  #: as applied
    notes: Tuple[Note, ...]
    layers: Tuple[Layer, ...]
    start: str  #: cold, fork or warm
    image: Image
    profile: str
    language: str
    timings: Timings
    raw: Mapping[str, Any] = dataclasses.field(repr=False, compare=False)  #: the JSON
    workspace: Optional[Workspace] = None  #: of a session's run alone

    @property
    def stdout_bytes(self) -> bytes:
        """What the program wrote, byte for byte."""
        return _stream_bytes(self.raw, "stdout")

    @property
    def stderr_bytes(self) -> bytes:
        return _stream_bytes(self.raw, "stderr")

    @classmethod
    def from_json(cls, json: Any) -> ExecutionResult:
        """Raises Failed for what is no result of this version. What is unknown stays in `raw`."""
        try:
            values = dict(json)
            values.update(
                files=tuple(_output_file(each) for each in json["files"]),
                refused=all_of(RefusedEntry, json["refused"]),
                denials=all_of(Denial, json["denials"]),
                limits_hit=tuple(json["limits_hit"]),
                error=None if json["error"] is None else one_of(ErrorDetail, json["error"]),
                usage=one_of(Usage, json["usage"] or {}),
                notes=all_of(Note, json["notes"]),
                layers=all_of(Layer, json["layers"]),
                image=one_of(Image, json["image"]),
                timings=one_of(Timings, json["timings"]),
                raw=json,
            )
            if "workspace" in json:
                values["workspace"] = _workspace(json["workspace"])
            return one_of(cls, values)
        except (KeyError, TypeError, ValueError) as error:
            raise SBXD.unknown("the daemon's result", repr(error)) from error


def one_of(kind: Type[T], json: Mapping[str, Any]) -> T:
    """Without the fields that this version does not know. What Python keeps for itself ends in _."""
    known = [(field.name, field.name.rstrip("_")) for field in dataclasses.fields(kind)]
    return kind(**{name: json[key] for name, key in known if key in json})


def all_of(kind: Type[T], json: List[Mapping[str, Any]]) -> Tuple[T, ...]:
    return tuple(one_of(kind, each) for each in json)


def _workspace(json: Mapping[str, Any]) -> Workspace:
    return one_of(Workspace, {**json, "refused": all_of(RefusedEntry, json["refused"])})


def _output_file(json: Mapping[str, Any]) -> OutputFile:
    values: Dict[str, Any] = dict(json)
    if "content_base64" in json:
        values["content"] = base64.b64decode(json["content_base64"], validate=True)
    return one_of(OutputFile, values)


def _stream_bytes(json: Mapping[str, Any], stream: str) -> bytes:
    encoded = json.get(f"{stream}_base64")
    if encoded is not None:
        return base64.b64decode(encoded, validate=True)
    text: str = json[stream]
    return text.encode()
