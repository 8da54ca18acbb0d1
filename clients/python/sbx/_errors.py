"""What goes wrong with the sandbox itself, never with the code in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence

if TYPE_CHECKING:
    from ._result import ExecutionResult


class SandboxError(Exception):
    """The sandbox could not do its work. Its text names the fix, where there is one."""

    def __init__(self, message: str, *, code: str = "", fix: str = "", status: int = 0,
                 field: str = "", allowed: Sequence[str] = (),
                 retry_after: Optional[float] = None,
                 problem: Optional[Mapping[str, Any]] = None,
                 result: Optional[ExecutionResult] = None) -> None:
        super().__init__(message + (f" (fix: {fix})" if fix else ""))
        self.code = code  #: stable, for programs: "unknown_field", "socket_missing"
        self.fix = fix  #: what to do, or ""
        self.status = status  #: of HTTP, or 0
        self.field = field  #: of the request, as a path: "limits.memory"
        self.allowed = tuple(allowed)  #: what the field may be
        self.retry_after = retry_after  #: seconds, where waiting helps
        self.problem: Mapping[str, Any] = problem or {}  #: the daemon's whole answer
        self.result = result  #: of a run that ended as sandbox_error


class Unavailable(SandboxError):
    """There is no daemon, no permission to use it, or no room at the moment (429, 503).

    Or the daemon left before its answer began ("disconnected"), or was silent ("timeout").
    """


class Refused(SandboxError):
    """The request is wrong (4xx): see code, field and allowed."""


class Failed(SandboxError):
    """The sandbox failed (sandbox_error, 5xx), or what answered is no daemon of this version.

    With the code "cut_off" sbxd ended in the middle of its answer: a run had begun, and may have
    been done. Whoever asks again may have it done twice.
    """
