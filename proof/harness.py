"""What every promise is run with: seeded chance, counted cases, evidence that the fault was met, and what went wrong.

A promise is broken by any `wrong`; it is *unproven*, which counts as failed too, when a fault it is about was never met, or
when no case was tried at all.
"""

from __future__ import annotations

import random
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

T = TypeVar("T")
Size = Literal["quick", "full"]
Verdict = Literal["kept", "broken", "unproven", "failed"]
Part = tuple[int, int]
"""The second of four parts of a round is (2, 4). Together they are the round: each case is tried in one of them."""
WHOLE: Part = (1, 1)
WRONGS_KEPT = 50
"""Violations told in full; the count goes on."""


@dataclass(frozen=True, slots=True)
class Promise:
    """One row of the table: what is promised, how it is tried, and how its figure reads."""

    id: str
    says: str
    tried_by: str
    run: Callable[[Round], None]
    evidence: tuple[str, ...]
    """Names of faults that must have been met (`Round.met`) for the promise to count as proven."""
    figure: str
    """How the figure reads: a format string over the round's counts, such as `{wrong} lost over {kills} kills`."""


@dataclass(frozen=True, slots=True)
class Case:
    """One try of many, with chance of its own: the same seed and number give the same plan."""

    number: int
    chance: random.Random


@dataclass(frozen=True, slots=True)
class Wrong:
    """One violation: what kind, what exactly, and the case that showed it."""

    kind: str
    what: str
    case: int | None


@dataclass(slots=True)
class Round:
    """One run of one promise."""

    promise: str
    seed: int
    size: Size
    folder: Path
    """Empty, and removed afterwards unless something went wrong."""
    only_case: int | None = None
    part: Part = WHOLE
    tell: Callable[[str], None] = lambda _: None
    postgres: Callable[[], str] | None = None
    """Starts PostgreSQL when first asked; the URL of a superuser."""
    counts: Counter[str] = field(default_factory=Counter)
    evidence: Counter[str] = field(default_factory=Counter)
    wrongs: list[Wrong] = field(default_factory=list)
    facts: dict[str, object] = field(default_factory=dict)
    """What was measured besides: latencies, sizes, versions. Told in the report, judged by nobody."""
    offered: dict[str, int] = field(default_factory=dict)
    """How many cases there are, by name, whether or not they were tried."""
    tried: int = 0
    """Cases that were begun."""
    _case: int | None = None

    def sized(self, *, quick: T, full: T) -> T:
        """The quick or the full amount of something."""
        return quick if self.size == "quick" else full

    @property
    def begins(self) -> bool:
        """Whether this is the place for what a round tries once, beside its cases: the whole of it, or its first part."""
        return self.only_case is None and self.part[0] == 1

    @property
    def is_whole(self) -> bool:
        return self.only_case is None and self.part == WHOLE

    def numbers(self, total: int) -> range:
        """Which of so many cases are tried here."""
        if self.only_case is not None:
            return range(self.only_case, min(self.only_case + 1, total))
        number, of = self.part
        return range(total * (number - 1) // of, total * number // of)

    def cases(self, quick: int, full: int, *, name: str = "cases") -> Iterator[Case]:
        """So many tries, each with chance of its own; with `--case` or `--part`, some of them. Tells progress."""
        total = self.sized(quick=quick, full=full)
        told = time.monotonic()
        self.offered[name] = total
        for number in self.numbers(total):
            self._case = number
            self.tried += 1
            yield Case(number, random.Random(f"{self.seed}/{self.promise}/{name}/{number}"))
            self.counts[name] += 1
            if time.monotonic() - told > 5:
                told = time.monotonic()
                self.tell(f"{name} {number + 1}/{total}, {len(self.wrongs)} wrong")
        self._case = None

    def count(self, name: str, by: int = 1) -> None:
        self.counts[name] += by

    def met(self, name: str, by: int = 1) -> None:
        """The fault of that name was really met."""
        self.evidence[name] += by

    def wrong(self, kind: str, what: object) -> None:
        """The promise was broken."""
        self.counts["wrong"] += 1
        self.counts[f"wrong: {kind}"] += 1
        if len(self.wrongs) < WRONGS_KEPT:
            self.wrongs.append(Wrong(kind, str(what)[:2_000], self._case))

    def check(self, holds: bool, kind: str, what: object) -> bool:
        """`wrong` unless it holds; what was given back is whether it does."""
        if not holds:
            self.wrong(kind, what)
        return holds

    @contextmanager
    def guarded(self, kind: str) -> Iterator[None]:
        """Whatever is raised inside is a violation of that kind, told with its last frames."""
        try:
            yield
        except Exception as error:
            self.wrong(kind, "".join(traceback.format_exception(error, limit=-4)))


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one promise fared."""

    promise: Promise
    verdict: Verdict
    figure: str
    seed: int
    size: Size
    seconds: float
    counts: dict[str, int]
    evidence: dict[str, int]
    wrongs: tuple[Wrong, ...]
    facts: dict[str, object]
    unmet: tuple[str, ...] = ()
    error: str = ""
    case: int | None = None
    """The only case that was asked for."""
    no_such_case: str = ""
    """Said when that case does not exist."""
    part: Part = WHOLE

    @property
    def extent(self) -> str:
        """How much was tried."""
        part = "" if self.part == WHOLE else f", part {self.part[0]} of {self.part[1]}"
        return f"{self.size}{part}" + ("" if self.case is None else f", case {self.case}")

    @property
    def replay(self) -> str:
        shown = (one.case for one in self.wrongs if one.case is not None)
        case = self.case if self.case is not None else next(shown, None)
        words = ["python -m proof run", self.promise.id, f"--seed {self.seed}"]
        words += ["--quick"] * (self.size == "quick") + ([f"--case {case}"] if case is not None else [])
        if case is None and self.part != WHOLE:
            words.append("--part {}/{}".format(*self.part))
        return " ".join(words)


def run(promise: Promise, round: Round) -> Outcome:
    """Try one promise. An error of the trial itself is told as `failed`: it proves nothing either way."""
    began = time.monotonic()
    error = ""
    try:
        promise.run(round)
    except Exception as raised:
        error = "".join(traceback.format_exception(raised))
    unmet = tuple(name for name in promise.evidence if not round.evidence[name])
    if not round.is_whole:
        # What only other cases meet cannot be met. That this one was tried is asked for below.
        unmet = ()
    no_such_case = "" if error or round.tried or round.only_case is None else _no_such_case(promise, round)
    if not round.tried and not error:
        unmet = (*unmet, no_such_case or "any case: none was tried")
    verdict: Verdict = "broken" if round.wrongs else "failed" if error else "unproven" if unmet else "kept"
    counts = Counter({"wrong": 0, **round.counts})
    return Outcome(
        promise,
        verdict,
        _figure(promise.figure, counts, round.evidence),
        round.seed,
        round.size,
        time.monotonic() - began,
        dict(counts),
        dict(round.evidence),
        tuple(round.wrongs),
        round.facts,
        unmet,
        error,
        round.only_case,
        no_such_case,
        round.part,
    )


def _no_such_case(promise: Promise, round: Round) -> str:
    there = ", ".join(f"{name} 0 to {total - 1}" for name, total in round.offered.items() if total)
    return f"{promise.id} has no case {round.only_case} in its {round.size} round; there are: {there or 'none'}"


def _figure(text: str, counts: Counter[str], evidence: Counter[str]) -> str:
    class Numbers(dict[str, str]):
        def __missing__(self, key: str) -> str:
            return f"{counts[key] or evidence[key]:,}"

    return text.format_map(Numbers())
