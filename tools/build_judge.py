"""Fits the judges of what lasts and of what changes on the writers in `bench/knowledge/sentences/train`, and on them alone.

python tools/build_judge.py    writes `judge.bin`, `pairs.bin` and `changes.json` into their folders of src/perdure/engine

The same sentences give the same `.bin` files, bit for bit, and the same weights in `changes.json`.
`bench/knowledge/judge.py` reports on the writers who were held out.
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from perdure.engine.extraction import judge as lasting
from perdure.engine.extraction.verbatim import TURN_MIN
from perdure.engine.knowledge import changes, pair_words
from perdure.engine.text.own_words import states_nothing
from perdure.engine.text.sentences import sentence_spans

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "bench/knowledge"))

import judge as bench  # noqa: E402 - it lies in a folder that is no package

STEPS = 127
FOLDS = 6
"""Into so many parts the writers are cut; of each part the judge is one that the others taught."""
PAIR_EPOCHS, PAIR_RATE, PAIR_HOLD = 8, 0.3, 1e-4
HOLD = 40.0
"""How strongly weights of the judge of change are held near nought."""
STRANGERS = 3
"""For each note, so many messages that were said to another one: the easy pairs, of which a life has most."""
STRANGER_WEIGHT = 0.1
NEWS, NEWS_WEIGHT = 6, 0.3
"""For each message that changes nothing, so many notes of anybody."""
WRONG_MAX = 0.01
"""The share of the pairs of other writers that may be closed wrongly."""
NOTE_WORDS_MIN = 3
CHAT_WRONG_MAX = 0.03
"""In chats of other writers, so many notes may be closed wrongly for each message: there every message meets every note."""
AFTER_OTHERS = ("w14", "w20", "w21", "w22", "w23")
"""Who wrote pairs after reading those of others: they teach, but nothing is chosen by them."""
SHARES = (0.005, 0.01, 0.02, 0.05, 0.1)
DIGITS = 4


def judge_bytes() -> bytes:
    """The judge of what lasts, as the sentences of the repository make it."""
    messages = bench.read("train")
    pairs = bench.read_pairs("train")
    weights = np.column_stack([bench.fitted(messages), bench.turning(messages, pairs)])
    return _packed(weights, messages)


def _packed(weights: np.ndarray, messages: Sequence[bench.LabelledMessage]) -> bytes:
    scales = np.abs(weights).max(axis=0) / STEPS
    words = {lasting.hashed(word) for message in messages for word in lasting.words_of(message.text) if word[0].isalpha()}
    return lasting.packed(scales.tolist(), words, np.rint(weights / scales).astype(np.int8))


# -- the judge of change


@dataclass(frozen=True, slots=True)
class Seen:
    """A pair as the judge of change learns it; a stranger's is a note and a message of different pairs."""

    writer: str
    known: str
    said: str
    closes: bool
    weight: float
    chat: bool = False


def all_pairs(pairs: Sequence[bench.LabelledPair]) -> list[Seen]:
    """The labelled pairs, and behind them those of strangers."""
    chance = random.Random(bench.SEED)
    found = [Seen(one.writer, one.known, one.said, one.closes, 1.0) for one in pairs]
    strangers = [(one, two) for one in pairs for two in (chance.choice(pairs) for _ in range(STRANGERS))]
    return found + [
        Seen(one.writer, one.known, two.said, False, STRANGER_WEIGHT)
        for one, two in strangers
        if (one.writer, one.language) == (two.writer, two.language) and one.known != two.known
    ]


def said_beside(messages: Sequence[bench.LabelledMessage], pairs: Sequence[bench.LabelledPair]) -> list[Seen]:
    """Messages that change nothing beside notes of anybody, as far as they could pass for a change of them."""
    chance = random.Random(bench.SEED)
    noted: dict[str, list[str]] = {}
    for pair in pairs:
        noted.setdefault(pair.language, []).append(pair.known)
    for one in messages:
        if one.kind not in ("nothing", "change", "rule", "todo"):
            noted.setdefault(one.language, []).append(one.text[one.marked[0] : one.marked[1]])
    drawn = [(one, chance.choice(noted[one.language])) for one in messages if one.kind != "change" for _ in range(NEWS)]
    return [
        Seen(one.writer, known, one.text, False, NEWS_WEIGHT)
        for one, known in drawn
        if known not in one.text and _may_close(known, one.text)
    ]


def said_in_chats(chats: Sequence[bench.LabelledChat]) -> list[Seen]:
    """Each message of a chat beside each sentence that was said before it, as far as it could pass for a change of that."""
    return [
        Seen(chat.writer, known, said, closes, 1.0, chat=True)
        for chat in chats
        for place, (text, ends) in enumerate(chat.messages)
        for earlier in range(place)
        for closes in (earlier in ends,)
        for known in _sentences(chat.messages[earlier][0])
        for said in ([text] if closes else _sentences(text))
        if len(known.split()) >= NOTE_WORDS_MIN and _may_close(known, said)
    ]


@lru_cache(maxsize=10_000)
def _sentences(text: str) -> tuple[str, ...]:
    return tuple(text[start:end] for start, end in sentence_spans(text))


def _may_close(known: str, said: str) -> bool:
    """Whether an extraction would hold these words against that note at all."""
    return sounds_like_a_change(said) and changes.are_linked(changes.taken_apart(known), changes.taken_apart(said))


@lru_cache(maxsize=20_000)
def sounds_like_a_change(said: str) -> bool:
    if len(changes.taken_apart(said).words) > changes.SAID_WORDS_MAX or states_nothing(said) is not None:
        return False
    return lasting.judge(said).turn >= TURN_MIN


def pair_bytes() -> bytes:
    """How sentences sound beside notes, as the pairs of the repository make it."""
    return beside(all_pairs(bench.read_pairs("train")))


def beside(pairs: Sequence[Seen]) -> bytes:
    """How sentences sound beside a note: a weight for each place, by steps that shrink where much was learned."""
    samples = [
        (np.array(changes.pair_places(changes.taken_apart(one.known), changes.taken_apart(one.said))), one) for one in pairs
    ]
    table, seen = np.zeros(1 << pair_words.BITS), np.full(1 << pair_words.BITS, 1e-2)
    order, chance = list(range(len(samples))), random.Random(bench.SEED)
    for _ in range(PAIR_EPOCHS):
        chance.shuffle(order)
        for index in order:
            places, one = samples[index]
            size, held = math.sqrt(len(places)), table[places]
            guess = 1.0 / (1.0 + math.exp(-held.sum() / size))
            slope = one.weight * ((guess - one.closes) / size + PAIR_HOLD * held)
            seen[places] += slope * slope
            table[places] = held - PAIR_RATE * slope / np.sqrt(seen[places])
    return pair_words.packed(table)


def pair_features(pairs: Sequence[bench.LabelledPair], seen: Sequence[Seen]) -> list[dict[str, float]]:
    """Of each pair what the judge of change goes by.

    How a message sounds is judged by what other writers taught, as it will be when it is somebody's whom nobody knows.
    """
    messages = bench.read("train")
    found: dict[tuple[str, str], dict[str, float]] = {}
    writers = sorted({one.writer for one in (*messages, *seen)})
    for fold in (frozenset(writers[start::FOLDS]) for start in range(FOLDS)):
        taught = [message for message in messages if message.writer not in fold]
        turning = bench.turning(taught, [pair for pair in pairs if pair.writer not in fold])
        kinds = lasting.table()
        held = lasting.JudgeTable(
            (*kinds.scales[:-1], float(np.abs(turning).max() / STEPS)),
            kinds.words,
            np.column_stack([kinds.weights[:, :-1], np.rint(turning / (np.abs(turning).max() / STEPS)).astype(np.int8)]),
        )
        near = pair_words.unpacked(beside([one for one in seen if one.writer not in fold]))
        for one in seen:
            if one.writer in fold:
                found[one.known, one.said] = changes.features(one.known, one.said, held, near)
    return [found[one.known, one.said] for one in seen]


def change_weights(rows: np.ndarray, closes: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Logistic regression by Newton's steps, on features as they are; the last weight is the bias."""
    middle, spread = rows.mean(axis=0), rows.std(axis=0) + 1e-6
    scaled = np.column_stack([(rows - middle) / spread, np.ones(len(rows))])
    found = np.zeros(scaled.shape[1])
    for _ in range(20):
        guess = 1.0 / (1.0 + np.exp(-scaled @ found))
        curve = scaled.T @ (scaled * (weights * guess * (1 - guess))[:, None]) + HOLD * np.eye(len(found))
        found -= np.linalg.solve(curve, scaled.T @ (weights * (guess - closes)) + HOLD * found)
    plain = found[:-1] / spread
    return np.append(plain, found[-1] - plain @ middle)


def change_table() -> dict[str, float]:
    """The judge of change, and the score from which it closes: chosen on writers who did not teach it."""
    pairs, messages, chats = bench.read_pairs("train"), bench.read("train"), bench.read_chats("train")
    seen = [*all_pairs(pairs), *said_beside(messages, pairs), *said_in_chats(chats)]
    found = pair_features(pairs, seen)
    names = sorted(found[0])
    rows = np.array([[one[name] for name in names] for one in found])
    writer, closes = np.array([one.writer for one in seen]), np.array([one.closes for one in seen], dtype=float)
    weights = np.array([one.weight for one in seen])
    scores = np.full(len(seen), -np.inf)
    # As in an extraction: of what asks, supposes or does not sound like a change nothing is held against what is known.
    quiet = np.array(
        [
            changes.is_barred(one) or one["turn"] < TURN_MIN or states_nothing(pair.said) is not None
            for one, pair in zip(found, seen, strict=True)
        ]
    )
    chat = np.array([one.chat for one in seen])
    taught = ~(quiet & (chat | (weights == NEWS_WEIGHT)))
    for one in sorted(set(writer)):
        mine = writer == one
        fitted = change_weights(rows[~mine & taught], closes[~mine & taught], weights[~mine & taught])
        scores[mine] = rows[mine] @ fitted[:-1] + fitted[-1]
    scores[quiet] = -np.inf
    alone = (weights == 1) & ~chat & ~np.isin(writer, AFTER_OTHERS)
    wrong, right = np.sort(scores[alone & (closes == 0)])[::-1], scores[alone & (closes == 1)]
    amid = np.sort(scores[chat & (closes == 0)])[::-1]
    count = sum(len(one.messages) for one in chats)
    at = max(0.0, float(wrong[int(WRONG_MAX * len(wrong))]), float(amid[int(CHAT_WRONG_MAX * count)]))
    print(f"{len(right)} that close and {len(wrong)} that do not, judged as other writers taught; from {at:.2f} on:")
    print(f"closed {(right > at).mean():.3f}, and {(scores[weights < 1] > at).mean():.4f} of notes and messages of strangers")
    told = scores[chat & (closes == 1)]
    print(f"in {count} messages of chats, closed wrongly {(amid > at).sum()}, rightly {(told > at).sum()} of {len(told)}")
    print(
        "closed against wrong: "
        + ", ".join(f"{(right > wrong[int(part * len(wrong))]).mean():.3f} at {part:.1%}" for part in SHARES)
    )
    whole = change_weights(rows[taught], closes[taught], weights[taught])
    table = dict(zip(names, whole[:-1], strict=True)) | {"bias": whole[-1], "from": at}
    return {name: round(float(value), DIGITS) for name, value in table.items()}


if __name__ == "__main__":
    package = ROOT / "src/perdure/engine"
    (package / "extraction" / lasting.FILE).write_bytes(judge_bytes())
    (package / "knowledge" / pair_words.FILE).write_bytes(pair_bytes())
    (package / "knowledge" / changes.FILE).write_text(json.dumps(change_table(), indent=1, sort_keys=True) + "\n")
