"""A real agentd beside a real sbxd for tests: SBX_TEST_AGENTD names the program, or they are skipped."""

import json
import os
import pathlib
import subprocess
import time
import unittest

from sbx import Unavailable
from sbx.agent import AgentClient

from .daemon import PATIENCE, DaemonCase

PROGRAM = os.environ.get("SBX_TEST_AGENTD", "")
EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "examples"


def recording(label, call, program):
    """A line of recordings: found by the label alone, as no request has this hash."""
    return json.dumps({"prompt": "codegen.v1.python", "request_sha256": label[0] * 64,
                       "label": label, "call": call, "reply": f"```python\n{program}\n```",
                       "finish_reason": "stop",
                       "usage": {"input_tokens": 100, "output_tokens": 10}}) + "\n"


@unittest.skipUnless(os.access(PROGRAM, os.X_OK), "SBX_TEST_AGENTD names no program")
class AgentCase(DaemonCase):
    """Starts both for the class, on the demo's recordings and those of `RECORDINGS`."""

    RECORDINGS = ""

    @classmethod
    def setUpClass(cls):
        cls.agentd = None
        super().setUpClass()
        try:
            cls.start_agentd()
        except BaseException:
            cls.tearDownClass()
            raise

    @classmethod
    def start_agentd(cls):
        recordings = pathlib.Path(cls.directory, "recordings")
        recordings.mkdir()
        (recordings / "more.jsonl").write_text(cls.RECORDINGS)
        config = pathlib.Path(cls.directory, "agentd.toml")
        directories = json.dumps([str(EXAMPLES / "recordings"), str(recordings)])
        config.write_text(f'[provider]\nkind = "replay"\nrecordings = {directories}\n'
                          "price_in = 0.15\nprice_out = 0.6\n")
        cls.agent_socket = os.path.join(cls.directory, "agentd.sock")
        cls.agent_log = open(os.path.join(cls.directory, "agentd.log"), "wb")
        cls.agentd = subprocess.Popen(
            [PROGRAM, "--config", str(config), "--socket", cls.agent_socket, "--sbxd-socket",
             cls.socket, "--state-dir", os.path.join(cls.directory, "agentd")],
            stdout=cls.agent_log, stderr=cls.agent_log)
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                AgentClient(cls.agent_socket).info()
                return
            except Unavailable:
                if cls.agentd.poll() is not None or time.monotonic() > deadline:
                    raise
            time.sleep(0.01)  # nothing tells that a socket is about to appear

    @classmethod
    def tearDownClass(cls):
        if cls.agentd is not None:
            cls.agentd.terminate()
            cls.agentd.wait(PATIENCE)
            cls.agent_log.close()
        super().tearDownClass()
