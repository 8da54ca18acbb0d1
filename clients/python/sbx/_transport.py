"""HTTP to sbxd's Unix socket, and its answers and refusals as Python's."""

from __future__ import annotations

import errno
import http.client
import json
import os
import socket
import stat
from types import TracebackType
from typing import IO, Any, Dict, Iterable, List, Mapping, Optional, Tuple, Type, Union
from urllib.parse import quote

from ._errors import Failed, Refused, SandboxError, Unavailable

SYSTEM_SOCKET = "/run/sbx/sbxd.sock"
PIECE = 256 * 1024  #: bytes of what is streamed, at a time
Body = Union[bytes, IO[bytes], Iterable[bytes]]


def socket_candidates(given: Optional[str] = None) -> List[str]:
    """Where to look for the daemon, best first. What is given or set is the only place."""
    explicit = given or os.environ.get("SBX_SOCKET")
    if explicit:
        return [explicit]
    places = [SYSTEM_SOCKET]
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime:
        places.append(os.path.join(runtime, "sbx", "sbxd.sock"))
    return places


def find_socket(given: Optional[str] = None) -> str:
    """The first that can be used, else the best one, whose error then says what is wrong."""
    places = socket_candidates(given)
    for place in places:
        if os.access(place, os.R_OK | os.W_OK):
            return place
    for place in places:
        if os.path.lexists(place):
            return place
    return places[-1]


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: Optional[float]) -> None:
        super().__init__("sbx", timeout=timeout, blocksize=PIECE)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.sock.settimeout(self.timeout)
            self.sock.connect(self._path)
        except BaseException:
            self.sock.close()
            raise


class Reply:
    """An answer of 2xx, to be read. Closes its connection at the end of the with block."""

    def __init__(self, connection: http.client.HTTPConnection,
                 response: http.client.HTTPResponse) -> None:
        self._connection = connection
        self._response = response
        self._read = 0

    def header(self, name: str) -> Optional[str]:
        return self._response.getheader(name)

    def read(self, size: Optional[int] = None) -> bytes:
        """Up to `size` bytes, b"" at the end; without it everything. Raises Failed when cut off."""
        try:
            piece = self._response.read() if size is None else self._response.read(size)
        except (http.client.HTTPException, OSError) as error:
            raise _cut_off(error) from error
        self._read += len(piece)
        length = self.header("Content-Length")
        # What is read in pieces may end too early without a word of http.client's.
        if not piece and size != 0 and length is not None and int(length) != self._read:
            raise _cut_off(http.client.IncompleteRead(b""))
        return piece

    def readline(self) -> bytes:
        try:
            return self._response.readline()
        except (http.client.HTTPException, OSError) as error:
            raise _cut_off(error) from error

    def json(self) -> Any:
        return parse_json(self.read())

    def close(self) -> None:
        self._response.close()
        self._connection.close()

    def __enter__(self) -> Reply:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()


class Transport:
    """Makes one connection for each request: on a Unix socket that costs nearly nothing."""

    def __init__(self, path: Optional[str] = None, timeout: Optional[float] = None) -> None:
        self._given = path
        self._timeout = timeout

    def request(self, method: str, target: str, body: Optional[Body] = None,
                headers: Optional[Mapping[str, str]] = None) -> Reply:
        """Raises SandboxError for every answer that is not 2xx."""
        connection = self._connected()
        try:
            response = self._exchange(connection, method, target, body, headers or {})
            if not 200 <= response.status < 300:
                raise error_of(response.status, response.getheader("Retry-After"), response.read())
            return Reply(connection, response)
        except socket.timeout as error:
            connection.close()
            raise Unavailable(f"sbxd did not answer within {self._timeout} s",
                              code="timeout") from error
        except (http.client.HTTPException, ConnectionError) as error:
            connection.close()
            raise _cut_off(error) from error
        except BaseException:
            connection.close()
            raise

    def _connected(self) -> _Connection:
        path = find_socket(self._given)
        connection = _Connection(path, self._timeout)
        try:
            connection.connect()
        except OSError as error:
            raise _unreachable(path, socket_candidates(self._given), error) from error
        return connection

    @staticmethod
    def _exchange(connection: _Connection, method: str, target: str, body: Optional[Body],
                  headers: Mapping[str, str]) -> http.client.HTTPResponse:
        try:
            connection.request(method, target, body=body, headers=headers,
                               encode_chunked="Transfer-Encoding" in headers)
        except (BrokenPipeError, ConnectionResetError):
            pass  # refused before it was read: the answer says why
        return connection.getresponse()

    def json(self, method: str, target: str, value: Any = None) -> Any:
        """Sends a value as JSON, when there is one, and gives the answer's."""
        with self.request(method, target, *json_body(value)) as reply:
            return reply.json()


def json_body(value: Any) -> Tuple[Optional[bytes], Dict[str, str]]:
    """Body and header fields of a request."""
    if value is None:
        return None, {}
    return json.dumps(value, allow_nan=False).encode(), {"Content-Type": "application/json"}


def quote_path(path: str) -> str:
    """A path of a session, as part of a target. What the daemon lists as \\xNN is not undone."""
    return quote(path, safe="/")


def parse_json(text: bytes) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise Failed(f"the answer is no JSON: {text[:100]!r}", code="not_sbxd",
                     fix="see whether the socket is sbxd's") from error


def error_of(status: int, retry_after: Optional[str], body: bytes) -> SandboxError:
    """The exception that an answer other than 2xx means."""
    try:
        problem = json.loads(body)
        if not isinstance(problem, dict):
            raise ValueError
    except ValueError:
        return Failed(f"HTTP status {status}, without a word that this client knows",
                      code="not_sbxd", status=status, fix="see whether the socket is sbxd's")
    kind: Type[SandboxError] = Refused
    if status in (429, 503):
        kind = Unavailable
    elif status >= 500 or status < 400:
        kind = Failed
    fix = str(problem.get("fix", ""))
    if status in (404, 405) and problem.get("code") in ("not_found", "method_not_allowed"):
        kind, fix = Failed, "install sbxd and the package sbx of one version"
    message = str(problem.get("detail") or problem.get("title") or f"HTTP status {status}")
    if problem.get("field"):
        message = f"{problem['field']}: {message}"
    allowed = [str(each) for each in problem.get("allowed", ())]
    if allowed:
        message += f" Allowed: {', '.join(allowed)}."
    return kind(message, code=str(problem.get("code", "")), fix=fix, status=status,
                field=str(problem.get("field", "")), allowed=allowed,
                retry_after=_seconds(retry_after), problem=problem)


def _seconds(text: Optional[str]) -> Optional[float]:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def _cut_off(error: Exception) -> SandboxError:
    if isinstance(error, ConnectionError):
        return Unavailable("sbxd closed the connection without an answer", code="disconnected",
                           fix="see sbxd's log: it may have ended")
    if isinstance(error, http.client.IncompleteRead):
        return Failed("the answer was cut off", code="cut_off",
                      fix="see sbxd's log: it may have ended")
    return Failed(f"what answers is no HTTP: {error!r}", code="not_sbxd",
                  fix="see whether the socket is sbxd's")


def _unreachable(path: str, places: List[str], error: OSError) -> SandboxError:
    where = " nor ".join(places)
    if error.errno == errno.ENOENT:
        return Unavailable(f"there is no socket {where}", code="socket_missing",
                           fix="start sbxd, or set SBX_SOCKET to its socket")
    if error.errno in (errno.EACCES, errno.EPERM):
        return Unavailable(f"no permission to use {path}", code="permission",
                           fix=_permission_fix(path))
    if error.errno == errno.ECONNREFUSED:
        return Unavailable(f"nobody listens on {path}", code="not_running", fix="start sbxd")
    return Unavailable(f"{path}: {error.strerror or error}", code="unreachable")


def _permission_fix(path: str) -> str:
    """Names the group whose members may use the socket, where it is one."""
    try:
        import grp

        info = os.stat(path)
        if info.st_mode & stat.S_IWGRP:
            group = grp.getgrgid(info.st_gid).gr_name
            return f"join the group {group} (usermod -aG {group} USER) and log in again"
    except (OSError, KeyError):
        pass  # the directory may be closed to us too
    return "run as the user whose sbxd it is, or start one of your own and set SBX_SOCKET"
