"""sbxd and agentd for the time of a benchmark, in a directory of their own that is removed at the end."""

import contextlib
import dataclasses
import json
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile
import time

import cases
import endings
from unix_http import Problem, call

PROGRAMS = pathlib.Path(os.environ.get("SBX_BIN", cases.ROOT / "build/bin"))
CGROUPS = pathlib.Path("/sys/fs/cgroup")
CGROUP_PARENT = "sbx-bench-agent"   # a subtree that nobody else uses
RECORDINGS = cases.ROOT / "bench/recordings"
PRICES = {"price_in": 0.15, "price_out": 0.6}   # dollars for a million tokens, about a small hosted model's
START_SECONDS, STOP_SECONDS, POLL_SECONDS = 60, 60, 0.02


class Daemon:
    """A daemon that answers on its socket; stopped by SIGTERM. `log` is where it writes."""

    def __init__(self, command, socket, log, environment):
        self.socket, self.log = str(socket), log
        with open(log, "wb") as output:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                             env=environment)
        deadline = time.monotonic() + START_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                endings.stop(endings.OURS,
                             f"{command[0]} did not start:\n{log.read_text(errors='replace')[-2000:]}")
            time.sleep(POLL_SECONDS)    # nothing tells that a socket is about to appear

    @property
    def pid(self):
        return self._process.pid

    def _answers(self):
        try:
            call(self.socket, "GET", "/healthz", timeout=5)
            return True
        except Problem:
            return True
        except OSError:
            return False

    def stop(self):
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@dataclasses.dataclass
class Sockets:
    agentd: str
    sbxd: str


def directory(stack):
    """A directory that every user can pass through, as the daemons' users must."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="bench-sbx-agent-"))
    stack.callback(shutil.rmtree, path)
    path.chmod(0o755)
    return path


def remove_cgroups():
    """What is left of the subtree, in whatever hierarchies there are."""
    for top in [CGROUPS, *CGROUPS.iterdir()]:
        for group in top.glob(CGROUP_PARENT + "*") if top.is_dir() else ():
            for path, _, _ in os.walk(group, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(path)


def service_user():
    """Whom root's sbxd becomes: the real user where there is one."""
    return "sbx" if "sbx" in (each.pw_name for each in pwd.getpwall()) else "nobody"


def start_sbxd(stack, where, environment):
    settings = where / "config/sbx"
    settings.mkdir(parents=True)
    root = os.geteuid() == 0
    parent = f'cgroup_parent = "{CGROUP_PARENT}"\n' if root else ""
    (settings / "runtime.toml").write_text(f'runtime_dir = "{where}/run"\n{parent}')
    (settings / "sbxd.toml").write_text(f'user = "{service_user()}"\n' if root else "")
    command = [PROGRAMS / "sbxd", "--config", settings / "sbxd.toml", "--socket", where / "sbxd.sock",
               "--state-dir", where / "sbxd"]
    if root:
        stack.callback(remove_cgroups)
    daemon = Daemon(command, where / "sbxd.sock", where / "sbxd.log",
                    environment | {"XDG_CONFIG_HOME": str(where / "config")})
    stack.callback(daemon.stop)
    return daemon


def start_agentd(stack, where, config, environment, box=None):
    """`box` is the socket of another sbxd than the one in `where`."""
    command = [PROGRAMS / "agentd", "--config", config, "--socket", where / "agentd.sock",
               "--sbxd-socket", box or where / "sbxd.sock", "--state-dir", where / "agentd"]
    daemon = Daemon(command, where / "agentd.sock", where / "agentd.log", environment)
    stack.callback(daemon.stop)
    return daemon


def write_config(where, provider, prompt=""):
    """agentd.toml with these keys of [provider]; costs are notional, at PRICES."""
    lines = ["[provider]", *(f"{key} = {json.dumps(value)}" for key, value in {**PRICES, **provider}.items())]
    if prompt:
        lines += ["[prompts]", f"codegen = {json.dumps(prompt)}"]
    path = where / "agentd.toml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def start_both(stack, config=None, provider="replay", prompt=""):
    """Sockets of daemons of our own: as `config` says, else on the recordings of bench/, else on what `auto` finds."""
    where = directory(stack)
    sbxd = start_sbxd(stack, where, dict(os.environ))
    if config is None:
        chosen = {"kind": provider} | ({"recordings": [str(RECORDINGS)]} if provider == "replay" else {})
        config = write_config(where, chosen, prompt)
    return Sockets(start_agentd(stack, where, config, dict(os.environ)).socket, sbxd.socket)
