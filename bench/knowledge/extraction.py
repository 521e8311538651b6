"""How right the offline extractor is: precision and recall on labelled conversations, with 95 % intervals.

Every conversation of `conversations.jsonl` is extracted in one request and compared with what a careful reader would keep.

What counts as right. A proposal is right if it can be paired with one expected statement that has no other partner, and
- type, attribute and subject are the same (a label is compared without case; no subject is the user),
- the value is the same without case, articles and punctuation, or holds all expected words and at most two others,
- both say that it has ended, or neither does; both correct something said before, or neither does,
- if the label names a day since when it is so, `valid_from` is that day in the zone of the conversation.
A statement without an attribute (a habit) is right if its content holds all expected words. A todo is right if kind and
`done` are the same, its content holds all expected words, and due day and recurrence are those of the label where it has one.
Statements marked optional are such as two readers would differ about: found or not, they count neither way.

Precision is the share of proposals that are right, recall the share of expected statements found. Intervals are bootstrapped
over conversations.

How far to trust it. Rules were changed by looking at failures of the part `tune` only. Of the part `report`, r001 to r087 were
written before any rule was changed, r101 to r130 after, and run once. One person wrote rules and labels, and so knew what
the report part holds: at least two changes (a `no` that answers a question corrects nothing; names with dots) were thought
of with cases of it in mind. When the attribute `avoids` was added, r009 and r040 got it as an optional label. The conversations
are short, clean and English: expect less on real talk.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

sys.path.insert(0, str(Path(__file__).parents[1]))

import machine
from perdure.domain.conversation.messages import Message
from perdure.domain.knowledge.proposals import ExtractionRequest, Proposal, TodoProposal
from perdure.domain.scope import MessageId, SessionId
from perdure.engine.extraction.extractor import RuleExtractor

LABELS = Path(__file__).with_name("conversations.jsonl")
AIMS = {"precision": 0.95, "recall": 0.6}
EXTRA_WORDS = 2
_KINDS = {
    "who": "name age birthday birth_year email phone timezone trait speaks learning marital_status children drives has_pet "
    "pronouns plays",
    "places": "lives_in from",
    "work": "works_at job_title studies_at member_of employment",
    "relations": "partner manager has_child relation",
    "preferences": "likes dislikes prefers diet allergy avoids",
}
GROUPS = {attribute: kind for kind, attributes in _KINDS.items() for attribute in attributes.split()}


@dataclass
class Count:
    """Proposals made and right, statements expected and found, of one kind."""

    proposed: int = 0
    right: int = 0
    expected: int = 0
    found: int = 0


@dataclass
class Outcome:
    """One conversation: counts by kind, and what went wrong in words."""

    id: str
    part: str
    counts: dict[str, Count] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    def of(self, kind: str) -> Count:
        return self.counts.setdefault(kind, Count())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--failures", choices=["tune", "report"], help="list what was wrong or missed in one part")
    options = parser.parse_args()
    conversations = [json.loads(line) for line in LABELS.read_text(encoding="utf-8").splitlines()]
    outcomes = [judged(conversation) for conversation in conversations]
    started = time.perf_counter()  # of a second run: the first one compiles the patterns
    for conversation in conversations:
        judged(conversation)
    seconds = time.perf_counter() - started
    header = {
        "cpu": machine.cpu_model(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "extractor": RuleExtractor.name,
        "seed of the intervals": "0",
        "conversations": str(len(conversations)),
        "messages per second": f"{sum(len(one['messages']) for one in conversations) / seconds:,.0f}",
    }
    parts = {part: figures([one for one in outcomes if one.part == part]) for part in ("tune", "report")}
    if options.json:
        print(json.dumps({"machine": header, "parts": parts}, indent=2))
        return
    for key, value in header.items():
        print(f"{key:24}{value}")
    for part, rows in parts.items():
        show(part, rows)
    for outcome in outcomes:
        if outcome.part == options.failures and (outcome.wrong or outcome.missed):
            print(
                f"\n{outcome.id}",
                *(f"  wrong  {one}" for one in outcome.wrong),
                *(f"  missed {one}" for one in outcome.missed),
                sep="\n",
            )


def show(part: str, rows: dict[str, dict[str, Any]]) -> None:
    print(f"\n{part:16}{'proposed':>9}{'expected':>9}   {'precision':>9}  {'95 % interval':16}{'recall':>7}  95 % interval")
    for kind, row in rows.items():
        cells = []
        for name in ("precision", "recall"):
            one = row[name]
            cells.append(f"{one['value']:9.3f}  {one['low']:.3f} to {one['high']:.3f}  " if one else f"{'–':>9}{'':18}")
        print(f"{kind:16}{row['proposed']:9}{row['expected']:9}   {cells[0]}{cells[1]}".rstrip())
    whole = rows["all"]
    aims = [
        f"{name} {'met' if whole[name]['value'] >= aim else 'MISSED'} (aim {aim})" for name, aim in AIMS.items() if whole[name]
    ]
    print("  " + ", ".join(aims))


def figures(outcomes: Sequence[Outcome]) -> dict[str, dict[str, Any]]:
    """Precision and recall of each kind and of all."""
    kinds = sorted({kind for outcome in outcomes for kind in outcome.counts})
    return {kind: _row([outcome.counts.get(kind, Count()) for outcome in outcomes]) for kind in kinds} | {
        "all": _row([_total(outcome) for outcome in outcomes])
    }


def _total(outcome: Outcome) -> Count:
    counts = outcome.counts.values()
    return Count(*(sum(getattr(one, name) for one in counts) for name in ("proposed", "right", "expected", "found")))


def _row(counts: Sequence[Count]) -> dict[str, Any]:
    def share(top: str, bottom: str) -> dict[str, float] | None:
        if not any(getattr(one, bottom) for one in counts):
            return None

        def figure(numbers: Sequence[int]) -> float:
            below = sum(getattr(counts[number], bottom) for number in numbers)
            return sum(getattr(counts[number], top) for number in numbers) / below if below else 1.0

        return asdict(machine.resampled(figure, len(counts)))

    whole = {name: sum(getattr(one, name) for one in counts) for name in ("proposed", "expected")}
    return {**whole, "precision": share("right", "proposed"), "recall": share("found", "expected")}


def judged(conversation: dict[str, Any]) -> Outcome:
    """One conversation extracted and compared with its labels."""
    zone = ZoneInfo(conversation["zone"])
    extraction = RuleExtractor(own_words=False).extract(ExtractionRequest(messages_of(conversation), zone=conversation["zone"]))
    outcome = Outcome(conversation["id"], conversation["part"])
    _pair(outcome, extraction.proposals, conversation["facts"], lambda one, label: same_fact(one, label, zone), _kind_of_fact)
    _pair(outcome, extraction.todos, conversation["todos"], lambda one, label: same_todo(one, label, zone), lambda _: "todos")
    return outcome


def messages_of(conversation: dict[str, Any]) -> tuple[Message, ...]:
    return tuple(
        Message(
            MessageId(f"{conversation['id']}-{index}"),
            SessionId("s"),
            1,
            index,
            one["role"],
            one["content"],
            datetime.fromisoformat(one["at"]),
            1,
            {},
        )
        for index, one in enumerate(conversation["messages"], start=1)
    )


def _pair(outcome: Outcome, proposals: Sequence[Any], labels: list[dict[str, Any]], same: Any, kind: Any) -> None:
    left = sorted(labels, key=lambda label: label.get("optional", False))
    for label in left:
        if not label.get("optional"):
            outcome.of(kind(label)).expected += 1
    for one in proposals:
        label = next((label for label in left if same(one, label)), None)
        if label is not None:
            left.remove(label)
            if label.get("optional"):
                continue
            outcome.of(kind(label)).found += 1
            outcome.of(kind(label)).right += 1
            outcome.of(kind(label)).proposed += 1
        else:
            outcome.of(kind(one)).proposed += 1
            outcome.wrong.append(_worded(one))
    outcome.missed.extend(json.dumps(label, ensure_ascii=False) for label in left if not label.get("optional"))


def _worded(one: Proposal | TodoProposal) -> str:
    if isinstance(one, TodoProposal):
        return f"todo {one.kind} {one.content!r} due {one.due_at} {one.recurrence or ''} {'done' if one.done else ''}".rstrip()
    flags = f"{' ended' if one.ended else ''}{' corrects' if one.corrects else ''}"
    return (
        f"{one.type} {one.subject.label + '.' if one.subject else ''}{one.attribute}={one.value!r} "
        f"{one.content!r} from {one.valid_from}{flags}"
    )


def _kind_of_fact(one: Proposal | dict[str, Any]) -> str:
    label = one if isinstance(one, dict) else {"type": one.type, "attribute": one.attribute, "subject": one.subject}
    if label["type"] == "PROJECT":
        return "projects"
    if label["attribute"] is None:
        return "habits"
    if label["attribute"].startswith("favorite_"):
        return "preferences"
    group = GROUPS.get(label["attribute"], "other")
    return "people" if label["subject"] and group != "relations" else group


def same_fact(one: Proposal, label: dict[str, Any], zone: ZoneInfo) -> bool:
    if (one.type, one.attribute, one.ended, one.corrects) != (
        label["type"],
        label["attribute"],
        label["ended"],
        label["corrects"],
    ):
        return False
    if (one.subject.label.casefold() if one.subject else None) != (label["subject"].casefold() if label["subject"] else None):
        return False
    since = label.get("valid_from")
    if since and (one.valid_from is None or one.valid_from.astimezone(zone).date().isoformat() != since):
        return False
    if label["attribute"] is None:
        return one.fact_type == label["fact_type"] and set(map(str.lower, label["words"])) <= words(one.content)
    said, wanted = words(one.value or ""), words(label["value"])
    return wanted <= said and len(said - wanted) <= EXTRA_WORDS


def same_todo(one: TodoProposal, label: dict[str, Any], zone: ZoneInfo) -> bool:
    if (one.kind, one.done) != (label["kind"], label["done"]) or not set(map(str.lower, label["words"])) <= words(one.content):
        return False
    due = label.get("due")
    if due and (one.due_at is None or one.due_at.astimezone(zone).date().isoformat() != due):
        return False
    return not label.get("cron") or bool(one.recurrence and one.recurrence.endswith(label["cron"]))


def words(text: str) -> set[str]:
    return {
        word
        for word in re.findall(r"[\w@.+:-]+", text.lower().replace("’", "'"))
        for word in [word.strip(".:-")]
        if word not in ("a", "an", "the", "")
    }


if __name__ == "__main__":
    main()
