"""agentd's own share of a request (P9): what it takes from its submission to its stored end, less what sbxd had of it.

The provider is replay, so no model is waited for, and a relay before sbxd tells how long that one had the run, and how
long it had it itself. What is left is all that agentd does: taking the request, the prompt, the ledger, two HTTP calls,
judging, the record on disk, the events. It is measured against a bare interpreter that runs between the requests.
"""

import json
import os
import pathlib
import time

import record
import small
from kept import Kept, request_bytes

BARE = ["/usr/bin/python3", "-I", "-S", "-c", "pass"]
WARM_UPS = 5
WANTED = 0.1
BARE_ROW, WHOLE, INSIDE = "bare `python3 -I -S -c pass`", "a request to agentd", "of it in sbxd"
BETWEEN = "of it in the relay before sbxd"
OWN = "agentd's own share"


def bare():
    process = os.posix_spawn(BARE[0], BARE, {"PATH": "/usr/bin:/bin"})
    if os.waitpid(process, 0)[1] != 0:
        raise record.Failed("the bare python3 failed")


def through_agentd(connection):
    """From the submission to the end of the event stream, which ends when the record is stored."""
    request = request_bytes("POST", "/v1/requests", record.body_of(small.case()))

    def run():
        status, answer = connection.ask(request)
        if status != 202:
            raise record.Failed(f"agentd answered {status}: {answer[:400]!r}")
        identity = json.loads(answer)["id"]
        _, stream = connection.ask(request_bytes("GET", f"/v1/requests/{identity}/events"))
        if b'"succeeded"' not in stream:
            raise record.Failed(f"the request did not succeed: {stream[-400:]!r}")

    return run


def cpu_seconds(pid):
    """What all threads of a process have used; None where the kernel does not tell."""
    try:
        files = pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")
        return sum(int(file.read_text().split()[0]) for file in files) / 1e9
    except (OSError, ValueError, IndexError):
        return None


def timed(work):
    """Milliseconds."""
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def measure(agentd, relay, rounds):
    """{row: milliseconds of each round}, and the CPU milliseconds of agentd for a request."""
    connection = Kept(agentd.socket)
    run = through_agentd(connection)
    samples = {name: [] for name in (BARE_ROW, WHOLE, INSIDE, BETWEEN, OWN)}
    before = None
    for turn in range(WARM_UPS + rounds):
        if turn == WARM_UPS:
            before = cpu_seconds(agentd.pid)
        alone = timed(bare)
        whole = timed(run)
        inside, between = (seconds * 1000 for seconds in relay.seconds())
        if turn >= WARM_UPS:
            for name, value in zip(samples, (alone, whole, inside, between, whole - inside - between)):
                samples[name].append(value)
    after = cpu_seconds(agentd.pid)
    connection.close()
    return samples, None if None in (before, after) else (after - before) * 1000 / rounds
