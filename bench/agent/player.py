"""An OpenAI-compatible server on loopback that plays recordings: a provider with a real key, and nobody behind it.

What agentd sends to a provider is one of its surfaces. With this server the injections see it, and the daemon holds a
key that can leak. It answers plain and streamed requests, one case at a time: play() says which replies come next.
"""

import http.server
import json
import threading

MODEL = "recorded"
CHUNK = 400


class Player:
    """Serves on 127.0.0.1 until closed; `key` is the only bearer token that it takes."""

    def __init__(self, key):
        self._key, self._lock = key, threading.Lock()
        self._replies, self._bodies, self._refused = [], [], 0
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.base_url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def play(self, recordings):
        """The replies to the calls from here on, and what was sent since the last play()."""
        with self._lock:
            bodies, self._bodies = self._bodies, []
            self._replies = list(recordings)
        return bodies

    @property
    def refused(self):
        """How many requests came without the key."""
        return self._refused

    def _next(self, authorization, body):
        with self._lock:
            self._bodies.append(body)
            if authorization != f"Bearer {self._key}":
                self._refused += 1
                return None
            return self._replies.pop(0) if self._replies else None

    def _handler(player):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                recording = player._next(self.headers.get("Authorization"), body)
                if recording is None:
                    self._send(401, "application/json", b'{"error": {"message": "no reply for this", "code": "none"}}')
                elif json.loads(body).get("stream"):
                    self._send(200, "text/event-stream", streamed(recording))
                else:
                    self._send(200, "application/json", plain(recording))

            def _send(self, status, kind, content):
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

        return Handler

    def close(self):
        self._server.shutdown()
        self._server.server_close()


def usage_of(recording):
    counts = recording["usage"]
    return {"prompt_tokens": counts["input_tokens"], "completion_tokens": counts["output_tokens"],
            "total_tokens": sum(counts.values())}


def completion(recording, kind, part, **fields):
    choices = [] if part is None else [{"index": 0, **part}]
    return {"id": "chatcmpl-recorded", "object": kind, "created": 0, "model": MODEL, "choices": choices, **fields}


def message_of(recording):
    """The text, and the tool calls as the protocol writes them."""
    reply = recording["reply"]
    if isinstance(reply, str):
        return reply, []
    calls = [{"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": call["arguments"]}}
             for call in reply["tool_calls"]]
    return reply["text"], calls


def plain(recording):
    text, calls = message_of(recording)
    message = {"role": "assistant", "content": text or None} | ({"tool_calls": calls} if calls else {})
    part = {"message": message, "finish_reason": recording["finish_reason"]}
    return json.dumps(completion(recording, "chat.completion", part, usage=usage_of(recording))).encode()


def streamed(recording):
    kind, (text, calls) = "chat.completion.chunk", message_of(recording)
    deltas = [{"role": "assistant", "content": ""}]
    deltas += [{"content": text[at:at + CHUNK]} for at in range(0, len(text), CHUNK)]
    for index, call in enumerate(calls):
        deltas.append({"tool_calls": [{"index": index, **call, "function": call["function"] | {"arguments": ""}}]})
        written = call["function"]["arguments"]
        deltas += [{"tool_calls": [{"index": index, "function": {"arguments": written[at:at + CHUNK]}}]}
                   for at in range(0, len(written), CHUNK)]
    parts = [{"delta": delta, "finish_reason": None} for delta in deltas]
    parts.append({"delta": {}, "finish_reason": recording["finish_reason"]})
    chunks = [completion(recording, kind, part) for part in parts]
    chunks.append(completion(recording, kind, None, usage=usage_of(recording)))
    return "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks).encode() + b"data: [DONE]\n\n"
