"""The pin: a line of a conversation kept word for word, with who said it and when; and its written form, both ways."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from perdure.domain.messages import Role

PinKind = Literal["constraint", "question", "decision", "identifier", "path", "url", "wish", "quantity", "date", "statement"]
ITEM_KINDS = ("identifier", "path", "url", "quantity", "date")

BARE = "Also named: "
"""How a line begins that holds only items whose own lines had no room."""
GAP = " … "
"""Between words of one message that do not follow each other there."""

_HEAD = re.compile(r"\[(?:(\d{4}-\d\d-\d\d) )?(user|assistant|tool|system)( asks)?\] ")


@dataclass(frozen=True, slots=True)
class Pin:
    """A line to keep. `text` and `items` stand word for word in the message; an empty `text` means: only the items."""

    kind: PinKind
    text: str
    items: tuple[str, ...]
    seq: int
    """The message it is from; negative for lines of an earlier compaction, which are older."""
    role: Role
    at: datetime | None
    place: int = 0
    """Which sentence of the message it is."""
    is_bulk: bool = False
    """From a tool, a long explanation or a pasted text: of less weight than what was said in passing."""

    @property
    def head(self) -> str:
        return line_head(self.role, self.at, asks=self.kind == "question")

    @property
    def line(self) -> str:
        """The pin alone, as the agent would see it: when, who, and the words."""
        return f"{self.head}{self.text}" if self.text else BARE + ", ".join(self.items)


def line_head(role: str, at: datetime | None, *, asks: bool = False) -> str:
    """Who spoke and when, in few tokens. An open question says so: it is read again in the next compaction."""
    day = f"{at.astimezone(UTC):%Y-%m-%d} " if at is not None else ""
    return f"[{day}{role}{' asks' if asks else ''}] "


def split_head(line: str) -> tuple[Role | None, datetime | None, bool, str]:
    """A line taken apart again: role, day, whether it is an open question, and the words. No head, no role."""
    match = _HEAD.match(line)
    if match is None:
        return None, None, False, line
    role: Role = match[2]  # type: ignore[assignment]
    return role, _day(match[1]), match[3] is not None, line[match.end() :]


def _day(text: str | None) -> datetime | None:
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC) if text else None
    except ValueError:
        return None
