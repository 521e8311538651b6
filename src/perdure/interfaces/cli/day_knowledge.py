"""The day's steps about what is known: learning, correcting, cards, curation, todos, finding again, forgetting."""

from __future__ import annotations

from typing import get_args

from perdure.domain.knowledge import FactType
from perdure.interfaces.cli.day_world import Facts, World

PLACE = "profile|place|lisbon|fact"
KNEE = "Which joint is injured?"


def learned(world: World) -> Facts:
    ana = world.ana()
    known = {kind: [memory.content for memory in ana.memories.list(kind)] for kind in ("PROFILE", "PEOPLE")}
    [home] = ana.memories.list("PROFILE")
    return {
        "profile": known["PROFILE"],
        "people": sorted(known["PEOPLE"]),
        "because": ana.message(home.statements[0].evidence[0].message).content,
        "entities": [entity.ref for entity in ana.entities.list()],
    }


def closed(world: World) -> Facts:
    ana = world.ana()
    history = ana.memories.history(PLACE)
    return {
        "history": [one.content for one in history],
        "superseded": [one.content for one in history if not one.is_live()],
        "todos": [f"{one.content} by {one.due_at:%A}" if one.due_at else one.content for one in ana.todos.list()],
    }


def card(world: World) -> Facts:
    """A card shows what is pinned or of importance 2; everything else is found by asking."""
    ana = world.ana()
    for content, importance, pinned in (("Works at Google", 1, True), ("Lives in London", 2, False), ("Plays chess", 1, False)):
        ana.remember(content, "PEOPLE", entities=["person:John"], importance=importance, pinned=pinned)
        world.clock.move(minutes=1)
    world.engine.process()
    context = ana.context("What do I know about John?", budget_tokens=4_000)
    [line] = [line for line in context.text.splitlines() if line.startswith("[person:john]")]
    return {
        "card": line,
        "told_once": all(context.text.count(word) <= 1 for word in ("Google", "London", "chess")),
        "foundation": len(ana.memories.foundation()[0]),
    }


def curated(world: World) -> Facts:
    """Six observations of one person, over all kinds of fact, become one memory; and back; and again."""
    ana = world.ana()
    kinds: tuple[FactType, ...] = get_args(FactType)
    for number in range(6):
        kind = kinds[number % len(kinds)]
        ana.remember(f"Rui shows habit number {number}", "PEOPLE", fact_type=kind, entities=["person:Rui"])
        world.clock.move(minutes=1)
    before = len(ana.memories.list(entity="person:rui"))
    run = ana.curate()
    [fold] = ana.memories.list(entity="person:rui")
    taken_back = 0
    if run.action is not None:
        number = ana.undo(run.action)
        taken_back = len(ana.memories.list(entity="person:rui"))
        ana.undo(number)
    return {
        "memories": before,
        "folded": len(ana.memories.list(entity="person:rui")),
        "statements": len(fold.statements),
        "importance": fold.memory.importance,
        "undone": taken_back,
    }


def todo_done(world: World) -> Facts:
    ana = world.ana()
    due = len(ana.todos.list())
    world.exchange(ana, {"I called Maria.": "Good."})
    done = [one.content for one in ana.todos.list(closed=True) if one.state == "completed"]
    return {"open_before": due, "open": len(ana.todos.list()), "completed": done}


def agents_apart(world: World) -> Facts:
    """Facts are for all agents, todos for the one they were told to, and a private memory for one."""
    ana, friend = world.ana(), world.ana("friend", "app")
    ana.todos.add("Stretch", "habit", recurrence="0 8 * * *")
    ana.remember("Is seeing a therapist", visible_to="coach")
    home = "Lives in Lisbon"
    return {
        "coach_knows_home": home in _contents(world, "coach"),
        "friend_knows_home": home in _contents(world, "friend"),
        "todos": [len(ana.todos.list()), len(friend.todos.list())],
        "private_seen_by": [agent for agent in ("coach", "friend") if "Is seeing a therapist" in _contents(world, agent)],
    }


def _contents(world: World, agent: str) -> list[str]:
    return [memory.content for memory in world.ana(agent).memories.list()]


def found(world: World) -> Facts:
    best = world.ana().recall(KNEE, kinds=["message"]).hits[0]
    return {"found": best.text, "by": best.speaker}


def explained(world: World) -> Facts:
    best = world.ana().recall(KNEE, kinds=["message"]).hits[0]
    shares = {name: round(arm.share, 2) for name, arm in best.trace.arms.items()}
    return {"score": round(best.score, 2), "shares": shares, "why": "; ".join(best.trace.why)}


def brought(world: World) -> Facts:
    world.engine.process()
    context = world.ana().context("Plan a run in the city where I live", budget_tokens=800)
    return {
        "blocks": [block.kind for block in context.blocks],
        "within_budget": context.tokens <= 800,
        "home_found": "Lives in Lisbon" in context.text,
        "old_home_told": "Lives in Porto" in context.text,
    }


def forgotten(world: World) -> Facts:
    ana = world.ana()
    decisions = len(ana.decisions())
    gone = ana.forget(entity="person:Maria")
    world.engine.process()
    return {
        "redacted": gone.redacted,
        "message": ana.message("m1").content,
        "found_again": len(ana.conversation.search("Maria")),
        "memories": len(ana.memories.list(entity="person:Maria")),
        "decisions_gone": decisions - len(ana.decisions()),
    }
