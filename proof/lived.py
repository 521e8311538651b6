"""A user's life with perdure, in which one secret comes up in everything that can be stored. Every kind has its own word."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

import perdure
from perdure.documents import ContextManager, HistoryEntry
from perdure.domain.conversation.digests import SESSION_FIELDS, SPINE_SECTIONS, Summary, SummaryRequest
from perdure.domain.conversation.messages import ToolCall
from perdure.domain.knowledge.proposals import Evidence, Extraction, ExtractionRequest, Proposal, TodoProposal
from perdure.domain.scope import ToolCallId
from perdure.testing import StoppedClock

FIRST, LAST, ACCENTED = "zqxjv", "wkqyz", "ßqüxøvæ"
"""Every secret word begins with the first and ends with the last of these; the third stands beside it."""
MARKS = (FIRST, LAST, ACCENTED)
START = datetime(2026, 1, 1, tzinfo=UTC)


def secret(kind: str) -> str:
    return f"{FIRST}{kind}{LAST}"


@dataclass(slots=True)
class Life:
    """What was stored: enough to name it when it is to be forgotten."""

    user: str
    name: str
    """How the secret is written: a word of each kind, or the name of a person."""
    words: Callable[[str], str]
    texts: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)
    sessions: list[str] = field(default_factory=list)
    memory: str = ""

    def say(self, text: str, kind: str) -> str:
        told = f"{text} {self.words(kind)}"
        self.texts.append(told)
        return told


def by_kind(user: str) -> Life:
    """Each kind of thing has a secret word of its own."""
    return Life(user, "", lambda kind: f"{secret(kind)} {ACCENTED}")


def by_name(user: str) -> Life:
    """The secret is a person, and comes up in everything."""
    name = f"{FIRST.title()}an {ACCENTED} {LAST.title()}son"
    return Life(user, name, lambda _kind: name)


def talk(engine: perdure.Engine, life: Life) -> None:
    """Messages of every role, with metadata, a tool call and its result; what is learned from them is derived by jobs."""
    mine = engine.memory(life.user, agent="coach", channel="a")
    said = [
        mine.append("user", life.say("I spoke to", "message")),
        mine.append("user", life.say("I had lunch with", "place") + "."),
        mine.append("user", life.say("I will call", "promise") + " tomorrow."),
        mine.append("user", life.say("From now on always greet me like", "order")),
        mine.append("assistant", life.say("Noted:", "answer"), metadata={"about": life.say("about", "meta")}),
        mine.append("assistant", "", tool_calls=[ToolCall(ToolCallId("c1"), "look", {"q": life.say("q", "call")})]),
        mine.append("tool", life.say("found", "result"), tool_call_id="c1"),
        mine.append("user", life.say("Thank you, and greet", "thanks")),
    ]
    life.messages += [message.id for message in said]
    life.sessions.append(said[0].session)


def keep(engine: perdure.Engine, life: Life) -> None:
    """Everything that is stored by calls rather than said."""
    mine = engine.memory(life.user, agent="coach", channel="a")
    about = [f"person:{life.name}"] if life.name else [f"person:{secret('entity').title()}"]
    kept = mine.remember(life.say("Plays chess with", "memory"), "PEOPLE", entities=about)
    life.memory = kept.statement.memory if kept.statement else ""
    mine.remember(life.say("Lent a book to", "statement"), "PEOPLE", entities=about)
    mine.todos.add(life.say("Write to", "todo"))
    mine.todos.tasks.start(life.say("Find a present for", "task"))
    mine.lessons.add(life.say("Ask before you call", "lesson"), "user")
    mine.lessons.add(life.say("Never wake", "ourlesson"), "agent")
    mine.state.save("notes", {"friend": life.say("it is", "state"), "n": 1})
    mine.state.save("notes", {"friend": "nobody", "n": 2})
    entry = {"id": "1", "timestamp": START, "to": life.say("to", "series")}
    mine.series("calls").merge([entry])
    mine.series("calls").merge([{**entry, "to": "somebody else"}])  # the first version becomes the past
    mine.before(life.say("What do I give to", "goal"), deadline_s=5)
    mine.after("look_up", {"found": life.say("it is", "kept")}, life.say("find", "aftergoal"), mode="auto")
    mine.conversation.replace(life.say("So far we spoke of", "digest"))
    manager = ContextManager(storage="store", engine=engine)
    context = manager.load(f"{life.user}:coach:2")
    context.recent_history.append(HistoryEntry(1_767_225_600, "user", life.say("Remember", "document")))
    manager.save(context)


def derive(engine: perdure.Engine, clock: StoppedClock) -> None:
    """Some hours pass, in which jobs make everything they make."""
    for _ in range(3):
        engine.process(60)
        clock.move(hours=2)


class Quoting:
    """Models that keep nothing to themselves: a summary quotes all it is shown, and everything said is worth remembering."""

    name = "quoting/1"

    def summarise(self, request: SummaryRequest) -> Summary:
        told = "\n".join((request.previous, *(message.content for message in request.messages)))[-request.chars_max :]
        last = [message.content for message in request.messages if message.role == "user"][-1:]
        names = {"session": SESSION_FIELDS, "spine": SPINE_SECTIONS}.get(request.kind, ())
        return Summary(told, tuple(f"Mind what was said: {text}" for text in last), dict.fromkeys(names, told))

    def extract(self, request: ExtractionRequest) -> Extraction:
        said = [
            (message, Evidence(message.id, 0, len(message.content), message.at))
            for message in request.messages
            if message.content
        ]
        return Extraction(
            tuple(Proposal("PROFILE", "fact", f"Said: {message.content}", evidence=(place,)) for message, place in said),
            tuple(TodoProposal("thread", f"Think of: {message.content}", evidence=(place,)) for message, place in said[-1:]),
        )
