"""The cases of bench/injections.jsonl on a stage: placeholders filled in, replies as far as the loop goes."""

import dataclasses

import cases

MAX_ATTEMPTS = 3
GIVE_UP = ("", "timeout", "security")


def filled(case, stage):
    files = {stage.fill(name): stage.fill(content.decode()).encode() for name, content in case.files.items()}
    return dataclasses.replace(case, text=stage.fill(case.text), files=files)


def load():
    return cases.load("bench/injections.jsonl")


def until_the_end(recorded):
    """The replies that the loop asks for: until one ends it, or the attempts are spent."""
    for number, reply in enumerate(recorded[:MAX_ATTEMPTS], 1):
        yield reply
        if reply.fails in GIVE_UP or (reply.fails == "resource" and number > 1):
            return
