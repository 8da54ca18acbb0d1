"""Many requests at once, and what the interface's answers take meanwhile, against the same calls when all is over.

Over, not before: a page of the history takes the longer the more there is to show.
"""

import json
import select
import statistics
import time

import record
from kept import Kept, request_bytes

IDLE_PASSES, PAUSE_SECONDS, END_SECONDS = 200, 0.005, 900
WANTED = 3.0
ROUTES = ("GET /healthz", "GET /v1/requests", "GET /v1/requests/{id}")


class Sampler:
    """Asks each route in turn and keeps what it took: {route: milliseconds of each call}."""

    def __init__(self, socket):
        self._connection = Kept(socket)
        self.samples = {route: [] for route in ROUTES}

    def ask(self, route, request=""):
        """The body of the answer."""
        method, target = route.replace("{id}", request).split()
        content = request_bytes(method, target)
        began = time.perf_counter()
        status, answer = self._connection.ask(content)
        self.samples[route].append((time.perf_counter() - began) * 1000)
        if status != 200:
            raise record.Failed(f"{method} {target}: {status}: {answer[:400]!r}")
        return answer

    def close(self):
        self._connection.close()


def idle(socket, request):
    """What the calls take while nothing is under way; `request` is one that has ended."""
    sampler = Sampler(socket)
    for _ in range(IDLE_PASSES):
        for route in ROUTES:
            sampler.ask(route, request)
        time.sleep(PAUSE_SECONDS)   # as between the passes of crowded()
    sampler.close()
    return sampler.samples


def submit_all(socket, chosen):
    """Connections with a request each on its way."""
    connections = []
    for case in chosen:
        connections.append((Kept(socket), request_bytes("POST", "/v1/requests", record.body_of(case))))
    for connection, content in connections:
        connection.send(content)
    return [connection for connection, _ in connections]


def accepted(waiting):
    """Ids of those requests that were answered by now; they are taken from the list."""
    ids = []
    for connection in select.select(waiting, [], [], 0)[0]:
        status, answer = connection.answer()
        if status != 202:
            raise record.Failed(f"a request was refused: {status}: {answer[:400]!r}")
        ids.append(json.loads(answer)["id"])
        waiting.remove(connection)
        connection.close()
    return ids


def crowded(socket, chosen):
    """Submits all at once and asks until all have ended: (samples, how many ended in which state, one's id, seconds)."""
    began = time.monotonic()
    sampler, under_way, ended, turn = Sampler(socket), [], {}, 0
    waiting = submit_all(socket, chosen)
    while waiting or under_way:
        if time.monotonic() - began > END_SECONDS:
            raise record.Failed(f"{len(waiting)} requests unanswered, {len(under_way)} under way after {END_SECONDS} s")
        under_way += accepted(waiting)
        sampler.ask(ROUTES[0])
        sampler.ask(ROUTES[1])
        if under_way:
            turn += 1
            request = under_way[turn % len(under_way)]
            document = json.loads(sampler.ask(ROUTES[2], request))
            if document["state"] in record.ENDED:
                under_way.remove(request)
                ended[request] = document["state"]
        time.sleep(PAUSE_SECONDS)   # a client that looks, not one that floods
    sampler.close()
    states = {state: list(ended.values()).count(state) for state in sorted(set(ended.values()))}
    return sampler.samples, states, next(iter(ended)), time.monotonic() - began


def ratios(quiet, busy):
    """{route: its median answer against the idle one}"""
    return {route: statistics.median(busy[route]) / statistics.median(quiet[route]) for route in ROUTES}
