"""agentctl from outside: what it prints where, what it saves, how it exits, on a terminal and on none."""

import base64
import json
import os
import pathlib
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import threading
import unittest
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

from stand import (OneStand, PATIENCE, PROGRAMS, Stand, directory,  # noqa: E402
                   envelope, failed, main, program, ran, until)

TEXT = ran(envelope("text", "It is 42.") + "\n")
HOSTILE = "a\x1b]0;title\x07b\x1b[2J\u009b31m\u202eend\r"


def png(width=4, height=4):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + b"\xff\0\0" * width for _ in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


CHART = ran(envelope("chart", {"x": [1]}, "/output/plot.png") + "\n", [("plot.png", png(), "image/png")])


def on_terminal(command, environment, answer=None):
    """(exit code, what the terminal showed). `answer` is typed when the terminal's attributes are asked for."""
    child, master = pty.fork()
    if child == 0:
        os.execve(str(command[0]), [str(word) for word in command], environment)
    shown = b""
    while True:
        ready, _, _ = select.select([master], [], [], PATIENCE)
        if not ready:
            os.kill(child, signal.SIGKILL)
        try:
            data = os.read(master, 65536)
        except OSError:     # the last one has closed the terminal
            break
        if not data:
            break
        shown += data
        if answer and b"\x1b[c" in shown:
            os.write(master, answer)
            answer = None
    os.close(master)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), shown


class Agentctl(OneStand):
    def setUp(self):
        self.stand.play([program("print(42)")], [TEXT])
        self.where = directory(self)

    def run_it(self, *words, **options):
        return self.agent.agentctl(*words, **{"cwd": self.where} | options)

    def newest(self):
        return self.agent.call("GET", "/v1/requests?limit=1").json()["requests"][0]["id"]

    def test_ask_shows_states_then_the_result_then_attempts_and_the_footer(self):
        self.stand.play([program("x"), program("print(42)")], [failed("Traceback\nNameError: x"), TEXT])
        done = self.run_it("ask", "what is it?")
        self.assertEqual((done.returncode, done.stdout), (0, b"It is 42.\n"))
        lines = done.stderr.decode().splitlines()
        self.assertEqual(lines[0], f"provider: openai (m-1 at {self.model.url})")
        self.assertEqual(lines[1:8], [
            "Attempt 1: generating…", "Attempt 1: executing…",
            "Attempt 1: checking…", "Attempt 2: repairing…", "Attempt 2: executing…", "Attempt 2: checking…",
            "Succeeded after 2 attempts."])
        self.assertRegex(lines[8], r"^  1 runtime +\d+\.\d s +1100 tokens  \$0\.000\d\d  NameError: x$")
        self.assertRegex(lines[9], r"^  2 ok +\d+\.\d s +1100 tokens  \$0\.000\d\d$")
        self.assertRegex(lines[10],
                         r"^2 attempts · \d+\.\d s · \$0\.000\d\d \(list price\) · provider: openai m-1 · "
                         r"rq_[0-9a-f]{32}$")
        self.assertEqual(len(lines), 11)

    def test_wrong_use_exits_2_says_why_and_prints_no_result(self):
        for words in (["asks", "q"], ["ask"], ["ask", "a", "b"], ["show"], ["cancel"], ["--json"],
                      ["history", "--limit", "0"], ["ask", "q", "--image", "x"], ["ask", ""], ["ask", " "],
                      ["ask", "x" * 20_000], ["show", "rq_none"], ["show", "../metrics"], ["cancel", "rq_none"],
                      ["ask", "q", "--file", "none.csv"], ["ask", "q", "--file", "/"]):
            with self.subTest(words=[word[:20] for word in words]):
                asked = len(self.model.asked)
                done = self.run_it(*words)
                self.assertEqual((done.returncode, done.stdout), (2, b""), done.stderr)
                self.assertTrue(done.stderr.startswith(b"agentctl: ") or b"\nagentctl: " in done.stderr, done.stderr)
                self.assertEqual(len(self.model.asked), asked)

    def test_a_missing_file_is_named_before_anything_is_sent(self):
        done = self.run_it("ask", "q", "--file", "none.csv")
        self.assertIn(b"none.csv", done.stderr)
        self.assertNotIn(b"provider:", done.stderr)

    def test_files_that_are_too_large_are_refused(self):
        (self.where / "large").write_bytes(b"x" * ((10 << 20) + 1))
        done = self.run_it("ask", "q", "--file", "large")
        self.assertEqual((done.returncode, done.stdout), (2, b""), done.stderr)
        for name in ("a", "b"):
            (self.where / name).write_bytes(b"x" * (6 << 20))
        done = self.run_it("ask", "q", "--file", "a", "--file", "b")
        self.assertEqual((done.returncode, done.stdout), (2, b""), done.stderr)
        self.assertIn(b"10 MiB together", done.stderr)

    def test_two_files_of_one_name_are_wrong_use(self):
        for folder in ("a", "b"):
            (self.where / folder).mkdir()
            (self.where / folder / "x.csv").write_text("1\n")
        done = self.run_it("ask", "q", "--file", "a/x.csv", "--file", "b/x.csv")
        self.assertEqual(done.returncode, 2, done.stderr)

    def test_a_socket_that_was_named_wrongly_is_wrong_use_and_no_other_daemon_is_asked(self):
        environment = dict(os.environ) | {"AGENTD_SOCKET": "agentd.sock", "XDG_RUNTIME_DIR": str(self.where)}
        for words, said in ((["history"], b"AGENTD_SOCKET"), (["doctor"], b"AGENTD_SOCKET"),
                            (["--socket", "", "history"], b"its value is empty"),
                            (["ask", "q", "--save", ""], b"its value is empty")):
            done = subprocess.run([PROGRAMS / "agentctl", *words], capture_output=True, timeout=PATIENCE, check=False,
                                  env=environment)
            self.assertEqual((done.returncode, done.stdout), (2, b""), done.stderr)
            self.assertIn(said, done.stderr)
            self.assertIn(b"agentctl: fix: ", done.stderr)
        done = subprocess.run([PROGRAMS / "agentctl", "--version"], capture_output=True, timeout=PATIENCE, check=False,
                              env=environment)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_daemon_that_is_down_exits_3_with_a_fix(self):
        for words in (["ask", "q"], ["show", "rq_1"], ["history"], ["cancel", "rq_1"]):
            done = subprocess.run([PROGRAMS / "agentctl", "--socket", self.where / "none.sock", *words],
                                  capture_output=True, timeout=PATIENCE, check=False)
            self.assertEqual((done.returncode, done.stdout), (3, b""))
            self.assertIn(b"none.sock", done.stderr)
            self.assertIn(b"fix: start agentd", done.stderr)
        done = subprocess.run([PROGRAMS / "agentctl", "--socket", self.where / "none.sock", "doctor"],
                              capture_output=True, timeout=PATIENCE, check=False)
        self.assertEqual(done.returncode, 3)
        self.assertIn(b"FAIL  agentd", done.stdout)

    def test_output_that_cannot_be_written_is_an_error_and_said(self):
        self.stand.play([program("x")], [ran(envelope("text", "long " * 20_000) + "\n")])
        request = self.agent.submit()
        self.agent.wait(request)
        for words in (["--help"], ["--version"], ["doctor"], ["history"], ["history", "--json"], ["show", request],
                      ["show", "--json", request], ["ask", "q"], ["ask", "--json", "q"]):
            with self.subTest(words), open("/dev/full", "wb") as full:
                command = [PROGRAMS / "agentctl", "--socket", self.agent.socket, *words]
                done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
                self.assertEqual(done.returncode, 3)
                self.assertEqual(b"agentctl: the output could not be written: No space left on device",
                                 done.stderr.splitlines()[-1])
                done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=full, timeout=PATIENCE, check=False)
                self.assertEqual(done.returncode, 0, "what it says beside is lost, and no more")
            with self.subTest(words, closed=True):
                done = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *command], stderr=subprocess.PIPE,
                                      timeout=PATIENCE, check=False)
                self.assertEqual(done.returncode, 3)
                self.assertEqual(b"agentctl: the output could not be written: Bad file descriptor",
                                 done.stderr.splitlines()[-1])
                done = subprocess.run(["sh", "-c", '"$@" <&- >&- 2>&-', "sh", *command], timeout=PATIENCE, check=False)
                self.assertEqual(done.returncode, 3)

    def test_giving_up_exits_1_with_the_reason(self):
        self.stand.play([program("x")], [failed("NameError: x")])
        done = self.run_it("ask", "q")
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertIn("gave_up: all 3 attempts were used; the last one failed: NameError: x\n", done.stderr.decode())
        self.assertEqual(done.stderr.count(b"runtime"), 3)

    def test_output_in_no_agreed_form_is_shown_raw_under_a_banner(self):
        self.stand.play([program("print(42)")], [ran("just 42\n")])
        done = self.run_it("ask", "q")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stdout.decode(), r"^\[No attempt gave a result in the agreed form\..*\]\njust 42\n$")

    def test_a_sandbox_that_fails_exits_3(self):
        self.stand.play([program("x")], [{"status_code": 500, "body": {"status": 500, "detail": "box broke"}}])
        done = self.run_it("ask", "q")
        self.assertEqual((done.returncode, done.stdout), (3, b""))
        self.assertIn("failed: the sandbox failed: the sandbox answered 500: box broke\n", done.stderr.decode())

    def test_ctrl_c_cancels_the_request_and_exits_1(self):
        self.stand.play([{"text": "thinking", "hold": threading.Event()}], [TEXT])
        self.model.closed.clear()
        asked = len(self.model.asked)
        process = subprocess.Popen([PROGRAMS / "agentctl", "--socket", self.agent.socket, "ask", "q"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        until(lambda: len(self.model.asked) > asked, "the model is asked")
        process.send_signal(signal.SIGINT)
        out, said = process.communicate(timeout=PATIENCE)
        self.assertEqual((process.returncode, out), (1, b""), said)
        self.assertIn(b"Cancelled.", said)
        self.assertEqual(self.agent.record(self.newest())["state"], "cancelled")
        self.assertTrue(self.model.closed.wait(60))

    def test_json_is_the_record_and_nothing_else_on_stdout(self):
        done = self.run_it("ask", "q", "--json")
        self.assertEqual(done.returncode, 0)
        record = json.loads(done.stdout)
        self.assertEqual(record, self.agent.record(record["id"]))
        self.stand.play([program("x")], [failed("NameError: x")])
        done = self.run_it("ask", "q", "--json")
        self.assertEqual((done.returncode, json.loads(done.stdout)["state"]), (1, "gave_up"))

    def test_json_stands_beside_saved_files(self):
        self.stand.play([program("x")], [CHART])
        done = self.run_it("ask", "q", "--json")
        self.assertEqual(list(self.where.iterdir()), [], "nothing is saved unasked")
        for words in (["show", json.loads(done.stdout)["id"]], ["ask", "q"]):
            self.stand.play([program("x")], [CHART])
            done = self.run_it(*words, "--json", "--save", words[0])
            self.assertEqual(json.loads(done.stdout)["state"], "succeeded")
            self.assertIn(f"saved: {words[0]}/plot.png", done.stderr.decode().splitlines())
            self.assertEqual((self.where / words[0] / "plot.png").read_bytes(), png())
        (self.where / "file").write_text("")
        done = self.run_it("ask", "q", "--json", "--save", "file")
        self.assertEqual((done.returncode, done.stdout), (2, b""), done.stderr)

    def test_show_shows_the_same_again(self):
        asked = self.run_it("ask", "q")
        request = self.newest()
        shown = self.run_it("show", request)
        self.assertEqual((shown.returncode, shown.stdout), (0, asked.stdout))
        footer = asked.stderr.splitlines()[-2:]
        self.assertEqual(shown.stderr.splitlines(), footer)
        self.assertEqual(json.loads(self.run_it("show", request, "--json").stdout)["id"], request)

    def test_history_lists_the_newest_first(self):
        for text in ("first question", "second question"):
            self.run_it("ask", text)
        done = self.run_it("history", "--limit", "2")
        lines = done.stdout.decode().splitlines()
        self.assertEqual((done.returncode, len(lines), done.stderr), (0, 2, b""))
        self.assertRegex(lines[0], r"^rq_[0-9a-f]{32}  \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ  succeeded +1 +"
                                   r"\$0\.0\d+  second q")
        self.assertTrue(lines[1].endswith("first question"))
        page = json.loads(self.run_it("history", "--limit", "1", "--json").stdout)
        self.assertEqual(len(page["requests"]), 1)

    def test_cancel_cancels_and_says_when_it_is_too_late(self):
        self.stand.play([{"text": "thinking", "hold": threading.Event()}], [TEXT])
        request = self.agent.submit()
        done = self.run_it("cancel", request)
        self.assertEqual((done.returncode, done.stdout), (0, f"{request}: cancelling\n".encode()))
        self.assertEqual(self.agent.wait(request)["state"], "cancelled")
        done = self.run_it("cancel", request)
        self.assertEqual((done.returncode, done.stdout), (2, b""))
        self.assertIn(b"ended already", done.stderr)

    def test_doctor_says_what_works(self):
        done = self.run_it("doctor")
        self.assertEqual(done.returncode, 0)
        lines = done.stdout.decode().splitlines()
        self.assertRegex(lines[0], r"^ok    agentd +version ")
        self.assertEqual(lines[1:], ["ok    sandbox    every required layer holds", "ok    store      takes records",
                                     f"ok    provider   openai: m-1 at {self.model.url}, which answers, but has no "
                                     "list of models"])

    def test_js_asks_for_javascript(self):
        self.stand.play([program("console.log(42)", "javascript")], [TEXT])
        self.assertEqual(self.run_it("ask", "q", "--js").returncode, 0)
        self.assertEqual(self.box.ran[-1]["language"], "javascript")

    def test_files_are_sent_by_their_own_names(self):
        (self.where / "sub").mkdir()
        (self.where / "sub/a b.csv").write_bytes(b"x,y\n\xff\0")
        self.assertEqual(self.run_it("ask", "q", "--file", "sub/a b.csv").returncode, 0)
        self.assertEqual(self.box.ran[-1]["files"], [{"name": "a b.csv", "content_base64":
                                                      base64.b64encode(b"x,y\n\xff\0").decode()}])

    def test_a_table_is_aligned_and_its_file_is_saved_on_request(self):
        rows = [["x", 1], ["yy", 22]] + [["z", i] for i in range(100)]
        self.stand.play([program("x")], [ran(envelope("table", {"columns": ["a", "n"], "rows": rows},
                                                      note="a note") + "\n")])
        done = self.run_it("ask", "q")
        lines = done.stdout.decode().splitlines()
        self.assertEqual(lines[:4], ["a    n", "──  ──", "x    1", "yy  22"])
        self.assertEqual(lines[-2:], ["… 62 more rows; the whole table is among the artifacts", "a note"])
        self.assertEqual(list(self.where.iterdir()), [], "nothing is saved unasked")
        done = self.run_it("show", self.newest(), "--save", "out")
        self.assertIn("saved: out/table.csv", done.stdout.decode().splitlines())
        self.assertEqual(len((self.where / "out/table.csv").read_text().splitlines()), 103)

    def test_a_chart_is_saved_without_being_asked_where_no_terminal_shows_it(self):
        self.stand.play([program("x")], [CHART])
        done = self.run_it("ask", "q")
        folder = "agentd-" + self.newest()[:11]
        self.assertEqual((done.returncode, done.stdout.decode()), (0, f"saved: {folder}/plot.png\n"))
        self.assertEqual((self.where / folder / "plot.png").read_bytes(), png())

    def test_saved_names_are_harmless_and_nothing_is_replaced(self):
        names = ["..escape", ".bashrc", "-rf", "rf", "same", "\x1b[2J\u202e.txt"]
        self.stand.play([program("x")], [ran(envelope("file", path="/output/same") + "\n", [
            (name, f"{i}".encode(), "text/plain") for i, name in enumerate(names)])])
        out = self.where / "out"
        out.mkdir()
        (out / "rf").write_text("mine")
        (out / "bashrc").symlink_to(self.where / "outside")
        done = self.run_it("ask", "q", "--save", "out")
        self.assertEqual(done.returncode, 0, done.stderr)
        found = {path.name: path.read_text() for path in out.iterdir() if path.is_file()}
        self.assertEqual({found.pop(name) for name in ("escape", "bashrc-2", "rf-2", "rf-3", "same")},
                         {"0", "1", "2", "3", "4"})
        self.assertEqual(found.pop("rf"), "mine")
        self.assertEqual(list(found.values()), ["5"])
        self.assertRegex(next(iter(found)), r"^[ -~]+$")
        self.assertFalse((self.where / "outside").exists())
        self.assertNotIn(b"\x1b", done.stdout + done.stderr)

    def test_what_was_left_out_of_the_files_is_said_with_the_reason(self):
        refused = [{"path": "big.bin", "reason": "9 bytes, over the limit of 8 for one file (file_bytes)"},
                   {"path": ".", "reason": "2 more entries that are not listed (the limit is 1 files)"}]
        self.stand.play([program("x")], [ran(envelope("file", path="/output/a") + "\n", [("a", b"1", "text/plain")],
                                             refused=refused, limits_hit=["file_bytes", "files"])])
        line = "left out: 1 of /output: big.bin: " + refused[0]["reason"] + "; " + refused[1]["reason"]
        for words in (["ask", "q"], ["ask", "q", "--save", "out"], ["ask", "q", "--json", "--save", "out"]):
            done = self.run_it(*words)
            self.assertEqual((done.returncode, done.stderr.decode().splitlines().count(line)), (0, 1), done.stderr)
            self.assertNotIn(b"left out", done.stdout)
        self.assertIn(line, self.run_it("show", self.newest()).stderr.decode().splitlines())
        self.assertEqual(self.run_it("ask", "q", "--json").stderr.count(b"left out"), 0, "the record says it")

    def test_directories_are_kept_and_the_result_is_told_apart(self):
        names = ["data.csv", "a/data.csv", "a/c/data.csv", "b/data.csv"]
        self.stand.play([program("x")], [ran(envelope("file", path="/output/a/data.csv") + "\n", [
            (name, name.encode(), "text/csv") for name in names])])
        done = self.run_it("ask", "q", "--save", "new/deep/out")
        self.assertEqual(done.returncode, 0, done.stderr)
        out = self.where / "new/deep/out"
        self.assertEqual({str(path.relative_to(out)): path.read_text() for path in out.rglob("*") if path.is_file()},
                         {name: name for name in names})
        self.assertEqual(sorted(done.stdout.decode().splitlines()),
                         sorted(f"saved: new/deep/out/{name}" + " (the result)" * (name == "a/data.csv")
                                for name in names))

    def test_where_nothing_can_be_saved_is_said_before_anything_is_paid_for(self):
        (self.where / "file").write_text("")
        asked = len(self.model.asked)
        for place in ("file", "file/below"):
            done = self.run_it("ask", "q", "--save", place)
            self.assertEqual((done.returncode, done.stdout, len(self.model.asked)), (2, b"", asked), done.stderr)
            self.assertEqual(done.stderr.decode(), f"agentctl: nothing can be saved in {place}: Not a directory\n"
                                                   "agentctl: fix: name another directory with --save\n")

    def test_where_nothing_could_be_saved_it_says_how_to_save_it_still(self):
        self.stand.play([program("x")], [CHART])
        self.run_it("ask", "q")
        request = self.newest()
        (self.where / "other").mkdir()
        (self.where / "other" / f"agentd-{request[:11]}").write_text("in the way")
        done = self.run_it("show", request, cwd=self.where / "other")
        self.assertEqual(done.returncode, 3)
        self.assertEqual(done.stderr.decode().splitlines()[:2], [
            f"agentctl: nothing can be saved in agentd-{request[:11]}: Not a directory",
            f"agentctl: fix: agentd has it still: agentctl show {request} --save DIR"])

    def test_show_of_a_request_that_is_under_way_says_so_and_exits_4(self):
        self.stand.play([{"text": "thinking", "hold": threading.Event()}], [TEXT])
        request = self.agent.submit()
        done = self.run_it("show", request)
        self.assertEqual((done.returncode, done.stdout), (4, b""), done.stderr)
        self.assertRegex(done.stderr.decode(), r"\n(queued|generate): it is under way; show it again later\n$")
        self.run_it("cancel", request)
        self.assertEqual(self.agent.wait(request)["state"], "cancelled")

    def test_no_word_of_a_model_or_program_drives_the_terminal(self):
        results = {
            "text": ran(envelope("text", HOSTILE, note=HOSTILE) + "\n"),
            "table": ran(envelope("table", {"columns": [HOSTILE], "rows": [[HOSTILE]]}) + "\n"),
            "file": ran(envelope("file", path=f"/output/{HOSTILE}") + "\n", [(HOSTILE, b"x", "text/plain")]),
            "raw": ran(HOSTILE + "\n"), "error": failed(f"Traceback\n{HOSTILE}: x")}
        environment = dict(os.environ) | {"TERM": "xterm-256color"}
        for name, result in results.items():
            with self.subTest(name):
                self.stand.play([program("x")], [result])
                done = self.run_it("ask", "q" + HOSTILE, "--json")
                request = json.loads(done.stdout)["id"]
                for words in (["show", request, "--image", "none"], ["history"]):
                    _, shown = on_terminal([PROGRAMS / "agentctl", "--socket", self.agent.socket, *words,
                                            *(["--save", self.where / name] if words[0] == "show" else [])],
                                           environment)
                    self.assertNotRegex(shown.decode(), "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202e]")
                    self.assertNotIn(b"\r\r", shown.replace(b"\r\n", b""))
                    self.assertRegex(shown, rb"[\\_]x1b", "the test itself can fail: it is there, escaped")

    def test_each_image_protocol_carries_the_picture(self):
        self.stand.play([program("x")], [CHART])
        encoded = base64.b64encode(png()).decode()
        for protocol, pattern in (("kitty", f"^\x1b_Ga=T,f=100,q=2,m=0;{re.escape(encoded)}\x1b\\\\\\\\\n$"),
                                  ("iterm2", f"^\x1b]1337;File=inline=1;size={len(png())}:{re.escape(encoded)}\x07\n$"),
                                  ("sixel", "^\x1bPq\"1;1;4;4.*\x1b\\\\\\\\\n$")):
            done = self.run_it("ask", "q", "--image", protocol)
            self.assertEqual(done.returncode, 0)
            self.assertRegex(done.stdout.decode(), pattern.replace("\\\\\\\\", "\\\\"))
            self.assertIn(b"saved: ", done.stderr)
        done = self.run_it("ask", "q", "--image", "none")
        self.assertTrue(done.stdout.startswith(b"saved: "))

    def test_a_picture_that_is_none_is_saved_and_not_shown(self):
        content = png()[:8] + b"\x1b[2Jno"
        fake = ran(envelope("chart", None, "/output/plot.png") + "\n", [("plot.png", content, "image/png")])
        self.stand.play([program("x")], [fake])
        for protocol in ("kitty", "iterm2", "sixel"):
            done = self.run_it("ask", "q", "--image", protocol)
            self.assertTrue(done.stdout.startswith(b"saved: "), done.stdout)

    def test_a_terminal_shows_the_picture_in_its_own_way(self):
        self.stand.play([program("x")], [CHART])
        base = {key: value for key, value in os.environ.items()
                if key not in ("TERM", "TERM_PROGRAM", "TMUX", "KITTY_WINDOW_ID", "NO_COLOR")}
        command = [PROGRAMS / "agentctl", "--socket", self.agent.socket, "ask", "q", "--save", self.where / "out"]
        for environment, answer, marks in (
                ({"TERM": "xterm-kitty"}, None, b"\x1b_Ga=T"),
                ({"TERM": "xterm-256color", "TERM_PROGRAM": "iTerm.app"}, None, b"\x1b]1337;File="),
                ({"TERM": "xterm-256color"}, b"\x1b[?62;4;22c", b"\x1bPq"),
                ({"TERM": "xterm-256color"}, b"\x1b[?62;22c", None),
                ({"TERM": "xterm-256color"}, None, None),
                ({"TERM": "dumb"}, None, None), ({}, None, None),
                ({"TERM": "xterm-kitty", "TMUX": "/tmp/t,1,1"}, None, None)):
            with self.subTest(environment=environment, answer=answer):
                code, shown = on_terminal(command, base | environment, answer)
                self.assertEqual(code, 0)
                self.assertIn(b"saved: ", shown)
                for mark in (b"\x1b_Ga=T", b"\x1b]1337;File=", b"\x1bPq"):
                    self.assertEqual(mark in shown, mark == marks, shown[:200])

    def test_nothing_is_coloured_and_without_a_terminal_no_escape_is_written(self):
        for result in (TEXT, CHART, failed("NameError: x")):
            self.stand.play([program("x")], [result])
            for environment in ({"NO_COLOR": "1"}, {"TERM": "xterm-kitty"}):
                done = self.run_it("ask", "q", env=dict(os.environ) | environment)
                self.assertNotIn(b"\x1b", done.stdout + done.stderr)
        self.stand.play([program("x")], [TEXT])
        _, shown = on_terminal([PROGRAMS / "agentctl", "--socket", self.agent.socket, "ask", "q"],
                               dict(os.environ) | {"TERM": "xterm-kitty", "NO_COLOR": "1"})
        self.assertNotIn(b"\x1b", shown)

    def killed_while_it_asks(self):
        """A stand whose agentd was killed while the model was asked, and the agentctl that waits for it."""
        stand = Stand(self)
        stand.agent.start()
        stand.play([{"text": "thinking", "hold": threading.Event()}], [TEXT])
        process = subprocess.Popen([PROGRAMS / "agentctl", "--socket", stand.agent.socket, "ask", "q"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        until(lambda: stand.model.asked, "the model is asked")
        stand.agent.stop(signal.SIGKILL)
        return stand, process

    def test_a_daemon_that_ends_meanwhile_is_an_error_and_not_a_result(self):
        stand, process = self.killed_while_it_asks()
        out, said = process.communicate(timeout=PATIENCE)
        self.assertEqual((process.returncode, out), (3, b""), said)
        self.assertIn(b"does not answer", said)
        self.assertIn(b"agentctl show rq_", said)

    def test_a_daemon_that_comes_back_is_followed_on(self):
        stand, process = self.killed_while_it_asks()
        stand.agent.start()
        out, said = process.communicate(timeout=PATIENCE)
        self.assertEqual((process.returncode, out), (3, b""), said)
        self.assertIn(b"failed: agentd ended while it was under way\n", said)


if __name__ == "__main__":
    main()
