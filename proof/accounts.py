"""What writers were told is compared with what a store holds: nothing lost, doubled, torn, out of order or from nowhere."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import perdure
from proof.harness import Round
from proof.requests import Request

PAGE = 10_000


@dataclass(slots=True)
class Told:
    """What the ledgers say: which requests were begun, how often, and which were acknowledged, with what answer."""

    begun: Counter[Request] = field(default_factory=Counter)
    answers: dict[Request, Any] = field(default_factory=dict)
    optional: bool = False
    """Whether what was acknowledged may be missing: then only that nothing is half there is checked."""

    def begin(self, request: Request) -> None:
        self.begun[request] += 1

    def done(self, request: Request, answer: Any) -> None:
        self.answers[request] = answer

    def of(self, *kinds: str) -> list[Request]:
        return [request for request in self.begun if request.kind in kinds]


@dataclass(slots=True)
class Books:
    """Everything of one user that requests leave behind, read from a store once."""

    messages: Sequence[perdure.Message]
    revisions: dict[str, list[tuple[int, dict[str, Any]]]]
    series: dict[str, tuple[perdure.Series, list[dict[str, Any]]]]
    statements: list[tuple[str, int]]
    todos: list[str]
    uncovered: set[str]
    """Ids of the merges whose window is not covered as a whole, and of those that it is not covered at all."""
    untouched: set[str]


def read_books(memory: perdure.Memory, told: Told) -> Books:
    revisions = {}
    for key in memory.state.keys():  # noqa: SIM118 - a method of ours, not of a dict
        past = memory.state.history(key, limit=PAGE)
        revisions[key] = [(one.number, json.loads(one.body or "null")) for one in reversed(past)]
    series = {one.name: (one, list(memory.series(one.name).rows())) for one in memory.series.list()}
    uncovered, untouched = set(), set()
    for request in told.of("merge", "merge_own"):
        start, end = request.window
        gaps = memory.series(request.key).gaps(start, end) if request.key in series else ()
        missing = sum(gap.end_us - gap.start_us for gap in gaps) // 1_000_000
        if missing or request.key not in series:
            uncovered.add(request.id)
        if missing == end - start or request.key not in series:
            untouched.add(request.id)
    return Books(
        _all_messages(memory),
        revisions,
        series,
        [(one.content, one.mentions) for held in memory.memories.list(limit=PAGE) for one in held.statements],
        [todo.content for todo in memory.todos.list(limit=PAGE, closed=True)],
        uncovered,
        untouched,
    )


def _all_messages(memory: perdure.Memory) -> list[perdure.Message]:
    found = list(memory.messages(PAGE))
    while len(found) % PAGE == 0 and found:
        older = memory.messages(PAGE, before=found[0].id)
        if not older:
            break
        found[:0] = older
    return found


def check_accounts(round: Round, memory: perdure.Memory, told: Told, *, when: str) -> Books:
    """Compare; each difference is a violation of its kind."""
    books = read_books(memory, told)
    check = _Check(round, told, when)
    check.log(books.messages)
    check.state(books.revisions)
    check.series(books)
    check.singles("remember", books.statements)
    check.singles("todo", [(content, 1) for content in books.todos])
    round.count("acknowledged writes looked up", len(told.answers))
    return books


@dataclass(slots=True)
class _Check:
    round: Round
    told: Told
    when: str

    def wrong(self, kind: str, request: Request, what: str) -> None:
        self.round.wrong(kind, f"{self.when}: {request.kind} {request.id}: {what}")

    def log(self, messages: Sequence[perdure.Message]) -> None:
        """One gapless log; each request in it as a whole and in one piece, each writer's in the order of its calls."""
        if [message.seq for message in messages] != list(range(1, len(messages) + 1)):
            self.round.wrong("out of order", f"{self.when}: the numbers of the messages are not 1 to {len(messages)}")
        at: dict[str, list[int]] = defaultdict(list)
        texts: dict[str, str] = {}
        for message in messages:
            at[message.id].append(message.seq)
            texts[message.id] = message.content
        expected = {}
        for request in self.told.of("append", "append_many"):
            ids = [request.part_id(part) for part in range(request.parts)]
            expected.update({one: request.text(part) for part, one in enumerate(ids)})
            found = [seq for one in ids for seq in at.get(one, ())]
            answer = self.told.answers.get(request)
            self._whole(request, len(found))
            if found and found != list(range(found[0], found[0] + len(found))):
                self.wrong("torn", request, f"its messages stand at {found}")
            if found and answer is not None and found != (answer if isinstance(answer, list) else [answer]):
                self.wrong("out of order", request, f"acknowledged at {answer}, found at {found}")
        for one, text in texts.items():
            if one not in expected:
                self.round.wrong("from nowhere", f"{self.when}: nobody asked for message {one}")
            elif text != expected[one]:
                self.round.wrong("torn", f"{self.when}: message {one} says {text!r:.200}")
        self._in_order(("append", "append_many"), {one: seqs[0] for one, seqs in at.items()})

    def _whole(self, request: Request, found: int) -> None:
        if found > request.parts:
            self.wrong("doubled", request, f"{found} parts instead of {request.parts}")
        elif 0 < found < request.parts:
            self.wrong("torn", request, f"{found} parts of {request.parts}")
        elif found == 0 and request in self.told.answers and not self.told.optional:
            self.wrong("lost", request, f"acknowledged with {self.told.answers[request]!r:.100}, and not there")

    def _in_order(self, kinds: Iterable[str], places: dict[str, int]) -> None:
        """What a writer was told one after the other stands one after the other. What it was never told of may be late."""
        for writer in {request.writer for request in self.told.begun}:
            mine = sorted(one for one in self.told.answers if one.writer == writer and one.kind in kinds)
            found = [places[one.part_id(0)] for one in mine if one.part_id(0) in places]
            if found != sorted(found):
                self.round.wrong("out of order", f"{self.when}: writer {writer} finds its requests at {found!r:.300}")

    def state(self, revisions: dict[str, list[tuple[int, dict[str, Any]]]]) -> None:
        for kind in ("save", "save_own"):
            for request in self.told.of(kind):
                held = [one for one in revisions.get(request.key, ()) if one[1]["by"] == request.id]
                self._whole(request, len(held))
                if held and held[0][1]["text"] != request.text():
                    self.wrong("torn", request, f"it holds {held[0][1]!r:.200}")
                if held and held[0][0] != self.told.answers.get(request, held[0][0]):
                    self.wrong("out of order", request, f"revision {held[0][0]}, not {self.told.answers[request]}")
        for key, held in revisions.items():
            numbers = [number for number, _ in held]
            if numbers != list(range(1, len(numbers) + 1)):
                self.round.wrong("out of order", f"{self.when}: key {key} has revisions {numbers!r:.200}")
            # Parts are numbered for messages; here the whole is part 0.
            self._in_order(["save" if key == "shared" else "save_own"], {f"{body['by']}p0": number for number, body in held})

    def series(self, books: Books) -> None:
        held: dict[str, dict[str, Any]] = {}
        for name, (about, entries) in books.series.items():
            held.update({entry["id"]: entry for entry in entries})
            if about.count != len(entries):
                self.round.wrong("torn", f"{self.when}: series {name} says {about.count} entries and has {len(entries)}")
        landed: dict[str, list[Request]] = defaultdict(list)
        for request in self.told.of("merge", "merge_own"):
            found = [entry for one in range(request.parts) if (entry := held.get(request.part_id(one))) is not None]
            self._whole(request, len(found))
            if any(entry["text"] != request.text(part) for part, entry in enumerate(found) if len(found) == request.parts):
                self.wrong("torn", request, "an entry says something else")
            if found and request.id in books.uncovered:
                self.wrong("torn", request, "its entries are there, and its window is not covered")
            if not found and request.id not in books.untouched:
                self.wrong("torn", request, "its window is covered, and its entries are not there")
            if found:
                landed[request.key].append(request)
        for name, (about, entries) in books.series.items():
            # In a series of its own, a writer's last merge is the latest, so that asking again changes nothing.
            wanted = (len(landed[name]), sum(request.parts for request in landed[name]), 0)
            if name != "shared" and (about.api_calls, about.fetched, about.duplicates) != wanted:
                self.round.wrong(
                    "doubled",
                    f"{self.when}: the books of series {name} say {about.api_calls} merges of {about.fetched} entries, "
                    f"{about.duplicates} twice; there were {wanted}",
                )
            if strange := {entry["id"] for entry in entries} - {
                request.part_id(part) for request in landed[name] for part in range(request.parts)
            }:
                self.round.wrong("from nowhere", f"{self.when}: series {name} has {sorted(strange)!r:.200}")

    def singles(self, kind: str, held: Sequence[tuple[str, int]]) -> None:
        found: dict[str, list[int]] = defaultdict(list)
        for text, mentions in held:
            found[text].append(mentions)
        for request in self.told.of(kind):
            mentions = found.pop(request.text(), [])
            self._whole(request, len(mentions))
            # Asking again is a mention. Once is once, though, whatever happened in between.
            if mentions and mentions[0] > self.told.begun[request]:
                self.wrong("doubled", request, f"{mentions[0]} mentions, asked for {self.told.begun[request]} times")
        for text in found:
            self.round.wrong("from nowhere", f"{self.when}: nobody asked for {kind} {text!r:.100}")
