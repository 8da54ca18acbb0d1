"""A request whose program does next to nothing, and its recording: what is left to measure is agentd."""

import cases

TEXT = "Say hello."
CODE = 'print(\'{"type": "text", "data": "hello"}\')\n'
REPLY = f"```python\n{CODE}```\n"


def case():
    return cases.Case("small", "small", TEXT, "python", {}, {})


def recordings(directory):
    """The directory, with the recording of case() in it."""
    cases.write_jsonl(directory / "small.jsonl", [{
        "prompt": "codegen.v1.python", "request_sha256": cases.request_sha256(TEXT, "python", {}), "label": "small",
        "call": 1, "reply": REPLY, "finish_reason": "stop", "usage": {"input_tokens": 400, "output_tokens": 20}}])
    return directory
