"""A daemon that says what it is told to, on a Unix socket of its own."""

from __future__ import annotations

import json
import os
import shutil
import socket
import tempfile
import threading
from typing import Any, Dict, List, Optional, Tuple

RESULT: Dict[str, Any] = {
    "id": "r1", "status": "ok", "ok": True, "exit_code": 0, "signal": None, "timed_out": False,
    "duration_seconds": 0.25, "stdout": "42\n", "stdout_dropped": 0, "stderr": "",
    "stderr_dropped": 0,
    "files": [{"path": "a.txt", "size": 2, "sha256": "00", "media_type": "text/plain",
               "content_base64": "aGk="},
              {"path": "listed", "size": 1, "sha256": "00", "media_type": "text/plain"}],
    "refused": [{"path": "link", "reason": "symlink"}],
    "denials": [{"syscall": "socket", "tier": "deny", "count": 2}],
    "limits_hit": ["pids"], "error": None,
    "usage": {"cpu_seconds": 0.1, "memory_peak": 1000, "pids_peak": 3, "oom_kills": 0,
              "throttled_seconds": 0.0, "pids_refused": 1},
    "limits": {"wall_seconds": 30, "memory": 268435456},
    "notes": [{"code": "pids", "text": "at the limit", "source": "kernel"}],
    "layers": [{"name": "seccomp", "state": "held", "detail": ""}], "start": "cold",
    "image": {"name": "default", "digest": "d"}, "profile": "default", "language": "python",
    "timings": {"setup": 0.01, "run": 0.2, "collect": 0.03},
}


def result(**changes: Any) -> Dict[str, Any]:
    return {**RESULT, **changes}


def answer(value: Any, status: int = 200, headers: str = "") -> bytes:
    """An HTTP answer with a JSON body, or with these bytes."""
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    return (f"HTTP/1.1 {status} Said\r\nContent-Length: {len(body)}\r\n{headers}\r\n".encode()
            + body)


def problem(status: int, code: str, headers: str = "", **members: Any) -> bytes:
    return answer({"status": status, "title": "T", "code": code, **members}, status, headers)


class Request:
    def __init__(self, head: str, body: bytes) -> None:
        self.method, self.target, _ = head.split("\r\n")[0].split(" ")
        self.head = head
        self.body = body

    def json(self) -> Any:
        return json.loads(self.body)


class FakeDaemon:
    """Answers one connection after the other with `answers`, the last one for ever."""

    def __init__(self, *answers: bytes, read_bodies: bool = True) -> None:
        self.directory = tempfile.mkdtemp(prefix="test-sbx-fake-")
        self.path = os.path.join(self.directory, "sbxd.sock")
        self.requests: List[Request] = []
        self.disconnected = threading.Event()  # a client left before it had everything
        self._answers = list(answers)
        self._read_bodies = read_bodies
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(self.path)
        self._listener.listen(16)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def __enter__(self) -> FakeDaemon:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        shutil.rmtree(self.directory)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with connection:
                self._serve_one(connection)

    def _serve_one(self, connection: socket.socket) -> None:
        request = _read_request(connection, self._read_bodies)
        if request is None:
            return
        self.requests.append(request)
        said = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        try:
            connection.sendall(said)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65536):
                pass
        except OSError:
            self.disconnected.set()


class ResettingDaemon(FakeDaemon):
    """Leaves what it was sent unread, which resets the connection behind its answer."""

    def _serve_one(self, connection: socket.socket) -> None:
        if connection.recv(1):
            connection.sendall(self._answers.pop(0) if len(self._answers) > 1
                               else self._answers[0])


def _read_request(connection: socket.socket, with_body: bool) -> Optional[Request]:
    bytes_read = b""
    while b"\r\n\r\n" not in bytes_read:
        piece = connection.recv(65536)
        if not piece:
            return None
        bytes_read += piece
    head, rest = bytes_read.split(b"\r\n\r\n", 1)
    text = head.decode()
    if not with_body:
        return Request(text, rest)
    fields = _fields(text)
    if fields.get("transfer-encoding") == "chunked":
        while not rest.endswith(b"0\r\n\r\n"):
            rest += connection.recv(65536)
        return Request(text, _dechunked(rest))
    while len(rest) < int(fields.get("content-length", "0")):
        rest += connection.recv(1 << 20)
    return Request(text, rest)


def _fields(head: str) -> Dict[str, str]:
    pairs: List[Tuple[str, str]] = []
    for line in head.split("\r\n")[1:]:
        name, value = line.split(":", 1)
        pairs.append((name.lower(), value.strip()))
    return dict(pairs)


def _dechunked(data: bytes) -> bytes:
    body = b""
    while True:
        line, data = data.split(b"\r\n", 1)
        size = int(line, 16)
        if size == 0:
            return body
        body, data = body + data[:size], data[size + 2:]
