"""sbx.agent, by a scripted agentd."""

import io
import os
import pathlib
import tempfile
import unittest
from unittest import mock

from sbx import Failed, Refused, SandboxError, Unavailable
from sbx.agent import AgentClient, Budget, RequestFailed, run_agent, run_request

from .agent_answers import ACCEPTED, ATTEMPT, CANCELLED, END, RECORD, RUN, asked, event, events, record
from .fake import FakeDaemon, answer, problem


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
