"""What agentd does when something around it fails or lies, and that no key shows on any surface."""

import base64
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

from stand import PATIENCE, Stand, balances, calls, envelope, failed, main, program, ran, until  # noqa: E402

TEXT = ran(envelope("text", "done") + "\n")
INSIDE = "SBX_TEST_SMALL_DISK"      # set in the process that runs in namespaces of its own


class Sandbox(unittest.TestCase):
    def test_agentd_may_start_first(self):
        stand = Stand(self, with_box=False)
        stand.agent.start()
        self.assertEqual(stand.agent.call("GET", "/healthz").json()["sandbox"], "unreachable")
        for path in ("/v1/requests", "/v1/agent"):
            record = stand.agent.ask(path=path)
            self.assertEqual((record["state"], record["reason"]["code"]), ("failed", "sandbox"))
            self.assertIn("sbxd.sock", record["reason"]["text"])
            self.assertIn("Fix: start sbxd", record["reason"]["text"])
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
            self.assertIn("Fix: start sbxd", record["reason"]["text"])
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


class Redaction(unittest.TestCase):
    """A key of agentd's own in each form, and one of another vendor's shape, put wherever a model, a program or a
    client can put something."""

    VENDOR = ("sk" + "-ant-api03-" + "groOx9ye17SWjAEVaSZJ0oVeMmLRLTq10V7suW9zrl" +
              "SaWnPsPW23C-L9WXuHM-G1cON_Ks9dp4FLfrYb9JF8e")
    FORMS = {"plain": Stand.KEY, "base64": base64.b64encode(b"k=" + Stand.KEY.encode()).decode(),
             "hex": Stand.KEY.encode().hex(), "url": urllib.parse.quote(Stand.KEY, safe=""), "vendor": VENDOR}
    ORDINARY = "an-ordinary-word-4711"     # the control: shown wherever the others would be
    # What may be left of none of them.
    SEEDS = {"plain": Stand.KEY[8:24], "base64": base64.b64encode(b"k=" + Stand.KEY.encode()).decode()[8:32],
             "hex": Stand.KEY[4:16].encode().hex(), "url": "%2BXYZ", "vendor": VENDOR[20:60]}

    def check(self, surfaces):
        for surface, text in surfaces.items():
            if isinstance(text, bytes):
                text = text.decode("utf-8", "replace")
            for form, seed in self.SEEDS.items():
                self.assertNotIn(seed, text, f"{form} on {surface}")

    def test_none_is_on_any_surface(self):
        stand = Stand(self, more='log_level = "debug"')
        agent = stand.agent
        agent.start()
        every = " ".join([self.ORDINARY, *self.FORMS.values()])
        name = f"{self.ORDINARY}-{Stand.KEY}-{self.VENDOR}.csv"     # the key's slash makes a folder of its beginning
        results = {
            "text": ran(envelope("text", every, note=every) + "\n", stderr=every),
            "table": ran(envelope("table", {"columns": [every], "rows": [[every], [{every: every}]]}) + "\n"),
            "file": ran(envelope("file", path=f"/output/{name}", data={every: every}) + "\n",
                        [(name, every.encode(), "text/csv")],
                        refused=[{"path": every, "reason": every}]),
            "raw": ran(every + "\n"),
            "error": failed(f"Traceback\n  {every}\nKeyError: {every}",
                            notes=[{"code": "missing_module", "text": every, "source": "program"}])}
        surfaces = {}
        for kind, result in results.items():
            stand.play([program(f"print('{self.ORDINARY} {self.VENDOR}')")], [result])
            record = agent.ask(f"use {every}", label=self.VENDOR[:80],
                               files=[{"name": f"{self.VENDOR}.csv", "content_base64": "eA=="}])
            self.assertIn("[redacted:", json.dumps(record), "the test itself can fail")
            request = record["id"]
            surfaces[f"{kind}: record"] = json.dumps(record)
            surfaces[f"{kind}: events"] = str(agent.events(request))
            for artifact in record["artifacts"]:
                at = urllib.parse.quote(artifact["name"])
                answer = agent.call("GET", f"/v1/requests/{request}/artifacts/{at}")
                self.assertEqual(answer.status, 200)
                surfaces[f"{kind}: {artifact['name']}"] = str(answer.headers) + answer.content.decode()
            saved = stand.where / f"saved-{kind}"
            done = agent.agentctl("show", request, "--save", saved)
            surfaces[f"{kind}: agentctl"] = done.stdout + done.stderr
            surfaces[f"{kind}: saved"] = "".join(path.name + path.read_text() for path in saved.glob("*"))
            surfaces[f"{kind}: agentctl --json"] = agent.agentctl("show", request, "--json").stdout
        stand.play([program(f"print('{every}')")], [])      # holds agentd's own key: not run
        record = agent.ask()
        self.assertEqual({attempt["error"]["code"] for attempt in record["attempts"]}, {"own_secret"})
        self.check({"program: record": json.dumps(record), "program: events": str(agent.events(record["id"]))})
        stand.play([calls({"language": "python", "code": every}, every), {"text": every}],
                   [ran(every, stderr=every)])
        record = agent.ask(every, path="/v1/agent")
        surfaces["tools: record"] = json.dumps(record)
        surfaces["tools: events"] = str(agent.events(record["id"]))
        stand.model.reply = lambda n, request: {"status": 400, "body": json.dumps({"error": {"message": every}})}
        record = agent.ask()
        self.assertIn("[redacted:", record["reason"]["text"])
        surfaces["provider's error"] = json.dumps(record) + str(agent.events(record["id"]))
        stand.play([program("x")], [{"status_code": 500, "body": {"detail": every, "fix": every}}])
        surfaces["sandbox's error"] = json.dumps(agent.ask())
        for form, value in self.FORMS.items():
            name = f"{self.ORDINARY} {value}"
            for kind, body in (("name", {name: 1}), ("budget", {"text": "a", "budget": {name: 1}})):
                surfaces[f"problem {kind} {form}"] = agent.call("POST", "/v1/requests", body).content
        surfaces["history"] = agent.call("GET", "/v1/requests?limit=200").content
        surfaces["agentctl history"] = agent.agentctl("history").stdout
        surfaces["metrics"] = agent.call("GET", "/metrics").content
        surfaces["info"] = agent.call("GET", "/v1/info").content
        agent.stop()
        surfaces["log"] = agent.said()
        for path in sorted(agent.state.rglob("*")):
            if path.is_file():
                surfaces[f"state: {path.name}"] = path.read_bytes()
        shown = {name for name, text in surfaces.items()
                 if self.ORDINARY in (text if isinstance(text, str) else text.decode("utf-8", "replace"))}
        silent = {name for name in surfaces if name.endswith((": events", "metrics", "info", "log", ": saved"))
                  or name.startswith("state: ")}
        self.assertLessEqual(set(surfaces) - silent, shown, "surfaces that show nothing of what was put there")
        self.assertIn("file: saved", shown)
        self.assertTrue(any(name.startswith("state: ") for name in shown))
        self.check(surfaces)

    def test_the_sandbox_and_the_model_get_no_secret_of_agentds(self):
        stand = Stand(self, environment={"CANARY": Stand.KEY[::-1]})
        stand.agent.start()
        stand.play([program("x"), program("y")], [failed("KeyError: 1"), TEXT])
        stand.agent.ask()
        seen = json.dumps(stand.box.ran) + json.dumps(stand.model.asked)
        self.assertEqual(len(stand.box.ran), 2)
        for secret in (Stand.KEY, Stand.KEY[::-1], str(stand.where), "CANARY"):
            self.assertNotIn(secret, seen)
        for run in stand.box.ran:
            self.assertEqual(set(run), {"language", "code", "limits", "collect"})

    def test_the_key_is_in_neither_the_arguments_nor_the_environment_of_the_daemon(self):
        stand = Stand(self, {"api_key_file": None, "api_key_env": "MODEL_KEY"}, environment={"MODEL_KEY": Stand.KEY})
        stand.agent.start()
        self.assertEqual(stand.agent.ask()["state"], "succeeded")
        self.assertEqual(set(stand.model.keys), {f"Bearer {Stand.KEY}"})
        process = pathlib.Path(f"/proc/{stand.agent.process.pid}")
        self.assertNotIn(Stand.KEY, process.joinpath("cmdline").read_text())
        if os.geteuid() != 0:
            with self.assertRaises(PermissionError):
                process.joinpath("environ").read_bytes()


class SmallDisk(unittest.TestCase):
    def test_a_full_disk_under_the_ledger_is_a_typed_error_and_never_an_unrecorded_charge(self):
        inside = subprocess.run(
            ["unshare", "--user", "--map-root-user", "--mount", "--", sys.executable, __file__, "-v", "Inside"],
            env=dict(os.environ) | {INSIDE: "1"}, capture_output=True, text=True, timeout=4 * PATIENCE, check=False)
        self.assertEqual(inside.returncode, 0, inside.stderr)
        self.assertRegex(inside.stderr, r"Ran [1-9]\d* tests?")


if INSIDE in os.environ:
    class Inside(unittest.TestCase):
        """In a user and mount namespace, on a tmpfs of its own."""

        def setUp(self):
            self.stand = Stand(self)
            state = self.stand.agent.state
            state.mkdir(mode=0o700)
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3M,mode=700", "none", state], check=True)
            self.addCleanup(subprocess.run, ["umount", "-l", state], check=True)
            self.ballast = state / "ballast"
            self.stand.agent.start()

        def fill(self):
            with open(self.ballast, "wb", buffering=0) as file:
                try:
                    while True:
                        file.write(b"x" * 4096)
                except OSError as error:
                    self.assertEqual(error.errno, 28)

        def room(self):
            self.ballast.unlink()

        def test_requests_are_refused_and_taken_again_when_there_is_room(self):
            agent = self.stand.agent
            self.assertEqual(agent.ask()["state"], "succeeded")
            asked = len(self.stand.model.asked)
            self.fill()
            for _ in range(3):
                answer = agent.call("POST", "/v1/requests", {"text": "t" * 9000})
                problem = answer.json()
                self.assertEqual((answer.status, problem["code"]), (500, "not_stored"), problem)
                self.assertIn("make room", problem["fix"])
            self.assertEqual(len(self.stand.model.asked), asked, "no model was asked")
            done = agent.agentctl("ask", "t" * 9000)
            self.assertEqual(done.returncode, 3)
            self.assertIn(b"make room", done.stderr)
            self.assertEqual(agent.call("GET", "/v1/requests").status, 200)
            self.room()
            self.assertEqual(agent.ask()["state"], "succeeded")

        def test_a_reservation_that_cannot_be_written_ends_the_request_before_the_model_is_asked_again(self):
            agent, model = self.stand.agent, self.stand.model
            hold = threading.Event()
            self.stand.play([program("x") | {"hold": hold}], [failed("NameError: x" * 500)])
            request = agent.submit()
            until(lambda: agent.record(request)["state"] == "generate" and model.asked, "the model is asked")
            self.fill()
            hold.set()
            record = agent.wait(request)
            self.assertEqual((record["state"], record["reason"]["code"]), ("failed", "ledger"), record["reason"])
            self.assertEqual(len(model.asked), 1)
            self.assertGreater(record["tokens"], 0, "what was spent is told")
            (_, settled, reserved), = [each for each in balances(agent) if each[0].endswith(f"{request}/tokens")]
            self.assertGreaterEqual(settled + reserved, record["tokens"], "and on record")
            self.room()
            self.stand.play([program("x")], [TEXT])
            self.assertEqual(agent.ask("another")["state"], "succeeded")

        def show(self, request):
            return self.stand.agent.record(request)

        def full_during_the_call(self):
            """A request whose disk is full from the middle of its model call on, at its end."""
            agent, model = self.stand.agent, self.stand.model
            hold, asked = threading.Event(), len(model.asked)
            self.stand.play([program("x") | {"hold": hold}], [TEXT])
            request = agent.submit("t" * 9000)
            until(lambda: len(model.asked) > asked, "the model is asked")
            self.fill()
            hold.set()
            return request, agent.wait(request)

        def test_no_run_follows_a_charge_that_cannot_be_written_and_it_is_written_when_there_is_room(self):
            agent = self.stand.agent
            request, record = self.full_during_the_call()
            self.assertEqual((record["state"], record["reason"]["code"]), ("failed", "ledger"), record["reason"])
            self.assertEqual(self.stand.box.ran, [])
            self.assertEqual([attempt["outcome"] for attempt in record["attempts"]], ["not_run"])
            health = agent.call("GET", "/healthz").json()
            self.assertEqual((health["status"], health["store"]), ("failing", "failed"))
            metrics = agent.call("GET", "/metrics").content.decode()
            self.assertRegex(metrics, r"(?m)^agentd_unwritten_charges [1-9]")
            self.assertRegex(metrics, r"(?m)^agentd_unsaved_records 1$")
            self.room()
            until(lambda: agent.call("GET", "/healthz").json()["store"] == "ok", "all is written")
            (_, settled, reserved), = [each for each in balances(agent) if each[0].endswith(f"{request}/tokens")]
            self.assertEqual((settled, reserved), (record["tokens"], 0))
            agent.stop(signal.SIGKILL)      # what is on the disk is all that is left
            agent.start()
            self.assertEqual(self.show(request), record)

        def test_a_result_that_could_not_be_stored_is_written_at_the_end_where_there_is_room(self):
            agent = self.stand.agent
            for room in (True, False):
                hold, ran_before = threading.Event(), len(self.stand.box.ran)
                self.stand.play([program("x")], [{"hold": hold, "then": ran(
                    envelope("text", "long " * 2000) + "\n")}])
                request = agent.submit("t" * 9000)
                until(lambda: len(self.stand.box.ran) > ran_before, "its program runs")
                self.fill()
                hold.set()
                record = agent.wait(request)
                self.assertEqual(record["state"], "succeeded", record["reason"])
                if room:
                    self.room()
                agent.process.send_signal(signal.SIGTERM)
                self.assertEqual(agent.process.wait(PATIENCE), 0 if room else 1)
                if not room:
                    self.assertIn(request, agent.said().split('"a record is lost"')[1].splitlines()[0])
                    self.room()
                agent.start()
                self.assertEqual(self.show(request)["state"], "succeeded" if room else "failed")
                if room:
                    self.assertEqual(self.show(request), record)

        def test_files_that_cannot_be_stored_are_no_success(self):
            agent = self.stand.agent
            content = os.urandom(4 << 20)
            self.stand.play([program("x")], [ran(envelope("file", path="/output/f") + "\n",
                                                 [("f", content, "application/octet-stream")])])
            record = agent.ask()
            self.assertEqual((record["state"], record["artifacts"]), ("failed", []), record["reason"])
            self.assertIn("could not be stored", record["reason"]["text"])
            self.assertEqual(agent.agentctl("show", record["id"]).returncode, 3)
            self.stand.play([program("x")], [TEXT])
            self.assertEqual(agent.ask()["state"], "succeeded")


if __name__ == "__main__":
    main()
