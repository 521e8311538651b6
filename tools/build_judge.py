"""Fits the judges of what lasts and of what changes on the writers in `bench/knowledge/sentences/train`, and on them alone.

python tools/build_judge.py          writes `extraction/judge.bin` and `knowledge/changes.json` of src/perdure/engine

The same sentences give the same `judge.bin`, bit for bit, and the same weights in `changes.json`.
`bench/knowledge/judge.py` reports on the writers who were held out.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from perdure.engine.extraction import judge as lasting
from perdure.engine.extraction.verbatim import TURN_MIN
from perdure.engine.knowledge import changes
from perdure.engine.text.own_words import states_nothing

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "bench/knowledge"))

import judge as bench  # noqa: E402 - it lies in a folder that is no package

STEPS = 127
FOLDS = 6
"""Into so many parts the writers are cut; of each part the judge is one that the others taught."""
HOLD = 40.0
"""How strongly weights of the judge of change are held near nought."""
STRANGERS = 3
"""For each note, so many messages that were said to another one: the easy pairs, of which a life has most."""
STRANGER_WEIGHT = 0.1
WRONG_MAX = 0.01
"""The share of the pairs of other writers that may be closed wrongly."""
AFTER_OTHERS = "w14"
"""Who wrote pairs after reading those of others: they teach, but nothing is chosen by them."""
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


def pair_features(pairs: Sequence[bench.LabelledPair]) -> tuple[list[dict[str, float]], list[tuple[str, dict[str, float]]]]:
    """Of each pair what the judge of change goes by, and the same of notes and messages of different pairs.

    How a message sounds is judged by what other writers taught, as it will be when it is somebody's whom nobody knows.
    """
    messages, chance = bench.read("train"), random.Random(bench.SEED)
    others = [
        (one, two)
        for one in pairs
        for two in (chance.choice(pairs) for _ in range(STRANGERS))
        if (one.writer, one.language) == (two.writer, two.language) and one.known != two.known
    ]
    seen: dict[tuple[str, str], dict[str, float]] = {}
    writers = sorted({one.writer for one in (*messages, *pairs)})
    for fold in (frozenset(writers[start::FOLDS]) for start in range(FOLDS)):
        taught = [message for message in messages if message.writer not in fold]
        said = [pair for pair in pairs if pair.writer not in fold]
        turning = bench.turning(taught, said)
        held = lasting.unpacked(_packed(np.column_stack([*[turning] * len(lasting.KINDS), turning]), taught))
        wanted = [(one.known, one.said) for one in pairs if one.writer in fold]
        wanted += [(one.known, two.said) for one, two in others if one.writer in fold]
        for known, message in wanted:
            seen[known, message] = changes.features(known, message, held)
    return (
        [seen[one.known, one.said] for one in pairs],
        [(one.writer, seen[one.known, two.said]) for one, two in others],
    )


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
    pairs = bench.read_pairs("train")
    seen, strangers = pair_features(pairs)
    names = sorted(seen[0])
    rows = np.array([[one[name] for name in names] for one in seen])
    easy = np.array([[one[name] for name in names] for _, one in strangers])
    writer, stranger = np.array([pair.writer for pair in pairs]), np.array([one for one, _ in strangers])
    closes = np.array([pair.closes for pair in pairs], dtype=float)

    def fitted(left_out: str) -> np.ndarray:
        mine, theirs = writer != left_out, stranger != left_out
        weights = np.append(np.ones(mine.sum()), np.full(theirs.sum(), STRANGER_WEIGHT))
        return change_weights(np.vstack([rows[mine], easy[theirs]]), np.append(closes[mine], np.zeros(theirs.sum())), weights)

    scores = np.full(len(pairs), -np.inf)
    for one in sorted(set(writer)):
        found, mine = fitted(one), writer == one
        scores[mine] = rows[mine] @ found[:-1] + found[-1]
    # As in an extraction: of what asks, supposes or does not sound like a change nothing is held against what is known.
    quiet = [one["turn"] < TURN_MIN or states_nothing(pair.said) is not None for one, pair in zip(seen, pairs, strict=True)]
    scores[[changes.is_barred(one) for one in seen]] = -np.inf
    scores[quiet] = -np.inf
    alone = writer != AFTER_OTHERS
    wrong = np.sort(scores[alone & (closes == 0)])[::-1]
    at = max(0.0, float(wrong[int(WRONG_MAX * len(wrong))]))
    right = scores[alone & (closes == 1)]
    print(f"{(right > at).mean():.3f} of {len(right)} closed as other writers taught, from {at:.2f} on")
    whole = fitted("")
    table = dict(zip(names, whole[:-1], strict=True)) | {"bias": whole[-1], "from": at}
    return {name: round(float(value), DIGITS) for name, value in table.items()}


if __name__ == "__main__":
    package = ROOT / "src/perdure/engine"
    (package / "extraction" / lasting.FILE).write_bytes(judge_bytes())
    (package / "knowledge" / changes.FILE).write_text(json.dumps(change_table(), indent=1, sort_keys=True) + "\n")
