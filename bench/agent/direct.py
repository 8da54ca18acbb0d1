"""Runs a program in the sandbox with sbx-run alone, and says how agentd would class what came of it.

With this the recordings are verified without a daemon; it follows the table of failure classes, and trusts the
runtime's facts only.
"""

import base64
import dataclasses
import json
import os
import re
import subprocess
import tempfile
import tomllib

import cases
from checks import Answer
from envelope import NoProgram, extract_program, parse_envelope

SBX_RUN = os.environ.get("SBX_RUN", str(cases.ROOT / "build/bin/sbx-run"))
DISKS = {"tmp", "output", "work", "shm"}
RESOURCES = {"memory", "pids"} | DISKS | {f"{disk}_inodes" for disk in DISKS}
GIVE_UP = {"timeout", "security"}
# The machine may be busy, and its page cache cold: the shipped 30 s are for a service's own host.
PATIENT_SECONDS, PROCESS_SECONDS = 120, 300


@dataclasses.dataclass
class Outcome:
    failure: str            # a class, or "" for success
    detail: str             # what explains it
    answer: Answer = None   # with success
    result: dict = None     # the runtime's, when the program ran


def run(language, code, files, seconds=PATIENT_SECONDS, options=()):
    """The runtime's result of one run."""
    with tempfile.TemporaryDirectory(prefix="bench-sbx-") as directory:
        command = [SBX_RUN, "--json", "-l", language, "-t", str(seconds), *options]
        for number, (name, content) in enumerate(files.items()):
            path = os.path.join(directory, str(number))
            with open(path, "wb") as file:
                file.write(content)
            command += ["--input", f"{path}:{name}"]
        done = subprocess.run([*command, "-"], input=code.encode(), capture_output=True, timeout=PROCESS_SECONDS,
                              check=False)
    if not done.stdout:
        raise RuntimeError(f"sbx-run gave no result: {done.stderr.decode(errors='replace')}")
    return json.loads(done.stdout)


def artifacts(result):
    return {file["path"]: base64.b64decode(file["content_base64"]) for file in result["files"]}


def syntax_pattern(language):
    with open(cases.ROOT / f"policy/languages/{language}.toml", "rb") as file:
        return re.compile(tomllib.load(file)["syntax_error_pattern"], re.MULTILINE)


def failure_class(result, language):
    """The class of a run that did not end well, "" for one that did."""
    status = result["status"]
    if status == "sandbox_error":
        return "sandbox"
    if status in ("timeout", "cpu_time"):
        return "timeout"
    if status == "security":
        return "security"
    if status in ("oom", "output") or (not result["ok"] and RESOURCES & set(result["limits_hit"])):
        return "resource"
    if not result["ok"]:
        return "syntax" if syntax_pattern(language).search(result["stderr"]) else "runtime"
    return ""


def try_reply(reply, language, files, seconds=PATIENT_SECONDS, options=()):
    """What a reply comes to: extracted, run and judged as in one attempt of the loop."""
    try:
        code = extract_program(reply.text, reply.finish_reason)
    except NoProgram as error:
        return Outcome("provider", str(error))
    result = run(language, code, files, seconds, options)
    failure = failure_class(result, language)
    detail = "\n".join([result["stdout"], result["stderr"], *(note["text"] for note in result["notes"]),
                        *(denial["syscall"] for denial in result["denials"]), result["status"]])
    if failure:
        return Outcome(failure, detail, result=result)
    collected = artifacts(result)
    try:
        return Outcome("", detail, Answer(parse_envelope(result["stdout"], collected), collected), result)
    except ValueError as error:
        return Outcome("envelope", f"{error}\n{detail}", result=result)
