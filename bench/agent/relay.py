"""Stands between agentd and sbxd and tells how long sbxd, and how long it itself, had each request.

A process of its own, so that it never waits for the client that measures. It passes requests on one after another.
What it takes to be woken, and to send the answer once it has told, counts as agentd's.
"""

import os
import select
import socket
import struct
import time
import traceback

from kept import Kept, length_of

SECONDS = struct.Struct("dd")   # sbxd's, the relay's


class Relay:
    """Listens on `path` until closed."""

    def __init__(self, path, sbxd):
        self.socket = str(path)
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(self.socket)
        os.chmod(self.socket, 0o666)
        listening.listen()
        self._told, telling = os.pipe()
        self._stop, stopping = os.pipe()
        self._process = os.fork()
        if self._process == 0:
            os.close(stopping)
            try:
                serve(listening, Kept(sbxd), telling, self._stop)
            except BaseException:   # whatever it is: this copy of the bench must end here
                traceback.print_exc()
            finally:
                os._exit(0)
        os.close(telling)
        os.close(self._stop)
        self._stopping = stopping
        listening.close()
        os.set_blocking(self._told, False)

    def seconds(self):
        """What sbxd had since the last call, and what the relay itself took."""
        try:
            data = os.read(self._told, 1 << 16)
        except BlockingIOError:
            return 0.0, 0.0
        return tuple(map(sum, zip(*SECONDS.iter_unpack(data))))

    def close(self):
        os.close(self._stopping)
        os.waitpid(self._process, 0)
        os.close(self._told)


def request_from(connection):
    """A whole request; empty when the other side has closed."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(1 << 16)
        if not more:
            return b""
        data += more
    head, body = data.split(b"\r\n\r\n", 1)
    missing = (length_of(head) or 0) - len(body)
    while missing > 0:
        more = connection.recv(1 << 16)
        data, missing = data + more, missing - len(more)
    return data


def serve(listening, sbxd, telling, stop):
    connections = []
    while True:
        readable = select.select([listening, stop, *connections], [], [])[0]
        woken = time.monotonic()
        for ready in readable:
            if ready == stop:
                return
            if ready is listening:
                connections.append(listening.accept()[0])
                continue
            request = request_from(ready)
            if not request:
                connections.remove(ready)
                ready.close()
                continue
            began = time.monotonic()
            answer = sbxd.exchange(request)
            had = time.monotonic() - began
            # Before the answer, so that whoever has that finds it told.
            os.write(telling, SECONDS.pack(had, time.monotonic() - woken - had))
            ready.sendall(answer)
            woken = time.monotonic()
