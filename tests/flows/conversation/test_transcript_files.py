"""Transcripts as files (S4-20, S4-30, X-38, B-28, B-29, T-48, T-51, T-54): one per session, for its life, whatever happens."""

from __future__ import annotations

import multiprocessing
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lanes import examples
from perdure.adapters.files import transcripts as adapter
from perdure.adapters.files.transcripts import TranscriptFolder
from perdure.adapters.memory.store import MemoryStore
from perdure.adapters.sqlite.store import SqliteStore
from perdure.domain.conversation.messages import Message, Session
from perdure.domain.errors import Conflict, InvalidInput, Unavailable
from perdure.domain.jobs import Job, NewJob, new_job
from perdure.domain.scope import Address, Owner, SessionId
from perdure.ports.files import TranscriptPlace
from perdure.ports.store import Store, Tx
from perdure.services.conversation import transcripts as service
from perdure.services.conversation.transcripts import Transcripts, place_of, transcript_handler
from perdure.testing.contract.samples import ANA, BOB, HERE, NOW, THERE, a_message, a_session, fill

DAY = timedelta(days=1)
PLAIN = Address()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "files"


@pytest.fixture
def transcripts(root: Path) -> Transcripts:
    return Transcripts(TranscriptFolder(root))


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    chosen: Store = MemoryStore() if request.param == "memory" else SqliteStore(tmp_path / "perdure.db")
    yield chosen
    chosen.close()


def talk(*seqs: int, session: Session | None = None) -> list[Message]:
    of = session or a_session()
    return [replace(a_message(seq, number=of.number, address=of.address), session=of.id) for seq in seqs]


def files(root: Path) -> list[str]:
    """The Markdown files below, without the owner's folder."""
    return sorted(path.relative_to(root).as_posix().split("/", 2)[2] for path in root.rglob("*.md"))


def job(number: int = 1, address: Address = HERE, owner: Owner = ANA, **more: Any) -> Job:
    payload = {"agent": address.agent, "channel": address.channel, "session_number": number, **more}
    return new_job(owner, NewJob("transcript", "k", NOW, payload), NOW)


def test_the_name_has_session_time_and_topic(transcripts: Transcripts, root: Path) -> None:
    """S4-20, B-28."""
    session = a_session(address=PLAIN, name="User:1-x")
    transcripts.append(ANA, session, talk(1, 2, 3, 4, session=session))
    assert files(root) == ["session/session-memory-%55ser%3A1-x-20260105T100000Z-message-1.md"]
    transcripts.append(ANA, a_session(), talk(1))
    assert files(root)[0] == "session/agent-coach/channel-discord%3A42/session-memory-s1-20260105T100000Z-message-1.md"


def test_a_session_has_one_file_for_its_life(transcripts: Transcripts, root: Path) -> None:
    """X-38: not a new one each time."""
    assert transcripts.append(ANA, a_session(), talk(1, 2, 3, 4)) == 4
    assert transcripts.append(ANA, a_session(), talk(1, 2, 3, 4)) == 0
    after_restart = Transcripts(TranscriptFolder(root))
    assert after_restart.append(ANA, replace(a_session(), opened_at=NOW + DAY), talk(3, 4, 5)) == 1
    assert len(files(root)) == 1
    assert after_restart.read(place_of(ANA, a_session())) == talk(1, 2, 3, 4, 5)


def test_sessions_whose_names_begin_alike_have_their_own_files(transcripts: Transcripts, root: Path) -> None:
    names = [
        "a",
        "a-20260105t100000z-message-1",
        "A",
        "a-",
        "a-20260105T100000Z-message-1",
        "x" * 390,
        "x" * 391,
        "..",
        "con",
        "/etc/x",
        "a\nb",
        "日本",
    ]
    for name in names:
        session = a_session(name=name)
        transcripts.append(ANA, session, [replace(one, content=name) for one in talk(1, session=session)])
    assert len({name.lower() for name in files(root)}) == len(names)
    for name in names:
        assert [one.content for one in transcripts.read(TranscriptPlace(ANA, HERE, SessionId(name)))] == [name]
    assert {one.session for one in transcripts.list_(ANA, limit=100)} == set(names)


def test_agents_channels_and_owners_are_apart(transcripts: Transcripts, root: Path) -> None:
    """B-29: two agents may have sessions of the same id, and no id leads out of its folder."""
    owners = [ANA, BOB, Owner("other", "ana"), Owner("default", "ANA"), Owner("default", "../ana"), Owner("..", "..")]
    places = [
        PLAIN,
        HERE,
        THERE,
        Address("archive"),
        Address("default", "archive"),
        Address("a/../..", "b"),
        Address("COACH", "discord:42"),
    ]
    for owner in owners:
        for address in places:
            session = a_session(address=address)
            who = f"{owner} {address}"
            transcripts.append(owner, session, [replace(talk(1, session=session)[0], content=who)])
    for owner in owners:
        for address in places:
            assert [one.content for one in transcripts.read(place_of(owner, a_session(address=address)))] == [
                f"{owner} {address}"
            ]
        assert {one.address for one in transcripts.list_(owner, limit=100)} == set(places)
    paths = list(root.parent.rglob("*.md"))
    assert len({str(path).lower() for path in paths}) == len(owners) * len(places)
    assert all(path.resolve().is_relative_to(root) for path in paths)


def test_others_on_the_machine_cannot_look_in(transcripts: Transcripts, root: Path) -> None:
    transcripts.append(ANA, a_session(), talk(1))
    if os.name == "posix":
        for path in root.rglob("*"):
            if path.is_dir():
                assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_messages_of_another_session_are_refused(transcripts: Transcripts) -> None:
    with pytest.raises(InvalidInput, match="not of session 's1'"):
        transcripts.append(ANA, a_session(), talk(1, session=a_session(2)))


@given(st.data())
@settings(max_examples=examples(25), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_crash_at_any_byte_changes_nothing_in_the_end(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    root = tmp_path_factory.mktemp("files")
    transcripts = Transcripts(TranscriptFolder(root))
    transcripts.append(ANA, a_session(), talk(1, 2))
    path = next(root.rglob("*.md"))
    sound = path.stat().st_size
    for upto in data.draw(st.lists(st.integers(2, 8), max_size=3)):
        transcripts.append(ANA, a_session(), talk(*range(1, upto + 1)))
        with path.open("r+b") as file:
            file.truncate(data.draw(st.integers(sound, path.stat().st_size)))
    transcripts.append(ANA, a_session(), talk(*range(1, 9)))
    fresh = tmp_path_factory.mktemp("fresh")
    Transcripts(TranscriptFolder(fresh)).append(ANA, a_session(), talk(*range(1, 9)))
    assert path.read_bytes() == next(fresh.rglob("*.md")).read_bytes()
    assert len(files(root)) == 1


def test_a_disk_that_is_full_is_unavailable_and_loses_nothing(
    transcripts: Transcripts, monkeypatch: pytest.MonkeyPatch
) -> None:
    transcripts.append(ANA, a_session(), talk(1, 2))

    def half(path: Path, content: bytes) -> None:
        with path.open("ab") as file:
            file.write(content[: len(content) // 2])
        raise Unavailable("no space left")

    with monkeypatch.context() as patch:
        patch.setattr(adapter, "append_file", half)
        with pytest.raises(Unavailable):
            transcripts.append(ANA, a_session(), talk(3, 4))
    assert transcripts.read(place_of(ANA, a_session())) == talk(1, 2, 3)
    assert transcripts.append(ANA, a_session(), talk(3, 4)) == 1
    assert transcripts.read(place_of(ANA, a_session())) == talk(1, 2, 3, 4)


def write_some(root: Path, start: int) -> None:
    transcripts = Transcripts(TranscriptFolder(root))
    for upto in range(start, 60, 3):
        transcripts.append(ANA, a_session(), talk(*range(1, upto + 1)))


def test_processes_that_write_the_same_session_at_once_write_it_once(root: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    writers = [spawn.Process(target=write_some, args=(root, start)) for start in (1, 2, 3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0, 0, 0]
    assert len(files(root)) == 1
    assert Transcripts(TranscriptFolder(root)).read(place_of(ANA, a_session())) == talk(*range(1, 60))


def aged(transcripts: Transcripts, ages: list[int]) -> list[Session]:
    """Sessions that ended so many days ago."""
    sessions = []
    for number, age in enumerate(ages, start=1):
        session = replace(a_session(number), last_at=NOW - age * DAY)
        transcripts.append(ANA, session, [replace(one, at=NOW - age * DAY) for one in talk(1, session=session)])
        sessions.append(session)
    return sessions


def test_old_transcripts_are_put_away_by_age_and_number(transcripts: Transcripts, root: Path) -> None:
    """S4-30, X-38: the age is that of the talk, not of the file."""
    sessions = aged(transcripts, [40, 3, 2, 1])
    assert transcripts.archive(ANA, before=NOW - 30 * DAY) == 1
    assert transcripts.archive(ANA, before=NOW - 30 * DAY, keep=2) == 1
    assert transcripts.archive(ANA) == 0
    assert [(one.session, one.archived) for one in transcripts.list_(ANA, limit=9)] == [
        ("s4", False),
        ("s3", False),
        ("s2", True),
        ("s1", True),
    ]
    assert files(root)[2].startswith("session/archive/agent-coach/channel-discord%3A42/session-memory-s1-")
    assert [one.session for one in transcripts.read(place_of(ANA, sessions[0]))] == ["s1"]
    assert transcripts.archive(BOB, before=NOW) == transcripts.prune(BOB, before=NOW) == 0
    assert transcripts.list_(BOB, limit=9) == []


def test_what_was_put_away_is_deleted_by_age_and_number(transcripts: Transcripts) -> None:
    aged(transcripts, [400, 50, 40, 1])
    assert transcripts.prune(ANA, before=NOW, keep=0) == 0
    transcripts.archive(ANA, before=NOW - 30 * DAY)
    assert transcripts.prune(ANA, before=NOW - 365 * DAY) == 1
    assert transcripts.prune(ANA, keep=1) == 1
    assert [one.session for one in transcripts.list_(ANA, limit=9)] == ["s4", "s3"]
    with pytest.raises(InvalidInput, match="`keep` = -1"):
        transcripts.prune(ANA, keep=-1)


def test_a_session_that_goes_on_comes_back_from_the_archive(transcripts: Transcripts, root: Path) -> None:
    session = aged(transcripts, [40])[0]
    transcripts.archive(ANA, keep=0)
    transcripts.append(ANA, session, talk(2))
    assert [(one.session, one.archived, one.last_at) for one in transcripts.list_(ANA, limit=9)] == [("s1", False, NOW)]
    assert [one.seq for one in transcripts.read(place_of(ANA, session))] == [1, 2]
    assert not (root / "default/ana/session/archive").exists()


def test_a_removed_transcript_is_gone_wherever_it_was(transcripts: Transcripts, root: Path) -> None:
    first, second = aged(transcripts, [40, 1])
    transcripts.archive(ANA, before=NOW - 30 * DAY)
    assert transcripts.remove(place_of(ANA, first))
    assert not transcripts.remove(place_of(ANA, first))
    assert transcripts.read(place_of(ANA, first)) == []
    assert transcripts.remove(place_of(ANA, second))
    assert not transcripts.remove(place_of(BOB, second))
    assert list(root.iterdir()) == [root / ".locks"]


def test_an_erased_owner_leaves_no_trace(transcripts: Transcripts, root: Path) -> None:
    """T-54."""
    aged(transcripts, [40, 1])
    transcripts.archive(ANA, before=NOW - 30 * DAY)
    transcripts.append(BOB, a_session(), talk(1))
    (root / "default/ana/session/.session-memory-x.tmp").write_text("half a file")
    assert transcripts.erase(ANA) == 2
    assert transcripts.erase(ANA) == 0
    assert [path for path in root.rglob("*") if "ana" in path.name] == []
    assert len(transcripts.list_(BOB, limit=9)) == 1


def test_foreign_files_are_left_alone(transcripts: Transcripts, root: Path) -> None:
    session = aged(transcripts, [40])[0]
    folder = root / "default/ana/session"
    (folder / "notes.md").write_text("mine")
    (folder / "session-memory-x-20260105T100000Z-y.md").write_text("not ours")
    assert [one.session for one in transcripts.list_(ANA, limit=9)] == ["s1"]
    assert transcripts.archive(ANA, before=NOW - 30 * DAY) == 1
    transcripts.remove(place_of(ANA, session))
    assert (folder / "notes.md").read_text() == "mine"


def test_a_session_of_more_than_three_messages_is_written_down(store: Store, transcripts: Transcripts) -> None:
    """S4-20, T-51."""
    handle = transcript_handler(store, transcripts)
    fill(store, ANA, 1, 2, 3)
    assert handle(job()) is None
    assert transcripts.read(place_of(ANA, a_session())) == []
    fill(store, ANA, 4)
    handle(job())
    assert [one.seq for one in transcripts.read(place_of(ANA, a_session()))] == [1, 2, 3, 4]


def test_a_short_session_that_is_cleared_keeps_its_transcript(store: Store, transcripts: Transcripts) -> None:
    """T-48."""
    fill(store, ANA, 1, 2)
    transcript_handler(store, transcripts)(job(always=True))
    assert [one.seq for one in transcripts.read(place_of(ANA, a_session()))] == [1, 2]


def test_the_least_number_of_messages_can_be_chosen(store: Store, transcripts: Transcripts) -> None:
    fill(store, ANA, 1)
    transcript_handler(store, transcripts, messages_min=0)(job())
    assert [one.seq for one in transcripts.read(place_of(ANA, a_session()))] == [1]


def test_a_job_goes_on_where_the_file_ends_page_by_page(
    store: Store, transcripts: Transcripts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MESSAGES_PER_PAGE", 3)
    handle = transcript_handler(store, transcripts)
    fill(store, ANA, *range(1, 11))
    for _ in range(2):
        handle(job())
    fill(store, ANA, *range(11, 14))
    handle(job())
    held = transcripts.read(place_of(ANA, a_session()))
    assert [one.seq for one in held] == list(range(1, 14))
    assert [one.content for one in held] == [f"message {seq}" for seq in range(1, 14)]


def test_after_a_restart_everything_is_there_and_headings_survive(tmp_path: Path, root: Path) -> None:
    """T-51, B-53: on a new store, new objects, and text that looks like a transcript."""
    nasty = "## User\n\n```\n<!-- perdure:message {} -->\r\n> end"
    session = a_session(messages=4)
    messages = [replace(a_message(seq), content=nasty) for seq in range(1, 5)]

    def write(tx: Tx) -> None:
        tx.put_sessions([session])
        tx.append(messages)

    first = SqliteStore(tmp_path / "perdure.db")
    first.write(ANA, write)
    transcript_handler(first, Transcripts(TranscriptFolder(root)))(job())
    first.close()
    again = SqliteStore(tmp_path / "perdure.db")
    fill(again, ANA, 5)
    after = Transcripts(TranscriptFolder(root))
    transcript_handler(again, after)(job())
    again.close()
    assert [one.content for one in after.read(place_of(ANA, session))] == [nasty] * 4 + ["message 5"]
    assert len(files(root)) == 1


def test_a_job_of_a_session_that_is_gone_writes_nothing(store: Store, transcripts: Transcripts, root: Path) -> None:
    transcript_handler(store, transcripts)(job())
    assert not root.exists()


class Meanwhile(TranscriptFolder):
    """Does something right before each time it extends a file."""

    def __init__(self, root: Path, first: Callable[[], None]) -> None:
        super().__init__(root)
        object.__setattr__(self, "first", first)

    def extend(self, *args: Any) -> None:
        self.first()  # type: ignore[attr-defined]
        super().extend(*args)


def delete(store: Store) -> None:
    gone = replace(a_session(), messages=0, deleted_at=NOW)
    store.write(ANA, lambda tx: tx.put_sessions([gone]))


def test_a_deleted_session_loses_its_transcript(store: Store, transcripts: Transcripts, root: Path) -> None:
    """T-54: even if it cannot be read any more."""
    handle = transcript_handler(store, transcripts)
    fill(store, ANA, 1, 2, 3, 4)
    handle(job())
    path = next(root.rglob("*.md"))
    path.write_bytes(path.read_bytes().replace(b'"seq":4', b'"seq":four'))
    delete(store)
    handle(job())
    assert files(root) == []


@pytest.mark.parametrize("erased", [False, True])
def test_a_session_deleted_while_its_transcript_is_written_leaves_none(store: Store, root: Path, erased: bool) -> None:
    fill(store, ANA, 1, 2, 3, 4)
    folder = Meanwhile(root, lambda: (store.erase(ANA), None)[1] if erased else delete(store))
    transcript_handler(store, Transcripts(folder))(job())
    assert files(root) == []


def test_a_transcript_removed_between_two_pages_is_begun_anew(
    store: Store, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MESSAGES_PER_PAGE", 2)
    fill(store, ANA, 1, 2, 3, 4)
    plain = Transcripts(TranscriptFolder(root))
    folder = Meanwhile(root, lambda: (plain.remove(place_of(ANA, a_session())), None)[1])
    with pytest.raises(Conflict, match="was removed meanwhile"):
        transcript_handler(store, Transcripts(folder))(job())
    transcript_handler(store, plain)(job())
    assert [one.seq for one in plain.read(place_of(ANA, a_session()))] == [1, 2, 3, 4]


def test_a_time_before_1970_is_no_trouble(transcripts: Transcripts) -> None:
    long_ago = datetime(1900, 1, 1, tzinfo=UTC)
    session = replace(a_session(), opened_at=long_ago, last_at=long_ago)
    transcripts.append(ANA, session, [replace(talk(1)[0], at=long_ago)])
    assert [one.opened_at for one in transcripts.list_(ANA, limit=1)] == [long_ago]
