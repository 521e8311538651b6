"""What an agent is given for one request: labelled blocks of what is remembered, then the conversation as it stands."""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import dataclass
from typing import Any

from perdure.domain.messages import Message

BlockKind = str
FENCE = "memory"
CUT_MARK = " has the whole]"
"""How a text ends that was too long for its budget."""
# Marks that turn what follows, and characters that show nothing but reach a model: soft hyphens, zero widths, tags. The two
# joiners stay: several scripts and emoji need them.
_UNSHOWN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f"
    "\u2800\u3164\ud800-\udfff\ue000-\uf8ff\ufeff\uffa0\ufff0-\ufffb\U0001d173-\U0001d17a\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
    "|(?<=[\ufe00-\ufe0f])[\ufe00-\ufe0f]+"
)
# What some models read as the plain sign, and what they read as the plain letters of our fence's name.
_OPENING = re.compile("[<\u02c2\u1438\u2039\u227a\u2329\u276c\u276e\u27e8\u2991\u2a85\u3008\ufe64\uff1c]")
_LIKE_LETTERS = str.maketrans(
    "\u043c\u043f\u1d0d\u028d\u0435\u1d07\u0454\u03b5\u212e\u03bf\u043e\u0585\u1d0f0\u0433\u0280\u1d26\u0443\u03b3\u04af\u028f\u10e7",
    "mmmmeeeeeooooorrryyyyy",
)
_BLANK = re.compile(r"\s*")
_FENCE_REACH = 60
"""A name with more between its letters is none for anybody."""
# Words that the tokenisers of chat models take for the bounds of a turn, wherever they stand.
_TURNS = re.compile(
    r"<(?=[|\uff5c][^\n<>]{1,60}[|\uff5c]>|</?SYS>>|/?(?:s|bos|eos|start_of_turn|end_of_turn|end_of_utterance)>)"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT)\])",
    re.IGNORECASE,
)
_BREAKS = re.compile("\r\n|[\n\r\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class Block:
    """A piece of remembered text, with what it is and where it came from."""

    kind: BlockKind
    """`foundation`, `instructions`, `spine`, `lessons`, `session_digest`, `previous_tail`, `left_off`, `summary`,
    `rolling_digest`; and of the volatile ones `memories`, `todos`, `series`."""
    title: str
    source: str
    """Which digest or messages it comes from, such as `session 3, messages 1 to 20, fold 2 by extractive/1`."""
    text: str
    tokens: int
    volatile: bool = False
    """It depends on the goal or on the hour, so it comes last: what stands before it can stay in a prompt cache."""
    sources: tuple[str, ...] = ()
    """Ids of the messages and statements that it shows word for word."""

    def render(self) -> str:
        """The text behind a fence that it cannot close itself: it is data, not an instruction."""
        kind, title, source = (_attribute(one) for one in (self.kind, self.title, self.source))
        head = f'<{FENCE} kind="{kind}" title="{title}" source="{source}">'
        return f"{head}\n{fenced(self.text)}\n</{FENCE}>"


@dataclass(frozen=True, slots=True)
class Context:
    """Blocks and messages within a budget, and what had to be left out."""

    blocks: tuple[Block, ...]
    messages: tuple[Message, ...]
    """The working set, oldest first; texts that were too long are cut and say so."""
    tokens: int
    budget_tokens: int
    dropped: tuple[str, ...] = ()
    """What did not fit, in words."""
    notes: tuple[str, ...] = ()
    """What went wrong on the way, such as a fold that failed and will be tried again."""

    @property
    def system(self) -> str:
        """The blocks that change seldom as one text for a system message; empty if there are none."""
        return "\n\n".join(block.render() for block in self.blocks if not block.volatile)

    @property
    def tail(self) -> str:
        """The blocks that change with the goal and the hour; empty if there are none."""
        return "\n\n".join(block.render() for block in self.blocks if block.volatile)

    @property
    def text(self) -> str:
        """Everything the agent would see, as one text: what stays the same first, what changes last."""
        said = [one_item(f"{message.role}: {fenced(message.content)}") for message in self.messages]
        return "\n\n".join(part for part in (self.system, *said, self.tail) if part)

    @property
    def sources(self) -> frozenset[str]:
        """Ids of all messages and statements that stand in it word for word."""
        said = [message.id for message in self.messages if not message.content.endswith(CUT_MARK)]
        return frozenset((*said, *(one for block in self.blocks for one in block.sources)))

    def as_messages(self) -> list[dict[str, Any]]:
        """In the form chat models take: a system message, the conversation, and before the last thing the user said
        another system message with what changes from request to request."""
        said = [_harmless(chat_message(message)) for message in self.messages]
        if self.tail:
            spoken = [place for place, message in enumerate(self.messages) if message.role == "user"]
            said.insert(spoken[-1] if spoken else len(said), {"role": "system", "content": self.tail})
        return [{"role": "system", "content": self.system}, *said] if self.system else said


def chat_message(message: Message) -> dict[str, Any]:
    """A message as OpenAI-compatible chat endpoints take it."""
    form: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        form["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        form["tool_call_id"] = message.tool_call_id
    return form


def _harmless(form: dict[str, Any]) -> dict[str, Any]:
    """A chat message whose words cannot pass for a block of ours, nor end their own turn."""
    calls = [
        {**call, "function": {**call["function"], "arguments": fenced(call["function"]["arguments"])}}
        for call in form.get("tool_calls", ())
    ]
    return {**form, "content": fenced(form["content"]), **({"tool_calls": calls} if calls else {})}


def fenced(text: str) -> str:
    """`text` with whatever could pass for our fence or for the bounds of a turn made harmless, and without what nobody sees."""
    seen = _TURNS.sub(lambda match: f"{match[0]} ", visible(text))
    return _OPENING.sub(lambda match: "&lt;" if _names_fence(seen, match.end()) else match[0], seen)


def _names_fence(text: str, place: int) -> bool:
    """Whether what follows reads as the name of our fence: in any case, spacing, font or look-alike letters."""
    blank = _BLANK.match(text, place)
    start = place if blank is None else blank.end()
    after = text[start : start + _FENCE_REACH]
    if after[:1].isascii() and after[:1] not in ("m", "M", "/", "\\"):
        return False
    plain = unicodedata.normalize("NFKD", after).casefold().translate(_LIKE_LETTERS)
    letters = "".join(char for char in plain if not char.isspace() and unicodedata.category(char)[0] not in "CM")
    return letters.lstrip("/\u2044\u2215\u29f8\\").startswith(FENCE)


def one_item(text: str) -> str:
    """`text` with every line but its first set in, so that none of them can pass for another item's beginning."""
    return _BREAKS.sub("\n  ", text)


def visible(text: str) -> str:
    """`text` without characters that are not shown, and without marks that turn the order of what follows."""
    return _UNSHOWN.sub("", text)


def _attribute(text: str) -> str:
    shown = " ".join(visible(text).split())
    return shown.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
