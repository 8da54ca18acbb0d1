"""Single runs: what is asked, and what is made of the answer."""

import array
import base64
import gc
import json
import pathlib
import tempfile
import threading
import time
import unittest

import sbx
from sbx import (Client, Failed, Finished, Lost, Output, SandboxLimits, Started, run_code,
                 stream_code)

from .fake import FakeDaemon, answer, problem, result


class RunCode(unittest.TestCase):
    def test_the_shortest_call_asks_for_no_more_than_it_says(self):
        with FakeDaemon(answer(result())) as daemon:
            run_code("print(6*7)", socket=daemon.path)
            request = daemon.requests[0]
        self.assertEqual((request.method, request.target), ("POST", "/v1/run"))
        self.assertEqual(request.json(), {"language": "python", "code": "print(6*7)"})

    def test_everything_that_is_given_is_asked_for(self):
        with FakeDaemon(answer(result())) as daemon, tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory, "x")
            path.write_bytes(b"\xff")
            run_code("c", "js", 5, SandboxLimits(memory="64M", pids=3, output_kills=False),
                     args=["a"], stdin="in", files={"b": b"hi", "p": path}, env={"K": "V"},
                     profile="judge", collect="list", socket=daemon.path)
            asked = daemon.requests[0].json()
        self.assertEqual(asked, {
            "language": "js", "code": "c", "args": ["a"], "stdin": "in", "env": {"K": "V"},
            "profile": "judge", "collect": "list",
            "limits": {"wall_seconds": 5, "memory": "64M", "pids": 3, "output_kills": False},
            "files": [{"name": "b", "content_base64": "aGk="},
                      {"name": "p", "content_base64": "/w=="}]})

    def test_the_result_has_everything_that_the_daemon_says(self):
        with FakeDaemon(answer(result(new_in_a_later_version=1))) as daemon:
            got = run_code("", socket=daemon.path)
        self.assertTrue(got.ok)
        self.assertEqual((got.status, got.exit_code, got.signal, got.timed_out), ("ok", 0, None, False))
        self.assertEqual((got.stdout, got.stdout_bytes), ("42\n", b"42\n"))
        self.assertEqual((got.files[0].path, got.files[0].content), ("a.txt", b"hi"))
        self.assertIsNone(got.files[1].content)
        self.assertEqual(got.refused[0].reason, "symlink")
        self.assertEqual(got.denials[0].count, 2)
        self.assertEqual(got.limits_hit, ("pids",))
        self.assertEqual(got.usage.memory_peak, 1000)
        self.assertEqual(got.notes[0].source, "kernel")
        self.assertEqual(got.layers[0].state, "held")
        self.assertEqual(got.image.name, "default")
        self.assertEqual(got.timings.run, 0.2)
        self.assertEqual(got.raw["new_in_a_later_version"], 1)

    def test_bytes_that_are_not_utf8_are_kept(self):
        said = result(stdout="\ufffd", stdout_base64="/w==", usage=None)
        with FakeDaemon(answer(said)) as daemon:
            got = run_code("", socket=daemon.path)
        self.assertEqual((got.stdout, got.stdout_bytes), ("\ufffd", b"\xff"))
        self.assertIsNone(got.usage.cpu_seconds)

    def test_failing_code_is_a_result(self):
        for status, code in (("exit", 1), ("timeout", -1), ("oom", 137), ("security", -1)):
            with FakeDaemon(answer(result(status=status, ok=False, exit_code=code))) as daemon:
                self.assertEqual(run_code("", socket=daemon.path).status, status)

    def test_a_failing_sandbox_is_an_error_with_its_result(self):
        error = {"code": "step_failed", "step": "mount_proc", "errno": 1, "detail": "EPERM",
                 "fix": "unmask /proc"}
        with FakeDaemon(answer(result(status="sandbox_error", ok=False, error=error))) as daemon:
            with self.assertRaises(Failed) as raised:
                run_code("", socket=daemon.path)
        self.assertEqual(raised.exception.code, "step_failed")
        self.assertIn("fix: unmask /proc", str(raised.exception))
        self.assertEqual(raised.exception.result.status, "sandbox_error")

    def test_two_different_times_are_a_mistake_of_the_caller(self):
        with self.assertRaises(ValueError):
            run_code("", timeout_seconds=5, limits=SandboxLimits(wall_seconds=6))
        for given in ({"timeout_seconds": 5, "limits": SandboxLimits(wall_seconds=5)},
                      {"limits": SandboxLimits(wall_seconds=5)}):
            with FakeDaemon(answer(result())) as daemon:
                run_code("", socket=daemon.path, **given)
                self.assertEqual(daemon.requests[0].json()["limits"], {"wall_seconds": 5})
        with FakeDaemon(answer(result())) as daemon:
            run_code("", timeout_seconds=30, socket=daemon.path)
            self.assertEqual(daemon.requests[0].json()["limits"], {"wall_seconds": 30})

    def test_a_str_is_neither_content_nor_path_of_a_file(self):
        with self.assertRaises(TypeError):
            run_code("", files={"a": "text"})

    def test_any_program_of_the_image_may_be_run(self):
        with FakeDaemon(answer(result())) as daemon:
            Client(daemon.path).run(argv=["ls", "/"])
            self.assertEqual(daemon.requests[0].json(), {"argv": ["ls", "/"]})

    def test_cancel_and_info(self):
        with FakeDaemon(answer({"id": "r1"}), answer({"version": "1"})) as daemon:
            client = Client(daemon.path)
            client.cancel("r1")
            self.assertEqual(client.info(), {"version": "1"})
            self.assertEqual([(each.method, each.target) for each in daemon.requests],
                             [("DELETE", "/v1/runs/r1"), ("GET", "/v1/info")])


def lines(*events):
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


STARTED = {"seq": 0, "event": "started", "id": "r1", "limits": {}, "layers": []}
OUTPUT = {"seq": 1, "event": "stdout", "data": "é"}
RAW = {"seq": 2, "event": "stderr", "data_base64": "/w=="}
LOST = {"seq": 3, "event": "lost", "stream": "stdout", "bytes": 7}
RESULT = {"seq": 4, "event": "result", "result": result()}


class StreamCode(unittest.TestCase):
    def test_gives_events_in_their_order_and_then_the_result(self):
        said = answer(lines(STARTED, OUTPUT, RAW, LOST, RESULT), headers="Sbx-Run-Id: r1\r\n")
        with FakeDaemon(said) as daemon:
            with stream_code("", socket=daemon.path) as stream:
                self.assertEqual(stream.id, "r1")
                with self.assertRaises(RuntimeError):
                    _ = stream.result
                events = list(stream)
            self.assertEqual(daemon.requests[0].target, "/v1/run?stream=1")
        self.assertEqual([type(event) for event in events],
                         [Started, Output, Output, Lost, Finished])
        self.assertEqual([event.seq for event in events], [0, 1, 2, 3, 4])
        self.assertEqual((events[1].text, events[1].data), ("é", "é".encode()))
        self.assertEqual((events[2].text, events[2].data), ("\ufffd", b"\xff"))
        self.assertEqual((events[3].stream, events[3].bytes), ("stdout", 7))
        self.assertEqual(stream.result.stdout, "42\n")

    def test_a_stream_that_ends_early_is_an_error(self):
        for said in (lines(STARTED), lines(STARTED) + b'{"seq": 1', b""):
            with FakeDaemon(answer(said)) as daemon:
                with stream_code("", socket=daemon.path) as stream:
                    with self.assertRaises(Failed) as raised:
                        list(stream)
            self.assertEqual(raised.exception.code, "cut_off")

    def test_an_event_of_another_version_is_an_error_that_says_so(self):
        for event in ({"seq": 0, "event": "news"}, {"event": "lost"}, [], "x",
                      {"seq": 0, "event": "result", "result": {}}):
            with FakeDaemon(answer(lines(event))) as daemon:
                with stream_code("", socket=daemon.path) as stream:
                    with self.assertRaises(Failed) as raised:
                        list(stream)
            self.assertEqual(raised.exception.code, "version_mismatch")

    def test_leaving_early_closes_the_connection(self):
        endless = b"HTTP/1.1 200 OK\r\n\r\n" + lines(STARTED) + lines(OUTPUT) * 500_000
        with FakeDaemon(endless) as daemon:
            with stream_code("", socket=daemon.path) as stream:
                for event in stream:
                    if isinstance(event, Output):
                        break
            self.assertTrue(daemon.disconnected.wait(60))

    def test_a_stream_that_the_caller_closed_is_not_blamed_on_the_daemon(self):
        def before(stream):
            with stream:
                pass
            list(stream)

        def between(stream):
            for _ in stream:
                stream.close()

        def left(stream):
            for _ in stream:
                break
            gc.collect()
            list(stream)

        for use in (before, between, left):
            with FakeDaemon(answer(lines(STARTED, OUTPUT, RESULT))) as daemon:
                stream = stream_code("", socket=daemon.path)
                with self.assertRaisesRegex(ValueError, "the stream is closed"):
                    use(stream)
                with self.assertRaisesRegex(RuntimeError, "closed before its last event"):
                    _ = stream.result

    def test_another_thread_may_close_a_stream_that_is_waited_for(self):
        class Waiting(FakeDaemon):
            def _serve_one(self, connection):
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n" + lines(STARTED))
                while connection.recv(65536):
                    pass
                self.disconnected.set()

        def iterate(stream):
            try:
                for _ in stream:
                    started.set()
            except Exception as error:
                raised.append(error)

        started, raised = threading.Event(), []
        with Waiting(b"") as daemon:
            stream = stream_code("", socket=daemon.path)
            reader = threading.Thread(target=iterate, args=(stream,))
            reader.start()
            self.assertTrue(started.wait(60))
            time.sleep(0.1)  # it reads again
            asked = time.monotonic()
            stream.close()
            self.assertTrue(daemon.disconnected.wait(60))
            reader.join(60)
            self.assertLess(time.monotonic() - asked, 20)
        self.assertEqual([type(error) for error in raised], [ValueError])
        self.assertRegex(str(raised[0]), "the stream is closed")

    def test_bytes_of_any_item_size_are_all_sent(self):
        numbers = memoryview(array.array("i", [1, 2, 3]))
        for content in (numbers, numbers[::2]):
            with FakeDaemon(answer(result())) as daemon:
                run_code("", files={"a": content}, socket=daemon.path)
                sent = daemon.requests[0].json()["files"][0]["content_base64"]
            self.assertEqual(base64.b64decode(sent), bytes(content))

    def test_a_stream_that_has_ended_stays_so(self):
        with FakeDaemon(answer(lines(STARTED, RESULT))) as daemon:
            with stream_code("", socket=daemon.path) as stream:
                self.assertEqual(len(list(stream)), 2)
            self.assertEqual(list(stream), [])
            self.assertTrue(stream.result.ok)

    def test_a_refusal_comes_before_the_stream(self):
        with FakeDaemon(problem(422, "invalid_value")) as daemon:
            with self.assertRaises(sbx.Refused):
                stream_code("", socket=daemon.path)


if __name__ == "__main__":
    unittest.main()
