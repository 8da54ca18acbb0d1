"""Session: a workspace that lives on between runs."""

from __future__ import annotations

import dataclasses
import errno
import functools
import io
import os
import re
import stat
from types import TracebackType
from typing import IO, Any, Dict, Iterable, Iterator, List, Mapping, Optional, Tuple, Type, Union

from . import _arguments as arguments
from ._client import Client, RunStream, run_at, run_body, stream_at
from ._daemon import SBXD
from ._errors import Failed, Refused, SandboxError
from ._limits import DEFAULT_TIMEOUT, MARGIN_SECONDS, SandboxLimits
from ._result import ExecutionResult
from ._transport import PIECE, Reply, quote_id, quote_path

GONE = ("session_not_found", "session_expired", "session_deleted")
Source = Union[bytes, "os.PathLike[str]", IO[bytes], Iterable[bytes]]


@dataclasses.dataclass(frozen=True)
class SessionFile:
    """An entry of the workspace."""

    #: Relative, and what the methods of Session take. Bytes that are not UTF-8 are surrogates, as
    #: in paths of os (PEP 383): path.encode(errors="surrogateescape") gives them back.
    path: str
    type: str  #: file, directory, symlink
    mode: str  #: octal
    modified_at: str
    size: Optional[int] = None  #: of a file
    target: Optional[str] = None  #: of a symlink


@dataclasses.dataclass(frozen=True)
class SessionInfo:
    """A session as the daemon sees it. Times are RFC 3339, in UTC."""

    id: str
    created_at: str
    last_used_at: str
    idle_expires_at: str
    expires_at: str
    idle_seconds: int
    age_seconds: int
    limits: Mapping[str, int]  #: work, work_inodes
    usage: Optional[Mapping[str, int]]  #: size, inodes; None: not measured yet
    running: bool


class Session:
    """Makes a session; as a context manager, deletes it at the end.

    limits: only `work` and `work_inodes` (its quota). idle_seconds and age_seconds: how long it
    lives without use, and at most; the daemon's configuration gives defaults and bounds. socket and
    timeout: as Client's; a `client` has its own.

    Every method but close() raises Refused with code "session_expired" once it has expired. An
    exception that ends the block is never hidden by one of the session's deletion.
    """

    def __init__(self, limits: Optional[SandboxLimits] = None, *,
                 idle_seconds: Optional[int] = None, age_seconds: Optional[int] = None,
                 socket: Optional[str] = None, timeout: Optional[float] = None,
                 client: Optional[Client] = None) -> None:
        self._client = client or Client(socket, timeout)
        if limits is not None:
            arguments.instance("limits", limits, SandboxLimits)
        for name, seconds in (("idle_seconds", idle_seconds), ("age_seconds", age_seconds)):
            if seconds is not None:
                arguments.seconds(name, arguments.whole(name, seconds))
        wish = {"limits": limits.to_json() if limits else None, "idle_seconds": idle_seconds,
                "age_seconds": age_seconds}
        body = {name: value for name, value in wish.items() if value is not None}
        self.id: str = _session_info(self._client.transport.json("POST", "/v1/sessions", body)).id

    @classmethod
    def attach(cls, session_id: str, *, socket: Optional[str] = None,
               timeout: Optional[float] = None, client: Optional[Client] = None) -> Session:
        """A session that is there already. Raises Refused when it is not, or not yours."""
        session = cls.__new__(cls)
        session._client = client or Client(socket, timeout)
        session.id = arguments.identifier("session_id", session_id)
        session.info()
        return session

    def info(self) -> SessionInfo:
        return _session_info(self._client.transport.json("GET", self._target()))

    def run(self, code: Optional[str] = None, language: str = "python",
            timeout_seconds: float = DEFAULT_TIMEOUT, limits: Optional[SandboxLimits] = None, *,
            wait: bool = False, **options: Any) -> ExecutionResult:
        """A run whose /work is the workspace; `options` as run_code's.

        One at a time: while another is on, waits for it (`wait`; Unavailable when its turn does not
        come in time), or raises Refused with code "session_busy".
        """
        body = run_body(code, language, timeout_seconds, limits, wait=wait, **options)
        return run_at(self._client.transport, self._target("/run"), body)

    def stream(self, code: Optional[str] = None, language: str = "python",
               timeout_seconds: float = DEFAULT_TIMEOUT, limits: Optional[SandboxLimits] = None, *,
               wait: bool = False, **options: Any) -> RunStream:
        """The same, with events as they happen."""
        body = run_body(code, language, timeout_seconds, limits, wait=wait, **options)
        return stream_at(self._client.transport, self._target("/run?stream=1"), body)

    def put(self, path: str, source: Source) -> int:
        """Stores a file, whole or not at all, and gives its size.

        The source is bytes, a pathlib.Path, a binary file, or pieces of bytes; it is streamed. A
        FIFO, a device or a file of /proc is read to its end. Raises OSError when a path cannot be
        read, or has less or more in it than its size says: then nothing is stored.
        """
        arguments.path("path", path)  # before the source is touched
        if isinstance(source, os.PathLike):
            with open(source, "rb", buffering=0) as file:
                info = os.fstat(file.fileno())
                if stat.S_ISREG(info.st_mode) and info.st_size > 0:
                    whole = _whole(file, info.st_size, os.fspath(source))
                    return self._put(path, whole, info.st_size)
                return self._put(path, _pieces(file), None)
        if isinstance(source, (bytes, bytearray, memoryview)):
            content = bytes(source)  # len() of a memoryview may count more than bytes
            return self._put(path, content, len(content))
        if isinstance(source, str):
            raise TypeError("source is a str, which may be text or a path: give bytes, or a "
                            "pathlib.Path")
        return self._put(path, _pieces(source), None)

    def get(self, path: str) -> bytes:
        """A file's whole content."""
        with self.open(path) as reply:
            return reply.read()

    def get_to(self, path: str, target: Union["os.PathLike[str]", IO[bytes]]) -> int:
        """Copies a file to a path or a binary file, in pieces, and gives its size."""
        arguments.writable("target", target)
        with self.open(path) as reply:
            return reply.copy_to(target)

    def open(self, path: str) -> Reply:
        """A file to read in pieces: with session.open(path) as file: file.read(65536)."""
        return self._client.transport.request("GET", self._file(path))

    def list(self) -> Iterator[SessionFile]:
        """All entries, in byte order of their paths, fetched page by page."""
        after: Optional[str] = ""
        while after is not None:
            entries, after = _page(self._client.transport.json("GET", self._target("/files" + after)))
            yield from entries

    def delete(self, path: str) -> None:
        """Removes a file, or a directory with everything in it."""
        self._client.transport.request("DELETE", self._file(path)).close()

    def close(self) -> None:
        """Deletes the session, unless it is gone already; a run that is on is cancelled."""
        try:
            self._client.transport.request("DELETE", self._target(),
                                           patience=MARGIN_SECONDS).close()
        except Refused as error:
            if error.code not in GONE:
                raise

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        try:
            self.close()
        except SandboxError:
            if error is None:
                raise

    def _target(self, rest: str = "") -> str:
        return f"/v1/sessions/{quote_id('session_id', self.id)}{rest}"

    def _file(self, path: str) -> str:
        return self._target("/files/" + quote_path("path", path))

    def _put(self, path: str, body: Any, length: Optional[int]) -> int:
        headers = ({"Transfer-Encoding": "chunked"} if length is None else
                   {"Content-Length": str(length)})
        headers["Content-Type"] = "application/octet-stream"
        with self._client.transport.request("PUT", self._file(path), body, headers,
                                            patience=MARGIN_SECONDS) as reply:
            answer = reply.json()
        try:
            return int(answer["size"])
        except (KeyError, TypeError, ValueError) as error:
            raise _unknown(answer) from error


def _pieces(source: Union[IO[bytes], Iterable[bytes]]) -> Iterator[bytes]:
    """The pieces of a source that is no bytes. Raises TypeError at once for what can have none."""
    if isinstance(source, io.TextIOBase):
        raise arguments.wrong_type("source", "a binary file", source)
    if hasattr(source, "read"):
        return _checked(iter(functools.partial(source.read, PIECE), b""))
    if not isinstance(source, Iterable):
        raise arguments.wrong_type("source", "bytes, a pathlib.Path, a binary file or pieces of "
                                   "bytes", source)
    return _checked(iter(source))


def _whole(file: IO[bytes], size: int, name: Any) -> Iterator[bytes]:
    """The pieces of a file of this size. The last is held back until it is known to be the last."""
    left = size
    while left > 0:
        piece = file.read(min(PIECE, left))
        left -= len(piece)
        if not piece or (left == 0 and file.read(1)):
            raise OSError(errno.EIO, f"it has {'less' if left else 'more'} in it than its size of "
                          f"{size} bytes: it changes, or has no size that means something; open "
                          "it, and give the open file, to have it sent as it is read", name)
        yield piece


def _checked(pieces: Iterator[Any]) -> Iterator[bytes]:
    for piece in pieces:
        if not isinstance(piece, (bytes, bytearray, memoryview)):
            raise arguments.wrong_type("a piece of source", "bytes", piece)
        content = bytes(piece)
        if content:  # an empty chunk would end the body
            yield content


def _session_info(json: Any) -> SessionInfo:
    try:
        values: Dict[str, Any] = {field.name: json[field.name]
                                  for field in dataclasses.fields(SessionInfo)}
    except (KeyError, TypeError) as error:
        raise _unknown(json) from error
    return SessionInfo(**values)


def _page(json: Any) -> Tuple[List[SessionFile], Optional[str]]:
    """Entries, and the query that gives the next page, if there is one."""
    try:
        entries = [SessionFile(_real_path(entry["path"]), entry["type"], entry["mode"],
                               entry["modified_at"], entry.get("size"),
                               _real_path(entry.get("target"))) for entry in json["files"]]
        return entries, None if json["next"] is None else "?after=" + json["next"]
    except (KeyError, TypeError) as error:
        raise _unknown(json) from error


def _real_path(shown: Any) -> Any:
    """A path as Python has it: the daemon shows each byte that is not UTF-8 as \\xNN, and a
    backslash that would read as such a byte as \\x5c."""
    if not isinstance(shown, str):
        return shown
    return re.sub(rb"\\x([0-9a-f]{2})", lambda byte: bytes([int(byte[1], 16)]),
                  shown.encode()).decode(errors="surrogateescape")


def _unknown(json: Any) -> Failed:
    return SBXD.unknown("the daemon's answer", json)
