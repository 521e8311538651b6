"""Which messages tell something that lasts: a judge that learns from the writers in `sentences/train`, reported on the others.

    python bench/knowledge/judge.py            fit on the writers of `train`, report on those who were held out
    python bench/knowledge/judge.py --cross    each writer of `train`, judged by the others of that part
    python bench/knowledge/judge.py --learn    what perdure, with rules and judge, keeps of the writers who were held out
    python bench/knowledge/judge.py --pairs    what it ends or replaces of what was noted, for the writers who were held out
    python bench/knowledge/judge.py --chats    what it ends of what was said before in whole chats, rightly and wrongly
    python bench/knowledge/judge.py --calls    of which of their messages a chat model is not asked, and what is lost by that

The judge is `perdure.engine.extraction.judge`; `tools/build_judge.py` fits it as it is shipped. The first two judge without
rules and without the checks of `verbatim`, the last one measures all of it.

Each line of `sentences/PART/WRITER/LANGUAGE.tsv` is a message as somebody types it, with what it tells (see
`sentences/README.md`). A message is judged by its likeliest sentence. *Kept* is the share of the messages that tell something
which pass the threshold, *wrong* the share of the others that do. The threshold is chosen on the part `train` by
cross-validation over its writers; the part `held` is not read when anything is fitted or chosen. Intervals are 95 %,
bootstrapped over messages.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

import perdure
from perdure.engine.extraction.judge import BITS, KINDS, features, probabilities
from perdure.engine.extraction.verbatim import surely_tells_nothing
from perdure.engine.text.sentences import sentence_spans
from perdure.testing import StoppedClock

FOLDER = Path(__file__).with_name("sentences")
EPOCHS, RATE, HOLD, SEED = 12, 0.5, 1e-6, 1
PAIR_WEIGHT = 3.0
WRONG_MAX = 0.04
"""The share of messages that tell nothing which may pass, on the part to fit on: less than the aim, as others' are harder."""
DRAWS = 1_000
STORE_USERS = 150
"""Users of one store in memory, which looks through all of them for each: more would only take longer."""
NOW = datetime(2026, 6, 15, 8, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class LabelledMessage:
    """A message as a writer wrote it, and what it tells."""

    writer: str
    language: str
    register: str
    kind: str
    text: str
    marked: tuple[int, int]
    """Where in the text that stands."""

    def sentences(self) -> list[tuple[str, str]]:
        """Each sentence with what it tells."""
        found = [
            (self.text[start:end], self.kind if start < self.marked[1] and self.marked[0] < end else "nothing")
            for start, end in sentence_spans(self.text)
        ]
        return found or [(self.text, self.kind)]


@dataclass(frozen=True, slots=True)
class LabelledPair:
    """A note and a message, and whether the message ends or replaces what the note says."""

    writer: str
    language: str
    relation: str
    known: str
    said: str

    @property
    def closes(self) -> bool:
        return self.relation in ("updates", "ends")


RELATIONS = ("same", "updates", "ends", "unrelated")


def read_pairs(part: str) -> list[LabelledPair]:
    """The pairs of a part; a line that is not of the form ends the run."""
    found = []
    for path in sorted((FOLDER / part).glob("*/pairs.tsv")):
        for number, row in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            fields = row.split("\t")
            if len(fields) != 4 or fields[1] not in RELATIONS:
                sys.exit(f"{path}:{number}: {row[:80]!r} is not `language<TAB>relation<TAB>known<TAB>said`")
            found.append(LabelledPair(path.parent.name, *fields))
    return found


@dataclass(frozen=True, slots=True)
class LabelledChat:
    """What one person said over some weeks, and of each message the places of the earlier ones of which it ends something."""

    writer: str
    language: str
    messages: tuple[tuple[str, tuple[int, ...]], ...]


def read_chats(part: str) -> list[LabelledChat]:
    """The chats of a part."""
    found = []
    for path in sorted((FOLDER / part).glob("*/chats.jsonl")):
        for row in path.read_text(encoding="utf-8").splitlines():
            chat = json.loads(row)
            messages = tuple((text, tuple(ends[0]) if ends else ()) for text, *ends in chat["messages"])
            found.append(LabelledChat(path.parent.name, chat["language"], messages))
    return found


def read(part: str) -> list[LabelledMessage]:
    """The messages of a part; a line that is not of the form ends the run."""
    return [
        _labelled(path, number, line)
        for path in sorted((FOLDER / part).glob("*/??.tsv"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    ]


def _labelled(path: Path, number: int, line: str) -> LabelledMessage:
    fields = line.split("\t")
    if len(fields) != 3 or fields[1] not in KINDS:
        sys.exit(f"{path}:{number}: {line[:80]!r} is not `register<TAB>kind<TAB>text` with a kind of {', '.join(KINDS)}")
    before, mark, rest = fields[2].partition("[[")
    inside, _, after = rest.partition("]]")
    text = before + inside + after
    marked = (len(before), len(before) + len(inside)) if mark else (0, len(text))
    return LabelledMessage(path.parent.name, path.stem, fields[0], fields[1], text, marked)


# -- fitting


def likelihoods(weights: np.ndarray, places: Sequence[int] | np.ndarray) -> list[float]:
    """The probability of each kind."""
    return probabilities((weights[places].sum(axis=0) / math.sqrt(len(places))).tolist())


def fitted(messages: Sequence[LabelledMessage]) -> np.ndarray:
    """Softmax regression by stochastic steps that shrink where much was learned. The same data give the same weights."""
    samples = [(np.array(features(text)), KINDS.index(kind)) for message in messages for text, kind in message.sentences()]
    table = np.zeros((1 << BITS, len(KINDS)))
    seen = np.full(table.shape, 1e-2)
    order, chance = list(range(len(samples))), random.Random(SEED)
    for _ in range(EPOCHS):
        chance.shuffle(order)
        for index in order:
            places, kind = samples[index]
            rows = table[places]
            guess = np.array(likelihoods(table, places))
            guess[kind] -= 1.0
            slope = guess / math.sqrt(len(places)) + HOLD * rows
            seen[places] += slope * slope
            table[places] = rows - RATE * slope / np.sqrt(seen[places])
    return table


def turning(messages: Sequence[LabelledMessage], pairs: Sequence[LabelledPair]) -> np.ndarray:
    """What a sentence sounds like that ends or replaces something: a weight for each place, by steps as above."""
    samples = [(np.array(features(text)), kind == "change", 1.0) for message in messages for text, kind in message.sentences()]
    samples += [(np.array(features(pair.said)), pair.closes, PAIR_WEIGHT) for pair in pairs]
    return binary(samples)


def binary(samples: Sequence[tuple[np.ndarray, bool, float]]) -> np.ndarray:
    """Logistic regression over places, each with an answer and a weight, by the same steps."""
    table, seen = np.zeros(1 << BITS), np.full(1 << BITS, 1e-2)
    order, chance = list(range(len(samples))), random.Random(SEED)
    for _ in range(EPOCHS):
        chance.shuffle(order)
        for index in order:
            places, turns, weight = samples[index]
            size, held = math.sqrt(len(places)), table[places]
            guess = 1.0 / (1.0 + math.exp(-held.sum() / size))
            slope = weight * (guess - turns) / size + HOLD * held
            seen[places] += slope * slope
            table[places] = held - RATE * slope / np.sqrt(seen[places])
    return table


def crossed(messages: Sequence[LabelledMessage]) -> list[tuple[float, str]]:
    """The score and kind of each message, judged by what the other writers have taught."""
    found: dict[int, tuple[float, str]] = {}
    for writer in sorted({message.writer for message in messages}):
        table = fitted([message for message in messages if message.writer != writer])
        for index, message in enumerate(messages):
            if message.writer == writer:
                found[index] = best([likelihoods(table, features(text)) for text, _ in message.sentences()])
    return [found[index] for index in range(len(messages))]


def best(sentences: Sequence[Sequence[float]]) -> tuple[float, str]:
    """The score and kind of the likeliest sentence."""
    top = min(sentences, key=lambda kinds: kinds[0])
    return 1.0 - top[0], KINDS[max(range(1, len(KINDS)), key=top.__getitem__)]


def threshold(messages: Sequence[LabelledMessage], judged: Sequence[tuple[float, str]], share: float) -> float:
    """The lowest score at which no more than that share of the messages that tell nothing pass."""
    scores = sorted(score for message, (score, _) in zip(messages, judged, strict=True) if message.kind == "nothing")
    return float(np.nextafter(scores[min(len(scores) - 1, math.ceil((1 - share) * len(scores)))], 2.0))


# -- reporting


def report(messages: Sequence[LabelledMessage], judged: Sequence[tuple[float, str]], at: float) -> None:
    scores = np.array([score for score, _ in judged])
    tells = np.array([message.kind != "nothing" for message in messages])
    kept = scores >= at
    right = np.array([kind == message.kind for message, (_, kind) in zip(messages, judged, strict=True)])
    print(f"{len(messages)} messages of {len({message.writer for message in messages})} writers, threshold {at:.3f}")
    print(f"{'':14}{'n':>6}{'AUC':>7}  kept                  wrong")
    line("all", scores, tells, kept)
    for name in ("language", "register", "writer"):
        for value in sorted({getattr(message, name) for message in messages}):
            here = np.array([getattr(message, name) == value for message in messages])
            line(value, scores[here], tells[here], kept[here])
    for kind in KINDS[1:]:
        here = np.array([message.kind == kind for message in messages])
        if here.any():
            named = right[here & kept].mean() if (here & kept).any() else 0.0
            print(f"{kind:14}{here.sum():6}{'':7}  {share(kept[here])}  kind right of these {named:.3f}")
    curve = [(wrong, threshold(messages, judged, wrong)) for wrong in (0.01, 0.02, 0.03, 0.05, 0.1)]
    print("kept against wrong: " + ", ".join(f"{(scores[tells] >= at).mean():.3f} at {wrong:.0%}" for wrong, at in curve))


def learned(messages: Sequence[LabelledMessage]) -> tuple[np.ndarray, int]:
    """Whether anything is kept of each message, said by a user of its own: a memory, a todo or a standing instruction. And how
    much that is in all.
    """
    counts = []
    for begin in range(0, len(messages), STORE_USERS):
        with perdure.open("memory:", clock=StoppedClock(NOW)) as engine:
            for number, message in enumerate(messages[begin : begin + STORE_USERS]):
                user = engine.memory(f"user-{number}")
                user.append("user", message.text)
                found = user.memories.extract()
                stated = sum(one.statement is not None for one in found.outcomes)
                counts.append(stated + found.todos + len(user.instructions.list()))
    return np.array(counts) > 0, sum(counts)


def told(pairs: Sequence[LabelledPair]) -> tuple[np.ndarray, np.ndarray]:
    """Of each pair, noted and then said by a user of its own: whether the note is over, and whether the message is kept."""
    over, kept = [], []
    with perdure.open("memory:", clock=StoppedClock(NOW)) as engine:
        for number, pair in enumerate(pairs):
            user = engine.memory(f"user-{number}")
            noted = user.remember(pair.known).statement
            user.append("user", pair.said)
            found = user.memories.extract()
            stated = any(one.statement is not None and one.verdict != "known" for one in found.outcomes)
            kept.append(stated or found.todos > 0 or bool(user.instructions.list()))
            over.append(noted is not None and all(one.id != noted.id for one in current_statements(user)))
    return np.array(over), np.array(kept)


def ended_in(chat: LabelledChat) -> tuple[int, int, int]:
    """How many notes a chat ends rightly and wrongly, of how many that it makes, through append and the jobs."""
    with perdure.open("memory:", clock=StoppedClock(NOW)) as engine:
        user = engine.memory("user")
        begin = NOW - timedelta(days=60)
        user.append_many(
            [
                perdure.NewMessage("user", text, id=f"m{place}", at=begin + timedelta(hours=9 * place))
                for place, (text, _) in enumerate(chat.messages)
            ]
        )
        while engine.process(600).ran:
            pass
        made = [one for memory in user.memories.list(limit=1_000) for one in user.memories.history(memory.memory.key)]
    said = {one.id: {int(source.message[1:]) for source in one.evidence} for one in made}
    over = [one for one in made if one.closed_by in said]
    right = [any(old in chat.messages[new][1] for new in said[str(one.closed_by)] for old in said[one.id]) for one in over]
    return sum(right), len(right) - sum(right), len(made)


def chat_shares(chats: Sequence[LabelledChat]) -> None:
    """What chats end, by language."""
    found = np.array([ended_in(chat) for chat in chats])
    told = np.array([sum(len(ends) for _, ends in chat.messages) for chat in chats])
    print(f"{len(chats)} chats of {len({chat.writer for chat in chats})} writers, through append and extraction")
    print(f"{'':6}messages  notes  ends told  ended rightly  ended wrongly")
    for name in ("all", *sorted({chat.language for chat in chats})):
        here = [place for place, chat in enumerate(chats) if name in ("all", chat.language)]
        right, wrong, notes = found[here].sum(axis=0).tolist()
        count = sum(len(chats[place].messages) for place in here)
        print(f"{name:6}{count:8}{notes:7}{told[here].sum():11}{right:15}{wrong:15}")


def current_statements(user: Any) -> list[Any]:
    return [one for memory in user.memories.list() for one in memory.statements]


def pair_shares(pairs: Sequence[LabelledPair], over: np.ndarray, kept: np.ndarray) -> None:
    """What became of notes, by language and relation."""
    relation = np.array([pair.relation for pair in pairs])
    closes = np.array([pair.closes for pair in pairs])
    print(f"{len(pairs)} pairs of {len({pair.writer for pair in pairs})} writers, through append and extraction")
    print(f"{'':14}{'n':>6}  stale: still current   new value missed      wrongly retired")
    for name in ("all", *sorted({pair.language for pair in pairs}), *sorted({pair.writer for pair in pairs})):
        here = np.array([name in ("all", pair.language, pair.writer) for pair in pairs])
        stale, new, wrong = here & closes, here & (relation == "updates"), here & ~closes
        print(f"{name:14}{here.sum():6}  {share(~over[stale])}  {share(~kept[new])}  {share(over[wrong])}")
    for value in RELATIONS:
        here = relation == value
        print(f"{value:14}{here.sum():6}  {'note over':12}{share(over[here])}")


def shares(messages: Sequence[LabelledMessage], kept: np.ndarray) -> None:
    """What was kept, by language, register and kind."""
    tells = np.array([message.kind != "nothing" for message in messages])
    print(f"{len(messages)} messages of {len({message.writer for message in messages})} writers, through append and extraction")
    print(f"{'':14}{'n':>6}  kept                  wrong")
    print(f"{'all':14}{len(messages):6}  {share(kept[tells])}  {share(kept[~tells])}")
    for name in ("language", "register", "writer", "kind"):
        for value in sorted({getattr(message, name) for message in messages} - {"nothing"}):
            here = np.array([getattr(message, name) == value for message in messages])
            wrong = share(kept[here & ~tells]) if (here & ~tells).any() else ""
            print(f"{value:14}{here.sum():6}  {share(kept[here & tells])}  {wrong}")


def line(name: str, scores: np.ndarray, tells: np.ndarray, kept: np.ndarray) -> None:
    print(f"{name:14}{len(scores):6}{auc(scores, tells):7.3f}  {share(kept[tells])}  {share(kept[~tells])}")


def share(flags: np.ndarray) -> str:
    """A share with its interval."""
    draws = np.random.default_rng(SEED).choice(flags, (DRAWS, len(flags))).mean(axis=1)
    low, high = np.quantile(draws, (0.025, 0.975))
    return f"{flags.mean():.3f} [{low:.3f}, {high:.3f}]"


def auc(scores: np.ndarray, tells: np.ndarray) -> float:
    """How often a message that tells something scores higher than one that does not."""
    ranks = np.empty(len(scores))
    ranks[np.argsort(scores, kind="stable")] = np.arange(1, len(scores) + 1)
    some = int(tells.sum())
    return float((ranks[tells].sum() - some * (some + 1) / 2) / (some * (len(scores) - some)))


def main() -> None:
    parser: Any = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cross", action="store_true", help="report on the part to fit on, writer by writer")
    parser.add_argument("--learn", action="store_true", help="report what perdure keeps of the part that was held out")
    parser.add_argument("--pairs", action="store_true", help="report what perdure ends and replaces, of the part held out")
    parser.add_argument("--calls", action="store_true", help="report where a chat model is not asked, of the part held out")
    parser.add_argument("--chats", action="store_true", help="report what chats end rightly and wrongly, of the part held out")
    chosen = parser.parse_args()
    if chosen.chats:
        chat_shares(read_chats("held"))
        return
    if chosen.calls:
        messages = read("held")
        spared = np.array([surely_tells_nothing(message.text) for message in messages])
        tells = np.array([message.kind != "nothing" for message in messages])
        print(f"not asked: {share(spared)} of {len(messages)}, {share(spared[~tells])} of what tells nothing")
        print(f"lost: {share(spared[tells])} of what tells something")
        return
    if chosen.pairs:
        pairs = read_pairs("held")
        pair_shares(pairs, *told(pairs))
        return
    if chosen.learn:
        messages = read("held")
        kept, count = learned(messages)
        shares(messages, kept)
        print(f"{100 * count / len(messages):.1f} memories, todos and instructions of 100 messages")
        return
    messages = read("train")
    judged = crossed(messages)
    at = threshold(messages, judged, WRONG_MAX)
    if not chosen.cross:
        table, messages = fitted(messages), read("held")
        judged = [best([likelihoods(table, features(text)) for text, _ in message.sentences()]) for message in messages]
    report(messages, judged, at)


if __name__ == "__main__":
    main()
