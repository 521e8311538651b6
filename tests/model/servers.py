"""Servers for a real model on this machine: one that speaks OpenAI's dialect, and a front that speaks Ollama's."""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

HOST = Path(__file__).with_name("llama_host.py")
LOAD_S = 180.0
STOP_S = 10.0
UPSTREAM_S = 600.0
TEMPLATE_TOKENS = 48
"""What a chat template adds, at most; some add a system message of their own."""


class ServerFailed(Exception):
    """The model could not be served; the words say why."""


class TooLong(Exception):
    """A prompt does not fit, and may not be cut."""


@dataclass(frozen=True, slots=True)
class Served:
    """A model behind an OpenAI-compatible server."""

    url: str
    model: str
    pid: int


@contextmanager
def serving(path: Path, model: str, *, log: Path, threads: int = 1) -> Iterator[Served]:
    """A model's server in a process of its own, on a free port. It ends with the block, or with this process."""
    # The host needs nothing of ours, and a setting of a test is none of its business.
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PERDURE_")}
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [sys.executable, str(HOST), str(path), model, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=sink,
            env=environ,
        )
    try:
        yield Served(_address(process, log), model, process.pid)
    finally:
        _stop(process)


def _address(process: subprocess.Popen[bytes], log: Path) -> str:
    """The first line that the host prints that is an address; the library may say something before."""
    assert process.stdout is not None
    timer = threading.Timer(LOAD_S, process.kill)
    timer.start()
    try:
        for line in process.stdout:
            if line.startswith(b"http://"):
                return line.decode().strip()
    finally:
        timer.cancel()
    raise ServerFailed(f"the model was not loaded (it has {LOAD_S:.0f} s):\n{log.read_text(errors='replace')[-2_000:]}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(STOP_S)
    process.stdout.close()


@dataclass
class OllamaFront:
    """`/api/chat` over an OpenAI-compatible server, as Ollama would answer it; embeddings it has none.

    As Ollama does, it streams unless told not to, forgets the start of a prompt that does not fit into `num_ctx` unless
    `truncate` is off, and ends the work when whoever asked has hung up.
    """

    served: Served
    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    forgot: int = 0
    """Prompts whose start was cut off."""

    @contextmanager
    def running(self) -> Iterator[OllamaFront]:
        front = self

        class Handler(_Handler):
            ollama = front

        http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        http.daemon_threads = True
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        self.url = f"http://127.0.0.1:{http.server_port}"
        try:
            yield self
        finally:
            http.shutdown()
            thread.join()
            http.server_close()

    def upstream(self, question: dict[str, Any]) -> dict[str, Any]:
        """The question in the other dialect; `TooLong` if it does not fit and may not be cut."""
        options = question.get("options") or {}
        body: dict[str, Any] = {
            "model": self.served.model,
            "messages": self._remembered(question, options.get("num_ctx", 4096)),
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        names = {"temperature": "temperature", "seed": "seed", "top_p": "top_p", "stop": "stop", "num_predict": "max_tokens"}
        body |= {theirs: options[ours] for ours, theirs in names.items() if ours in options}
        shape = question.get("format")
        if isinstance(shape, dict):
            schema = {"name": "answer", "schema": shape, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif shape == "json":
            body["response_format"] = {"type": "json_object"}
        return body

    def _remembered(self, question: dict[str, Any], num_ctx: int) -> list[dict[str, Any]]:
        """Messages that fit: of the others, those after the system's go first, oldest first; the last one loses its start."""
        messages: list[dict[str, Any]] = question["messages"]
        sizes = [self._tokens(message["content"]) + TEMPLATE_TOKENS for message in messages]
        kept = list(range(len(messages)))
        if sum(sizes) <= num_ctx:
            return messages
        if question.get("truncate") is False:
            raise TooLong(f"request ({sum(sizes)} tokens) exceeds the available context size ({num_ctx} tokens)")
        self.forgot += 1
        for at, message in enumerate(messages[:-1]):
            if message["role"] != "system" and sum(sizes[one] for one in kept) > num_ctx:
                kept.remove(at)
        over = sum(sizes[one] for one in kept) - num_ctx
        if over <= 0:
            return [messages[one] for one in kept]
        last = messages[-1]
        share = min(1.0, over / max(1, sizes[-1] - TEMPLATE_TOKENS))
        return [
            *(messages[one] for one in kept[:-1]),
            {**last, "content": last["content"][int(len(last["content"]) * share) :]},
        ]

    def _tokens(self, text: str) -> int:
        with _post(f"{self.served.url}/tokenize", {"content": text}) as reply:
            return len(json.load(reply)["tokens"])


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    ollama: OllamaFront

    def do_GET(self) -> None:
        if self.path == "/api/version":
            self._answer(200, {"version": "0.0.0"})
        elif self.path == "/api/tags":
            self._answer(200, {"models": [{"name": self.ollama.served.model, "model": self.ollama.served.model}]})
        else:
            self._answer(404, {"error": "not found"})

    def do_POST(self) -> None:
        question = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.ollama.asked.append({"path": self.path, **question})
        if self.path == "/api/embed":
            self._answer(501, {"error": "this server does not support embeddings"})
        elif self.path != "/api/chat":
            self._answer(404, {"error": "not found"})
        elif question.get("model") != self.ollama.served.model:
            self._answer(404, {"error": f"model '{question.get('model')}' not found"})
        else:
            self._chat(question)

    def _chat(self, question: dict[str, Any]) -> None:
        try:
            with _post(f"{self.ollama.served.url}/v1/chat/completions", self.ollama.upstream(question)) as stream:
                said = self._collected(stream)
        except TooLong as error:
            self._answer(400, {"error": str(error)})
            return
        except urllib.error.HTTPError as error:
            with error:
                self._answer(error.code, {"error": "the model's server did not take the question"})
            return
        except OSError:
            self._answer(500, {"error": "the model's server does not answer"})
            return
        if said is None:
            self.close_connection = True
            return
        head = {"model": question["model"], "created_at": datetime.now(UTC).isoformat()}
        message = {"role": "assistant", "content": said.pop("content")}
        if question.get("stream") is False:
            self._answer(200, {**head, "message": message, "done": True, **said})
        else:
            end = {**head, "message": {"role": "assistant", "content": ""}, "done": True, **said}
            lines = [{**head, "message": message, "done": False}, end]
            self._send(200, "".join(json.dumps(line) + "\n" for line in lines).encode(), "application/x-ndjson")

    def _collected(self, stream: Any) -> dict[str, Any] | None:
        """The whole answer, or None if nobody waits for it any more: closing the stream then ends the work."""
        content, reason, usage = [], "stop", {}
        for line in stream:
            if self._is_alone():
                return None
            if not line.startswith(b"data: {"):
                continue
            event = json.loads(line.removeprefix(b"data: "))
            usage = event.get("usage") or usage
            for choice in event.get("choices", []):
                content.append(choice["delta"].get("content") or "")
                reason = choice.get("finish_reason") or reason
        counts = {"prompt_eval_count": usage.get("prompt_tokens", 0), "eval_count": usage.get("completion_tokens", 0)}
        return {"content": "".join(content), "done_reason": reason, **counts}

    def _is_alone(self) -> bool:
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable) and self.connection.recv(1, socket.MSG_PEEK) == b""

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        self._send(status, json.dumps(body).encode(), "application/json")

    def _send(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


def _post(url: str, body: dict[str, Any]) -> Any:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})
    return urllib.request.urlopen(request, timeout=UPSTREAM_S)
