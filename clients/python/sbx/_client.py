"""Client, run_code, stream_code: single runs."""

from __future__ import annotations

import base64
import os
from types import TracebackType
from typing import Any, Dict, Iterator, List, Mapping, Optional, Sequence, Type, Union

from . import _arguments as arguments
from ._daemon import SBXD
from ._errors import Failed
from ._events import Event, Finished, Started, parse_event
from ._limits import DEFAULT_TIMEOUT, SandboxLimits, until_end, until_start, with_timeout
from ._result import ExecutionResult
from ._transport import Reply, Transport, json_body, parse_json, quote_id

FileContent = Union[bytes, "os.PathLike[str]"]


def run_body(code: Optional[str], language: str, timeout_seconds: float,
             limits: Optional[SandboxLimits], *, argv: Optional[Sequence[str]] = None,
             args: Sequence[str] = (), stdin: Optional[str] = None,
             files: Optional[Mapping[str, FileContent]] = None,
             env: Optional[Mapping[str, str]] = None, profile: Optional[str] = None,
             collect: Optional[str] = None, wait: bool = False) -> Dict[str, Any]:
    """The body of a run's request. What is None or empty is left to the daemon.

    Raises TypeError or ValueError, naming the argument, for what no daemon would take.
    """
    if (code is None) == (not argv):
        raise TypeError("give code, or else argv")
    body: Dict[str, Any] = {}
    if code is None:
        body["argv"] = arguments.texts("argv", argv)
    else:
        body["language"] = arguments.text("language", language)
        body["code"] = arguments.text("code", code)
    optional = {
        "args": arguments.texts("args", args),
        "stdin": None if stdin is None else arguments.text("stdin", stdin),
        "env": arguments.named_texts("env", env or {}),
        "profile": None if profile is None else arguments.text("profile", profile),
        "collect": None if collect is None else arguments.text("collect", collect),
        "limits": with_timeout(limits, timeout_seconds).to_json(),
        "files": input_files(files), "wait": arguments.flag("wait", wait),
    }
    body.update((name, value) for name, value in optional.items() if value)
    return body


def input_files(files: Optional[Mapping[str, FileContent]]) -> List[Dict[str, str]]:
    """Files of a request. Raises TypeError for what is neither bytes nor a path."""
    return [_input_file(name, content) for name, content in arguments.items("files", files or {})]


def _input_file(name: str, content: FileContent) -> Dict[str, str]:
    arguments.text("a name in files", name)
    if isinstance(content, os.PathLike):
        with open(content, "rb") as file:
            content = file.read()
    if not isinstance(content, (bytes, bytearray, memoryview)):
        raise TypeError(f"files[{name!r}] is {type(content).__name__}: give bytes, or a "
                        "pathlib.Path to read them from")
    return {"name": name, "content_base64": base64.b64encode(bytes(content)).decode()}


def result_or_raise(json: Any) -> ExecutionResult:
    """Raises Failed, with the result, when the sandbox itself failed."""
    result = ExecutionResult.from_json(json)
    if result.status != "sandbox_error":
        return result
    error = result.error
    if error is None:
        raise Failed("the sandbox failed", code="sandbox_error", result=result)
    raise Failed(f"the sandbox failed: {error.step}: {error.detail}", code=error.code,
                 fix=error.fix, result=result)


def run_at(transport: Transport, target: str, body: Mapping[str, Any]) -> ExecutionResult:
    """A run of this request. Its answer's head comes when it starts, the result at its end."""
    with transport.request("POST", target, *json_body(body), patience=until_start(body)) as reply:
        reply.wait_at_most(until_end(body))
        return result_or_raise(reply.json())


def stream_at(transport: Transport, target: str, body: Mapping[str, Any]) -> RunStream:
    reply = transport.request("POST", target, *json_body(body), patience=until_start(body))
    reply.wait_at_most(until_end(body))
    return RunStream(reply)


class RunStream:
    """Events of a run that is on. Iterate once; closing it before the end cancels the run.

    Leaving the iteration closes it too. More events of a stream that is closed are a ValueError,
    also when another thread closes it while one is waited for. Where sbxd ends before the run does,
    it is Failed with the code "cut_off": the run may have been done.
    """

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self._closed = False
        self._result: Optional[ExecutionResult] = None
        self.id = reply.header("Sbx-Run-Id")  #: for Client.cancel

    @property
    def result(self) -> ExecutionResult:
        """The result, once the last event was seen. Raises RuntimeError before."""
        if self._result is None and self._closed:
            raise RuntimeError("there is no result: the stream was closed before its last event")
        if self._result is None:
            raise RuntimeError("the run has not ended: iterate to the last event first")
        return self._result

    def __iter__(self) -> Iterator[Event]:
        with self:
            while self._result is None:
                line = self._next_line()
                if not line.endswith(b"\n"):
                    raise Failed("the events ended before the result", code="cut_off",
                                 fix=SBXD.see_log)
                event = parse_event(parse_json(SBXD, line))
                if isinstance(event, Started):
                    self._wait_for_end_of(event)
                if isinstance(event, Finished):
                    self._result = result_or_raise(event.result.raw)
                yield event

    def _next_line(self) -> bytes:
        try:
            return self._reply.readline()
        except ValueError as error:
            raise ValueError("the stream is closed: it gives no more events") from error

    def _wait_for_end_of(self, run: Started) -> None:
        """The limits that are applied are those that count."""
        wall = run.limits.get("wall_seconds") if isinstance(run.limits, dict) else None
        if isinstance(wall, (int, float)):
            self._reply.wait_at_most(until_end({"limits": {"wall_seconds": wall}}))

    def close(self) -> None:
        self._closed = True
        self._reply.close()

    def __enter__(self) -> RunStream:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()


class Client:
    """A daemon. Its methods may be called from several threads: each call has its connection.

    `socket` is the path of the daemon's socket; without it, see the package's README. `timeout` is
    how many seconds the daemon may be silent; without it 30, in runs 60 longer than they may wait
    for their turn and then run. A longer silence is Unavailable, with code "timeout".
    """

    def __init__(self, socket: Optional[str] = None, timeout: Optional[float] = None) -> None:
        self.transport = Transport(SBXD, socket, timeout)

    def run(self, code: Optional[str] = None, language: str = "python",
            timeout_seconds: float = DEFAULT_TIMEOUT, limits: Optional[SandboxLimits] = None,
            **options: Any) -> ExecutionResult:
        """As run_code()."""
        body = run_body(code, language, timeout_seconds, limits, **options)
        return run_at(self.transport, "/v1/run", body)

    def stream(self, code: Optional[str] = None, language: str = "python",
               timeout_seconds: float = DEFAULT_TIMEOUT, limits: Optional[SandboxLimits] = None,
               **options: Any) -> RunStream:
        """As stream_code()."""
        body = run_body(code, language, timeout_seconds, limits, **options)
        return stream_at(self.transport, "/v1/run?stream=1", body)

    def cancel(self, run_id: str) -> None:
        """Ends a run of yours. Raises Refused when none of that id is under way."""
        target = f"/v1/runs/{quote_id('run_id', run_id)}"
        self.transport.request("DELETE", target, may_be_gone=True).close()

    def info(self) -> Dict[str, Any]:
        """What the daemon offers: languages, packages, limits, ceilings, layers, version."""
        info: Dict[str, Any] = self.transport.json("GET", "/v1/info")
        return info


def run_code(code: str, language: str = "python", timeout_seconds: float = DEFAULT_TIMEOUT,
             limits: Optional[SandboxLimits] = None, *, args: Sequence[str] = (),
             stdin: Optional[str] = None, files: Optional[Mapping[str, FileContent]] = None,
             env: Optional[Mapping[str, str]] = None, profile: Optional[str] = None,
             collect: Optional[str] = None, socket: Optional[str] = None,
             timeout: Optional[float] = None) -> ExecutionResult:
    """Runs code in a sandbox of its own, and says what became of it.

    files: put at /input/<name>; bytes, or a pathlib.Path to read. collect: what to do with files
    that the code leaves in /output: "content" (the default), "list" or "none". timeout_seconds is
    for the code; timeout is for the daemon, and seldom needed: see Client.

    Raises SandboxError (Unavailable, Refused or Failed) when the sandbox could not do its work,
    never for what the code does; TypeError or ValueError, before anything is sent, for an argument
    that cannot be meant, and when timeout_seconds and limits.wall_seconds differ.
    """
    arguments.text("code", code)  # None would stand for Client.run()'s argv
    return Client(socket, timeout).run(code, language, timeout_seconds, limits, args=args,
                                       stdin=stdin, files=files, env=env, profile=profile,
                                       collect=collect)


def stream_code(code: str, language: str = "python", timeout_seconds: float = DEFAULT_TIMEOUT,
                limits: Optional[SandboxLimits] = None, *, args: Sequence[str] = (),
                stdin: Optional[str] = None, files: Optional[Mapping[str, FileContent]] = None,
                env: Optional[Mapping[str, str]] = None, profile: Optional[str] = None,
                collect: Optional[str] = None, socket: Optional[str] = None,
                timeout: Optional[float] = None) -> RunStream:
    """The same, with events as they happen: see RunStream."""
    arguments.text("code", code)
    return Client(socket, timeout).stream(code, language, timeout_seconds, limits, args=args,
                                          stdin=stdin, files=files, env=env, profile=profile,
                                          collect=collect)
