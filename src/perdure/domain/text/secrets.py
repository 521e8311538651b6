r"""Secrets that are not stored: keys and tokens in the forms their issuers publish. A marker says what stood there.

Only forms that hardly anything else has: the log must not lose words that merely look odd. That something *may* be a password
is enough not to learn it (`engine.text.hygiene`), but not enough to change what was said.

Any text is looked through in time that grows with its length alone, whatever it repeats: beginnings are found in one pass, and
what follows one is read forwards, never again, and no further than a secret of that form can reach.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from perdure.domain.text.patterns import pattern
from perdure.domain.values import dataclass

SECRET_CHARS_MIN = 7
"""The shortest, `://:a@b`: most ids are not even that long."""
KEY_CHARS_MAX = 400
"""A run of letters that is longer is data, not a key."""
URL_CHARS_MAX = 300
BACK_CHARS_MAX = 80
"""So far back from where a beginning was noticed it may start."""
PEM_LINE_CHARS_MIN = 16
PEM_WORD_CHARS_MIN = 32
"""Where lines were joined by blanks: a shorter word may be one of the sentence."""

_W = "[A-Za-z0-9_-]"
_L = "[A-Za-z0-9]"
_END = "(?![A-Za-z0-9])"

Found = tuple[int, int]
"""From where to where a secret is."""
Finder = Callable[[str, int, int], Found | None]
"""Looks at a text in which a beginning stands from here to there."""


@dataclass(frozen=True, slots=True)
class SecretForm:
    """What secrets of one kind look like."""

    name: str
    starts: tuple[tuple[str, str], ...]
    """Beginnings, in two parts: what stands before a character that is rare in texts, and that with what follows it.

    The first part is a pattern of one width. Texts are searched for the rare characters, which takes a fraction of the time.
    """
    tail: str | Finder
    """The rest: a pattern, none of which is ever read twice, or something that decides."""


def _starts(*texts: str) -> tuple[tuple[str, str], ...]:
    """Beginnings that end with their rare character."""
    return tuple((text[:-1], text[-1]) for text in texts)


# -- forms that a pattern does not tell


def _is_mixed(key: str) -> bool:
    """Whether it looks drawn by lot: names of files and packages hardly ever have all three."""
    return bool(re.search("[0-9]", key) and re.search("[A-Z]", key) and re.search("[a-z]", key))


_RUN = pattern(f"{_W}*+")
_PLAIN_KEY = pattern(rf"(?:[a-z0-9]{{1,12}}-){{0,3}}+(?=[a-z0-9]*+{_END})(?=[a-z]*+[0-9])(?=[0-9]*+[a-z])[a-z0-9]{{32,}}+")


def _api_key(text: str, start: int, at: int) -> Found | None:
    """Several issuers' `sk-`: of letters of both cases and digits, or 32 and more small ones in a row at its end."""
    run = _RUN.match(text, at, at + KEY_CHARS_MAX + 1)
    end = at if run is None else run.end()
    if not 20 <= end - at <= KEY_CHARS_MAX or not _is_edge(text, start):
        return None
    key = text[at:end]
    drawn = _is_mixed(key) and re.search(f"{_L}{{16}}", key) is not None
    return (start, end) if drawn or _PLAIN_KEY.match(text, at, end) else None


def _package_token(text: str, start: int, at: int) -> Found | None:
    run = _RUN.match(text, at, at + KEY_CHARS_MAX)
    end = at if run is None else run.end()
    return (start, end) if end - at >= 50 and _is_mixed(text[at:end]) and _is_edge(text, start) else None


_BOT_REST = pattern(rf"AA{_W}{{32,34}}+(?!{_W})")


def _bot_token(text: str, start: int, at: int) -> Found | None:
    rest = _BOT_REST.match(text, at - 2)
    if rest is None:
        return None
    colon = start + 1
    for digits in (10, 9, 8):
        first = colon - digits
        if first >= 0 and text[first:colon].isdigit() and (_is_edge(text, first) or text[first - 3 : first] == "bot"):
            return first, rest.end()
    return None


_AUTHORIZED = pattern(r"ation['\"]?\s{0,3}[:=]\s{0,3}['\"]?basic\s{1,3}(?=([A-Za-z0-9+/_-]{6,2000}+={0,2}))", re.IGNORECASE)


def _basic_login(text: str, _start: int, at: int) -> Found | None:
    """The name and password of a request, in base64."""
    told = _AUTHORIZED.match(text, at)
    return None if told is None else told.span(1)


# -- passwords in addresses

_WHO = pattern(r"[^/\s:@'\"\\]{0,100}+:")
_REST = pattern(rf"(?:[^\s'\"`\\]|\\/){{1,{URL_CHARS_MAX}}}+")
_PORT = pattern(r"[0-9]{1,5}(?![^/?#@])")
# What is to be filled in: {password}, <password>, [password], $PASSWORD, ${…}, $(…), %s, %(password)s, %PASSWORD%, ****.
_PLACEHOLDER = pattern(
    r"\{+[^{}]*\}+|<[^<>]*>|\[[^][]*\]|\$(?:[A-Z_][A-Z0-9_]*|\{[^{}]*\}|\([^()]*\))|%s|%\([^()]*\)s|%[A-Z_]+%"
    r"|[*.\u2022_-]{3,}|[xX]{3,}|(?i:your|my)[-_]?(?i:password|passwd|pass)"
)
_WEB = ("http", "https", "ws", "wss", "ftp")
_EXAMPLES = frozenset({("guest", "guest"), ("user", "password"), ("username", "password"), ("user", "pass")})
"""Names with passwords that are published, or stand for others."""


def _url_password(text: str, start: int, at: int) -> Found | None:
    """The password of a login in an address, also one with `@` or `/` in it that should have been escaped."""
    if text.find("@", at, at + URL_CHARS_MAX + 102) < 0:
        return None
    who = _WHO.match(text, at)
    rest = None if who is None else _REST.match(text, who.end())
    if who is None or rest is None:
        return None
    first, name = who.end(), who[0][:-1]
    if name.startswith("["):
        return None  # an address of numbers alone
    if _PORT.match(text, first) and ("." in name or name == "localhost" or not _has_at_before_path(rest[0])):
        return None
    end = first + _password_end(rest[0], _scheme(text, start))
    password = text[first:end]
    host = rest[0][len(password) + 1 :]
    if not password or not host or host.startswith("/") or _is_placeholder(name, password):
        return None
    return first, end


def _has_at_before_path(rest: str) -> bool:
    return "@" in re.split(r"[/?#]", rest, maxsplit=1)[0]


def _scheme(text: str, start: int) -> str:
    found = re.search(r"[A-Za-z0-9+.-]+\Z", text[max(0, start - 20) : start])
    return "" if found is None else found[0].lower()


def _password_end(rest: str, scheme: str) -> int:
    """Where in what follows the name the `@` is that the host stands after; 0 if there is none."""
    path = re.search(r"[/?#]", rest)
    near = rest.rfind("@", 0, len(rest) if path is None else path.start())
    if near > 0 and scheme in _WEB:
        return near  # a later one is a part of the path
    # Addresses of databases are pasted with passwords as they are; what follows a `?` is no part of them.
    asked = rest.find("?", near + 1)
    last = rest.rfind("@", 0, len(rest) if asked < 0 or near < 0 else asked)
    return max(last, 0)


def _is_placeholder(name: str, password: str) -> bool:
    return (name.lower(), password.lower()) in _EXAMPLES or _PLACEHOLDER.fullmatch(password) is not None


# -- private keys

_BLANK = r"(?:[\s\"'>]|\\++[rnt\"])"
_BREAK = r"(?:\n|\\++n)"
_SAID = rf"(?:Proc-Type|DEK-Info|Version|Comment|Hash|Charset|MessageID):[^\n\\]{{0,200}}+(?={_BREAK})"
_PEM = pattern(r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_PEM_ENDED = pattern(
    rf"(?:{_BLANK}++(?:{_SAID}|[A-Za-z0-9+/=]{{1,20000}}+)){{1,1000}}+{_BLANK}*+"
    r"-----END (?:[A-Z0-9]{1,20} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
)
# The end is missing: whole lines, the last of them of any length, or words too long to be words.
_B64_LINE = rf"[A-Za-z0-9+/=]{{{PEM_LINE_CHARS_MIN},20000}}+(?={_BLANK}{{0,8}}+(?:{_BREAK}|\Z)|\"|')"
_PEM_OPEN = pattern(
    rf"(?:(?:[ \t\r>\"']|\\++[rt])*+{_BREAK}{_BLANK}*+(?:{_SAID}|{_B64_LINE})"
    rf"|{_BLANK}++[A-Za-z0-9+/=]{{{PEM_WORD_CHARS_MIN},20000}}+){{1,1000}}+"
    rf"(?:[ \t\r]*+{_BREAK}[ \t]*+[A-Za-z0-9+/]{{1,80}}+={{0,2}}(?=\s|\\|\"|'|\Z))?"
)


def _private_key(text: str, start: int, _at: int) -> Found | None:
    begun = text.rfind("-----BEGIN ", max(0, start - BACK_CHARS_MAX), start)
    header = None if begun < 0 else _PEM.match(text, begun)
    if header is None:
        return None
    ended = _PEM_ENDED.match(text, header.end())
    if ended is not None and re.search(rf"[A-Za-z0-9+/=]{{{PEM_LINE_CHARS_MIN}}}", ended[0]):
        return begun, ended.end()
    rest = _PEM_OPEN.match(text, header.end())
    return begun, header.end() if rest is None else rest.end()


FORMS: tuple[SecretForm, ...] = (
    SecretForm("private key", (("PRIVATE KEY", "-----"), ("PRIVATE KEY BLOCK", "-----")), _private_key),
    SecretForm("API key", _starts("sk-"), _api_key),
    SecretForm("payment key", _starts("[sr]k_live_", "[sr]k_test_"), rf"{_L}{{16,200}}+"),
    SecretForm("payment key", _starts("whsec_"), r"[A-Za-z0-9+/]{24,200}+={0,2}"),
    SecretForm("AWS key", (("A[KSB]I", "A"),), rf"[0-9A-Z]{{16}}{_END}"),
    SecretForm("GitHub token", _starts("gh[pousr]_"), rf"{_L}{{36,255}}+"),
    SecretForm("GitHub token", _starts("github_pat_"), r"[A-Za-z0-9_]{30,255}+"),
    SecretForm(
        "GitLab token",
        _starts("glpat-", "glrt-", "gldt-", "glptt-", "glcbt-"),
        rf"{_W}{{20,300}}+(?:\.[0-9a-z]{{2}}\.[0-9a-z]{{9}})?",
    ),
    SecretForm("Slack token", _starts("xox[abeoprs]-", "xapp-"), r"[A-Za-z0-9-]{10,250}+"),
    SecretForm("Google key", (("AI", "z"),), rf"a{_W}{{35}}"),
    SecretForm("Google token", _starts("ya29."), rf"{_W}{{20,1000}}+"),
    SecretForm("Google secret", _starts("GOCSPX-"), rf"{_W}{{20,60}}+"),
    SecretForm("package token", _starts("npm_"), rf"{_L}{{36}}{_END}"),
    SecretForm("package token", _starts("pypi-"), _package_token),
    SecretForm("model hub token", _starts("hf_"), rf"{_L}{{34}}{_END}"),
    SecretForm("model hub token", _starts("r8_"), rf"{_L}{{32,60}}+{_END}"),
    SecretForm("API key", _starts("gsk_", "xai-", "pplx-"), rf"{_L}{{32,200}}+{_END}"),
    SecretForm("mail key", _starts("SG."), rf"{_W}{{16,40}}+\.{_W}{{32,80}}+"),
    SecretForm("vault token", _starts("hv[sbr]."), rf"{_W}{{24,400}}+"),
    SecretForm("registry token", _starts("dckr_pat_", "dckr_oat_"), rf"{_W}{{20,100}}+"),
    SecretForm("hosting token", _starts("do[por]_v1_"), r"[0-9a-f]{64}"),
    SecretForm("shop token", _starts("shpat_", "shpss_", "shpca_", "shppa_"), r"[0-9A-Fa-f]{32}"),
    SecretForm("bot token", (("[0-9]", ":AA"),), _bot_token),
    SecretForm("perdure key", _starts("pdr_"), rf"{_L}{{6,40}}+_{_W}{{30,200}}+"),
    SecretForm("web token", (("ey", "J"),), rf"{_W}{{8,1000}}+\.eyJ{_W}{{8,8000}}+\.{_W}{{8,2000}}+"),
    SecretForm("login", (("[Uu][Tt][Hh][Oo][Rr][Ii]", "z"), ("UTHORI", "Z")), _basic_login),
    SecretForm("password", (("", r":\\?/\\?/"),), _url_password),
)


def may_hold_secrets(text: str) -> bool:
    """False if there is none for sure; much quicker than looking."""
    return _noticed().search(text) is not None


def secret_in(text: str) -> str | None:
    """The kind of the first secret in `text`; None if there is none."""
    return next((name for name, _ in _secrets_in(text)), None)


def without_secrets(text: str) -> str:
    """`text` with a marker in the place of each secret; the same text if it has none."""
    parts: list[str] = []
    kept = 0
    for name, (start, end) in _secrets_in(text):
        parts += (text[kept:start], f"[secret removed: {name}]")
        kept = end
    return "".join((*parts, text[kept:])) if parts else text


def without_secrets_in(value: Any) -> Any:
    """JSON with markers in the place of secrets, in names of fields too. The value itself is not changed."""
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, dict):
        names = _renamed(value)
        return {names.get(name, name): without_secrets_in(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [without_secrets_in(inner) for inner in value]
    return value


def _renamed(fields: dict[str, Any]) -> dict[str, str]:
    """New names for those that hold secrets. No two fields become one: the second of a kind is numbered, and so on."""
    held = {name: told for name in fields if (told := without_secrets(name)) is not name}
    taken = fields.keys() - held.keys() if held else set()
    counts: dict[str, int] = {}
    for name, told in held.items():
        free, number = told, counts.get(told, 1)
        while free in taken:
            number += 1
            free = f"{told} {number}"
        counts[told] = number
        held[name] = free
        taken.add(free)
    return held


def _secrets_in(text: str) -> Iterator[tuple[str, Found]]:
    """Each secret in turn: its kind, and where it is."""
    noticed = _noticed()
    begun = noticed.search(text)
    kept = 0
    while begun is not None:
        name, width, find = _finders()[begun.lastgroup or ""]
        at = begun.end()
        found = find(text, begun.start() - width, at)
        if found is not None and found[0] >= kept:
            yield name, found
            kept = found[1]
        begun = noticed.search(text, max(at, kept))


_ESCAPE = pattern(r"(?:\\[nrtbfv0]|\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}|%[0-9a-fA-F]{2}|\x1b\[[0-9;]{0,8}m)\Z")


def _is_edge(text: str, start: int) -> bool:
    """Whether a word may begin there: after what is no letter or digit, or one that belongs to an escape."""
    before = text[start - 1 : start]
    return not (before.isascii() and before.isalnum()) or _ESCAPE.search(text[max(0, start - 12) : start]) is not None


def _by_pattern(tail: str) -> Finder:
    behind = re.compile(tail)

    def find(text: str, start: int, at: int) -> Found | None:
        rest = behind.match(text, at)
        return (start, rest.end()) if rest is not None and _is_edge(text, start) else None

    return find


@cache
def _finders() -> dict[str, tuple[str, int, Finder]]:
    """By the name of their group in `_noticed`: the kind, how much of the beginning is before the match, and the rest."""
    known = {}
    for number, form in enumerate(FORMS):
        find = _by_pattern(form.tail) if isinstance(form.tail, str) else form.tail
        for place, (before, _) in enumerate(form.starts):
            known[f"f{number}_{place}"] = (form.name, len(re.sub(r"\[[^]]+\]", "x", before)), find)
    return known


@cache
def _noticed() -> re.Pattern[str]:
    """What every secret has: one of few characters that are rare in texts, and what stands around it.

    Most texts have none of these, and are looked at once. Compiled when first needed.
    """
    ways: dict[str, list[str]] = {}
    lasts: dict[str, str] = {}
    for number, form in enumerate(FORMS):
        for place, (before, mark) in enumerate(form.starts):
            behind = f"(?<={before}{re.escape(mark[0])})" if before else ""
            ways.setdefault(mark[0], []).append(f"{behind}{mark[1:]}(?P<f{number}_{place}>)")
            lasts[mark[0]] = lasts.get(mark[0], "") + (before.rpartition("[")[2] if before.endswith("]") else before[-1:] + "]")
    # Before anything else, the one character before: hyphens and points are not so rare.
    near = {mark: f"(?<=[{last.replace(']', '')}]{re.escape(mark)})" for mark, last in lasts.items() if mark != ":"}
    return re.compile("|".join(f"{re.escape(mark)}{near.get(mark, '')}(?:{'|'.join(way)})" for mark, way in ways.items()))
