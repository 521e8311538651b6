"""Which names mean one entity: a verdict on two names, and the known names that a new one may be a variant of.

Nothing is merged here. `Same` may be merged by the caller without asking, `Likely` is a suggestion. Names that were seen
together as two are never one, whatever their letters say. `Same` is not transitive: `Bob Smith` and `Robert Smith Jr.` may
both go with `Robert Smith`. Who merges a chain asks `compare_entities` with all names of both sides before each step.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import combinations

from perdure.domain.errors import InvalidInput
from perdure.domain.knowledge.keys import entity_ref, slug
from perdure.domain.knowledge.proposals import EntityName
from perdure.domain.knowledge.records import TERM_BYTES_MAX
from perdure.domain.text.rules import brief
from perdure.domain.values import dataclass
from perdure.engine.names.organisations import compare_orgs, compare_projects, initials, org, project
from perdure.engine.names.people import compare_persons, name_numbers, person
from perdure.engine.names.places import compare_places, open_partners, place
from perdure.engine.names.spelling import Different, Likely, Likeness, Same, folded, is_latin, romanised, sounds

LABEL_CHARS_COMPARED = 120
"""A longer label is no name: it is like another only if their slugs are equal."""
CANDIDATES_MAX = 500
"""Known names that one search compares at most; those that share the rarest features come first."""
NAMES_COMPARED = 30
"""Names of one entity that are compared with those of another; all are looked up among those seen together."""
MENTIONS_PAIRED = 100
"""People of one message that are paired; a message that names more is a list."""
VARIANTS_DEFAULT = 10
_PREFIX_CHARS = 3
_FITS_TWO = "fits more than one known name"

Pair = frozenset[str]
"""Two entity references, in no order."""

_COMPARE = {"person": compare_persons, "org": compare_orgs, "place": compare_places, "project": compare_projects}


@dataclass(frozen=True, slots=True)
class Variant:
    """A known name that may mean the same entity."""

    name: EntityName
    likeness: Same | Likely


def compare(a: EntityName, b: EntityName, *, apart: Collection[Pair] = ()) -> Likeness:
    """The verdict on two names, in either order. `apart`: pairs of references that were seen together as two."""
    for name in (a, b):
        if name.type not in _COMPARE:
            raise InvalidInput(f"the entity type {brief(name.type)} is unknown; use one of {', '.join(_COMPARE)}")
    if a.type != b.type:
        return Different((f"one is a {a.type}, the other a {b.type}",))
    slug_a, slug_b = _slug(a.label), _slug(b.label)
    if not slug_a or not slug_b:
        return Different(("no name on one side",))
    if slug_a == slug_b:
        return Same(("written alike",))
    if apart and frozenset((f"{a.type}:{slug_a}", f"{b.type}:{slug_b}")) in apart:
        return Different(("seen together as two",))
    if max(len(a.label), len(b.label)) > LABEL_CHARS_COMPARED:
        return Different(("too long for a name",))
    return _COMPARE[a.type](a.label, b.label)


def compare_entities(one: Sequence[EntityName], other: Sequence[EntityName], *, apart: Collection[Pair] = ()) -> Likeness:
    """The best verdict on any name of one entity and any of the other. Two names seen together as two forbid the merge."""
    if apart and any(frozenset((_ref(a), _ref(b))) in apart for a in one for b in other):
        return Different(("seen together as two",))
    verdicts = [compare(a, b) for a in one[:NAMES_COMPARED] for b in other[:NAMES_COMPARED]]
    return min(verdicts, key=_rank, default=Different(("no names to compare",)))


def seen_together(mentions: Iterable[EntityName]) -> frozenset[Pair]:
    """Pairs of people that one message names side by side: they are two, and must never be merged.

    A short form beside the full name is the usual way to speak of one person (`John Doe called. John said …`), so a pair
    of which one has only words of the other is left out. So are other types: a firm is often named twice in two ways.
    """
    people: dict[str, frozenset[str]] = {}
    for name in mentions:
        if name.type == "person" and (ref := _ref(name)):
            people[ref] = frozenset(map(folded, person(name.label[:LABEL_CHARS_COMPARED]).words))
        if len(people) == MENTIONS_PAIRED:
            break
    return frozenset(
        frozenset((one, other))
        for (one, words), (other, others) in combinations(people.items(), 2)
        if not (words <= others or others <= words) or not (words and others)
    )


def find_variants(
    name: EntityName, known: Sequence[EntityName], *, limit: int = VARIANTS_DEFAULT, apart: Collection[Pair] = ()
) -> list[Variant]:
    """The known names that `name` may be a variant of, the likeliest first. To ask often, keep a `NameIndex`."""
    return NameIndex(known).find(name, limit=limit, apart=apart)


def name_keys(name: EntityName) -> tuple[str, ...]:
    """What a name is found by: two names share at least one if `compare` finds them alike. Short enough to be stored by."""
    return tuple(sorted(key for key in _blocks(name) if not key.endswith(" ") and len(key.encode()) <= TERM_BYTES_MAX))


def variants_among(name: EntityName, candidates: Iterable[EntityName], *, limit: int = VARIANTS_DEFAULT) -> list[Variant]:
    """Those of `candidates` that `name` may be a variant of, the likeliest first. Verdicts are kept for a while."""
    found = [
        Variant(candidate, verdict)
        for candidate in dict.fromkeys(candidates)
        if candidate != name and not isinstance(verdict := _judged(name, candidate), Different)
    ]
    return _ranked(_unsettled(found, ()), limit)


@lru_cache(maxsize=16_384)
def _judged(a: EntityName, b: EntityName) -> Likeness:
    return compare(a, b)


def _ranked(found: list[Variant], limit: int) -> list[Variant]:
    return sorted(found, key=lambda variant: (_rank(variant.likeness), variant.name.label))[:limit]


class NameIndex:
    """Known names by what their variants share, so that a search compares few of them. It never changes."""

    def __init__(self, known: Iterable[EntityName]) -> None:
        self._known = tuple(dict.fromkeys(known))
        self._blocks: dict[str, list[int]] = {}
        for number, name in enumerate(self._known):
            for block in _blocks(name):
                self._blocks.setdefault(block, []).append(number)

    def find(self, name: EntityName, *, limit: int = VARIANTS_DEFAULT, apart: Collection[Pair] = ()) -> list[Variant]:
        """The known names that `name` may be a variant of, the likeliest first; `name` itself is left out.

        A name that goes with two known names that are plainly two is certain of neither.
        """
        if limit < 1:
            raise InvalidInput(f"`limit` = {brief(limit)} must be a whole number of at least 1")
        found: list[Variant] = []
        for candidate in self._candidates(name):
            verdict = compare(name, candidate, apart=apart)
            if candidate != name and not isinstance(verdict, Different):
                found.append(Variant(candidate, verdict))
        return _ranked(_unsettled(found, apart), limit)

    def _candidates(self, name: EntityName) -> Iterator[EntityName]:
        lists = sorted((self._blocks.get(block, []) for block in _blocks(name)), key=len)
        numbers = dict.fromkeys(number for numbers in lists for number in numbers)
        for number in list(numbers)[:CANDIDATES_MAX]:
            yield self._known[number]


def _unsettled(found: list[Variant], apart: Collection[Pair]) -> list[Variant]:
    sure = [variant.name for variant in found if isinstance(variant.likeness, Same)]
    if not any(isinstance(compare(a, b, apart=apart), Different) for a, b in combinations(sure, 2)):
        return found
    return [
        Variant(variant.name, Likely((*variant.likeness.evidence, _FITS_TWO), 0.5))
        if isinstance(variant.likeness, Same)
        else variant
        for variant in found
    ]


def _rank(verdict: Likeness) -> float:
    return 0.0 if isinstance(verdict, Same) else 2.0 - verdict.score if isinstance(verdict, Likely) else 3.0


@lru_cache(maxsize=16_384)
def _slug(label: str) -> str:
    """Empty for a label without a visible character."""
    if not label or label.isspace():
        return ""
    try:
        return slug(label)
    except InvalidInput:
        return ""


def _ref(name: EntityName) -> str:
    return entity_ref(name.type, name.label) if _slug(name.label) else ""


@lru_cache(maxsize=16_384)
def _blocks(name: EntityName) -> frozenset[str]:
    """Features of which two names share at least one if `compare` finds them alike."""
    key = _slug(name.label)
    features = {f"slug {key}"} if key else set()
    if key and len(name.label) <= LABEL_CHARS_COMPARED:
        words, extra = _features(name)
        joined = "".join(words)
        features |= extra | {f"joined {folded(joined)}", f"rough {romanised(joined) or ''}"}
        for word in map(folded, words):
            features.add(f"word {word}")
            if len(word) > _PREFIX_CHARS and is_latin(word):
                features |= {f"sound {sound}" for sound in sounds(word)} | {f"prefix {word[:_PREFIX_CHARS]}"}
    return frozenset(f"{name.type} {feature}" for feature in features)


def _features(name: EntityName) -> tuple[tuple[str, ...], set[str]]:
    """The words of a name, and what else its variants may share."""
    if name.type == "person":
        who = person(name.label)
        words = who.words + tuple(filter(None, (who.nickname, *who.maiden.split())))
        extra = {f"given {number}" for word in words for number in name_numbers(folded(word))}
        text = folded("".join(who.words))
        return words, extra | {f"kin {who.kin}", f"first {text[:1]}" if not is_latin(text) else "", f"last {text[-2:]}"}
    if name.type == "place":
        where = place(name.label)
        return where.head, {f"place {partner}" for partner in open_partners(where.name)}
    words = org(name.label).words if name.type == "org" else project(name.label).words
    whole = org(name.label).whole if name.type == "org" else words
    return words, {f"initials {letters}" for letters in initials(whole)} | {f"initials {''.join(words)}"}
