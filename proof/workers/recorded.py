"""A process that does everything that stores, step by step, while the disk below it is recorded; and how its store is opened."""

from __future__ import annotations

import json
import random
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import perdure
from perdure.documents import ContextCompactor, ContextManager, HistoryEntry
from perdure.settings import Settings
from proof.recorded_disk import acknowledge

FASTER, ENCRYPTED = "normal", "encrypted"
"""Ways to keep a store, beside the default one."""
KEY = "a key of the proof"
BIG = 40_000
"""Characters of a large message: the log must reach the size at which SQLite copies it into the database."""
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

    def line(self) -> bytes:
        return json.dumps([self.kind, self.what, self.at]).encode()

    @classmethod
    def read(cls, line: bytes) -> Promised:
        kind, what, at = json.loads(line)
        return cls(kind, tuple(what), at)


@dataclass(frozen=True, slots=True)
class Assignment:
    """What is to be done, and where."""

    root: str
    mode: str
    plan: str
    """Seeds the chance that decides what is done in which order."""
    steps: int

    def line(self) -> str:
        return json.dumps(asdict(self))


def settings(folder: Path, mode: str) -> Settings:
    return Settings(
        url=f"sqlite:///{folder / 'store.db'}",
        durability="normal" if mode == FASTER else "full",
        encryption_key=KEY if mode == ENCRYPTED else "",
        files_dir=str(folder / "files"),
        transcript_messages_min=0,
        embedder="none",
    )


class Work:
    """One seeded run of everything that stores, acknowledged step by step."""

    def __init__(self, root: Path, chance: random.Random, mode: str) -> None:
        self.root, self.chance, self.mode = root, chance, mode
        self.engine = perdure.open(settings=settings(root, mode))
        self.ana = self.engine.memory("ana")
        self.documents = ContextManager(root / "contexts" / "deep")
        self.compactor = ContextCompactor(max_history=4)
        self.saved = 0
        self.count = 0
        self.open_messages: list[str] = []

    def ack(self, kind: str, *what: object) -> None:
        acknowledge(Promised(kind, what).line())

    def run(self, steps: int) -> None:
        kinds: list[tuple[Callable[[], None], int]] = [
            (self.append, 8),
            (self.append_many, 2),
            (self.remember, 3),
            (self.state, 3),
            (self.series, 3),
            (self.todo, 2),
            (self.lesson, 3),
            (self.document, 4),
            (self.process, 2),
            (self.together, 1),
            (self.forget, 1),
            (self.backup, 1),
            (self.forget_user, 1),
            (self.delete_session, 1),
            (self.delete_document, 1),
            (self.reopen, 1),
            (self.purge, 1),
        ]
        # Each kind at least once, whatever chance says.
        plan = [call for call, _ in kinds] + self.chance.choices(*zip(*kinds, strict=True), k=max(0, steps - len(kinds)))
        self.chance.shuffle(plan)
        for call in plan:
            call()
        if self.mode == FASTER:
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
        self.engine.backup(self.root / name)
        self.ack("backup", name)
        self.ana.export(self.root / f"{name}.jsonl")
        self.ack("export", f"{name}.jsonl")

    def reopen(self) -> None:
        """Closing copies the log into the database and removes it."""
        self.engine.close()
        self.engine = perdure.open(settings=settings(self.root, self.mode))
        self.ana = self.engine.memory("ana")

    def purge(self) -> None:
        self.engine.purge()


if __name__ == "__main__":
    asked = Assignment(**json.loads(sys.argv[1]))
    Work(Path(asked.root), random.Random(asked.plan), asked.mode).run(asked.steps)
