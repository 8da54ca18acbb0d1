"""HTTP over a Unix socket with the standard library."""

import http.client
import json
import socket


class Problem(Exception):
    """An answer that is no success; `status`, and the problem document as a dict."""

    def __init__(self, status, document):
        super().__init__(f"{status}: {document}")
        self.status = status
        self.document = document


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def call(path, method, target, body=None, timeout=60):
    """(headers, content) of the answer; Problem unless it is a success."""
    connection = UnixConnection(path, timeout)
    try:
        content = None if body is None else json.dumps(body).encode()
        connection.request(method, target, content, {"Content-Type": "application/json"} if content else {})
        answer = connection.getresponse()
        data = answer.read()
    finally:
        connection.close()
    if answer.status >= 300:
        raise Problem(answer.status, data.decode("utf-8", "replace"))
    return answer.headers, data


def call_json(path, method, target, body=None, timeout=60):
    return json.loads(call(path, method, target, body, timeout)[1])
