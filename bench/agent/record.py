"""One request to agentd, from its submission to its record: what the runners know of agentd's interface is here."""

import base64
import dataclasses
import json
import time
import urllib.parse

import checks
import direct
from envelope import parse_envelope
from unix_http import Problem, call, call_json

POLL_SECONDS, END_SECONDS = 0.1, 900
ENDED = ("succeeded", "gave_up", "cancelled", "failed")


class Failed(Exception):
    """agentd or sbxd could not do their work: an error of ours, no result."""


@dataclasses.dataclass
class Attempt:
    failure: str        # the class, "" for success; "cancelled", "not_run"
    seconds: float
    tokens: int
    cost_usd: float
    code: str


def failure_of(attempt):
    outcome = attempt["outcome"]
    return attempt["class"] or ("" if outcome in ("passed", "done") else outcome)


@dataclasses.dataclass
class Record:
    document: dict              # as agentd sent it
    answer: checks.Answer       # None without a result

    @property
    def succeeded(self):
        return self.document["state"] == "succeeded"

    @property
    def ending(self):
        reason = self.document["reason"]
        return f"{reason['code']}: {reason['text']}"

    @property
    def attempts(self):
        return [Attempt(failure_of(attempt), attempt["seconds"], sum(attempt["tokens"].values()),
                        attempt["cost_usd"], attempt.get("code") or "") for attempt in self.document["attempts"]]

    @property
    def cost_usd(self):
        return self.document["cost_usd"]

    @property
    def seconds(self):
        return self.document["wall_seconds"]

    @property
    def provider(self):
        return self.document["provider"]["kind"]

    @property
    def replayed(self):
        return self.document["provider"]["replayed"]


def body_of(case):
    files = [{"name": name, "content_base64": base64.b64encode(content).decode()}
             for name, content in case.files.items()]
    if case.fields.get("mode") == "tools":
        return {"task": case.text, "files": files, "label": case.id}
    return {"text": case.text, "language": case.language, "files": files, "label": case.id}


def submit(socket, case):
    target = "/v1/agent" if case.fields.get("mode") == "tools" else "/v1/requests"
    return call_json(socket, "POST", target, body_of(case))["id"]


def wait(socket, request):
    """The request's document when it has ended."""
    deadline = time.monotonic() + END_SECONDS
    while time.monotonic() < deadline:
        document = call_json(socket, "GET", f"/v1/requests/{request}")
        if document["state"] in ENDED:
            return document
        time.sleep(POLL_SECONDS)
    raise Failed(f"request {request} did not end within {END_SECONDS} s")


def artifact(socket, request, name):
    """(headers, content)"""
    return call(socket, "GET", f"/v1/requests/{request}/artifacts/{urllib.parse.quote(name)}")


def artifacts(socket, document):
    """{name: (headers, content)} of all that the request left."""
    return {entry["name"]: artifact(socket, document["id"], entry["name"]) for entry in document["artifacts"]}


def answer_of(document, contents):
    """The result as the checks take it; None when there is none."""
    result = document["result"]
    if result is None:
        return None
    path = f"/output/{result['artifact']}" if result["artifact"] else None
    envelope = {"type": result["type"], "data": result["data"], "artifact_path": path, "note": result["note"]}
    return checks.Answer(envelope, contents)


def ask(socket, case):
    """A request from submission to Record. Failed for an error of ours."""
    try:
        document = wait(socket, submit(socket, case))
        if document["state"] == "failed":
            raise Failed(f"{document['reason']['code']}: {document['reason']['text']}")
        contents = {name: content for name, (_, content) in artifacts(socket, document).items()}
    except Problem as problem:
        raise Failed(str(problem)) from None
    return Record(document, answer_of(document, contents))


def run_again(sbxd, language, code, files):
    """The Answer of a program on other files, straight in sbxd; ValueError when it does not succeed there."""
    listed = [{"name": name, "content_base64": base64.b64encode(content).decode()} for name, content in files.items()]
    try:
        result = call_json(sbxd, "POST", "/v1/run", {"language": language, "code": code, "files": listed,
                                                     "limits": {"wall_seconds": direct.PATIENT_SECONDS}}, END_SECONDS)
    except Problem as problem:
        raise Failed(str(problem)) from None
    if not result["ok"]:
        raise ValueError(f"{result['status']}: {result['stderr'][-400:]}")
    collected = direct.artifacts(result)
    return checks.Answer(parse_envelope(result["stdout"], collected), collected)


def settings(socket):
    """What a result depends on: the model, its prices, the prompts, the ceilings."""
    info = call_json(socket, "GET", "/v1/info")
    provider = {key: value for key, value in info["provider"].items() if key not in ("origin", "reachable")}
    return {"provider": provider, "prompts": info["prompts"], "ceilings": info["ceilings"]}


def events(socket, request):
    """The whole event stream of a request that has ended, as bytes."""
    return call(socket, "GET", f"/v1/requests/{request}/events")[1]


def history(socket):
    return json.dumps(call_json(socket, "GET", "/v1/requests"))
