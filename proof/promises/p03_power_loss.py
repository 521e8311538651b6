"""P3: what returned survives a power cut.

Everything a store and its files are made of is written down while perdure works (`recorded_disk`); then the power is cut at
random points of that record, and what the weakest disk may leave (`power_cut`) is opened, searched and put to work.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import perdure
from perdure.adapters.sqlite import cipher
from perdure.adapters.sqlite.cipher import PLAIN, SALT_BYTES
from perdure.documents import ContextManager
from perdure.services.store.backup import check_file
from proof.harness import Case, Promise, Round
from proof.power_cut import Disk, Lot, materialised
from proof.recorded_disk import Ack, Name, Recording, Sync, recorded
from proof.wholeness import check_heals, check_whole
from proof.workers.recorded import DOCUMENT, ENCRYPTED, FASTER, SECRET, Assignment, Promised, settings

STORE = "store.db"
STEPS = 40
QUICK_CUTS = 24
SHARE = 100
"""Cuts of one recording in a full round."""
DEFAULT = "full"


def _recorded(round: Round, mode: str, number: int) -> Recording:
    root = round.folder / f"{mode}{number}"
    root.mkdir()
    asked = Assignment(str(root.resolve()), mode, f"{round.seed}/{mode}/{number}", round.sized(quick=STEPS, full=2 * STEPS))
    recording = recorded(root, "proof.workers.recorded", asked.line(), Promised.read)
    recording.check(Disk(recording.events).content())
    shutil.rmtree(root)
    return recording


def _run(round: Round) -> None:
    recordings: dict[tuple[str, int], Recording] = {}

    def recording(mode: str, number: int) -> Recording:
        held = recordings.get((mode, number))
        if held is None:
            recordings.clear()  # they are large, and cases come in their order
            held = recordings[mode, number] = _recorded(round, mode, number)
        return held

    share = round.sized(quick=QUICK_CUTS, full=SHARE)
    for mode, name, full in ((DEFAULT, "cuts", 1_000), (ENCRYPTED, "cuts of an encrypted store", 300)):
        for case in round.cases(quick=16, full=100, name=name.replace("cuts", "cuts during set-up")):
            held = recording(mode, 0)
            if case.number % 2:
                _cut(round, case, held, mode, case.chance.choice(_barriers(held)))
            else:
                _cut(round, case, held, mode, _first_page(held), "some")
        for case in round.cases(quick=QUICK_CUTS, full=full, name=name):
            held = recording(mode, case.number // share)
            moments = _acknowledgements(held)
            if case.number % share < len(moments):
                # Right after a call of each kind has returned, with nothing left of what it did not sync.
                _cut(round, case, held, mode, case.chance.choice(moments[case.number % share]), "nothing")
            else:
                position = case.chance.choice((case.chance.randrange(len(held.events)), *map(case.chance.choice, moments)))
                _cut(round, case, held, mode, position + 1, "nothing" if case.chance.random() < 0.2 else None)
    most, oldest, window = 0, 0.0, 0
    for case in round.cases(quick=8, full=300, name="cuts of the faster mode"):
        held = recording(FASTER, case.number // share)
        lot: Lot | None = None if case.number % 3 else "nothing"
        lost, age = _cut(round, case, held, FASTER, case.chance.randrange(1, len(held.events)), lot)
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


def _cut(round: Round, case: Case, recording: Recording, mode: str, position: int, lot: Lot | None = None) -> tuple[int, float]:
    """Cut the power after so many events. In the faster mode, what was lost: how many acknowledged writes, and how old the oldest was."""
    disk = Disk(recording.events[:position])
    content, cut = disk.cut(case.chance, lot)
    round.met("power cut while writes were not synced", cut.pending > 0)
    round.met("unsynced writes lost", cut.lost)
    round.met("a write torn between sectors", cut.torn)
    round.met("unsynced names lost or brought back", cut.names_lost)
    folder = round.folder / f"cut{case.number}-{mode}"
    materialised(content, folder, case.chance)
    promised = [ack.what for ack in disk.acks]
    when = f"{mode}, cut after event {position} of {len(recording.events)}"
    wrongs = len(round.wrongs)
    loss = (0, 0.0)
    cipher._salts.clear()  # whoever comes after a power cut has seen none of these files before
    with round.guarded("store does not open"):
        store = [one for one in promised if one.kind not in FILES]
        if STORE not in content:
            round.check(not store or mode == FASTER, "lost", f"{when}: the database, with {len(store)} acknowledged")
        with perdure.open(settings=settings(folder, mode)) as engine:
            missing = [*_missing(engine, folder, content, promised)]
            if mode == FASTER:
                loss = _judged_loss(round, when, promised, missing)
            else:
                for one in missing:
                    round.wrong("lost", f"{when}: {one.kind} {one.what}")
            if case.number % 4 == 0:
                check_heals(round, engine, when=when)
            else:
                check_whole(round, engine, when=when)
        round.count("acknowledged", len(promised))
        if mode == ENCRYPTED:
            _check_sealed(round, folder, content, when)
    if len(round.wrongs) == wrongs:
        shutil.rmtree(folder)
    return loss


def _check_sealed(round: Round, folder: Path, content: Mapping[str, bytes], when: str) -> None:
    """Nothing in the store can be read without the key, before it is opened again and after; its salt is no accident of the cut."""
    held = [data for name, data in content.items() if name.startswith(STORE)]
    round.check(not any(PLAIN in data or SECRET.encode() in data for data in held), "not sealed", f"{when}: words in the clear")
    head = (folder / STORE).read_bytes()[:SALT_BYTES]
    round.check(any(head) and head != PLAIN, "not sealed", f"{when}: the file begins with {head!r}")
    round.met("an encrypted store was opened after a cut")


def _barriers(recording: Recording) -> list[int]:
    """After how many events names were made and files synced while the store was being made."""
    first = next(number for number, event in enumerate(recording.events) if isinstance(event, Ack))
    return [number for number, event in enumerate(recording.events[:first], 1) if isinstance(event, Name | Sync)]


def _first_page(recording: Recording) -> int:
    """After how many events the file's first page, with the salt of an encrypted one, is written and not synced."""
    store = next(event.file for event in recording.events if isinstance(event, Name) and event.name == STORE)
    return next(number for number, event in enumerate(recording.events) if isinstance(event, Sync) and event.file == store)


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
            found[session] = "\n".join(one.content for one in ana.conversation.transcripts.read(session))
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
        self.eve = {one.session for one in (*eve.messages(1_000), *eve.conversation.transcripts.list())}
        self.statements = {
            one.content for memory in ana.memories.list() for one in ana.memories.history(memory.memory.record_key)
        }
        self.revisions = {key: ana.state.find(key).revision for key in ("goal", "mood")}
        self.entries = {entry.id for entry in ana.series("runs").entries()} if ana.series.list() else set()
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
    tried_by="every write, truncation, name and sync of the store and its files is recorded below the C library; at random "
    "points the power is cut: of what was not synced any part stays, in any order, torn between sectors; the rest is opened, searched and verified",
    run=_run,
    evidence=(
        "power cut while writes were not synced",
        "unsynced writes lost",
        "a write torn between sectors",
        "unsynced names lost or brought back",
        "the faster mode lost acknowledged writes",
        "an encrypted store was opened after a cut",
    ),
    figure="{wrong} acknowledged writes lost or stores unsound over {cuts} cuts, {cuts during set-up} during set-up, {cuts of the faster mode} of the faster mode, "
    "{cuts of an encrypted store} of an encrypted store and {cuts during set-up of an encrypted store} during its set-up",
)
