"""sbx.agent against a real agentd and sbxd, on recordings."""

import unittest

from sbx import Refused
from sbx.agent import (AgentClient, Budget, run_agent, run_request, stream_request)

from .agentd import EXAMPLES, AgentCase, recording

HOUSES = {"houses.csv": EXAMPLES / "houses.csv"}


class Agent(AgentCase):
    RECORDINGS = (recording("slow", 1, "import time\ntime.sleep(600)") +
                  recording("wrong", 1, "raise KeyError('a')"))

    def test_a_chart_comes_back_as_a_picture(self):
        got = run_request("plot the distribution of price", files=HOUSES, socket=self.agent_socket)
        self.assertTrue(got.ok, got.reason)
        self.assertEqual((got.envelope.type, len(got.attempts)), ("chart", 1))
        self.assertEqual((got.provider.kind, got.provider.replayed), ("replay", True))
        self.assertGreater(got.cost, 0)
        self.assertIn(got.envelope.artifact, [each.name for each in got.artifacts])
        self.assertTrue(got.get(got.envelope.artifact).startswith(b"\x89PNG"))

    def test_an_attempt_that_fails_is_repaired_and_on_record(self):
        with stream_request("which district is the most expensive per square metre?", files=HOUSES,
                            socket=self.agent_socket) as stream:
            states = [event.state for event in stream]
        got = stream.result
        self.assertEqual([each.class_ for each in got.attempts], ["runtime", None])
        self.assertIn("KeyError", got.attempts[0].error.detail)
        self.assertEqual(got.envelope.data["rows"][0][0], "Old Town")
        self.assertIn("repair", states)
        self.assertEqual(states[-1], "succeeded")
        self.assertEqual(got.get("table.csv").count(b"\n"), 7)

    def test_a_javascript_program_makes_a_file(self):
        got = run_request("make a JSON file with the number of houses and the median price per "
                          "district", "javascript", files=HOUSES, socket=self.agent_socket)
        self.assertEqual((got.envelope.type, got.envelope.artifact), ("file", "districts.json"))

    def test_a_task_is_answered_from_runs_of_code(self):
        got = run_agent("is a garden worth anything here?", files=HOUSES, socket=self.agent_socket)
        self.assertTrue(got.ok, got.reason)
        self.assertEqual(got.mode, "tools")
        self.assertEqual(got.envelope.type, "text")
        runs = [use.run.status for each in got.attempts for use in each.tools]
        self.assertEqual(set(runs), {"ok"})

    def test_a_ceiling_ends_in_giving_up(self):
        got = run_request("anything", label="wrong", budget=Budget(attempts=1),
                          socket=self.agent_socket)
        self.assertTrue(got.gave_up)
        self.assertEqual((got.reason.code, got.reason.ceiling), ("ceiling", "attempts"))
        self.assertEqual(got.budget["attempts"].limit, 1)

    def test_a_ceiling_above_the_configured_one_is_refused(self):
        with self.assertRaises(Refused) as raised:
            run_request("anything", budget=Budget(attempts=9), socket=self.agent_socket)
        self.assertEqual((raised.exception.code, raised.exception.field),
                         ("above_ceiling", "budget.attempts"))

    def test_leaving_the_stream_cancels_the_run(self):
        with stream_request("anything", label="slow", socket=self.agent_socket) as stream:
            for event in stream:
                if event.state == "execute":
                    break
        client = AgentClient(self.agent_socket)
        self.assertEqual([each.state for each in client.follow(stream.id)][-1], "cancelled")
        self.assertEqual(client.show(stream.id).state, "cancelled")

    def test_the_history_tells_of_what_was_asked(self):
        client = AgentClient(self.agent_socket)
        done = run_request("anything at all", label="wrong", budget=Budget(attempts=1),
                           socket=self.agent_socket)
        newest = next(iter(client.history()))
        self.assertEqual((newest.id, newest.text), (done.id, "anything at all"))
        with self.assertRaises(Refused) as raised:
            client.cancel(done.id)
        self.assertEqual(raised.exception.code, "already_ended")


if __name__ == "__main__":
    unittest.main()
