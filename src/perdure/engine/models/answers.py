"""Answers of models as JSON: found in whatever stands around them, read, and held to the schema that was asked for.

Tolerant where only one thing can be meant: fences, prose around, thoughts before, a comma too many. What could mean two
things is `Unreadable`, and so is what is no JSON: guessing is not reading. The model's words are in no complaint. The work is
linear in the length of the text, and the text is bounded.
"""

from __future__ import annotations

import json
import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from perdure.domain.conversation.digests import SESSION_FIELDS, SPINE_SECTIONS
from perdure.domain.knowledge.proposals import ENTITY_TYPES, FACT_TYPES, MEMORY_TYPES, TODO_KINDS
from perdure.domain.text.patterns import pattern
from perdure.domain.text.rules import JSON_DEPTH_MAX, Json, same_json
from perdure.domain.values import dataclass
from perdure.engine.text.cues import either

ANSWER_CHARS_MAX = 500_000
"""No answer that was asked for is as long; what is, is not looked at."""
OBJECTS_MAX = 20
COMPLAINTS_MAX = 5
REFUSAL_CHARS_MAX = 600


@dataclass(frozen=True, slots=True)
class Unreadable:
    """The answer has not the shape asked for. `why` says what is wrong, without quoting it."""

    why: str


def read_answer(text: str, schema: Mapping[str, Json]) -> dict[str, Json] | Unreadable:
    """The one object in `text`, if it is as the schema says; its names are spelt as in the schema, whatever their case."""
    found = read_object(text)
    if isinstance(found, Unreadable):
        return found
    answer = spelt(found, list(schema.get("properties", ())))
    wrong = complaints(answer, schema)
    return Unreadable("; ".join(wrong)) if wrong else answer


def read_object(text: str) -> dict[str, Json] | Unreadable:
    """The one JSON object in `text`; the same one several times is one."""
    if len(text) > ANSWER_CHARS_MAX:
        return Unreadable(f"the answer has more than {ANSWER_CHARS_MAX} characters")
    bare = without_thoughts(text)
    whole = _parsed(bare)
    found = [whole] if whole is not None else _found_in(bare)
    if isinstance(found, Unreadable):
        return found
    objects = [one for one in found if isinstance(one, dict)]
    if any(isinstance(one, list) for one in found):
        return Unreadable("the answer is a list; one JSON object was asked for")
    if not objects:
        return Unreadable("the answer holds no JSON object")
    # Empty braces beside an object are prose.
    telling = [one for one in objects if one] or objects
    if any(not same_json(telling[0], other) for other in telling[1:]):
        return Unreadable("the answer is ambiguous: it holds several JSON objects that differ")
    answer: dict[str, Json] = _storable(telling[0])
    return answer


def without_thoughts(text: str) -> str:
    """`text` without what a model thought aloud before it answered; some mark only the end of it."""
    bare = _THOUGHT.sub("", text)
    ends = [match.end() for match in _THOUGHT_END.finditer(bare)]
    return bare[ends[-1] :] if ends else bare


def is_refusal(text: str) -> bool:
    """Whether a model says, in so many words, that it will not. Only short answers: a summary may tell of a refusal."""
    bare = without_thoughts(text[:ANSWER_CHARS_MAX]).strip()
    return len(bare) <= REFUSAL_CHARS_MAX and _REFUSAL.match(bare) is not None


def spelt(found: Mapping[str, Json], names: Sequence[str]) -> dict[str, Json]:
    """`found` with the names of the schema in place of those that differ from them only in case, space or dash."""
    folded = {_folded(name): name for name in names}
    exact = {key: value for key, value in found.items() if key in names}
    return {folded.get(_folded(key), key): value for key, value in found.items()} | exact


def complaints(value: Json, schema: Mapping[str, Json]) -> list[str]:
    """What of `value` is not as a schema says, in our words, the first few. Names that the schema does not know pass.

    Understood are `type`, `enum`, `properties`, `required`, `items`, `minItems`, `maxItems`, `minLength`, `maxLength`,
    `minimum` and `maximum`; other words of a schema are for the model only.
    """
    found: list[str] = []
    for complaint in _wrong(value, schema, "the answer"):
        found.append(complaint)
        if len(found) == COMPLAINTS_MAX:
            break
    return found


# -- finding

_THOUGHT = pattern(r"<(think|thinking|reasoning)>.*?(?:</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_THOUGHT_END = pattern(r"</(?:think|thinking|reasoning)>", re.IGNORECASE)
_REFUSAL = pattern(
    lambda: (
        rf"[\"'*\s]*(?:(?:{either('sorry')})[,.]?\s*(?:but )?)?(?:{either('cannot')}) (?:\w+ )?(?:{either('answer')})"
        rf"|{either('refusal')}"
    ),
    re.IGNORECASE,
)
_OPENER = pattern(r"[{\[]")
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\Z)'
_TOKEN = pattern(rf"{_STRING}|[{{}}\[\]]", re.DOTALL)
_BEGUN = pattern(r'(?:\{\s*+"|\[\s*+[{\["])')
"""What stands at a bracket that begins JSON; any other may be prose."""
_COMMA = pattern(rf"({_STRING})|,(?=\s*+[}}\]])", re.DOTALL)
_PARTNER = {"}": "{", "]": "["}


def _found_in(text: str) -> list[Json] | Unreadable:
    """The JSON objects that stand in prose, and lists of them."""
    regions, open_ones = _regions(text)
    if any(_BEGUN.match(text, place) for place in open_ones):
        return Unreadable("the answer is cut off: its JSON does not end")
    found: list[Json] = []
    regions.sort()
    for start, end in _outermost(regions):
        if len(found) == OBJECTS_MAX:
            return Unreadable("the answer is ambiguous: it holds many JSON objects")
        value = _parsed(text[start:end])
        if isinstance(value, dict) or (isinstance(value, list) and any(isinstance(one, dict) for one in value)):
            found.append(value)
        elif value is None and text[start] == "[":
            # Brackets of the prose: what is inside counts for itself.
            near = regions[bisect_right(regions, (start, end)) : bisect_left(regions, (end, 0))]
            inside = [one for one in near if text[one[0]] == "{"]
            if len(inside) > OBJECTS_MAX:
                return Unreadable("the answer is ambiguous: it holds many JSON objects")
            parsed = [_parsed(text[first:last]) for first, last in _outermost(inside)]
            found += [one for one in parsed if isinstance(one, dict)]
    return found


def _regions(text: str) -> tuple[list[tuple[int, int]], list[int]]:
    """Every stretch between a bracket and its partner, and the brackets without one. One pass; strings are skipped."""
    found: list[tuple[int, int]] = []
    unended: list[int] = []
    stack: list[int] = []
    place = 0
    while token := (_TOKEN if stack else _OPENER).search(text, place):
        place, word = token.end(), token[0]
        if word in "{[":
            stack.append(token.start())
        elif word in "}]":
            if text[stack[-1]] == _PARTNER[word]:
                found.append((stack.pop(), place))
            else:
                unended += stack
                stack.clear()
    return found, unended + stack


def _outermost(regions: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Those of sorted regions that are in no other."""
    found: list[tuple[int, int]] = []
    for start, end in regions:
        if not found or start >= found[-1][1]:
            found.append((start, end))
    return found


# -- reading


def _parsed(text: str) -> Json:
    """`text` as JSON, if need be without commas that nothing follows; None if it is none, or says two things at once."""
    value = _strictly(text)
    if value is None and _OPENER.match(text):
        value = _strictly(_COMMA.sub(lambda match: match[1] or "", text))
    return value


def _strictly(text: str) -> Json:
    try:
        value = json.loads(text, object_pairs_hook=_unambiguous, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return None
    return value if _depth(value) <= JSON_DEPTH_MAX else None


def _unambiguous(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    read = dict(pairs)
    if len(read) != len(pairs) and any(not same_json(read[name], value) for name, value in pairs):
        raise ValueError("a name stands for two values")
    return read


def _no_number(_word: str) -> Json:
    raise ValueError("JSON has no such number")


def _depth(value: Json) -> int:
    """How deep it is nested, counted no further than matters."""
    depth, level = 0, [value]
    while level and depth <= JSON_DEPTH_MAX:
        inner = [one for held in level if isinstance(held, dict | list) for one in _inside(held)]
        depth, level = depth + 1, inner
    return depth


def _inside(held: Json) -> Sequence[Json]:
    return list(held.values()) if isinstance(held, dict) else held


def _storable(value: Json) -> Json:
    """Without characters that no store can hold, and numbers that no JSON can."""
    if isinstance(value, str):
        return value.replace("\0", "").encode("utf-8", "replace").decode()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, list):
        return [_storable(one) for one in value]
    if isinstance(value, dict):
        return {_storable(key): _storable(item) for key, item in value.items()}
    return value


def _folded(name: str) -> str:
    return name.casefold().replace(" ", "_").replace("-", "_")


# -- checking

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
    "integer": (int,),
    "number": (int, float),
}
_WORDS = {
    "object": "an object",
    "array": "a list",
    "string": "a text",
    "boolean": "true or false",
    "null": "null",
    "integer": "a whole number",
    "number": "a number",
}


def _wrong(value: Json, schema: Mapping[str, Json], where: str) -> Iterator[str]:
    kinds = schema.get("type", ())
    allowed = [kinds] if isinstance(kinds, str) else list(kinds)
    if allowed and not any(_is_kind(value, kind) for kind in allowed):
        yield f"{where} must be {' or '.join(_WORDS[kind] for kind in allowed)}"
        return
    if "enum" in schema and not any(same_json(value, one) for one in schema["enum"]):
        yield f"{where} must be one of {', '.join(json.dumps(one) for one in schema['enum'])}"
    yield from _out_of_bounds(value, schema, where)
    if isinstance(value, dict):
        for name in schema.get("required", ()):
            if name not in value and "null" not in schema.get("properties", {}).get(name, {}).get("type", ()):
                yield f"`{name}` is missing in {where}"
        for name, inner in schema.get("properties", {}).items():
            if name in value:
                yield from _wrong(value[name], inner, f"`{name}`" if where == "the answer" else f"`{name}` of {where}")
    elif isinstance(value, list) and "items" in schema:
        for number, one in enumerate(value, 1):
            yield from _wrong(one, schema["items"], f"entry {number} of {where}")


def _is_kind(value: Json, kind: str) -> bool:
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, _TYPES[kind]) and (kind == "boolean" or not isinstance(value, bool))


_BOUNDS = (
    ("minLength", (str,), "characters", False),
    ("maxLength", (str,), "characters", True),
    ("minItems", (list,), "entries", False),
    ("maxItems", (list,), "entries", True),
    ("minimum", (int, float), "", False),
    ("maximum", (int, float), "", True),
)


def _out_of_bounds(value: Json, schema: Mapping[str, Json], where: str) -> Iterator[str]:
    for name, kinds, unit, is_most in _BOUNDS:
        bound = schema.get(name)
        if bound is None or isinstance(value, bool) or not isinstance(value, kinds):
            continue
        size: float = len(value) if isinstance(value, str | list) else value
        if size > bound if is_most else size < bound:
            yield f"{where} must {'have' if unit else 'be'} at {'most' if is_most else 'least'} {bound}{unit and ' ' + unit}"


Schema = Mapping[str, Json]

TEXT: Final[Schema] = {"type": "string"}
ENTRIES_MAX, PROPOSALS_MAX, TODOS_MAX, ENTITIES_MAX = 20, 20, 8, 10
"""A small model that is told no end repeats itself until it is cut off."""
TEXTS: Final[Schema] = {"type": "array", "items": {"type": "string"}, "maxItems": ENTRIES_MAX}


def an_object(**properties: Json) -> Schema:
    """The schema of an object with exactly these names."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def one_of(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)}


FOLD: Final = an_object(context=TEXT, lessons=TEXTS)
SESSION: Final = an_object(**{name: TEXT if name in ("one_liner", "tone") else TEXTS for name in SESSION_FIELDS})
SPINE: Final = an_object(**dict.fromkeys(SPINE_SECTIONS, TEXTS))
EXTRACTION: Final = an_object(
    proposals={
        "type": "array",
        "maxItems": PROPOSALS_MAX,
        "items": an_object(
            n={"type": "integer"},
            quote=TEXT,
            type=one_of(*MEMORY_TYPES),
            fact_type=one_of(*FACT_TYPES),
            content=TEXT,
            entities={"type": "array", "maxItems": ENTITIES_MAX, "items": an_object(type=one_of(*ENTITY_TYPES), label=TEXT)},
            attribute={"type": ["string", "null"]},
            value={"type": ["string", "null"]},
            ended={"type": "boolean"},
            corrects={"type": "boolean"},
            confidence={"type": "number"},
            importance={"type": ["integer", "null"]},
        ),
    },
    todos={
        "type": "array",
        "maxItems": TODOS_MAX,
        "items": an_object(n={"type": "integer"}, quote=TEXT, kind=one_of(*TODO_KINDS), content=TEXT, done={"type": "boolean"}),
    },
)
