"""The public calls of a simulation: each is made with what the seed draws, and its answer is held against what must be so."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

import perdure
from perdure import NewMessage
from perdure.domain.series import SeriesAnswer
from proof.simulated.expected import WORD, Covered, Place, Said, must
from proof.simulated.ports import SOURCE_MINUTES, SOURCE_START
from proof.simulated.world import AGENTS, CHANNELS, USERS, World

RULES: dict[str, Any] = {"settles_after_s": 0.0, "fresh_for_s": 0.0, "max_entries": None}
LEASE_S = 0.5
SERIES = ("runs", "kudos")
KEYS = ("plan", "last", "a/b")
EPOCH = datetime.fromtimestamp(0, SOURCE_START.tzinfo)


# -- the log


def append(world: World) -> None:
    user, place, memory = world.someone()
    new = [_message(world, user) for _ in range(world.chance.choice([1, 1, 1, 2, 4]))]
    one = len(new) == 1 and world.chance.random() < 0.7
    call = (lambda: [memory.append(new[0].role, new[0].content, id=new[0].id)]) if one else lambda: memory.append_many(new)
    done, held = world.tried(call)
    if not done:
        there = [message for message in new if _held(world, memory, str(message.id))]
        must(len(there) in (0, len(new)), "all or nothing", [message.id for message in new])
        held = [world.surely(lambda key=str(message.id): memory.conversation.message(key)) for message in there]
    for message, stored in zip(new, held or [], strict=False):
        must((stored.id, stored.content) == (message.id, message.content), "what returned is what was said", stored)
        world.known(user).log(place).append(Said(str(message.id), message.role, message.content, stored.session))
    world.told(f"append {len(new)} {[(one.session_number, one.seq) for one in held or []]}", user, held)


def append_again(world: World) -> None:
    """The same id with the same words changes nothing; with others it is refused."""
    user, place, memory = world.someone()
    told = [said for said in world.known(user).log(place) if said.content is not None]
    if not told:
        return
    said = world.chance.choice(told)
    done, again = world.tried(lambda: memory.append(said.role, said.content, id=said.id))
    must(not done or again.repeated, "the same message twice is once", said.id)
    try:
        world.tried(lambda: memory.append(said.role, "other words", id=said.id))
    except perdure.Conflict:
        pass
    else:
        must(not world.weather.failing, "an id stands for one message", said.id)
    world.told(f"append again {said.id}", user, again)


def messages(world: World) -> None:
    user, place, memory = world.someone()
    limit = world.chance.choice([1, 5, 1000])
    done, held = world.tried(lambda: memory.messages(limit))
    if done:
        _compare_log(world.known(user).log(place)[-limit:], held)
        world.told(f"messages {[message.id for message in held]}", user, held)


def search(world: World) -> None:
    user, place, memory = world.someone()
    told = [said for said in world.known(user).log(place) if said.content is not None]
    if not told:
        return
    said = world.chance.choice(told)
    word = WORD.findall(said.content)[0]
    done, held = world.tried(lambda: memory.conversation.search(word))
    if done:
        must([message.id for message in held] == [said.id], "a message is found by its words", f"{word}: {held}")
        world.told("search", user, held)


# -- state


def save(world: World) -> None:
    user, _, memory = world.someone()
    key, value, request = world.chance.choice(KEYS), world.text(user, "keeps"), world.id()
    revisions = world.known(user).state.setdefault(key, [])
    done, number = world.tried(lambda: memory.state.save(key, value, request=request))
    if not done:
        found = world.surely(lambda: memory.state.find(key))
        done = found.found and found.value == value
    if done:
        revisions.append(value)
        must(number in (None, len(revisions)), "a save is one revision", f"{key}: {number}, not {len(revisions)}")
    world.told(f"save {key} {number}", user, None)


def delete(world: World) -> None:
    user, _, memory = world.someone()
    key = world.chance.choice(KEYS)
    revisions = world.known(user).state.setdefault(key, [])
    expected = len(revisions)
    if not revisions or revisions[-1] is None:
        return
    # By the number it was read at: a repeated deletion finds that it was made.
    while True:
        try:
            done, gone = world.tried(lambda: memory.state.delete(key, expected=expected))
        except perdure.Conflict:
            done, gone = True, True
        if done or not world.surely(lambda: memory.state.find(key)).found:
            break
    revisions.append(None)
    world.told(f"delete {key} {gone}", user, gone)


def load(world: World) -> None:
    user, _, memory = world.someone()
    key = world.chance.choice(KEYS)
    revisions = world.known(user).state.get(key) or [None]
    done, value = world.tried(lambda: memory.state.load(key))
    if done:
        must(value == revisions[-1], "the state is what was saved last", f"{key}: {value}")
        world.told(f"load {key} {value}", user, value)


# -- series


def merge(world: World) -> None:
    user, _, memory = world.someone()
    name, request = world.chance.choice(SERIES), world.id()
    start, end = _window(world)
    found = world.sources[user].entries(start, end)
    complete = world.chance.random() < 0.7
    if not complete:
        found = found[: world.chance.randint(0, len(found))]
    again = [*found, *found[:1]]
    call = _merge_call(memory, name, again, (start, end), complete=complete, request=request)
    done, result = world.tried(call)
    # Whether one that was given up was carried out is not asked: it is repeated, and then it must be there once.
    result = result if done else world.surely(call)
    covered = world.known(user).series.setdefault(name, Covered())
    for entry in found:
        covered.sure[entry["id"]] = covered.delivered[entry["id"]] = entry
    begin, finish = _us(start), _us(end)
    if not complete:
        begin = min((_us(datetime.fromisoformat(entry["timestamp"])) + 1 for entry in found), default=finish)
    if begin < finish:
        covered.spans.append((begin, finish))
    world.told(f"merge {name} {start:%d %H:%M} {end:%d %H:%M} {complete} {len(found)}", user, result)


def fetch(world: World) -> None:
    user, _, memory = world.someone()
    name = world.chance.choice(SERIES)
    start, end = _window(world)
    source = world.sources[user]
    covered = world.known(user).series.setdefault(name, Covered())
    series = memory.series(name, **RULES)

    def call() -> SeriesAnswer:
        # Nobody else fetches. A lease whose answer was lost has ended when the call is made again.
        return series.fetch(start, end, source.fetch, lease_s=LEASE_S, wait_s=0.0)

    done, answer = world.tried(call)
    for entry in source.entries(start, end):
        covered.delivered[entry["id"]] = entry
    if not done or answer.failures:
        # Parts of it may be there: once the source answers, all of it is.
        world.clock.move(seconds=1)
        answer = world.surely(call)
    covered.spans.append((_us(start), _us(end)))
    for entry in source.entries(start, end):
        covered.sure[entry["id"]] = covered.delivered[entry["id"]] = entry
    must(not answer.gaps and not answer.failures, "what was fetched is covered", answer)
    world.told(f"fetch {name} {start:%d %H:%M} {end:%d %H:%M} {answer.count}", user, answer)


def gaps(world: World) -> None:
    user, _, memory = world.someone()
    name = world.chance.choice(SERIES)
    covered = world.known(user).series.get(name)
    if covered is None:
        return
    start, end = _window(world)
    done, answer = world.tried(lambda: memory.series(name).query(start, end))
    if done:
        covered.check_gaps((_us(start), _us(end)), [(span.start_us, span.end_us) for span in answer.gaps])
        _check_entries(covered, answer.entries, start, end)
        world.told(f"gaps {name} {[(span.start_us, span.end_us) for span in answer.gaps]} {answer.count}", user, answer)


# -- what is known


def add_todo(world: World) -> None:
    user, place, memory = world.someone()
    words = world.text(user, "will write to")
    done, todo = world.tried(lambda: memory.todos.add(words))
    listed = world.surely(lambda: memory.todos.list(limit=1000)) if not done else ()
    if done or any(one.content == words for one in listed):
        world.known(user).todos[place[0], words] = "pending"
    world.told("todo", user, todo)


def end_todo(world: World) -> None:
    user, place, memory = world.someone()
    mine = [words for (agent, words), state in world.known(user).todos.items() if (agent, state) == (place[0], "pending")]
    if not mine:
        return
    words = world.chance.choice(mine)
    held = world.surely(lambda: [one for one in memory.todos.list(limit=1000) if one.content == words])
    must(len(held) == 1, "a todo is there once", f"{words}: {len(held)}")
    done, todo = world.tried(lambda: memory.todos.complete(held[0].id))
    if not done:
        todo = world.surely(lambda: memory.todos.complete(held[0].id))
    world.known(user).todos[place[0], words] = "completed"
    world.told("todo done", user, todo)


def remember(world: World) -> None:
    user, _, memory = world.someone()
    words = world.text(user, "has a key called")
    done, outcome = world.tried(lambda: memory.remember(words))
    if done:
        must(outcome.statement is not None, "what is remembered is kept", outcome)
    if done or words in world.surely(lambda: _facts(memory)):
        world.known(user).facts.add(words)
    world.told(f"remember {outcome.verdict if outcome else None}", user, outcome)


def recall(world: World) -> None:
    user, _, memory = world.someone()
    known = world.known(user)
    texts = sorted(known.facts) or ["anything"]
    done, found = world.tried(lambda: memory.recall(world.chance.choice(texts)))
    if done:
        world.told("recall", user, found)


def add_lesson(world: World) -> None:
    user, _, memory = world.someone()
    words = world.text(user, "wants short answers and not")
    done, lesson = world.tried(lambda: memory.lessons.add(words, "user"))
    if not done:
        lesson = world.surely(lambda: memory.lessons.add(words, "user"))
    world.known(user).lessons.add(words)
    world.told("lesson", user, lesson)


# -- looking


def look(world: World) -> None:
    """Calls that only answer: whoever asks must see nothing of others, and nothing that is forgotten."""
    user, _, memory = world.someone()
    calls: dict[str, Callable[[], object]] = {
        "context": lambda: memory.context(),
        "context for": lambda: memory.context("what did we say about the key"),
        "prompt": lambda: memory.prompt("write"),
        "before": lambda: memory.before("write to the key", deadline_s=60.0),
        "overview": lambda: memory.admin.overview(),
        "journal": lambda: memory.journal.list(),
        "memories": lambda: memory.memories.list(archived=True, limit=1000),
        "entities": lambda: memory.entities.list(),
        "lessons": lambda: memory.lessons.list(),
        "instructions": lambda: memory.instructions.list(withdrawn=True),
        "digests": lambda: memory.conversation.digests(),
        "decisions": lambda: memory.journal.decisions(),
        "usage": lambda: [one.purpose for one in memory.admin.usage()],
        "sessions": lambda: memory.conversation.sessions(),
        "state": lambda: memory.state.search("*"),
        "audit": lambda: memory.memories.audit(),
        "transcripts": lambda: memory.conversation.transcripts.list(),
    }
    name = world.chance.choice([*calls])
    done, answer = world.tried(calls[name])
    if done:
        world.told(f"look {name}", user, answer)


NEEDED = {"reindex": "embedder", "compact": "model", "fold": "model", "extract": "model"}
"""Calls that ask for what only that port can give: they may be refused when it fails, and nothing else may."""


def tend(world: World) -> None:
    """Calls that rearrange what is derived: none of them may touch what was said."""
    _, _, memory = world.someone()
    calls: dict[str, Callable[[], object]] = {
        "compact": lambda: memory.conversation.compact(force=True),
        "fold": lambda: memory.conversation.fold(),
        "close": lambda: memory.conversation.close(),
        "resume": lambda: memory.conversation.resume(),
        "clear": lambda: memory.conversation.clear(),
        "extract": lambda: memory.memories.extract(),
        "curate": lambda: memory.memories.curate(),
        "reindex": lambda: memory.admin.reindex(),
        "after": lambda: memory.after("search", {"found": 3}, "look it up", mode="auto"),
    }
    name = world.chance.choice([*calls])
    try:
        world.tried(calls[name], also=NEEDED.get(name, ""))
    except (perdure.NotFound, perdure.Conflict) as error:
        world.note(f"tend {name} {type(error).__name__}")
    else:
        world.note(f"tend {name}")


# -- forgetting


def forget_messages(world: World) -> None:
    user, place, memory = world.someone()
    log = world.known(user).log(place)
    if len(log) < 3:
        return
    first = world.chance.randrange(len(log))
    last = min(len(log) - 1, first + world.chance.randint(0, 2))
    run = log[first : last + 1]
    call = lambda: memory.forget(messages=(run[0].id, run[-1].id))  # noqa: E731 - once as it is, once again
    done, _ = world.tried(call)
    if not done:
        world.surely(call)
    for said in run:
        world.expected.forget(WORD.findall(said.content or ""))
        said.content = None
    world.note(f"forget messages {run[0].id} {run[-1].id}")


def forget_memory(world: World) -> None:
    user, _, memory = world.someone()
    facts = sorted(world.known(user).facts)
    if not facts:
        return
    words = world.chance.choice(facts)
    held = world.surely(lambda: memory.memories.list(archived=True, limit=1000))
    [key] = {one.memory.key for one in held if any(statement.content == words for statement in one.statements)}
    mine = [one for one in held if one.memory.key == key]
    done, _ = world.tried(lambda: memory.forget(memory=key))
    if not done:
        with suppress(perdure.NotFound):  # it was carried out the first time
            world.surely(lambda: memory.forget(memory=key))
    for statement in mine[0].statements:
        world.expected.forget(WORD.findall(statement.content))
        world.known(user).facts.discard(statement.content)
    world.note(f"forget memory {words}")


def forget_user(world: World) -> None:
    user, _, memory = world.someone()
    done, _ = world.tried(lambda: memory.forget(user=True))
    if not done:
        world.surely(lambda: memory.forget(user=True))
    world.expected.forget_user(user)
    world.note(f"forget user {user!r}")


# -- all of it


def check_everything(world: World) -> None:
    """In calm weather: what the store holds of everybody is what everybody was told, no more and no less."""
    for user in USERS:
        known = world.known(user)
        for agent in AGENTS:
            for channel in CHANNELS:
                memory = world.memory(user, (agent, channel))
                _check_place(world, user, (agent, channel), memory)
            held = memory.todos.list(closed=True, limit=1000)
            mine = {words: state for (whose, words), state in known.todos.items() if whose == agent}
            found = [(one.content, one.state) for one in held if one.content in mine]
            must(sorted(found) == sorted(mine.items()), "todos are as told", f"{user!r}: {found}, not {mine}")
        facts = [words for words in _facts(memory) if words in known.facts]
        must(sorted(facts) == sorted(known.facts), "memories are there once", f"{user!r}: {facts}, not {known.facts}")
        for key, revisions in known.state.items():
            bodies = [None if one.body is None else json.loads(one.body) for one in memory.state.history(key, limit=1000)]
            must(bodies[::-1] == revisions, "every save is one revision", f"{user!r} {key}: {bodies[::-1]}, not {revisions}")
        _check_series(memory, known.series)
        lessons = [one.text for one in memory.lessons.list("user", archived=True, limit=1000)]
        must(known.lessons <= set(lessons), "lessons are kept", f"{user!r}: {known.lessons - set(lessons)}")
        must(len(lessons) == len(set(lessons)), "a lesson is there once", lessons)


def _check_place(world: World, user: str, place: Place, memory: perdure.Memory) -> None:
    held = memory.messages(1000)
    _compare_log(world.known(user).log(place), held)
    for session in memory.conversation.sessions(1000):
        mine = [message for message in held if message.session == session.id]
        must(
            [message.seq for message in mine] == list(range(1, len(mine) + 1)),
            "places in the log are whole",
            f"{user!r} {place}: {[message.seq for message in mine]}",
        )
        tally = memory.conversation.tally(session.id)
        must(tally.messages == tally.up_to_seq == len(mine), "each message is counted once", f"{user!r} {place}: {tally}")


def _check_series(memory: perdure.Memory, known: dict[str, Covered]) -> None:
    wanted = (_us(SOURCE_START), _us(SOURCE_START + timedelta(minutes=SOURCE_MINUTES)))
    for name, covered in known.items():
        series = memory.series(name)
        found = series.gaps(SOURCE_START, SOURCE_START + timedelta(minutes=SOURCE_MINUTES))
        covered.check_gaps(wanted, [(span.start_us, span.end_us) for span in found])
        _check_entries(covered, list(series.entries()), SOURCE_START, SOURCE_START + timedelta(minutes=SOURCE_MINUTES))


def _check_entries(covered: Covered, entries: Any, start: datetime, end: datetime) -> None:
    """Both ends included, as a query has it."""
    held = {entry.id: entry.body for entry in entries}
    must(len(held) == len(entries), "an entry is there once", [entry.id for entry in entries])
    for id, body in covered.sure.items():
        if start <= datetime.fromisoformat(body["timestamp"]) <= end:
            must(held.get(id) == body, "every entry that was merged is there", f"{id}: {held.get(id)}")
    for id, body in held.items():
        must(covered.delivered.get(id) == body, "no entry comes from nowhere", f"{id}: {body}")


def _compare_log(wanted: list[Said], held: Any) -> None:
    found = [(str(message.id), message.role) for message in held]
    must(found == [(said.id, said.role) for said in wanted], "the log is what was said, in order, once", f"{found}; {wanted}")
    for said, message in zip(wanted, held, strict=True):
        if said.content is not None:
            must(message.content == said.content, "a message keeps its words", f"{message}; {said}")


def _facts(memory: perdure.Memory) -> list[str]:
    return [one.content for held in memory.memories.list(archived=True, limit=1000) for one in held.statements]


def _message(world: World, user: str) -> NewMessage:
    return NewMessage(world.chance.choice(["user", "assistant"]), world.text(user), id=world.id())


def _held(world: World, memory: perdure.Memory, id: str) -> bool:
    try:
        return world.surely(lambda: memory.conversation.message(id)) is not None
    except perdure.NotFound:
        return False


def _merge_call(
    memory: perdure.Memory, name: str, entries: list[dict[str, Any]], window: tuple[datetime, datetime], **more: Any
) -> Callable[[], object]:
    return lambda: memory.series(name, **RULES).merge(entries, window=window, **more)


def _window(world: World) -> tuple[datetime, datetime]:
    first = world.chance.randrange(SOURCE_MINUTES - 1)
    last = min(SOURCE_MINUTES, first + world.chance.randint(1, 60))
    return SOURCE_START + timedelta(minutes=first), SOURCE_START + timedelta(minutes=last)


def _us(at: datetime) -> int:
    return (at - EPOCH) // timedelta(microseconds=1)


CALLS: tuple[tuple[int, Callable[[World], None]], ...] = (
    (30, append),
    (4, append_again),
    (8, messages),
    (4, search),
    (8, save),
    (3, delete),
    (5, load),
    (8, merge),
    (6, fetch),
    (6, gaps),
    (6, add_todo),
    (3, end_todo),
    (7, remember),
    (4, recall),
    (3, add_lesson),
    (14, look),
    (8, tend),
    (3, forget_messages),
    (2, forget_memory),
    (1, forget_user),
)
