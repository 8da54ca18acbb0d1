"""No key shows on any surface of agentd."""

import base64
import json
import os
import pathlib
import sys
import unittest
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from stand import Stand, calls, envelope, failed, main, program, ran  # noqa: E402

TEXT = ran(envelope("text", "done") + "\n")


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


if __name__ == "__main__":
    main()
