"""Asks agentd on this machine: from a sentence to a result.

>>> from sbx.agent import run_request
>>> answer = run_request("which district is the most expensive per square metre?",
...                      files={"houses.csv": pathlib.Path("examples/houses.csv")})
>>> answer.envelope.type, len(answer.attempts), answer.gave_up
('table', 2, False)

A request that agentd gave up is a result like any other; a SandboxError means that agentd, its
sandbox or its ledger could not do their work.
"""

from __future__ import annotations

import contextlib
import dataclasses
import time
from types import TracebackType
from typing import Any, Dict, Generator, Iterator, Mapping, Optional, Type

from ._agent_result import (AgentResult, Artifact, Attempt, AttemptError, AttemptRun, Envelope,
                            Provider, Reason, RequestFile, RunFile, Spent, Summary, Tokens, ToolUse)
from . import _arguments as arguments
from ._client import FileContent, input_files
from ._daemon import AGENTD
from ._errors import Failed, SandboxError, Unavailable
from ._transport import Reply, Transport, parse_json, quote_id

__all__ = [
    "AgentClient", "AgentEvent", "AgentResult", "Artifact", "Attempt", "AttemptError", "AttemptRun",
    "Budget", "Envelope", "Provider", "Reason", "RequestFailed", "RequestFile", "RequestStream",
    "RunFile", "Spent", "Summary", "Tokens", "ToolUse", "run_agent", "run_request", "stream_agent",
    "stream_request",
]

Files = Mapping[str, FileContent]
RECONNECTS = 10  #: in a row, while agentd is started again
RECONNECT_SECONDS = 1.0
EVENT_PATIENCE = 60.0  #: seconds; a line comes every 15
MAX_ITERATIONS = 10


@dataclasses.dataclass(frozen=True)
class Budget:
    """Ceilings of one request, each at most the configured one, which None stands for."""

    attempts: Optional[int] = None  #: not in tool-calling mode
    tokens: Optional[int] = None
    cost_usd: Optional[float] = None
    sandbox_seconds: Optional[float] = None
    wall_seconds: Optional[float] = None

    def __post_init__(self) -> None:
        """Raises TypeError or ValueError, naming the ceiling, for what can be none."""
        for name in ("attempts", "tokens"):
            if getattr(self, name) is not None:
                arguments.whole(name, getattr(self, name))
        for name in ("cost_usd", "sandbox_seconds", "wall_seconds"):
            if getattr(self, name) is not None:
                arguments.number(name, getattr(self, name))

    def to_json(self) -> Dict[str, Any]:
        """The ceilings that are set."""
        return {name: value for name, value in vars(self).items() if value is not None}


@dataclasses.dataclass(frozen=True)
class AgentEvent:
    """A change of state; the last one, of kind "end", tells how the request ended."""

    id: int  #: from 1, without gaps
    kind: str  #: state, end
    state: str
    attempt: int
    text: str  #: one line for people: "Attempt 1: executing…"


class RequestFailed(Failed):
    """agentd took the request, and then its sandbox, its ledger or agentd itself failed."""

    def __init__(self, answer: AgentResult) -> None:
        reason = answer.reason
        text = reason.text if reason else answer.state
        fix = reason.fix if reason else None
        if fix and text.endswith(f". Fix: {fix}"):
            text = text[:-len(f". Fix: {fix}")]
        super().__init__(f"request {answer.id} failed: {text}", code=reason.code if reason else "",
                         fix=fix or f"see {AGENTD.name}'s log")
        self.answer = answer  #: what is on record of it


class RequestStream:
    """Events of a request. Iterate once; closing it before the end cancels the request.

    A connection that is lost is made again, and no event with it: agentd may be restarted. More
    events of a stream that is closed are a ValueError, also when another thread closes it while one
    is waited for.
    """

    def __init__(self, transport: Transport, request_id: str, cancel: bool = True) -> None:
        self.id = request_id
        self._transport = transport
        self._cancel = cancel
        self._closed = False
        self._seen = 0
        self._reply: Optional[Reply] = None  # that events are read from
        self._result: Optional[AgentResult] = None

    @property
    def result(self) -> AgentResult:
        """The result, once the last event was seen. Raises RuntimeError before."""
        if self._result is None and self._closed:
            raise RuntimeError("there is no result: the stream was closed before its last event")
        if self._result is None:
            raise RuntimeError("the request has not ended: iterate to the last event first")
        return self._result

    def __iter__(self) -> Iterator[AgentEvent]:
        """Raises RequestFailed, in place of the last event, when agentd's side failed."""
        lost = 0
        while self._result is None:
            try:
                self._check_open()
                with contextlib.closing(self._connected_events()) as events:
                    for event in events:
                        if event.kind == "end":
                            break
                        lost = 0
                        yield event
                        self._check_open()
                    else:
                        raise Unavailable("the events ended before the result",
                                          code="disconnected", fix=AGENTD.see_log)
                self._end()
                yield event
            except RequestFailed:
                raise
            except (Unavailable, Failed) as error:
                if isinstance(error, Failed) and error.code != "cut_off":
                    raise
                lost += 1
                if lost > RECONNECTS or error.code in ("permission", "timeout"):
                    raise
                time.sleep(RECONNECT_SECONDS)

    def _connected_events(self) -> Generator[AgentEvent, None, None]:
        """Those that were not seen yet, while the connection holds."""
        headers = {"Last-Event-ID": str(self._seen)} if self._seen else {}
        target = _target(self.id, "/events")
        with self._transport.request("GET", target, headers=headers,
                                     patience=EVENT_PATIENCE) as reply:
            self._reply = reply
            self._check_open()  # close() may not have known it yet
            for event in self._events_of(reply):
                if event.kind != "end":  # wanted again, should the record not be had
                    self._seen = event.id
                yield event

    def _events_of(self, reply: Reply) -> Iterator[AgentEvent]:
        try:
            yield from _events(reply)
        except ValueError:
            self._check_open()  # in the words of streams
            raise

    def _end(self) -> None:
        self._result = _record(self._transport, self.id)
        if self._result.state == "failed":
            raise RequestFailed(self._result)

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("the stream is closed: it gives no more events")

    def close(self) -> None:
        """Cancels the request, unless it has ended, or is only followed."""
        self._closed = True
        if self._reply is not None:
            self._reply.close()
        if self._cancel and self._result is None:
            # It may have ended meanwhile; or agentd has, and what it worked on with it.
            with contextlib.suppress(SandboxError):
                self._transport.request("DELETE", _target(self.id)).close()

    def __enter__(self) -> RequestStream:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()


class AgentClient:
    """An agentd. Its methods may be called from several threads: each call has its connection.

    `socket` is the path of agentd's socket; without it, see the package's README. `timeout` is how
    many seconds agentd may be silent; without it 30, and 60 between events (it gives a sign every
    15 s). A longer silence is Unavailable, with code "timeout".
    """

    def __init__(self, socket: Optional[str] = None, timeout: Optional[float] = None) -> None:
        self.transport = Transport(AGENTD, socket, timeout)

    def stream_request(self, text: str, language: str = "python", *, files: Optional[Files] = None,
                       budget: Optional[Budget] = None,
                       label: Optional[str] = None) -> RequestStream:
        """As stream_request()."""
        body = {"text": arguments.text("text", text),
                "language": arguments.text("language", language)}
        return self._submit("/v1/requests", body, files, budget, label)

    def stream_agent(self, task: str, max_iterations: int = MAX_ITERATIONS, *,
                     files: Optional[Files] = None, budget: Optional[Budget] = None,
                     label: Optional[str] = None) -> RequestStream:
        """As stream_agent()."""
        body = {"task": arguments.text("task", task),
                "max_iterations": arguments.whole("max_iterations", max_iterations)}
        return self._submit("/v1/agent", body, files, budget, label)

    def run_request(self, text: str, language: str = "python", **options: Any) -> AgentResult:
        """As run_request()."""
        return _to_the_end(self.stream_request(text, language, **options))

    def run_agent(self, task: str, max_iterations: int = MAX_ITERATIONS,
                  **options: Any) -> AgentResult:
        """As run_agent()."""
        return _to_the_end(self.stream_agent(task, max_iterations, **options))

    def follow(self, request_id: str) -> RequestStream:
        """Events of a request of yours, from its first; closing this does not cancel it."""
        return RequestStream(self.transport, request_id, cancel=False)

    def show(self, request_id: str) -> AgentResult:
        """What is on record of a request now, also of one that is under way or has failed."""
        return _record(self.transport, request_id)

    def cancel(self, request_id: str) -> None:
        """Ends a request. Raises Refused when there is none of that id, or it has ended."""
        self.transport.request("DELETE", _target(request_id)).close()

    def history(self) -> Iterator[Summary]:
        """Your requests, newest first, fetched page by page."""
        before: Optional[str] = ""
        while before is not None:
            page = self.transport.json("GET", "/v1/requests" + before)
            try:
                requests, following = page["requests"], page["next"]
            except (KeyError, TypeError) as error:
                raise AGENTD.unknown("agentd's history", page) from error
            yield from map(Summary.from_json, requests)
            before = None if following is None else "?before=" + quote_id("next", str(following))

    def info(self) -> Dict[str, Any]:
        """Provider, prompts, ceilings, and whether the sandbox answers."""
        info: Dict[str, Any] = self.transport.json("GET", "/v1/info")
        return info

    def _submit(self, target: str, body: Dict[str, Any], files: Optional[Files],
                budget: Optional[Budget], label: Optional[str]) -> RequestStream:
        if budget is not None:
            arguments.instance("budget", budget, Budget)
        if label is not None:
            arguments.text("label", label)
        optional = {"files": input_files(files), "budget": budget and budget.to_json(),
                    "label": label}
        body.update((name, value) for name, value in optional.items() if value)
        accepted = self.transport.json("POST", target, body)
        try:
            return RequestStream(self.transport, str(accepted["id"]))
        except (KeyError, TypeError) as error:
            raise AGENTD.unknown("agentd's answer", accepted) from error


def run_request(text: str, language: str = "python", *, files: Optional[Files] = None,
                budget: Optional[Budget] = None, label: Optional[str] = None,
                socket: Optional[str] = None, timeout: Optional[float] = None) -> AgentResult:
    """Has a program written for a request in plain words, run, repaired where need be, and told.

    language: "python" or "javascript". files: what the program finds as /input/<name>; bytes, or a
    pathlib.Path to read. label: a name for recordings. timeout: as AgentClient's. Interrupted, it
    cancels the request.

    Raises SandboxError: Unavailable or Refused when agentd did not take the request, RequestFailed
    when agentd, its sandbox or its ledger failed. A request that was given up is a result.
    """
    return AgentClient(socket, timeout).run_request(text, language, files=files, budget=budget,
                                                    label=label)


def run_agent(task: str, max_iterations: int = MAX_ITERATIONS, *, files: Optional[Files] = None,
              budget: Optional[Budget] = None, label: Optional[str] = None,
              socket: Optional[str] = None, timeout: Optional[float] = None) -> AgentResult:
    """The same in tool-calling mode: the model runs code until it answers, or max_iterations."""
    return AgentClient(socket, timeout).run_agent(task, max_iterations, files=files, budget=budget,
                                                  label=label)


def stream_request(text: str, language: str = "python", *, files: Optional[Files] = None,
                   budget: Optional[Budget] = None, label: Optional[str] = None,
                   socket: Optional[str] = None, timeout: Optional[float] = None) -> RequestStream:
    """run_request() with an event for each change of state: see RequestStream."""
    return AgentClient(socket, timeout).stream_request(text, language, files=files, budget=budget,
                                                       label=label)


def stream_agent(task: str, max_iterations: int = MAX_ITERATIONS, *, files: Optional[Files] = None,
                 budget: Optional[Budget] = None, label: Optional[str] = None,
                 socket: Optional[str] = None, timeout: Optional[float] = None) -> RequestStream:
    """run_agent() with an event for each change of state: see RequestStream."""
    return AgentClient(socket, timeout).stream_agent(task, max_iterations, files=files,
                                                     budget=budget, label=label)


def _to_the_end(stream: RequestStream) -> AgentResult:
    with stream:
        for _ in stream:
            pass
        return stream.result


def _target(request_id: str, rest: str = "") -> str:
    return f"/v1/requests/{quote_id('request_id', request_id)}{rest}"


def _record(transport: Transport, request_id: str) -> AgentResult:
    return AgentResult.from_record(transport.json("GET", _target(request_id)), transport)


def _events(reply: Reply) -> Iterator[AgentEvent]:
    """Server-sent events, as agentd writes them: one line of data each, comments in between."""
    fields: Dict[str, str] = {}
    while True:
        line = reply.readline()
        if not line.endswith(b"\n"):
            return
        text = line.decode(errors="replace").rstrip("\r\n")
        if text:
            name, _, value = text.partition(":")
            fields[name] = value.lstrip(" ")
            continue
        if "data" in fields:
            yield _event(fields)
        fields = {}


def _event(fields: Mapping[str, str]) -> AgentEvent:
    try:
        data = parse_json(AGENTD, fields["data"].encode())
        if fields["event"] in ("state", "end"):
            return AgentEvent(int(fields["id"]), fields["event"], data["state"],
                              int(data["attempt"]), data["text"])
    except (KeyError, TypeError, ValueError) as error:
        raise AGENTD.unknown("an event of agentd's", fields) from error
    raise AGENTD.unknown("an event of agentd's", fields)
