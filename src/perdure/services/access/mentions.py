"""Which records an answer is about, by kind and id: what the access log says of it. Only ids; never what the records say.

Entries of series have ids that may be made of their own fields, so these are counted and not named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

from perdure.domain.access import NAMES_MAX, Access, ApiKey, NewApiKey, TouchedRecords
from perdure.domain.context.context import Block, Context
from perdure.domain.context.recall import Hit, Recall
from perdure.domain.conversation.agent_state import Agent, ChannelAgent
from perdure.domain.conversation.digests import Digest
from perdure.domain.conversation.messages import Message, Session
from perdure.domain.jobs import Job
from perdure.domain.knowledge.entities import AgentTask, Entity, Instruction, Link, Rejection, Suggestion, Todo
from perdure.domain.knowledge.journal import Operation
from perdure.domain.knowledge.memories import MemoryRecord, MemoryWithStatements, Statement
from perdure.domain.lessons import Lesson, ReplyReport
from perdure.domain.oversight import Decision, Injection, KeptResult
from perdure.domain.reports import BackupReport, ExportReport, ImportReport
from perdure.domain.series import Entry, MergeResult, PastEntry, Series, SeriesAnswer
from perdure.domain.state import KeyInfo, Revision, StateMatches, StateValue
from perdure.engine.knowledge.outcomes import Outcome
from perdure.services.conversation.sessions import SessionLine
from perdure.services.conversation.transcripts import Transcript
from perdure.services.forget.forget import ForgetReport
from perdure.services.knowledge.curation import AuditReport, Curation, PendingProposal
from perdure.services.knowledge.extraction import ExtractionReport
from perdure.services.knowledge.seed_form import SeedMemory
from perdure.services.series.series import Cleanup


class Mention(NamedTuple):
    """One record that may be named, or a number of records that may not."""

    kind: str
    name: str | None = None
    number: int = 1


def touched(*answers: object) -> tuple[TouchedRecords, ...]:
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
    return tuple(TouchedRecords(kind, count, tuple(names.get(kind, ()))) for kind, count in counts.items())


def _records(answer: object) -> Iterator[Mention]:
    if isinstance(answer, Mention):
        yield answer
    elif isinstance(answer, list | tuple):
        yield from _all_records(answer)
    elif (known := KNOWN.get(type(answer))) is not None:
        yield from known(answer)


def _all_records(values: Iterable[object]) -> Iterator[Mention]:
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


def _hit_mention(kind: str, name: str) -> Mention:
    # What is found of a memory is one of its statements.
    return Mention("statement" if kind == "memory" else kind, name)


def _hit(hit: Hit) -> Iterator[Mention]:
    yield _hit_mention(hit.kind, hit.id)
    yield from (Mention("message", one.id) for one in hit.neighbours)
    yield from (Mention("statement", one.id) for one in hit.current)


def _block(block: Block) -> Iterator[Mention]:
    yield Mention("block", block.kind)
    yield from (Mention("source", one) for one in block.sources)


def _injection(given: Injection) -> Iterator[Mention]:
    yield Mention("decision", given.id)
    yield from (_hit_mention(one.kind, one.id) for one in given.choices if one.included)


def _kept_result(kept: KeptResult) -> Iterator[Mention]:
    yield Mention("decision", kept.id)
    if kept.saved and kept.series is not None:
        yield Mention("series", kept.series.name)
    elif kept.saved and kept.key is not None:
        yield Mention("state", kept.key)


def _outcome(outcome: Outcome) -> Iterator[Mention]:
    if outcome.statement is not None:
        yield Mention("memory", outcome.statement.memory)
        yield from _all_records((outcome.statement, *outcome.closed))
    yield from _all_records(outcome.also)


STRUCK = {
    "messages": "message",
    "operations": "operation",
    "state_revisions": "state",
    "series_entries": "entry",
    "decisions": "decision",
}
"""What a row of a table is called, where the report of forgetting names the table."""


def _forgotten(report: ForgetReport) -> Iterator[Mention]:
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
    Context: lambda context: _all_records((*context.messages, *context.blocks)),
    Curation: lambda run: iter((Mention("memory", number=run.memories),)),
    Decision: _id("decision"),
    Digest: _digest,
    Entity: _record,
    Entry: lambda _: iter((Mention("entry"),)),
    ExportReport: lambda report: _by_table(report.rows),
    ForgetReport: _forgotten,
    ReplyReport: lambda heard: _all_records(heard.appended),
    Hit: _hit,
    ImportReport: lambda report: _by_table(report.rows),
    Injection: _injection,
    Instruction: _record,
    Job: lambda _: iter((Mention("job"),)),
    KeptResult: _kept_result,
    KeyInfo: lambda one: iter((Mention("state", one.key),)),
    ExtractionReport: lambda learned: _all_records(learned.outcomes),
    Lesson: _record,
    Link: lambda link: iter((Mention("entity", link.one), Mention("entity", link.other))),
    StateValue: lambda one: iter((Mention("state", one.key),) if one.found else ()),
    MemoryRecord: _record,
    MergeResult: lambda merged: iter((Mention("entry", number=merged.added + merged.updated),)),
    Message: _id("message"),
    NewApiKey: lambda made: iter((Mention("key", made.key.id),)),
    Operation: lambda operation: iter((Mention("operation", str(operation.seq)),)),
    Outcome: _outcome,
    PendingProposal: lambda one: _all_records((one.statement, *one.against)),
    PastEntry: lambda _: iter((Mention("entry"),)),
    Recall: lambda recall: _all_records(recall.hits),
    MemoryWithStatements: lambda recalled: _record(recalled.memory),
    SeedMemory: lambda recalled: _record(recalled.memory),
    Rejection: _record,
    Revision: lambda one: iter((Mention("state", one.key),)),
    Series: lambda one: iter((Mention("series", one.name),)),
    SeriesAnswer: lambda answer: iter((Mention("entry", number=len(answer.entries)),)),
    Session: _id("session"),
    SessionLine: lambda line: iter((Mention("session", line.session.id),)),
    StateMatches: lambda found: (Mention("state", key) for key in found.matches),
    Statement: _record,
    Suggestion: _record,
    Todo: _record,
    Transcript: lambda one: iter((Mention("transcript", one.session),)),
}
"""How each kind of answer is told. Of what is not listed here, the call's name says all there is to say."""
