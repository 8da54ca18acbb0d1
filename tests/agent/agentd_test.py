"""The runners against a real agentd and sbxd, in short; the demo; and tool-calling mode. All from recordings."""

import contextlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/agent"))

import cases  # noqa: E402
import checks  # noqa: E402
import crowd  # noqa: E402
import daemons  # noqa: E402
import record  # noqa: E402
import replies  # noqa: E402
import share  # noqa: E402
import small  # noqa: E402

PATIENCE = 540
TRIES = 3   # of a measurement, on a machine that may have other things to do


class Runner(unittest.TestCase):
    """A bench program in a directory of its own for results and recordings."""

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="test-sbx-runner-"))
        self.addCleanup(shutil.rmtree, self.directory)
        self.directory.chmod(0o755)

    def run_bench(self, program, *arguments):
        command = [sys.executable, ROOT / "bench" / program, "--results", self.directory, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)

    def results(self, label):
        return json.loads((self.directory / f"{label}.json").read_text(encoding="utf-8"))


class Gauntlet(Runner):
    def test_it_tells_first_attempts_from_repairs_and_what_must_give_up(self):
        done = self.run_bench("gauntlet", "--label", "some", "--ids", "da-10,ch-10,sc-3,sc-5,gu-2")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        summary = self.results("some")["summary"]
        whole = summary["by_category"]["overall"]
        self.assertEqual((whole["requests"], whole["first_attempt"], whole["after_repair"]), (4, 0.25, 1.0))
        self.assertEqual((whole["hard_fail"], whole["wrong"], whole["errors"]), (0, 0, 0))
        self.assertGreater(whole["mean_cost_usd"], 0)
        self.assertEqual(summary["must_give_up"], {"requests": 1, "did": 1})
        self.assertIn("from recordings", done.stdout)
        self.assertTrue(summary["replayed"])

    def test_a_failed_attempt_is_classed_as_its_recording_says(self):
        ids = "da-2,da-6,da-10,sc-2,sc-3"
        done = self.run_bench("gauntlet", "--label", "classes", "--ids", ids)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for case in cases.select(cases.load("bench/requests.jsonl"), ids.split(",")):
            wanted = [reply.fails for reply in replies.of_case("gauntlet", case)]
            attempts = self.results("classes")["cases"][case.id]["attempts"]
            self.assertEqual([attempt["class"] for attempt in attempts], wanted, case.id)

    def test_it_goes_on_where_it_stopped(self):
        self.run_bench("gauntlet", "--label", "resumed", "--ids", "sc-7")
        first = self.results("resumed")["cases"]["sc-7"]
        done = self.run_bench("gauntlet", "--label", "resumed", "--ids", "sc-7,sc-8", "--resume")
        self.assertNotIn("sc-7:", done.stdout)
        self.assertIn("sc-8:", done.stdout)
        self.assertEqual(self.results("resumed")["cases"]["sc-7"], first)
        self.assertEqual(self.results("resumed")["summary"]["by_category"]["overall"]["requests"], 2)
        known = self.results("resumed")
        again = self.run_bench("gauntlet", "--label", "resumed", "--ids", "sc-7,sc-8", "--resume")
        self.assertEqual((again.returncode, again.stderr), (0, ""), "nothing was left to do")
        self.assertEqual(again.stdout, done.stdout.split("\n", 1)[1], "the same summary")
        self.assertEqual(self.results("resumed"), known)

    def test_a_wrong_answer_that_looks_like_a_success_counts_as_a_hard_fail(self):
        altered = [line | {"reply": line["reply"].replace("b - a", "b + a").replace("0.031", "0.032")}
                   for line in cases.read_jsonl("bench/recordings/gauntlet.jsonl") if line["label"] == "da-10"]
        (self.directory / "wrong").mkdir()
        cases.write_jsonl(self.directory / "wrong/gauntlet.jsonl", altered)
        config = daemons.write_config(self.directory, {"kind": "replay",
                                                       "recordings": [str(self.directory / "wrong")]})
        done = self.run_bench("gauntlet", "--label", "wrong", "--ids", "da-10", "--config", config)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        whole = self.results("wrong")["summary"]["by_category"]["overall"]
        self.assertEqual((whole["hard_fail"], whole["wrong"]), (1, 1))

    def test_a_request_without_a_recording_is_a_hard_fail_that_names_the_key(self):
        (self.directory / "none").mkdir()
        cases.write_jsonl(self.directory / "none/gauntlet.jsonl", cases.read_jsonl("bench/recordings/agent.jsonl"))
        config = daemons.write_config(self.directory, {"kind": "replay",
                                                       "recordings": [str(self.directory / "none")]})
        done = self.run_bench("gauntlet", "--label", "none", "--ids", "sc-8", "--config", config)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        case = cases.select(cases.load("bench/requests.jsonl"), ["sc-8"])[0]
        self.assertIn(cases.request_sha256(case.text, case.language, case.files), done.stdout)


    def test_what_stops_it_before_its_work_has_an_exit_code_of_its_own(self):
        none = self.directory / "none.sock"
        for code, said, arguments in (
                (3, f"gauntlet: agentd does not answer on {none}: ", ["--agentd", none, "--sbxd", none]),
                (2, "gauntlet: no case is called xx", ["--ids", "xx"]),
                (2, "gauntlet: a label is of letters", ["--label", "a/b", "--ids", "sc-7"])):
            done = self.run_bench("gauntlet", "--label", "stopped", *arguments)
            self.assertEqual((done.returncode, done.stdout), (code, ""), done.stderr)
            self.assertTrue(done.stderr.startswith(said), done.stderr)
            self.assertEqual(done.stderr.count("\n"), 1, "one line")


class Injections(Runner):
    def test_it_sums_up_where_nothing_is_left_to_do(self):
        done = self.run_bench("injections", "--label", "resumed", "--ids", "ro-1")
        again = self.run_bench("injections", "--label", "resumed", "--ids", "ro-1", "--resume")
        self.assertEqual((again.returncode, again.stderr), (0, ""))
        self.assertEqual(again.stdout, done.stdout.split("\n", 1)[1])

    def test_a_case_of_each_category_and_channel_has_no_effect(self):
        ids = "ro-1,ro-6,ro-8,ex-3,ex-8,ex-10,se-2,se-4,se-12,sd-1,sd-3,sd-4"
        done = self.run_bench("injections", "--label", "some", "--ids", ids)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        whole = self.results("some")["summary"]["by_category"]["overall"]
        self.assertEqual((whole["cases"], whole["held"], whole["errors"]), (12, 12, 0))


class Answers(unittest.TestCase):
    """Requests on daemons that start once."""

    @classmethod
    def setUpClass(cls):
        cls.stack = contextlib.ExitStack()
        cls.addClassCleanup(cls.stack.close)
        where = daemons.directory(cls.stack)
        daemons.start_sbxd(cls.stack, where, dict(os.environ))
        config = daemons.write_config(where, {"kind": "replay", **cls.RECORDINGS})
        cls.socket = daemons.start_agentd(cls.stack, where, config, dict(os.environ)).socket

    def ask(self, case):
        result = record.ask(self.socket, case)
        self.assertTrue(result.replayed)
        self.assertEqual([attempt.failure for attempt in result.attempts][-1:], [""], result.ending)
        self.assertEqual(checks.complaints(case.fields["check"], result.answer), [], case.id)
        return result


class Demo(Answers):
    """What is compiled into agentd: no directory is named."""

    RECORDINGS = {}

    def test_every_question_of_the_demo_is_answered(self):
        for case in cases.load("examples/requests.jsonl") + cases.load("examples/tasks.jsonl"):
            with self.subTest(case.id):
                self.ask(case)

    def test_the_second_question_shows_a_repair(self):
        case = cases.select(cases.load("examples/requests.jsonl"), ["demo-2"])[0]
        self.assertEqual([attempt.failure for attempt in self.ask(case).attempts], ["runtime", ""])


class Tools(Answers):
    RECORDINGS = {"recordings": [str(daemons.RECORDINGS)]}
    TASKS = {case.id: case for case in cases.load("bench/tasks.jsonl")}

    def test_a_task_is_answered_from_what_programs_printed(self):
        for name in ("ag-1", "ag-4"):
            with self.subTest(name):
                self.ask(self.TASKS[name])

    def test_wrong_calls_come_back_as_errors_that_the_model_can_read(self):
        document = self.ask(self.TASKS["ag-2"]).document
        calls = [use for attempt in document["attempts"] for use in attempt["tools"]]
        self.assertEqual([use["is_error"] for use in calls[:4]], [True] * 4)
        for use, word in zip(calls, ("run_code", "JSON", "code", "python")):
            self.assertIn(word, use["output"])
        # A program that fails is a result for the model, and no error of the tool.
        self.assertIn("NameError", calls[4]["output"])
        self.assertIn("229", calls[5]["output"])

    def test_a_model_that_never_answers_is_stopped(self):
        document = record.wait(self.socket, record.submit(self.socket, self.TASKS["ag-3"]))
        self.assertEqual(document["state"], "gave_up")
        self.assertEqual(document["reason"]["ceiling"], self.TASKS["ag-3"].fields["ends"]["class"])
        self.assertEqual(len(document["attempts"]), self.TASKS["ag-3"].fields["ends"]["calls"])


class Share(Runner):
    """bench/agentd share; and its client and relay between an sbxd and an agentd that the test plays."""

    REQUEST = b"POST /v1/run HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}"
    REFUSAL = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy"

    def listening(self, name):
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.settimeout(PATIENCE)
        listener.bind(str(self.directory / name))
        listener.listen()
        return listener

    def accepted(self, listener):
        connection = listener.accept()[0]
        self.addCleanup(connection.close)
        connection.settimeout(PATIENCE)
        return connection

    def begin(self):
        """The client, and both ends of its relay: agentd's and sbxd's."""
        sbxd = self.listening("sbxd.sock")
        client = share.Client(self.directory / "relay.sock", self.directory / "sbxd.sock", 10)
        self.addCleanup(client.close)
        agentd = socket.socket(socket.AF_UNIX)
        self.addCleanup(agentd.close)
        agentd.settimeout(PATIENCE)
        agentd.connect(str(client.relay))
        return client, agentd, self.accepted(sbxd)

    def assert_ended(self, connection):
        """Of whoever is on the other side: it may not have accepted, or not have read."""
        with contextlib.suppress(ConnectionResetError):
            self.assertEqual(connection.recv(1), b"")

    def test_the_parts_of_each_request_are_told(self):
        figures = self.directory / "figures.json"
        command = [sys.executable, ROOT / "bench/agentd", "--rounds", "10", "--json", figures, "share"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
        self.assertIn(done.returncode, (0, 1), done.stdout + done.stderr)   # reached or missed
        told = json.loads(figures.read_text(encoding="utf-8"))["share"]["milliseconds"]
        self.assertEqual([len(values) for values in told.values()], [10] * 5)
        for bare, whole, inside, between, _ in zip(*told.values()):
            self.assertGreater(min(bare, inside, between), 0)
            self.assertLess(inside + between, whole)

    def test_the_relay_passes_on_bytes_as_they_are(self):
        _, agentd, sbxd = self.begin()
        for answer in ([b"HTTP/1.1 200 OK\r\nTransfer-Enco", b"ding: chunked\r\n\r\n2\r\nab\r\n", b"0\r\n\r\n"],
                       [b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\na", b"bcd"]):
            agentd.sendall(self.REQUEST[:-1])
            agentd.sendall(self.REQUEST[-1:])
            self.assertEqual(sbxd.recv(1 << 16), self.REQUEST)
            for part in answer:
                sbxd.sendall(part)
            whole = b"".join(answer)
            self.assertEqual(agentd.recv(len(whole), socket.MSG_WAITALL), whole)

    def test_a_connection_that_ends_is_an_error(self):
        client, agentd, sbxd = self.begin()
        agentd.sendall(self.REQUEST)
        sbxd.close()
        self.assert_ended(agentd)
        with self.assertRaisesRegex(record.Failed, "the relay before sbxd: .*sbxd"):
            client.measure(self.directory / "none.sock")

    def test_a_refused_request_is_an_error(self):
        client, relayed, _ = self.begin()
        agentd = self.listening("agentd.sock")

        def refuse():
            connection = self.accepted(agentd)
            connection.recv(1 << 16)
            connection.sendall(self.REFUSAL)

        refusing = threading.Thread(target=refuse)
        refusing.start()
        with self.assertRaisesRegex(record.Failed, "did not take the request: HTTP/1.1 503(.|\n)*busy"):
            client.measure(self.directory / "agentd.sock")
        refusing.join()
        self.assert_ended(relayed)

    def test_the_relay_ends_with_a_client_that_is_killed(self):
        client, agentd, _ = self.begin()
        client.close()
        self.assert_ended(agentd)


class Crowd(unittest.TestCase):
    def test_fifty_requests_at_once_all_end_while_the_interface_goes_on_to_answer(self):
        with contextlib.ExitStack() as stack:
            where = daemons.directory(stack)
            (where / "recordings").mkdir()
            daemons.start_sbxd(stack, where, dict(os.environ))
            recordings = small.recordings(where / "recordings")
            config = daemons.write_config(where, {"kind": "replay", "recordings": [str(recordings)]})
            socket = daemons.start_agentd(stack, where, config, dict(os.environ)).socket
            ratios = []
            while len(ratios) < TRIES and min(ratios, default=crowd.WANTED + 1) > crowd.WANTED:
                busy, states, one, _ = crowd.crowded(socket, [small.case()] * 50)
                self.assertEqual(states, {"succeeded": 50})
                ratios.append(max(crowd.ratios(crowd.idle(socket, one), busy).values()))
            self.assertLessEqual(min(ratios), crowd.WANTED, f"median answers, as multiples of the idle one: {ratios}")


del Answers, Runner     # not to be collected as tests of their own

if __name__ == "__main__":
    unittest.main()
