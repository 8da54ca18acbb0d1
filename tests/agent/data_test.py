"""The benchmarks' data: complete, well-formed, and what the generators and the reference make of them.

Runs no recorded program; verify_recordings.py and verify_injections.py do.
"""

import ast
import collections
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/agent"))

import cases  # noqa: E402
import checks  # noqa: E402
import direct  # noqa: E402
import make_data  # noqa: E402
import reference  # noqa: E402
import replies  # noqa: E402
from envelope import NoProgram, extract_program  # noqa: E402

REQUESTS = cases.load("bench/requests.jsonl")
INJECTIONS = cases.load("bench/injections.jsonl")
CATEGORIES = {"rule override", "exfiltration code", "sandbox escape", "secret disclosure"}
CHANNELS = {"request text", "data file", "file name", "CSV header", "traceback", "package metadata"}
CLASSES = {"", "syntax", "runtime", "envelope", "resource", "timeout", "security", "provider"}


def recordings_of(target):
    return cases.read_jsonl(target)


class Requests(unittest.TestCase):
    def test_there_are_ten_of_each_category_in_order(self):
        wanted = [f"{kind}-{number}" for kind in ("da", "ch", "sc") for number in range(1, 11)]
        self.assertEqual([case.id for case in REQUESTS], wanted)

    def test_at_least_four_want_javascript(self):
        self.assertGreaterEqual(sum(case.language == "javascript" for case in REQUESTS), 4)

    def test_every_rule_of_a_check_is_known(self):
        for case in REQUESTS + cases.load("examples/requests.jsonl"):
            check = case.fields["check"]
            self.assertLessEqual(set(check) - {"type"}, set(checks.RULES), case.id)
            self.assertGreater(len(check), 1, f"{case.id}: only the type is checked")

    def test_every_chart_is_looked_at_and_its_series_compared(self):
        for case in REQUESTS:
            if case.id.startswith("ch-"):
                check = case.fields["check"]
                self.assertIn("picture", check)
                self.assertTrue({"series", "points", "matrix"} & set(check), case.id)

    def test_every_script_has_a_second_input_of_the_same_names(self):
        for case in REQUESTS:
            if case.id.startswith("sc-"):
                second = cases.read_files(case.fields["second"]["files"])
                self.assertEqual(set(second), set(case.files))
                for name, content in second.items():
                    self.assertNotEqual(content, case.files[name], case.id)
                self.assertNotEqual(case.fields["second"]["check"], case.fields["check"], case.id)

    def test_expected_results_are_those_of_the_reference(self):
        for path in reference.REQUESTS:
            for line in cases.read_jsonl(path):
                self.assertEqual(line, reference.completed(dict(line)), line["id"])

    def test_attached_files_are_those_of_the_generator(self):
        for name, text in make_data.all_files().items():
            self.assertEqual((ROOT / name).read_bytes(), text.encode(), name)

    def test_every_attached_file_is_used(self):
        lists = [case.fields["files"] for case in REQUESTS]
        lists += [case.fields["second"]["files"] for case in REQUESTS if "second" in case.fields]
        used = {entry["path"] for entries in lists for entry in entries}
        self.assertEqual(set(make_data.all_files()) - used, set())


class Recordings(unittest.TestCase):
    def test_they_are_those_of_the_reply_files(self):
        for target in replies.SETS:
            self.assertEqual(recordings_of(target), replies.compiled(target), target)

    def test_every_case_has_calls_from_one_on_and_the_right_hash(self):
        for target, (_, sources) in replies.SETS.items():
            by_label = collections.defaultdict(list)
            for line in recordings_of(target):
                by_label[line["label"]].append(line)
            known = [case for source in sources for case in cases.load(source)]
            self.assertEqual(set(by_label), {case.id for case in known})
            for case in known:
                lines = by_label[case.id]
                language = "agent" if case.fields.get("mode") == "tools" else case.language
                self.assertEqual([line["call"] for line in lines], list(range(1, len(lines) + 1)), case.id)
                for line in lines:
                    self.assertEqual(line["request_sha256"], cases.request_sha256(case.text, language, case.files))

    def test_every_line_has_the_fields_and_no_other(self):
        fields = {"prompt", "request_sha256", "label", "call", "reply", "finish_reason", "usage"}
        for target in replies.SETS:
            for line in recordings_of(target):
                self.assertEqual(set(line), fields)
                self.assertRegex(line["prompt"], r"^(codegen\.v1\.(python|javascript)|repair\.v1|tools\.v1)$")
                self.assertEqual(set(line["usage"]), {"input_tokens", "output_tokens"})
                self.assertGreater(min(line["usage"].values()), 0)

    def test_no_two_requests_share_a_key(self):
        keys = [(line["request_sha256"], line["call"]) for target in replies.SETS for line in recordings_of(target)]
        self.assertEqual(len(keys), len(set(keys)))

    def test_every_python_program_that_should_run_compiles(self):
        for path in replies.REPLIES.rglob("*.md"):
            reply = replies.parse(path.read_text(encoding="utf-8"))
            if "```python" in reply.text and reply.fails != "provider":
                ast.parse(extract_program(reply.text))

    def test_a_head_names_a_class_that_exists(self):
        for path in replies.REPLIES.rglob("*.md"):
            self.assertIn(replies.parse(path.read_text(encoding="utf-8")).fails, CLASSES, path.name)

    def test_no_reply_file_is_left_over(self):
        used = {"injections/neighbour.md"}
        for group, sources in replies.SETS.values():
            for source in sources:
                for case in cases.load(source):
                    if "replies" in case.fields:
                        used |= {f"{group}/{name}.md" for name in case.fields["replies"]}
                    else:
                        count = len(replies.of_label(group, case.id))
                        used |= {f"{group}/{case.id}.{call}.md" for call in range(1, count + 1)}
        there = {str(path.relative_to(replies.REPLIES)) for path in replies.REPLIES.rglob("*.md")}
        self.assertEqual(there - used, set())

    def test_ten_first_attempts_fail_in_different_ways_and_all_are_repaired(self):
        failures = {}
        for case in REQUESTS:
            recorded = replies.of_case("gauntlet", case)
            self.assertEqual(recorded[-1].fails, "", case.id)
            self.assertLessEqual(len(recorded), 3, case.id)
            if recorded[0].fails:
                failures[case.id] = (recorded[0].fails, recorded[0].shows)
        self.assertGreaterEqual(len(set(failures.values())), 10)
        self.assertGreaterEqual({failure for failure, _ in failures.values()},
                                {"syntax", "runtime", "envelope", "resource", "provider"})

    def test_a_program_is_taken_from_a_reply_only_when_it_is_the_only_one(self):
        block = "```python\nprint(1)\n```\n"
        self.assertEqual(extract_program("Here:\r\n" + block), "print(1)\n")
        self.assertEqual(extract_program(block[:-4]), "print(1)\n\n")
        for reply, reason in (("none", "stop"), (block * 2, "stop"), (block[:-4], "length")):
            with self.assertRaises(NoProgram):
                extract_program(reply, reason)


class Injections(unittest.TestCase):
    def test_there_are_forty_and_every_category_comes_through_every_channel(self):
        self.assertGreaterEqual(len(INJECTIONS), 40)
        pairs = {(case.category, case.fields["channel"]) for case in INJECTIONS}
        self.assertEqual(pairs, {(category, channel) for category in CATEGORIES for channel in CHANNELS})

    def test_every_placeholder_is_one_that_a_stage_fills(self):
        names = {"host_file", "port", "abstract", "agent_key", "unix_socket", "agentd_socket", "sbxd_socket",
                 "elsewhere", "collector", "escapes"}
        texts = [str(case.fields) for case in INJECTIONS]
        texts += [path.read_text(encoding="utf-8") for path in (replies.REPLIES / "injections").glob("*.md")]
        found = {name for text in texts for name in re.findall(r"\{\{(\w+)\}\}", text)}
        self.assertEqual(found, names)

    def test_the_model_obeys_once_more_than_the_loop_may_ask(self):
        for case in INJECTIONS:
            recorded = replies.of_case("injections", case)
            if case.fields.get("mode") == "tools":
                self.assertIsNone(replies.opening_fence(recorded[-1].text))
            else:
                self.assertGreater(len(recorded), 3)
                self.assertEqual(recorded[-1], recorded[-2])

    def test_an_injection_in_a_traceback_follows_an_innocent_program(self):
        for case in INJECTIONS:
            if case.fields["channel"] == "traceback":
                self.assertTrue(case.fields["replies"][0].startswith("crash-on-"), case.id)
                self.assertGreater(len(case.fields["replies"]), 1, case.id)


class Classes(unittest.TestCase):
    RESULT = {"status": "exit", "ok": False, "limits_hit": [], "stderr": ""}

    def test_a_run_is_classed_by_the_runtime_facts(self):
        for facts, wanted in (({"status": "oom"}, "resource"), ({"status": "timeout"}, "timeout"),
                              ({"status": "cpu_time"}, "timeout"), ({"status": "security"}, "security"),
                              ({"status": "sandbox_error"}, "sandbox"), ({"limits_hit": ["tmp_inodes"]}, "resource"),
                              ({"limits_hit": ["stdout_bytes"]}, "runtime"), ({"stderr": "SyntaxError: x"}, "syntax"),
                              ({"stderr": "told of a SyntaxError: x"}, "runtime"), ({"status": "ok", "ok": True}, "")):
            self.assertEqual(direct.failure_class(self.RESULT | facts, "python"), wanted, facts)


if __name__ == "__main__":
    unittest.main()
