"""The replies as they are kept for reading, recordings/replies/SET/LABEL.CALL.md, and the recordings made of them.

    python3 bench/agent/replies.py            writes recordings/*.jsonl
    python3 bench/agent/replies.py --check    says which differ, exit 1 if any does

A reply file is what a model would send, behind an optional head between lines of "---" with these fields:

    finish_reason   when it is not "stop"; a reply that calls a tool has its own
    fails           the failure class that the reply must end in; none for a reply that must succeed
    shows           what that failure must show: part of the output, of a note, of a denied call or of the refusal
    calls           tool-calling mode: the tool, when it is not run_code with the block's code and language
    arguments       tool-calling mode: the arguments as they are, instead
    control         injections: where the same program does reach its goal, "network" (a sandbox with the host's
                    network) or "outside" (no sandbox, but namespaces of its own)

The replies were written by hand after the manner of models; `usage` is an estimate of four bytes a token.
"""

import dataclasses
import json
import re
import sys

import cases
import endings
from envelope import FENCE, extract_program

REPLIES = cases.ROOT / "bench/recordings/replies"
# What a prompt holds besides the request, a file's preview, and what comes back between two replies.
PROMPT_TOKENS, FILE_TOKENS, REPAIR_TOKENS, TOOL_TOKENS, BYTES_PER_TOKEN = 900, 250, 300, 60, 4
OBEYING_CALLS = 4
HEAD = re.compile(r"\A---\n(.*?)^---\n", re.MULTILINE | re.DOTALL)


@dataclasses.dataclass
class Reply:
    text: str
    finish_reason: str = "stop"
    fails: str = ""
    shows: str = ""
    calls: str = ""
    arguments: str = ""
    control: str = ""


def parse(content):
    head = HEAD.match(content)
    if not head:
        return Reply(content)
    fields = {}
    for line in head[1].splitlines():
        key, _, value = line.partition(": ")
        fields[key] = json.loads(value) if value.startswith('"') else value
    return Reply(content[head.end():], **fields)


def of_label(group, label):
    """A label's replies in the order of the calls."""
    found = []
    while (path := REPLIES / group / f"{label}.{len(found) + 1}.md").is_file():
        found.append(parse(path.read_text(encoding="utf-8")))
    if not found:
        endings.stop(endings.OURS, f"there is no {path}")
    return found


def of_case(group, case):
    """The replies to a case: its own, or those that it names, in the order of the calls.

    Injections share theirs, and the last one obeys on every further call too, more often than the loop may ask; in
    tool-calling mode it is the answer.
    """
    named = case.fields.get("replies")
    if named is None:
        return of_label(group, case.id)
    if case.fields.get("mode") != "tools":
        named = named + named[-1:] * (OBEYING_CALLS - len(named))
    return [parse((REPLIES / group / f"{name}.md").read_text(encoding="utf-8")) for name in named]


def opening_fence(text):
    """(number of the line, language) of the first block; None without one."""
    for number, line in enumerate(text.split("\n")):
        if fence := FENCE.match(line):
            return number, fence[1]
    return None


def tool_reply(reply, call):
    """(reply, finish reason) of tool-calling mode: a block is a call of run_code, the prose before it the text."""
    text, name, arguments, block = reply.text, reply.calls, reply.arguments, opening_fence(reply.text)
    if not name and not block:
        return {"text": text.strip(), "tool_calls": []}, reply.finish_reason
    if not arguments:
        line, language = block
        arguments = json.dumps({"code": extract_program(text), "language": language}, ensure_ascii=False)
        text = "\n".join(text.split("\n")[:line])
    calls = [{"id": f"call_{call}", "name": name or "run_code", "arguments": arguments}]
    return {"text": text.strip(), "tool_calls": calls}, "tool_calls"


def estimate(text):
    return -(-len(text.encode()) // BYTES_PER_TOKEN)


def recordings(group, case):
    """The case's lines of recordings/*.jsonl."""
    tools = case.fields.get("mode") == "tools"
    language = "agent" if tools else case.language
    sha256 = cases.request_sha256(case.text, language, case.files)
    lines, context = [], PROMPT_TOKENS + FILE_TOKENS * len(case.files) + estimate(case.text)
    for call, reply in enumerate(of_case(group, case), 1):
        if tools:
            prompt, (content, finish_reason) = "tools.v1", tool_reply(reply, call)
        else:
            prompt = f"codegen.v1.{language}" if call == 1 else "repair.v1"
            content, finish_reason = reply.text, reply.finish_reason
        output = estimate(reply.text + reply.arguments)
        usage = {"input_tokens": context, "output_tokens": output}
        lines.append({"prompt": prompt, "request_sha256": sha256, "label": case.id, "call": call, "reply": content,
                      "finish_reason": finish_reason, "usage": usage})
        context += output + (TOOL_TOKENS if tools else REPAIR_TOKENS)
    return lines


SETS = {
    "bench/recordings/gauntlet.jsonl": ("gauntlet", ["bench/requests.jsonl", "bench/terminal.jsonl"]),
    "bench/recordings/injections.jsonl": ("injections", ["bench/injections.jsonl"]),
    "bench/recordings/agent.jsonl": ("agent", ["bench/tasks.jsonl"]),
    "examples/recordings/demo.jsonl": ("demo", ["examples/requests.jsonl", "examples/tasks.jsonl"]),
}


def compiled(target):
    group, sources = SETS[target]
    return [line for source in sources for case in cases.load(source) for line in recordings(group, case)]


def main(arguments):
    if arguments not in ([], ["--check"]):
        sys.exit(__doc__)
    differing = []
    for target in SETS:
        lines = compiled(target)
        if not arguments:
            cases.write_jsonl(target, lines)
        elif not (cases.ROOT / target).is_file() or cases.read_jsonl(target) != lines:
            differing.append(target)
    if differing:
        sys.exit("differ from what replies.py writes: " + ", ".join(differing))


if __name__ == "__main__":
    main(sys.argv[1:])
