"""agentd's own share of a request (P9): what it takes from its submission to its stored end, less what sbxd had of it.

The provider is replay, so no model is waited for, and a relay before sbxd tells how long that one had the run, and how
long it had it itself. What is left is all that agentd does: taking the request, the prompt, the ledger, two HTTP calls,
judging, the record on disk, the events. It is measured against a bare interpreter that runs between the requests.
The client and the relay are sbx-bench-share, compiled so that they themselves cost little.
"""

import json
import subprocess

import daemons
import record
import small

WANTED = 0.1
BARE_ROW, WHOLE, INSIDE = "bare `python3 -I -S -c pass`", "a request to agentd", "of it in sbxd"
BETWEEN = "of it in the relay before sbxd"
OWN = "agentd's own share"


class Client:
    """sbx-bench-share, listening as the sbxd of an agentd that is yet to start."""

    def __init__(self, relay, sbxd, rounds):
        self.relay = relay
        body = json.dumps(record.body_of(small.case()))
        words = [daemons.PROGRAMS / "sbx-bench-share", sbxd, relay, str(rounds), body]
        # The bare interpreter has this environment too.
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                         text=True, env={"PATH": "/usr/bin:/bin"})
        if not self._process.stdout.readline():
            raise record.Failed(self._process.communicate()[1].strip())

    def measure(self, agentd):
        """{row: milliseconds of each round}, and the CPU milliseconds of agentd for a request, None where not told."""
        printed, said = self._process.communicate(f"{agentd}\n")
        if self._process.returncode != 0:
            raise record.Failed(said.strip() or f"sbx-bench-share ended with {self._process.returncode}")
        told = json.loads(printed)
        samples = {BARE_ROW: told["bare"], WHOLE: told["whole"], INSIDE: told["sbxd"], BETWEEN: told["relay"]}
        samples[OWN] = [whole - inside - between for whole, inside, between
                        in zip(told["whole"], told["sbxd"], told["relay"])]
        return samples, told["agentd_cpu"]

    def close(self):
        self._process.kill()
        self._process.communicate()
