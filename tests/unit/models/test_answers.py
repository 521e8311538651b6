"""Answers of models as JSON (B-16): found in prose, read or not, never guessed; whatever the text, no error and no long wait."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perdure.engine.models.answers import (
    ANSWER_CHARS_MAX,
    EXTRACTION,
    FOLD,
    SESSION,
    SPINE,
    Unreadable,
    an_object,
    complaints,
    read_answer,
    read_object,
)
from talk import any_text

SCHEMA = {
    "type": "object",
    "properties": {
        "keys": {"type": "array", "items": {"type": "string", "maxLength": 5}, "maxItems": 3},
        "time_range": {"type": ["string", "null"]},
        "mode": {"enum": ["a", "b"]},
        "share": {"type": "number", "minimum": 0, "maximum": 1},
        "count": {"type": "integer"},
        "sure": {"type": "boolean"},
        "inner": {"type": "object", "properties": {"x": {"type": "string", "minLength": 1}}, "required": ["x"]},
    },
    "required": ["keys"],
    "additionalProperties": False,
}
GOOD = {"keys": ["one"], "time_range": None}
SAID = json.dumps(GOOD)


@pytest.mark.parametrize(
    "text",
    [
        SAID,
        f"  {SAID}\n",
        f"```json\n{json.dumps(GOOD, indent=2)}\n```",
        f"```\n{SAID}\n```",
        f"Sure! Here it is:\n\n```json\n{SAID}\n```\nAnything else?",
        f"The answer is {SAID}, I think [1].",
        f"{{braces}} and [brackets] first. {SAID} and {{}} last",
        f"[the answer: {SAID}]",
        f"{SAID}\n{SAID}",
        f"{SAID} – again: {json.dumps(GOOD, indent=1)}",
        '{"keys": ["one",], "time_range": null,}',
        '{"keys": ["one"\n,\n], "time_range": null ,\n}',
        f'<think>Should it be {{"keys": []}}?</think>{SAID}',
        f"<THINKING>hm\n</THINKING>\n{SAID}",
        f'I could say {{"keys": []}} but no</think>\n{SAID}',
        '{"KEYS": ["one"], "Time-Range": null}',
        f'He said "{SAID}"',
        '{"keys": ["one"], "time_range": null, "extra": {"a": [1, {}]}}',
    ],
)
def test_one_object_is_found_whatever_stands_around_it(text: str) -> None:
    found = read_answer(text, SCHEMA)
    assert isinstance(found, dict), found
    assert {name: found[name] for name in GOOD} == GOOD


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no JSON object"),
        ("I would rather not.", "no JSON object"),
        ("{'keys': ['one']}", "no JSON object"),
        ("{keys: ['one']}", "no JSON object"),
        ('{"keys": ["one"]} or {"keys": ["two"]}', "ambiguous"),
        ('{"keys": ["one"], "keys": ["two"]}', "no JSON object"),
        ('{"keys": ["one"', "cut off"),
        ('Here: {"keys": [{"name": "one"}', "cut off"),
        ('[{"keys": ["one"]}', "cut off"),
        ('[{"keys": ["one"]}]', "a list"),
        ('{"keys": NaN}', "no JSON object"),
        ('{"keys": "one"}', "`keys` must be a list"),
        ("{}", "`keys` is missing"),
        ("<think>{}", "no JSON object"),
        ("[]", "a list"),
        ("5", "no JSON object"),
    ],
)
def test_what_is_no_answer_is_unreadable_and_says_why(text: str, why: str) -> None:
    found = read_answer(text, SCHEMA)
    assert isinstance(found, Unreadable)
    assert why in found.why


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ({"keys": ["secret", "b"]}, "entry 1 of `keys` must have at most 5 characters"),
        ({"keys": ["a"] * 4}, "`keys` must have at most 3 entries"),
        ({"keys": [1]}, "entry 1 of `keys` must be a text"),
        ({"time_range": 5}, "`time_range` must be a text or null"),
        ({"mode": "secret"}, '`mode` must be one of "a", "b"'),
        ({"share": 1.5}, "`share` must be at most 1"),
        ({"share": -1}, "`share` must be at least 0"),
        ({"share": True}, "`share` must be a number"),
        ({"count": 1.5}, "`count` must be a whole number"),
        ({"count": False}, "`count` must be a whole number"),
        ({"sure": 1}, "`sure` must be true or false"),
        ({"inner": {}}, "`x` is missing in `inner`"),
        ({"inner": {"x": ""}}, "`x` of `inner` must have at least 1 characters"),
        ({"inner": []}, "`inner` must be an object"),
    ],
    ids=lambda value: None if isinstance(value, dict) else value,
)
def test_what_is_wrong_is_named_and_never_quoted(wrong: dict[str, Any], why: str) -> None:
    assert complaints({"keys": [], **wrong}, SCHEMA) == [why]
    assert "secret" not in why


def test_complaints_are_few() -> None:
    assert len(complaints({"keys": [1] * 100}, SCHEMA)) == 5
    assert complaints([], SCHEMA) == ["the answer must be an object"]


def test_whole_numbers_may_come_as_floats() -> None:
    assert complaints({"keys": [], "count": 2.0}, SCHEMA) == []


def test_what_no_store_can_hold_is_taken_out() -> None:
    assert read_object('{"a\\u0000": "x\\u0000y\\ud83d", "b": [1e999, "ok"]}') == {"a": "xy?", "b": [None, "ok"]}


def test_what_is_nested_too_deep_is_unreadable() -> None:
    assert isinstance(read_object('{"a":' * 100 + "1" + "}" * 100), Unreadable)
    assert isinstance(read_object('{"a":' * 60 + "1" + "}" * 60), dict)


HOSTILE_CHARS = ANSWER_CHARS_MAX // 4
HOSTILE = {
    "braces": "{",
    "brackets": "[",
    "names": '{"a":',
    "pairs": "{}",
    "lists of pairs": "[{}]",
    "quotes": '"\\"',
    "open quotes": '{"\\"',
    "thoughts": "<think>",
    "ends of thoughts": "</think>",
    "closers": ",}",
    "commas": ",",
    "prose brackets": "[x{y}]",
    "prose braces": "{x}",
    "crossed": "{]",
    "spaced": "{ ",
    "backslashes": "\\",
    "lists": "[1,",
    "fences": "```json\n",
    "ticks": "`",
}


@pytest.mark.parametrize("piece", HOSTILE.values(), ids=HOSTILE)
def test_hostile_text_is_read_in_a_time_that_its_length_explains(piece: str) -> None:
    for text in (piece * (HOSTILE_CHARS // len(piece)), '{"a": ' + piece * (60_000 // len(piece)) + "}"):
        started = time.process_time()
        read_object(text)
        assert time.process_time() - started < 5, "quadratic work on a hundred thousand characters would take much longer"


def test_more_than_any_answer_has_is_not_looked_at() -> None:
    started = time.process_time()
    assert isinstance(read_object("{" * 5_000_000), Unreadable)
    assert time.process_time() - started < 1


@given(any_text)
def test_no_text_is_an_error(text: str) -> None:
    for schema in (SCHEMA, FOLD, SESSION, SPINE, EXTRACTION):
        assert isinstance(read_answer(text, schema), dict | Unreadable)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
PROSE = st.text(alphabet="abc .,:!\n'`()", max_size=40)


@given(st.dictionaries(st.text(max_size=8), json_values, min_size=1, max_size=4), PROSE, PROSE)
def test_an_object_in_prose_is_the_object(value: dict[str, Any], before: str, after: str) -> None:
    found = read_object(before + json.dumps(value) + after)
    assert json.dumps(found).replace("\\u0000", "") == json.dumps(read_object(json.dumps(value))).replace("\\u0000", "")
    assert isinstance(found, dict)


@given(st.text(alphabet='{}[]",:\\ a1\n', max_size=60))
def test_texts_of_brackets_and_quotes_are_never_an_error(text: str) -> None:
    found = read_object(text)
    if isinstance(found, dict):
        json.dumps(found, allow_nan=False)


@given(json_values)
def test_a_value_has_complaints_or_fits(value: Any) -> None:
    inner = an_object(a={"type": "string"})
    found = complaints(value, inner)
    fits = isinstance(value, dict) and isinstance(value.get("a"), str)
    assert (found == []) == fits
