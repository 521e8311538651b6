"""What is known, as lines for a terminal. What was stored is data: it is shown, never obeyed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from rich.text import Text

from perdure.domain.knowledge.entities import AgentTask, Entity, Instruction, Rejection, Suggestion, Todo
from perdure.domain.knowledge.journal import Operation, words_of
from perdure.domain.knowledge.memories import ROLE_OF_TRUST, MemoryRecord, MemoryWithStatements, Statement
from perdure.interfaces.cli.lines.conversation import INDENT, heading, local, one_line, wrapped
from perdure.services.forget.forget import ForgetReport
from perdure.services.knowledge.curation import AuditReport, Curation, PendingProposal
from perdure.services.knowledge.extraction import ExtractionReport
from perdure.services.knowledge.memories import MemoryGroup

EVIDENCE_SHOWN = 3
VERDICTS = {"mentioned": "already known, counted again", "superseded": "replaced", "past": "added as past"}
"""Verdicts in words, where the word alone does not say it."""
ITEMS_SHOWN = 5


# -- memories


def memory_entry(recalled: MemoryWithStatements, width: int) -> Iterator[Text]:
    """A memory in a list. Its key stands first, so that it can be copied."""
    yield Text.assemble((one_line(recalled.memory.record_key), "bold"), ("".join(_marks(recalled.memory)), "dim"))
    for statement in recalled.statements:
        said = "" if statement.trust == "user" else f" (by {ROLE_OF_TRUST[statement.trust]})"
        yield from wrapped(f"{statement.content}{said}", width)


def memory_group(group: MemoryGroup, _: int) -> Iterator[Text]:
    """How many memories are about the same, and what that is."""
    about = ", ".join(map(one_line, group.entities)) or "user"
    marks = f"{'  pinned' if group.pinned else ''}{'  archived' if group.status == 'ARCHIVED' else ''}"
    yield Text.assemble((f"{group.count:>6} ", "bold"), f"{about}  {group.type}, {group.fact_type}", (marks, "dim"))


def memory_whole(recalled: MemoryWithStatements, width: int) -> Iterator[Text]:
    """A memory with all that is known about it, and what it states."""
    memory = recalled.memory
    yield heading("memory", memory.record_key)
    label = "" if memory.label is None else f", {memory.label}"
    yield from wrapped(f"{memory.type}, {memory.fact_type}{label}{''.join(_marks(memory))}", width)
    if memory.entities:
        yield from wrapped(f"about {', '.join(memory.entities)}", width)
    yield Text(f"{INDENT}created {local(memory.created_at)}, changed {local(memory.updated_at)}")
    if memory.folds:
        yield from wrapped(f"folds {', '.join(memory.folds)}", width)
    if memory.folded_into is not None:
        yield from wrapped(f"folded into {memory.folded_into}", width)
    for statement in recalled.statements:
        yield from statement_entry(statement, width)


def _marks(memory: MemoryRecord) -> Iterator[str]:
    yield f"  importance {memory.importance}"
    if memory.pinned:
        yield "  pinned"
    if memory.status == "ARCHIVED":
        yield "  archived"
    if memory.visible_to is not None:
        yield f"  for {one_line(memory.visible_to)} alone"


def statement_entry(statement: Statement, width: int) -> Iterator[Text]:
    """A statement: when it was so, what it says, how that is known."""
    until = "" if statement.valid_to is None else f" to {local(statement.valid_to)}"
    state = "so since" if statement.valid_to is None else "was so from"
    yield Text.assemble(("── ", "dim"), (state, "bold"), f" {local(statement.valid_from)}{until}")
    yield from wrapped(statement.content, width, "bold")
    if statement.attribute is not None:
        yield from wrapped(f"{statement.attribute} of {statement.subject}: {statement.value}", width)
    times = "once" if statement.mentions == 1 else f"{statement.mentions} times"
    said = f"said {times}, last {local(statement.last_mentioned)}; known since {local(statement.recorded_at)}"
    yield Text(f"{INDENT}{said}", "dim")
    how = f"by {statement.source}, trusted as {statement.trust}, confidence {statement.confidence:g}"
    yield from wrapped(how, width, "dim")
    if statement.reason is not None:
        yield from wrapped(f"closed: {statement.reason}", width, "dim")
    for one in statement.evidence[-EVIDENCE_SHOWN:]:
        yield from wrapped(f"in message {one.message}, characters {one.start} to {one.end}", width, "dim")


def proposal_entry(proposal: PendingProposal, width: int) -> Iterator[Text]:
    """What is proposed against a person's word, and that word. Its id stands first, so that it can be copied."""
    made = proposal.statement
    says = {"value": "says", "end": "says it is no longer so", "correction": "says it was wrong"}[made.proposes or "value"]
    yield Text.assemble((one_line(made.id), "bold"), (f"  {one_line(made.source)} {says}, {local(made.recorded_at)}", "dim"))
    yield from wrapped(made.content, width)
    for one in proposal.against:
        yield from wrapped(f"against: {one.content}", width, "dim")


def rejection_entry(rejection: Rejection, width: int) -> Iterator[Text]:
    """A proposal that was refused, and why."""
    yield heading(local(rejection.made_at), rejection.reason)
    yield from wrapped(rejection.content, width)
    yield from wrapped(f"proposed by {rejection.by}", width, "dim")


# -- entities


def entity_entry(entity: Entity, _: int) -> Iterator[Text]:
    """An entity in a list."""
    also = f"  also {one_line(', '.join(entity.aliases))}" if entity.aliases else ""
    yield Text.assemble((one_line(entity.ref), "bold"), "  ", one_line(entity.label), (also, "dim"))


def entity_whole(entity: Entity, known: Iterable[MemoryWithStatements], width: int) -> Iterator[Text]:
    """An entity, and what is known of it."""
    yield heading("entity", entity.ref)
    yield from wrapped(f"{entity.label}, a {entity.type}; known since {local(entity.created_at)}", width)
    for title, refs in (("also written", entity.aliases), ("seen beside", entity.seen_with)):
        if refs:
            yield from wrapped(f"{title} {', '.join(refs)}", width)
    for recalled in known:
        yield from memory_entry(recalled, width)


def suggestion_entry(suggestion: Suggestion, width: int) -> Iterator[Text]:
    """Something a person should decide."""
    yield Text(one_line(suggestion.id), "bold")
    what = "may be one" if suggestion.what == "merge" else "may clash"
    yield from wrapped(f"{' and '.join(suggestion.subjects)} {what}: {suggestion.why}", width)


# -- todos and tasks


def todo_entry(todo: Todo, width: int) -> Iterator[Text]:
    """A todo in a list. Its id stands first, so that it can be copied."""
    due = "" if todo.due_at is None else f"  due {local(todo.due_at)}"
    again = "" if todo.recurrence is None else f"  every {one_line(todo.recurrence)}"
    done = f"  done {todo.completions} times" if todo.recurrence is not None and todo.completions else ""
    yield Text.assemble((one_line(todo.id), "bold"), (f"  {todo.kind_of}, {todo.state}{due}{again}{done}", "dim"))
    yield from wrapped(todo.content, width)


def task_entry(task: AgentTask, width: int) -> Iterator[Text]:
    """A task in a list."""
    state = f"  {task.state}, {task.progress:.0%}; changed {local(task.updated_at)}"
    yield Text.assemble((one_line(task.id), "bold"), (state, "dim"))
    yield from wrapped(task.description, width)


def instruction_entry(one: Instruction, width: int) -> Iterator[Text]:
    """An instruction in a list. Its id stands first, so that it can be copied."""
    over = "" if one.ended_at is None else f" {local(one.ended_at)}: {one_line(one.reason or '')}"
    state = f"  {one.state}{over}  {one.source} {local(one.created_at)}"
    yield Text.assemble((one_line(one.id), "bold"), (state, "dim"))
    yield from wrapped(one.content, width)


# -- what was done


def learned_lines(learned: ExtractionReport, width: int) -> Iterator[Text]:
    """What became of each proposal."""
    for outcome in learned.outcomes:
        words = outcome.proposal.content if outcome.statement is None else outcome.statement.content
        yield Text.assemble(
            (VERDICTS.get(outcome.verdict, outcome.verdict), "bold"),
            ("" if outcome.reason is None else f": {outcome.reason}", "red"),
        )
        yield from wrapped(words, width)
        for closed in outcome.closed if outcome.verdict == "superseded" else ():
            yield from wrapped(f"no longer: {closed.content}", width, "dim")
        if outcome.also:
            yield from learned_lines(ExtractionReport(outcome.also), width)


def counted(learned: ExtractionReport) -> str:
    """How many proposals came to which end."""
    verdicts = Counter(outcome.verdict for outcome in learned.outcomes)
    return ", ".join(f"{count} {verdict}" for verdict, count in verdicts.items()) or "nothing to learn"


def curation_lines(done: Curation, width: int) -> Iterator[Text]:
    """What a run of the curator folded and flagged."""
    for fold in done.folds:
        yield heading("fold", fold.into.record_key)
        yield from wrapped(f"{len(fold.statements)} statements of {', '.join(one.record_key for one in fold.originals)}", width)
    for clash in done.clashes:
        yield heading("clash", clash.why)
        yield from wrapped(clash.one.content, width)
        yield from wrapped(clash.other.content, width)


def operation_entry(operation: Operation, width: int) -> Iterator[Text]:
    """An operation in a list. Its number stands first: it is what undoing takes."""
    done = f"{operation.action} {operation.kind}"
    by = f"by {one_line(operation.actor)}, {local(operation.at)}"
    if " " in operation.why:  # a single word is the name of the call, which the change itself tells
        by += f": {one_line(operation.why)}"
    yield Text.assemble((f"{operation.seq}", "bold"), f"  {done}", (f"  {by}", "dim"))
    yield from wrapped(words_of(operation) or operation.key, width)


def change(operation: Operation, width: int) -> Iterator[Text]:
    """What became of one row: new, changed or gone, and in which fields."""
    before, after = (body if isinstance(body, Mapping) else None for body in (operation.before, operation.after))
    sign, style = ("+", "green") if before is None else ("-", "red") if after is None else ("~", "yellow")
    yield Text.assemble((f"{sign} {operation.kind}", style), f"  {one_line(operation.key)}", (f"  {operation.seq}", "dim"))
    if words := words_of(operation):
        yield from wrapped(words, width)
    if before is not None and after is not None:
        changed = [name for name in after if before.get(name) != after.get(name)]
        yield from wrapped(f"changed: {', '.join(changed)}", width, "dim")


def audit_lines(report: AuditReport, width: int) -> Iterator[Text]:
    """What an audit found, and how much it looked at."""
    for finding in report.findings:
        yield heading(finding.fault, finding.why)
        more = len(finding.items) - ITEMS_SHOWN
        shown = [*finding.items[:ITEMS_SHOWN], *([f"and {more} more"] if more > 0 else [])]
        yield from wrapped(", ".join(shown), width)
    faults = ", ".join(f"{count} {fault}" for fault, count in report.counts.items()) or "nothing is wrong"
    yield Text(f"{report.checked} looked at: {faults}")


def forgotten_lines(done: ForgetReport, width: int) -> Iterator[Text]:
    """What is gone, and what is made anew."""
    if done.pending:
        yield from wrapped(
            f"{done.pending} jobs have still to learn from messages: run `perdure worker --once`, then forget again", width
        )
    if done.nothing:
        yield Text("nothing to forget")
        return
    for title, counts in (("removed", done.removed), ("words struck out of", done.redacted)):
        told = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
        if told:
            yield Text(f"{title}: {told}")
    files = ", ".join(
        f"{count} {what}" for what, count in (("transcripts", done.transcripts), ("lessons", done.lessons)) if count
    )
    if files:
        yield Text(f"gone from files: {files}")
    if done.sessions:
        yield Text(f"made again by jobs: the digests of {done.sessions} sessions")
    if done.bytes_remain:
        yield from wrapped(f"it is forgotten, and no call returns it, but {done.bytes_remain}", width)
    for name in done.remaining:
        yield from wrapped(f"left as it is, since you named it: {name}", width)
