"""What servers of models do wrong, by name: on the connection, in HTTP, in JSON, in the protocol, and in the model's words."""

from __future__ import annotations

import gzip
import json
import socket
import time
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from perdure.testing.model_server import Act, ModelExchange, fitting
from proof.model_host import Door, Fault, reset

SILENCE_S = 20.0
OK = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
STATUSES = (
    201,
    202,
    203,
    204,
    206,
    300,
    301,
    302,
    303,
    304,
    305,
    307,
    308,
    400,
    401,
    402,
    403,
    404,
    405,
    406,
    407,
    408,
    409,
    410,
    411,
    412,
    413,
    414,
    415,
    417,
    418,
    421,
    422,
    423,
    424,
    425,
    426,
    428,
    429,
    431,
    451,
    500,
    501,
    502,
    503,
    504,
    505,
    507,
    508,
    511,
    520,
    522,
    524,
    529,
    599,
)
PAUSES = (
    "0",
    "3600",
    "99999999999999999999",
    "-5",
    "soon",
    "Fri, 31 Dec 2100 23:59:59 GMT",
    "Thu, 01 Jan 1970 00:00:00 GMT",
    "1e9",
)


# -- below HTTP


def _heard(connection: socket.socket, *, whole: bool = True) -> bytes:
    """What the client says: all of it, or its first piece."""
    connection.settimeout(5)
    said = connection.recv(200 if not whole else 65_536)
    while whole and said and b"\r\n\r\n" not in said:
        said += connection.recv(65_536)
    if whole:
        head, _, body = said.partition(b"\r\n\r\n")
        lines = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        left = (int(lines[0].split(b":")[1]) if lines else 0) - len(body)
        while left > 0 and (more := connection.recv(65_536)):
            left -= len(more)
    return said


def _silent(connection: socket.socket) -> None:
    """Nothing, until the other side has enough."""
    connection.settimeout(SILENCE_S)
    while connection.recv(65_536):
        pass


def _half_heard(connection: socket.socket) -> None:
    _heard(connection, whole=False)
    reset(connection)


def _hung_up(connection: socket.socket) -> None:
    _heard(connection)


def _reset_unanswered(connection: socket.socket) -> None:
    _heard(connection)
    reset(connection)


def _says(words: bytes, *, then_resets: bool = False) -> Door:
    def door(connection: socket.socket) -> None:
        _heard(connection)
        connection.sendall(words)
        if then_resets:
            time.sleep(0.005)  # else the reset may overtake what was said, which is another fault
            reset(connection)

    return door


def _drips(first: bytes, drop: bytes) -> Door:
    def door(connection: socket.socket) -> None:
        _heard(connection)
        connection.sendall(first)
        until = time.monotonic() + SILENCE_S
        while time.monotonic() < until:
            connection.sendall(drop)
            time.sleep(0.02)

    return door


def _stops(first: bytes) -> Door:
    def door(connection: socket.socket) -> None:
        _heard(connection)
        connection.sendall(first)
        _silent(connection)

    return door


def wire_faults() -> Iterator[Fault]:
    """Those that have nothing to do with what was asked."""
    yield Fault("nobody listens", refuses=True)
    doors: Mapping[str, Door] = {
        "resets at once": reset,
        "hangs up at once": lambda connection: None,
        "resets in the middle of the question": _half_heard,
        "hangs up when it is asked": _hung_up,
        "resets when it is asked": _reset_unanswered,
        "speaks another protocol": _says(b"SSH-2.0-OpenSSH_9.6\r\n"),
        "speaks TLS": _says(b"\x15\x03\x03\x00\x02\x02\x28"),
        "says noise": _says(bytes(range(256)) * 4),
        "answers without a head": _says(b'{"choices": []}'),
        "half a status line": _says(b"HTTP/1.1 20", then_resets=True),
        "a status that is no number": _says(b"HTTP/1.1 abc OK\r\n\r\n"),
        "a version of its own": _says(b"HTTP/9.9 200 OK\r\ncontent-length: 2\r\n\r\n{}"),
        "half a head": _says(OK + b"content-le", then_resets=True),
        "a head and no body": _says(OK + b"content-length: 500\r\n\r\n"),
        "half a body": _says(OK + b'content-length: 500\r\n\r\n{"choices": [{"mess', then_resets=True),
        "a body longer than it says": _says(OK + b'content-length: 12\r\n\r\n{"choices": [{"message": {}}]}'),
        "a length that is no number": _says(OK + b"content-length: many\r\n\r\n{}"),
        "a negative length": _says(OK + b"content-length: -1\r\n\r\n{}"),
        "two lengths": _says(OK + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}"),
        "a length beyond all bounds": _says(OK + b"content-length: 99999999999999999999\r\n\r\n{}"),
        "a flood of headers": _says(OK + b"".join(b"x-%d: y\r\n" % one for one in range(20_000)) + b"\r\n"),
        "one endless header": _says(OK + b"x-long: " + b"y" * 2_000_000 + b"\r\n\r\n"),
        "a NUL in a header": _says(OK + b"x-nul: a\x00b\r\ncontent-length: 2\r\n\r\n{}"),
        "chunks of no size": _says(OK + b"transfer-encoding: chunked\r\n\r\nxyz\r\n{}\r\n0\r\n\r\n"),
        "a chunk cut off": _says(OK + b'transfer-encoding: chunked\r\n\r\nff\r\n{"choi', then_resets=True),
        "chunks without an end": _says(OK + b"transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n"),
        "a chunk beyond all bounds": _says(OK + b"transfer-encoding: chunked\r\n\r\nffffffffffffffff\r\n{}"),
        "a coding nobody knows": _says(OK + b"transfer-encoding: rot13\r\ncontent-length: 2\r\n\r\n{}"),
        "only promises to go on": _says(b"HTTP/1.1 100 Continue\r\n\r\n" * 50),
        "changes the protocol": _says(b"HTTP/1.1 101 Switching Protocols\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n"),
    }
    yield from (Fault(name, door=door) for name, door in doors.items())
    slow: Mapping[str, Door] = {
        "never answers": _silent,
        "never ends its head": _drips(b"HTTP/1.1 200 OK\r\n", b"x-more: x\r\n"),
        "never ends its body": _drips(OK + b"content-length: 1000000\r\n\r\n", b" "),
        "never ends its chunks": _drips(OK + b"transfer-encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
        "falls silent in its head": _stops(b"HTTP/1.1 200 OK\r\ncontent-"),
        "falls silent in its body": _stops(OK + b'content-length: 1000\r\n\r\n{"choices'),
    }
    yield from (Fault(name, door=door, slow=True) for name, door in slow.items())


# -- HTTP


def status(code: int, **headers: str) -> Act:
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    def act(exchange: ModelExchange) -> None:
        content = b"" if code in (204, 304) else json.dumps({"error": {"message": "no", "code": None}}).encode()
        exchange.send(content, code, named)

    return act


def body(content: bytes, **headers: str) -> Act:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda exchange: exchange.send(content, 200, named)


def status_faults(elsewhere: str) -> Iterator[Fault]:
    """`elsewhere`: where redirects lead, and nobody may ever be seen."""
    for code in STATUSES:
        leads = {"location": f"{elsewhere}/{code}"} if 300 <= code < 400 else {}
        yield Fault(f"HTTP {code}", status(code, **leads))
    for pause in PAUSES:
        yield Fault(f"HTTP 429, again after {pause}", status(429, retry_after=pause))
    yield Fault("HTTP 503, again after 3600", status(503, retry_after="3600"))
    yield Fault("HTTP 500 as a page", lambda exchange: exchange.send(b"<html>oops</html>", 500, {"content-type": "text/html"}))


def body_faults() -> Iterator[Fault]:
    """Answers that say 200 and hold nothing of use, whatever was asked."""
    bomb = gzip.compress(b" " * 50_000_000)
    whole = gzip.compress(b'{"choices": []}' * 100)
    bodies: Mapping[str, Act] = {
        "nothing": body(b""),
        "spaces": body(b" " * 100),
        "a page": body(b"<!doctype html><title>Sign in</title>", content_type="text/html"),
        "a login page as JSON": body(b"<html>upstream error</html>"),
        "half of JSON": body(b'{"choices": [{"message": {"content": "abc'),
        "JSON and more": body(b'{"choices": []} {"choices": []}'),
        "a bare number": body(b"42"),
        "a bare null": body(b"null"),
        "a bare list": body(b"[1, 2, 3]"),
        "a bare text": body(b'"hello"'),
        "an empty object": body(b"{}"),
        "JSON with NaN": body(b'{"choices": NaN}'),
        "deep JSON": body(b"[" * 200_000),
        "deep JSON with an end": body(b"[" * 100_000 + b"]" * 100_000),
        "bad UTF-8": body(b'{"choices": [{"message": {"content": "\xff\xfe\xfa"}}]}'),
        "a mark before JSON": body(b"\xef\xbb\xbf" + b'{"choices": []}'),
        "UTF-16": body('{"choices": []}'.encode("utf-16")),
        "a packed bomb": body(bomb, content_encoding="gzip"),
        "a broken package": body(whole[:20] + b"\x00\x00" + whole[22:], content_encoding="gzip"),
        "half a package": body(whole[: len(whole) // 2], content_encoding="gzip"),
        "no package at all": body(b'{"choices": []}', content_encoding="gzip"),
        "a package of another kind": body(zlib.compress(b"{}") + b"\x00", content_encoding="br"),
        "an error with 200": body(b'{"error": {"message": "model is overloaded", "type": "server_error"}}'),
        "events": body(
            b'data: {"choices": [{"delta": {"content": "{"}}]}\n\ndata: [DONE]\n\n', content_type="text/event-stream"
        ),
        "events cut off": body(b'data: {"choices": [{"del', content_type="text/event-stream"),
        "lines of JSON": body(b'{"message": {"content": "{"}, "done": false}\n{"message": {"content": "}"}, "done": true}\n'),
    }
    yield from (Fault(name, act) for name, act in bodies.items())


# -- the protocol


def _shaped(openai: Any, ollama: Any) -> Act:
    return lambda exchange: exchange.send(json.dumps(ollama if exchange.asked.path.startswith("/api") else openai).encode())


def _message(message: Any) -> Act:
    return _shaped({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}, {"message": message, "done": True})


def protocol_faults() -> Iterator[Fault]:
    call = {"id": "c1", "type": "function", "function": {"name": "delete_everything", "arguments": "{}"}}
    shapes: Mapping[str, Act] = {
        "no choices": _shaped({"choices": []}, {"done": True}),
        "choices of null": _shaped({"choices": None}, {"message": None}),
        "choices by name": _shaped({"choices": {"0": {}}}, {"message": ["x"]}),
        "a choice of null": _shaped({"choices": [None]}, {"message": 5}),
        "no message": _shaped({"choices": [{"finish_reason": "stop"}]}, {"response": "{}"}),
        "a message of text": _message("{}"),
        "no content": _message({"role": "assistant"}),
        "content of null": _message({"role": "assistant", "content": None}),
        "content of a number": _message({"role": "assistant", "content": 42}),
        "content of true": _message({"role": "assistant", "content": True}),
        "content as an object": _message({"role": "assistant", "content": {"proposals": []}}),
        "content in odd parts": _message({"role": "assistant", "content": [{"type": "text"}, None, 3]}),
        "content in pictures": _message({"role": "assistant", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}),
        "a call instead of content": _message({"role": "assistant", "content": None, "tool_calls": [call]}),
    }
    yield from (Fault(name, act) for name, act in shapes.items())


# -- the model's words


def _spoken(made: Callable[[ModelExchange], str], *, finish: str = "stop") -> Act:
    return lambda exchange: exchange.send(exchange.envelope(made(exchange), finish=finish))


def _says_always(text: str, *, finish: str = "stop") -> Act:
    return _spoken(lambda exchange: text, finish=finish)


def _fitting(exchange: ModelExchange) -> Any:
    return fitting(exchange.asked.schema or {"type": "object", "properties": {"text": {"type": "string"}}}, entries=1)


def _refuses(exchange: ModelExchange) -> None:
    exchange.send(exchange.envelope(None, refusal="I'm sorry, but I can't help with that."))


def word_faults() -> Iterator[Fault]:
    acts: Mapping[str, Act] = {
        "no words": _says_always(""),
        "blank words": _says_always(" \n\t "),
        "refuses": _refuses,
        "refuses in words": _says_always("I'm sorry, but I can't help with that request."),
        "is filtered": _spoken(lambda exchange: "", finish="content_filter"),
        "chats": _says_always("I would rather talk about the weather, which is nice today."),
        "another schema": _says_always('{"unexpected": [1, 2, 3]}'),
        "a list": _says_always("[1, 2, 3]"),
        "a number": _says_always("7"),
        "null": _says_always("null"),
        "two answers": _says_always('{"a": 1} or rather {"a": 2}'),
        "cut by its length": _spoken(lambda one: json.dumps(_fitting(one))[:-9], finish="length"),
        "cut in a fence": _spoken(lambda one: "```json\n" + json.dumps(_fitting(one))[:-9]),
        "deep words": _says_always('{"proposals": ' + "[" * 50_000),
        "endless words": _says_always("x" * 600_000),
        "repeats itself": _says_always("the the " * 20_000, finish="length"),
        "repeats an entry": _says_always('{"proposals": [' + '{"n": 1},' * 20_000, finish="length"),
        "only thoughts": _says_always("<think>" + "Let me see. " * 1_000, finish="length"),
        "numbers for all": _spoken(lambda one: json.dumps(dict.fromkeys(_fitting(one), 5))),
        "null for all": _spoken(lambda one: json.dumps({name: {"a": None} for name in _fitting(one)})),
        "texts for all": _spoken(lambda one: json.dumps(dict.fromkeys(_fitting(one), "x" * 10))),
        "the schema itself": _spoken(lambda one: json.dumps(one.asked.schema)),
        "NUL characters": _says_always("\x00" * 500),
        "half characters": _says_always("\ud800\udfff\udc00" * 50),
        "JSON with comments": _says_always('{"proposals": /* none */ [} // sorry'),
        "XML": _says_always("<answer><proposals/></answer>"),
        "code": _says_always("```python\nimport os\nos.remove('memory.db')\n```"),
    }
    yield from (Fault(name, act) for name, act in acts.items())


def chat_faults(elsewhere: str) -> list[Fault]:
    """All of them, each under a name of its own."""
    found = [*wire_faults(), *status_faults(elsewhere), *body_faults(), *protocol_faults(), *word_faults()]
    assert len({one.name for one in found}) == len(found)
    return found
