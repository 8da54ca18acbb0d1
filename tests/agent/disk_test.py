"""What agentd does when the disk under its ledger is full, or its state directory is gone."""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from stand import PATIENCE, Stand, balances, envelope, failed, main, program, ran, until  # noqa: E402

TEXT = ran(envelope("text", "done") + "\n")
INSIDE = "SBX_TEST_SMALL_DISK"      # set in the process that runs in namespaces of its own


class SmallDisk(unittest.TestCase):
    def test_a_full_disk_under_the_ledger_is_a_typed_error_and_never_an_unrecorded_charge(self):
        inside = subprocess.run(
            ["unshare", "--user", "--map-root-user", "--mount", "--", sys.executable, __file__, "-v", "Inside"],
            env=dict(os.environ) | {INSIDE: "1"}, capture_output=True, text=True, timeout=4 * PATIENCE, check=False)
        self.assertEqual(inside.returncode, 0, inside.stderr)
        self.assertRegex(inside.stderr, r"Ran [1-9]\d* tests?")


class GoneState(unittest.TestCase):
    def setUp(self):
        self.stand = Stand(self)
        self.stand.agent.start()

    def refused(self, path):
        agent, model = self.stand.agent, self.stand.model
        asked = len(model.asked)
        answer = agent.call("POST", "/v1/requests", {"text": "x"})
        problem = answer.json()
        self.assertEqual((answer.status, problem["code"]), (500, "not_stored"), problem)
        self.assertIn(str(path), problem["detail"])
        self.assertIn("put the state directory back", problem["fix"])
        health = agent.call("GET", "/healthz").json()
        self.assertEqual((health["status"], health["store"], health["fix"]), ("failing", "failed", problem["fix"]))
        doctor = agent.agentctl("doctor")
        self.assertEqual(doctor.returncode, 3)
        self.assertRegex(doctor.stdout.decode(), f"FAIL  store .*{path} .*\n.*fix: put the state directory back")
        self.assertEqual(len(model.asked), asked, "no model was asked")

    def test_nothing_is_taken_until_it_is_back(self):
        agent, away = self.stand.agent, self.stand.where / "away"
        first = agent.ask()
        for path in (agent.state, *(agent.state / name for name in ("agentd.db", "agentd.db-wal", "agentd.lock"))):
            path.rename(away)
            self.refused(path)
            if path != agent.state:
                shutil.copy(away, path)         # another one in its place is not it
                self.refused(path)
                path.unlink()
            self.assertEqual(agent.record(first["id"]), first)
            away.rename(path)
            self.assertEqual(agent.call("GET", "/healthz").json()["status"], "ok")
            self.assertEqual(agent.ask()["state"], "succeeded")
        self.assertEqual(agent.said().count('"the state directory is back"'), 4)
        agent.stop()
        self.assertEqual(agent.process.returncode, 0)

    def lose(self, directory, replies, results):
        """A request under way when its directory is moved away, at its end."""
        agent, asked = self.stand.agent, len(self.stand.model.asked)
        hold = threading.Event()
        self.stand.play([replies[0] | {"hold": hold}, *replies[1:]], results)
        request = agent.submit()
        until(lambda: len(self.stand.model.asked) > asked, "the model is asked")
        directory.rename(self.stand.where / "away")
        hold.set()
        record = agent.wait(request)
        self.assertEqual(len(self.stand.model.asked), asked + 1, "no model was asked again")
        return record

    def test_no_model_is_asked_again_and_the_record_waits_for_it(self):
        agent = self.stand.agent
        record = self.lose(agent.state, [program("x")], [failed("NameError: x")])
        self.assertEqual((record["state"], record["reason"]["code"]), ("failed", "ledger"), record["reason"])
        self.assertIn("put the state directory back", record["reason"]["fix"])
        self.assertIn("was moved away", record["reason"]["text"])
        (self.stand.where / "away").rename(agent.state)
        until(lambda: agent.call("GET", "/healthz").json()["status"] == "ok", "all is stored")
        agent.stop(signal.SIGKILL)
        agent.start()
        self.assertEqual(agent.record(record["id"]), record)

    def test_an_end_without_it_says_what_is_lost(self):
        agent = self.stand.agent
        record = self.lose(agent.state, [program("x")], [failed("NameError: x")])
        agent.stop()
        self.assertEqual(agent.process.returncode, 1)
        self.assertIn("the state directory is still gone", agent.said())
        self.assertIn(record["id"], agent.said().split('"a record is lost"')[1].splitlines()[0])

    def test_files_without_their_directory_fail_with_a_fix(self):
        agent = self.stand.agent
        files = ran(envelope("file", path="/output/f") + "\n", [("f", b"x", "text/plain")])
        record = self.lose(agent.state / "artifacts", [program("x")], [files])
        self.assertEqual((record["state"], record["reason"]["code"]), ("failed", "internal"), record["reason"])
        self.assertIn("artifacts directory", record["reason"]["fix"])


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
            self.assertRegex(record["reason"]["text"], "could not be stored: .*No space left on device. Fix: make room")
            self.assertIn("make room", record["reason"]["fix"])
            self.assertEqual(agent.agentctl("show", record["id"]).returncode, 3)
            self.stand.play([program("x")], [TEXT])
            self.assertEqual(agent.ask()["state"], "succeeded")


if __name__ == "__main__":
    main()
