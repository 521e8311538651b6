"""What must not be learned from a text: secrets, hidden characters, orders to a model, boilerplate."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from perdure.domain.secrets import secret_in

CONTENT_CHARS_MAX = 500
CONTENT_CHARS_MIN = 3

# Forms of keys as their issuers publish them, and the words people put before a password.
_SECRET = re.compile(
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----"
    r"|\b(?:sk|pk|rk)[-_](?:live|test|proj|ant)?[-_]?[A-Za-z0-9_-]{16,}"
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"
    r"|\bgh[pousr]_[A-Za-z0-9]{30,}|\bgithub_pat_[A-Za-z0-9_]{30,}|\bglpat-[A-Za-z0-9_-]{16,}"
    r"|\bxox[abprs]-[A-Za-z0-9-]{10,}|\bAIza[0-9A-Za-z_-]{35}\b"
    r"|\beyJ[A-Za-z0-9_-]{8,1000}+\.[A-Za-z0-9_-]{8,8000}+\.[A-Za-z0-9_-]{4}"
    r"|\b(?:password|passwort|passphrase|pwd|pin(?: code)?|cvv|cvc|secret|api[ _-]?key|access[ _-]?token|mot de passe"
    r"|contraseña)\b\s*(?:is|=|:|ist|est|es)\s*\S",
    re.IGNORECASE,
)
_CARD = re.compile(r"(?<![\w.])(?:\d[ -]?){12,18}\d(?![\w.])")
_ORDER = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:previous|prior|above|earlier|all|your|these)\b.{0,30}"
    r"\b(?:instructions?|prompts?|rules|messages|context)\b"
    r"|\byou are now\b|\bact as (?:an? )?(?:system|developer|admin|dan)\b|\bsystem prompt\b|\bdeveloper mode\b"
    r"|</?(?:system|assistant|instructions?|memory)\b"
    r"|\b(?:reveal|print|repeat|output)\b.{0,30}\b(?:system prompt|instructions)\b",
    re.IGNORECASE | re.DOTALL,
)
_BOILERPLATE = re.compile(
    r"as an ai\b|as a (?:large )?language model\b|i(?:'m| am) (?:just )?an ai\b|how can i (?:help|assist) you"
    r"|(?:is there|let me know if there(?:'s| is)) anything else|feel free to ask|i hope this helps"
    r"|(?:the )?user (?:said|asked|wants to know|is asking)|no (?:new )?(?:information|facts?|memor(?:y|ies))"
    r"|(?:n/?a|none|null|unknown|undefined)\W*$",
    re.IGNORECASE,
)


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
        ("has characters that nobody sees", hides_something),
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
    for index, char in enumerate(text):
        if char in "\n\t\r":
            continue
        kind = unicodedata.category(char)
        if kind in ("Cc", "Co", "Cs", "Cn") or (kind == "Cf" and not _joins(text, index)):
            return True
    return False


def _joins(text: str, index: int) -> bool:
    """A joiner between two characters belongs to them, in emoji and in several scripts; so does the soft hyphen."""
    return text[index] in "\u200c\u200d\u00ad" and 0 < index < len(text) - 1 and not text[index - 1].isspace()


def _is_card(text: str) -> bool:
    """Luhn's check, which card numbers pass and most other numbers do not."""
    digits = [int(char) for char in text if char.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[-2::-2]]
    return 13 <= len(digits) <= 19 and (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0 and len(set(digits)) > 1
