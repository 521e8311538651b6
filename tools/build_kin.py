"""Makes `kin_table.bin` from the embedder's table: for each whole word those nearest to it, of other stems than its own.

python tools/build_kin.py            writes src/perdure/adapters/embedding/kin_table.bin
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from perdure.adapters.embedding.static import StaticEmbedder, bundled, kin_bytes
from perdure.engine.search.lexicon import lexemes, stopwords

COSINE_MIN = 0.5
PER_WORD_MAX = 8
CANDIDATES = 40
LETTERS_MIN = 3
ROWS = 512
FILE = Path(__file__).parent.parent / "src/perdure/adapters/embedding/kin_table.bin"


def near_words() -> dict[str, list[tuple[str, float]]]:
    words = sorted(
        piece
        for piece in bundled().table.vocabulary
        if piece.isascii() and piece.isalpha() and len(piece) >= LETTERS_MIN and piece not in stopwords()["english"]
    )
    vectors = StaticEmbedder().embed(words)
    stems = [(lexemes(word) or [word])[0] for word in words]
    near: dict[str, list[tuple[str, float]]] = {}
    for start in range(0, len(words), ROWS):
        cosines = vectors[start : start + ROWS] @ vectors.T
        nearest = np.argpartition(-cosines, CANDIDATES, axis=1)[:, :CANDIDATES]
        for row, places in enumerate(nearest):
            found: dict[str, tuple[str, float]] = {}
            for place in sorted(places.tolist(), key=lambda place: (-cosines[row, place], place)):
                cosine = float(cosines[row, place])
                if cosine < COSINE_MIN or len(found) == PER_WORD_MAX:
                    break
                if stems[place] != stems[start + row]:
                    found.setdefault(stems[place], (words[place], cosine))
            if found:
                near[words[start + row]] = list(found.values())
    return near


if __name__ == "__main__":
    FILE.write_bytes(kin_bytes(near_words()))
