"""agentd's life from outside: starts and ends, what outlives it, bounds, budgets, users, TCP."""

import http.client
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
import unittest
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from stand import PROGRAMS, Stand, balances, calls, envelope, failed, main, program, ran, until  # noqa: E402

TABLE = ran(envelope("table", {"columns": ["a"], "rows": [[1]]}) + "\n")


def as_user(uid, action):
    """What the action gives in a process of that user."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgid(uid)
            os.setuid(uid)
            os.write(writer, json.dumps(action()).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return json.loads(answer)


class Life(unittest.TestCase):
    """Starts and ends of agentd."""

    def test_history_artifacts_and_events_outlive_the_daemon(self):
        stand = Stand(self)
        stand.agent.start()
        stand.play([program("x")], [TABLE])
        before = stand.agent.ask()
        events = stand.agent.events(before["id"])
        stand.agent.stop()
        self.assertEqual(stand.agent.process.returncode, 0)
        stand.agent.start()
        self.assertEqual(stand.agent.record(before["id"]), before)
        self.assertEqual(stand.agent.events(before["id"]), events)
        answer = stand.agent.call("GET", f"/v1/requests/{before['id']}/artifacts/table.csv")
        self.assertEqual((answer.status, answer.content.split()), (200, [b"a", b"1"]))

    def test_a_second_daemon_on_the_same_state_is_refused_and_harms_nothing(self):
        stand = Stand(self)
        stand.agent.start()
        hold = threading.Event()
        stand.play([program("x") | {"hold": hold}], [TABLE])
        request = stand.agent.submit()
        until(lambda: stand.agent.record(request)["state"] == "generate", "the model is asked")
        code, said = stand.agent.run_to_end()
        self.assertEqual(code, 1, said)
        self.assertIn(f"another agentd works in {stand.agent.state}", said)
        self.assertIn("agentd: fix: end that one first, or name another directory with --state-dir", said)
        hold.set()
        self.assertEqual(stand.agent.wait(request)["state"], "succeeded")
        self.assertEqual([kind for _, kind, _ in stand.agent.events(request)].count("end"), 1)

    def test_a_daemon_killed_during_a_model_call_leaves_a_failed_request_and_no_reservation(self):
        stand = Stand(self)
        stand.agent.start()
        stand.play([{"text": "thinking", "hold": threading.Event()}], [TABLE])
        request = stand.agent.submit()
        until(lambda: any(reserved for _, _, reserved in balances(stand.agent)), "a reservation")
        stand.agent.stop(signal.SIGKILL)
        self.assertTrue(any(reserved for _, _, reserved in balances(stand.agent)), "the test itself can fail")
        stand.agent.start()
        record = stand.agent.record(request)
        self.assertEqual((record["state"], record["reason"]["code"]), ("failed", "internal"))
        self.assertEqual([kind for _, kind, _ in stand.agent.events(request, 2)], ["end"])
        self.assertEqual({reserved for _, _, reserved in balances(stand.agent)}, {0})

    def test_a_daemon_killed_in_a_repair_leaves_the_attempts_that_were_made_and_paid_for(self):
        stand = Stand(self)
        stand.agent.start()
        stand.play([program("print(x)"), {"text": "thinking", "hold": threading.Event()}],
                   [failed("NameError: x"), TABLE])
        request = stand.agent.submit()
        until(lambda: len(stand.model.asked) == 2, "the model is asked again")
        stand.agent.stop(signal.SIGKILL)
        stand.agent.start()
        record = stand.agent.record(request)
        self.assertEqual((record["state"], record["reason"]["code"]), ("failed", "internal"))
        self.assertEqual([(each["class"], each["code"]) for each in record["attempts"]], [("runtime", "print(x)\n")])
        paid = sum(record["attempts"][0]["tokens"].values())
        self.assertEqual((record["tokens"], record["attempts_made"], record["cost_basis"]), (paid, 1, "estimate"))

    def test_each_attempt_is_a_line_of_the_log_in_figures_alone(self):
        stand = Stand(self)
        stand.agent.start()
        stand.play([program("quoted_from_a_model"), program("print(1)")], [failed("NameError: quoted_too"), TABLE])
        request = stand.agent.ask()["id"]
        stand.play([calls({"code": "x", "language": "python"}), {"text": "It is 1."}], [TABLE])
        task = stand.agent.ask(path="/v1/agent")["id"]
        stand.agent.stop()
        lines = [json.loads(line) for line in stand.agent.said().splitlines() if line.startswith("{")]
        attempts = [(line["request"], line["attempt"], line["class"], line["input_tokens"], line["tools"])
                    for line in lines if line["event"] == "attempt ended"]
        self.assertEqual(attempts, [(request, 1, "runtime", 1000, 0), (request, 2, "passed", 1000, 0),
                                    (task, 1, "done", 1000, 1), (task, 2, "done", 1000, 0)])
        self.assertEqual([line["request"] for line in lines if line["event"] == "request ended"], [request, task])
        self.assertNotIn("quoted", stand.agent.said())

    def test_after_sigterm_requests_may_end_and_after_another_they_are_cancelled(self):
        stand = Stand(self)
        stand.agent.start()
        stand.play([{"text": "thinking", "hold": threading.Event()}], [TABLE])
        request = stand.agent.submit()
        until(lambda: stand.agent.record(request)["state"] == "generate", "the model is asked")
        stand.agent.process.send_signal(signal.SIGTERM)
        until(lambda: stand.agent.call("POST", "/v1/requests", {"text": "t"}).status == 503, "nothing more is taken")
        self.assertEqual(stand.agent.record(request)["state"], "generate")
        stand.agent.process.send_signal(signal.SIGTERM)
        self.assertEqual(stand.agent.process.wait(120), 0)
        stand.agent.start()
        self.assertEqual(stand.agent.record(request)["state"], "cancelled")

    def test_a_second_signal_waits_for_nobody_who_does_not_read(self):
        stand = Stand(self, more="drain_seconds = 1000")
        stand.agent.start()
        large = ("f", bytes(4 << 20), "application/octet-stream")
        stand.play([program("x")], [ran(envelope("file", path="/output/f") + "\n", [large])])
        request = stand.agent.ask()["id"]
        with socket.socket(socket.AF_UNIX) as unread:
            unread.connect(str(stand.agent.socket))
            unread.sendall(f"GET /v1/requests/{request}/artifacts/f HTTP/1.1\r\nHost: a\r\n\r\n".encode())
            self.assertEqual(unread.recv(12), b"HTTP/1.1 200")
            stand.play([{"text": "thinking", "hold": threading.Event()}], [TABLE])
            request = stand.agent.submit()
            until(lambda: stand.agent.record(request)["state"] == "generate", "the model is asked")
            stand.agent.process.send_signal(signal.SIGTERM)
            until(lambda: stand.agent.call("POST", "/v1/requests", {"text": "t"}).status == 503, "it is ending")
            asked = time.monotonic()
            stand.agent.process.send_signal(signal.SIGTERM)
            self.assertEqual(stand.agent.process.wait(120), 0)
        self.assertLess(time.monotonic() - asked, 5, "as long as answers have after a first signal alone")

    def test_whoever_waits_for_a_request_that_the_daemons_end_cancels_gets_its_record(self):
        stand = Stand(self)
        stand.agent.start()
        stand.play([{"text": "thinking", "hold": threading.Event()}], [TABLE])
        with subprocess.Popen([PROGRAMS / "agentctl", "--socket", stand.agent.socket, "ask", "q"],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as client:
            said = ""
            while "generating" not in said:
                line = client.stdout.readline()
                self.assertTrue(line, said)
                said += line
            stand.agent.process.send_signal(signal.SIGTERM)
            until(lambda: stand.agent.call("POST", "/v1/requests", {"text": "t"}).status == 503, "it is ending")
            stand.agent.process.send_signal(signal.SIGTERM)
            said += client.communicate(timeout=120)[0]
        self.assertEqual(client.returncode, 1, said)
        self.assertIn("Cancelled.", said)
        self.assertEqual(stand.agent.process.wait(120), 0)

    def test_requests_beyond_the_bounds_are_refused_for_now(self):
        stand = Stand(self, more="max_running = 1\nmax_queued = 1")
        stand.agent.start()
        hold = threading.Event()
        stand.play([program("print(1)") | {"hold": hold}], [TABLE])
        ids = [stand.agent.submit() for _ in range(2)]
        answer = stand.agent.call("POST", "/v1/requests", {"text": "t"})
        self.assertEqual((answer.status, answer.json()["code"]), (429, "queue_full"))
        self.assertTrue(int(answer.headers["Retry-After"]) > 0)
        self.assertEqual(stand.agent.record(ids[1])["state"], "queued")
        hold.set()
        self.assertEqual({stand.agent.wait(each)["state"] for each in ids}, {"succeeded"})

    def test_one_slow_model_call_blocks_neither_other_requests_nor_the_interface(self):
        stand = Stand(self)
        stand.agent.start()
        hold = threading.Event()
        self.addCleanup(hold.set)
        stand.model.reply = lambda n, request: program("print(1)") | ({"hold": hold} if n == 1 else {})
        slow = stand.agent.submit()
        until(lambda: stand.model.asked, "the model is asked")
        record = stand.agent.ask()
        self.assertEqual(record["state"], "succeeded", record["reason"])
        self.assertEqual(stand.agent.record(slow)["state"], "generate")

    def test_tcp_is_answered_with_the_start_token_alone_and_to_pages_of_its_own(self):
        stand = Stand(self, more='listen = "127.0.0.1:0"')
        stand.agent.start()
        url = urllib.parse.urlsplit(next(word for word in stand.agent.said().split() if word.startswith("http://127")
                                         and "token=" in word))
        token = urllib.parse.parse_qs(url.query)["token"][0]

        def call(target, **headers):
            connection = http.client.HTTPConnection("127.0.0.1", url.port, timeout=60)
            try:
                connection.request("GET", target, headers={name.replace("_", "-"): value
                                                           for name, value in headers.items()})
                answer = connection.getresponse()
                body = answer.read().decode()
                self.assertNotIn(token, body)
                return answer.status, json.loads(body).get("code")
            finally:
                connection.close()

        self.assertEqual(call(f"{url.path}?{url.query}"), (200, None), "the URL as it was printed")
        self.assertEqual(call("/v1/requests"), (401, "token_required"))
        self.assertEqual(call("/v1/requests?token=" + token[:-1] + "x"), (401, "token_required"))
        self.assertEqual(call("/v1/requests?token=" + token), (200, None))
        self.assertEqual(call("/v1/requests", Authorization=f"Bearer {token}"), (200, None))
        self.assertEqual(call(f"/v1/requests?{token}=1"), (400, "unknown_parameter"))
        self.assertEqual(call("/v1/requests", Authorization=f"Bearer {token}", Host="example.com"),
                         (403, "wrong_host"))
        self.assertEqual(call("/v1/requests", Authorization=f"Bearer {token}", Origin="http://example.com"),
                         (403, "wrong_origin"))
        record = stand.agent.ask(f"what is {token}")
        self.assertIn("[redacted:own-secret]", record["text"])
        self.assertEqual(stand.agent.said().count(token), 1, "shown at the start and never again")

    def test_what_was_recorded_can_be_replayed(self):
        live = Stand(self, more="")
        recordings = live.where / "recordings"
        recordings.mkdir()
        live.agent.arguments = ["record", "--out", recordings / "made.jsonl"]
        live.agent.start()
        live.play([program("x"), program("print(1)")], [failed("NameError: x"), TABLE])
        first = live.agent.ask("count them")
        self.assertIn(", recorded to ", live.agent.said().splitlines()[0])
        live.play([calls({"code": "print(1)", "language": "python"}), {"text": "It is 1."}], [TABLE])
        self.assertEqual(live.agent.ask("find out", path="/v1/agent")["state"], "succeeded")
        live.agent.stop()
        again = Stand(self, {"kind": "replay", "base_url": None, "model": None, "api_key_file": None,
                             "recordings": [str(recordings)]})
        again.agent.start()
        again.play([], [failed("NameError: x"), TABLE])
        record = again.agent.ask("count them")
        self.assertEqual([attempt["code"] for attempt in record["attempts"]],
                         [attempt["code"] for attempt in first["attempts"]])
        self.assertEqual((record["provider"]["kind"], record["provider"]["replayed"]), ("replay", True))
        self.assertEqual(record["result"], first["result"])
        again.play([], [TABLE])
        self.assertEqual(again.agent.ask("find out", path="/v1/agent")["result"]["data"], "It is 1.")
        record = again.agent.ask("something else")
        self.assertEqual((record["state"], record["reason"]["code"]), ("gave_up", "provider"))
        self.assertRegex(record["reason"]["text"], r"[0-9a-f]{64}")

    def test_each_shipped_ceiling_is_reached_first_by_some_request(self):
        stand = Stand(self)
        stand.agent.start()
        ceilings = stand.agent.call("GET", "/v1/info").json()["ceilings"]
        self.assertEqual({name: ceilings[name] for name in ("attempts", "tokens", "cost_usd", "sandbox_seconds",
                                                            "wall_seconds")},
                         {"attempts": 3, "tokens": 24000, "cost_usd": 0.02, "sandbox_seconds": 60,
                          "wall_seconds": 180})
        dear = Stand(self, {"price_in": 3, "price_out": 15})
        dear.agent.start()
        long = program("x" * 9000) | {"usage": {"prompt_tokens": 9000, "completion_tokens": 2000}}
        late = failed("KeyError: 1", duration_seconds=29.8)
        for asked, reply, result, ceiling in ((stand, program("x"), failed("NameError: x"), "attempts"),
                                              (stand, long, failed("NameError: x"), "tokens"),
                                              (dear, program("x"), failed("NameError: x"), "cost"),
                                              (stand, program("x"), late, "sandbox_seconds")):
            asked.play([reply], [result])
            record = asked.agent.ask()
            self.assertEqual((record["state"], record["reason"]["ceiling"]), ("gave_up", ceiling), record["reason"])
            for name, used in record["budget"].items():
                self.assertLessEqual(used["used"], used["limit"], name)


@unittest.skipIf(os.geteuid() != 0, "needs root, to be two other users")
class Users(unittest.TestCase):
    def start(self, more=""):
        stand = Stand(self, more=more)
        stand.agent.start()
        stand.agent.socket.chmod(0o666)
        return stand

    def test_only_those_that_are_allowed_may_ask(self):
        stand = self.start("allow_uids = [2001]")
        for uid, status in ((2001, 200), (0, 200), (2002, 403)):
            self.assertEqual(as_user(uid, lambda: stand.agent.call("GET", "/v1/requests").status), status, uid)

    def test_none_sees_anything_of_anothers_request(self):
        stand = self.start()
        request = as_user(2001, stand.agent.submit)
        stand.agent.wait(request)
        at = f"/v1/requests/{request}"
        for method, target in (("GET", at), ("GET", at + "/events"), ("DELETE", at),
                               ("GET", at + "/artifacts/table.csv")):
            status = as_user(2002, lambda m=method, t=target: stand.agent.call(m, t).status)
            self.assertEqual(status, 404, (method, target))
        self.assertEqual(as_user(2002, lambda: stand.agent.call("GET", "/v1/requests").json()["requests"]), [])
        self.assertEqual(as_user(2001, lambda: stand.agent.call("GET", at).status), 200)


if __name__ == "__main__":
    main()
