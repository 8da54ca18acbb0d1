"""AgentResult: what became of a request, as agentd tells it."""

from __future__ import annotations

import dataclasses
import os
from typing import IO, Any, Dict, Mapping, Optional, Tuple, Union

from ._daemon import AGENTD
from ._result import Note, RefusedEntry, all_of, one_of
from . import _arguments as arguments
from ._transport import Reply, Transport, quote_id, quote_path


@dataclasses.dataclass(frozen=True)
class Envelope:
    """What the program gave as its result."""

    type: str  #: table, chart, text, file; raw: stdout as it is, since no envelope could be had
    data: Any  #: table: {"columns", "rows"}; text, raw: a str; chart, file: as reported, or None
    artifact: Optional[str]  #: the name of the chart or file among the artifacts
    note: Optional[str]
    banner: Optional[str]  #: why it is raw


@dataclasses.dataclass(frozen=True)
class Reason:
    """Why a request ended as it did."""

    code: str  #: passed, ceiling, timeout, security, resource, provider, cancelled, …
    ceiling: Optional[str]  #: with "ceiling": which one was reached
    class_: Optional[str]  #: of the last failure
    text: str  #: one sentence
    fix: Optional[str] = None  #: what mends it; the text ends with it then


@dataclasses.dataclass(frozen=True)
class Provider:
    """Who wrote the programs."""

    kind: str  #: openai, anthropic, replay
    model: str
    replayed: bool  #: recordings answered; no model was asked


@dataclasses.dataclass(frozen=True)
class Artifact:
    """A file that the program left: AgentResult.get() has its bytes."""

    name: str
    size: int
    sha256: str
    media_type: str
    redacted: bool  #: something in it looked like a key, and is not there any more


@dataclasses.dataclass(frozen=True)
class RequestFile:
    """A file that came with the request."""

    name: str
    size: int
    sha256: str


@dataclasses.dataclass(frozen=True)
class Tokens:
    """Of one reply of the model."""

    input: int
    output: int


@dataclasses.dataclass(frozen=True)
class Spent:
    """Of one ceiling of a request."""

    limit: float
    used: float


@dataclasses.dataclass(frozen=True)
class AttemptError:
    """What was wrong with an attempt: the rule that it broke, the last line of its traceback."""

    code: str
    detail: str


@dataclasses.dataclass(frozen=True)
class RunFile:
    """A file that a run left; only those of the last good run become artifacts."""

    path: str
    size: int


@dataclasses.dataclass(frozen=True)
class AttemptRun:
    """A run in the sandbox: of its result what agentd keeps."""

    id: str
    status: str  #: as ExecutionResult.status
    exit_code: int
    signal: Optional[int]
    duration_seconds: float
    stdout: str
    stdout_dropped: int
    stderr: str
    stderr_dropped: int
    limits_hit: Tuple[str, ...]
    notes: Tuple[Note, ...]
    files: Tuple[RunFile, ...]
    refused: Tuple[RefusedEntry, ...]


@dataclasses.dataclass(frozen=True)
class ToolUse:
    """A call of the model's in tool-calling mode, and what it was told."""

    name: str
    arguments: str  #: as the model wrote them, JSON or not
    is_error: bool
    output: str
    run: Optional[AttemptRun]


@dataclasses.dataclass(frozen=True)
class Attempt:
    """One reply of the model, and what came of it."""

    n: int  #: from 1
    outcome: str  #: running, passed, done (a step of tool-calling mode), failed, cancelled, not_run
    class_: Optional[str]  #: of one that failed: syntax, runtime, envelope, resource, timeout, …
    error: Optional[AttemptError]
    seconds: float
    model_seconds: float
    run_seconds: float
    tokens: Tokens
    cost_usd: float
    estimated: bool  #: tokens and cost are what was reserved: the provider told none
    usage_flagged: bool  #: it told some that cannot be
    finish_reason: str
    model_tries: int
    code: Optional[str] = None  #: the program; None in tool-calling mode
    run: Optional[AttemptRun] = None
    text: Optional[str] = None  #: tool-calling mode: what the model said
    tools: Tuple[ToolUse, ...] = ()  #: tool-calling mode


@dataclasses.dataclass(frozen=True)
class Summary:
    """A request in the history."""

    id: str
    mode: str  #: code, or tools: tool-calling
    label: Optional[str]
    state: str  #: queued, generate, execute, …; at the end succeeded, gave_up, cancelled, failed
    reason: Optional[Reason]  #: None until the end
    text: str
    language: Optional[str]
    files: Tuple[RequestFile, ...]
    provider: Provider
    attempts_made: int
    tokens: int
    cost_usd: float  #: notional: tokens at list price
    cost_basis: str  #: "list price"; "estimate" where a provider told no usage
    created_at: Optional[str]
    ended_at: Optional[str]
    wall_seconds: float

    @classmethod
    def from_json(cls, json: Any) -> Summary:
        """Raises Failed for what is no summary of this version."""
        try:
            return one_of(cls, _summary_fields(json))
        except (KeyError, TypeError, ValueError) as error:
            raise AGENTD.unknown("a request of agentd's", repr(error)) from error


@dataclasses.dataclass(frozen=True)
class AgentResult(Summary):
    """Everything on record about a request."""

    prompts: Mapping[str, str]  #: the versions that were used
    budget: Mapping[str, Spent]  #: by ceiling
    attempts: Tuple[Attempt, ...]
    envelope: Optional[Envelope]  #: `result` in agentd's JSON; None where there is none
    artifacts: Tuple[Artifact, ...]
    raw: Mapping[str, Any] = dataclasses.field(repr=False, compare=False)  #: the JSON
    transport: Transport = dataclasses.field(repr=False, compare=False)  #: for get()

    @property
    def ok(self) -> bool:
        """There is a result, and it passed every check."""
        return self.state == "succeeded"

    @property
    def gave_up(self) -> bool:
        """A ceiling was reached, or a failure that repair cannot help: see reason."""
        return self.state == "gave_up"

    @property
    def cost(self) -> float:
        """Dollars, notional: tokens at list price."""
        return self.cost_usd

    def get(self, name: str) -> bytes:
        """An artifact's whole content."""
        with self.open(name) as reply:
            return reply.read()

    def get_to(self, name: str, target: Union[os.PathLike[str], IO[bytes]]) -> int:
        """Copies an artifact to a path or a binary file, in pieces, and gives its size.

        The path is the caller's to choose: an artifact's name is the program's.
        """
        arguments.writable("target", target)
        with self.open(name) as reply:
            return reply.copy_to(target)

    def open(self, name: str) -> Reply:
        """An artifact to read in pieces: with result.open(name) as file: file.read(65536)."""
        target = f"/v1/requests/{quote_id('id', self.id)}/artifacts/{quote_path('name', name)}"
        return self.transport.request("GET", target)

    @classmethod
    def from_record(cls, json: Any, transport: Transport) -> AgentResult:
        """Raises Failed for what is no record of this version. What is unknown stays in `raw`."""
        try:
            values = _summary_fields(json)
            values.update(
                prompts=dict(json["prompts"]),
                budget={name: one_of(Spent, spent) for name, spent in json["budget"].items()},
                attempts=tuple(_attempt(each) for each in json["attempts"]),
                envelope=None if json["result"] is None else one_of(Envelope, json["result"]),
                artifacts=all_of(Artifact, json["artifacts"]),
                raw=json, transport=transport,
            )
            return one_of(cls, values)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise AGENTD.unknown("a request of agentd's", repr(error)) from error


def _summary_fields(json: Mapping[str, Any]) -> Dict[str, Any]:
    values = dict(json)
    values.update(
        reason=None if json["reason"] is None else one_of(Reason, json["reason"]),
        files=all_of(RequestFile, json["files"]),
        provider=one_of(Provider, json["provider"]),
    )
    return values


def _attempt(json: Mapping[str, Any]) -> Attempt:
    values = dict(json)
    values.update(
        error=None if json["error"] is None else one_of(AttemptError, json["error"]),
        tokens=one_of(Tokens, json["tokens"]),
        run=_run(json.get("run")),
        tools=tuple(one_of(ToolUse, {**use, "run": _run(use["run"])})
                    for use in json.get("tools", ())),
    )
    return one_of(Attempt, values)


def _run(json: Optional[Mapping[str, Any]]) -> Optional[AttemptRun]:
    if json is None:
        return None
    values = dict(json)
    values.update(
        limits_hit=tuple(json["limits_hit"]),
        notes=all_of(Note, json["notes"]),
        files=all_of(RunFile, json["files"]),
        refused=all_of(RefusedEntry, json["refused"]),
    )
    return one_of(AttemptRun, values)
