"""Fits the judge of what lasts on the writers in `bench/knowledge/sentences/train`, and on them alone.

python tools/build_judge.py          writes src/perdure/engine/extraction/judge.bin

The same sentences give the same file, bit for bit. `bench/knowledge/judge.py` reports on the writers who were held out.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from perdure.engine.extraction.judge import FILE, hashed, packed, words_of

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "bench/knowledge"))

import judge as bench  # noqa: E402 - it lies in a folder that is no package

STEPS = 127


def judge_bytes() -> bytes:
    """The file, as the sentences of the repository make it."""
    messages = bench.read("train")
    weights = bench.fitted(messages)
    scales = np.abs(weights).max(axis=0) / STEPS
    words = {hashed(word) for message in messages for word in words_of(message.text) if word[0].isalpha()}
    return packed(scales.tolist(), words, np.rint(weights / scales).astype(np.int8))


if __name__ == "__main__":
    (ROOT / "src/perdure/engine/extraction" / FILE).write_bytes(judge_bytes())
