"""An sbxd that does not hold: what it says of itself is the real one's, but programs run as it was told to break.

Each request is run by sbx-run with options that let something through (the host's network, a file of the host), so that
a benchmark that finds nothing wrong with it is wrong itself.
"""

import base64
import http.server
import json
import os
import socketserver
import threading

import direct
from unix_http import call


class BrokenBox(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True

    def __init__(self, path, sbxd, options):
        self.socket_path, self.sbxd, self.options = str(path), sbxd, options
        super().__init__(self.socket_path, Handler)
        os.chmod(self.socket_path, 0o666)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def close(self):
        self.shutdown()
        self.server_close()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def address_string(self):
        return "a Unix socket"

    def do_GET(self):
        self._send(call(self.server.sbxd, "GET", self.path)[1])

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        files = {file["name"]: base64.b64decode(file["content_base64"]) for file in asked.get("files", [])}
        result = direct.run(asked["language"], asked["code"], files, options=self.server.options)
        self._send(json.dumps(result).encode())

    def _send(self, content):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
