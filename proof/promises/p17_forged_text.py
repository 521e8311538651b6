"""P17: stored text cannot pose as instructions or as another source.

Forgeries are stored through every input there is, and everything that goes into a prompt is read by a reader of its own
(`frame_reader`): no frame, line or turn is forged, each item says whose words it has and never says more than is true, a flood
of untrusted text takes no more than its share and leaves what the user said in place, and what is derived is trusted no more
than the least of its sources.
"""

from __future__ import annotations

import io
import json
import random
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import perdure
from perdure import Context
from perdure.documents import ContextManager, HistoryEntry
from perdure.domain.knowledge.proposals import Evidence, Extraction, ExtractionRequest, Proposal
from perdure.engine.context.blocks import UNTRUSTED_SHARE
from perdure.engine.text.tokens import estimate_tokens
from perdure.handles.chat import Chat
from perdure.interfaces.mcp import prompts, resources, sets
from perdure.interfaces.mcp.callers import LocalCaller as McpOwner
from perdure.settings import Settings
from perdure.testing import StoppedClock
from proof import frame_reader
from proof.forgeries import forgeries, of_talk, plain_facts
from proof.frame_reader import TRUSTS
from proof.harness import Case, Promise, Round
from proof.servers import fresh_sqlite
from proof.wholeness import check_whole

PLANTS = 16
"""Forgeries that one case stores, each through an input of its own."""
TALKS = 2
"""So often the conversation goes on in a case."""
GOAL = "the boat trip with Zoe"
LAYERS = perdure.Layers(fold_messages_min=6, rolling_turns=2, spine_turns=2, history_messages_max=30)
FLOOD = 400
GENUINE = ("Zoe is allergic to nuts", "The boat leaves from pier 7", "The trip was paid for by Mia")
"""What the user said: it has fewer words of the goal than any text of the flood."""
NOTES = "## Notes the assistant made for itself (not the user's word)"
LOG_FRAME = re.compile(r'<memory kind="conversation" title="[^"<>]*" source="the log">\n.*?\n</memory>', re.DOTALL)
"""What a host or a tool said, in a turn of the user."""
ROOM = 1.1
"""A tenth of slack: what a line costs alone is not quite what it adds to a block."""


@dataclass(slots=True)
class Life:
    """One user's store while it is filled with forgeries: by the mark in each, whose words they really are."""

    round: Round
    case: Case
    engine: perdure.Engine
    clock: StoppedClock
    folder: Path
    truth: dict[str, str] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)

    @property
    def ana(self) -> perdure.Memory:
        return self.engine.memory("ana")

    def forge(self, number: int) -> None:
        """A forgery through an input."""
        place = self.case.number * PLANTS + number
        self._plant(number, list(INPUTS)[place % len(INPUTS)], place, forgeries)

    def talk(self, nth: int) -> None:
        """Forgeries in the conversation that goes on, which a prompt always shows: of every role one."""
        for at, name in enumerate(TALK):
            place = (self.case.number * TALKS + nth) * len(TALK) + at
            self._plant(1_000 * (nth + 1) + at, name, place, of_talk)

    def _plant(self, number: int, name: str, place: int, kinds: Callable[[str], list[str]]) -> None:
        """Store one forgery of those kinds through one input. What is refused with a named error is as good as made harmless."""
        mark = f"zq{self.case.chance.getrandbits(44):011x}"
        texts = kinds(mark)
        # All of them in turn, in an order by chance: a quick round has each at least once, whatever its seed.
        random.Random(f"{self.round.seed}/{kinds.__name__}/{place // len(texts)}").shuffle(texts)
        text = texts[place % len(texts)]
        if self.case.chance.random() < 0.5:
            text = f"About {GOAL}: {text}"
        trust, put = INPUTS[name]
        self.round.count("forgeries")
        self.clock.move(seconds=30)
        try:
            put(self, text, number)
        except perdure.PerdureError:
            self.round.count("refused")
            return
        self.round.met(f"stored as {name}")
        self.truth[mark], self.places[mark] = trust, f"{name}: {text!r:.200}"


# -- inputs: how a text gets in, and whose words it then is at most


def _said(role: str) -> Callable[[Life, str, int], object]:
    def put(life: Life, text: str, number: int) -> None:
        if role == "tool":
            call = perdure.ToolCall(f"c{number}", "search", {})
            life.ana.append("assistant", "I look it up.", tool_calls=[call])
            life.ana.append("tool", text, tool_call_id=f"c{number}")
        else:
            life.ana.append(role, text)

    return put


def _as_speaker(life: Life, text: str, number: int) -> None:
    life.ana.append("assistant", "I look it up.", tool_calls=[perdure.ToolCall(f"s{number}", "search", {})])
    life.ana.append("tool", f"The boat trip costs {number}.", tool_call_id=f"s{number}", metadata={"name": text})


def _as_message_id(life: Life, text: str, number: int) -> None:
    life.ana.append("system", f"The boat trip is number {number}.", id=text)


def _as_session(life: Life, text: str, number: int) -> None:
    life.ana.append("user", f"The boat trip with Zoe, day {number}.", session=text)


def _as_tool_call(life: Life, text: str, number: int) -> None:
    call = perdure.ToolCall(f"t{number}", "boat_search", {"query": text})
    life.ana.append("assistant", "The boat trip again.", tool_calls=[call])
    life.ana.append("tool", "None.", tool_call_id=f"t{number}")


def _imported(life: Life, text: str, number: int) -> None:
    export = json.dumps(
        {"results": [{"id": f"m{number}", "memory": text, "created_at": "2026-01-01T10:00:00+00:00", "user_id": "ana"}]}
    )
    report = life.ana.import_(io.BytesIO(export.encode("utf-8", "surrogatepass")), format="mem0")
    if not any(one.verdict == "added" for one in report.items):
        raise perdure.InvalidInput("it was refused")


def _remembered(life: Life, text: str, number: int) -> None:
    if life.ana.remember(text, "PEOPLE", entities=["person:zoe"], importance=2, pinned=bool(number % 2)).verdict == "refused":
        raise perdure.InvalidInput("it was refused")


def _as_entity(life: Life, text: str, number: int) -> None:
    made = life.ana.remember(
        f"Zoe knows number {number} of the boat trip", "PEOPLE", entities=[f"person:{text[:80]}"], importance=3
    )
    if made.verdict == "refused":
        raise perdure.InvalidInput("it was refused")


def _in_agent(life: Life, text: str, number: int) -> None:
    life.engine.memory("ana", agent=text).append("user", f"The boat trip by agent {number}.")


def _in_channel(life: Life, text: str, number: int) -> None:
    life.engine.memory("ana", channel=text).append("user", f"The boat trip on channel {number}.")


def _document(life: Life, text: str, number: int) -> None:
    """A message that comes by way of a context document."""
    documents = ContextManager(storage="store", engine=life.engine, user="ana")
    held = documents.load(f"ana:default:doc{number}")
    held.recent_history.append(HistoryEntry(int(life.clock.now().timestamp()), "system", text))
    documents.save(held)


INPUTS: dict[str, tuple[str, Callable[[Life, str, int], object]]] = {
    "a message of the user": ("user", _said("user")),
    "a message of the agent": ("agent", _said("assistant")),
    "a message of a tool": ("tool", _said("tool")),
    "a message of the system": ("import", _said("system")),
    "the name of a speaker": ("tool", _as_speaker),
    "the id of a message": ("import", _as_message_id),
    "the id of a session": ("user", _as_session),
    "the arguments of a call": ("agent", _as_tool_call),
    "an import": ("import", _imported),
    "a memory": ("user", _remembered),
    "the name of an entity": ("user", _as_entity),
    "a lesson": ("user", lambda life, text, number: life.ana.lessons.add(text)),
    "a model's lesson": ("agent", lambda life, text, number: life.ana.lessons.take_from(f"Fine.\nMEMORY_APPEND: {text}")),
    "a todo": ("user", lambda life, text, number: life.ana.todos.add(text, due_at=life.clock.now() + timedelta(hours=1))),
    "a standing wish": ("user", lambda life, text, number: life.ana.instructions.add(text)),
    "a state value": ("tool", lambda life, text, number: life.ana.state.save(f"boat_trip_{number}", {"Zoe": text})),
    "a state key": ("tool", lambda life, text, number: life.ana.state.save(text, "the boat trip with Zoe")),
    "a series entry": ("tool", lambda life, text, number: life.ana.series("boat_trip").merge([_entry(number, text)])),
    "the name of a series": ("tool", lambda life, text, number: life.ana.series(text).merge([_entry(number, "boat trip")])),
    "the words of a series": ("tool", lambda life, text, number: life.ana.series(f"boat_{number}").configure(description=text)),
    "the name of an agent": ("user", _in_agent),
    "the name of a channel": ("user", _in_channel),
    "a context document": ("import", _document),
    "the result of a tool": ("tool", lambda life, text, number: life.ana.after("getBoatProfile", {"trip": text}, mode="auto")),
}


TALK = ("a message of the user", "a message of the agent", "a message of a tool", "a message of the system")


def _entry(number: int, text: str) -> dict[str, object]:
    return {"id": f"e{number}", "timestamp": f"2026-01-02T10:{number % 60:02}:00Z", "word": text}


# -- outputs


def run(round: Round) -> None:
    marks = random.Random(round.seed)
    for case in round.cases(quick=8, full=160, name="stores"):
        with round.guarded("unhandled"):
            _forged(round, case)
    for case in round.cases(quick=2, full=20, name="floods"):
        with round.guarded("unhandled"):
            _flooded(round, case)
    for case in round.cases(quick=3, full=30, name="derivations"):
        with round.guarded("unhandled"):
            _derived(round, case, f"zq{marks.getrandbits(40):010x}")


def _opened(round: Round, clock: StoppedClock, **models: object) -> tuple[perdure.Engine, Path]:
    url = fresh_sqlite(round.folder)
    folder = round.folder / f"files-{Path(url).stem}"
    settings = Settings(
        url=url,
        profile="complete",
        layers=LAYERS,
        embedder="none",
        durability="normal",
        files_dir=str(folder / "transcripts"),
        agents_dir=str(folder / "agents"),
        save_results="auto",
        transcript_messages_min=0,
    )
    return perdure.open(settings=settings, clock=clock, **models), folder  # type: ignore[arg-type]


def _forged(round: Round, case: Case) -> None:
    clock = StoppedClock()
    engine, folder = _opened(round, clock)
    with engine:
        life = Life(round, case, engine, clock, folder)
        for number in range(PLANTS):
            life.forge(number)
            if case.chance.random() < 0.15:
                clock.move(hours=2)  # a new session
                engine.process(60)
        life.talk(0)
        _check_outputs(life)
        clock.move(hours=2)
        engine.process(60)
        life.talk(1)
        _check_outputs(life)
        _check_files(life)
        check_whole(round, engine, when="forgeries")
    shutil.rmtree(folder, ignore_errors=True)


def _check_outputs(life: Life) -> None:
    ana = life.ana
    context = ana.context(GOAL)
    _judge(life, "context.text", frame_reader.read(context.text, talks=True))
    _judge(life, "context.system", frame_reader.read(context.system))
    _judge(life, "context.tail", frame_reader.read(context.tail))
    _judge_list(life, context)
    for target in ("system", "goal"):
        given = ana.before(GOAL, target=target)
        if target == "goal":
            _judge_plain(life, "before(goal)", given.text.removeprefix(GOAL), "tool")
        else:
            _judge(life, "before.stable", frame_reader.read(given.stable))
            _judge(life, "before.tail", frame_reader.read(given.tail))
    _judge_lines(life, "prompt", ana.prompt(GOAL).part("memory"))
    _judge_chat(life)
    _judge_mcp(life)


def _judge_list(life: Life, context: Context) -> None:
    """The list for a chat model: frames of ours, and the words of each speaker in turns of their own."""
    framed = 0
    for message in context.as_messages():
        if message["role"] == "system":
            _judge(life, "context as messages", frame_reader.read(message["content"]))
            continue
        where = f"a {message['role']} message of the context"
        framed += _judge_turn(life, where, message["role"], message["content"], context.tail)
        for call in message.get("tool_calls", ()):
            _judge_plain(life, "a call of the context", call["function"]["arguments"], "assistant")
    made = {call.id for message in context.messages for call in message.tool_calls}
    stray = sum(
        message.role == "system" or (message.role == "tool" and message.tool_call_id not in made)
        for message in context.messages
    )
    life.round.check(framed <= stray, "forged", f"{framed} frames in turns for {stray} messages that have one")


def _judge_turn(life: Life, where: str, role: str, content: str, tail: str) -> int:
    """One turn: the words of its speaker, and in the user's the frames of ours; how many of those are of the log."""
    if role == "user" and tail and tail in content:
        _judge(life, where, frame_reader.read(tail))
        content = content.replace(tail, "", 1)
    frames = LOG_FRAME.findall(content) if role == "user" else []
    for found in frames:
        _judge(life, where, frame_reader.read(found))
        content = content.replace(found, "", 1)
    _judge_plain(life, where, content, role)
    return len(frames)


def _judge_chat(life: Life) -> None:
    """What the chat of the command line sends to a model."""
    ana = life.ana
    given, talk = ana.before(GOAL, target="system"), ana.context()
    consultant = life.engine._services.oversight.keeper.consultant
    for message in Chat(ana, consultant)._messages(GOAL, given, talk.blocks, talk.messages):
        if message.role != "system":
            _judge_turn(life, f"a {message.role} message of the chat", message.role, message.content, given.tail)
        else:
            frames = message.content[message.content.find("<memory ") :] if "<memory " in message.content else ""
            life.round.count("texts read")
            for wrong in frame_reader.plain(re.sub(r"</?memory[ >]", "", frames)):
                life.round.wrong("forged", f"chat: {wrong}")


def _judge_mcp(life: Life) -> None:
    """Every reading tool, prompt and resource of the MCP server."""
    caller = McpOwner(life.engine, life.ana)
    wanted = {
        "recall": {"query": GOAL},
        "getContext": {"goal": GOAL},
        "listMemories": {},
        "listTodos": {},
        "listLessons": {},
        "listSessions": {},
        "beforeGoal": {"goal": GOAL},
        "listChanges": {},
    }
    for offer in sets.offers(life.ana.tools, "all"):
        if offer.name not in wanted:
            continue
        answer = offer.run(caller, wanted[offer.name])
        life.round.check(not answer.failed, "unhandled", f"{offer.name}: {answer.text}")
        text = "\n".join(line for line in answer.text.split("\n") if not line.startswith("left out: "))
        if offer.name == "beforeGoal":
            _judge_plain(life, "beforeGoal", re.sub(r"</?memory[ >]", "", text), "tool")
        else:
            _judge(life, f"MCP {offer.name}", frame_reader.read(text))
        life.round.met("MCP tools read")
    for session in life.ana.conversation.sessions(5):
        offer = next(one for one in sets.offers(life.ana.tools, "all") if one.name == "readSession")
        _judge(life, "MCP readSession", frame_reader.read(offer.run(caller, {"session": session.id}).text))
    for prompt in prompts.PROMPTS.values():
        given = {one.name: GOAL for one in prompt.arguments}
        text = prompt.text(life.ana, given)
        start = text.find("\n<memory ")
        if start >= 0 and prompt.name != "plan_goal":
            _judge(life, f"MCP prompt {prompt.name}", frame_reader.read(text[start + 1 :]))
    for kind in resources.KINDS:  # as JSON, which no text can leave
        json.loads(resources.read(life.ana, kind.uri))
    for listed in resources.things(life.ana):
        for wrong in frame_reader.plain(f"{listed.name} {listed.title}"):
            life.round.wrong("forged", f"a resource's name: {wrong}")


def _judge(life: Life, where: str, reading: frame_reader.Reading) -> None:
    life.round.count("texts read")
    life.round.count("frames read", reading.frames)
    for wrong in reading.wrongs:
        life.round.wrong("forged", f"{where}: {wrong}")
    for mark, truth in life.truth.items():
        for said, kind in reading.trust_of(mark):
            life.round.met("forgeries seen in a prompt")
            most = TRUSTS.index(truth)
            if said not in TRUSTS or TRUSTS.index(said) > most:
                life.round.wrong("wrong source", f"{where}: {life.places[mark]} is shown in {kind} as of {said}")


def _judge_plain(life: Life, where: str, text: str, role: str) -> None:
    life.round.count("texts read")
    for wrong in frame_reader.plain(text):
        life.round.wrong("forged", f"{where}: {wrong}: {text!r:.200}")
    for mark, truth in life.truth.items():
        if mark in text and TRUSTS.index(frame_reader.TRUST_OF[role]) > TRUSTS.index(truth):
            life.round.wrong("wrong source", f"{where}: {life.places[mark]} is said by {role}")


def _judge_lines(life: Life, where: str, text: str) -> None:
    """A heading of ours, then one line for each lesson; what a model noted stands behind it, under a heading of its own."""
    for wrong in frame_reader.plain(text):
        life.round.wrong("forged", f"{where}: {wrong}")
    lines = text.split("\n")
    taught, noted = lines[1:], lines[1:] if lines[0] == NOTES else []
    if NOTES in taught:
        noted = taught[taught.index(NOTES) + 1 :]
        taught = taught[: taught.index(NOTES)] + noted
    for line in taught:
        life.round.check(line.startswith("- "), "forged", f"{where}: {line!r:.200}")
    for mark, truth in life.truth.items():
        if truth == "agent" and mark in text:
            told = any(mark in line for line in noted)
            life.round.check(told, "wrong source", f"{where}: {life.places[mark]} does not stand under the agent's notes")


def _check_files(life: Life) -> None:
    """Transcripts, the vault and the books: the words of others stand where a reader knows them for such."""
    vault = life.folder / "vault"
    life.ana.export(vault, format="vault")
    for path in sorted(life.folder.rglob("*.md")):
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
        is_transcript = path.name.startswith("session-memory-")
        if is_transcript:
            life.round.met("transcripts read")
        quoted = ("> ", ">", "<!-- perdure:") if is_transcript else ("> ", "- ", "    ")
        inside = ""
        head = not is_transcript and text.startswith("---\n")
        for line in re.split(r"\r\n|\n|\r", text)[1 if head else 0 :]:
            if head:
                head = line != "---"
                continue
            fence = re.match(r"(`{3,})", line)
            if not is_transcript and fence and (not inside or line == inside):
                inside = "" if inside else fence[1]
                continue
            if inside or line.startswith(quoted) or (not is_transcript and line.startswith("# ")):
                continue
            free = re.sub(r"(?<!`)(`+)(?!`).+?(?<!`)\1(?!`)", "", line)
            for mark, where in life.places.items():
                life.round.check(mark not in free, "forged", f"{path.name}: {where} stands free: {line!r:.200}")
    life.round.met("files read")
    for scope in ("user", "global"):
        for line in life.ana.lessons.text(scope).split("\n"):
            for mark, where in life.places.items():
                life.round.check(
                    mark not in line or line.startswith("- "), "forged", f"the {scope} book: {where}: {line!r:.200}"
                )


# -- floods


def _flooded(round: Round, case: Case) -> None:
    """Hundreds of fitting words of tools and imports; a handful of the user's. Each context keeps to the share."""
    clock = StoppedClock()
    engine, folder = _opened(round, clock)
    with engine:
        ana = engine.memory("ana")
        for text in GENUINE:
            ana.remember(text)
        ana.append("user", "Zoe must not pay more than 90 euros.")
        clock.move(hours=2)
        _pour(ana, clock, case.chance)
        clock.move(hours=2)
        engine.process(120)
        for budget in (case.chance.randrange(400, 900), 2_000, 6_000):
            context = ana.context(GOAL, budget_tokens=budget)
            _check_share(round, f"context of {budget}", context.system + "\n" + context.tail, budget)
            kept = [text for text in (*GENUINE, "90 euros") if text not in context.text]
            round.check(not kept, "pushed out", f"context of {budget} under a flood lacks {kept}")
            given = ana.before(f"Plan {GOAL}", budget_tokens=budget, target="system")
            _check_share(round, f"before of {budget}", given.text, budget)
        round.met("floods")
    shutil.rmtree(folder, ignore_errors=True)


def _pour(ana: perdure.Memory, clock: StoppedClock, chance: random.Random) -> None:
    rows = [
        {
            "id": f"i{at}",
            "memory": f"The boat trip with Zoe, the boat trip with Zoe, plan {at} of {chance.getrandbits(30)}",
            "user_id": "ana",
            "created_at": "2026-01-01T10:00:00+00:00",
        }
        for at in range(FLOOD)
    ]
    ana.import_(io.BytesIO(json.dumps({"results": rows}).encode()), format="mem0")
    for at in range(FLOOD // 2):
        call = perdure.ToolCall(f"f{at}", "search", {})
        ana.append("assistant", "Looking.", tool_calls=[call])
        ana.append(
            "tool",
            f"The boat trip with Zoe, the boat trip with Zoe, offer {at}: {chance.getrandbits(30)}.",
            tool_call_id=f"f{at}",
        )
        clock.move(seconds=1)


def _check_share(round: Round, where: str, text: str, budget: int) -> None:
    reading = frame_reader.read(text)
    for wrong in reading.wrongs:
        round.wrong("forged", f"{where}: {wrong}")
    found = [item for item in reading.items if item.trust in ("tool", "import") and item.kind not in ("state", "series")]
    tokens = sum(estimate_tokens(item.text) for item in found)
    round.count("contexts under a flood")
    round.check(tokens <= budget * UNTRUSTED_SHARE * ROOM, "share", f"{where}: {tokens} tokens of {budget} are not trusted")
    if found:
        round.met("untrusted words in a context")


# -- what is derived


class _Citing:
    """An extractor of somebody's that cites the messages it is told to, whoever said them."""

    name = "citing/1"

    def __init__(self, roles: tuple[str, ...], content: str, value: str) -> None:
        self.roles, self.content, self.value = roles, content, value

    def extract(self, request: ExtractionRequest) -> Extraction:
        cited = [one for one in request.messages if one.role in self.roles and one.content]
        evidence = tuple(Evidence(one.id, 0, len(one.content), one.at) for one in cited)
        if not evidence:
            return Extraction()
        return Extraction(
            (Proposal("PROFILE", "fact", self.content, attribute="lives_in", value=self.value, evidence=evidence),)
        )


def _derived(round: Round, case: Case, mark: str) -> None:
    """From messages of some roles, by an extractor and by the summariser; then the user says the same thing themselves."""
    clock = StoppedClock()
    roles = tuple(case.chance.sample(("user", "assistant", "tool", "system"), case.chance.randrange(1, 5)))
    if case.number % 3 == 0:
        roles = ("tool",)
    least = min((frame_reader.TRUST_OF[role] for role in roles), key=TRUSTS.index)
    claim = f"Lives in Austin and {plain_facts(mark)[0].lower()}"
    extractor = _Citing(roles, claim, "Austin")
    engine, folder = _opened(round, clock, extractor=extractor)
    with engine:
        ana = engine.memory("ana")
        for at in range(3):
            for role in roles:
                if role == "tool":
                    ana.append("assistant", "", tool_calls=[perdure.ToolCall(f"d{at}", "look", {})])
                fields = {"tool_call_id": f"d{at}"} if role == "tool" else {}
                ana.append(role, f"The user lives in Austin, {at}.", **fields)
                clock.move(seconds=5)
        ana.append("user", "Thanks for that.")
        ana.memories.extract()
        [held] = _lives(ana)
        round.check(held.trust == least, "trust", f"from {roles} the statement has trust {held.trust}, not {least}")
        round.met("derived statements")
        clock.move(hours=2)
        engine.process(60)
        _check_digests(round, ana, roles)
        extractor.roles, extractor.content = ("user",), "Lives in Austin"
        ana.append("user", "I live in Austin.")
        ana.memories.extract()
        [held] = _lives(ana)
        round.check(held.trust == "user", "trust", f"the user's own word has trust {held.trust}")
        round.check(
            least == "user" or mark not in held.content, "laundered", f"a {least}'s wording is now the user's: {held.content}"
        )
        extractor.roles, extractor.content = ("tool",), f"Lives in Austin, says {mark}"
        ana.append("assistant", "", tool_calls=[perdure.ToolCall("again", "look", {})])
        ana.append("tool", "Lives in Austin.", tool_call_id="again")
        ana.memories.extract()
        [held] = _lives(ana)
        round.check(held.trust == "user", "trust", f"a tool that repeats it lowers the trust to {held.trust}")
        round.check(f"says {mark}" not in held.content, "laundered", f"a tool has reworded the user's own: {held.content}")
    shutil.rmtree(folder, ignore_errors=True)


def _lives(ana: perdure.Memory) -> list[perdure.Statement]:
    return [one for memory in ana.memories.list() for one in memory.statements if one.attribute == "lives_in" and one.is_live()]


def _check_digests(round: Round, ana: perdure.Memory, roles: tuple[str, ...]) -> None:
    """A digest is trusted no more than the least of what it tells of, nor more than an agent."""
    heard = {frame_reader.TRUST_OF[role] for role in (*roles, "assistant")}
    least = min(heard, key=TRUSTS.index)
    hits = [hit for hit in ana.recall("Where does the user live? Austin", limit=50).hits if hit.kind == "digest"]
    for hit in hits:
        round.met("derived digests")
        round.check(hit.trust == least, "trust", f"a digest of {roles} has trust {hit.trust}, not {least}")


def _evidence() -> Iterator[str]:
    yield from (f"stored as {name}" for name in ("a message of a tool", "a memory", "an import", "a state value"))
    yield from ("forgeries seen in a prompt", "MCP tools read", "transcripts read", "files read", "floods")
    yield from ("untrusted words in a context", "derived statements", "derived digests")


PROMISE = Promise(
    id="P17",
    says="stored text cannot pose as instructions or as another source",
    tried_by="forged frames, lines, turns and invisible text through every input, read back by an independent reader; floods; derived trust",
    run=run,
    evidence=tuple(_evidence()),
    figure="{wrong} forged, mislabelled or laundered of {forgeries} forgeries ({refused} refused) in {texts read} texts, {floods} floods",
)
