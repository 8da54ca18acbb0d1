"""What agentd does when its sandbox, its provider or its configuration fails or lies."""

import json
import os
import pathlib
import socket
import sys
import threading
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from stand import Stand, balances, envelope, failed, main, program, ran, until  # noqa: E402

TEXT = ran(envelope("text", "done") + "\n")


class Sandbox(unittest.TestCase):
    def test_agentd_may_start_first(self):
        stand = Stand(self, with_box=False)
        stand.agent.start()
        self.assertEqual(stand.agent.call("GET", "/healthz").json()["sandbox"], "unreachable")
        for path in ("/v1/requests", "/v1/agent"):
            record = stand.agent.ask(path=path)
            self.assertEqual((record["state"], record["reason"]["code"]), ("failed", "sandbox"))
            self.assertIn("sbxd.sock", record["reason"]["text"])
            self.assertTrue(record["reason"]["fix"].startswith("start sbxd"), record["reason"])
            self.assertTrue(record["reason"]["text"].endswith(". Fix: " + record["reason"]["fix"]), record["reason"])
            self.assertEqual(record["cost_usd"], 0)
        self.assertEqual(stand.model.asked, [], "no model is paid for what cannot be run")
        done = stand.agent.agentctl("doctor")
        self.assertEqual(done.returncode, 3)
        self.assertIn(b"FAIL  sandbox", done.stdout)
        stand.start_box()
        self.assertEqual(stand.agent.ask()["state"], "succeeded")
        self.assertEqual(stand.agent.call("GET", "/healthz").json()["sandbox"], "ok")

    def test_a_sandbox_that_goes_and_comes_back_fails_only_what_it_missed(self):
        stand = Stand(self)
        stand.agent.start()
        self.assertEqual(stand.agent.ask()["state"], "succeeded")
        stand.box.close()
        os.unlink(stand.where / "sbxd.sock")
        record = stand.agent.ask()
        self.assertEqual((record["state"], record["reason"]["code"]), ("failed", "sandbox"))
        self.assertEqual({reserved for _, _, reserved in balances(stand.agent)}, {0})
        stand.start_box()
        self.assertEqual(stand.agent.ask()["state"], "succeeded")

    def test_one_that_went_is_told_at_once_after_a_request_had_no_answer_and_by_doctor(self):
        stand = Stand(self)
        stand.agent.start()
        for look in (lambda: stand.agent.ask(), lambda: stand.agent.agentctl("doctor")):
            self.assertEqual(stand.agent.call("GET", "/healthz").json()["sandbox"], "ok")
            stand.box.close()
            os.unlink(stand.where / "sbxd.sock")
            seen = look()
            if not isinstance(seen, dict):
                self.assertEqual(seen.returncode, 3)
                self.assertIn(b"FAIL  sandbox", seen.stdout)
            self.assertEqual(stand.agent.call("GET", "/healthz").json()["sandbox"], "unreachable")
            stand.start_box()

    def test_it_is_tried_once_more_without_another_model_call(self):
        stand = Stand(self)
        stand.agent.start()
        stand.play([program("x")], [{"status_code": 500, "body": {"detail": "broke"}}, TEXT])
        record = stand.agent.ask()
        self.assertEqual((record["state"], len(record["attempts"])), ("succeeded", 1))
        self.assertEqual((len(stand.model.asked), len(stand.box.ran)), (1, 2))

    def test_one_that_is_busy_is_asked_again_within_the_requests_time(self):
        stand = Stand(self)
        stand.agent.start()
        busy = {"status_code": 503, "body": {"detail": "no room"}, "headers": [("Retry-After", "0")]}
        stand.play([program("x")], [busy, busy, TEXT])
        record = stand.agent.ask()
        self.assertEqual((record["state"], len(record["attempts"]), len(stand.box.ran)), ("succeeded", 1, 3))
        stand.play([program("x")], [busy])
        record = stand.agent.ask()
        self.assertEqual((record["state"], record["reason"]["code"]), ("failed", "sandbox"))
        self.assertIn("no room", record["reason"]["text"])
        slow = dict(busy, headers=[("Retry-After", "30")])
        stand.play([program("x")], [slow])
        record = stand.agent.ask(budget={"wall_seconds": 2})
        self.assertIn(record["state"], ("failed", "gave_up"))
        self.assertLess(record["wall_seconds"], 20)

    def test_one_that_hangs_is_told_within_two_seconds(self):
        stand = Stand(self, with_box=False)
        with socket.socket(socket.AF_UNIX) as hung:     # takes connections, and never answers
            hung.bind(str(stand.where / "sbxd.sock"))
            hung.listen(128)
            stand.agent.start()
            for _ in range(3):
                began = time.monotonic()
                self.assertEqual(stand.agent.call("GET", "/healthz").json()["sandbox"], "silent")
                self.assertLess(time.monotonic() - began, 2)
            done = stand.agent.agentctl("doctor")
            self.assertEqual(done.returncode, 3)
            self.assertIn(b"FAIL  sandbox    sbxd takes connections and does not answer", done.stdout)
            self.assertIn(b"start it again", done.stdout)
        os.unlink(stand.where / "sbxd.sock")
        stand.start_box()
        until(lambda: stand.agent.call("GET", "/healthz").json()["sandbox"] == "ok", "it is well again")

    def test_one_that_went_is_noticed_before_a_model_is_paid(self):
        stand = Stand(self)
        stand.agent.start()
        self.assertEqual(stand.agent.ask()["state"], "succeeded")
        self.assertEqual(stand.agent.call("GET", "/healthz").json()["sandbox"], "ok")
        stand.box.close()
        os.unlink(stand.where / "sbxd.sock")
        until(lambda: stand.agent.call("GET", "/healthz").json()["sandbox"] == "unreachable", "healthz tells it")
        asked = len(stand.model.asked)
        for path in ("/v1/requests", "/v1/agent"):
            record = stand.agent.ask(path=path)
            self.assertEqual((record["state"], record["reason"]["code"], record["reason"]["class"]),
                             ("failed", "sandbox", "sandbox"))
            self.assertTrue(record["reason"]["fix"].startswith("start sbxd"), record["reason"])
            self.assertTrue(record["reason"]["text"].endswith(". Fix: " + record["reason"]["fix"]), record["reason"])
            self.assertEqual((record["attempts"], record["cost_usd"]), ([], 0))
        self.assertEqual(len(stand.model.asked), asked)

    def test_one_that_hangs_in_a_run_is_blamed_and_not_waited_for(self):
        stand = Stand(self)
        stand.agent.start()
        with socket.socket(socket.AF_UNIX) as hung:
            def hang(number, request):
                stand.box.close()
                os.unlink(stand.where / "sbxd.sock")
                hung.bind(str(stand.where / "sbxd.sock"))
                hung.listen(128)
                return program("x")
            stand.model.reply = hang
            record = stand.agent.ask()
        self.assertEqual((record["state"], record["reason"]["code"]), ("failed", "sandbox"))
        self.assertIn("does not answer", record["reason"]["text"])
        self.assertIn("start it again", record["reason"]["text"])
        self.assertEqual([attempt["class"] for attempt in record["attempts"]], ["sandbox"])
        self.assertLess(record["wall_seconds"], 60)
        self.assertEqual({reserved for _, _, reserved in balances(stand.agent)}, {0})

    def test_answers_that_are_no_results_are_errors_of_ours(self):
        stand = Stand(self)
        stand.agent.start()
        for body in ({}, [], {"status": "ok"}, dict(TEXT, stdout=7), dict(TEXT, files=[{"path": "x"}])):
            stand.play([program("x")], [{"status_code": 200, "body": body}])
            record = stand.agent.ask()
            self.assertEqual((record["state"], record["reason"]["code"]), ("failed", "sandbox"), body)


class Provider(unittest.TestCase):
    def gives_up(self, stand, *words, cost=False):
        """The request's record, which must have ended at the provider, saying each of the words."""
        record = stand.agent.ask()
        self.assertEqual((record["state"], record["reason"]["code"]), ("gave_up", "provider"), record["reason"])
        for word in words:
            self.assertIn(word, record["reason"]["text"])
        self.assertEqual(record["cost_usd"] > 0, cost)
        self.assertEqual({reserved for _, _, reserved in balances(stand.agent)}, {0})
        self.assertEqual(stand.box.ran, [])
        return record

    def test_one_that_is_down_is_named_and_costs_nothing(self):
        with socket.create_server(("127.0.0.1", 0)) as closed:
            url = f"http://127.0.0.1:{closed.getsockname()[1]}/v1"
        stand = Stand(self, {"base_url": url})
        stand.agent.start()
        self.gives_up(stand, url, "Fix: start the server, or check base_url")
        done = stand.agent.agentctl("doctor")
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stdout.decode(), f"FAIL  provider   openai: m-1 at {url}: {url}: .*connect")
        self.assertIn(b"fix: start the server, or check base_url", done.stdout)
        self.assertEqual(stand.agent.agentctl("ask", "q").returncode, 1)

    def test_a_wrong_key_is_said_without_being_shown(self):
        stand = Stand(self)
        stand.agent.start()
        stand.model.reply = lambda n, request: {
            "status": 401, "body": json.dumps({"error": {"message": f"Incorrect API key: {Stand.KEY}"}})}
        record = self.gives_up(stand, "refused the key (401)", "check api_key_file")
        done = stand.agent.agentctl("ask", "q")
        self.assertEqual(done.returncode, 1)
        for text in (json.dumps(record), stand.agent.said(), str(stand.agent.events(record["id"])),
                     (done.stdout + done.stderr).decode()):
            self.assertNotIn(Stand.KEY, text)
        self.assertEqual(set(stand.model.keys), {f"Bearer {Stand.KEY}"}, "it was the key that was sent")

    def test_an_unknown_model_is_named(self):
        stand = Stand(self)
        stand.agent.start()
        stand.model.reply = lambda n, request: {
            "status": 404, "body": json.dumps({"error": {"message": "The model `m-1` does not exist"}})}
        self.gives_up(stand, "`m-1` does not exist", "check model and base_url")

    def test_one_that_breaks_off_without_a_word_is_billed_as_reserved(self):
        stand = Stand(self)
        stand.agent.start()
        stand.model.reply = lambda n, request: {"status": 200, "body": "<html>busy</html>"}
        self.gives_up(stand, "not JSON", cost=True)

    def test_usage_that_cannot_be_is_billed_as_reserved_and_flagged(self):
        stand = Stand(self)
        stand.agent.start()
        honest = stand.agent.ask()
        for usage, flagged in ((None, False), ({"prompt_tokens": 0, "completion_tokens": 0}, True),
                               ({"prompt_tokens": -5, "completion_tokens": -5}, True),
                               ({"prompt_tokens": 10**9, "completion_tokens": 10**9}, True)):
            stand.play([program("x") | {"usage": usage}], [TEXT])
            record = stand.agent.ask()
            attempt = record["attempts"][0]
            self.assertEqual((record["state"], attempt["estimated"], attempt["usage_flagged"]),
                             ("succeeded", True, flagged), usage)
            self.assertGreater(record["cost_usd"], honest["cost_usd"])
            self.assertLessEqual(record["budget"]["cost_usd"]["used"], record["budget"]["cost_usd"]["limit"])
            self.assertLessEqual(record["budget"]["tokens"]["used"], record["budget"]["tokens"]["limit"])

    def test_a_reply_that_never_ends_is_cut_at_the_requests_time(self):
        stand = Stand(self)
        stand.agent.start()
        stand.play([{"text": "thinking", "hold": threading.Event()}], [TEXT])
        record = stand.agent.ask(budget={"wall_seconds": 2})
        self.assertEqual((record["state"], record["reason"]["ceiling"]), ("gave_up", "wall_seconds"))
        self.assertTrue(stand.model.closed.wait(60))
        self.assertLess(record["wall_seconds"], 60)

    def test_parallel_requests_keep_each_its_own_budget(self):
        stand = Stand(self, {"price_in": 3, "price_out": 15})
        stand.agent.start()
        stand.play([program("x")], [failed("NameError: x")])
        ids = [stand.agent.submit(f"r{i}", budget={"cost_usd": 0.015}) for i in range(20)]
        for each in ids:
            record = stand.agent.wait(each)
            self.assertEqual((record["state"], record["reason"]["ceiling"]), ("gave_up", "cost"), record["reason"])
            self.assertLessEqual(record["cost_usd"], 0.015)


class Configuration(unittest.TestCase):
    def refused(self, provider=None, more="", *words):
        stand = Stand(self, provider, more=more, with_box=False)
        code, said = stand.agent.run_to_end()
        self.assertEqual(code, 2, said)
        for word in (*words, "agentd.toml"):
            self.assertIn(word, said)
        self.assertNotIn(Stand.KEY, said)

    def test_a_budget_of_zero_is_refused_with_its_place(self):
        for key in ("attempts", "tokens", "cost_usd", "sandbox_seconds", "wall_seconds"):
            with self.subTest(key):
                self.refused(None, f"[budget]\n{key} = 0\n", key, "out of range")

    def test_a_provider_that_cannot_work_is_refused(self):
        self.refused({"kind": "telepathy"}, "", "provider.kind")
        self.refused({"model": None}, "", "model")
        self.refused({"base_url": "http://example.com/v1"}, "", "unencrypted")

    def test_a_key_file_that_is_not_there_or_open_to_others_is_refused(self):
        for trouble in ("gone", "open"):
            stand = Stand(self, with_box=False)
            if trouble == "gone":
                (stand.where / "key").unlink()
            else:
                (stand.where / "key").chmod(0o644)
            code, said = stand.agent.run_to_end()
            self.assertNotEqual(code, 0)
            self.assertIn(str(stand.where / "key"), said)
            self.assertNotIn(Stand.KEY, said)

    def test_without_a_model_the_first_line_says_that_it_replays(self):
        stand = Stand(self, {"kind": "replay", "base_url": None, "model": None, "api_key_file": None})
        stand.agent.start()
        self.assertRegex(stand.agent.said().splitlines()[0],
                         r"^agentd: provider: replay \(\d+ recorded replies of the shipped demo; no model is asked\)$")
        done = stand.agent.agentctl("ask", "nobody has asked this")
        self.assertEqual(done.returncode, 1)
        self.assertTrue(done.stderr.startswith(b"provider: replay (recorded replies of "))
        self.assertRegex(done.stderr.decode(), r"no recording .*[0-9a-f]{64}")


if __name__ == "__main__":
    main()
