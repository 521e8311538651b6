"""Whether two statements, two values of one attribute or two todos are the same. What is not clearly the same is not.

`statements.txt` has words that mean the same; words that carry no meaning are among the cues of each language.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache, lru_cache

from perdure.domain.knowledge.entities import Todo
from perdure.domain.knowledge.keys import slug
from perdure.domain.knowledge.memories import TRUSTS, USER, Statement
from perdure.domain.knowledge.proposals import EntityName, EntityType, TodoProposal
from perdure.domain.text.patterns import pattern
from perdure.engine.conversation.jobs import next_slot
from perdure.engine.names.compare import compare
from perdure.engine.names.spelling import Different, numbers_in_words, tens_in_words
from perdure.engine.text import cues
from perdure.engine.words import sections, word_map

_HYPHEN = pattern(r"(?<=\bco)-(?=\w)")
_WORD = pattern(r"[^\W_]+(?:['’][^\W_]+)*")
_JOINED_ON = pattern(r"\bn'(?=\w)|(?<=\bi)'(?:m|ve)\b", re.IGNORECASE)
_ORDINAL = pattern(r"(\d{1,4})(?:st|nd|rd|th)")


@cache
def _empty() -> frozenset[str]:
    """Words that carry no meaning of their own in a statement about somebody."""
    return cues.words("filler of a statement") | cues.words("joint of a statement")


@cache
def _same() -> dict[str, str]:
    """Words that are taken for others."""
    return word_map(sections(__package__, "statements.txt")["same"])


@cache
def _spelled() -> dict[str, str]:
    """Numbers and months as they are also written."""
    numbers = {word: number for word, number in numbers_in_words().items() if number.isdigit()}
    tens = {word: str(number) for word, number in tens_in_words().items()}
    months = {month[:3]: month for month in sections(__package__, "statements.txt")["months"]}
    return numbers | tens | months | {"sept": "september"}


@cache
def _standing() -> dict[str, str]:
    """Words for how a thing stands, by what they come to."""
    found = {}
    for heading, entries in sections(__package__, "statements.txt").items():
        kind, _, standing = heading.partition(": ")
        found.update(dict.fromkeys(entries, standing) if kind == "status" else {})
    return found


@lru_cache(maxsize=4096)
def meaning(text: str) -> frozenset[tuple[str, int]]:
    """The words that carry a statement, without order, case, accents and endings, each with how often it occurs."""
    empty = _empty()
    words: dict[str, int] = {}
    for found in _words(text):
        if found not in empty:
            word = _stem(found)
            words[word] = words.get(word, 0) + 1
    return frozenset(words.items())


def says_the_same(one: str, other: str) -> bool:
    """The same words that matter in the same order, or the two sides of one `is` swapped."""
    first, second = words_in_order(one), words_in_order(other)
    if first == second:
        return bool(first) or _plain(one) == _plain(other)
    sides, others = _sides(one), _sides(other)
    return sides is not None and others is not None and sides == others[::-1]


@lru_cache(maxsize=4096)
def words_in_order(text: str) -> tuple[str, ...]:
    """The words that carry a statement, in order, without case, accents and endings."""
    # Where the order of words counts, so do the small words between them.
    blank = cues.words("filler of a statement")
    return tuple(_stem(word) for word in _words(text) if word not in blank)


def _words(text: str) -> list[str]:
    return [word.replace("'", "").replace("’", "") for word in _WORD.findall(_HYPHEN.sub("", _plain(text)))]


def _sides(text: str) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """What stands before and after the only `is` of a statement."""
    parts = re.split(r"\b(?:is|are|am)\b", text, flags=re.IGNORECASE)
    if len(parts) != 2:
        return None
    left, right = (words_in_order(part) for part in parts)
    return (left, right) if left and right else None


@lru_cache(maxsize=10_000)
def is_negative(text: str) -> bool:
    """Whether the text denies something."""
    denials = cues.words("denial")
    return any(word.replace("'", "").replace("’", "") in denials for word in _WORD.findall(_plain(text)))


def denied_by(new: Statement, current: Callable[[], Sequence[Statement]]) -> list[Statement]:
    """What a statement says is not so, in otherwise the same words: `Is not vegetarian` denies `Is vegetarian`."""
    if not is_negative(new.content) or not (said := _undenied(new.content)):
        return []
    held = [one for one in current() if one.visible_to == new.visible_to and one.valid_from <= new.valid_from]
    alike = [one for one in held if not is_negative(one.content) and _undenied(one.content) == said]
    return [one for one in alike if _unsaid(one) == _unsaid(new)]


def _unsaid(told: Statement) -> set[str]:
    """Whom and what a statement is about without naming them in its words."""
    words = set(_words(told.content))
    refs = {told.subject, *told.entities} - {USER}
    return {ref for ref in refs if not words.issuperset(ref.partition(":")[2].split("_"))}


def _undenied(text: str) -> tuple[str, ...]:
    """The words that carry a statement, without those that deny it."""
    aside = cues.words("plain denial")
    words = words_in_order(_JOINED_ON.sub("", text.replace("’", "'")))
    return tuple(word for word in words if word not in aside)


def plain_parts(value: str) -> list[str]:
    """The parts of a value between commas, in plain words."""
    return [part for part in (" ".join(_WORD.findall(piece)) for piece in _plain(value).split(",")) if part]


def _plain(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.casefold())
    return unicodedata.normalize("NFC", "".join(char for char in decomposed if not unicodedata.combining(char)))


def _stem(word: str) -> str:
    word = _same().get(word, word)
    if (ordinal := _ORDINAL.fullmatch(word)) is not None:
        return ordinal[1]
    if (spelled := _spelled().get(word)) is not None:
        return spelled
    if len(word) > 5 and word.endswith("ing"):
        stem = word[:-3]
        return stem[:-1] if len(stem) > 3 and stem[-1] == stem[-2] and stem[-1] not in "lsz" else stem
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return _stem(word[:-1])
    if len(word) > 5 and word.endswith(("our", "ise")):
        return word[:-3] + ("or" if word.endswith("our") else "ize")
    return word


# What kind of name stands as the value of an attribute.
_NAMES: dict[str, EntityType] = {
    **dict.fromkeys(("lives_in", "from", "hometown", "born_in"), "place"),
    **dict.fromkeys(("works_at", "studies_at", "employer", "member_of"), "org"),
    **dict.fromkeys(("partner", "manager", "has_child", "name"), "person"),
}
# Values of which a longer one only says more: `Mandarin` and `Mandarin Chinese`.
_NARROWING = frozenset({"speaks", "works_on", "relation", "handles", "learning", "plays"})
OPPOSITES = {"likes": "dislikes", "dislikes": "likes"}
"""Attributes of which the same value cannot stand under both."""


def same_value(attribute: str, one: str, other: str, *, exactly: bool = False) -> bool:
    """Whether two values mean the same. `exactly`: the words say that one of them is wrong, so likeness proves nothing."""
    if _key(one) == _key(other):
        return True
    if exactly:
        return False
    if attribute == "phone":
        return _same_digits(one, other)
    if meaning(one) and meaning(one) == meaning(other):
        return True
    if attribute == "status" and _standing().get(one.strip().casefold(), one) == _standing().get(
        other.strip().casefold(), other
    ):
        return True
    if _is_short_for(one, other) or _is_short_for(other, one):
        return True
    kind = _NAMES.get(attribute)
    if kind is not None:
        return not isinstance(compare(EntityName(kind, one), EntityName(kind, other)), Different)
    first, second = plain_parts(one), plain_parts(other)
    if first and second and (first[: len(second)] == second or second[: len(first)] == first):
        return True
    words, others = {word for word, _ in meaning(one)}, {word for word, _ in meaning(other)}
    return attribute in _NARROWING and bool(words) and bool(others) and (words <= others or others <= words)


def _same_digits(one: str, other: str) -> bool:
    """Whether two telephone numbers are one, with and without the prefix of the country."""
    first, second = ("".join(char for char in text if char.isdigit()).lstrip("0") for text in (one, other))
    shorter, longer = sorted((first, second), key=len)
    return len(shorter) >= 7 and longer.endswith(shorter)


def _is_short_for(short: str, whole: str) -> bool:
    """Whether capitals such as `GP` are the initials of several words."""
    letters = short.replace(".", "").strip()
    words = [word for word in whole.replace("-", " ").split() if word[0].isalnum()]
    initials = "".join(word[0] for word in words).upper()
    return len(words) >= 2 and 2 <= len(letters) <= 5 and letters.isupper() and letters == initials


def _key(value: str) -> str:
    text = value.strip().casefold()
    return slug(text) if text else text


ALIKE = 0.6
"""So much of the words of the shorter one must be shared for a completion to mean an open todo."""


def matching(proposal: TodoProposal, held: Sequence[Todo]) -> Todo | None:
    """The open todo that the proposal means; the best match, the newest among equals."""
    if not proposal.done:
        return next((todo for todo in held if says_the_same(todo.content, proposal.content)), None)
    scored = [(likeness(todo.content, proposal.content), todo.created_at, todo) for todo in held]
    best = max(scored, key=lambda one: (one[0], one[1]), default=None)
    return best[2] if best is not None and best[0] >= ALIKE else None


def likeness(one: str, other: str) -> float:
    """The share of the shorter text's meaningful words that the other has, too."""
    first, second = {word for word, _ in meaning(one)}, {word for word, _ in meaning(other)}
    shorter = min(len(first), len(second))
    return len(first & second) / shorter if shorter else 0.0


def completed(todo: Todo, at: datetime) -> Todo:
    """The todo, done. A habit waits for its next time; what is over stays as it ended."""
    if todo.state != "pending":
        return todo
    if todo.recurrence is not None:
        return replace(todo, completions=todo.completions + 1, due_at=next_slot(todo.recurrence, at))
    return replace(todo, state="completed", ended_at=at, completions=todo.completions + 1)


def told_again(todo: Todo, proposal: TodoProposal) -> Todo:
    """The todo, told once more: what it says of when counts, and a hedge may become a promise."""
    firmer = todo.kind_of == "thread" and proposal.kind == "commitment"
    return replace(
        todo,
        kind_of=proposal.kind if firmer else todo.kind_of,
        due_at=proposal.due_at or todo.due_at,
        time_words=proposal.time_words or todo.time_words,
        recurrence=proposal.recurrence or todo.recurrence,
        evidence=tuple(dict.fromkeys((*todo.evidence, *proposal.evidence)))[-100:],
        confidence=max(todo.confidence, proposal.confidence),
    )


def corrected_value(content: str, value: str, corrected: str) -> str | None:
    """The value that the corrected words of a statement have: the one it had if they still name it, else what stands in its
    place between the same words; None if they do not tell.
    """
    named = re.compile(re.escape(value), re.IGNORECASE)
    if named.search(corrected):
        return value
    held = named.search(content)
    if held is None:
        return None
    left, right = content[: held.start()], content[held.end() :].rstrip(" .!")
    words = corrected.rstrip(" .!")
    inner = words[len(left) : len(words) - len(right)].strip()
    same = words[: len(left)].lower() == left.lower() and words[len(words) - len(right) :].lower() == right.lower()
    return inner if same and inner and len(words) > len(left) + len(right) else None


def same_statement(held: Statement, new: Statement, *, exactly: bool, ended: bool = False) -> bool:
    """Whether a new statement says what a held one does."""
    if held.attribute is not None and held.attribute == new.attribute and held.subject == new.subject:
        # In words that say something is over, the denial is the end, not another statement.
        if not ended and is_negative(held.content) != is_negative(new.content):
            return False
        if held.value is not None and new.value is not None:
            return same_value(held.attribute, held.value, new.value, exactly=exactly)
    return says_the_same(held.content, new.content)


def confirmed(held: Statement, new: Statement) -> Statement:
    """A statement that was said again.

    Its trust is that of the speaker. Said again by a source that is trusted more, it rises to that trust and takes
    over its words: the user who says what a tool said before stands for it from then on, but only for what they said
    themselves, not for the tool's wording. Said again by one that is trusted less, nothing of it changes but the mention.
    """
    rank, other = TRUSTS.index(new.trust), TRUSTS.index(held.trust)
    if rank < other:
        return held
    said = replace(held, importance=max(held.importance, new.importance))
    if rank > other:
        return replace(said, content=new.content, value=new.value, trust=new.trust, confidence=new.confidence)
    return replace(said, confidence=max(held.confidence, new.confidence))
