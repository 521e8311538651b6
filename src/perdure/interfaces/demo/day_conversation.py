"""The day's steps about the log and the layers over it, and about the store as a whole."""

from __future__ import annotations

import perdure
from perdure.documents import ContextCompactor, ContextManager, HistoryEntry, Task, copy_contexts
from perdure.domain.scope import ToolCallId
from perdure.interfaces.demo.day_world import Facts, World

HOME = "I live in Porto. My sister Maria lives in Faro."
DOCUMENT = "ana:clerk:100"
RULE, TICKET = "Never deploy on a Friday.", "OPS-2231"


def logged(world: World) -> Facts:
    first = world.ana().append("user", HOME, id="m1")
    return {"id": first.id, "session": first.session_number, "seq": first.seq, "tokens": first.tokens}


def repeated(world: World) -> Facts:
    again = world.ana().append("user", HOME, id="m1")
    return {"repeated": again.repeated, "messages": len(world.ana().messages())}


def refused(world: World) -> Facts:
    try:
        world.ana().append("user", "I live in Madrid.", id="m1")
    except perdure.Conflict as error:
        return {"code": error.code, "messages": len(world.ana().messages())}
    return {"code": "none"}


def tool_paired(world: World) -> Facts:
    ana = world.ana()
    call = perdure.ToolCall(ToolCallId("c1"), "get_weather", {"city": "Porto"})
    ana.append("assistant", "Let me look.", tool_calls=[call])
    result = ana.append("tool", "Rain, 9 degrees", tool_call_id="c1")
    ana.append("assistant", "Take a rain coat.")
    return {"answers": result.tool_call_id, "seq": result.seq}


def jobs_run(world: World) -> Facts:
    waiting = len(world.ana().admin.jobs("ready"))
    done = world.engine.process()
    return {"waiting": waiting, "failed": done.failed, "left_for_later": len(world.ana().admin.jobs("ready"))}


def counted(world: World) -> Facts:
    counts = world.ana().conversation.tally()
    return {"messages": counts.messages, "by_role": counts.by_role, "by_tool": counts.by_tool}


def journalled(world: World) -> Facts:
    operations = world.ana().journal.list()
    return {"by": sorted({one.actor for one in operations}), "why": operations[0].why}


def fourth_turn(world: World) -> Facts:
    """Three more turns: with the first one they are four."""
    ana = world.ana()
    turns = {
        "I'll call Maria by Friday.": "Shall I remind you?",
        "Actually, I moved to Lisbon.": "Lisbon it is.",
        "My knee hurts when I run downhill. From now on, be brief.": "Then flat ground.",
    }
    world.exchange(ana, turns)
    [rolling] = ana.conversation.digests("rolling")
    return {
        "turns": ana.conversation.agent_state().turns,
        "messages": ana.conversation.sessions()[0].messages,
        "rolling": rolling.version,
        "within_600": len(rolling.text) <= 600,
        "wishes": [one.content for one in ana.instructions.list()],
    }


def silence(world: World) -> Facts:
    """The first session ended at its last message; the next thing said opens another."""
    world.engine.process()
    ana = world.ana()
    ended = ana.conversation.sessions()[0]
    [digest] = ana.conversation.digests("session")
    later = ana.append("user", "Good morning again.")
    return {
        "ended_at": ended.ended_at.astimezone(world.at(0).tzinfo).strftime("%H:%M") if ended.ended_at else None,
        "commitments": digest.fields["commitments"],
        "people": digest.fields["people"],
        "session": later.session_number,
        "seq": later.seq,
        "context": [block.kind for block in ana.context().blocks],
    }


def document_compacted(world: World) -> Facts:
    """A context document, as another program would keep it: a JSON file of its own."""
    manager = ContextManager(world.folder / "context", clock=world.clock)
    manager.initialize()
    context = manager.load(DOCUMENT)
    begun = int(world.at(13).timestamp())
    for number in range(1, 52):
        role = "user" if number % 2 else "assistant"
        context.recent_history.append(HistoryEntry(begun + number, role, f"Message {number}", token_count=5))
    context.facts += ["Uses Rust", "Prefers tea", "uses rust.", "Has a cat", "Prefers tea"]
    day = 86_400
    for name, status, ended in (("t1", "Running", begun), ("t2", "Completed", begun - 3_600), ("t3", "Failed", begun - day)):
        context.active_tasks.append(
            Task(id=name, description="Build", status=status, progress=0.5, created_at=begun - day, updated_at=ended)
        )
    context.tool_stats.count("file_read")
    compactor = ContextCompactor(clock=world.clock)
    compacted, again = compactor.compact(context), compactor.compact(context)
    revision = manager.save(context)
    held = manager.load(DOCUMENT)
    return {
        "compacted": compacted,
        "again": again,
        "kept": len(held.recent_history),
        "first_kept": held.recent_history[0].content,
        "summary_lines": held.long_term_summary.count("\n- "),
        "facts": held.facts,
        "tasks": [task.id for task in held.active_tasks],
        "revision": revision,
    }


def document_in_store(world: World) -> Facts:
    """The same document as a view over a session of the store; what compaction took out comes along."""
    files = ContextManager(world.folder / "context", clock=world.clock)
    store = ContextManager(storage="store", engine=world.engine, user="ana")
    copied = copy_contexts(files, store)
    held = store.load(DOCUMENT)
    clerk = world.ana("clerk", "default")
    return {
        "copied": copied,
        "again": copy_contexts(files, store),
        "kept": len(held.recent_history),
        "whole_history": len(store.history(DOCUMENT)),
        "messages_in_log": len(clerk.messages(100)),
    }


def long_talk(world: World) -> Facts:
    builder = world.ana("builder", "terminal")
    turns = {f"{RULE} The ticket is {TICKET}.": "Understood."}
    turns |= {f"What does step {n} do?": f"Step {n} copies the files of part {n}." for n in range(1, 40)}
    builder.append_many(
        perdure.NewMessage(role, text) for turn in turns.items() for role, text in zip(("user", "assistant"), turn, strict=True)
    )
    context = builder.context()
    world.engine.process()
    session = builder.conversation.sessions()[0]
    return {"messages": session.messages, "shown": len(context.messages), "working": session.working}


def nothing_lost(world: World) -> Facts:
    builder = world.ana("builder", "terminal")
    context = builder.context()
    folds = builder.conversation.digests("fold")
    kept = all(words in context.text for words in (RULE, TICKET))
    return {"kept": kept, "folds": len(folds), "expandable": sum(1 for _ in builder.conversation.expand(folds[0], whole=True))}


def spine(world: World) -> Facts:
    """More than 20 turns of Ana's, with whichever agent: the spine tells the whole of it."""
    world.exchange(world.ana(), {"I ran 8 km on flat ground today.": "Well done."})
    newest = world.ana().conversation.digests("spine")[0]
    sections = [name for name in ("PROFILE", "PROJECTS", "PEOPLE", "OPEN_LOOPS") if name in newest.fields]
    return {"versions": newest.version, "sections": sections, "in_context": "spine" in _kinds(world.ana().context())}


def restarted(world: World) -> Facts:
    before = _counts(world)
    world.restart()
    return {"same": _counts(world) == before, "transcripts": len(world.ana().conversation.transcripts.list())}


def alone(world: World) -> Facts:
    bob = world.engine.memory(user="bob", agent="coach", channel="app")
    return {
        "messages": len(bob.messages()),
        "sessions": len(bob.conversation.sessions()),
        "keys": len(bob.state.keys()),
        "series": len(bob.series.list()),
        "memories": len(bob.memories.list()),
        "found": len(bob.recall("Where does Ana live?").hits),
    }


def verified(world: World) -> Facts:
    world.engine.process()
    report = world.engine.verify()
    return {"sound": report.clean, "findings": len(report.findings), "jobs_dead": len(world.ana().admin.jobs("dead"))}


def backed_up(world: World) -> Facts:
    saved = world.engine.backup(world.folder / "day.backup")
    copy = f"sqlite:///{world.folder}/copy.db"
    perdure.restore(saved.path, settings=perdure.Settings(url=copy))
    with perdure.open(settings=perdure.Settings(url=copy), clock=world.clock) as restored:
        messages = len(restored.memory("ana", agent="coach", channel="app").messages(100))
        return {"sound": restored.verify().clean, "messages": messages}


def examined(world: World) -> Facts:
    health = world.engine.doctor()
    return {
        "healthy": health.healthy,
        "degraded": list(health.degraded),
        "model": health.model or "none",
        "backend": health.store.backend,
        "jobs_dead": health.queue.dead,
    }


def in_numbers(world: World) -> Facts:
    """The counters of the whole day."""
    return _counts(world)


def _counts(world: World) -> Facts:
    places = world.places
    ana = world.ana()
    digests = {
        kind: sum(len(place.conversation.digests(kind, limit=100)) for place in places)
        for kind in ("fold", "rolling", "session")
    }
    series = ana.series.list()
    memories = ana.memories.list()
    told = [one for memory in memories for one in ana.memories.history(memory.memory.record_key)]
    return {
        "messages": sum(session.messages for place in places for session in place.conversation.sessions()),
        "sessions": sum(len(place.conversation.sessions()) for place in places),
        **{f"{kind}_digests": count for kind, count in digests.items()},
        "spines": len(ana.conversation.digests("spine")),
        "series_entries": sum(one.count for one in series),
        "api_calls": sum(one.api_calls for one in series),
        "duplicates_avoided": sum(one.duplicates for one in series),
        "state_keys": len(ana.state.keys()),
        "decisions_before": sum(len(place.journal.decisions("before")) for place in places),
        "decisions_after": sum(len(place.journal.decisions("after")) for place in places),
        "memories": len(memories),
        "superseded": sum(not one.is_live() for one in told),
        "todos_open": len(ana.todos.list()),
        "todos_done": len(ana.todos.list(closed=True)) - len(ana.todos.list()),
        "lessons": len({one.id for place in places for one in place.lessons.list()}),
        "model_calls": sum(one.calls for one in ana.admin.usage()),
    }


def _kinds(context: perdure.Context) -> list[str]:
    return [block.kind for block in context.blocks]
