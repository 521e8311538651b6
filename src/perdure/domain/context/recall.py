"""Recall: what is asked of everything remembered, what is found, why, and what the answer does not cover."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Literal, get_args

from perdure.domain.errors import InvalidInput
from perdure.domain.knowledge.memories import Proposed, Trust
from perdure.domain.scope import Address
from perdure.domain.text.rules import brief
from perdure.domain.times.spans import Span
from perdure.domain.values import dataclass, field

EntryKind = Literal["message", "memory", "instruction", "todo", "digest", "lesson", "state", "series"]
"""What can be found. A `memory` is one statement of one."""
ENTRY_KINDS: tuple[EntryKind, ...] = get_args(EntryKind)

HALF_LIFE_DAYS = 14.0
LEXICON = 1
"""Raised when texts are taken apart in another way, or entries are laid out anew: then everything is indexed again."""


@dataclass(frozen=True, slots=True)
class NewEntry:
    """Something to be found: its kind, its id among those of its kind, and what the index knows of it."""

    kind: str
    ref: str
    body: bytes


@dataclass(frozen=True, slots=True)
class Blend:
    """Weights of relevance, recency and frequency."""

    similarity: float = 0.4
    recency: float = 0.3
    frequency: float = 0.3
    half_life_days: float = HALF_LIFE_DAYS

    def recency_of(self, age_days: float) -> float:
        """1 now, and half of it after every half-life."""
        return float(0.5 ** (max(age_days, 0.0) / self.half_life_days))

    def score(self, similarity: float, age_days: float, frequency: float) -> float:
        """All three parts lie between 0 and 1; recency halves with every half-life."""
        return self.similarity * similarity + self.recency * self.recency_of(age_days) + self.frequency * frequency


def parse_blend(text: str) -> Blend | None:
    """The setting `recall_blend`: `off`, `on`, or the weights of similarity, recency and frequency, such as `0.4,0.3,0.3`."""
    if text in ("off", "on"):
        return Blend() if text == "on" else None
    try:
        weights = [float(part) for part in text.split(",")]
    except ValueError:
        weights = []
    if len(weights) != 3 or not all(0 <= weight <= 1 for weight in weights) or not 0.99 <= sum(weights) <= 1.01:
        raise InvalidInput(
            f"setting `recall_blend` = {brief(text, 60)} must be off, on, or three weights that add up to 1, as 0.4,0.3,0.3"
        )
    return Blend(*weights)


@dataclass(frozen=True, slots=True)
class RecallQuery:
    """What is asked, and of what."""

    text: str
    kinds: tuple[EntryKind, ...] = ENTRY_KINDS
    time_range: Span | None = None
    """Only what was said, or speaks of a time, within it."""
    entities: tuple[str, ...] = ()
    """Only what names one of these."""
    sessions: tuple[str, ...] = ()
    """Only what was said in these sessions of the channel."""
    as_of: datetime | None = None
    """What was so at that moment; None: now."""
    known_at: datetime | None = None
    """As far as it was known then; None: as is known now."""
    limit: int = 10
    budget_tokens: int | None = None
    neighbours: int = 0
    """Messages on either side of a found one that come with it."""
    collapse: bool = True
    """What was learned from a message and the message itself are one hit."""
    misses: int = 0
    """So many of those that came next are told, too: what was left out, and why."""
    trusted: bool = False
    """Only what the user or the agent said: no words of tools, nor of what came from elsewhere."""


@dataclass(frozen=True, slots=True)
class Arm:
    """What one arm measured for a hit, and its share of the score."""

    raw: float
    share: float
    """What it added to the score."""


@dataclass(frozen=True, slots=True)
class Trace:
    """How a hit got its score: the shares of the arms add up to its relevance."""

    arms: Mapping[str, Arm]
    relevance: float
    similarity: float
    """The relevance as a share of the best one's: what the blend takes."""
    recency: float = 0.0
    frequency: float = 0.0
    why: tuple[str, ...] = ()
    """In words: the terms it shares with the question, the time that fits, what was collapsed into it."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A message next to a hit."""

    id: str
    role: str
    speaker: str
    text: str
    at: datetime
    seq: int = 0


@dataclass(frozen=True, slots=True)
class CurrentValue:
    """What holds now in place of what a hit says."""

    id: str
    """The statement."""
    text: str
    since: datetime
    sources: tuple[str, ...] = ()
    """The messages that say so."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A search result. Its text is data: where it came from stands beside it."""

    kind: EntryKind
    id: str
    text: str
    at: datetime
    score: float
    trace: Trace
    speaker: str = ""
    """Who said it: a name if one was given, else the role."""
    address: Address | None = None
    """Whose conversation it is from; None if it belongs to the user as a whole."""
    session: str | None = None
    seq: int | None = None
    sources: tuple[str, ...] = ()
    """The messages it comes from, or those that say the same and were found, too."""
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    trust: Trust | None = None
    entities: tuple[str, ...] = ()
    neighbours: tuple[Neighbour, ...] = ()
    tokens: int = 0
    memory: str | None = None
    """Of a `memory`, the key of the memory that it is a statement of."""
    current: tuple[CurrentValue, ...] = ()
    """If it states an old value, or proposes another: what holds now."""
    proposes: Proposed | None = None
    """Of a `memory` that nobody has confirmed: what it proposes against the user's word."""
    against: tuple[str, ...] = ()
    """Of a proposal, the statements it speaks against."""

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class SeriesGap:
    """Part of the asked time that a relevant series does not cover."""

    series: str
    spans: tuple[Span, ...]
    """What to fetch; never the future."""
    future: Span | None = None
    """What is still to come, which no series covers."""


@dataclass(frozen=True, slots=True)
class Uncovered:
    """What an answer does not cover."""

    waiting: int = 0
    """Entries that are found by their words only, because their vectors are still to be made."""
    unindexed: bool = False
    """Things are stored that the index does not hold yet, and the job that takes them in has not finished."""
    degraded: str | None = None
    """Why meaning was not compared, or only in part; None if it was."""
    gaps: tuple[SeriesGap, ...] = ()
    cut: int = 0
    """Hits that the token budget left no room for."""

    @property
    def nothing(self) -> bool:
        """True if the answer covers everything."""
        return self == Uncovered()

    def lines(self) -> tuple[str, ...]:
        """In words, for people and for prompts."""
        found = []
        if self.unindexed:
            found.append("older data is still being indexed")
        if self.waiting:
            found.append(f"{self.waiting} new entries are found by their words only until their vectors are made")
        if self.degraded is not None:
            found.append(self.degraded)
        for gap in self.gaps:
            spans = ", ".join(f"{span.start.isoformat()} to {span.end.isoformat()}" for span in gap.spans)
            found += [f"series {gap.series!r} does not hold all of {spans}"] if spans else []
            if gap.future is not None:
                ahead = f"{gap.future.start.isoformat()} to {gap.future.end.isoformat()}"
                found.append(f"series {gap.series!r} covers nothing of {ahead}, which is still to come")
        if self.cut:
            found.append(f"{self.cut} more hits did not fit into the token budget")
        return tuple(found)


SERIES_SHARE_MIN = 0.1
"""A series is asked about if it comes so near the one that fits best."""


def series_asked_about(hits: Sequence[Hit]) -> list[Hit]:
    """The series among the hits, without those that hardly fit: nobody is told to fetch these."""
    found = [hit for hit in hits if hit.kind == "series"]
    best = max((hit.score for hit in found), default=0.0)
    return [hit for hit in found if best <= 0 or hit.score >= SERIES_SHARE_MIN * best]


@dataclass(frozen=True, slots=True)
class Understood:
    """How the question was understood."""

    terms: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    """Entities that it names, through their aliases."""
    roles: tuple[str, ...] = ()
    """Whose words it asks for."""
    time_range: Span | None = None


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A result that was left out, and why."""

    hit: Hit
    why: str


@dataclass(frozen=True, slots=True)
class Recall:
    """The answer: hits, best first, and what they do not cover."""

    query: str
    hits: tuple[Hit, ...]
    uncovered: Uncovered
    understood: Understood = field(default_factory=Understood)
    tokens: int = 0
    explanation: str = ""
    """`explain()`, if that was asked for."""
    left_out: tuple[LeftOut, ...] = ()
    """What came next and why it is not among the hits, if an explanation was asked for."""
    pending: int = 0
    """Jobs that have still to learn from what was written, so that this knows nothing of it; 0: there are none."""

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)

    def __len__(self) -> int:
        return len(self.hits)

    def __str__(self) -> str:
        lines = [f"{place}. {hit} ({hit.at:%Y-%m-%d}, score {hit.score:.2f})" for place, hit in enumerate(self.hits, 1)]
        return "\n".join([*(lines or ["No results."]), *(f"Not covered: {line}" for line in self.uncovered.lines())])

    def explain(self) -> str:
        """How the question was understood and why each hit has its rank, as text."""
        asked = self.understood
        lines = [f"terms: {', '.join(asked.terms) or 'none'}"]
        if asked.names:
            lines.append(f"names: {', '.join(asked.names)}")
        if asked.roles:
            lines.append(f"said by: {', '.join(asked.roles)}")
        if asked.time_range is not None:
            lines.append(f"time: {asked.time_range.start.isoformat()} to {asked.time_range.end.isoformat()}")
        for place, hit in enumerate(self.hits, 1):
            arms = ", ".join(f"{name} {arm.share:.3f} ({arm.raw:.3f})" for name, arm in hit.trace.arms.items())
            lines.append(f"{place}. {hit.kind} {hit.id!r} {hit.score:.3f}")
            lines.append(f"   relevance {hit.trace.relevance:.3f} = {arms}")
            if hit.trace.recency or hit.trace.frequency:
                parts = f"{hit.trace.similarity:.3f}, recency {hit.trace.recency:.3f}, frequency {hit.trace.frequency:.3f}"
                lines.append(f"   blended of similarity {parts}")
            lines += [f"   {reason}" for reason in hit.trace.why]
        lines += [f"left out: {one.hit.kind} {one.hit.id!r} {one.hit.score:.3f}: {one.why}" for one in self.left_out]
        lines += [f"not covered: {line}" for line in self.uncovered.lines()]
        return "\n".join(lines)
