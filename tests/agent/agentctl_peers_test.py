"""agentctl where something else, or nothing more, answers on agentd's socket."""

import pathlib
import signal
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from stand import PATIENCE, PROGRAMS, Handler, Server, UnixServer, directory, main, until  # noqa: E402


class OtherAgentd(Server):
    """Something on agentd's socket that speaks its interface in a way of its own."""

    INFO = b'{"provider": {"kind": "other"}, "sandbox": {}}'

    def __init__(self, path, record, end=True, info=INFO, lost=0):
        """`lost`: how often the record is not given."""
        left = [None] * lost

        class Playing(Handler):
            def do_GET(self):       # noqa: N802
                if self.path.endswith("/events"):
                    kind = "end" if end else "state"
                    self.answer(200, f'id: 1\nevent: {kind}\ndata: {{"text": "Working…"}}\n\n'.encode(),
                                "text/event-stream")
                elif self.path != "/v1/info" and left:
                    left.pop()
                    self.answer(503, b'{"detail": "not now"}', "application/problem+json")
                else:
                    self.answer(200, info if self.path == "/v1/info" else record)

            def do_POST(self):      # noqa: N802
                self.body()
                self.answer(202, b'{"id": "rq_1"}')

        super().__init__(UnixServer(str(path), Playing))


class Other(unittest.TestCase):
    def ask(self, record, **changes):
        where = directory(self)
        server = OtherAgentd(where / "agentd.sock", record, **changes)
        self.addCleanup(server.close)
        return subprocess.run([PROGRAMS / "agentctl", "--socket", where / "agentd.sock", "ask", "q"],
                              capture_output=True, timeout=PATIENCE, check=False, cwd=where)

    def test_answers_of_other_shapes_are_drawn_or_said_and_never_end_it(self):
        for record, code in ((b"{}", 1), (b"[]", 1), (b"7", 1), (b"<html>", 3), (b"", 3),
                             (b'{"state": "succeeded", "result": {"type": "table", "data": {"columns": ["a"], '
                              b'"rows": [7, {"k": 1}, "x"]}}, "attempts": {"n": 1}, "artifacts": 7}', 0)):
            done = self.ask(record)
            self.assertEqual(done.returncode, code, (record, done))

    def test_what_is_not_agentd_is_told_as_that(self):
        for info, who in ((b"{}", b"is not agentd\n"),
                          (b'{"version": "1", "profiles": [], "admission": {}}', b"is sbxd, and not agentd\n")):
            done = self.ask(b"{}", info=info)
            self.assertEqual((done.returncode, done.stdout), (3, b""), done)
            self.assertIn(who, done.stderr)
            self.assertIn(b"fix: name agentd's socket with --socket", done.stderr)

    def test_a_stream_that_ends_without_its_last_event_is_no_result(self):
        done = self.ask(b'{"state": "execute"}', end=False)
        self.assertEqual((done.returncode, done.stdout), (3, b""), done.stderr)
        self.assertIn(b"before the last one", done.stderr)
        self.assertIn(b"agentctl show rq_1", done.stderr)

    def test_a_record_that_is_not_given_at_once_is_asked_for_again_and_the_id_is_not_lost(self):
        record = b'{"state": "succeeded", "result": {"type": "text", "data": "It is 42."}}'
        done = self.ask(record, lost=1)
        self.assertEqual((done.returncode, done.stdout), (0, b"It is 42.\n"), done.stderr)
        done = self.ask(record, lost=2)
        self.assertEqual((done.returncode, done.stdout), (3, b""), done.stderr)
        self.assertTrue(done.stderr.endswith(b"agentctl: not now\nagentctl: fix: agentctl show rq_1 shows what became of "
                                             b"it\n"), done.stderr)


class Hanging(unittest.TestCase):
    """An agentd that answers to nothing any more from some call on."""

    def setUp(self):
        self.asked, self.hold = [], threading.Event()
        test = self

        class Playing(Handler):
            def play(self, call, answer):
                test.asked.append(call)
                if call == test.hangs_at:
                    self.gone(test.hold)
                else:
                    answer()

            def do_GET(self):       # noqa: N802
                kind = "events" if self.path.endswith("/events") else "info"
                self.play(kind, lambda: self.answer(200, OtherAgentd.INFO))

            def do_POST(self):      # noqa: N802
                self.body()
                self.play("submit", lambda: self.answer(202, b'{"id": "rq_1"}'))

            def do_DELETE(self):    # noqa: N802
                test.asked.append("cancel")
                self.gone(test.hold)

        self.socket = directory(self) / "agentd.sock"
        server = Server(UnixServer(str(self.socket), Playing))
        self.addCleanup(server.close)
        self.addCleanup(self.hold.set)

    def start(self, hangs_at, *words):
        self.hangs_at = hangs_at
        process = subprocess.Popen([PROGRAMS / "agentctl", "--socket", self.socket, *words],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.kill)
        until(lambda: hangs_at in self.asked, "it hangs")
        return process

    def test_the_first_signal_leaves_where_nothing_was_taken_yet(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            self.asked.clear()
            process = self.start("info", "ask", "q")
            process.send_signal(number)
            process.communicate(timeout=30)
            self.assertEqual(process.returncode, -number)

    def test_who_leaves_in_the_middle_is_told_that_it_may_have_been_taken(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            self.asked.clear()
            process = self.start("submit", "ask", "q")
            process.send_signal(number)
            _, said = process.communicate(timeout=30)
            self.assertEqual(process.returncode, 3, said)
            self.assertIn(b"the request may have been taken", said)
            self.assertIn(b"fix: agentctl history", said)

    def test_the_second_signal_leaves_and_so_does_a_cancellation_without_an_answer(self):
        for again in (True, False):
            self.asked.clear()
            process = self.start("events", "ask", "q")
            process.send_signal(signal.SIGINT)
            until(lambda: "cancel" in self.asked, "the request is cancelled")
            if again:
                process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=30)
            self.assertEqual(process.returncode, 3, said)
            self.assertIn(b"agentctl show rq_1", said)

    def test_doctor_says_it_soon_with_a_fix(self):
        process = self.start("info", "doctor")
        out, _ = process.communicate(timeout=30)
        self.assertEqual(process.returncode, 3, out)
        self.assertIn(b"FAIL  agentd", out)
        self.assertIn(b"fix: see whether agentd is stopped", out)


if __name__ == "__main__":
    main()
