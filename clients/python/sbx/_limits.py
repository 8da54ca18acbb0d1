"""SandboxLimits: the limits of a run, by the names that they have everywhere."""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Dict, Mapping, Optional, Union

from . import _arguments as arguments

Size = Union[int, str]  #: bytes, or a number with K, M or G (1024-based, either case)


@dataclasses.dataclass(frozen=True)
class SandboxLimits:
    """What is None has the profile's value, lowered to what the operator allows."""

    wall_seconds: Optional[float] = None
    cpu_seconds: Optional[float] = None
    memory: Optional[Size] = None
    cpus: Optional[float] = None
    pids: Optional[int] = None
    tmp: Optional[Size] = None
    tmp_inodes: Optional[int] = None
    input: Optional[Size] = None
    input_inodes: Optional[int] = None
    output: Optional[Size] = None
    output_inodes: Optional[int] = None
    work: Optional[Size] = None
    work_inodes: Optional[int] = None
    shm: Optional[Size] = None
    shm_inodes: Optional[int] = None
    stdout_bytes: Optional[Size] = None
    stderr_bytes: Optional[Size] = None
    files: Optional[int] = None
    file_bytes: Optional[Size] = None
    files_bytes: Optional[Size] = None
    file_depth: Optional[int] = None
    nofile: Optional[int] = None
    fsize: Optional[Size] = None
    output_kills: Optional[bool] = None
    network: Optional[str] = None

    def __post_init__(self) -> None:
        """Raises TypeError or ValueError, naming the limit, for what is a limit in no profile."""
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if value is not None:
                _CHECKS[str(field.type)](field.name, value)

    def to_json(self) -> Dict[str, Any]:
        """The limits that are set."""
        return {name: value for name, value in vars(self).items() if value is not None}


#: By a field's type, as it is written above.
_CHECKS: Dict[str, Callable[[str, Any], Any]] = {
    "Optional[float]": arguments.number, "Optional[Size]": arguments.size,
    "Optional[int]": arguments.whole, "Optional[bool]": arguments.flag,
    "Optional[str]": arguments.text,
}


class _Default(float):
    """A float that is told apart from the same number given by a caller."""


DEFAULT_TIMEOUT = _Default(30)


#: What sbxd's configuration has for queue_seconds, and for the most that a profile may run.
QUEUE_SECONDS = 60.0
LONGEST_RUN = 3600.0
MARGIN_SECONDS = 60.0  #: for setting up, collecting, and saving what was written to the disk


def until_start(body: Mapping[str, Any]) -> float:
    """How long the daemon may be silent before a run of this request starts."""
    queues = 2 if body.get("wait") else 1  # the session's, and the daemon's
    return queues * QUEUE_SECONDS + MARGIN_SECONDS


def until_end(body: Mapping[str, Any]) -> float:
    """How long it may be silent from then on."""
    unsaid = LONGEST_RUN if body.get("profile", "default") != "default" else DEFAULT_TIMEOUT
    return float(body.get("limits", {}).get("wall_seconds", unsaid)) + MARGIN_SECONDS


def with_timeout(limits: Optional[SandboxLimits], timeout_seconds: float) -> SandboxLimits:
    """`timeout_seconds` is wall_seconds by another name: the default gives way to it.

    Raises ValueError when both are given and differ.
    """
    limits = (SandboxLimits() if limits is None else
              arguments.instance("limits", limits, SandboxLimits))
    if timeout_seconds is DEFAULT_TIMEOUT:
        return limits
    arguments.seconds("timeout_seconds", timeout_seconds)
    if limits.wall_seconds is not None and limits.wall_seconds != timeout_seconds:
        raise ValueError(f"timeout_seconds is {timeout_seconds} and limits.wall_seconds is "
                         f"{limits.wall_seconds}: give one of them")
    return dataclasses.replace(limits, wall_seconds=timeout_seconds)
