"""What must not be learned from a text: secrets, hidden characters, orders to a model, boilerplate.

Fingerprints of text that was put into a prompt: what comes back of it is an echo, not news.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterator

from perdure.domain.text.fences import FLAG, JOINERS, has_stray_joiners
from perdure.domain.text.patterns import pattern
from perdure.domain.text.secrets import secret_in
from perdure.engine.text.cues import either
from perdure.engine.text.sentences import sentences

CONTENT_CHARS_MAX = 500
CONTENT_CHARS_MIN = 3

# Forms of keys as their issuers publish them, and the words people put before a password.
_SECRET = pattern(
    lambda: (
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----"
        r"|\b(?:sk|pk|rk)[-_](?:live|test|proj|ant)?[-_]?[A-Za-z0-9_-]{16,}"
        r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"
        r"|\bgh[pousr]_[A-Za-z0-9]{30,}|\bgithub_pat_[A-Za-z0-9_]{30,}|\bglpat-[A-Za-z0-9_-]{16,}"
        r"|\bxox[abprs]-[A-Za-z0-9-]{10,}|\bAIza[0-9A-Za-z_-]{35}\b"
        r"|\beyJ[A-Za-z0-9_-]{8,1000}+\.[A-Za-z0-9_-]{8,8000}+\.[A-Za-z0-9_-]{4}"
        rf"|\b(?:{either('secret told')})\b\s*(?:=|:|{either('is')})\s*\S"
    ),
    re.IGNORECASE,
)
_CARD = pattern(r"(?<![\w.])(?:\d[ -]?){12,18}\d(?![\w.])")
_ORDER = pattern(lambda: either("injection in a statement"), re.IGNORECASE | re.DOTALL)
_BOILERPLATE = pattern(lambda: either("boilerplate"), re.IGNORECASE)


def refusal(text: str) -> str | None:
    """Why `text` must not be kept as a statement; None if nothing speaks against it."""
    if len(text.strip()) < CONTENT_CHARS_MIN:
        return "is too short to say anything"
    if len(text) > CONTENT_CHARS_MAX:
        return "is too long for one statement"
    return flaw(text) or ("is boilerplate" if _BOILERPLATE.match(text.strip()) else None)


def flaw(text: str) -> str | None:
    """Why `text` must not be kept at all, be it a statement, a value or a name; None if nothing speaks against it."""
    checks: tuple[tuple[str, Callable[[str], object]], ...] = (
        ("has no visible character", lambda one: not one.strip()),
        ("has hidden characters", hides_something),
        ("looks like a secret", holds_secret),
        ("is an order to a model", _ORDER.search),
    )
    return next((reason for reason, check in checks if check(text)), None)


def holds_secret(text: str) -> bool:
    """Whether a password, key or card number stands in the text."""
    if secret_in(text) is not None or _SECRET.search(text):
        return True
    return any(_is_card(match[0]) for match in _CARD.finditer(text))


def hides_something(text: str) -> bool:
    """Whether there are characters in it that are not shown: they carry what people do not see and models do."""
    if text.isascii() and text.isprintable():
        return False
    plain = FLAG.sub("", text)
    for index, char in enumerate(plain):
        if char in "\n\t\r" or char in JOINERS:
            continue
        kind = unicodedata.category(char)
        if kind in ("Cc", "Co", "Cs", "Cn") or (kind == "Cf" and not _hyphenates(plain, index)):
            return True
    return any(one in text for one in JOINERS) and has_stray_joiners(text)


def _hyphenates(text: str, index: int) -> bool:
    """A soft hyphen between two characters belongs to them."""
    return text[index] == "\u00ad" and 0 < index < len(text) - 1 and not text[index - 1].isspace()


def _is_card(text: str) -> bool:
    """Luhn's check, which card numbers pass and most other numbers do not."""
    digits = [int(char) for char in text if char.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return 13 <= len(digits) <= 19 and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0 and len(set(digits)) > 1


CHARS_MIN = 15
"""Shorter pieces are said by chance."""
_HEAD = pattern(
    r"^(?:\s*(?:[-*•]|\d{1,3}[.)])\s+|\s*\[[^\]\n]{1,60}\]:?\s*|\s*(?:user|assistant|tool|system):\s*)+", re.IGNORECASE
)
_SPACE = pattern(r"[\s\W_]+")


def fingerprints(text: str) -> list[str]:
    """Of every line and sentence of `text` that is long enough, each once, in order."""
    return [_fingerprint(plain) for plain in dict.fromkeys(_plain_pieces(text))]


def fingerprint(piece: str) -> str:
    """What a piece has in common with itself in other clothes: case, spacing, punctuation and bullets do not count."""
    return _fingerprint(_plain(piece))


def _fingerprint(plain: str) -> str:
    return hashlib.sha256(plain.encode()).hexdigest()[:32]


def _plain_pieces(text: str) -> Iterator[str]:
    for line in text.splitlines():
        bare = _HEAD.sub("", line)
        for piece in dict.fromkeys((bare, *sentences(bare))):
            plain = _plain(piece)
            if len(plain) >= CHARS_MIN:
                yield plain


def _plain(piece: str) -> str:
    bare = _HEAD.sub("", piece)
    if bare.isascii():
        return " ".join(bare.translate(_ASCII_PLAIN).split())
    return _SPACE.sub(" ", unicodedata.normalize("NFKC", bare).casefold()).strip()


_ASCII_PLAIN = {code: chr(code).lower() if chr(code).isalnum() else " " for code in range(128)}
