"""P7: many agents at once see one order. Processes append to shared lists and to a log; what each saw is checked afterwards.

The checker knows the final order of each list, and asks of every call whether one order explains it: a reading is a beginning
of the final list, holds everything that was acknowledged before it began and nothing that was asked for after it ended.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from typing import Any

import perdure
from proof.harness import Case, Promise, Round
from proof.ledgers import LedgerReader
from proof.processes import Crew, crew, ended, until
from proof.stores import Backend, new_store
from proof.wholeness import check_heals
from proof.workers.agent import LISTS, LOG, USER, Part, act

ACT_S = 240.0
SETTINGS: list[tuple[Backend, int]] = [("SQLite", 4), ("PostgreSQL", 4), ("SQLite", 8), ("PostgreSQL", 8)]


@dataclass(frozen=True, slots=True)
class Added:
    """An element that was acknowledged: at which place, and the call's beginning and end."""

    element: str
    place: int
    began: int
    ended: int


@dataclass(frozen=True, slots=True)
class Seen:
    """A reading: the elements from the place `start` on."""

    process: str
    start: int
    elements: tuple[str, ...]
    began: int
    ended: int

    @property
    def length(self) -> int:
        return self.start + len(self.elements)


@dataclass(slots=True)
class History:
    """What all processes did to one list, or to the log."""

    added: list[Added] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    seen: list[Seen] = field(default_factory=list)


def run(round: Round) -> None:
    with crew() as team:
        for case in round.cases(quick=4, full=12, name="meetings"):
            backend, processes = SETTINGS[case.number % len(SETTINGS)]
            folder = round.folder / f"meeting-{case.number}"
            folder.mkdir()
            with new_store(round, backend, folder) as settings:
                _meet(round, case, team, Meeting(backend, processes, settings, folder))


@dataclass(frozen=True, slots=True)
class Meeting:
    """So many processes at one store."""

    backend: Backend
    processes: int
    settings: perdure.Settings
    folder: Path


def _meet(round: Round, case: Case, team: Crew, at: Meeting) -> None:
    go = at.folder / "go"
    names = [f"p{number}" for number in range(at.processes)]
    calls = round.sized(quick=30, full=200)
    parts = [Part(at.settings, at.folder / name, go, name, f"{case.chance.random()}", calls) for name in names]
    processes = [team.start(act, part) for part in parts]
    readers = {name: LedgerReader(at.folder / name) for name in names}
    notes: dict[str, list[tuple[str, Any]]] = {name: [] for name in names}

    def all_ready() -> bool:
        for name, reader in readers.items():
            notes[name] += reader.new()
        return all(notes.values())

    until(all_ready, "the agents are ready")
    go.touch()
    for process in processes:
        ended(process, seconds=ACT_S)
    for name, reader in readers.items():
        notes[name] += reader.new()
    histories = _histories(round, at, notes)
    when = f"{at.processes} processes on {at.backend}"
    with perdure.open(settings=at.settings) as engine:
        final = _final(engine.memory(USER))
        for name in (*LISTS, LOG):
            _check(round, f"{when}, {name}", final[name], histories[name])
        check_heals(round, engine, when=when)


def _final(memory: perdure.Memory) -> dict[str, list[str]]:
    found = {key: [str(one) for one in memory.state.load(key, [])] for key in LISTS}  # type: ignore[union-attr]
    return {**found, LOG: [message.content for message in memory.messages(10_000)]}


def _histories(round: Round, at: Meeting, notes: dict[str, list[tuple[str, Any]]]) -> dict[str, History]:
    histories: dict[str, History] = defaultdict(History)
    times: dict[str, list[float]] = defaultdict(list)
    for process, lines in notes.items():
        round.check(lines[-1][0] == "end", "refused", f"{at.processes} processes on {at.backend}: {lines[-1]!r:.300}")
        for what, value in lines:
            if what == "added":
                key, *rest = value
                histories[key].added.append(Added(*rest))
                times["append" if key == LOG else "compare and set"].append((value[4] - value[3]) / 1e6)
            elif what == "too late":
                histories[value[0]].refused.add(value[1])
                round.met(f"a rival was faster on {at.backend}")
            elif what == "list read":
                key, elements, revision, began, over = value
                histories[key].seen.append(Seen(process, 0, tuple(elements), began, over))
                times["read"].append((over - began) / 1e6)
                if revision != len(elements):
                    round.wrong("anomaly", f"{key}: revision {revision} with {len(elements)} elements")
            elif what == "log read":
                shown, began, over = value
                start = shown[0][0] - 1 if shown else 0
                histories[LOG].seen.append(Seen(process, start, tuple(one for _, one in shown), began, over))
                if [seq for seq, _ in shown] != list(range(start + 1, start + 1 + len(shown))):
                    round.wrong("anomaly", f"the log was shown with numbers {[seq for seq, _ in shown]}")
                times["read"].append((over - began) / 1e6)
    for kind, values in sorted(times.items()):
        round.count("calls", len(values))
        if len(values) > 1:
            cuts = quantiles(values, n=100)
            round.facts[f"{at.backend}, {at.processes} processes, {kind}"] = f"p50 {cuts[49]:.1f} ms, p99 {cuts[98]:.1f} ms"
    return histories


def _check(round: Round, where: str, final: Sequence[str], history: History) -> None:
    """Whether one order explains all that was seen."""
    place = {element: number for number, element in enumerate(final)}
    round.check(len(place) == len(final), "anomaly", f"{where}: an element is there twice")
    for one in history.added:
        if place.get(one.element) != one.place - 1:
            round.wrong("lost update", f"{where}: {one.element} was stored at {one.place}, and is at {place.get(one.element)}")
    for element in history.refused & set(final):
        round.wrong("anomaly", f"{where}: {element} was refused, and is there")
    for element in set(final) - {one.element for one in history.added}:
        round.wrong("anomaly", f"{where}: nobody was told that {element} is stored")
    for seen in history.seen:
        if list(seen.elements) != list(final[seen.start : seen.length]):
            round.wrong("anomaly", f"{where}: {seen.process} read what never was: {seen.elements[-3:]} at {seen.length}")
    _check_times(round, where, history)


def _check_times(round: Round, where: str, history: History) -> None:
    """Whoever comes later sees no less. All processes read one clock."""
    acknowledged = _Latest([(one.ended, one.place) for one in history.added])
    shown = _Latest([(seen.ended, seen.length) for seen in history.seen])
    begun = {one.place: one.began for one in history.added}
    for seen in history.seen:
        if (least := acknowledged.before(seen.began)) > seen.length:
            round.wrong("stale", f"{where}: {seen.process} read {seen.length} elements after {least} were acknowledged")
        if (least := shown.before(seen.began)) > seen.length:
            round.wrong("backwards", f"{where}: {seen.process} read {seen.length} elements after {least} had been read")
        if seen.length and begun.get(seen.length, 0) > seen.ended:
            round.wrong("anomaly", f"{where}: {seen.process} read what was asked for later")
    for one in history.added:
        if (least := acknowledged.before(one.began)) >= one.place:
            round.wrong(
                "out of order", f"{where}: {one.element} stands at {one.place}, behind it what was there before: {least}"
            )


class _Latest:
    """The highest place that had been reached at a moment."""

    def __init__(self, reached: list[tuple[int, int]]) -> None:
        self._moments: list[int] = []
        self._places: list[int] = []
        for moment, place in sorted(reached):
            self._moments.append(moment)
            self._places.append(max(place, self._places[-1] if self._places else 0))

    def before(self, moment: int) -> int:
        found = bisect_left(self._moments, moment)
        return self._places[found - 1] if found else 0


PROMISE = Promise(
    id="P7",
    says="many agents at once see one order",
    tried_by="4 and 8 processes append to shared lists (compare and set) and to a log, and read them; a list-append checker",
    run=run,
    evidence=("a rival was faster on SQLite", "a rival was faster on PostgreSQL"),
    figure="{wrong} anomalies, lost updates, stale reads or refusals over {calls} calls",
)
