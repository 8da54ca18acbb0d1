"""What a real sbxd answers, against the OpenAPI document that it serves: every call, in its good and
bad cases."""

import json
import unittest

from sbx._transport import _Connection

from .daemon import DaemonCase

try:
    import jsonschema
except ImportError:
    jsonschema = None

FILE = "/v1/sessions/{id}/files/{path}"


@unittest.skipIf(jsonschema is None, "needs the Python package jsonschema (python3-jsonschema)")
class Answers(DaemonCase):
    def ask(self, method, target, body=None):
        connection = _Connection(self.socket, None)
        self.addCleanup(connection.close)
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body)
        connection.request(method, target, body=body)
        response = connection.getresponse()
        return response, response.read()

    def setUp(self):
        self.document = json.loads(self.ask("GET", "/v1/openapi.json")[1])

    def check(self, schema, value):
        whole = {**schema, "components": self.document["components"]}
        jsonschema.Draft202012Validator(whole).validate(value)

    def expect(self, status, method, path, target, body=None):
        """The answer has this status, which the document lists for it, with what it says of it."""
        response, content = self.ask(method, target, body)
        self.assertEqual(response.status, status, content[:300])
        listed = self.document["paths"][path][method.lower()]["responses"]
        self.assertIn(str(status), listed, f"{method} {path}")
        described = listed[str(status)]
        if "$ref" in described:
            described = self.document["components"]["responses"]["Problem"]
        if "content" not in described:
            self.assertEqual(content, b"")
            return None
        kind = response.getheader("Content-Type").split(";")[0]
        kinds = described["content"]
        self.assertTrue(kind in kinds or "*/*" in kinds, f"{method} {path}: {kind}")
        if kind not in kinds or "json" not in kind:
            return content
        if kind == "application/x-ndjson":
            events = [json.loads(line) for line in content.splitlines()]
            for event in events:
                self.check(kinds[kind]["schema"], event)
            return events
        value = json.loads(content)
        self.check(kinds[kind]["schema"], value)
        return value

    def test_runs(self):
        path = "/v1/run"
        odd = ("import sys\nsys.stdout.buffer.write(b'\\xff')\nprint('e', file=sys.stderr)\n"
               "open('/output/a', 'w').write('x')\nimport os\nos.symlink('a', '/output/l')\n"
               "import socket\nsocket.socket(socket.AF_PACKET)")
        self.expect(200, "POST", path, path, {"language": "python", "code": odd})
        slow = {"argv": ["sleep", "60"], "limits": {"wall_seconds": 0.2}}
        self.assertEqual(self.expect(200, "POST", path, path, slow)["status"], "timeout")
        much = {"language": "python", "code": "print('é' * 100000)"}
        events = self.expect(200, "POST", path, path + "?stream=1", much)
        self.assertEqual([events[0]["event"], events[-1]["event"]], ["started", "result"])
        self.assertIn("lost", [event["event"] for event in events])
        self.expect(400, "POST", path, path, b"{")
        self.expect(400, "POST", path, path, {"lang": "python"})
        self.expect(422, "POST", path, path, {"language": "cobol", "code": ""})
        self.expect(413, "POST", path, path, b" " * ((16 << 20) + 1))
        self.expect(404, "DELETE", "/v1/runs/{id}", "/v1/runs/none")

    def test_what_the_daemon_tells_of_itself(self):
        for path in ("/v1/info", "/healthz", "/metrics", "/v1/openapi.json"):
            self.expect(200, "GET", path, path)

    def test_sessions(self):
        self.expect(400, "POST", "/v1/sessions", "/v1/sessions", {"limits": {"memory": 1}})
        made = self.expect(201, "POST", "/v1/sessions", "/v1/sessions", {"limits": {"work": "2M"}})
        session = f"/v1/sessions/{made['id']}"
        self.expect(200, "GET", "/v1/sessions", "/v1/sessions")
        self.expect(200, "GET", "/v1/sessions/{id}", session)
        code = {"language": "python", "code": "open('made', 'w').write('1')", "wait": True}
        self.expect(200, "POST", "/v1/sessions/{id}/run", session + "/run", code)
        self.expect(200, "DELETE", "/v1/sessions/{id}", session)
        self.expect(404, "GET", "/v1/sessions/{id}", session)
        self.expect(404, "POST", "/v1/sessions/{id}/run", session + "/run", code)

    def test_files(self):
        made = self.expect(201, "POST", "/v1/sessions", "/v1/sessions", {"limits": {"work": "2M"}})
        files = f"/v1/sessions/{made['id']}/files"
        self.expect(201, "PUT", FILE, files + "/a/b", b"one")
        self.expect(200, "PUT", FILE, files + "/a/b", b"two")
        self.assertEqual(self.expect(200, "GET", FILE, files + "/a/b"), b"two")
        self.expect(413, "PUT", FILE, files + "/big", bytes(3 << 20))
        self.expect(400, "PUT", FILE, files + "/../a", b"")
        self.expect(409, "PUT", FILE, files + "/a", b"")
        self.expect(409, "PUT", FILE, files + "/a/b/c", b"")
        self.expect(404, "GET", FILE, files + "/none")
        listing = "/v1/sessions/{id}/files"
        page = self.expect(200, "GET", listing, files + "?limit=1")
        self.expect(200, "GET", listing, f"{files}?after={page['next']}")
        self.expect(422, "GET", listing, files + "?limit=0")
        self.expect(400, "GET", listing, files + "?page=2")
        self.expect(204, "DELETE", FILE, files + "/a")
        self.expect(404, "DELETE", FILE, files + "/a")


if __name__ == "__main__":
    unittest.main()
