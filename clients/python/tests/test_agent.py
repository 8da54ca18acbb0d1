"""sbx.agent, by a scripted agentd."""

import io
import json
import os
import pathlib
import tempfile
import threading
import time
import unittest
from unittest import mock

import sbx.agent
from sbx import Failed, Refused, SandboxError, Unavailable
from sbx.agent import (AgentClient, Budget, RequestFailed, RequestStream, run_agent, run_request,
                       stream_request)

from .fake import FakeDaemon, ResettingDaemon, answer, problem

RUN = {"id": "r1", "status": "exit", "exit_code": 1, "signal": None, "duration_seconds": 0.5,
       "stdout": "", "stdout_dropped": 0, "stderr": "KeyError: 'area'", "stderr_dropped": 0,
       "limits_hit": ["memory"], "notes": [{"code": "memory", "text": "full", "source": "kernel"}],
       "files": [{"path": "a", "size": 1}], "refused": [{"path": "l", "reason": "symlink"}]}
ATTEMPT = {"n": 1, "outcome": "failed", "class": "runtime", "error": {"code": "traceback", "detail": "KeyError: 'area'"},
           "seconds": 1.5, "model_seconds": 1.0, "run_seconds": 0.5,
           "tokens": {"input": 900, "output": 80}, "cost_usd": 0.001, "estimated": False,
           "usage_flagged": False, "finish_reason": "stop", "model_tries": 1, "code": "print(1)",
           "run": RUN}
RECORD = {
    "id": "rq_1", "mode": "code", "label": None, "state": "succeeded",
    "reason": {"code": "passed", "ceiling": None, "class": None, "text": "passed"},
    "text": "which district?", "language": "python",
    "files": [{"name": "houses.csv", "size": 3, "sha256": "00"}],
    "provider": {"kind": "replay", "model": "", "replayed": True}, "attempts_made": 2,
    "tokens": 1960, "cost_usd": 0.002, "cost_basis": "list price",
    "created_at": "2026-01-01T00:00:00.000Z", "ended_at": "2026-01-01T00:00:03.000Z",
    "wall_seconds": 3.0, "prompts": {"codegen": "codegen.v1.python", "repair": "repair.v1"},
    "budget": {"attempts": {"limit": 3, "used": 2}},
    "attempts": [ATTEMPT, {**ATTEMPT, "n": 2, "outcome": "passed", "class": None, "error": None, "run": None}],
    "result": {"type": "table", "data": {"columns": ["a"], "rows": [[1]]}, "artifact": None,
               "note": None, "banner": None},
    "artifacts": [{"name": "table.csv", "size": 4, "sha256": "00", "media_type": "text/csv",
                   "redacted": False}],
}
ACCEPTED = answer({"id": "rq_1", "state": "queued"}, 202)
CANCELLED = answer({"id": "rq_1", "state": "cancelling"}, 202)


def event(number, kind="state", state="execute", attempt=1):
    data = {"state": state, "attempt": attempt, "text": f"Attempt {attempt}: {state}…"}
    return f"id: {number}\nevent: {kind}\ndata: {json.dumps(data)}\n\n".encode()


END = event(3, "end", "succeeded", 2)


def events(*pieces):
    """A stream; what follows the last whole event is a connection that was lost."""
    return b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + b"".join(pieces)


def record(**changes):
    return answer({**RECORD, **changes})


def asked(daemon):
    return [(each.method, each.target) for each in daemon.requests]


def at_once():
    """Connections are made again without a wait."""
    return mock.patch("sbx.agent.RECONNECT_SECONDS", 0)


class Requests(unittest.TestCase):
    def test_everything_that_is_asked_for_is_sent(self):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory, "p")
            path.write_bytes(b"\xff")
            with FakeDaemon(ACCEPTED, events(END), record()) as daemon:
                run_request("which?", "javascript", files={"b": b"hi", "p": path}, label="l",
                            budget=Budget(attempts=2, cost_usd=0.01), socket=daemon.path)
                self.assertEqual(asked(daemon), [("POST", "/v1/requests"),
                                                 ("GET", "/v1/requests/rq_1/events"),
                                                 ("GET", "/v1/requests/rq_1")])
                self.assertEqual(daemon.requests[0].json(), {
                    "text": "which?", "language": "javascript", "label": "l",
                    "budget": {"attempts": 2, "cost_usd": 0.01},
                    "files": [{"name": "b", "content_base64": "aGk="},
                              {"name": "p", "content_base64": "/w=="}]})

    def test_what_is_not_asked_for_is_left_to_agentd(self):
        with FakeDaemon(ACCEPTED, events(END), record()) as daemon:
            run_request("which?", socket=daemon.path)
            self.assertEqual(daemon.requests[0].json(), {"text": "which?", "language": "python"})

    def test_the_result_has_everything_that_agentd_says(self):
        with FakeDaemon(ACCEPTED, events(END), record(new_in_a_later_version=1)) as daemon:
            got = run_request("which?", socket=daemon.path)
        self.assertEqual((got.state, got.ok, got.gave_up), ("succeeded", True, False))
        self.assertEqual((got.cost, got.tokens, got.wall_seconds), (0.002, 1960, 3.0))
        self.assertEqual((got.provider.kind, got.provider.replayed), ("replay", True))
        self.assertEqual((got.envelope.type, got.envelope.data["rows"]), ("table", [[1]]))
        self.assertEqual([each.class_ for each in got.attempts], ["runtime", None])
        first = got.attempts[0]
        self.assertEqual((first.error.detail, first.tokens.input), ("KeyError: 'area'", 900))
        self.assertEqual((first.run.status, first.run.notes[0].code), ("exit", "memory"))
        self.assertEqual((first.run.files[0].path, first.run.refused[0].reason), ("a", "symlink"))
        self.assertIsNone(got.attempts[1].run)
        self.assertEqual(got.budget["attempts"].used, 2)
        self.assertEqual(got.artifacts[0].media_type, "text/csv")
        self.assertEqual(got.files[0].name, "houses.csv")
        self.assertEqual(got.raw["new_in_a_later_version"], 1)

    def test_giving_up_is_a_result(self):
        reason = {"code": "ceiling", "ceiling": "attempts", "class": "runtime", "text": "no more"}
        with FakeDaemon(ACCEPTED, events(event(3, "end", "gave_up")),
                        record(state="gave_up", reason=reason, result=None)) as daemon:
            got = run_request("which?", socket=daemon.path)
        self.assertTrue(got.gave_up)
        self.assertFalse(got.ok)
        self.assertIsNone(got.envelope)
        self.assertEqual((got.reason.ceiling, got.reason.class_), ("attempts", "runtime"))

    def test_failing_machinery_is_an_error_with_what_is_on_record(self):
        reason = {"code": "sandbox", "ceiling": None, "class": "sandbox", "text": "sbxd is away"}
        with FakeDaemon(ACCEPTED, events(event(3, "end", "failed")),
                        record(state="failed", reason=reason)) as daemon:
            with self.assertRaises(RequestFailed) as raised:
                run_request("which?", socket=daemon.path)
            self.assertEqual(len(daemon.requests), 3)  # what has ended is not cancelled
        self.assertEqual(raised.exception.code, "sandbox")
        self.assertIn("sbxd is away", str(raised.exception))
        self.assertEqual(raised.exception.fix, "see agentd's log")
        self.assertEqual(len(raised.exception.answer.attempts), 2)

    def test_failing_machinery_is_told_with_the_fix_of_its_cause(self):
        reason = {"code": "sandbox", "ceiling": None, "class": "sandbox",
                  "text": "sbxd said. Fix: it. Fix: start sbxd", "fix": "start sbxd"}
        with FakeDaemon(ACCEPTED, events(event(3, "end", "failed")),
                        record(state="failed", reason=reason)) as daemon:
            with self.assertRaises(RequestFailed) as raised:
                run_request("which?", socket=daemon.path)
        self.assertEqual(str(raised.exception), "request rq_1 failed: sbxd said. Fix: it (fix: start sbxd)")
        self.assertEqual(raised.exception.fix, "start sbxd")

    def test_a_refusal_names_field_and_what_is_allowed(self):
        with FakeDaemon(problem(422, "above_ceiling", detail="Too much.", field="budget.attempts",
                                allowed=["3"])) as daemon:
            with self.assertRaises(Refused) as raised:
                run_request("which?", budget=Budget(attempts=9), socket=daemon.path)
            self.assertEqual(len(daemon.requests), 1)
        self.assertEqual((raised.exception.field, raised.exception.allowed),
                         ("budget.attempts", ("3",)))

    def test_a_full_queue_says_when_to_come_back(self):
        with FakeDaemon(problem(429, "queue_full", "Retry-After: 5\r\n")) as daemon:
            with self.assertRaises(Unavailable) as raised:
                run_request("which?", socket=daemon.path)
        self.assertEqual(raised.exception.retry_after, 5)

    def test_a_missing_agentd_is_named_with_the_fix(self):
        with self.assertRaises(Unavailable) as raised:
            run_request("which?", socket="/nowhere/agentd.sock")
        self.assertEqual(raised.exception.fix, "start agentd, or set AGENTD_SOCKET to its socket")

    def test_the_variable_names_the_socket(self):
        with FakeDaemon(answer({"version": "1"})) as daemon, \
                mock.patch.dict(os.environ, {"AGENTD_SOCKET": daemon.path}):
            self.assertEqual(AgentClient().info(), {"version": "1"})

    def test_a_str_is_neither_content_nor_path_of_a_file(self):
        with self.assertRaises(TypeError):
            run_request("which?", files={"a": "text"})


class Tasks(unittest.TestCase):
    def test_the_record_tells_what_the_model_said_and_called(self):
        use = {"name": "run_code", "arguments": "{}", "is_error": False, "output": "1", "run": RUN}
        attempt = {name: value for name, value in ATTEMPT.items() if name not in ("code", "run")}
        attempts = [{**attempt, "text": "I look.", "tools": [use]}]
        with FakeDaemon(ACCEPTED, events(END),
                        record(mode="tools", language=None, attempts=attempts)) as daemon:
            got = run_agent("is it?", max_iterations=4, socket=daemon.path)
            self.assertEqual(daemon.requests[0].target, "/v1/agent")
            self.assertEqual(daemon.requests[0].json(), {"task": "is it?", "max_iterations": 4})
        self.assertEqual(got.attempts[0].text, "I look.")
        self.assertEqual(got.attempts[0].tools[0].run.status, "exit")
        self.assertIsNone(got.attempts[0].code)


class Events(unittest.TestCase):
    def test_they_come_in_their_order_and_then_the_result(self):
        said = events(b": keep-alive\n\n", event(1, state="generate"), event(2), END)
        with FakeDaemon(ACCEPTED, said, record()) as daemon:
            with stream_request("which?", socket=daemon.path) as stream:
                self.assertEqual(stream.id, "rq_1")
                with self.assertRaises(RuntimeError):
                    _ = stream.result
                got = list(stream)
                self.assertEqual(stream.result.state, "succeeded")
        self.assertEqual([(each.id, each.kind, each.state, each.attempt) for each in got],
                         [(1, "state", "generate", 1), (2, "state", "execute", 1),
                          (3, "end", "succeeded", 2)])
        self.assertEqual(got[1].text, "Attempt 1: execute…")

    def test_a_lost_connection_is_made_again_without_losing_an_event(self):
        half = event(2)[:-9]
        with FakeDaemon(ACCEPTED, events(event(1), half), b"", events(event(2), END),
                        record()) as daemon, at_once():
            with stream_request("which?", socket=daemon.path) as stream:
                self.assertEqual([each.id for each in stream], [1, 2, 3])
            self.assertNotIn("Last-Event-ID", daemon.requests[1].head)
            for again in daemon.requests[2:4]:
                self.assertIn("Last-Event-ID: 1\r\n", again.head + "\r\n")

    def test_a_connection_that_is_reset_is_made_again_too(self):
        with ResettingDaemon(ACCEPTED, events(event(1)), events(event(2), END),
                             record()) as daemon, at_once():
            with stream_request("which?", socket=daemon.path) as stream:
                self.assertEqual([each.id for each in stream], [1, 2, 3])

    def test_the_end_is_asked_for_again_when_the_record_could_not_be_had(self):
        with FakeDaemon(ACCEPTED, events(event(2), END), b"", events(END),
                        record()) as daemon, at_once():
            with stream_request("which?", socket=daemon.path) as stream:
                self.assertEqual([each.kind for each in stream], ["state", "end"])
            self.assertIn("Last-Event-ID: 2\r\n", daemon.requests[3].head + "\r\n")

    def test_an_agentd_that_does_not_come_back_is_unavailable_in_the_end(self):
        with FakeDaemon(ACCEPTED, b"") as daemon, at_once():
            with self.assertRaises(Unavailable) as raised:
                run_request("which?", socket=daemon.path)
            tries = [each for each in asked(daemon) if each[1].endswith("/events")]
        self.assertEqual(raised.exception.code, "disconnected")
        self.assertEqual(len(tries), 1 + sbx.agent.RECONNECTS)

    def test_leaving_early_cancels_the_request(self):
        with FakeDaemon(ACCEPTED, events(event(1), event(2)), CANCELLED) as daemon:
            with stream_request("which?", socket=daemon.path) as stream:
                for _ in stream:
                    break
            self.assertEqual(asked(daemon)[-1], ("DELETE", "/v1/requests/rq_1"))

    def test_an_interrupt_cancels_the_request_and_goes_on(self):
        with FakeDaemon(ACCEPTED, CANCELLED) as daemon:
            with mock.patch("sbx.agent._events", side_effect=KeyboardInterrupt):
                with self.assertRaises(KeyboardInterrupt):
                    run_request("which?", socket=daemon.path)
            self.assertEqual(asked(daemon)[-1], ("DELETE", "/v1/requests/rq_1"))

    def test_a_stream_that_the_caller_closed_gives_no_more_events(self):
        with FakeDaemon(ACCEPTED, CANCELLED, events(END), record()) as daemon:
            with stream_request("which?", socket=daemon.path) as stream:
                pass
            with self.assertRaisesRegex(ValueError, "the stream is closed"):
                list(stream)
            with self.assertRaisesRegex(RuntimeError, "closed before its last event"):
                _ = stream.result
            self.assertEqual(asked(daemon)[-1], ("DELETE", "/v1/requests/rq_1"))
        with FakeDaemon(events(event(1), event(2))) as daemon:
            stream = AgentClient(daemon.path).follow("rq_1")
            with self.assertRaisesRegex(ValueError, "the stream is closed"):
                for _ in stream:
                    stream.close()

    def test_another_thread_may_close_a_stream_that_is_waited_for(self):
        class Waiting(FakeDaemon):
            def _serve_one(self, connection):
                if connection.recv(65536).startswith(b"DELETE"):
                    cancelled.set()
                    connection.sendall(CANCELLED)
                    return
                connection.sendall(events(event(1)))
                threading.Thread(target=self._until_left, args=(connection.dup(),)).start()

            def _until_left(self, connection):
                with connection:
                    while connection.recv(65536):
                        pass
                left.set()

        def iterate(stream):
            try:
                for _ in stream:
                    told.set()
            except Exception as error:
                raised.append(error)

        for cancels in (True, False):
            cancelled, left, told, raised = (threading.Event(), threading.Event(),
                                             threading.Event(), [])
            with Waiting(b"") as daemon:
                stream = RequestStream(AgentClient(daemon.path).transport, "rq_1", cancels)
                reader = threading.Thread(target=iterate, args=(stream,))
                reader.start()
                self.assertTrue(told.wait(60))
                time.sleep(0.1)  # it reads again
                stream.close()
                self.assertTrue(left.wait(60))
                reader.join(60)
            self.assertEqual(cancelled.is_set(), cancels)
            self.assertEqual([type(error) for error in raised], [ValueError])
            self.assertRegex(str(raised[0]), "the stream is closed")

    def test_following_another_request_does_not_cancel_it(self):
        with FakeDaemon(events(event(1))) as daemon:
            with AgentClient(daemon.path).follow("rq_1") as stream:
                for _ in stream:
                    break
            self.assertEqual(asked(daemon), [("GET", "/v1/requests/rq_1/events")])

    def test_an_agentd_that_is_silent_is_left_after_the_timeout(self):
        silent = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"

        class Silent(FakeDaemon):
            def _serve_one(self, connection):
                connection.recv(65536)
                connection.sendall(silent)
                connection.recv(65536)  # until the client leaves

        with Silent(b"") as daemon:
            with self.assertRaises(Unavailable) as raised:
                list(AgentClient(daemon.path, timeout=0.05).follow("rq_1"))
        self.assertEqual(raised.exception.code, "timeout")


class OtherCalls(unittest.TestCase):
    def test_artifacts_are_given_whole_or_copied(self):
        content = bytes(range(256)) * 5000
        with FakeDaemon(record(), answer(content)) as daemon, \
                tempfile.TemporaryDirectory() as directory:
            shown = AgentClient(daemon.path).show("rq_1")
            self.assertEqual(shown.get("charts/a b.png"), content)
            self.assertEqual(daemon.requests[1].target,
                             "/v1/requests/rq_1/artifacts/charts/a%20b.png")
            target = pathlib.Path(directory, "copy")
            self.assertEqual(shown.get_to("x", target), len(content))
            self.assertEqual(target.read_bytes(), content)
            buffer = io.BytesIO()
            shown.get_to("x", buffer)
            self.assertEqual(buffer.getvalue(), content)

    def test_an_artifact_that_is_not_there_leaves_the_target_alone(self):
        with FakeDaemon(record(), problem(404, "unknown_artifact")) as daemon, \
                tempfile.TemporaryDirectory() as directory:
            target = pathlib.Path(directory, "kept")
            target.write_bytes(b"kept")
            with self.assertRaises(Refused):
                AgentClient(daemon.path).show("rq_1").get_to("x", target)
            self.assertEqual(target.read_bytes(), b"kept")

    def test_what_is_under_way_or_has_failed_can_be_shown(self):
        for state, reason in (("execute", None), ("failed", RECORD["reason"])):
            with FakeDaemon(record(state=state, reason=reason, result=None)) as daemon:
                self.assertEqual(AgentClient(daemon.path).show("rq_1").state, state)

    def test_history_goes_through_all_pages(self):
        def page(following, *names):
            return answer({"requests": [{**RECORD, "id": each} for each in names],
                           "next": following})
        with FakeDaemon(page("b c", "a", "b"), page(None, "c")) as daemon:
            requests = list(AgentClient(daemon.path).history())
            self.assertEqual([each.target for each in daemon.requests],
                             ["/v1/requests", "/v1/requests?before=b%20c"])
        self.assertEqual([each.id for each in requests], ["a", "b", "c"])
        self.assertEqual(requests[0].provider.kind, "replay")

    def test_cancel_and_info(self):
        with FakeDaemon(CANCELLED, answer({"version": "1"})) as daemon:
            client = AgentClient(daemon.path)
            client.cancel("rq_1")
            self.assertEqual(client.info(), {"version": "1"})
            self.assertEqual(asked(daemon),
                             [("DELETE", "/v1/requests/rq_1"), ("GET", "/v1/info")])

    def test_answers_of_another_version_say_so(self):
        calls = (lambda client: client.show("rq_1"), lambda client: list(client.history()),
                 lambda client: client.stream_request("x"))
        for said in ({}, [], {"requests": [3], "next": None}, {**RECORD, "attempts": [{}]},
                     {**RECORD, "budget": [1]}):
            for call in calls[:1] if "id" in said else calls:
                with FakeDaemon(answer(said)) as daemon:
                    with self.assertRaises(Failed) as raised:
                        call(AgentClient(daemon.path))
                self.assertEqual(raised.exception.code, "version_mismatch")
                self.assertIn("install agentd", raised.exception.fix)

    def test_an_event_of_another_version_says_so(self):
        for said in (b"id: 1\nevent: news\ndata: {}\n\n", b"id: x\nevent: end\ndata: {}\n\n",
                     b"event: end\ndata: []\n\n", b"id: 1\nevent: state\ndata: {}\n\n"):
            with FakeDaemon(events(said)) as daemon:
                with self.assertRaises(Failed) as raised:
                    list(AgentClient(daemon.path).follow("rq_1"))
            self.assertEqual(raised.exception.code, "version_mismatch", said)

    def test_what_is_no_agentd_is_said_to_be_none(self):
        for said in (b"SSH-2.0-OpenSSH\r\n", answer(b"<html>"), answer(b"<html>", 500)):
            with FakeDaemon(said) as daemon:
                with self.assertRaises(SandboxError) as raised:
                    AgentClient(daemon.path).info()
            self.assertEqual(raised.exception.code, "not_agentd")


if __name__ == "__main__":
    unittest.main()
