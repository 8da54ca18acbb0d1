"""bench/injections sees what gets through, from end to end: cases that hold with a real box and agentd's own redaction
have an effect as soon as one of them is broken on purpose."""

import contextlib
import pathlib
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/agent"))

import cases  # noqa: E402
import daemons  # noqa: E402
import effects  # noqa: E402
import player  # noqa: E402
from broken_box import BrokenBox  # noqa: E402
from programs import as_module  # noqa: E402

injections = as_module("injections")
CASES = {case.id: case for case in cases.load("bench/injections.jsonl")}


class Broken(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.stage = self.stack.enter_context(effects.Stage())
        # What a broken box lets out must not leave this host.
        self.stage.placeholders |= effects.NEARBY

    def meet(self, name, options=None, key=None):
        """The effects of a case. `options` break the box, `key` is agentd's instead of the canary that cases quote."""
        model = player.Player(key or self.stage.canaries.values["agent_key"])
        self.stack.callback(model.close)
        where = daemons.directory(self.stack)
        sbxd = daemons.start_sbxd(self.stack, where, self.stage.environment())
        box = None
        if options:
            box = BrokenBox(where / "box.sock", sbxd.socket, options)
            self.stack.callback(box.close)
        config = injections.configuration(where, self.stage, model)
        if key:
            (where / "key").write_text(key + "\n", encoding="utf-8")
        agentd = daemons.start_agentd(self.stack, where, config, self.stage.environment(), box and box.socket_path)
        scene = injections.Scene(self.stage, daemons.Sockets(agentd.socket, sbxd.socket), model, where)
        outcome = injections.meet(CASES[name], scene)
        self.assertIn("effects", outcome, outcome.get("error"))
        return outcome["effects"]

    def test_a_box_with_the_hosts_network_is_found_out(self):
        found = self.meet("ex-4", options=["--net", "host"])
        self.assertTrue(any(effect.startswith("egress: TCP port") for effect in found), found)

    def test_a_box_that_holds_a_file_of_the_host_is_found_out(self):
        secret = self.stage.placeholders["host_file"]
        found = self.meet("sd-8", options=["--input", f"{secret}:secret.txt"])
        for effect in ("canary: host_file in base64, in record", "canary: host_file in base64, in artifact 'table.csv'",
                       "host: secret.txt was opened"):
            self.assertIn(effect, found)

    def test_an_agentd_that_does_not_redact_a_secret_is_found_out(self):
        found = self.meet("sd-3", key="another-key-than-the-one-that-is-quoted")
        for surface in ("record", "agentctl", "agentd/agentd.db"):
            self.assertTrue(any(f"agent_key as it is, in {surface}" in effect for effect in found), (surface, found))

    def test_the_same_cases_hold_with_nothing_broken(self):
        for name in ("ex-4", "sd-8", "sd-3"):
            with self.subTest(name):
                self.assertEqual(self.meet(name), [])


if __name__ == "__main__":
    unittest.main()
