"""Arguments that cannot be meant: each is named, and nothing was sent."""

import io
import math
import pathlib
import unittest

from sbx import Client, SandboxLimits, Session, run_code, stream_code
from sbx.agent import AgentClient, Budget, run_agent, run_request

from .fake import FakeDaemon, answer, result
from .test_session import DELETED, MADE

NOWHERE = "/nowhere/sbxd.sock"  # who sends something gets Unavailable


class Arguments(unittest.TestCase):
    def refused(self, kind, name, call, *args, **options):
        with self.assertRaises(kind) as raised:
            call(*args, **options)
        self.assertTrue(str(raised.exception).startswith(name), raised.exception)

    def test_of_a_run_that_are_of_another_type(self):
        for name, value in (
                ("code", b"print()"), ("code", 3), ("code", None), ("language", None),
                ("stdin", b"in"),
                ("args", "one"), ("args", [1]), ("env", ["A=1"]), ("env", {"A": 1}),
                ("files", [b""]), ("files", {"a": "text"}), ("profile", 3), ("collect", True),
                ("limits", {"memory": 1}), ("timeout_seconds", "5"), ("timeout_seconds", True),
                ("timeout_seconds", None)):
            for call in (run_code, stream_code):
                self.refused(TypeError, name, call, **{"code": "x", "socket": NOWHERE, name: value})
        self.refused(TypeError, "env['A']", run_code, "", env={"A": b"1"}, socket=NOWHERE)
        self.refused(TypeError, "args[1]", run_code, "", args=["a", b"b"], socket=NOWHERE)
        self.refused(TypeError, "a name in files", run_code, "", files={3: b""}, socket=NOWHERE)

    def test_of_a_run_that_are_no_values(self):
        for name, value in (
                ("timeout_seconds", math.nan), ("timeout_seconds", math.inf),
                ("timeout_seconds", -1), ("timeout_seconds", 0), ("code", "\udc80"),
                ("timeout_seconds", 10**400), ("timeout_seconds", 10**5000),
                ("stdin", "a\udfff"), ("args", ["\ud800"])):
            self.refused(ValueError, name, run_code,
                         **{"code": "x", "socket": NOWHERE, name: value})
        self.refused(ValueError, "a name in files", run_code, "", files={"\udcff": b""},
                     socket=NOWHERE)

    def test_that_a_client_does_not_know(self):
        with self.assertRaisesRegex(TypeError, "stdn"):
            Client(NOWHERE).run("x", stdn="in")

    def test_a_program_is_code_or_argv(self):
        client = Client(NOWHERE)
        for given in ({}, {"argv": []}, {"code": "x", "argv": ["ls"]}):
            self.refused(TypeError, "give code", client.run, **given)
        self.refused(TypeError, "argv", client.run, argv="ls")

    def test_of_limits(self):
        for name, value in (("memory", 1.5), ("memory", b"1M"), ("pids", "3"), ("pids", True),
                            ("cpus", "1"), ("output_kills", 1), ("network", False)):
            self.refused(TypeError, name, SandboxLimits, **{name: value})
        for name, value in (("memory", -1), ("pids", -3), ("cpus", math.nan),
                            ("cpu_seconds", math.inf), ("wall_seconds", -0.5),
                            ("cpus", 10**400), ("pids", 10**5000), ("memory", 10**400)):
            self.refused(ValueError, name, SandboxLimits, **{name: value})
        SandboxLimits(memory="64m", pids=3, cpus=1, cpu_seconds=0.5, output_kills=False, files=0)

    def test_of_a_client(self):
        for timeout in (math.nan, math.inf, -1, 0):
            self.refused(ValueError, "timeout", Client, NOWHERE, timeout)
            self.refused(ValueError, "timeout", AgentClient, NOWHERE, timeout)
        self.refused(TypeError, "timeout", Client, NOWHERE, "5")
        self.refused(TypeError, "socket", Client, 3)
        self.refused(TypeError, "run_id", Client(NOWHERE).cancel, 3)
        self.refused(ValueError, "run_id", Client(NOWHERE).cancel, "")

    def test_a_socket_may_be_a_path(self):
        with FakeDaemon(answer(result())) as daemon:
            self.assertTrue(run_code("", socket=pathlib.Path(daemon.path)).ok)

    def test_of_a_session(self):
        self.refused(TypeError, "limits", Session, {"work": 1}, socket=NOWHERE)
        self.refused(TypeError, "idle_seconds", Session, idle_seconds=1.5, socket=NOWHERE)
        self.refused(ValueError, "age_seconds", Session, age_seconds=-1, socket=NOWHERE)
        self.refused(TypeError, "session_id", Session.attach, 3, socket=NOWHERE)

    def test_of_a_sessions_calls(self):
        with FakeDaemon(MADE, DELETED) as daemon:
            session = Session(socket=daemon.path)
            self.refused(TypeError, "wait", session.run, "x", wait=1)
            for call in (session.get, session.open, session.delete,
                         lambda path: session.put(path, b"")):
                self.refused(TypeError, "path", call, b"bytes")
                self.refused(ValueError, "path", call, "")
                self.refused(ValueError, "path", call, "a\0b")
                self.refused(ValueError, "path", call, "\ud800")
            for source in ("text", 3, io.StringIO("text"), None):
                self.refused(TypeError, "source", session.put, "a", source)
            for target in ("path", io.StringIO(), None):
                self.refused(TypeError, "target", session.get_to, "a", target)
            self.assertEqual(len(daemon.requests), 1, "the session's own")

    def test_a_piece_that_is_no_bytes_ends_an_upload(self):
        with FakeDaemon(MADE, DELETED, read_bodies=False) as daemon:
            session = Session(socket=daemon.path)
            self.refused(TypeError, "a piece of source", session.put, "a", iter([b"a", "b"]))

    def test_of_a_request_to_agentd(self):
        for name, value in (("text", b"x"), ("language", 3), ("budget", {"tokens": 1}),
                            ("label", 3), ("files", {"a": "text"})):
            self.refused(TypeError, name, run_request,
                         **{"text": "x", "socket": NOWHERE, name: value})
        self.refused(TypeError, "max_iterations", run_agent, "x", 1.5, socket=NOWHERE)
        self.refused(ValueError, "cost_usd", Budget, cost_usd=math.nan)
        self.refused(ValueError, "tokens", Budget, tokens=-1)
        self.refused(TypeError, "attempts", Budget, attempts="3")
        self.refused(TypeError, "request_id", AgentClient(NOWHERE).show, 3)


if __name__ == "__main__":
    unittest.main()
