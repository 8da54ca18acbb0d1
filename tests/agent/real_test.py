"""agentd with a real sbxd: programs that a played model writes run in the sandbox, and end with it."""

import base64
import contextlib
import os
import pathlib
import signal
import sys
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "bench/agent")]

import daemons  # noqa: E402
from stand import Stand, calls, main, program, until  # noqa: E402
from unix_http import call_json  # noqa: E402

MARK = "agentd-test-marker-4711"
SLEEPS = f"import os, subprocess, sys\nsubprocess.Popen(['sleep', '4711'])\nos.execvp('sleep', ['{MARK}', '4712'])"
CSV = b"\xef\xbb\xbfname,price\na,\"1,200\"\nb,\nc,300\n"
SUM = """import json
import pandas
table = pandas.read_csv("/input/houses.csv", thousands=",")
table.to_csv("/output/clean.csv", index=False)
print(json.dumps({"type": "table", "data": {"columns": ["n", "sum"],
                  "rows": [[len(table), float(table.price.sum())]]}, "note": "one price is missing"}))"""
PLOT = """import json
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
plt.plot([1, 2, 3])
plt.savefig("/output/plot.png")
print(json.dumps({"type": "chart", "data": {"y": [1, 2, 3]}, "artifact_path": "/output/plot.png"}))"""


def sleeping():
    """Processes of the host that the program with the mark has left."""
    found = []
    for each in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            words = (each / "cmdline").read_bytes().split(b"\0") if each.name.isdigit() else []
            if words[1:2] in ([b"4711"], [b"4712"]):
                found.append(each.name)
    return found


class Real(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.stand = Stand(cls, more="[budget]\nrun_seconds = 20\n", with_box=False)
        cls.start_sbxd()
        cls.agent, cls.model = cls.stand.agent, cls.stand.model
        cls.agent.start()

    @classmethod
    def start_sbxd(cls):
        stack = contextlib.ExitStack()
        cls.addClassCleanup(stack.close)
        environment = dict(os.environ)
        where = cls.stand.where
        with contextlib.suppress(FileNotFoundError):
            (where / "sbxd.sock").unlink()
        if (where / "config").exists():
            (where / "config").rename(where / f"config-{len(list(where.iterdir()))}")
        cls.sbxd = daemons.start_sbxd(stack, where, environment)

    def ask(self, *replies, **fields):
        asked = len(self.model.asked)
        self.model.reply = lambda n, request: replies[min(n - asked, len(replies)) - 1]
        record = self.agent.ask(**fields)
        return record, len(self.model.asked) - asked

    def classes(self, record):
        return [attempt["class"] for attempt in record["attempts"]]

    def test_a_table_of_an_attached_file(self):
        files = [{"name": "houses.csv", "content_base64": base64.b64encode(CSV).decode()}]
        record, _ = self.ask(program(SUM), files=files)
        self.assertEqual(record["state"], "succeeded", record)
        self.assertEqual(record["result"]["data"], {"columns": ["n", "sum"], "rows": [[3, 1500.0]]})
        answer = self.agent.call("GET", f"/v1/requests/{record['id']}/artifacts/clean.csv")
        self.assertEqual(answer.content.decode().splitlines()[:2], ["name,price", "a,1200.0"])
        self.assertGreater(record["budget"]["sandbox_seconds"]["used"], 0)

    def test_a_chart_is_a_picture(self):
        record, _ = self.ask(program(PLOT))
        self.assertEqual(record["state"], "succeeded", record)
        answer = self.agent.call("GET", f"/v1/requests/{record['id']}/artifacts/plot.png")
        self.assertTrue(answer.content.startswith(b"\x89PNG\r\n\x1a\n"))
        self.assertEqual(answer.headers["Content-Type"], "image/png")
        shown = self.agent.agentctl("show", record["id"], "--image", "sixel", cwd=self.stand.where)
        self.assertTrue(shown.stdout.startswith(b"\x1bPq"), shown.stdout[:50])

    def test_javascript_runs(self):
        code = "console.log(JSON.stringify({type: 'text', data: `${[1, 2, 3].reduce((a, b) => a + b)}`}))"
        record, _ = self.ask(program(code, "javascript"), language="javascript")
        self.assertEqual((record["state"], record["result"]["data"]), ("succeeded", "6"), record)

    def test_each_failure_has_its_class_and_its_repair(self):
        good = program("print('{\"type\": \"text\", \"data\": \"ok\"}')")
        for code, failure, words in (
                ("print(", "syntax", "SyntaxError"), ("{}['price']", "runtime", "KeyError: 'price'"),
                ("print('hello')", "envelope", "JSON"),
                ("print('{\"type\": \"file\", \"artifact_path\": \"/output/none\"}')", "envelope", "/output/none"),
                ("x = bytearray(2 << 30)", "resource", "memory")):
            with self.subTest(failure=failure, code=code):
                record, _ = self.ask(program(code), good)
                self.assertEqual((record["state"], self.classes(record)), ("succeeded", [failure, None]), record)
                self.assertIn(words, self.model.asked[-1]["messages"][-1]["content"])

    def test_running_out_of_memory_again_is_the_end(self):
        record, asked = self.ask(program("x = bytearray(2 << 30)"))
        self.assertEqual((record["state"], record["reason"]["code"]), ("gave_up", "resource"), record["reason"])
        self.assertEqual((self.classes(record), asked), (["resource", "resource"], 2))

    def test_a_program_without_an_end_is_not_repaired(self):
        record, asked = self.ask(program("while True: pass"), budget={"sandbox_seconds": 3})
        self.assertEqual((record["state"], record["reason"]["ceiling"], asked), ("gave_up", "sandbox_seconds", 1))
        record, asked = self.ask(program("while True: pass"))
        self.assertEqual((record["state"], record["reason"]["code"], asked), ("gave_up", "timeout", 1))

    def test_a_hostile_call_is_not_repaired(self):
        record, asked = self.ask(program(
            "import ctypes\nctypes.CDLL('libc.so.6').mount(b'tmpfs', b'/tmp', b'tmpfs', 0, b'')"))
        self.assertEqual((record["state"], record["reason"]["code"], asked), ("gave_up", "security", 1),
                         record["attempts"])

    def test_tools_see_what_programs_really_printed(self):
        record, _ = self.ask(calls({"language": "bash", "code": "echo $((6 * 7)); ls /input"},
                                   {"language": "python", "code": "import none_such"}),
                             {"text": "It is 42."}, path="/v1/agent",
                             files=[{"name": "a b.txt", "content_base64": "eA=="}])
        uses = record["attempts"][0]["tools"]
        self.assertEqual([use["is_error"] for use in uses], [False, True])
        self.assertIn("42\na b.txt", uses[0]["output"])
        self.assertIn("No module named 'none_such'", uses[1]["output"])

    def test_cancelling_kills_every_process_of_the_run(self):
        self.assertEqual(sleeping(), [])
        self.model.reply = lambda n, request: program(SLEEPS)
        request = self.agent.submit()
        until(lambda: len(sleeping()) == 2, "the program and its child sleep")
        self.assertEqual(self.agent.call("DELETE", f"/v1/requests/{request}").status, 202)
        self.assertEqual(self.agent.wait(request)["state"], "cancelled")
        until(lambda: not sleeping(), "every process of the run is gone")

    def test_a_sandbox_that_is_killed_is_an_error_of_ours_and_may_come_back(self):
        self.model.reply = lambda n, request: program(SLEEPS)
        request = self.agent.submit()
        until(lambda: len(sleeping()) == 2, "the program runs")
        os.kill(self.sbxd.pid, signal.SIGKILL)
        record = self.agent.wait(request)
        self.assertEqual((record["state"], record["reason"]["code"]), ("failed", "sandbox"), record["reason"])
        until(lambda: not sleeping(), "nothing outlives it")
        self.start_sbxd()
        record, _ = self.ask(program("print('{\"type\": \"text\", \"data\": \"back\"}')"))
        self.assertEqual(record["state"], "succeeded", record["reason"])
        self.assertEqual(call_json(str(self.stand.where / "sbxd.sock"), "GET", "/healthz")["status"], "ok")


if __name__ == "__main__":
    main()
