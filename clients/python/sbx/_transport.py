"""HTTP to a daemon's Unix socket, and its answers and refusals as Python's."""

from __future__ import annotations

import contextlib
import errno
import http.client
import json
import os
import socket
import stat
import threading
import time
from types import TracebackType
from typing import IO, Any, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, Type, Union
from urllib.parse import quote

from . import _arguments as arguments
from ._daemon import Daemon, find_socket, socket_candidates
from ._errors import Failed, Refused, SandboxError, Unavailable

PIECE = 256 * 1024  #: bytes of what is streamed, at a time
PATIENCE = 30.0  #: seconds that a daemon may be silent, where nothing is said of how many
LONGEST = 2_000_000.0  #: seconds, which is what a socket can wait for
FULL_QUEUE_SECONDS = 0.01  #: between attempts to connect to a socket whose queue is full
Body = Union[bytes, IO[bytes], Iterable[bytes]]


class _Unread(Exception):
    """The daemon closed the connection before it had read the request."""


class _Silent(Exception):
    """The daemon took, or gave, no byte in time. No OSError: those are the caller's body's."""


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: Optional[float] = PATIENCE) -> None:
        super().__init__("sbx", timeout=timeout, blocksize=PIECE)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.sock.settimeout(self.timeout)
            self._connect_in_time()
        except BaseException:
            self.sock.close()
            raise

    def _connect_in_time(self) -> None:
        """Where the listener's queue is full, a connect() with a time limit fails at once."""
        deadline = None if self.timeout is None else time.monotonic() + self.timeout
        while True:
            try:
                self.sock.connect(self._path)
                return
            except BlockingIOError as error:
                if deadline is not None and time.monotonic() >= deadline:
                    raise _Silent from error
            time.sleep(FULL_QUEUE_SECONDS)

    def send(self, data: Any) -> None:
        """The time limit is of a piece: sendall() has one for all that it is given."""
        view = memoryview(data).cast("B")  # http.client takes apart what has pieces of its own
        try:
            for start in range(0, len(view), PIECE):
                super().send(view[start:start + PIECE])
        except socket.timeout as error:
            raise _Silent from error
        except (BrokenPipeError, ConnectionResetError) as error:
            raise _Unread from error


class Patience:
    """How long a socket is waited for: what the maker of a client said, else what fits a call."""

    def __init__(self, given: Optional[float], fitting: float) -> None:
        self._given = given
        self.socket: Optional[socket.socket] = None  #: which http.client may forget earlier
        self.seconds = self._chosen(fitting)

    def _chosen(self, fitting: float) -> float:
        return min(fitting if self._given is None else self._given, LONGEST)

    def change(self, fitting: float) -> None:
        self.seconds = self._chosen(fitting)
        if self.socket is not None:
            with contextlib.suppress(OSError):  # closed: all has been read
                self.socket.settimeout(self.seconds)

    def shut_down(self) -> None:
        """Whoever waits on the socket is woken, and so is the daemon."""
        if self.socket is not None:
            with contextlib.suppress(OSError):  # closed, or the daemon has left
                self.socket.shutdown(socket.SHUT_RDWR)


class Reply:
    """An answer of 2xx, to be read. Closes its connection at the end of the with block.

    As with files, reading it after that is a ValueError. It may be closed by another thread than
    reads it: the daemon sees that at once, and what is being read is a ValueError too.
    """

    def __init__(self, daemon: Daemon, connection: http.client.HTTPConnection,
                 response: http.client.HTTPResponse, patience: Patience) -> None:
        self._daemon = daemon
        self._connection = connection
        self._response = response
        self._patience = patience
        self._read = 0
        self._closed = False
        self._reading = threading.Lock()  # http.client's objects are for one thread

    def header(self, name: str) -> Optional[str]:
        return self._response.getheader(name)

    def read(self, size: Optional[int] = None) -> bytes:
        """Up to `size` bytes, b"" at the end; without it everything. Raises Failed when cut off."""
        with self._open():
            piece = self._response.read() if size is None else self._response.read(size)
        self._read += len(piece)
        length = self.header("Content-Length")
        # What is read in pieces may end too early without a word of http.client's.
        if not piece and size != 0 and length is not None and int(length) != self._read:
            raise _cut_off(self._daemon)
        return piece

    def readline(self) -> bytes:
        with self._open():
            return self._response.readline()

    def wait_at_most(self, seconds: float) -> None:
        """For each byte from now on, unless the client was made with a time-out."""
        self._patience.change(seconds)

    def json(self) -> Any:
        return parse_json(self._daemon, self.read())

    def copy_to(self, target: Union[os.PathLike[str], IO[bytes]]) -> int:
        """Everything that is left, in pieces, to a path or a binary file; gives its size."""
        if isinstance(target, os.PathLike):
            with open(target, "wb") as file:
                return self.copy_to(file)
        size = 0
        while True:
            piece = self.read(PIECE)
            if not piece:
                return size
            target.write(piece)
            size += len(piece)

    @contextlib.contextmanager
    def _open(self) -> Iterator[None]:
        """For one reading: its errors are the daemon's, unless it was closed meanwhile."""
        try:
            with self._reading:
                self._check_open()
                yield
                self._check_open()
        except (http.client.HTTPException, OSError) as error:
            self._check_open()
            raise _broken_off(self._daemon, error, self._patience.seconds) from error
        finally:
            if self._closed:
                self._release()

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("it is closed: nothing can be read from it any more")

    def close(self) -> None:
        self._closed = True
        self._patience.shut_down()  # a reading that waits ends
        self._release()

    def _release(self) -> None:
        """Unless it is being read: then the reading does it, at its end."""
        if self._reading.acquire(blocking=False):
            try:
                self._response.close()
                self._connection.close()
            finally:
                self._reading.release()

    def __enter__(self) -> Reply:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()


class Transport:
    """Makes one connection for each request: on a Unix socket that costs nearly nothing."""

    def __init__(self, daemon: Daemon, path: Optional[str] = None,
                 timeout: Optional[float] = None) -> None:
        self.daemon = daemon
        self._given = None if path is None else arguments.socket_path("socket", path)
        self._timeout = None if timeout is None else arguments.seconds("timeout", timeout)

    def request(self, method: str, target: str, body: Optional[Body] = None,
                headers: Optional[Mapping[str, str]] = None, *, patience: float = PATIENCE,
                may_be_gone: bool = False) -> Reply:
        """Raises SandboxError for every answer that is not 2xx, and for none within `patience`.

        A body's own exceptions come through as they are.
        `may_be_gone`: "not_found", which else means a path that the daemon does not know, means
        here that there is no such thing as the target names.
        """
        connection, waits = self._connected()
        try:
            waits.change(patience)
            self._send(connection, method, target, body, headers or {}, waits)
            response = self._answer(connection, waits, may_be_gone)
            return Reply(self.daemon, connection, response, waits)
        except BaseException:
            connection.close()
            raise

    def _connected(self) -> Tuple[_Connection, Patience]:
        path = find_socket(self.daemon, self._given)
        waits = Patience(self._timeout, PATIENCE)
        connection = _Connection(path, waits.seconds)
        try:
            connection.connect()
        except _Silent as error:
            raise self.daemon.silent(waits.seconds) from error
        except OSError as error:
            places = socket_candidates(self.daemon, self._given)
            raise _unreachable(self.daemon, path, places, error) from error
        waits.socket = connection.sock
        return connection, waits

    def _send(self, connection: _Connection, method: str, target: str, body: Optional[Body],
              headers: Mapping[str, str], waits: Patience) -> None:
        try:
            connection.request(method, target, body=body, headers=headers,
                               encode_chunked="Transfer-Encoding" in headers)
        except _Unread:
            pass  # refused before it was read: the answer says why
        except _Silent as error:
            raise self.daemon.silent(waits.seconds) from error

    def _answer(self, connection: _Connection, waits: Patience,
                may_be_gone: bool) -> http.client.HTTPResponse:
        try:
            response = connection.getresponse()
        except ConnectionError as error:
            raise Unavailable(f"{self.daemon.name} closed the connection without an answer",
                              code="disconnected", fix=self.daemon.see_log) from error
        except (http.client.HTTPException, socket.timeout) as error:
            raise _broken_off(self.daemon, error, waits.seconds) from error
        if 200 <= response.status < 300:
            return response
        try:
            body = response.read()
        except (http.client.IncompleteRead, ConnectionError):
            body = b"{}"  # the status says without it that nothing was begun
        except (http.client.HTTPException, OSError) as error:
            raise _broken_off(self.daemon, error, waits.seconds) from error
        raise error_of(self.daemon, response.status, response.getheader("Retry-After"), body,
                       may_be_gone)

    def json(self, method: str, target: str, value: Any = None) -> Any:
        """Sends a value as JSON, when there is one, and gives the answer's."""
        with self.request(method, target, *json_body(value)) as reply:
            return reply.json()


def json_body(value: Any) -> Tuple[Optional[bytes], Dict[str, str]]:
    """Body and header fields of a request."""
    if value is None:
        return None, {}
    return json.dumps(value, allow_nan=False).encode(), {"Content-Type": "application/json"}


def quote_path(name: str, path: str) -> str:
    """A path of a session, the argument of that name, as part of a target."""
    return quote(arguments.path(name, path), safe="/", errors="surrogateescape")


def quote_id(name: str, identifier: str) -> str:
    """One component of a target. Raises ValueError for none."""
    return quote(arguments.identifier(name, identifier), safe="")


def _load(text: bytes) -> Any:
    """Raises ValueError for what is no JSON, or is nested deeper than any answer."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def parse_json(daemon: Daemon, text: bytes) -> Any:
    try:
        return _load(text)
    except ValueError as error:
        raise daemon.stranger(f"the answer is no JSON: {text[:100]!r}") from error


def error_of(daemon: Daemon, status: int, retry_after: Optional[str], body: bytes,
             may_be_gone: bool = False) -> SandboxError:
    """The exception that an answer other than 2xx means."""
    try:
        problem = _load(body)
        if not isinstance(problem, dict):
            raise ValueError
    except ValueError:
        return daemon.stranger(f"HTTP status {status}, without a word that this client knows",
                               status)

    def said(name: str) -> str:
        value = problem.get(name)
        return value if isinstance(value, str) else ""

    kind: Type[SandboxError] = Refused
    if status in (429, 503):
        kind = Unavailable
    elif status >= 500 or status < 400:
        kind = Failed
    fix = said("fix")
    unknown = ("method_not_allowed",) if may_be_gone else ("not_found", "method_not_allowed")
    if status in (404, 405) and said("code") in unknown:
        kind, fix = Failed, daemon.one_version
    message = said("detail") or said("title") or f"HTTP status {status}"
    if said("field"):
        message = f"{said('field')}: {message}"
    listed = problem.get("allowed")
    allowed = [str(each) for each in listed if not isinstance(each, (list, dict))
               ] if isinstance(listed, list) else []
    if allowed:
        message += f" Allowed: {', '.join(allowed)}."
    return kind(message, code=said("code"), fix=fix, status=status, field=said("field"),
                allowed=allowed, retry_after=_seconds(retry_after), problem=problem)


def _seconds(text: Optional[str]) -> Optional[float]:
    """None for what is no time that can be waited."""
    try:
        value = float(text or "nan")
    except ValueError:
        return None
    return value if 0 <= value <= LONGEST else None


def _cut_off(daemon: Daemon) -> Failed:
    return Failed("the answer was cut off", code="cut_off", fix=daemon.see_log)


def _broken_off(daemon: Daemon, error: Exception, seconds: float) -> SandboxError:
    """What an error while an answer is read means, once its head has been."""
    if isinstance(error, socket.timeout):
        return daemon.silent(seconds)
    if isinstance(error, (ConnectionError, http.client.IncompleteRead)):
        return _cut_off(daemon)
    return daemon.stranger(f"what answers is no HTTP: {error!r}")


def _unreachable(daemon: Daemon, path: str, places: List[str], error: OSError) -> SandboxError:
    where = " nor ".join(places)
    if error.errno == errno.ENOENT:
        return Unavailable(f"there is no socket {where}", code="socket_missing",
                           fix=f"start {daemon.name}, or set {daemon.variable} to its socket")
    if error.errno in (errno.EACCES, errno.EPERM):
        return Unavailable(f"no permission to use {path}", code="permission",
                           fix=_permission_fix(daemon, path))
    if error.errno == errno.ECONNREFUSED:
        return Unavailable(f"nobody listens on {path}", code="not_running",
                           fix=f"start {daemon.name}")
    return Unavailable(f"{path}: {error.strerror or error}", code="unreachable")


def _permission_fix(daemon: Daemon, path: str) -> str:
    """Names the group whose members may use the socket, else whose socket it is.

    Never root's group: whoever joins that gets far more than this socket.
    """
    other = f"start one of your own and set {daemon.variable}"
    try:
        import grp
        import pwd

        info = os.stat(path)
        ours = {os.getegid(), *os.getgroups()}
        if info.st_mode & stat.S_IWGRP and info.st_gid != 0 and info.st_gid not in ours:
            group = grp.getgrgid(info.st_gid).gr_name
            return f"join the group {group} (usermod -aG {group} USER) and log in again"
        owner = pwd.getpwuid(info.st_uid).pw_name
        return f"the socket is {owner}'s ({stat.filemode(info.st_mode)}): {other}"
    except (OSError, KeyError):
        pass  # the directory may be closed to us too
    return f"run as the user whose {daemon.name} it is, or {other}"
