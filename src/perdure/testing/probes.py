"""Probes of a compaction: conversations with planted ids, rules, questions and decisions, and a count of what is left of them.

Works for any summariser: give `run_probes` a function from a conversation to the text that the agent would see. The set has
two halves, `TUNE` to improve a summariser on and `REPORT` to measure it with; figures to quote come from `REPORT`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from typing import Literal, get_args

from perdure.domain.conversation.messages import Message, NewMessage, Role, ToolCall
from perdure.domain.scope import MessageId, SessionId, ToolCallId
from perdure.domain.values import dataclass, replace

PlantKind = Literal["identifier", "constraint", "question", "decision"]
PLANT_KINDS: tuple[PlantKind, ...] = get_args(PlantKind)
Half = Literal["tune", "report"]

STEP = timedelta(seconds=50)
"""Between two messages of a probe."""


@dataclass(frozen=True, slots=True)
class Plant:
    """Words that must survive, exactly as they stand in the message with this index."""

    kind: PlantKind
    text: str
    index: int


@dataclass(frozen=True, slots=True)
class Probe:
    """A conversation, and what was planted in it."""

    name: str
    half: Half
    language: str
    messages: tuple[NewMessage, ...]
    plants: tuple[Plant, ...]

    def stored(self) -> tuple[Message, ...]:
        """The messages as a store would hold them, for what takes those."""
        return tuple(_as_held(self.name, index, message) for index, message in enumerate(self.messages))


@dataclass(frozen=True, slots=True)
class ProbeScore:
    """What was found of the plants of one probe."""

    name: str
    found: tuple[Plant, ...]
    missing: tuple[Plant, ...]


@dataclass(frozen=True, slots=True)
class ProbeReport:
    """The scores of a run."""

    scores: tuple[ProbeScore, ...]

    def share(self, *kinds: PlantKind) -> float:
        """The share of plants of these kinds, or of all, that were there; 1 if nothing was planted."""
        wanted = kinds or PLANT_KINDS
        found = sum(plant.kind in wanted for score in self.scores for plant in score.found)
        missing = sum(plant.kind in wanted for score in self.scores for plant in score.missing)
        return found / (found + missing) if found + missing else 1.0

    def __str__(self) -> str:
        lines = [f"{kind:11} {self._tally(kind)}" for kind in PLANT_KINDS]
        lost = [f"  {score.name}: {plant.kind}: {plant.text}" for score in self.scores for plant in score.missing]
        return "\n".join([*lines, *(["missing:", *lost] if lost else [])])

    def _tally(self, kind: PlantKind) -> str:
        found = sum(plant.kind == kind for score in self.scores for plant in score.found)
        total = found + sum(plant.kind == kind for score in self.scores for plant in score.missing)
        return f"{found:4} of {total:4}  {self.share(kind):7.1%}"


def score_probe(seen_text: str, plants: Iterable[Plant], *, name: str = "") -> ProbeScore:
    """Which plants stand in `seen_text`, letter by letter; only runs of white space count as one space."""
    seen = _spaced(seen_text)
    kept = [(plant, _spaced(plant.text) in seen) for plant in plants]
    return ProbeScore(name, tuple(plant for plant, ok in kept if ok), tuple(plant for plant, ok in kept if not ok))


def run_probes(compact: Callable[[Probe], str], probes: Sequence[Probe] | None = None) -> ProbeReport:
    """Compact each probe and count. `compact` answers with all that the agent would see in place of the messages."""
    chosen = PROBES if probes is None else probes
    return ProbeReport(tuple(score_probe(compact(probe), probe.plants, name=probe.name) for probe in chosen))


_HEADER = re.compile(
    r"half: (?P<half>tune|report)\nlanguage: (?P<language>\w+)\nstarts: (?P<starts>\S+)\n---\n(?P<body>.+)", re.DOTALL
)
_FOLDER = files("perdure.testing") / "conversations"
_LINE = re.compile(r"(user|assistant|tool|call|include): (.*)")
_PLANT = re.compile(r"\[\[(identifier|constraint|question|decision)\|(.+?)\]\]")


def _read_probe(name: str, text: str) -> Probe:
    """A conversation file: a header, then `role: words`; further lines of a message are indented; plants are in brackets.

    A `call:` belongs to the message of the assistant before it, and the next `tool:` is its result. An `include:` is a talk
    about something else, long and full of figures, in which nothing is planted: what a summary must not drown in.
    """
    header = _HEADER.fullmatch(text)
    if header is None:
        raise ValueError(f"conversation {name} has no header")
    at = datetime.fromisoformat(header["starts"]).replace(tzinfo=UTC)
    messages: list[NewMessage] = []
    plants: list[Plant] = []
    for role, raw in _turns(header["body"]):
        if role == "call":
            tool, _, arguments = raw.partition(" ")
            call = ToolCall(ToolCallId(f"call-{len(messages)}"), tool, json.loads(arguments))
            if messages and messages[-1].role == "assistant" and not messages[-1].tool_calls:
                messages[-1] = replace(messages[-1], tool_calls=(call,))
            else:
                messages.append(NewMessage("assistant", "", at=at + len(messages) * STEP, tool_calls=(call,)))
            continue
        plants += [Plant(kind, planted, len(messages)) for kind, planted in _PLANT.findall(raw)]
        answers = messages[-1].tool_calls[0].id if role == "tool" else None
        messages.append(NewMessage(role, _PLANT.sub(r"\2", raw), at=at + len(messages) * STEP, tool_call_id=answers))
    half: Half = header["half"]  # type: ignore[assignment]
    return Probe(name, half, header["language"], tuple(messages), tuple(plants))


def _turns(body: str) -> list[tuple[str, str]]:
    turns: list[tuple[str, str]] = []
    for line in body.splitlines():
        match = _LINE.fullmatch(line)
        if match is not None and match[1] == "include":
            turns += _turns((_FOLDER / "digressions" / f"{match[2]}.txt").read_text(encoding="utf-8"))
        elif match is not None:
            turns.append((match[1], match[2]))
        elif line.startswith("  "):
            role, words = turns[-1]
            turns[-1] = (role, f"{words}\n{line[2:]}")
        else:
            raise ValueError(f"a line of a conversation is neither a turn nor indented: {line[:20]!r}")
    return turns


def _as_held(name: str, index: int, message: NewMessage) -> Message:
    role: Role = message.role  # type: ignore[assignment]
    call = ToolCallId(message.tool_call_id) if message.tool_call_id else None
    return Message(
        id=MessageId(f"{name}-{index}"),
        session=SessionId(name),
        session_number=1,
        seq=index + 1,
        role=role,
        content=message.content,
        at=message.at or datetime(2026, 1, 1, tzinfo=UTC),
        tokens=0,
        metadata={},
        tool_calls=tuple(message.tool_calls),
        tool_call_id=call,
    )


def _spaced(text: str) -> str:
    return " ".join(text.split())


def _all_probes() -> tuple[Probe, ...]:
    names = sorted(entry.name for entry in _FOLDER.iterdir() if entry.name.endswith(".txt"))
    return tuple(_read_probe(name.removesuffix(".txt"), (_FOLDER / name).read_text(encoding="utf-8")) for name in names)


PROBES = _all_probes()
TUNE = tuple(probe for probe in PROBES if probe.half == "tune")
REPORT = tuple(probe for probe in PROBES if probe.half == "report")
