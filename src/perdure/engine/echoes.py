"""Fingerprints of text that was put into a prompt: what comes back of it is an echo, not news."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterator

from perdure.engine.sentences import sentences

CHARS_MIN = 15
"""Shorter pieces are said by chance."""
_HEAD = re.compile(
    r"^(?:\s*(?:[-*•]|\d{1,3}[.)])\s+|\s*\[[^\]\n]{1,60}\]:?\s*|\s*(?:user|assistant|tool|system):\s*)+", re.IGNORECASE
)
_SPACE = re.compile(r"[\s\W_]+")


def fingerprints(text: str) -> list[str]:
    """Of every line and sentence of `text` that is long enough, each once, in order."""
    return list(dict.fromkeys(fingerprint(piece) for piece in _pieces(text)))


def fingerprint(piece: str) -> str:
    """What a piece has in common with itself in other clothes: case, spacing, punctuation and bullets do not count."""
    return hashlib.sha256(_plain(piece).encode()).hexdigest()[:32]


def _pieces(text: str) -> Iterator[str]:
    for line in text.splitlines():
        bare = _HEAD.sub("", line)
        for piece in (bare, *sentences(bare)):
            if len(_plain(piece)) >= CHARS_MIN:
                yield piece


def _plain(piece: str) -> str:
    return _SPACE.sub(" ", unicodedata.normalize("NFKC", _HEAD.sub("", piece)).casefold()).strip()
