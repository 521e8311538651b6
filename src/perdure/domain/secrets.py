"""Secrets that are not stored: keys and tokens in the forms their issuers publish. A marker says what stood there.

Only forms that hardly anything else has: the log must not lose words that merely look odd. That something *may* be a password
is enough not to learn it (`engine.hygiene`), but not enough to change what was said.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

_MIXED = r"(?=[A-Za-z0-9_-]*[0-9])(?=[A-Za-z0-9_-]*[A-Z])(?=[A-Za-z0-9_-]*[a-z])"
FORMS: tuple[tuple[str, str], ...] = (
    # Up to its end, or up to where the text ends; a key is no longer than a few kilobytes.
    ("private key", r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----(?:.{0,20000}?-----END [A-Z ]{0,30}PRIVATE KEY-----|.{0,20000})"),
    ("API key", rf"\bsk-(?:proj-|svcacct-|admin-|ant-[a-z0-9]{{1,10}}-)?{_MIXED}[A-Za-z0-9_-]{{20,400}}"),
    ("payment key", r"\b[sr]k_(?:live|test)_[0-9A-Za-z]{16,200}"),
    ("AWS key", r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    ("GitHub token", r"\bgh[pousr]_[A-Za-z0-9]{36,255}|\bgithub_pat_[A-Za-z0-9_]{30,255}"),
    ("GitLab token", r"\bglpat-[A-Za-z0-9_-]{20,200}"),
    ("Slack token", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,250}"),
    ("Google key", r"\bAIza[0-9A-Za-z_-]{35}"),
    ("package token", r"\bnpm_[A-Za-z0-9]{36}\b|\bpypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{30,300}"),
    ("model hub token", r"\bhf_[A-Za-z0-9]{34}\b"),
    ("perdure key", r"\bpdr_[A-Za-z0-9]{6,40}_[A-Za-z0-9_-]{30,200}"),
    ("web token", r"\beyJ[A-Za-z0-9_-]{8,2000}\.eyJ[A-Za-z0-9_-]{8,8000}\.[A-Za-z0-9_-]{8,2000}"),
    # The password of a login in a URL; bounded, so that a long run of letters is not begun anew at each of them.
    ("password", r"(?<=://)(?P<who>[^/\s:@'\"]{0,100}):[^@\s/'\"]{1,200}(?=@[^\s/])"),
)
# What every form has somewhere: most texts have none of these, and are looked at once.
_HINT = re.compile(
    r"PRIVATE KEY-----|sk-|[sr]k_|AKIA|ASIA|gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-|AIza|npm_|pypi-|hf_|pdr_|eyJ|://"
)


def may_hold_secrets(text: str) -> bool:
    """False if there is none for sure; much quicker than looking."""
    return _HINT.search(text) is not None


def without_secrets(text: str) -> str:
    """`text` with a marker in the place of each secret; the same text if it has none."""
    return _secrets().sub(_marker, text) if _HINT.search(text) else text


def without_secrets_in(value: Any) -> Any:
    """JSON with markers in the place of secrets, in names of fields too. The value itself is not changed."""
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, dict):
        return {without_secrets_in(name): without_secrets_in(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [without_secrets_in(inner) for inner in value]
    return value


@cache
def _secrets() -> re.Pattern[str]:
    """Compiled when first needed: most processes never meet one."""
    return re.compile("|".join(f"(?P<f{number}>{form})" for number, (_, form) in enumerate(FORMS)), re.DOTALL)


def _marker(found: re.Match[str]) -> str:
    number = next(number for number in range(len(FORMS)) if found[f"f{number}"] is not None)
    who = f"{found['who']}:" if found["who"] is not None else ""
    return f"{who}[secret removed: {FORMS[number][0]}]"
