"""One simulated world: an engine between faulty ports, its users, and the loop of operations that they interleave.

Everything is drawn from the seed. The same seed gives the same trace, on SQLite as in memory: a difference is a defect, too.
"""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import perdure
from perdure.compose.store import open_store
from perdure.domain.conversation.digests import Layers
from perdure.domain.jobs import Claim
from perdure.ports.tables.rows import TABLES
from perdure.testing import StoppedClock
from proof.simulated.expected import WORD, Expected, Known, Violated, must
from proof.simulated.ports import PORTS, FaultyStore, Killed, ScriptedEmbedder, ScriptedModel, Source, Weather

T = TypeVar("T")
USERS = {"ana": "qtokenana", "Ana": "qtokenbig", "ana ": "qtokenspc", "ana%": "qtokenpct", "default": "qtokendef"}
"""Names that a careless comparison takes for one another, and the mark in all that each of them says."""
AGENTS = ("coach", "Coach")
CHANNELS = ("web", "default")
LAYERS = Layers(
    history_messages_max=10, history_messages_keep=4, fold_messages_min=6, flush_messages_min=2, rolling_turns=2, spine_turns=4
)
DRAIN_ROUNDS = 60
TRIES = 12
LEASE_S = 60.0


class World:
    """What `proof.simulated.calls` acts on."""

    def __init__(self, seed: int, backend: str, folder: Path) -> None:
        self.seed = seed
        self.backend = backend
        self.folder = folder
        self.chance = random.Random(f"{seed}/calls")
        self.weather = Weather()
        self.clock = StoppedClock()
        self.expected = Expected(dict(USERS))
        self.counts: Counter[str] = Counter()
        self.trace: list[str] = []
        self._digest = hashlib.sha256()
        self._number = 0
        self._working = 0
        self._files = folder / "files"
        self._files.mkdir()
        self.model = ScriptedModel(self.weather, random.Random(f"{seed}/model"), self._shown, self._meanwhile)
        self.embedder = ScriptedEmbedder(self.weather, random.Random(f"{seed}/embedder"), self._meanwhile)
        self.sources = {user: Source(self.weather, random.Random(f"{seed}/source"), token) for user, token in USERS.items()}
        self._other = random.Random(f"{seed}/other")
        url = "memory:" if backend == "memory" else f"sqlite:///{folder / 'store.db'}"
        self.settings = perdure.Settings(
            url=url, durability="normal", files_dir=str(self._files), profile="complete", layers=LAYERS
        )
        self.store = FaultyStore(open_store(self.settings), self.weather, random.Random(f"{seed}/store"))
        self.engine = self._new_engine()

    def _new_engine(self) -> perdure.Engine:
        return perdure.Engine(self.store, self.clock, self.settings, models={"model": self.model, "embedder": self.embedder})

    def close(self) -> None:
        self.engine.close()

    # -- what the calls use

    def text(self, user: str, about: str = "says") -> str:
        """A text that nobody has said before, with the mark of its user."""
        self._number += 1
        word = f"w{self._number:06d}x"
        self.known(user).words.add(word)
        return f"{self.expected.tokens[user]} {about} {word}"

    def id(self) -> str:
        self._number += 1
        return f"id{self._number}"

    def known(self, user: str) -> Known:
        return self.expected.of(user)

    def told(self, call: str, user: str, result: object) -> None:
        """Note what a call answered, and check that the user may see it."""
        self.expected.check_seen(user, repr(result))
        self.note(f"{call} {user!r}")

    def note(self, line: str) -> None:
        self.trace.append(line)
        self._digest.update(line.encode("utf-8", "backslashreplace") + b"\n")

    @property
    def hash(self) -> str:
        return self._digest.hexdigest()[:16]

    @contextmanager
    def calm(self) -> Iterator[None]:
        """Nothing fails inside."""
        self.weather.held += 1
        try:
            with self._files_there():
                yield
        finally:
            self.weather.held -= 1

    def tried(self, call: Callable[[], T], *, also: str = "") -> tuple[bool, T | None]:
        """Call until it is acknowledged, or give up: then nobody knows whether it was carried out.

        Only a store or files that fail may refuse a call, and the port `also`.
        """
        for number in range(TRIES):
            try:
                return True, call()
            except perdure.Unavailable as error:
                self._refused(error, also)
                self.counts["refused"] += 1
                self.clock.move(seconds=1)
                if number and self.chance.random() < 0.3:
                    self.counts["given up"] += 1
                    return False, None
        return True, self.surely(call)

    def surely(self, call: Callable[[], T]) -> T:
        """Call in calm weather, where nothing may be refused."""
        with self.calm():
            try:
                return call()
            except perdure.Unavailable as error:
                raise Violated("nothing is refused while nothing fails", error) from error

    def _refused(self, error: perdure.Unavailable, also: str = "") -> None:
        if not any(self.weather.at(port) for port in ("store", "files", also)):
            raise Violated("a model or a source that fails refuses no call", error) from error

    # -- faults

    def change_weather(self) -> None:
        """Other ports fail from now on, or none."""
        was = self.weather.failing
        now = {port for port in PORTS if self.chance.random() < 0.5} if self.chance.random() < 0.8 else set()
        self._set_files(broken="files" in now)
        self.weather.failing = now
        self.counts["weathers"] += was != now
        self.note(f"weather {','.join(sorted(now))}")

    def _set_files(self, *, broken: bool) -> None:
        """The folder of files is a file: whatever is written there fails as a real disk makes it fail."""
        aside = self.folder / "aside"
        if broken and not aside.exists():
            self._files.rename(aside)
            self._files.write_text("no folder")
            self.counts["files away"] += 1
        elif not broken and aside.exists():
            self._files.unlink()
            aside.rename(self._files)

    @contextmanager
    def _files_there(self) -> Iterator[None]:
        broken = "files" in self.weather.failing and self.weather.held == 1
        if broken:
            self._set_files(broken=False)
        try:
            yield
        finally:
            if broken:
                self._set_files(broken=True)

    def _shown(self, text: str) -> None:
        seen = [user for user, token in USERS.items() if token in text]
        if len(seen) > 1:
            raise Violated("a model is shown one user's words at a time", seen)

    def _meanwhile(self) -> None:
        """While a job asks a model, its lease may end and another worker take it: what it then writes must not count."""
        if self._working == 1 and not self.weather.held and self.weather.failing and self._other.random() < 0.06:
            self._working += 1
            self.clock.move(seconds=LEASE_S + 1)
            with suppress(perdure.Unavailable, Killed):
                self._new_engine().process(1.0)
            self.counts["leases taken over"] += 1
            self._working -= 1

    # -- workers

    def process(self) -> None:
        """A worker's turn; it may be killed at any write, and leave its job to its lease."""
        self._working += 1
        self.store.mortal = True
        try:
            report = self.engine.process(5.0)
            self.note(f"process {report.ran} {report.failed} {report.parked} {report.lost}")
        except perdure.Unavailable as error:
            self._refused(error)
            self.note("process refused")
        except Killed:
            self.counts["workers killed"] += 1
            self.note("process killed")
        finally:
            self.store.mortal = False
            self._working -= 1

    def abandon_jobs(self) -> None:
        """A worker takes jobs and is never heard of again."""
        kinds = tuple(sorted({job.kind for user in USERS for job in self.surely(self.engine.memory(user).admin.jobs)}))
        claim = Claim("gone", kinds, self.clock.now(), LEASE_S)
        if kinds:
            with suppress(perdure.Unavailable):
                self.note(f"abandoned {len(self.store.claim(claim))}")

    def crash(self) -> None:
        """The process ends without a word, and another one goes on with what is stored."""
        if self.backend != "memory":
            self.engine.close()
            self.store._inner = open_store(self.settings)
        self.engine = self._new_engine()
        self.counts["restarts"] += 1
        self.note("restart")

    def drain(self) -> None:
        """All faults are over: every job that was caused is done, however often it had failed."""
        self.change_to_calm()
        for _ in range(DRAIN_ROUNDS):
            for user in USERS:
                self.engine.memory(user).admin.retry_jobs()
            self.clock.move(hours=1)
            report = self.engine.process(60.0)
            queue = self.store.queue(self.clock.now())
            if not (report.ran or report.failed) or (queue.late_s <= 0 and not queue.failing and not queue.running):
                break
        queue = self.store.queue(self.clock.now())
        dead = [(job.kind, job.last_error) for job in self.store.list_dead(limit=5)]
        must(not dead and not queue.failing and not queue.running, "after the faults all work is done", f"{queue} {dead}")

    def change_to_calm(self) -> None:
        self.weather.failing = set()
        self._set_files(broken=False)

    # -- the end

    def check_rows(self) -> None:
        """Every stored row: whose it is, and that nothing of it is forgotten."""
        with self.store.snapshot() as snapshot:
            for table in TABLES:
                for row in snapshot.rows(table):
                    text = repr(row)
                    for user, token in USERS.items():
                        must(token not in text or row[1] == user, "each row is of one user", f"{table}: {text[:300]}")
                    back = self.expected.forgotten.intersection(WORD.findall(text))
                    must(not back, "forgotten leaves no row", f"{table}: {sorted(back)[:5]}: {text[:400]}")

    def check_files(self) -> None:
        for path in sorted(self._files.rglob("*")):
            if path.is_file():
                text = path.read_text(errors="replace")
                back = self.expected.forgotten.intersection(WORD.findall(text))
                must(not back, "forgotten leaves no file", f"{path.relative_to(self._files)}: {sorted(back)[:5]}")
                of = [user for user, token in USERS.items() if token in text]
                must(len(of) <= 1, "each file is of one user", f"{path.relative_to(self._files)}: {of}")

    def memory(self, user: str, place: tuple[str, str]) -> perdure.Memory:
        return self.engine.memory(user, agent=place[0], channel=place[1])

    def someone(self) -> tuple[str, tuple[str, str], Any]:
        user = self.chance.choice([*USERS])
        place = (self.chance.choice(AGENTS), self.chance.choice(CHANNELS))
        return user, place, self.memory(user, place)
