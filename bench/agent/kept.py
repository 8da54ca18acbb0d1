"""HTTP on a kept connection to a Unix socket, for timing: bytes and a socket, so that the client itself costs little."""

import json
import socket

TIMEOUT_SECONDS = 300
LAST_CHUNK, NO_CHUNK = b"\r\n0\r\n\r\n", b"0\r\n\r\n"


def request_bytes(method, target, body=None):
    content = b"" if body is None else json.dumps(body).encode()
    return (f"{method} {target} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(content)}\r\n\r\n").encode() + content


def length_of(head):
    """None when the head does not tell the body's length."""
    found = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return int(found[0].split(b":")[1]) if found else None


class Kept:
    """One connection; answers are (status, body). A body that comes in chunks is left in them: that is for event
    streams, whose text is looked for in it. ConnectionError when the other side goes."""

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
        head, body = self._whole()
        return int(head.split(None, 2)[1]), body

    def exchange(self, request):
        """The answer as it came, with its head."""
        self.send(request)
        return b"\r\n\r\n".join(self._whole())

    def _whole(self):
        head, body = self._head()
        length = length_of(head)
        while not (body.endswith(LAST_CHUNK) or body == NO_CHUNK) if length is None else len(body) < length:
            body += self._more()
        return head, body

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
