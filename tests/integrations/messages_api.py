"""A stand-in for the API that Claude Code asks: it answers every request alike, and keeps what it was asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

SAID = "Noted."


@contextmanager
def serving() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Its address, and the requests so far."""
    asked: list[dict[str, Any]] = []

    class Api(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._send(200, "application/json", "")

        def do_GET(self) -> None:
            self._send(404, "application/json", "{}")

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers.get("content-length") or 0)))
            asked.append(request)
            if request.get("stream"):
                self._send(
                    200,
                    "text/event-stream",
                    "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in streamed()),
                )
            else:
                self._send(200, "application/json", json.dumps({**reply(), "content": [{"type": "text", "text": SAID}]}))

        def _send(self, status: int, kind: str, text: str) -> None:
            body = text.encode()
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Api)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def reply() -> dict[str, Any]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": usage,
    }


def streamed() -> list[dict[str, Any]]:
    return [
        {"type": "message_start", "message": {**reply(), "stop_reason": None}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": SAID}},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ]
