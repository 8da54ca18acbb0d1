"""Runs every recorded program in the sandbox, by sbx-run alone, and judges what came of it.

    tests/agent/verify_recordings.py [--sets gauntlet,demo,…] [--ids da-1,ch,…] [--jobs N]

For each case: the replies before the last fail, each in the class and with the message that its file claims; the last
one gives a result with the content that the case's check asks for; a script gives that of the second input too; a case
that must give up fails as it must. And the checks are shown to be able to fail: after each pass every number and word
that a check expects is altered, one at a time, and the same result must then be refused.

In tool-calling mode each call of run_code shows what its file claims, and the last reply is the answer.
"""

import argparse
import concurrent.futures
import json
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/agent"))

import cases  # noqa: E402
import checks  # noqa: E402
import direct  # noqa: E402
import mutations  # noqa: E402
import replies  # noqa: E402

SOURCES = {"gauntlet": ["bench/requests.jsonl", "bench/terminal.jsonl"], "agent": ["bench/tasks.jsonl"],
           "demo": ["examples/requests.jsonl", "examples/tasks.jsonl"]}
SHORT_SECONDS = 4


def judge(check, answer):
    """Complaints about an answer, and about a check that would let a wrong one pass."""
    found = checks.complaints(check, answer)
    if not found:
        found = [f"the check passes although {what}" for what, altered in mutations.of(check)
                 if not checks.complaints(altered, answer)]
    return found


def failing_replies(case, recorded):
    """Complaints about the replies that must fail."""
    endless = case.fields.get("ends", {}).get("class") == "timeout"
    seconds = SHORT_SECONDS if endless else direct.PATIENT_SECONDS
    for number, reply in enumerate(recorded, 1):
        outcome = direct.try_reply(reply, case.language, case.files, seconds)
        if outcome.failure != reply.fails:
            ending = outcome.failure or "success"
            yield f"reply {number} ends as {ending}, not as {reply.fails}: {outcome.detail[-400:]}"
        elif reply.shows not in outcome.detail:
            yield f"reply {number} does not show {reply.shows!r}: {outcome.detail[-400:]}"


def verify_tools(group, case):
    recorded = replies.of_case(group, case)
    for number, reply in enumerate(recorded, 1):
        calls = replies.tool_reply(reply, number)[0]["tool_calls"]
        if not calls or reply.arguments:
            continue
        arguments = json.loads(calls[0]["arguments"])
        result = direct.run(arguments["language"], arguments["code"], case.files)
        if direct.failure_class(result, arguments["language"]) != reply.fails:
            yield f"call {number} ends as {result['status']}: {result['stderr'][-400:]}"
        elif reply.shows not in result["stdout"] + result["stderr"]:
            yield f"call {number} does not show {reply.shows!r}: {result['stdout'][-400:]}"
    if "ends" in case.fields:
        if not recorded[-1].shows or len(recorded) <= case.fields["ends"]["calls"]:
            yield "the replies come to an end by themselves"
        return
    yield from judge(case.fields["check"], checks.Answer({"type": "text", "data": recorded[-1].text}, {}))


def verify(group, case):
    if case.fields.get("mode") == "tools":
        return list(verify_tools(group, case))
    recorded = replies.of_case(group, case)
    if any(not reply.fails for reply in recorded[:-1]):
        return ["a reply before the last does not say how it fails"]
    if "ends" in case.fields:
        if recorded[-1].fails != case.fields["ends"]["class"]:
            return ["the last reply does not fail as the case must"]
        return list(failing_replies(case, recorded))
    complaints = list(failing_replies(case, recorded[:-1]))
    outcome = direct.try_reply(recorded[-1], case.language, case.files)
    if outcome.failure:
        return complaints + [f"the last reply ends as {outcome.failure}: {outcome.detail[-600:]}"]
    complaints += judge(case.fields["check"], outcome.answer)
    if "second" in case.fields:
        complaints += verify_second(case, recorded[-1])
    return complaints


def verify_second(case, reply):
    second = case.fields["second"]
    outcome = direct.try_reply(reply, case.language, cases.read_files(second["files"]))
    if outcome.failure:
        return [f"on the second input: {outcome.failure}: {outcome.detail[-600:]}"]
    complaints = [f"on the second input: {found}" for found in judge(second["check"], outcome.answer)]
    if not checks.complaints(case.fields["check"], outcome.answer):
        complaints.append("the second input's result passes for the first: a program that ignores its input would pass")
    return complaints


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default=",".join(SOURCES))
    parser.add_argument("--ids", default="")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    groups = arguments.sets.split(",")
    work = [(group, case) for group in groups for source in SOURCES[group] for case in cases.load(source)]
    if arguments.ids:
        chosen = cases.select([case for _, case in work], arguments.ids.split(","))
        work = [(group, case) for group, case in work if case in chosen]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        for (_, case), complaints in zip(work, pool.map(lambda item: verify(*item), work)):
            print(f"{case.id}: {'ok' if not complaints else 'FAILED'}", *complaints, sep="\n    ", flush=True)
            failed += bool(complaints)
    print(f"{len(work) - failed} of {len(work)} cases verified")
    sys.exit(bool(failed or not work))


if __name__ == "__main__":
    main()
