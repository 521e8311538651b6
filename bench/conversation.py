"""What it costs to keep a conversation short: context documents, compaction, and the context of a request.

Documents stand beside plain `json` with a sync and a rename; compaction beside the same rules on a list; the context of a
request beside raw SQLite that reads the same rows. All take turns in rounds, so that noise hits all alike; intervals are
bootstrapped over the rounds. What they answer is compared: if it differs, the run fails.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import gc
import itertools
import json
import os
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import machine
import perdure
from perdure.adapters.files.atomic import sync_folder
from perdure.adapters.sqlite.connections import connect
from perdure.documents import ContextCompactor, ContextData, ContextManager, HistoryEntry, render_document
from perdure.engine.conversation.jobs import TALLY
from perdure.ports.tables.index import INDEX_JOB
from series import Line

# Messages of the sessions that a context is assembled from, messages to compact at once, rounds.
WHOLE, QUICK = ((1_000, 10_000, 100_000), (51, 10_000), 12), ((200, 1_000, 5_000), (51, 500), 3)
DOCUMENT_BYTES, CALLS, COMPACTIONS, FILL, TAIL = 100_000, 20, 5, 5_000, 51
LOAD, SAVE, BOTH, COMPACT, CONTEXT = "load", "save", "load + save", "compact", "context of a request"
GOAL, UNFOLDED = "context for a goal", "first context, unfolded"
TASKS = (LOAD, SAVE, BOTH, COMPACT, CONTEXT, GOAL, UNFOLDED)
UNFOLDED_TIMES = 3
AIMS_MS = {CONTEXT: 0.7, GOAL: 8, UNFOLDED: 500}
FOLDER, STORE, PLAIN, READABLE, LIST, RAW = "folder", "store", "plain json", "json, indented", "plain list", "raw SQLite"
COMPACTOR, DURABLE = "ContextCompactor", "json, folder synced"
ID, START = "user1:agent1:123", 1_767_607_200
EXPLAINED = """load, save: a context document; size in bytes. folder, store: ContextManager. plain json: `loads`, and `dumps`
into a temporary file, fsync, rename. folder synced: and a sync of the directory, without which a crash may undo a save; our
folder makes it, checks the revision and keeps copies. indented: the same, and as people read it. compact: size in messages.
store: conversation.compact() with the offline summariser, its transaction and sync included; ContextCompactor and plain list:
lines of a summary, in memory. context of a request: ana.context() in a session of that many messages that was compacted;
raw: its fold and its last messages, by index, with nothing around them. context for a goal: ana.context(goal), another one
each time. unfolded: the first ana.context() in a session that nobody has compacted; one step is folded, the rest is a job's."""

Say = Callable[[str], None]
Entry = dict[str, Any]


def entries(texts: Sequence[str], count: int) -> list[Entry]:
    roles = itertools.cycle(("user", "assistant"))
    said = zip(itertools.cycle(texts), roles, range(count), strict=False)
    return [{"timestamp": START + number, "role": role, "content": text, "token_count": 30} for text, role, number in said]


def large_document(texts: Sequence[str]) -> ContextData:
    """Fifty entries, a summary, facts and a state of about 100 KB together, most of it in the entries."""
    draw = random.Random(1)
    context = ContextData(ID, {"last_workspace": "/home/ana", "preferences": {"style": "short"}, "round": 0})
    for entry in entries(texts, 50):
        context.recent_history.append(HistoryEntry(**entry | {"content": "\n".join(draw.sample(texts, 12))}))
    context.long_term_summary = "Previous conversation summary:\n" + "\n".join(f"- user: {text}" for text in texts[:40])
    while len(render_document(context)) < DOCUMENT_BYTES:
        context.facts.append(texts[len(context.facts)])
    return context


# -- documents


class Managed:
    """A `ContextManager`, with the context it saved last."""

    def __init__(self, manager: ContextManager, document: ContextData) -> None:
        self.manager, self.context = manager, copy.deepcopy(document)
        manager.save(self.context)

    def load(self, _number: int) -> Any:
        self.context = self.manager.load(ID)
        return json.loads(render_document(self.context))

    def timed_load(self, _number: int) -> None:
        self.context = self.manager.load(ID)

    def save(self, number: int) -> None:
        self.context.system_state["round"] = number
        self.manager.save(self.context)

    def both(self, number: int) -> None:
        self.timed_load(number)
        self.save(number)


class Plain:
    """A file, read and replaced as a careful program does it without a library."""

    def __init__(self, path: Path, document: ContextData, *, indent: int | None = None, sync_folder: bool = False) -> None:
        self.path, self.document, self.sync_folder = path, json.loads(render_document(document)), sync_folder
        self.dumps = partial(json.dumps, ensure_ascii=False, indent=indent)
        self.save(0)

    def load(self, _number: int) -> Any:
        self.document = json.loads(self.path.read_bytes())
        return self.document

    timed_load = load

    def save(self, number: int) -> None:
        self.document["system_state"]["round"] = number
        temp = self.path.with_suffix(".tmp")
        with temp.open("wb") as file:
            file.write(self.dumps(self.document).encode())
            file.flush()
            os.fsync(file.fileno())
        temp.replace(self.path)
        if self.sync_folder:
            sync_folder(self.path.parent)

    def both(self, number: int) -> None:
        self.load(number)
        self.save(number)


def document_lines(directory: Path, engine: perdure.Engine, texts: Sequence[str], say: Say) -> list[Line]:
    document = large_document(texts)
    size = len(render_document(document))
    say(f"document: {size:,} bytes, {len(document.recent_history)} entries, {len(document.facts)} facts")
    kept: dict[str, Any] = {
        FOLDER: Managed(ContextManager(directory / "context"), document),
        STORE: Managed(ContextManager(storage="store", engine=engine), document),
        PLAIN: Plain(directory / "plain.json", document),
        DURABLE: Plain(directory / "durable.json", document, sync_folder=True),
        READABLE: Plain(directory / "readable.json", document, indent=2, sync_folder=True),
    }
    if any(one.load(0) != kept[PLAIN].load(0) for one in kept.values()):
        raise SystemExit("FAILED: not everybody loads the document that was saved")
    lines = []
    for who, one in kept.items():
        calls = {LOAD: one.timed_load, SAVE: one.save, BOTH: one.both}
        lines += [Line(task, who, size, call, CALLS) for task, call in calls.items()]
    return lines


# -- compaction


def seed_compact(context: dict[str, Any]) -> None:
    """The seed's rules, word for word: more than 50 leave 30; more than 100,000 tokens lose their older half."""
    history: list[Entry] = context["recent_history"]

    def summarise(count: int) -> None:
        told = "\n".join(f"- {one['role']}: {one['content']}" for one in history[:count])
        before = context["long_term_summary"] or "Previous conversation summary:"
        context["long_term_summary"] = f"{before}\n{told}"
        del history[:count]

    if len(history) > 50:
        summarise(len(history) - 30)
    if sum(one["token_count"] or 0 for one in history) > 100_000:
        summarise(len(history) // 2)
    context["facts"] = sorted(set(context["facts"]))


class Compactions:
    """Fresh conversations of one size, compacted by each contender once."""

    def __init__(self, engine: perdure.Engine, texts: Sequence[str], size: int) -> None:
        self.engine, self.size, self.entries = engine, size, entries(texts, size)
        self.made = itertools.count()
        self.lines = [Line(COMPACT, who, size, call, COMPACTIONS) for who, call in self.calls().items()]

    def calls(self) -> dict[str, Callable[[Any], Any]]:
        return {STORE: lambda ana: ana.conversation.compact(), COMPACTOR: ContextCompactor.compact, LIST: seed_compact}

    def prepared(self, who: str) -> Any:
        if who == STORE:
            ana = self.engine.memory(f"compacted-{self.size}-{next(self.made)}", agent="bench")
            ana.append_many([perdure.NewMessage(one["role"], one["content"], tokens=30, session="s") for one in self.entries])
            return ana
        if who == COMPACTOR:
            return ContextData(ID, recent_history=[HistoryEntry(**one) for one in self.entries])
        return {"recent_history": list(self.entries), "long_term_summary": "", "facts": []}

    def round(self, order: random.Random) -> None:
        calls = COMPACTIONS if self.size <= 1_000 else 1
        done = {}
        for line in order.sample(self.lines, len(self.lines)):
            items = [self.prepared(line.who) for _ in range(calls)]
            line.run(items)
            done[line.who] = items[-1]
        ours, plain = done[COMPACTOR], done[LIST]
        stays = [entry.content for entry in ours.recent_history]
        told = self.size > 60 or ours.long_term_summary == plain["long_term_summary"]  # beyond that, ours keeps a budget
        if stays != [one["content"] for one in plain["recent_history"]] or not told:
            raise SystemExit(f"FAILED: {COMPACTOR} and the plain list differ on {self.size} messages")
        if done[STORE].conversation.sessions()[0].working > 50:
            raise SystemExit(f"FAILED: the store did not compact {self.size} messages")


# -- the context of a request


class Sessions:
    """One session of each size, compacted, and the same rows read by plain statements."""

    FOLD = """SELECT body FROM digests WHERE space = ? AND user_id = ? AND agent = ? AND channel = ?
        AND session_number = ? AND kind = 'fold' AND undone = 0 ORDER BY version DESC LIMIT 1"""
    SESSION = """SELECT boundary_seq FROM sessions WHERE space = ? AND user_id = ? AND agent = ? AND channel = ?
        AND session_number = ?"""
    WORKING = """SELECT id, role, content, at_us, tokens, metadata FROM messages WHERE space = ? AND user_id = ? AND agent = ?
        AND channel = ? AND session_number = ? AND seq > ? ORDER BY seq"""

    def __init__(self, engine: perdure.Engine, path: Path, texts: Sequence[str], sizes: Sequence[int], say: Say) -> None:
        self.lines: list[Line] = []
        self.goals: list[Line] = []
        self.connection = connect(str(path), synchronous="FULL", patience=lambda _tries: True)
        for size in sizes:
            ana = engine.memory(f"long-{size}", agent="bench")
            started = time.perf_counter()
            said = entries(texts, size - TAIL)
            for batch in machine.batches(said, FILL):
                ana.append_many([perdure.NewMessage(one["role"], one["content"], session="s") for one in batch])
                ana.conversation.compact()
            ana.conversation.compact(force=True)
            # The end is the same for all, so that only the length of the log differs.
            ana.append_many([perdure.NewMessage("user", text, session="s") for text in texts[:TAIL]])
            ana.conversation.compact()
            read_all(engine, ana)
            asked = iter(texts * 100)
            self.goals.append(Line(GOAL, STORE, size, lambda _number, ana=ana, asked=asked: ana.context(next(asked)), CALLS))
            say(f"filled: a session of {size:,} messages, compacted, in {time.perf_counter() - started:.1f} s")
            self.lines += [
                Line(CONTEXT, STORE, size, lambda _number, ana=ana: ana.context(), CALLS),
                Line(CONTEXT, RAW, size, partial(self.read, f"long-{size}"), CALLS),
            ]

    def read(self, user: str, _number: int) -> Any:
        place = ("default", user, "bench", "default", 1)
        [(boundary,)] = self.connection.execute(self.SESSION, place).fetchall()
        fold = self.connection.execute(self.FOLD, place).fetchall()
        return fold, self.connection.execute(self.WORKING, (*place, boundary)).fetchall()

    def round(self, order: random.Random) -> None:
        for line in order.sample(self.goals, len(self.goals)):
            line.run(range(CALLS))
        told: dict[int, dict[str, Any]] = {}
        for line in order.sample(self.lines, len(self.lines)):
            told.setdefault(line.size, {})[line.who] = line.run(range(CALLS))[-1]
        for size, answers in told.items():
            fold, rows = answers[RAW]
            ours = answers[STORE]
            same = [message.content for message in ours.messages] == [row[2] for row in rows]
            if not same or json.loads(fold[0][0])["text"] not in ours.blocks[-1].text:
                raise SystemExit(f"FAILED: the context of {size:,} messages is not what the rows say")


def read_all(engine: perdure.Engine, ana: perdure.Memory) -> None:
    """Have all messages counted and indexed, and nothing else done."""
    worker = engine.worker()
    handlers = {kind: worker.handlers[kind] for kind in (TALLY, INDEX_JOB)}
    while replace(worker, handlers=handlers, owner=ana.scope.owner).process(600).ran:
        pass


def first_contexts(engine: perdure.Engine, texts: Sequence[str], size: int) -> Line:
    """Fresh sessions that nobody has compacted, and the first context of each."""
    line = Line(UNFOLDED, STORE, size, lambda ana: ana.context(), 1)
    for number in range(UNFOLDED_TIMES):
        ana = engine.memory(f"unfolded-{size}-{number}", agent="bench")
        for batch in machine.batches(entries(texts, size), FILL):
            ana.append_many([perdure.NewMessage(one["role"], one["content"], session="s") for one in batch])
        read_all(engine, ana)
        line.run([ana])
    return line


def measure(directory: Path, options: argparse.Namespace, say: Say) -> list[Line]:
    sizes, compacted, rounds = QUICK if options.quick else WHOLE
    rounds = options.rounds or rounds
    texts = machine.chat_texts(2_000, options.seed)
    path = directory / "perdure.db"
    # Settings made here, so that neither the environment nor a file changes what is measured.
    settings = perdure.Settings(url=f"sqlite:///{quote(str(path))}", profile="task_agent", catch_up_ms=0)
    with contextlib.closing(perdure.open(settings=settings)) as engine:
        say(f"durability: {engine.doctor().store.durability}; profile {settings.profile}, the offline summariser")
        documents = document_lines(directory, engine, texts, say)
        compactions = [Compactions(engine, texts, size) for size in compacted]
        sessions = Sessions(engine, path, texts, sizes, say)
        lines = [*documents, *(line for one in compactions for line in one.lines), *sessions.lines, *sessions.goals]
        gc.freeze()
        started = time.monotonic()
        for number in range(1 + rounds):
            order = random.Random(number)
            for line in order.sample(documents, len(documents)):
                line.run(range(number * CALLS, (number + 1) * CALLS))
            for one in compactions:
                one.round(order)
            sessions.round(order)
        for line in lines:
            del line.samples[0]
        say(f"{rounds} rounds, and one to warm up, in {time.monotonic() - started:.0f} s; answers were compared in each")
        sessions.connection.close()
        lines.append(first_contexts(engine, texts, sizes[-1]))
    return lines


def comparisons(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """Ratios of times, or milliseconds, each with its aim."""
    by = {(line.task, line.who, line.size): line for line in lines}
    size = lines[0].size
    rows = []
    for task in (LOAD, SAVE, BOTH):
        figure = by[task, FOLDER, size].over(by[task, PLAIN, size])
        rows.append(machine.compared(f"{task}: folder / plain json", figure, aim=1.3 if task == BOTH else None, at_most=True))
    pairs = ((SAVE, FOLDER, DURABLE), (BOTH, FOLDER, DURABLE), (BOTH, FOLDER, READABLE))
    for task, who, other in (*pairs, (LOAD, STORE, PLAIN), (SAVE, STORE, PLAIN), (BOTH, STORE, PLAIN)):
        rows.append(machine.compared(f"{task}: {who} / {other}", by[task, who, size].over(by[task, other, size])))
    for line in (line for line in lines if line.task == COMPACT and line.who != LIST):
        took = machine.resampled(lambda rounds, line=line: line.mean_s(rounds) * 1e3, len(line.samples))
        aim = 8 if line.size <= 60 else None
        rows.append(machine.compared(f"{COMPACT} {line.size:,}, {line.who}: milliseconds", took, aim=aim, at_most=True))
        ratio = line.over(by[COMPACT, LIST, line.size])
        rows.append(machine.compared(f"{COMPACT} {line.size:,}: {line.who} / plain list", ratio))
    sizes = sorted({line.size for line in lines if line.task == CONTEXT})
    growth, limit = (by[CONTEXT, who, sizes[-1]].over(by[CONTEXT, who, sizes[0]]) for who in (STORE, RAW))
    what = f"{CONTEXT}: {sizes[-1]:,} / {sizes[0]:,} messages"
    rows.append(machine.compared(what, growth, aim=1.3, at_most=True, limit=limit))
    for size in sizes:
        figure = by[CONTEXT, STORE, size].over(by[CONTEXT, RAW, size])
        rows.append(machine.compared(f"{CONTEXT}: perdure / raw, {size:,}", figure))
    for line in (line for line in lines if line.who == STORE and line.task in AIMS_MS):
        took = machine.resampled(lambda rounds, line=line: line.mean_s(rounds) * 1e3, len(line.samples))
        rows.append(machine.compared(f"{line.task} {line.size:,}: milliseconds", took, aim=AIMS_MS[line.task], at_most=True))
    return rows


def show(times: Sequence[dict[str, Any]], figures: Sequence[dict[str, Any]]) -> None:
    machine.show_times(times, TASKS, digits=3)
    machine.show_figures(figures, limit="raw reaches")
    print(f"\n{EXPLAINED}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Context documents, compaction and contexts, beside plain Python and SQLite.")
    parser.add_argument("--rounds", type=int, help=f"how often all take their turn ({WHOLE[2]})")
    parser.add_argument("--seed", type=int, default=1, help="of the texts (1)")
    parser.add_argument("--quick", action="store_true", help="short sessions, a few rounds: shows that it runs, proves nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    parser.add_argument("--dir", type=Path, help="where to put the files: on a real disk (beside the current directory)")
    options = parser.parse_args()
    notes: list[str] = []

    def say(line: str) -> None:
        notes.append(line)
        if not options.json:
            print(line, flush=True)

    with machine.working_directory(options.dir) as directory:
        for name, value in (machine.facts(directory) | {"seed": str(options.seed)}).items():
            say(f"{name}: {value}")
        lines = measure(directory, options, say)
    report = {"notes": notes, "times": [line.row() for line in lines], "comparisons": comparisons(lines)}
    if options.json:
        print(json.dumps(report, indent=2, ensure_ascii=False))
    else:
        show(report["times"], report["comparisons"])


if __name__ == "__main__":
    main()
