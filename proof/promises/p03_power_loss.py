"""P3: what returned survives a power cut.

Everything a store and its files are made of is written down while perdure works (`recorded_disk`); then the power is cut at
random points of that record, and what the weakest disk may leave (`power_cut`) is opened, searched and put to work.
"""

from __future__ import annotations

import random
import shutil
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import perdure
from perdure.contexts import ContextCompactor, ContextManager, HistoryEntry
from perdure.services.backup import check_file
from perdure.settings import Settings
from proof.harness import Case, Promise, Round
from proof.power_cut import Disk, materialised
from proof.recorded_disk import Ack, Name, Recording, Sync, recorded
from proof.wholeness import check_heals, check_whole

STEPS = 40
BIG = 40_000
"""Characters of a large message: the log must reach the size at which SQLite copies it into the database."""
QUICK_CUTS = 24
BURST = 150
"""Appends in a row in the faster mode, so that SQLite comes to copy its log by itself, and the window is seen whole."""
WRITERS = 3
DOCUMENT = "ana:coach:1"
SECRET = "zyxwquartzsecret"
START = datetime(2026, 1, 5, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Promised:
    """What a call that returned has promised: a kind, and what to look for."""

    kind: str
    what: tuple[object, ...]
    at: float = field(default_factory=time.monotonic)


def _settings(folder: Path, durability: str) -> Settings:
    return Settings(
        url=f"sqlite:///{folder / 'store.db'}",
        durability=durability,
        files_dir=str(folder / "files"),
        transcript_messages_min=0,
        embedder="none",
    )


class _Work:
    """One seeded run of everything that stores, in this process, acknowledged step by step."""

    def __init__(self, recording: Recording, chance: random.Random, durability: str) -> None:
        self.recording, self.chance, self.durability = recording, chance, durability
        self.engine = perdure.open(settings=_settings(recording.root, durability))
        self.ana = self.engine.memory("ana")
        self.documents = ContextManager(recording.root / "contexts" / "deep")
        self.compactor = ContextCompactor(max_history=4)
        self.saved = 0
        self.count = 0
        self.open_messages: list[str] = []

    def ack(self, kind: str, *what: object) -> None:
        self.recording.acknowledge(Promised(kind, what))

    def run(self, steps: int) -> None:
        kinds: list[tuple[Callable[[], None], int]] = [
            (self.append, 8), (self.append_many, 2), (self.remember, 3), (self.state, 3), (self.series, 3), (self.todo, 2),
            (self.lesson, 3), (self.document, 4), (self.process, 2), (self.together, 1), (self.forget, 1), (self.backup, 1),
            (self.forget_user, 1), (self.delete_session, 1), (self.delete_document, 1), (self.reopen, 1), (self.purge, 1),
        ]  # fmt: skip
        # Each kind at least once, whatever chance says.
        plan = [call for call, _ in kinds] + self.chance.choices(*zip(*kinds, strict=True), k=max(0, steps - len(kinds)))
        self.chance.shuffle(plan)
        for call in plan:
            call()
        if self.durability == "normal":
            for _ in range(BURST):
                self.append()
        self.engine.close()

    def append(self) -> None:
        self.count += 1
        text = f"message {self.count}" + " and so on" * (self.chance.choice((0, 0, BIG // 10)))
        held = self.ana.append(self.chance.choice(("user", "assistant")), text, id=f"a{self.count}")
        self.open_messages.append(held.id)
        self.ack("message", held.id, text)

    def append_many(self) -> None:
        batch = []
        for _ in range(self.chance.randrange(2, 6)):
            self.count += 1
            batch.append(perdure.NewMessage("user", f"one of many {self.count}", id=f"a{self.count}"))
        for held in self.ana.append_many(batch):
            self.ack("message", held.id, held.content)

    def together(self) -> None:
        """Several threads at once: their writes are committed in groups."""

        def write(number: int) -> None:
            for turn in range(4):
                held = self.engine.memory(f"writer{number}").append("user", f"turn {turn}", id=f"{self.count}.{turn}")
                self.ack("their message", f"writer{number}", held.id)

        self.count += 1
        threads = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def remember(self) -> None:
        self.count += 1
        self.ana.remember(f"Likes colour {self.count}", attribute="likes", value=f"colour {self.count}")
        self.ack("memory", f"Likes colour {self.count}")

    def state(self) -> None:
        key = self.chance.choice(("goal", "mood"))
        self.ack("state", key, self.ana.state.save(key, {"n": self.count}))

    def series(self) -> None:
        self.count += 1
        entries = [{"id": f"e{self.count}.{one}", "timestamp": START + timedelta(minutes=self.count)} for one in range(3)]
        self.ana.series("runs").merge(entries)
        for entry in entries:
            self.ack("entry", entry["id"])

    def todo(self) -> None:
        self.count += 1
        self.ana.todos.add(f"buy {self.count} apples")
        self.ack("todo", f"buy {self.count} apples")

    def lesson(self) -> None:
        self.count += 1
        self.ana.lessons.add(f"The ticket prefix of team {self.count} is T{self.count}", "user")
        self.ack("lesson", f"The ticket prefix of team {self.count} is T{self.count}")

    def document(self) -> None:
        context = self.documents.load(DOCUMENT)
        context.recent_history.append(HistoryEntry(1_700_000_000 + self.saved, "user", f"m{self.saved}"))
        self.compactor.compact(context, force=True)
        self.documents.save(context)
        self.saved += 1
        self.ack("document", self.saved)

    def process(self) -> None:
        self.engine.process(30)
        for message in self.ana.messages(1_000):
            self.ack("transcript", message.session, message.content)

    def forget(self) -> None:
        self.count += 1
        word = f"{SECRET}{self.count}x"
        self.ana.append("user", f"My code is {word}.", id=f"s{self.count}")
        self.engine.process(30)
        self.ana.forget(messages=(f"s{self.count}", f"s{self.count}"))
        self.ack("forgotten", word)

    def forget_user(self) -> None:
        self.count += 1
        word = f"{SECRET}{self.count}x"
        bob = self.engine.memory("bob")
        bob.append("user", f"My code is {word}.")
        bob.lessons.add(f"The code of bob is {word}", "user")
        self.engine.process(30)
        bob.forget(user=True)
        self.ack("forgotten user", word)

    def delete_session(self) -> None:
        self.count += 1
        eve = self.engine.memory("eve")
        session = eve.append("user", f"message {self.count}").session
        self.engine.process(30)
        eve.conversation.delete(session)
        self.engine.process(30)  # a job removes the transcript
        self.ack("deleted session", session)

    def delete_document(self) -> None:
        self.count += 1
        context = self.documents.load("bob:coach:1")
        context.recent_history.append(HistoryEntry(1_700_000_000, "user", f"{SECRET}{self.count}x"))
        self.documents.save(context)
        self.documents.delete("bob:coach:1")
        self.ack("deleted document", f"{SECRET}{self.count}x")

    def backup(self) -> None:
        self.count += 1
        name = f"backup{self.count}.gz"
        self.engine.backup(self.recording.root / name)
        self.ack("backup", name)
        self.ana.export(self.recording.root / f"{name}.jsonl")
        self.ack("export", f"{name}.jsonl")

    def reopen(self) -> None:
        """Closing copies the log into the database and removes it."""
        self.engine.close()
        self.engine = perdure.open(settings=_settings(self.recording.root, self.durability))
        self.ana = self.engine.memory("ana")

    def purge(self) -> None:
        self.engine.purge()


def _recorded(round: Round, name: str, chance: random.Random, durability: str) -> Recording:
    root = round.folder / name
    root.mkdir()
    with recorded(root) as recording:
        _Work(recording, chance, durability).run(round.sized(quick=STEPS, full=2 * STEPS))
    recording.check(Disk(recording.events).content())
    shutil.rmtree(root)
    return recording


def _run(round: Round) -> None:
    recordings: dict[tuple[str, int], Recording] = {}

    def recording(durability: str, number: int) -> Recording:
        held = recordings.get((durability, number))
        if held is None:
            recordings.clear()  # they are large, and cases come in their order
            plan = random.Random(f"{round.seed}/{durability}/{number}")
            held = recordings[durability, number] = _recorded(round, f"{durability}{number}", plan, durability)
        return held

    for case in round.cases(quick=10, full=100, name="cuts during set-up"):
        held = recording("full", 0)
        _cut(round, case, held, "full", case.chance.choice(_barriers(held)), harsh=False)
    share = round.sized(quick=QUICK_CUTS, full=100)
    for case in round.cases(quick=QUICK_CUTS, full=1_000, name="cuts"):
        held = recording("full", case.number // share)
        moments = _acknowledgements(held)
        if case.number % share < len(moments):
            # Right after a call of each kind has returned, with nothing left of what it did not sync.
            _cut(round, case, held, "full", case.chance.choice(moments[case.number % share]), harsh=True)
        else:
            position = case.chance.choice((case.chance.randrange(len(held.events)), *map(case.chance.choice, moments)))
            _cut(round, case, held, "full", position + 1, harsh=case.chance.random() < 0.2)
    most, oldest, window = 0, 0.0, 0
    for case in round.cases(quick=8, full=300, name="cuts of the faster mode"):
        held = recording("normal", case.number // share)
        lost, age = _cut(round, case, held, "normal", case.chance.randrange(1, len(held.events)), harsh=case.number % 3 == 0)
        most, oldest, window = max(most, lost), max(oldest, age), max(window, _window(held))
    round.facts["faster mode (`durability=normal`), lost in one cut"] = (
        f"at most {most} acknowledged writes, {oldest:.2f} s old"
    )
    round.facts["faster mode, its window"] = (
        f"all writes since SQLite last copied its log into the database: at most {window} acknowledged in a row here, "
        "1,000 pages (4 MB) of log, however old unless the system has written them by itself; "
        "always the last ones, never one from the middle"
    )


def _window(recording: Recording) -> int:
    """The most writes that were acknowledged between two syncs of SQLite's log."""
    log = {event.file for event in recording.events if isinstance(event, Name) and event.name.endswith("-wal")}
    most = count = 0
    for event in recording.events:
        if isinstance(event, Sync) and event.file in log:
            count = 0
        elif isinstance(event, Ack) and event.what.kind in ORDERED:
            count += 1
            most = max(most, count)
    return most


def _cut(round: Round, case: Case, recording: Recording, durability: str, position: int, *, harsh: bool) -> tuple[int, float]:
    """Cut the power after so many events. In the faster mode, what was lost: how many acknowledged writes, and how old the oldest was."""
    disk = Disk(recording.events[:position])
    content, cut = disk.cut(case.chance, harsh=harsh)
    round.met("power cut while writes were not synced", cut.pending > 0)
    round.met("unsynced writes lost", cut.lost)
    round.met("a write torn between sectors", cut.torn)
    round.met("unsynced names lost or brought back", cut.names_lost)
    folder = round.folder / f"cut{case.number}-{durability}"
    materialised(content, folder, case.chance)
    promised = [ack.what for ack in disk.acks]
    when = f"{durability}, cut after event {position} of {len(recording.events)}"
    wrongs = len(round.wrongs)
    loss = (0, 0.0)
    with round.guarded("store does not open"):
        store = [one for one in promised if one.kind not in FILES]
        if "store.db" not in content:
            round.check(not store or durability == "normal", "lost", f"{when}: the database, with {len(store)} acknowledged")
        with perdure.open(settings=_settings(folder, durability)) as engine:
            missing = [*_missing(engine, folder, content, promised)]
            if durability == "full":
                for one in missing:
                    round.wrong("lost", f"{when}: {one.kind} {one.what}")
            else:
                loss = _judged_loss(round, when, promised, missing)
            if case.number % 4 == 0:
                check_heals(round, engine, when=when)
            else:
                check_whole(round, engine, when=when)
        round.count("acknowledged", len(promised))
    if len(round.wrongs) == wrongs:
        shutil.rmtree(folder)
    return loss


def _barriers(recording: Recording) -> list[int]:
    """After how many events names were made and files synced while the store was being made."""
    first = next(number for number, event in enumerate(recording.events) if isinstance(event, Ack))
    return [number for number, event in enumerate(recording.events[:first], 1) if isinstance(event, Name | Sync)]


def _acknowledgements(recording: Recording) -> list[list[int]]:
    """By kind, after how many events calls have returned."""
    found: dict[str, list[int]] = {}
    for number, event in enumerate(recording.events, 1):
        if isinstance(event, Ack):
            found.setdefault(event.what.kind, []).append(number)
    return [found[kind] for kind in sorted(found)]


FILES = {"document", "backup", "export"}
"""Kinds that are files of their own, synced in either mode."""
ORDERED = {"message", "memory", "todo"}


def _judged_loss(round: Round, when: str, promised: list[Promised], missing: list[Promised]) -> tuple[int, float]:
    for one in missing:
        if one.kind in FILES:
            round.wrong("lost", f"{when}: {one.kind} {one.what}")
    lost = [one for one in promised if one.kind in ORDERED and one in missing]
    kept = [one for one in promised if one.kind in ORDERED and one not in missing]
    if lost and kept and any(one.at > lost[0].at for one in kept):
        round.wrong("hole", f"{when}: {lost[0].kind} {lost[0].what} is gone, later ones are there")
    round.met("the faster mode lost acknowledged writes", bool(lost))
    end = promised[-1].at if promised else 0.0
    return len(lost), max((end - one.at for one in lost), default=0.0)


def _missing(
    engine: perdure.Engine, folder: Path, content: Mapping[str, bytes], promised: list[Promised]
) -> Iterator[Promised]:
    """What was promised and is not there."""
    forgotten = [str(one.what[0]) for one in promised if one.kind.startswith("forgotten")]
    held = _Held(engine, folder, content.values(), {str(one.what[0]) for one in promised if one.kind == "their message"})
    for one in promised:
        if one.kind == "transcript" and any(word in str(one.what[1]) for word in forgotten):
            continue
        if held.keeps(one):
            continue
        if one.kind == "transcript":
            held.work_on()
        if not held.keeps(one):
            yield one


def _transcripts(ana: perdure.Memory) -> dict[str, str]:
    found = {}
    for session in {one.session for one in ana.messages(10_000)}:
        with suppress(perdure.NotFound):
            found[session] = "\n".join(one.content for one in ana.transcripts.read(session))
    return found


class _Held:
    """What is there after the cut, read once."""

    def __init__(self, engine: perdure.Engine, folder: Path, content: Iterable[bytes], others: set[str]) -> None:
        self.engine, self.folder = engine, folder
        self.bytes = content
        """Of the files as the cut left them: whoever opens the store may move its log into it."""
        ana = engine.memory("ana")
        self.messages = {one.id: one.content for one in ana.messages(10_000)}
        self.theirs = {(name, one.id) for name in others for one in engine.memory(name).messages(10_000)}
        eve = engine.memory("eve")
        self.eve = {one.session for one in (*eve.messages(1_000), *eve.transcripts.list())}
        self.statements = {
            one.content for memory in ana.memories.list() for one in ana.memories.history(memory.memory.record_key)
        }
        self.revisions = {key: ana.state.find(key).revision for key in ("goal", "mood")}
        self.entries = {entry.id for entry in ana.series("runs").entries()} if ana.list_series() else set()
        self.todos = {todo.content for todo in ana.todos.list(limit=1_000)}
        self.lessons = {lesson.text for lesson in ana.lessons.list()}
        self.book = ana.lessons.text("user")
        self.said = [entry.content for entry in ContextManager(folder / "contexts" / "deep").history(DOCUMENT)]
        self.transcripts = _transcripts(ana)

    def work_on(self) -> None:
        """Forgetting takes transcripts away at once, and jobs write them anew: have those done that the cut came before."""
        self.engine.process(30)
        self.transcripts = _transcripts(self.engine.memory("ana"))

    def keeps(self, one: Promised) -> bool:
        kept: bool = getattr(self, f"_{one.kind.replace(' ', '_')}")(*one.what)
        return kept

    def _message(self, id: str, content: str) -> bool:
        return self.messages.get(id) == content

    def _their_message(self, user: str, id: str) -> bool:
        return (user, id) in self.theirs

    def _memory(self, content: str) -> bool:
        return content in self.statements

    def _state(self, key: str, revision: int) -> bool:
        return self.revisions[key] >= revision

    def _entry(self, id: str) -> bool:
        return id in self.entries

    def _todo(self, content: str) -> bool:
        return content in self.todos

    def _lesson(self, text: str) -> bool:
        return text in self.lessons and text in self.book

    def _document(self, entries: int) -> bool:
        return self.said == [f"m{number}" for number in range(len(self.said))] and len(self.said) >= entries

    def _transcript(self, session: str, content: str) -> bool:
        return content in self.transcripts.get(session, "")

    def _forgotten(self, word: str) -> bool:
        return not any(word.encode() in content for content in self.bytes)

    _forgotten_user = _deleted_document = _forgotten

    def _deleted_session(self, session: str) -> bool:
        return session not in self.eve

    def _backup(self, name: str) -> bool:
        check_file(self.folder / name)
        return True

    def _export(self, name: str) -> bool:
        path = self.folder / name
        return path.is_file() and path.read_bytes().endswith(b"\n")


PROMISE = Promise(
    id="P3",
    says="what returned is still there after a power cut, in the default durability",
    tried_by="every write, truncation, name and sync of the store and its files is recorded; at random points the power is cut: "
    "of what was not synced any part stays, in any order, torn between sectors; the rest is opened, searched and verified",
    run=_run,
    evidence=(
        "power cut while writes were not synced",
        "unsynced writes lost",
        "a write torn between sectors",
        "unsynced names lost or brought back",
        "the faster mode lost acknowledged writes",
    ),
    figure="{wrong} acknowledged writes lost or stores unsound over {cuts} cuts, {cuts during set-up} during set-up and {cuts of the faster mode} of the faster mode",
)
