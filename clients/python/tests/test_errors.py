"""Every way in which there is no result, and that its error names the fix."""

import dataclasses
import grp
import os
import socket
import tempfile
import unittest
from unittest import mock

import sbx
from sbx import Client, Failed, Refused, SandboxError, Unavailable, run_code

from .fake import FakeDaemon, ResettingDaemon, answer, problem, result


def error_of(said, **options):
    """What run_code raises when the daemon says this."""
    with FakeDaemon(said, **options) as daemon:
        try:
            run_code("x" * 10, socket=daemon.path)
        except SandboxError as error:
            return error
    raise AssertionError("nothing was raised")


class Problems(unittest.TestCase):
    def test_4xx_is_refused_with_field_and_what_is_allowed(self):
        error = error_of(problem(400, "unknown_field", detail="There is no such field.",
                                 field="limits.memroy", allowed=["memory", "pids"], fix="look"))
        self.assertIsInstance(error, Refused)
        self.assertEqual((error.code, error.status, error.field), ("unknown_field", 400, "limits.memroy"))
        self.assertEqual(error.allowed, ("memory", "pids"))
        self.assertEqual(str(error), "limits.memroy: There is no such field. Allowed: memory, pids. "
                                     "(fix: look)")
        self.assertEqual(error.problem["title"], "T")

    def test_429_and_503_are_unavailable_with_the_time_to_wait(self):
        for status in (429, 503):
            error = error_of(problem(status, "busy", "Retry-After: 7\r\n"))
            self.assertIsInstance(error, Unavailable)
            self.assertEqual(error.retry_after, 7)

    def test_other_5xx_are_failed(self):
        for status in (500, 507):
            self.assertIsInstance(error_of(problem(status, "internal")), Failed)

    def test_a_path_that_the_daemon_does_not_know_is_a_matter_of_versions(self):
        for status, code in ((404, "not_found"), (405, "method_not_allowed")):
            error = error_of(problem(status, code))
            self.assertIsInstance(error, Failed)
            self.assertIn("one version", error.fix)
        self.assertIsInstance(error_of(problem(404, "session_not_found")), Refused)

    def test_a_run_that_is_not_under_way_is_no_matter_of_versions(self):
        with FakeDaemon(problem(404, "not_found", detail="There is no such run.")) as daemon:
            with self.assertRaises(Refused) as raised:
                Client(daemon.path).cancel("r1")
        self.assertEqual((raised.exception.code, raised.exception.fix), ("not_found", ""))
        with FakeDaemon(problem(405, "method_not_allowed")) as daemon:
            with self.assertRaises(Failed):
                Client(daemon.path).cancel("r1")

    def test_a_refusal_before_the_body_was_read_is_heard(self):
        with FakeDaemon(problem(413, "body_too_large"), read_bodies=False) as daemon:
            with self.assertRaises(Refused) as raised:
                run_code("x" * (32 << 20), socket=daemon.path)
        self.assertEqual(raised.exception.code, "body_too_large")


class Strangers(unittest.TestCase):
    def test_members_of_another_kind_are_passed_over(self):
        for wrong in (5, True, None, "memory", {"a": 1}, [1, None]):
            error = error_of(problem(422, "x", detail="no", allowed=wrong))
            self.assertIsInstance(error, Refused)
            self.assertEqual(error.allowed, ("1", "None") if isinstance(wrong, list) else ())
        for wrong in (5, True, None, {"a": 1}, ["a"]):
            error = error_of(problem(404, wrong, title=wrong, detail=wrong, fix=wrong, field=wrong))
            self.assertEqual((error.code, error.fix, error.field, str(error)),
                             ("", "", "", "HTTP status 404"))
        for wrong in ("soon", "nan", "inf", "-1", "1e300", ""):
            error = error_of(problem(503, "x", f"Retry-After: {wrong}\r\n"))
            self.assertIsInstance(error, Unavailable)
            self.assertIsNone(error.retry_after, wrong)

    def test_what_is_no_sbxd_is_said_to_be_none(self):
        for said in (b"SSH-2.0-OpenSSH\r\n", answer(b"<html>"), answer(b"<html>", 404),
                     answer({"hello": 1}), answer([]), answer(result(files=[{}])),
                     answer(result(image=3))):
            error = error_of(said)
            self.assertIsInstance(error, Failed, said)
            self.assertIn(error.code, ("not_sbxd", "version_mismatch"))
            self.assertTrue(error.fix)

    def test_what_is_nested_too_deeply_is_no_answer(self):
        for depth in (100, 900, 950, 980, 1_000, 100_000):  # Python's own limits are near some
            nested = b"[" * depth + b"]" * depth
            for said in (answer(nested), answer(b'{"error":' + nested + b"}"), answer(nested, 404),
                         answer(b'{"code":"x","allowed":' + nested + b"}", 422)):
                self.assertIsInstance(error_of(said), (Failed, Refused), depth)
            stream = answer(b'{"seq":0,"event":' + nested + b"}\n")
            with FakeDaemon(stream) as daemon, self.assertRaises(Failed):
                list(Client(daemon.path).stream("x"))

    def test_a_daemon_that_dies_is_unavailable(self):
        self.assertEqual(error_of(b"").code, "disconnected")

    def test_an_answer_that_is_cut_off_is_failed(self):
        self.assertEqual(error_of(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{").code, "cut_off")

    def test_a_reset_within_an_answer_is_the_same_and_before_it_is_unavailable(self):
        for status, kind, code in ((b"200 OK", Failed, "cut_off"), (b"503 Busy", Unavailable, "")):
            with ResettingDaemon(b"HTTP/1.1 " + status + b"\r\nContent-Length: 10\r\n\r\n{") as daemon:
                with self.assertRaises(kind) as raised:
                    run_code("x", socket=daemon.path)
            self.assertEqual(raised.exception.code, code)
        with ResettingDaemon(b"") as daemon:
            with self.assertRaises(Unavailable) as raised:
                run_code("x", socket=daemon.path)
        self.assertEqual(raised.exception.code, "disconnected")

    def test_a_daemon_that_says_nothing_is_left_after_the_timeout(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "s")
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(path)
                listener.listen(1)
                with self.assertRaises(Unavailable) as raised:
                    Client(path, timeout=0.05).run("x")
        self.assertEqual(raised.exception.code, "timeout")


class NoDaemon(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        self.path = os.path.join(self.directory, "sbxd.sock")

    def error(self):
        with self.assertRaises(Unavailable) as raised:
            run_code("x", socket=self.path)
        return raised.exception

    def test_a_missing_socket_is_named(self):
        error = self.error()
        self.assertEqual(error.code, "socket_missing")
        self.assertIn(self.path, str(error))
        self.assertIn("SBX_SOCKET", error.fix)

    def test_a_socket_without_a_listener_says_so(self):
        with socket.socket(socket.AF_UNIX) as dead:
            dead.bind(self.path)
        error = self.error()
        self.assertEqual((error.code, error.fix), ("not_running", "start sbxd"))

    def test_a_path_that_is_too_long_is_no_traceback_of_another_kind(self):
        self.path = os.path.join(self.directory, "x" * 200)
        self.assertEqual(self.error().code, "unreachable")

    def refused(self, mode, user, group):
        """The error of a socket that is so, and may not be used."""
        info = os.stat_result((0o140000 | mode, 0, 0, 1, user, group, 0, 0, 0, 0))
        refused = PermissionError(13, "Permission denied")
        with mock.patch("socket.socket.connect", side_effect=refused), \
                mock.patch("sbx._transport.os.stat", return_value=info), \
                mock.patch("sbx._transport.os.getegid", return_value=12345), \
                mock.patch("sbx._transport.os.getgroups", return_value=[12345]):
            error = self.error()
        self.assertEqual(error.code, "permission")
        return error

    def test_a_socket_that_one_may_not_use_names_its_group(self):
        group = next(each for each in grp.getgrall() if each.gr_gid not in (0, 12345))
        error = self.refused(0o660, 0, group.gr_gid)
        self.assertIn(f"usermod -aG {group.gr_name} USER", error.fix)

    def test_nobody_is_told_to_join_the_group_of_root_or_one_that_may_not_either(self):
        other = next(each for each in grp.getgrall() if each.gr_gid not in (0, 12345))
        for mode, group in ((0o660, 0), (0o600, 0), (0o600, other.gr_gid), (0o640, other.gr_gid)):
            with self.subTest(mode=oct(mode), group=group):
                error = self.refused(mode, 0, group)
                self.assertNotIn("usermod", error.fix)
                self.assertIn("the socket is root's", error.fix)
                self.assertIn("SBX_SOCKET", error.fix)


class Discovery(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.runtime = directory.name
        self.own = os.path.join(self.runtime, "sbx", "sbxd.sock")
        self.system = os.path.join(self.runtime, "system.sock")
        self.daemon = dataclasses.replace(sbx._daemon.SBXD, system_socket=self.system)
        os.mkdir(os.path.dirname(self.own))
        for patch in (mock.patch.dict(os.environ, {"XDG_RUNTIME_DIR": self.runtime}),
                      mock.patch("sbx._client.SBXD", self.daemon)):
            patch.start()
            self.addCleanup(patch.stop)
        os.environ.pop("SBX_SOCKET", None)

    def make(self, path):
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path)

    def found(self, given=None):
        return sbx._daemon.find_socket(self.daemon, given)

    def test_the_argument_comes_before_the_variable_and_both_before_the_usual_places(self):
        self.make(self.system)
        os.environ["SBX_SOCKET"] = "/from/variable"
        self.assertEqual(self.found("/given"), "/given")
        self.assertEqual(self.found(), "/from/variable")

    def test_a_variable_that_is_no_absolute_path_is_an_error_and_no_other_daemon_is_asked(self):
        self.make(self.system)
        os.environ["SBX_SOCKET"] = "from/variable"
        with self.assertRaises(Unavailable) as raised:
            self.found()
        self.assertIn("SBX_SOCKET is from/variable", str(raised.exception))
        self.assertIn("an absolute path", raised.exception.fix)
        self.assertEqual(self.found("given"), "given")
        os.environ["SBX_SOCKET"] = ""
        os.environ["XDG_RUNTIME_DIR"] = "relative"
        self.assertEqual(sbx._daemon.socket_candidates(self.daemon), [self.system])

    def test_the_systems_socket_comes_before_ones_own(self):
        self.make(self.own)
        self.assertEqual(self.found(), self.own)
        self.make(self.system)
        self.assertEqual(self.found(), self.system)

    def test_a_system_socket_that_one_may_not_use_gives_way_to_ones_own(self):
        self.make(self.own)
        self.make(self.system)
        may = os.access
        with mock.patch("os.access", lambda path, mode: path != self.system and may(path, mode)):
            self.assertEqual(self.found(), self.own)
            os.unlink(self.own)
            self.assertEqual(self.found(), self.system)

    def test_without_any_both_places_are_named(self):
        with self.assertRaises(Unavailable) as raised:
            run_code("x")
        self.assertIn(self.system, str(raised.exception))
        self.assertIn(self.own, str(raised.exception))


if __name__ == "__main__":
    unittest.main()
