"""Sessions and their files, by a scripted daemon."""

import array
import io
import os
import pathlib
import tempfile
import threading
import unittest
from unittest import mock

from sbx import Failed, Refused, SandboxLimits, Session, Unavailable

from .fake import FakeDaemon, answer, problem, result

SESSION = {"id": "s1", "owner_uid": 0, "created_at": "2026-01-01T00:00:00.000Z",
           "last_used_at": "2026-01-01T00:00:00.000Z", "idle_expires_at": "2026-01-01T01:00:00.000Z",
           "expires_at": "2026-01-02T00:00:00.000Z", "idle_seconds": 3600, "age_seconds": 86400,
           "limits": {"work": 67108864, "work_inodes": 4096}, "usage": {"size": 0, "inodes": 1},
           "running": False}
MADE = answer(SESSION, 201)
DELETED = answer({"id": "s1", "deleted": True, "run_cancelled": False})


class Sessions(unittest.TestCase):
    def asked(self, daemon):
        return [(each.method, each.target) for each in daemon.requests]

    def test_is_made_and_deleted_with_the_block(self):
        with FakeDaemon(MADE, DELETED) as daemon:
            with Session(SandboxLimits(work="1G"), idle_seconds=60, socket=daemon.path) as session:
                self.assertEqual(session.id, "s1")
            self.assertEqual(self.asked(daemon),
                             [("POST", "/v1/sessions"), ("DELETE", "/v1/sessions/s1")])
            self.assertEqual(daemon.requests[0].json(),
                             {"limits": {"work": "1G"}, "idle_seconds": 60})

    def test_a_session_that_is_gone_already_is_no_error_at_the_end(self):
        for status, code in ((404, "session_not_found"), (410, "session_expired"),
                             (410, "session_deleted")):
            with FakeDaemon(MADE, problem(status, code)) as daemon:
                with Session(socket=daemon.path) as session:
                    pass
                session.close()
                self.assertEqual(len(daemon.requests), 3)

    def test_a_session_that_cannot_be_deleted_is_one(self):
        for said, kind in ((problem(503, "shutting_down"), Unavailable), (b"", Unavailable),
                           (problem(404, "not_found"), Failed), (problem(403, "peer_refused"), Refused)):
            with FakeDaemon(MADE, said) as daemon:
                with self.assertRaises(kind):
                    with Session(socket=daemon.path):
                        pass

    def test_what_ends_the_block_is_not_hidden_by_the_end_of_the_session(self):
        for said in (problem(503, "shutting_down"), problem(404, "session_not_found"), b""):
            with FakeDaemon(MADE, said) as daemon:
                with self.assertRaisesRegex(KeyError, "the body's own"):
                    with Session(socket=daemon.path):
                        raise KeyError("the body's own")
                self.assertEqual(len(daemon.requests), 2)

    def test_attach_looks_for_it(self):
        with FakeDaemon(answer(SESSION)) as daemon:
            session = Session.attach("s1", socket=daemon.path)
            self.assertEqual(session.info().limits["work"], 67108864)
        with FakeDaemon(problem(410, "session_expired", reason="idle")) as daemon:
            with self.assertRaises(Refused) as raised:
                Session.attach("s1", socket=daemon.path)
        self.assertEqual(raised.exception.code, "session_expired")
        self.assertEqual(raised.exception.problem["reason"], "idle")

    def test_runs_in_it(self):
        with FakeDaemon(MADE, answer(result())) as daemon:
            session = Session(socket=daemon.path)
            self.assertEqual(session.run("x", timeout_seconds=2, wait=True).stdout, "42\n")
            self.assertEqual(daemon.requests[1].target, "/v1/sessions/s1/run")
            self.assertEqual(daemon.requests[1].json(),
                             {"language": "python", "code": "x", "limits": {"wall_seconds": 2},
                              "wait": True})

    def test_streams_events_of_a_run_in_it(self):
        event = answer({"seq": 0, "event": "result", "result": result()} )
        body = event.split(b"\r\n\r\n", 1)[1] + b"\n"
        with FakeDaemon(MADE, answer(body)) as daemon:
            with Session(socket=daemon.path).stream("x") as stream:
                self.assertEqual(len(list(stream)), 1)
            self.assertEqual(daemon.requests[1].target, "/v1/sessions/s1/run?stream=1")


class Files(unittest.TestCase):
    def session(self, daemon):
        return Session(socket=daemon.path)

    def test_put_takes_bytes_paths_files_and_pieces(self):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory, "f")
            path.write_bytes(b"of a path")
            ints = memoryview(array.array("i", [1, 2, 3]))
            for source, sent in ((b"bytes", b"bytes"), (path, b"of a path"), (b"", b""),
                                 (io.BytesIO(b"of a file"), b"of a file"),
                                 (iter([b"in ", b"pieces"]), b"in pieces"),
                                 (ints, bytes(ints)), (ints[::2], bytes(ints[::2])),
                                 (iter([ints]), bytes(ints))):
                with FakeDaemon(MADE, answer({"path": "p", "size": len(sent)}, 201)) as daemon:
                    self.assertEqual(self.session(daemon).put("a b/é", source), len(sent))
                    put = daemon.requests[1]
                    self.assertEqual(put.target, "/v1/sessions/s1/files/a%20b/%C3%A9")
                    self.assertEqual(put.body, sent)
                    if "Transfer-Encoding" not in put.head:
                        self.assertIn(f"\r\nContent-Length: {len(sent)}\r\n", put.head)

    def put_path(self, path):
        """The upload as it was sent, and what put() gave."""
        with FakeDaemon(MADE, answer({"path": "p", "size": 3}, 201)) as daemon:
            size = self.session(daemon).put("a", path)
            return daemon.requests[1], size

    def test_put_sends_a_file_with_its_size_and_what_has_none_to_its_end(self):
        with tempfile.TemporaryDirectory() as directory:
            path = pathlib.Path(directory, "f")
            path.write_bytes(b"x" * (3 << 20))
            put, _ = self.put_path(path)
            self.assertEqual(len(put.body), 3 << 20)
            self.assertIn(f"\r\nContent-Length: {3 << 20}\r\n", put.head)
            path.write_bytes(b"")
            self.assertEqual(self.put_path(path)[0].body, b"")
            fifo = pathlib.Path(directory, "fifo")
            os.mkfifo(fifo)
            writer = threading.Thread(target=fifo.write_bytes, args=(b"y" * (1 << 20),))
            writer.start()
            put, _ = self.put_path(fifo)
            writer.join()
            self.assertEqual(put.body, b"y" * (1 << 20))
            self.assertIn("Transfer-Encoding: chunked", put.head)
        proc = pathlib.Path("/proc/version")
        self.assertEqual(self.put_path(proc)[0].body, proc.read_bytes())
        self.assertEqual(self.put_path(pathlib.Path("/dev/null"))[0].body, b"")

    def test_put_gives_up_a_file_that_is_not_as_long_as_its_size(self):
        class Cut(FakeDaemon):
            """Takes nothing of an upload, and never answers it."""

            def _serve_one(self, connection):
                if not self.requests:
                    return super()._serve_one(connection)
                self.got = b""
                while True:
                    piece = connection.recv(65536)
                    if not piece:
                        return self.disconnected.set()
                    self.got += piece

        for size, word in ((5, "more"), (7, "less"), (1, "more"), (1 << 20, "less")):
            with tempfile.NamedTemporaryFile() as file, Cut(MADE) as daemon:
                session = self.session(daemon)
                file.write(b"abcdef")
                file.flush()
                info = os.stat_result((0o100644, 0, 0, 1, 0, 0, size, 0, 0, 0))
                with mock.patch("sbx._session.os.fstat", return_value=info), \
                        self.assertRaisesRegex(OSError, f"it has {word} in it.*{file.name}"):
                    session.put("a", pathlib.Path(file.name))
                self.assertTrue(daemon.disconnected.wait(60))
                body = daemon.got.split(b"\r\n\r\n", 1)[1]
                self.assertLess(len(body), size, "the daemon had all that it waits for")

    def test_put_of_what_cannot_be_read_sends_nothing(self):
        with FakeDaemon(MADE) as daemon, tempfile.TemporaryDirectory() as directory:
            session = self.session(daemon)
            with self.assertRaises(IsADirectoryError):
                session.put("a", pathlib.Path(directory))
            with self.assertRaises(FileNotFoundError):
                session.put("a", pathlib.Path(directory, "none"))
            self.assertEqual(len(daemon.requests), 1, "the session's own")

    def test_put_takes_no_str(self):
        with FakeDaemon(MADE) as daemon:
            with self.assertRaises(TypeError):
                self.session(daemon).put("a", "text or path?")

    def test_a_large_upload_that_is_refused_is_told_why(self):
        with FakeDaemon(MADE, problem(413, "quota_exceeded"), read_bodies=False) as daemon:
            session = self.session(daemon)
            with self.assertRaises(Refused) as raised:
                session.put("big", b"x" * (32 << 20))
        self.assertEqual(raised.exception.code, "quota_exceeded")

    def test_get_gives_the_content_or_copies_it(self):
        content = bytes(range(256)) * 5000
        with FakeDaemon(MADE, answer(content)) as daemon, tempfile.TemporaryDirectory() as directory:
            session = self.session(daemon)
            self.assertEqual(session.get("f"), content)
            target = pathlib.Path(directory, "copy")
            self.assertEqual(session.get_to("f", target), len(content))
            self.assertEqual(target.read_bytes(), content)
            buffer = io.BytesIO()
            session.get_to("f", buffer)
            self.assertEqual(buffer.getvalue(), content)

    def test_a_file_that_is_cut_off_is_an_error_however_it_is_read(self):
        cut = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345"
        with FakeDaemon(MADE, cut) as daemon:
            session = self.session(daemon)
            for read in (session.get, lambda path: session.get_to(path, io.BytesIO())):
                with self.assertRaises(Failed) as raised:
                    read("f")
                self.assertEqual(raised.exception.code, "cut_off")

    def test_a_file_that_the_caller_closed_is_not_blamed_on_the_daemon(self):
        with FakeDaemon(MADE, answer(b"content")) as daemon:
            with self.session(daemon).open("f") as file:
                self.assertEqual(file.read(3), b"con")
            for read in (file.read, lambda: file.read(1), file.readline, file.json):
                with self.assertRaisesRegex(ValueError, "it is closed"):
                    read()

    def test_list_goes_through_all_pages(self):
        def entry(path):
            return {"path": path, "type": "file", "mode": "0644", "size": 1,
                    "modified_at": "2026-01-01T00:00:00.000Z"}
        pages = [answer({"files": [entry("a"), entry("b c")], "next": "b%20c"}),
                 answer({"files": [{**entry("d"), "type": "symlink", "target": "a"}], "next": None})]
        with FakeDaemon(MADE, *pages) as daemon:
            entries = list(self.session(daemon).list())
            self.assertEqual([each.target for each in daemon.requests[1:]],
                             ["/v1/sessions/s1/files", "/v1/sessions/s1/files?after=b%20c"])
        self.assertEqual([(each.path, each.type, each.target) for each in entries],
                         [("a", "file", None), ("b c", "file", None), ("d", "symlink", "a")])

    def test_names_that_are_no_utf8_are_listed_and_reached_as_pythons_are(self):
        def entry(path, **more):
            return {"path": path, "type": "file", "mode": "0644", "size": 1,
                    "modified_at": "2026-01-01T00:00:00.000Z", **more}
        shown = [entry("d\\xff/\\xc3é"), entry("\\x5cx41"), entry("\\xFF\\n"),
                 entry("link", type="symlink", target="\\x80")]
        wanted = ["d\udcff/\udcc3é", "\\x41", "\\xFF\\n", "link"]
        with FakeDaemon(MADE, answer({"files": shown, "next": None}), answer(b"x")) as daemon:
            session = self.session(daemon)
            entries = list(session.list())
            self.assertEqual([each.path for each in entries], wanted)
            self.assertEqual(entries[3].target, "\udc80")
            for each in entries:
                self.assertEqual(session.get(each.path), b"x")
            self.assertEqual([each.target.rsplit("/files/")[1] for each in daemon.requests[2:]],
                             ["d%FF/%C3%C3%A9", "%5Cx41", "%5CxFF%5Cn", "link"])

    def test_delete_asks_for_it(self):
        with FakeDaemon(MADE, DELETED) as daemon:
            self.session(daemon).delete("a/b")
            self.assertEqual((daemon.requests[1].method, daemon.requests[1].target),
                             ("DELETE", "/v1/sessions/s1/files/a/b"))

    def test_answers_of_another_version_say_so(self):
        for said in ({}, [], {"files": [3], "next": None}, {"files": []}):
            with FakeDaemon(MADE, answer(said)) as daemon:
                session = self.session(daemon)
                with self.assertRaises(Failed):
                    list(session.list())
                with self.assertRaises(Failed):
                    session.put("a", b"")
                with self.assertRaises(Failed):
                    session.info()


if __name__ == "__main__":
    unittest.main()
