"""One day through everything, on a simulated clock, without a model or a network: what `perdure demo` shows.

Ana runs, has a coach and other agents, and lives in Lisbon. Each step makes public calls only and tells its counters.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, time

from perdure.domain.values import dataclass
from perdure.interfaces.demo import day_conversation, day_knowledge, day_series
from perdure.interfaces.demo.day_world import MONDAY, Facts, Step, World

SCRIPT = (
    Step("05:30", "overseer", "What lasts of a tool's result is saved", day_series.goal_saves),
    Step("05:40", "overseer", "A later goal is given it, and nothing else", day_series.goal_uses),
    Step("05:45", "overseer", "A goal that needs nothing gets nothing", day_series.needs_nothing),
    Step("05:59", "lessons", "An agent is a folder of texts, and its prompt knows the hour", day_knowledge.wakes),
    Step("06:00", "lessons", "An edit by hand in memory.md is in the next prompt", day_knowledge.edited_by_hand),
    Step("07:00", "log", "A message is logged durably", day_conversation.logged),
    Step("07:00", "log", "The same id again stores nothing", day_conversation.repeated),
    Step("07:00", "log", "The same id with another body is refused", day_conversation.refused),
    Step("07:01", "log", "A tool result is paired with its call", day_conversation.tool_paired),
    Step("07:02", "log", "Jobs were queued in the same transactions, now they run", day_conversation.jobs_run),
    Step("07:02", "log", "They derived counts from the log", day_conversation.counted),
    Step("07:02", "log", "Every derived change is in the journal", day_conversation.journalled),
    Step("07:05", "context", "Every fourth turn a digest says where we are", day_conversation.fourth_turn),
    Step("07:10", "knowledge", "What was said is learned, with its sources", day_knowledge.learned),
    Step("07:10", "knowledge", "What is no longer true is closed, not lost", day_knowledge.closed),
    Step(
        "08:00", "context", "Silence of more than 30 minutes ends a session, and its digest goes on", day_conversation.silence
    ),
    Step("08:05", "knowledge", "What matters of a person is on a card", day_knowledge.card),
    Step("08:20", "knowledge", "The curator folds scattered memories, and can be undone", day_knowledge.curated),
    Step("08:40", "knowledge", "Facts are for all agents, promises for the one they were made to", day_knowledge.agents_apart),
    Step("09:20", "overseer", "Clocks and secrets are never kept, the rest is for you to say", day_series.kept_or_not),
    Step("10:00", "series", "Kudos of the last 24 hours are fetched once", day_series.fetched_once),
    Step("11:00", "series", "The same question an hour later adds only what is new", day_series.an_hour_later),
    Step("11:05", "series", "For the last 2 days the ledger names the gap", day_series.gap_named),
    Step("11:05", "series", "and only that gap is fetched, once", day_series.gap_fetched),
    Step("11:30", "overseer", "A goal about a covered time needs no call at all", day_series.answered_from_state),
    Step("12:00", "lessons", "The prompt knows that it is noon", day_knowledge.hour),
    Step("12:10", "overseer", "A list with ids and times is offered as a series", day_series.offered_as_series),
    Step("12:20", "series", "State keeps every revision", day_series.revisions),
    Step("14:00", "context", "A context document of 51 entries is compacted to 30", day_conversation.document_compacted),
    Step("14:10", "context", "The same document as a view over the store", day_conversation.document_in_store),
    Step("15:00", "context", "A long conversation is folded: what the agent sees stays small", day_conversation.long_talk),
    Step("15:00", "context", "Rules and ids are kept word for word, and nothing is lost", day_conversation.nothing_lost),
    Step("15:30", "lessons", "Eight messages become one, and a lesson for the channel's agent", day_knowledge.channel_folds),
    Step("15:45", "lessons", "What a model wants remembered never reaches the user", day_knowledge.appended_by_model),
    Step("16:00", "lessons", "Every half hour the lively are shortened and the silent cleared", day_knowledge.flushed),
    Step("17:00", "lessons", "The prompt knows that it is evening", day_knowledge.hour),
    Step("17:05", "lessons", "From small talk nothing is learned", day_knowledge.casual),
    Step("18:00", "context", "After more than 20 turns a spine tells the whole", day_conversation.spine),
    Step("19:00", "knowledge", "A question finds what was said, by words and by meaning", day_knowledge.find_message),
    Step("19:00", "knowledge", "and every hit can be explained", day_knowledge.explained),
    Step("19:05", "knowledge", "A goal brings what is known of it into the context", day_knowledge.brought),
    Step("20:00", "knowledge", "What was promised is done when it is said to be", day_knowledge.todo_done),
    Step("20:30", "store", "The day in numbers", day_conversation.in_numbers),
    Step("21:00", "knowledge", "Forgetting takes a name out of everything", day_knowledge.forgotten),
    Step("22:00", "lessons", "The prompt knows that it is night", day_knowledge.hour),
    Step("22:10", "store", "A restart changes nothing", day_conversation.restarted),
    Step("22:10", "store", "Another user sees nothing of it", day_conversation.alone),
    Step("22:15", "store", "Every invariant is checked", day_conversation.verified),
    Step("22:20", "store", "A backup restores into a new store, here or on PostgreSQL", day_conversation.backed_up),
    Step("22:25", "store", "The doctor proves a round trip", day_conversation.examined),
)


@dataclass(frozen=True, slots=True)
class StepOutcome:
    """A step that was taken: when, by Ana's clock, and what it had to show."""

    step: Step
    at: datetime
    facts: Facts


def walk(world: World) -> Iterator[StepOutcome]:
    """Take the steps one after another. What a step needs was made by those before it."""
    for step in SCRIPT:
        at = datetime.combine(MONDAY, time.fromisoformat(step.at), MONDAY.tzinfo)
        world.clock.set(at)
        yield StepOutcome(step, at, step.do(world))
