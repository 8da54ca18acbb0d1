"""A daemon that is stopped or hangs is left by and by, whatever is asked of it."""

import contextlib
import io
import os
import socket
import tempfile
import threading
import time
import unittest
from unittest import mock

import sbx._limits as limits
from sbx import Client, SandboxLimits, Session, Unavailable, run_code, stream_code
from sbx._daemon import SBXD
from sbx._transport import Transport
from sbx.agent import AgentClient, run_request, stream_request

from .fake import FakeDaemon, answer, result
from .test_run import OUTPUT, STARTED, lines
from .test_session import MADE

LONG = 3000.0  # far more than a test waits
SHORT = 0.05


class Silent(FakeDaemon):
    """Says its last answer without an end, and then nothing more."""

    def _serve_one(self, connection):
        if len(self._answers) > 1:
            super()._serve_one(connection)
            return
        connection.sendall(self._answers[0])
        while connection.recv(65536):  # until the client leaves
            pass


HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\nSbx-Run-Id: r1\r\n\r\n"


@contextlib.contextmanager
def times(patience=LONG, queue=LONG, margin=LONG, longest=LONG, events=LONG):
    """Each of the times that are waited, so that a test says which one is used."""
    with mock.patch("sbx._transport.PATIENCE", patience), \
            mock.patch.dict("sbx._transport.Transport.request.__kwdefaults__",
                            {"patience": patience}), \
            mock.patch("sbx._limits.QUEUE_SECONDS", queue), \
            mock.patch("sbx._limits.MARGIN_SECONDS", margin), \
            mock.patch("sbx._session.MARGIN_SECONDS", margin), \
            mock.patch("sbx._limits.LONGEST_RUN", longest), \
            mock.patch("sbx.agent.EVENT_PATIENCE", events):
        yield


class Patience(unittest.TestCase):
    def left(self, daemon_name, call, *args, **options):
        with self.assertRaises(Unavailable) as raised:
            call(*args, **options)
        self.assertEqual(raised.exception.code, "timeout")
        self.assertRegex(str(raised.exception), rf"^{daemon_name} was silent for [0-9.]+ s \(fix: see whether")

    def test_of_calls_without_a_run(self):
        with Silent(b"") as daemon, times(patience=SHORT):
            client = Client(daemon.path)
            self.left("sbxd", client.info)
            self.left("sbxd", client.cancel, "r1")
            self.left("sbxd", Session, socket=daemon.path)
            agent = AgentClient(daemon.path)
            for call in (agent.info, lambda: agent.show("rq"), lambda: agent.cancel("rq"),
                         lambda: list(agent.history()),
                         lambda: run_request("x", socket=daemon.path),
                         lambda: stream_request("x", socket=daemon.path)):
                self.left("agentd", call)
        with Silent(HEAD) as daemon, times(patience=SHORT):
            self.left("sbxd", Client(daemon.path).info)

    def test_of_a_run_that_does_not_start(self):
        with Silent(b"") as daemon, times(queue=SHORT, margin=0):
            self.left("sbxd", run_code, "x", socket=daemon.path)
            self.left("sbxd", stream_code, "x", socket=daemon.path)
            self.left("sbxd", run_code, "x", timeout_seconds=2000, socket=daemon.path)

    def test_of_a_run_that_does_not_end(self):
        for said in (HEAD, HEAD + lines(OUTPUT)):
            with Silent(said) as daemon, times(margin=SHORT):
                for given in ({"timeout_seconds": SHORT}, {"limits": SandboxLimits(wall_seconds=0)}):
                    self.left("sbxd", run_code, "x", socket=daemon.path, **given)
                    stream = stream_code("x", socket=daemon.path, **given)
                    self.left("sbxd", list, stream)
        with Silent(HEAD) as daemon, times(margin=0, longest=SHORT):
            self.left("sbxd", run_code, "x", profile="large", socket=daemon.path)

    def test_between_events_is_as_long_as_the_run_may_take(self):
        started = lines({**STARTED, "limits": {"wall_seconds": SHORT}})
        with Silent(HEAD + started) as daemon, times(margin=0):
            with stream_code("x", profile="large", socket=daemon.path) as stream:
                self.left("sbxd", list, stream)
        with Silent(HEAD) as daemon, times(events=SHORT):
            self.left("agentd", lambda: list(AgentClient(daemon.path).follow("rq")))

    def test_of_a_sessions_calls(self):
        for call in (lambda it: it.run("x"), lambda it: it.stream("x"),
                     lambda it: it.put("a", b"x"), lambda it: it.close(), lambda it: it.get("a")):
            with Silent(MADE, b"") as daemon:
                session = Session(socket=daemon.path)
                with times(SHORT, SHORT, 0.1, SHORT):
                    self.left("sbxd", call, session)

    def test_of_an_upload_that_nobody_reads(self):
        class Stopped(FakeDaemon):
            def _serve_one(self, connection):
                if not self.requests:
                    return super()._serve_one(connection)
                left.wait(60)

        left = threading.Event()
        with Stopped(MADE) as daemon:
            session = Session(socket=daemon.path)
            with times(margin=SHORT):
                self.left("sbxd", session.put, "a", bytes(32 << 20))
            left.set()

    def test_of_a_body_of_each_type_that_nobody_reads(self):
        size = 32 << 20
        with tempfile.TemporaryDirectory() as directory, socket.socket(socket.AF_UNIX) as listener:
            path = os.path.join(directory, "s")
            listener.bind(path)
            listener.listen(16)
            for body in (bytes(size), bytearray(size), memoryview(bytes(size)),
                         iter([bytearray(size)]), io.BytesIO(bytes(size))):
                transport = Transport(SBXD, path, timeout=SHORT)
                self.left("sbxd", transport.request, "PUT", "/x", body,
                          {"Content-Length": str(size)})

    def test_is_what_the_caller_says(self):
        with Silent(b"") as daemon, times():
            for call in (run_code, stream_code):
                self.left("sbxd", call, "x", timeout=SHORT, socket=daemon.path)
            self.left("sbxd", Session, timeout=SHORT, socket=daemon.path)
            self.left("sbxd", Session.attach, "s", timeout=SHORT, socket=daemon.path)
            self.left("agentd", run_request, "x", timeout=SHORT, socket=daemon.path)
        with Silent(HEAD) as daemon, times():
            self.left("sbxd", run_code, "x", timeout=SHORT, socket=daemon.path)
        with FakeDaemon(answer(result())) as daemon:
            self.assertTrue(run_code("x", timeout=1e300, socket=daemon.path).ok)

    def test_is_enough_for_a_turn_and_a_run(self):
        self.assertEqual(limits.until_start({}), 120)
        self.assertEqual(limits.until_start({"wait": True}), 180)
        self.assertEqual(limits.until_end({}), 90)
        self.assertEqual(limits.until_end({"profile": "large"}), 3660)
        self.assertEqual(limits.until_end({"profile": "large", "limits": {"wall_seconds": 5}}), 65)

    def test_of_a_socket_whose_queue_is_full(self):
        with tempfile.TemporaryDirectory() as directory, contextlib.ExitStack() as stack:
            path = os.path.join(directory, "s")
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(path)
            listener.listen(0)
            waiting = stack.enter_context(socket.socket(socket.AF_UNIX))
            waiting.connect(path)
            with times(patience=SHORT):
                self.left("sbxd", Client(path).info)

            def serve():
                with listener.accept()[0]:
                    pass
                with listener.accept()[0] as connection:
                    connection.recv(65536)
                    connection.sendall(answer({"version": "1"}))

            tried = threading.Event()
            real = time.sleep
            with mock.patch("sbx._transport.time.sleep", lambda s: (tried.set(), real(s))):
                server = threading.Thread(target=lambda: tried.wait(60) and serve())
                server.start()
                self.assertEqual(Client(path).info(), {"version": "1"})
                server.join()

    def test_errors_of_what_is_uploaded_are_not_the_daemons(self):
        def pieces(error):
            yield b"a piece"
            raise error

        for error in (BrokenPipeError(), ConnectionResetError(), socket.timeout()):
            with FakeDaemon(MADE, b"", read_bodies=False) as daemon:
                with self.assertRaises(type(error)) as raised:
                    Session(socket=daemon.path).put("a", pieces(error))
                self.assertIs(raised.exception, error)


if __name__ == "__main__":
    unittest.main()
