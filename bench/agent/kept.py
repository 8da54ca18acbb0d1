"""HTTP on a kept connection to a Unix socket, for timing: bytes and a socket, so that the client costs little."""

import json
import socket

TIMEOUT_SECONDS = 300


def request_bytes(method, target, body=None):
    content = b"" if body is None else json.dumps(body).encode()
    return (f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(content)}\r\n\r\n").encode() + content


def length_of(head):
    found = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    if not found:
        raise ConnectionError("an answer does not tell its length")
    return int(found[0].split(b":")[1])


class Kept:
    """One connection; answers are (status, body), none of them in chunks. ConnectionError when the other side goes."""

    def __init__(self, path):
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(TIMEOUT_SECONDS)
        self._socket.connect(path)

    def fileno(self):
        return self._socket.fileno()

    def send(self, request):
        self._socket.sendall(request)

    def ask(self, request):
        self.send(request)
        return self.answer()

    def answer(self):
        head, body = self._head()
        length = length_of(head)
        while len(body) < length:
            body += self._more()
        return int(head.split(None, 2)[1]), body

    def _head(self):
        """The head of an answer, and what came of the body with it."""
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._more()
        return data.split(b"\r\n\r\n", 1)

    def _more(self):
        data = self._socket.recv(1 << 18)
        if not data:
            raise ConnectionError("the connection was closed within an answer")
        return data

    def close(self):
        self._socket.close()
