"""Traces of a word: everything that a text may have become on a disk, and where in files it still stands."""

from __future__ import annotations

import base64
import gzip
import html
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

from perdure.engine.search.lexicon import folded, lexemes, term_hash

GZIP = b"\x1f\x8b"
ENCODINGS = ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "latin-1", "cp1252")
PACKED = ("utf-8", "utf-16-le")
"""Encodings that are looked for in hex and base64, too."""


def needles(words: Iterable[str], texts: Iterable[str] = ()) -> dict[bytes, str]:
    """What to look for, with a name for each: the words in any case, in any encoding, quoted, escaped or packed.

    Of `texts`, in which the words stand, also what the search index would know: the hashes of the terms with a word in them.
    """
    wanted = list(words)
    found: dict[bytes, str] = {}
    for word in wanted:
        for shape in sorted(_shapes(word)):
            for name, needle in _written(shape):
                found.setdefault(needle, f"{word} as {name}")
    plain = {folded(word) for word in wanted}
    for text in texts:
        for term in lexemes(text):
            if any(word in term for word in plain):
                found.setdefault(term_hash(term).to_bytes(8, "little"), f"the hash of {term}")
    return found


def _shapes(word: str) -> set[str]:
    cases = {word, word.lower(), word.upper(), word.capitalize(), folded(word)}
    return {unicodedata.normalize(form, one) for one in cases for form in ("NFC", "NFD")}


def _written(text: str) -> Iterator[tuple[str, bytes]]:
    for encoding in ENCODINGS:
        with suppress(UnicodeEncodeError):
            raw = text.encode(encoding)
            yield encoding, raw
            if encoding in PACKED:
                yield f"{encoding} in hex", raw.hex().encode()
                yield f"{encoding} in capital hex", raw.hex().upper().encode()
                yield f"{encoding} in percent signs", "".join(f"%{byte:02X}" for byte in raw).encode()
                yield from ((f"{encoding} in base64", one) for one in _in_base64(raw))
    yield "a quoted address", quote(text, safe="").encode()
    yield "JSON escapes", "".join(char if char.isascii() else f"\\u{ord(char):04x}" for char in text).encode()
    yield "JSON escapes throughout", "".join(f"\\u{ord(char):04x}" for char in text).encode()
    yield "HTML", html.escape(text).encode("ascii", "xmlcharrefreplace")
    yield "HTML throughout", "".join(f"&#{ord(char)};" for char in text).encode()


def _in_base64(raw: bytes) -> Iterator[bytes]:
    """The letters that stand for it wherever it begins, without those that its neighbours share."""
    for before in range(3):
        coded = base64.b64encode(bytes(before) + raw)
        first = -(-before * 8 // 6)
        last = (before + len(raw)) * 8 // 6
        yield coded[first:last]
        yield coded[first:last].replace(b"+", b"-").replace(b"/", b"_")


def traces(files: Mapping[str, bytes], wanted: Mapping[bytes, str]) -> list[str]:
    """Where any of it stands, packed files unpacked."""
    found = []
    for name, content in files.items():
        unpacked = _unpacked(content)
        for raw in (content,) if unpacked is None else (content, unpacked):
            found += [f"{what} in {name} at {raw.find(needle)}" for needle, what in wanted.items() if needle in raw]
    return found


def _unpacked(content: bytes) -> bytes | None:
    return gzip.decompress(content) if content.startswith(GZIP) else None


def files_below(folder: Path, *, without: Iterable[str] = (), since: float = 0.0) -> dict[str, bytes]:
    """The files below a folder that were changed since, by their paths there; `without` are folders that are left out."""
    left_out = [folder / name for name in without]
    found = {}
    for path in folder.rglob("*"):
        if any(path.is_relative_to(one) for one in left_out):
            continue
        with suppress(FileNotFoundError):  # it has vanished meanwhile
            if path.is_file() and path.stat().st_mtime >= since:
                found[str(path.relative_to(folder))] = path.read_bytes()
    return found
