"""Which records an answer is about, by kind and id: what the access log says of it. Only ids; never what the records say.

Entries of series have ids that may be made of their own fields, so these are counted and not named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

from perdure.domain.accesses import NAMES_MAX, Access, Touched
from perdure.domain.agents import Agent, ChannelAgent
from perdure.domain.api_keys import ApiKey, NewApiKey
from perdure.domain.context import Block, Context
from perdure.domain.digests import Digest
from perdure.domain.instructions import Instruction
from perdure.domain.jobs import Job
from perdure.domain.journal import Operation
from perdure.domain.lessons import Heard, Lesson
from perdure.domain.memories import MemoryRecord, Statement
from perdure.domain.messages import Message, Session
from perdure.domain.oversight import Decision, Injection, Kept
from perdure.domain.portable import ExportReport, ImportReport
from perdure.domain.recall import Hit, Recall
from perdure.domain.reports import BackupReport
from perdure.domain.series import Entry, MergeResult, PastEntry, Series, SeriesAnswer
from perdure.domain.state import KeyInfo, Loaded, Revision
from perdure.domain.things import AgentTask, Entity, Link, Rejection, Suggestion, Todo
from perdure.engine.committing import Outcome
from perdure.services.auditing import AuditReport
from perdure.services.curating import Curation
from perdure.services.extracting import Learned
from perdure.services.forgetting import Forgotten
from perdure.services.knowledge import Recalled
from perdure.services.series import Cleanup
from perdure.services.sessions import SessionLine
from perdure.services.transcripts import Transcript


class Mention(NamedTuple):
    """One record that may be named, or a number of records that may not."""

    kind: str
    name: str | None = None
    number: int = 1


def touched(*answers: object) -> tuple[Touched, ...]:
    """What these values are about, by kind, in the order in which the kinds first come; at most `NAMES_MAX` are named."""
    counts: dict[str, int] = {}
    names: dict[str, dict[str, None]] = {}
    left = NAMES_MAX
    for kind, name, number in chain.from_iterable(map(_records, answers)):
        if number == 0 or (name is not None and name in names.get(kind, ())):
            continue
        counts[kind] = counts.get(kind, 0) + number
        if name is not None and left:
            names.setdefault(kind, {})[name] = None
            left -= 1
    return tuple(Touched(kind, count, tuple(names.get(kind, ()))) for kind, count in counts.items())


def _records(answer: object) -> Iterator[Mention]:
    if isinstance(answer, Mention):
        yield answer
    elif isinstance(answer, list | tuple):
        yield from _each(answer)
    elif (known := KNOWN.get(type(answer))) is not None:
        yield from known(answer)


def _each(values: Iterable[object]) -> Iterator[Mention]:
    for one in values:
        yield from _records(one)


def _id(kind: str) -> Callable[[Any], Iterator[Mention]]:
    return lambda one: iter((Mention(kind, one.id),))


def _record(one: Any) -> Iterator[Mention]:
    yield Mention(one.kind, one.record_key)


def _counted(kind: str, name: str) -> Callable[[Any], Iterator[Mention]]:
    return lambda one: iter((Mention(kind, number=getattr(one, name)),))


def _by_table(counts: Mapping[str, int]) -> Iterator[Mention]:
    return (Mention(table, number=count) for table, count in counts.items())


def _found(kind: str, name: str) -> Mention:
    # What is found of a memory is one of its statements.
    return Mention("statement" if kind == "memory" else kind, name)


def _hit(hit: Hit) -> Iterator[Mention]:
    yield _found(hit.kind, hit.id)
    yield from (Mention("message", one.id) for one in hit.neighbours)


def _block(block: Block) -> Iterator[Mention]:
    yield Mention("block", block.kind)
    yield from (Mention("source", one) for one in block.sources)


def _injection(given: Injection) -> Iterator[Mention]:
    yield Mention("decision", given.id)
    yield from (_found(one.kind, one.id) for one in given.choices if one.included)


def _kept(kept: Kept) -> Iterator[Mention]:
    yield Mention("decision", kept.id)
    if kept.saved and kept.series is not None:
        yield Mention("series", kept.series.name)
    elif kept.saved and kept.key is not None:
        yield Mention("state", kept.key)


def _outcome(outcome: Outcome) -> Iterator[Mention]:
    if outcome.statement is not None:
        yield Mention("memory", outcome.statement.memory)
        yield from _each((outcome.statement, *outcome.closed))


STRUCK = {
    "messages": "message", "operations": "operation", "state_revisions": "state", "series_entries": "entry",
    "decisions": "decision",
}  # fmt: skip
"""What a row of a table is called, where the report of forgetting names the table."""


def _forgotten(report: Forgotten) -> Iterator[Mention]:
    yield from _by_table(report.removed)
    yield from (Mention(STRUCK.get(table, table), number=count) for table, count in report.redacted.items())
    yield Mention("lesson", number=report.lessons)
    yield Mention("transcript", number=report.transcripts)


def _digest(digest: Digest) -> Iterator[Mention]:
    yield Mention("digest", f"{digest.kind} {digest.session_number}/{digest.version}")


KNOWN: Mapping[type, Callable[[Any], Iterator[Mention]]] = {
    Access: lambda _: iter((Mention("access"),)),
    Agent: _id("agent"),
    AgentTask: _record,
    ApiKey: _id("key"),
    AuditReport: _counted("memory", "checked"),
    BackupReport: lambda report: _by_table(report.rows),
    Block: _block,
    ChannelAgent: lambda one: iter((Mention("agent", one.agent),)),
    Cleanup: _counted("entry", "removed"),
    Context: lambda context: _each((*context.messages, *context.blocks)),
    Curation: lambda run: iter((Mention("memory", number=run.memories),)),
    Decision: _id("decision"),
    Digest: _digest,
    Entity: _record,
    Entry: lambda _: iter((Mention("entry"),)),
    ExportReport: lambda report: _by_table(report.rows),
    Forgotten: _forgotten,
    Heard: lambda heard: _each(heard.appended),
    Hit: _hit,
    ImportReport: lambda report: _by_table(report.rows),
    Injection: _injection,
    Instruction: _record,
    Job: lambda _: iter((Mention("job"),)),
    Kept: _kept,
    KeyInfo: lambda one: iter((Mention("state", one.key),)),
    Learned: lambda learned: _each(learned.outcomes),
    Lesson: _record,
    Link: lambda link: iter((Mention("entity", link.one), Mention("entity", link.other))),
    Loaded: lambda one: iter((Mention("state", one.key),) if one.found else ()),
    MemoryRecord: _record,
    MergeResult: lambda merged: iter((Mention("entry", number=merged.added + merged.updated),)),
    Message: _id("message"),
    NewApiKey: lambda made: iter((Mention("key", made.key.id),)),
    Operation: lambda operation: iter((Mention("operation", str(operation.seq)),)),
    Outcome: _outcome,
    PastEntry: lambda _: iter((Mention("entry"),)),
    Recall: lambda recall: _each(recall.hits),
    Recalled: lambda recalled: _record(recalled.memory),
    Rejection: _record,
    Revision: lambda one: iter((Mention("state", one.key),)),
    Series: lambda one: iter((Mention("series", one.name),)),
    SeriesAnswer: lambda answer: iter((Mention("entry", number=len(answer.entries)),)),
    Session: _id("session"),
    SessionLine: lambda line: iter((Mention("session", line.session.id),)),
    Statement: _record,
    Suggestion: _record,
    Todo: _record,
    Transcript: lambda one: iter((Mention("transcript", one.session),)),
}
"""How each kind of answer is told. Of what is not listed here, the call's name says all there is to say."""
