"""agentd with everything around it played by a test: a model server, a sandbox, clients."""

import base64
import contextlib
import hashlib
import http.client
import http.server
import json
import os
import pathlib
import shutil
import signal
import socket
import socketserver
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = pathlib.Path(os.environ.get("SBX_BIN", ROOT / "build/bin"))
PATIENCE = 120      # seconds until something that must happen counts as missing
POLL_SECONDS = 0.02
SKIPPED = 77
USAGE = {"prompt_tokens": 1000, "completion_tokens": 100}
ENDED = ("succeeded", "gave_up", "cancelled", "failed")


def main():
    """As unittest's, but a test that was skipped is seen from outside: exit code 77."""
    result = unittest.main(module="__main__", exit=False).result
    sys.exit(1 if not result.wasSuccessful() else SKIPPED if result.skipped else 0)


def until(condition, what):
    """Waits for something that nothing can be waited for; its value."""
    deadline = time.monotonic() + PATIENCE
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"did not happen: {what}")
        time.sleep(POLL_SECONDS)
    return value


def program(code, language="python"):
    """A reply with that program."""
    return {"text": f"```{language}\n{code}\n```"}


def calls(*arguments):
    """A reply that calls run_code with each of the arguments (text, or what is written as JSON)."""
    return {"tool_calls": [{"index": index, "id": f"c{index}", "type": "function", "function": {
        "name": "run_code", "arguments": each if isinstance(each, str) else json.dumps(each)}}
        for index, each in enumerate(arguments)], "finish": "tool_calls"}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def address_string(self):
        return "peer"

    def body(self):
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def answer(self, status, content, content_type="application/json", headers=()):
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(content)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def gone(self, hold):
        """Waits until `hold` is set (False), or the client has closed the connection (True)."""
        self.connection.settimeout(POLL_SECONDS)
        try:
            while not hold.is_set():
                try:
                    if self.connection.recv(1, socket.MSG_PEEK) == b"":
                        return True
                except TimeoutError:
                    continue
                except OSError:
                    return True
            return False
        finally:
            with contextlib.suppress(OSError):
                self.connection.settimeout(None)


class _Quiet:
    """A client that leaves is no error, and many may come at once."""

    request_queue_size = 128

    def handle_error(self, *arguments):
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(*arguments)


class TcpServer(_Quiet, http.server.ThreadingHTTPServer):
    def get_request(self):
        connection, address = super().get_request()
        self.connections.append(connection)
        return connection, address


class UnixServer(_Quiet, socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    def get_request(self):
        connection, _ = super().get_request()
        self.connections.append(connection)
        return connection, ("peer", 0)


class Server:
    """Serves in threads until it is closed."""

    def __init__(self, server):
        self._server = server
        server.connections = []
        server.daemon_threads = True
        self._thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": POLL_SECONDS})
        self._thread.start()

    def close(self):
        """The server and all its connections. Again: nothing."""
        for connection in self._server.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class Model(Server):
    """Speaks OpenAI's chat completions. `reply(n, request)` says what call n (from 1) gets: {text, finish, usage,
    tool_calls}, {status, body, headers}, or {hold: Event, text}, which streams nothing more until then."""

    def __init__(self, reply):
        self.reply, self.asked, self.keys, self.closed = reply, [], [], threading.Event()
        self._lock = threading.Lock()
        model = self

        class Playing(Handler):
            def do_POST(self):      # noqa: N802
                request = json.loads(self.body())
                with model._lock:
                    model.asked.append(request)
                    model.keys.append(self.headers.get("Authorization"))
                    number = len(model.asked)
                model._play(self, model.reply(number, request), request)

            def do_GET(self):       # noqa: N802
                self.answer(404, b"{}")

        server = TcpServer(("127.0.0.1", 0), Playing)
        self.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
        super().__init__(server)

    def _play(self, handler, reply, request):
        if "status" in reply:
            handler.answer(reply["status"], reply.get("body", "").encode(), headers=reply.get("headers", ()))
            return
        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Connection", "close")
        handler.close_connection = True
        handler.end_headers()
        chunk = {"delta": {"content": reply.get("text", ""), "tool_calls": reply.get("tool_calls")}}
        self._send(handler, {"choices": [chunk]})
        if "hold" in reply and handler.gone(reply["hold"]):
            self.closed.set()
            return
        self._send(handler, {"choices": [{"delta": {}, "finish_reason": reply.get("finish", "stop")}]})
        if (usage := reply.get("usage", USAGE)) is not None:
            self._send(handler, {"choices": [], "usage": usage})
        handler.wfile.write(b"data: [DONE]\n\n")

    @staticmethod
    def _send(handler, chunk):
        with contextlib.suppress(OSError):
            handler.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
            handler.wfile.flush()


INFO = {
    "version": "0.1.0", "image": {"name": "default", "digest": "d"},
    "languages": [{"name": "bash", "aliases": ["sh"], "file": "/code/main.sh", "packages": {},
                   "syntax_error_pattern": ""},
                  {"name": "javascript", "aliases": ["js", "node"], "file": "/code/main.js", "packages": {},
                   "syntax_error_pattern": "^SyntaxError: "},
                  {"name": "python", "aliases": [], "file": "/code/main.py", "packages": {"pandas": "1.5.3"},
                   "syntax_error_pattern": "^SyntaxError: "}],
    "limits": {"wall_seconds": 30, "cpus": 0.5, "memory": 268435456, "pids": 64, "input": 67108864,
               "output": 67108864, "work": 67108864, "tmp": 67108864, "stdout_bytes": 65536, "network": "none"},
    "ceilings": {"stdout_bytes": 1048576},
    "layers": [{"name": name, "state": "held", "detail": ""} for name in (
        "user_namespace", "pid_namespace", "mount_namespace", "net_namespace", "ipc_namespace", "uts_namespace",
        "rootfs", "cgroup_namespace", "proc", "cgroup", "seccomp", "capabilities", "no_new_privs", "rlimits")]}


def ran(stdout="", files=(), **changes):
    """A result as sbxd sends it; `files` are (path, content, media type)."""
    listed = [{"path": path, "size": len(content), "sha256": hashlib.sha256(content).hexdigest(),
               "media_type": media_type, "content_base64": base64.b64encode(content).decode()}
              for path, content, media_type in files]
    return {"id": "run", "status": "ok", "exit_code": 0, "signal": None, "duration_seconds": 0.5, "stdout": stdout,
            "stdout_dropped": 0, "stderr": "", "stderr_dropped": 0, "files": listed, "refused": [], "limits_hit": [],
            "notes": [], "error": None} | changes


def failed(stderr, **changes):
    return ran(**({"status": "exit", "exit_code": 1, "stderr": stderr} | changes))


def envelope(kind, data=None, path=None, note=None):
    return json.dumps({"type": kind, "data": data, "artifact_path": path, "note": note})


class Box(Server):
    """sbxd's interface with results of the test's: `run(n, request)` gives a result, {status_code, body}, or
    {hold: Event}, which waits until the client leaves. No program runs."""

    def __init__(self, path, run):
        self.run, self.ran, self.closed = run, [], threading.Event()
        self._lock = threading.Lock()
        box = self

        class Playing(Handler):
            def do_GET(self):       # noqa: N802
                self.answer(200, json.dumps(INFO).encode())

            def do_POST(self):      # noqa: N802
                request = json.loads(self.body())
                with box._lock:
                    box.ran.append(request)
                    number = len(box.ran)
                result = box.run(number, request)
                if "hold" in result:
                    if self.gone(result["hold"]):
                        box.closed.set()
                        self.close_connection = True
                        return
                    result = result["then"]
                if "status_code" in result:
                    self.answer(result["status_code"], json.dumps(result["body"]).encode(),
                                headers=result.get("headers", ()))
                    return
                self.answer(200, json.dumps(result).encode())

        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        super().__init__(UnixServer(str(path), Playing))


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path):
        super().__init__("localhost", timeout=PATIENCE)
        self._path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Answer:
    def __init__(self, response):
        self.status, self.headers, self.content = response.status, response.headers, response.read()

    def json(self):
        return json.loads(self.content)


def events_of(content):
    """[(id, event, data)] of an event stream; comments are left out."""
    events = []
    for block in content.decode().split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if line and not line.startswith(":"))
        if fields:
            events.append((int(fields["id"]), fields["event"], json.loads(fields["data"])))
    return events


class Agent:
    """An agentd in a directory of its own."""

    def __init__(self, where, provider, more="", environment=None, command=()):
        self.where, self.socket, self.state = where, where / "agentd.sock", where / "state"
        self.log, self.config = where / "agentd.log", where / "agentd.toml"
        lines = [more, "[provider]", *(f"{key} = {json.dumps(value)}" for key, value in provider.items())]
        self.config.write_text("\n".join(lines) + "\n", encoding="utf-8")
        self._environment = dict(os.environ) | (environment or {})
        self._command = [*command, PROGRAMS / "agentd", "--config", self.config, "--socket", self.socket,
                         "--sbxd-socket", where / "sbxd.sock", "--state-dir", self.state]
        self.arguments = []     # more of them
        self.process = None

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([*self._command, *self.arguments], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, env=self._environment)
        until(lambda: self.process.poll() is not None or self._answers(), "agentd answers")
        if self.process.poll() is not None:
            raise AssertionError(f"agentd ended with {self.process.returncode}:\n{self.said()}")

    def run_to_end(self):
        """Where it must refuse to start: (exit code, what it said)."""
        done = subprocess.run(self._command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=PATIENCE, check=False, env=self._environment)
        return done.returncode, done.stdout + done.stderr

    def _answers(self):
        try:
            return self.call("GET", "/metrics").status == 200
        except OSError:
            return False

    def said(self):
        return self.log.read_text(encoding="utf-8", errors="replace")

    def stop(self, number=signal.SIGTERM):
        if self.process is None or self.process.poll() is not None:
            return
        self.process.send_signal(number)
        self.process.wait(PATIENCE)

    def call(self, method, target, body=None, headers=None):
        connection = UnixConnection(self.socket)
        try:
            content = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            # Whom the server does not admit it answers at once, maybe before all is sent.
            with contextlib.suppress(BrokenPipeError):
                connection.request(method, target, content, headers or {})
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def submit(self, text="do it", path="/v1/requests", **fields):
        field = "task" if path == "/v1/agent" else "text"
        answer = self.call("POST", path, {field: text, **fields})
        if answer.status != 202:
            raise AssertionError(f"{answer.status}: {answer.content!r}")
        return answer.json()["id"]

    def record(self, request):
        return self.call("GET", f"/v1/requests/{request}").json()

    def wait(self, request):
        return until(lambda: (record := self.record(request))["state"] in ENDED and record, f"{request} ends")

    def ask(self, text="do it", **fields):
        return self.wait(self.submit(text, **fields))

    def events(self, request, last=None):
        """To the end of the stream."""
        headers = {} if last is None else {"Last-Event-ID": str(last)}
        answer = self.call("GET", f"/v1/requests/{request}/events", headers=headers)
        return events_of(answer.content)

    def agentctl(self, *words, **options):
        """Ended: returncode, stdout, stderr as bytes."""
        return subprocess.run([PROGRAMS / "agentctl", "--socket", self.socket, *words], stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=PATIENCE, check=False, **options)


def directory(test):
    """A directory that is gone after the test (or class: pass addClassCleanup's owner)."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="test-sbx-agent-"))
    cleanup = test.addClassCleanup if isinstance(test, type) else test.addCleanup
    cleanup(shutil.rmtree, path, ignore_errors=True)
    path.chmod(0o755)
    return path


def balances(agent):
    """(account, settled, reserved) of the ledger; agentd may be running."""
    with sqlite3.connect(f"file:{agent.state}/agentd.db?mode=ro", uri=True) as database:
        return database.execute("SELECT name, settled, reserved FROM accounts ORDER BY name").fetchall()


class Stand:
    """Model, box and agentd. What they answer can be changed at any time: `model.reply`, `box.run`."""

    KEY = "local-key-0123456789abcdefghij+/XYZ"

    def __init__(self, test, provider=None, more="", with_box=True, environment=None, command=()):
        cleanup = test.addClassCleanup if isinstance(test, type) else test.addCleanup
        self.where = directory(test)
        self.model = Model(lambda n, request: program("print(1)"))
        cleanup(self.model.close)
        self.box = None
        self._cleanup = cleanup
        if with_box:
            self.start_box()
        key = self.where / "key"
        key.write_text(self.KEY + "\n", encoding="utf-8")
        key.chmod(0o600)
        made = {"kind": "openai", "base_url": self.model.url, "model": "m-1", "api_key_file": str(key),
                "price_in": 0.15, "price_out": 0.6, "tries": 1} | (provider or {})
        self.agent = Agent(self.where, {k: v for k, v in made.items() if v is not None}, more, environment, command)
        cleanup(self.agent.stop, signal.SIGKILL)

    def start_box(self):
        self.box = Box(self.where / "sbxd.sock", lambda n, request: ran(envelope("text", "done") + "\n"))
        self._cleanup(self.box.close)

    def play(self, replies, results):
        """The next replies and results, in order; the last of each stays."""
        asked, done = len(self.model.asked), len(self.box.ran)
        self.model.reply = lambda n, request: replies[min(n - asked, len(replies)) - 1]
        self.box.run = lambda n, request: results[min(n - done, len(results)) - 1]


class OneStand(unittest.TestCase):
    """One agentd, and what is around it, for all tests of a class."""

    @classmethod
    def setUpClass(cls):
        cls.stand = Stand(cls)
        cls.agent, cls.model, cls.box = cls.stand.agent, cls.stand.model, cls.stand.box
        cls.agent.start()


