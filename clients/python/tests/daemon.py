"""A real sbxd for tests: SBX_TEST_DAEMON names the program, or they are skipped."""

import contextlib
import os
import pathlib
import pwd
import shutil
import subprocess
import tempfile
import time
import unittest

from sbx import Client, Unavailable

PROGRAM = os.environ.get("SBX_TEST_DAEMON", "")
GROUPS = "sbx-python-test"  # a cgroup subtree that nobody else uses
PATIENCE = 60


def has_image():
    data = os.environ.get("XDG_DATA_HOME") or os.path.expanduser("~/.local/share")
    return any(os.path.isdir(os.path.join(parent, "images", "default"))
               for parent in ("/var/lib/sbx", os.path.join(data, "sbx")))


def remove_groups():
    """Of a daemon that root started, in whatever hierarchies there are."""
    for top in [pathlib.Path("/sys/fs/cgroup"), *pathlib.Path("/sys/fs/cgroup").iterdir()]:
        for group in top.glob(GROUPS + "*") if top.is_dir() else ():
            for path, _, _ in os.walk(group, topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(path)


@unittest.skipUnless(os.access(PROGRAM, os.X_OK), "SBX_TEST_DAEMON names no program")
@unittest.skipUnless(has_image(), "no image: build it with scripts/image")
class DaemonCase(unittest.TestCase):
    """Starts one daemon for the class; `socket` is its path."""

    @classmethod
    def setUpClass(cls):
        cls.directory = tempfile.mkdtemp(prefix="test-sbx-python-")
        os.chmod(cls.directory, 0o755)
        cls.socket = os.path.join(cls.directory, "sbxd.sock")
        config = pathlib.Path(cls.directory, "config", "sbx")
        config.mkdir(parents=True)
        runtime = f'runtime_dir = "{cls.directory}/run"\n'
        daemon = ""
        if os.geteuid() == 0:
            runtime += f'cgroup_parent = "{GROUPS}"\n'
            users = [each.pw_name for each in pwd.getpwall()]
            daemon = f'user = "{"sbx" if "sbx" in users else "nobody"}"\n'
        (config / "runtime.toml").write_text(runtime)
        (config / "sbxd.toml").write_text(daemon)
        cls.log = open(os.path.join(cls.directory, "log"), "wb")
        cls.process = subprocess.Popen(
            [PROGRAM, "--config", str(config / "sbxd.toml"), "--socket", cls.socket,
             "--state-dir", os.path.join(cls.directory, "state")],
            env={**os.environ, "XDG_CONFIG_HOME": str(config.parent)}, stderr=cls.log)
        try:
            cls.wait_for_daemon()
        except BaseException:
            cls.tearDownClass()
            raise

    @classmethod
    def wait_for_daemon(cls):
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                Client(cls.socket).info()
                return
            except Unavailable:
                if cls.process.poll() is not None or time.monotonic() > deadline:
                    raise
            time.sleep(0.01)  # nothing tells that a socket is about to appear

    @classmethod
    def tearDownClass(cls):
        cls.process.terminate()
        cls.process.wait(PATIENCE)
        cls.log.close()
        remove_groups()
        shutil.rmtree(cls.directory)
