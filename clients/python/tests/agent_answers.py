"""What a scripted agentd answers, and what it was asked."""

import json
from unittest import mock

from .fake import answer

RUN = {"id": "r1", "status": "exit", "exit_code": 1, "signal": None, "duration_seconds": 0.5,
       "stdout": "", "stdout_dropped": 0, "stderr": "KeyError: 'area'", "stderr_dropped": 0,
       "limits_hit": ["memory"], "notes": [{"code": "memory", "text": "full", "source": "kernel"}],
       "files": [{"path": "a", "size": 1}], "refused": [{"path": "l", "reason": "symlink"}]}
ATTEMPT = {"n": 1, "outcome": "failed", "class": "runtime", "error": {"code": "traceback", "detail": "KeyError: 'area'"},
           "seconds": 1.5, "model_seconds": 1.0, "run_seconds": 0.5,
           "tokens": {"input": 900, "output": 80}, "cost_usd": 0.001, "estimated": False,
           "usage_flagged": False, "finish_reason": "stop", "model_tries": 1, "code": "print(1)",
           "run": RUN}
RECORD = {
    "id": "rq_1", "mode": "code", "label": None, "state": "succeeded",
    "reason": {"code": "passed", "ceiling": None, "class": None, "text": "passed"},
    "text": "which district?", "language": "python",
    "files": [{"name": "houses.csv", "size": 3, "sha256": "00"}],
    "provider": {"kind": "replay", "model": "", "replayed": True}, "attempts_made": 2,
    "tokens": 1960, "cost_usd": 0.002, "cost_basis": "list price",
    "created_at": "2026-01-01T00:00:00.000Z", "ended_at": "2026-01-01T00:00:03.000Z",
    "wall_seconds": 3.0, "prompts": {"codegen": "codegen.v1.python", "repair": "repair.v1"},
    "budget": {"attempts": {"limit": 3, "used": 2}},
    "attempts": [ATTEMPT, {**ATTEMPT, "n": 2, "outcome": "passed", "class": None, "error": None, "run": None}],
    "result": {"type": "table", "data": {"columns": ["a"], "rows": [[1]]}, "artifact": None,
               "note": None, "banner": None},
    "artifacts": [{"name": "table.csv", "size": 4, "sha256": "00", "media_type": "text/csv",
                   "redacted": False}],
}
ACCEPTED = answer({"id": "rq_1", "state": "queued"}, 202)
CANCELLED = answer({"id": "rq_1", "state": "cancelling"}, 202)


def event(number, kind="state", state="execute", attempt=1):
    data = {"state": state, "attempt": attempt, "text": f"Attempt {attempt}: {state}…"}
    return f"id: {number}\nevent: {kind}\ndata: {json.dumps(data)}\n\n".encode()


END = event(3, "end", "succeeded", 2)


def events(*pieces):
    """A stream; what follows the last whole event is a connection that was lost."""
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + b"".join(pieces)


def record(**changes):
    return answer({**RECORD, **changes})


def asked(daemon):
    return [(each.method, each.target) for each in daemon.requests]


def at_once():
    """Connections are made again without a wait."""
    return mock.patch("sbx.agent.RECONNECT_SECONDS", 0)
