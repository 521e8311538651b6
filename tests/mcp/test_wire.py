"""The edge of the wire: whatever bytes come, every id that can be made out is answered."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from perdure.interfaces.mcp.stdio import Lines
from perdure.interfaces.mcp.wire import DEPTH_MAX, Refusal, examine, find_id, too_long

DEEP = 100_000


def asked(**more: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 7, "method": "ping", **more}).encode()


def nested(depth: int) -> bytes:
    return b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":' + b"[" * depth + b"]" * depth + b"}}"


HOSTILE = {
    "no JSON": (b"hello", -32700, (None,)),
    "half a message": (b'{"jsonrpc":"2.0","id":7,"method":"pi', -32700, (7,)),
    "a NUL byte": (b'{"jsonrpc":"2.0","id":7,"method":"a\x00b"}', -32700, (7,)),
    "invalid UTF-8": (b'{"jsonrpc":"2.0","id":7,"method":"\xff\xfe"}', -32700, (7,)),
    "UTF-16": ('{"id":7}'.encode("utf-16"), -32700, (None,)),
    "NaN": (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":NaN}}', -32700, (7,)),
    "infinity": (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":-Infinity}}', -32700, (7,)),
    "an integer of 5,000 digits": (b'{"jsonrpc":"2.0","id":7,"params":{"a":' + b"9" * 5_000 + b"}}", -32700, (7,)),
    "far too deep": (nested(DEEP), -32700, (7,)),
    "too deep, the id behind it": (b'{"a":' + b"[" * DEEP + b"]" * DEEP + b',"id":"x"}', -32700, ("x",)),
    "a little too deep": (nested(DEPTH_MAX), -32600, (7,)),
    "a lone surrogate": (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":"\\ud800"}}', -32602, (7,)),
    "a lone surrogate as a key": (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"\\udfff":1}}', -32602, (7,)),
    "a lone surrogate in the id": (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', -32602, (None,)),
    "a batch": (b'[{"jsonrpc":"2.0","id":1,"method":"ping"},{"id":"b"},{"method":"x"},5]', -32600, (1, "b")),
    "an empty batch": (b"[]", -32600, (None,)),
    "a number": (b"5", -32600, (None,)),
    "no version": (b'{"id":7,"method":"ping"}', -32600, (7,)),
    "another version": (b'{"jsonrpc":"1.0","id":7,"method":"ping"}', -32600, (7,)),
    "no method": (b'{"jsonrpc":"2.0","id":7}', -32600, (7,)),
    "a method that is none": (asked(method=5), -32600, (7,)),
    "an id that is null": (asked(id=None), -32600, (None,)),
    "an id that is true": (asked(id=True), -32600, (None,)),
    "an id that is a fraction": (asked(id=1.5), -32600, (None,)),
    "an id that is a list": (asked(id=[7]), -32600, (None,)),
    "an endless id": (asked(id="x" * 2_000), -32600, (None,)),
    "params that are a list": (asked(params=[1]), -32602, (7,)),
    "params that are a text": (asked(params="x"), -32602, (7,)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_cannot_be_served_is_refused_by_its_id(name: str) -> None:
    raw, code, ids = HOSTILE[name]
    found = examine(raw)
    assert isinstance(found, Refusal)
    assert (found.code, found.ids) == (code, ids)
    for answer in found.answers():
        answer.model_dump_json().encode()


def test_what_can_be_served_passes() -> None:
    assert isinstance(examine(asked()), JSONRPCRequest)
    assert isinstance(examine(asked(id="x", params={"a": "\U0001f600 \\ud800 ü"})), JSONRPCRequest)
    assert isinstance(examine(b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":"\\ud83d\\ude00"}}'), JSONRPCRequest)
    assert isinstance(examine(b'{"jsonrpc":"2.0","method":"notifications/initialized"}'), JSONRPCNotification)
    assert isinstance(examine(b'{"jsonrpc":"2.0","id":7,"result":{}}'), JSONRPCResponse)
    assert isinstance(examine(nested(DEPTH_MAX - 2)), JSONRPCRequest)


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_a_refusal_that_can_be_sent(raw: bytes) -> None:
    found = examine(raw)
    if isinstance(found, Refusal):
        assert all(answer.model_dump_json().encode() for answer in found.answers())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(), max_size=8) | st.floats(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters(), max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, st.integers(-9, 9) | st.text("abc", min_size=1), st.booleans())
def test_a_request_is_served_or_refused_by_its_own_id(params: Any, name: int | str, cut: bool) -> None:
    raw = json.dumps({"jsonrpc": "2.0", "id": name, "method": "tools/call", "params": params}).encode()
    found = examine(raw[:-1] if cut else raw)
    if isinstance(found, Refusal):
        assert found.ids == (name,)
    else:
        assert isinstance(found, JSONRPCRequest)
        assert found.id == name


@given(st.lists(st.binary(max_size=30), max_size=8), st.lists(st.integers(1, 9), min_size=1, max_size=40))
def test_lines_are_the_same_however_they_are_cut(parts: list[bytes], sizes: list[int]) -> None:
    raw, lines, found, at = b"\n".join(parts), Lines(20), [], 0
    while at < len(raw):
        size = sizes[at % len(sizes)]
        found += lines.feed(raw[at : at + size])
        at += size
    found += lines.end()
    wanted = [line if len(line) <= 20 else None for line in raw.split(b"\n") if line.strip() or len(line) > 20]
    assert [None if isinstance(one, Refusal) else one for one in found] == [None if w is None else w.strip() for w in wanted]


def test_a_line_that_is_too_long_is_refused_by_its_id_wherever_that_stands() -> None:
    long = b"x" * 10_000
    for raw, name in (
        (b'{"jsonrpc":"2.0","id":7,"method":"' + long + b'"}', 7),
        (b'{"jsonrpc":"2.0","method":"' + long + b'","id":"b"}', "b"),
        (b'{"jsonrpc":"2.0","method":"' + long + b'"}', None),
    ):
        lines = Lines(1_000)
        found = [one for start in range(0, len(raw), 512) for one in lines.feed(raw[start : start + 512])]
        found += lines.feed(b"\n" + asked() + b"\n")
        assert isinstance(found[0], Refusal)
        assert (found[0].code, found[0].ids) == (-32600, (name,))
        assert found[1:] == [asked()]


def test_an_id_inside_of_something_else_is_not_the_messages() -> None:
    assert find_id('{"params":{"id":3},"text":"\\"id\\":4","id":5,') == 5
    assert find_id('{"params":{"id":3}') is None
    assert find_id('[{"id":3}') is None
    assert too_long(b'{"params":{"id":3,', b'"id":3}}', 10).ids == (None,)
