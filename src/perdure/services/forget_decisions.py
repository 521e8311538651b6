"""Forgetting what the overseer noted: its decisions quote goals, and goals are made of what people say."""

from __future__ import annotations

import unicodedata
from collections.abc import Container, Iterator, Sequence

from perdure.domain.oversight import Decision
from perdure.domain.scope import Address
from perdure.domain.text import Json
from perdure.ports.store import Tx
from perdure.services.forget_choices import ROWS_MAX, Choice

QUOTE_CHARS_MIN = 4
"""Shorter words of a message stand everywhere, and tell nothing."""
GOAL_CHARS_MIN = 12
"""A note of this length that stands in a message was taken from it; a shorter one may be a word of ours."""
QUOTES_MAX = 1_000
"""Beyond so many forgotten texts, nobody compares: all decisions go."""


def drop_telling(tx: Tx, choice: Choice, words: Sequence[str]) -> int:
    """Forget the decisions that quote `words` or what records said that go, or that name such a record; how many.

    Before names are struck out everywhere: after that, a quotation would not be recognised.
    """
    quotes = {quote for text in (*words, *_stated(choice)) if len(quote := _folded(text)) >= QUOTE_CHARS_MIN}
    keys = {key for _, key in choice.doomed}
    together = "\n".join(quotes)

    def tells(decision: Decision) -> bool:
        notes = list(_texts(dict(decision.body)))
        folded = [_folded(note) for note in notes]
        return (
            len(quotes) > QUOTES_MAX
            or not keys.isdisjoint(notes)
            or any(len(note) >= GOAL_CHARS_MIN and note in together for note in folded)
            or any(quote in note for note in folded for quote in quotes)
        )

    held = tx.oversight.list_decisions(limit=ROWS_MAX)
    return tx.oversight.remove_decisions([one.id for one in held if tells(one)])


def drop_at(tx: Tx, addresses: Container[Address]) -> int:
    """Forget the decisions at addresses where words were struck out: a goal may say in other words what they said."""
    held = tx.oversight.list_decisions(limit=ROWS_MAX)
    return tx.oversight.remove_decisions([one.id for one in held if one.address in addresses])


def _stated(choice: Choice) -> Iterator[str]:
    """What the records said that go."""
    for row in choice.doomed:
        past = choice.pasts.get(row)
        for name in ("content", "text"):
            said = None if past is None or past.body is None else past.body.get(name)
            if isinstance(said, str):
                yield said


def _texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _texts(one)


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())
