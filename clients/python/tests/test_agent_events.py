"""The events of a request, by a scripted agentd: streams that end, are lost, and are left."""

import threading
import time
import unittest
from unittest import mock

import sbx.agent
from sbx import Unavailable
from sbx.agent import AgentClient, RequestStream, run_request, stream_request

from .agent_answers import ACCEPTED, CANCELLED, END, asked, at_once, event, events, record
from .fake import FakeDaemon, ResettingDaemon


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
