"""The three spellings of "which conversation": `user:agent:session`, `user:persona`, and `source:number` for a channel.

A colon or percent sign inside a part is written `%3A` or `%25`, and nothing else is escaped. So plain ids are spelled
as they always were, and every text has one reading: `parse` and `render` undo each other.
"""

from __future__ import annotations

import re
from typing import Literal, get_args

from perdure.domain.errors import InvalidInput
from perdure.domain.scope import ID_BYTES_MAX
from perdure.domain.text.rules import brief, check_choice, check_id, utf8_size
from perdure.domain.values import dataclass, fields

Spelling = Literal["session", "persona", "channel"]
SPELLINGS: tuple[Spelling, ...] = get_args(Spelling)

PARTS: dict[Spelling, tuple[str, ...]] = {
    "session": ("user", "agent", "session"),
    "persona": ("user", "agent"),
    "channel": ("source", "number"),
}
EXAMPLES: dict[Spelling, str] = {"session": "user1:agent1:123", "persona": "user1:coach", "channel": "discord:42"}

NUMBER_MAX = 2**64 - 1
"""Chat services number their channels with 64 bits, without a sign."""

_NUMBER = re.compile(r"0|[1-9][0-9]{0,19}")
_STRAY_PERCENT = re.compile(r"%(?!3A|25)")


@dataclass(frozen=True, slots=True)
class ConversationName:
    """What a spelling says. Which parts are set depends on the spelling; the others are None."""

    user: str | None = None
    agent: str | None = None
    """The agent, or persona."""
    session: str | None = None
    """The third part of `user:agent:timestamp`: a session id, whatever it is made of."""
    source: str | None = None
    """The service that a channel belongs to, such as `discord`."""
    number: int | None = None
    """The number of the channel there."""

    def __post_init__(self) -> None:
        for part in ("user", "agent", "session", "source"):
            value = getattr(self, part)
            if value is not None:
                check_id(value, part, bytes_max=ID_BYTES_MAX)
        if self.number is not None:
            _check_number(self.number)

    @property
    def channel(self) -> str | None:
        """The id of the channel, if the name says one."""
        return None if self.source is None or self.number is None else channel_name(self.source, self.number)


def parse(text: str, spelling: Spelling) -> ConversationName:
    """What `text` says in this spelling; `InvalidInput` if it is not one."""
    names = _parts(spelling)
    utf8_size(text, "a conversation's name")
    pieces = text.split(":")
    if len(pieces) != len(names) or not all(pieces):
        raise _refused(text, spelling, f"has {sum(map(bool, pieces))} parts, not {len(names)}")
    if _STRAY_PERCENT.search(text):
        raise _refused(text, spelling, "has a `%` that escapes nothing")
    values: dict[str, str | int] = {name: _unescaped(piece) for name, piece in zip(names, pieces, strict=True)}
    if "number" in values:
        values["number"] = _number(pieces[-1], text)
    return ConversationName(**values)  # type: ignore[arg-type]


def render(name: ConversationName, spelling: Spelling) -> str:
    """The text of `name`. It must say exactly what the spelling can say, so that nothing is lost on the way."""
    wanted = _parts(spelling)
    said = {one.name for one in fields(name) if getattr(name, one.name) is not None}
    if said != set(wanted):
        raise InvalidInput(
            f"a name with the parts {', '.join(sorted(said)) or 'none'} cannot be spelled like `{EXAMPLES[spelling]}`; "
            f"give it {', '.join(wanted)} and nothing else"
        )
    return ":".join(_escaped(str(getattr(name, part))) for part in wanted)


def channel_name(source: str, number: int) -> str:
    """The id of the channel that `source` knows under `number`: ("discord", 42) is `discord:42`."""
    text = render(ConversationName(source=source, number=number), "channel")
    return check_id(text, "channel", bytes_max=ID_BYTES_MAX)


def split_channel(channel: str) -> tuple[str, int] | None:
    """Source and number of a channel id that `channel_name` could have made; None for any other id."""
    try:
        name = parse(channel, "channel")
    except InvalidInput:
        return None
    return None if name.source is None or name.number is None else (name.source, name.number)


def _parts(spelling: Spelling) -> tuple[str, ...]:
    check_choice(spelling, "spelling", SPELLINGS)
    return PARTS[spelling]


def _number(piece: str, text: str) -> int:
    # Only the form that `str` gives back: "042" and "٤٢" would be second spellings of the same channel.
    if not _NUMBER.fullmatch(piece) or int(piece) > NUMBER_MAX:
        raise _refused(text, "channel", f"has no number from 0 to {NUMBER_MAX} at its end")
    return int(piece)


def _check_number(number: int) -> None:
    if isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= NUMBER_MAX:
        raise InvalidInput(f"`number` = {brief(number)} must be a whole number from 0 to {NUMBER_MAX}")


def _escaped(part: str) -> str:
    return part.replace("%", "%25").replace(":", "%3A")


def _unescaped(piece: str) -> str:
    return piece.replace("%3A", ":").replace("%25", "%")


def _refused(text: str, spelling: Spelling, why: str) -> InvalidInput:
    return InvalidInput(
        f"{brief(text, 80)} {why}; spell it like `{EXAMPLES[spelling]}`, with `:` inside a part as `%3A` and `%` as `%25`"
    )
