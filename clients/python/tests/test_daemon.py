"""The package against a real sbxd."""

import io
import os
import pathlib
import signal
import unittest

from sbx import (Client, Finished, Output, Refused, SandboxLimits, Session, Unavailable, run_code,
                 stream_code)

from .daemon import DaemonCase


class Daemon(DaemonCase):
    def test_code_runs_and_its_failures_are_results(self):
        self.assertEqual(run_code("print(6*7)", socket=self.socket).stdout, "42\n")
        failed = run_code("raise SystemExit(3)", socket=self.socket)
        self.assertEqual((failed.status, failed.exit_code, failed.ok), ("exit", 3, False))
        slow = run_code("while True: pass", timeout_seconds=0.5, socket=self.socket)
        self.assertEqual((slow.status, slow.timed_out, slow.exit_code), ("timeout", True, -1))
        self.assertEqual(slow.limits["wall_seconds"], 0.5)
        self.assertEqual(run_code("console.log(1)", "js", socket=self.socket).language, "javascript")

    def test_files_go_in_and_come_out(self):
        code = "open('/output/copy', 'wb').write(open('/input/data', 'rb').read()[::-1])"
        result = run_code(code, files={"data": b"\x00\xff\x01"}, socket=self.socket)
        self.assertEqual([(file.path, file.content) for file in result.files],
                         [("copy", b"\x01\xff\x00")])

    def test_bytes_of_any_kind_come_back(self):
        code = "import sys; sys.stdout.buffer.write(bytes(range(256)))"
        self.assertEqual(run_code(code, socket=self.socket).stdout_bytes, bytes(range(256)))

    def test_limits_that_do_not_exist_are_refused_by_name(self):
        with self.assertRaises(Refused) as raised:
            run_code("", language="cobol", socket=self.socket)
        self.assertEqual(raised.exception.field, "language")
        self.assertIn("python", raised.exception.allowed)
        with self.assertRaises(Refused):
            run_code("", limits=SandboxLimits(memory="nonsense"), socket=self.socket)

    def test_events_come_while_the_run_is_on(self):
        code = "import sys\nprint('ready', flush=True)\nimport time\ntime.sleep(60)"
        text = ""
        with stream_code(code, socket=self.socket) as stream:
            for event in stream:
                if not isinstance(event, Output):
                    continue
                text += event.text
                if text == "ready\n":
                    Client(self.socket).cancel(stream.id)
        self.assertIsInstance(event, Finished)
        self.assertEqual(stream.result.status, "cancelled")
        with self.assertRaises(Refused) as raised:
            Client(self.socket).cancel("none")  # of what has ended the daemon knows no more
        self.assertEqual(raised.exception.code, "not_found")

    def test_a_session_keeps_its_files(self):
        with Session(SandboxLimits(work="64M"), socket=self.socket) as session:
            data = os.urandom(3 << 20)
            self.assertEqual(session.put("in/data é", io.BytesIO(data)), len(data))
            self.assertEqual(session.get("in/data é"), data)
            with self.assertRaisesRegex(OSError, "less in it"):
                session.put("cpus", pathlib.Path("/sys/devices/system/cpu/online"))
            version = pathlib.Path("/proc/version")
            self.assertEqual(session.put("version", version), len(version.read_bytes()))
            session.delete("version")
            ran = session.run("import os\nopen('sum', 'w').write(str(os.stat('in/data é').st_size))")
            self.assertTrue(ran.ok, ran.stderr)
            self.assertTrue(ran.workspace.saved)
            self.assertGreaterEqual(ran.workspace.size, len(data))
            self.assertEqual(session.get("sum"), str(len(data)).encode())
            self.assertEqual([entry.path for entry in session.list()], ["in", "in/data é", "sum"])
            session.delete("in")
            self.assertEqual([entry.path for entry in session.list()], ["sum"])
            self.assertEqual(Session.attach(session.id, socket=self.socket).info().limits["work"],
                             64 << 20)
            with self.assertRaises(Refused) as raised:
                session.put("../escape", b"")
            self.assertEqual(raised.exception.code, "invalid_path")
            with self.assertRaises(Refused) as raised:
                session.put("big", bytes(65 << 20))
            self.assertEqual(raised.exception.code, "quota_exceeded")
        with self.assertRaises(Refused):
            session.info()

    def test_a_sessions_files_are_reached_whatever_their_names(self):
        code = ("import os\nos.makedirs(b'd\\xff')\nopen(b'd\\xff/\\xc3', 'wb').write(b'one')\n"
                "open('\\\\x41', 'w').write('two')")
        with Session(socket=self.socket) as session:
            ran = session.run(code)
            self.assertTrue(ran.ok, ran.stderr)
            session.put("d\udcff/\udc80", b"three")
            entries = [entry.path for entry in session.list()]
            self.assertEqual(entries, ["\\x41", "d\udcff", "d\udcff/\udc80", "d\udcff/\udcc3"])
            contents = [session.get(path) for path in entries if path != "d\udcff"]
            self.assertEqual(contents, [b"two", b"three", b"one"])
            session.delete("d\udcff")
            self.assertEqual([entry.path for entry in session.list()], ["\\x41"])

    def test_a_daemon_that_is_stopped_is_left_and_goes_on_later(self):
        os.kill(self.process.pid, signal.SIGSTOP)
        try:
            with self.assertRaises(Unavailable) as raised:
                run_code("print(1)", timeout_seconds=1, timeout=0.5, socket=self.socket)
            self.assertEqual(raised.exception.code, "timeout")
        finally:
            os.kill(self.process.pid, signal.SIGCONT)
        self.assertTrue(run_code("print(1)", socket=self.socket).ok)

    def test_info_names_what_there_is(self):
        info = Client(self.socket).info()
        self.assertIn("python", [each["name"] for each in info["languages"]])
        self.assertTrue(info["version"])


if __name__ == "__main__":
    unittest.main()
