"""Prompts: templates with id and version, and their rendering. Pure; where the files are is the loader's affair.

What people and tools said goes in as JSON with every angle bracket escaped, so that no text can end the part marked as data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC

from perdure.domain.conversation.digests import SummaryRequest
from perdure.domain.conversation.messages import Message
from perdure.domain.errors import Corrupt
from perdure.domain.text.patterns import pattern
from perdure.domain.text.rules import Json, compact_json
from perdure.domain.values import dataclass
from perdure.engine.text.sentences import cut_text

MESSAGE_CHARS_MAX = 8_000
TOOL_CHARS_MAX = 2_000
CALLS_CHARS_MAX = 1_000
WORDS_DEFAULT = 300
"""What the template says where a request has no bound of its own; the answer is held to the request's."""

_FILE = pattern(r"---\nid: (?P<id>[a-z_]+)\nversion: (?P<version>[1-9][0-9]*)\n---\n(?P<body>.+)", re.DOTALL)
_PLACE = pattern(r"\{\{([a-z_]+)\}\}")
# A backslash and a code are JSON for the same character. Line separators would break the one-line form for some readers.
_ESCAPED = {
    char: f"\\u{ord(char):04x}" for char in "<>&`\u2028\u2029\u0085\u200b\u200e\u200f\u202a\u202b\u202c\u202d\u202e\ufeff"
}
_TO_ESCAPE = pattern("[" + "".join(_ESCAPED) + "\U000e0000-\U000e007f]")


@dataclass(frozen=True, slots=True)
class PromptTemplate:
    id: str
    version: int
    body: str

    @property
    def name(self) -> str:
        """Id and version, kept with whatever was made with it."""
        return f"{self.id}/{self.version}"


def read_prompt(text: str) -> PromptTemplate:
    """The prompt in a file; `Corrupt` if its header is not one."""
    match = _FILE.fullmatch(text)
    if match is None:
        raise Corrupt("a prompt file lacks its header of `id` and `version`; install perdure again")
    return PromptTemplate(match["id"], int(match["version"]), match["body"])


def render(prompt: PromptTemplate, request: SummaryRequest) -> str:
    """The prompt with its places filled. What is filled in is not searched for places again."""
    values = {
        "data": "\n".join(_data(request)),
        "chars_max": str(request.chars_max),
        "words_max": str(request.words_max if request.words_max is not None else WORDS_DEFAULT),
    }
    return filled(prompt, values)


def as_data(value: Json) -> str:
    """`value` as one line of JSON that contains no angle bracket, no backtick and no line end."""
    return _TO_ESCAPE.sub(lambda match: _escape(match[0]), compact_json(value))


def _escape(char: str) -> str:
    known = _ESCAPED.get(char)
    if known is not None:
        return known
    high, low = divmod(ord(char) - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


def filled(prompt: PromptTemplate, values: Mapping[str, str]) -> str:
    """The prompt with its places filled. What is filled in is not searched for places again."""
    unknown = {name for name in _PLACE.findall(prompt.body) if name not in values}
    if unknown:
        raise Corrupt(f"prompt `{prompt.name}` has unknown places {sorted(unknown)}; install perdure again")
    return _PLACE.sub(lambda match: values[match[1]], prompt.body)


def _data(request: SummaryRequest) -> Iterator[str]:
    if request.previous:
        yield as_data({"previous": request.previous})
    for message in request.messages:
        yield as_data(message_form(message))
    if request.question:
        yield as_data({"latest_question": cut_text(request.question, MESSAGE_CHARS_MAX)})


def message_form(message: Message) -> dict[str, Json]:
    """A message as prompts show it, cut to a length."""
    limit = TOOL_CHARS_MAX if message.role == "tool" else MESSAGE_CHARS_MAX
    line: dict[str, Json] = {
        "at": f"{message.at.astimezone(UTC):%Y-%m-%d %H:%M}",
        "who": message.role,
        "text": cut_text(message.content, limit),
    }
    if message.tool_calls:
        line["calls"] = [
            {"tool": call.name, "arguments": cut_text(compact_json(call.arguments), CALLS_CHARS_MAX)}
            for call in message.tool_calls
        ]
    if message.failed:
        line["failed"] = True
    return line
