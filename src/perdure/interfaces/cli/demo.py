"""`perdure demo`: the vertical slice, step by step, on a throw-away store."""

from __future__ import annotations

import tempfile
from datetime import timedelta
from pathlib import Path

import perdure
from perdure.domain.scope import ToolCallId
from perdure.domain.times import EPOCH
from perdure.interfaces.cli.output import Output, safe
from perdure.services.readthrough import Window


class _Steps:
    """Collects what each step showed, for `--json`, and prints it as it happens otherwise."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self.shown: list[dict[str, object]] = []

    def show(self, step: str, **facts: object) -> None:
        self.shown.append({"step": step, **facts})
        if not self._out.as_json:
            words = "   ".join(f"{name}: {safe(value)}" for name, value in facts.items())
            self._out.value(None, [f"[bold]{len(self.shown)}. {step}[/bold]", f"   {words}"])


def run_demo(out: Output) -> None:
    steps = _Steps(out)
    with tempfile.TemporaryDirectory(prefix="perdure-demo-") as folder:
        url = f"sqlite:///{folder}/demo.db"
        with perdure.open(url) as engine:
            ana = engine.memory(user="ana", agent="coach", channel="demo")
            _conversation(steps, ana)
            _jobs(steps, engine, ana)
            _layers(steps, engine)
            _knowledge(steps, engine)
            _recall(steps, engine)
            _series(steps, ana)
            _state(steps, ana)
            _isolation(steps, engine)
            _safety(steps, engine, Path(folder))
    if out.as_json:
        out.value(steps.shown)
    else:
        out.note("The store was thrown away. Make one that stays: perdure append --user ana user 'I moved to Seattle'")


def _conversation(steps: _Steps, ana: perdure.Memory) -> None:
    morning = EPOCH + timedelta(days=20_000, hours=9)
    first = ana.append("user", "I moved to Seattle", id="m1", at=morning)
    steps.show("A message is logged durably", id=first.id, session=first.session[:8], seq=first.seq, tokens=first.tokens)
    again = ana.append("user", "I moved to Seattle", id="m1")
    steps.show("The same id again stores nothing", repeated=again.repeated, messages=len(ana.messages()))
    try:
        ana.append("user", "I moved to Austin", id="m1")
    except perdure.Conflict as error:
        steps.show("The same id with another body is refused", code=error.code)
    call = perdure.ToolCall(ToolCallId("c1"), "get_weather", {"city": "Seattle"})
    ana.append("assistant", "Let me look.", tool_calls=[call], at=morning + timedelta(seconds=5))
    result = ana.append("tool", "Rain, 9 degrees", tool_call_id="c1", at=morning + timedelta(seconds=9))
    steps.show("A tool result is paired with its call", answers=result.tool_call_id, seq=result.seq)
    later = ana.append("user", "Good afternoon", at=morning + timedelta(hours=5))
    steps.show("Silence of more than 30 minutes opens a new session", session=later.session_number, seq=later.seq)


def _jobs(steps: _Steps, engine: perdure.Engine, ana: perdure.Memory) -> None:
    waiting = len(ana.jobs("ready"))
    done = engine.process()
    steps.show("Jobs were queued in the same transactions, now they run", waiting=waiting, ran=done.ran, failed=done.failed)
    counts = ana.tally(ana.sessions()[-1].id)
    steps.show("They derived counts from the log", messages=counts.messages, by_role=counts.by_role, by_tool=counts.by_tool)
    operation = ana.journal()[0]
    steps.show("Every derived change is in the journal", operation=operation.seq, by=operation.actor, why=operation.why)


def _layers(steps: _Steps, engine: perdure.Engine) -> None:
    ana = engine.memory(user="ana", agent="builder", channel="demo")
    ana.append("user", "Never deploy on a Friday. The ticket is OPS-2231.")
    ana.append("assistant", "Understood.")
    for number in range(1, 40):
        ana.append("user", f"What does step {number} do?")
        ana.append("assistant", f"Step {number} copies the files of part {number}.")
    context = ana.context()
    [fold] = ana.conversation.digests("fold")
    steps.show(
        "A long conversation is folded: what the agent sees stays small",
        messages=ana.sessions()[0].messages,
        shown=len(context.messages),
        tokens=context.tokens,
    )
    kept = all(words in context.text for words in ("Never deploy on a Friday.", "OPS-2231"))
    reached = sum(1 for _ in ana.conversation.expand(fold))
    steps.show("Rules and ids are kept word for word, and nothing is lost", kept=kept, expandable=reached)


def _knowledge(steps: _Steps, engine: perdure.Engine) -> None:
    ana = engine.memory(user="ana", agent="friend", channel="demo")
    ana.append("user", "I live in Austin. My sister Maria lives in Lisbon.")
    ana.append("user", "Actually, I moved to Seattle. I'll call Maria by Friday.")
    learned = ana.extract()
    now_true = [memory.content for memory in ana.memories.list("PROFILE")]
    steps.show("What was said is learned, with its sources", statements=len(learned.outcomes), profile=now_true)
    past = [statement.content for statement in ana.memories.history("profile|place|seattle|fact")]
    steps.show("What is no longer true is closed, not lost", history=past, todos=[todo.content for todo in ana.todos.list()])
    gone = ana.forget(entity="person:Maria")
    steps.show("Forgetting takes a name out of everything", redacted=gone.redacted, message=ana.messages()[0].content)


def _recall(steps: _Steps, engine: perdure.Engine) -> None:
    ana = engine.memory(user="ana", agent="trainer", channel="demo")
    ana.append("user", "My knee hurts when I run downhill. From now on, give me distances in kilometres.")
    ana.append("assistant", "Then we start on flat ground.")
    engine.process()
    best = ana.recall("Which joint is injured?").hits[0]
    steps.show("A question finds what was said, by words and by meaning", found=best.text, by=best.speaker)
    shares = {name: round(arm.share, 2) for name, arm in best.trace.arms.items()}
    steps.show("and every hit can be explained", score=round(best.score, 2), shares=shares, why="; ".join(best.trace.why))
    context = ana.context("Plan a run in the city where I live", budget_tokens=500)
    kinds = [block.kind for block in context.blocks]
    home = "Lives in Seattle" in context.text
    steps.show("A goal brings what is known of it into the context", blocks=kinds, tokens=context.tokens, home_found=home)


def _series(steps: _Steps, ana: perdure.Memory) -> None:
    kudos = ana.series("kudos_timeseries", id_template="kudos_{activity}_{athlete}")
    asked: list[str] = []

    def api(window: Window) -> list[dict[str, object]]:
        """Plays an API with one kudos every four hours, and notes what it was asked for."""
        asked.append(f"{(window.end - window.start).total_seconds() / 3600:g} h")
        first = -(-int(window.start.timestamp()) // 14_400) * 14_400
        instants = range(first, int(window.end.timestamp()), 14_400)
        return [{"activity": instant, "athlete": "bob", "timestamp": instant} for instant in instants]

    ten = EPOCH + timedelta(days=20_000, hours=10)
    eleven = ten + timedelta(hours=1)
    day, week = timedelta(days=1), timedelta(days=7)
    first = kudos.fetch(ten - day, ten, api)
    steps.show("Kudos of the last 24 hours are fetched once", entries=first.count, asked_for=asked[-1])
    again = kudos.fetch(eleven - day, eleven, api)
    steps.show("An hour later only the hour that is missing is fetched", entries=again.count, asked_for=asked[-1])
    known = kudos.query(eleven - week, eleven)
    steps.show(
        "For the last 7 days the ledger names the gap", coverage=known.coverage, gaps=len(known.gaps), reason=known.reason
    )
    whole = kudos.fetch(eleven - week, eleven, api)
    steps.show(
        "and only that gap is fetched", entries=whole.count, coverage=whole.coverage, asked_for=asked[-1], calls=len(asked)
    )


def _state(steps: _Steps, ana: perdure.Memory) -> None:
    ana.state.save("units", "imperial")
    ana.state.save("units", "metric")
    past = ana.state.load("units", revision=1)
    steps.show("State keeps every revision", units=ana.state.load("units"), before=past, tools=len(ana.tools.names()))


def _isolation(steps: _Steps, engine: perdure.Engine) -> None:
    bob = engine.memory(user="bob", agent="coach", channel="demo")
    steps.show("Another user sees nothing of it", messages=len(bob.messages()), sessions=len(bob.sessions()))


def _safety(steps: _Steps, engine: perdure.Engine, folder: Path) -> None:
    report = engine.verify()
    steps.show("Every invariant is checked", sound=report.clean, rows=sum(report.checked.values()))
    saved = engine.backup(folder / "demo.backup")
    copy = f"sqlite:///{folder}/copy.db"
    perdure.restore(saved.path, copy)
    with perdure.open(copy) as restored:
        steps.show(
            "A backup restores into a new store, here or on PostgreSQL", sound=restored.verify().clean, bytes=saved.bytes
        )
    health = engine.doctor()
    steps.show(
        "The doctor proves a round trip",
        healthy=health.healthy,
        round_trip_ms=round(health.round_trip_ms, 1),
        sqlite=health.versions["sqlite"],
    )
