"""Items: what a reader must have letter by letter, such as ids, paths, addresses, amounts and dates, found in running text.

Patterns only. An item is a place in the text, so it is always word for word; what to do with it is decided elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from perdure.domain.text.patterns import pattern
from perdure.domain.values import dataclass

ItemKind = Literal["identifier", "path", "url", "quantity", "date"]


@dataclass(frozen=True, slots=True)
class LiteralItem:
    kind: ItemKind
    start: int
    end: int


# The classes below are ASCII so that an id inside Chinese or Japanese text, where no space parts them, ends where it ends.
_MONTHS = (
    "jan(?:uary|uar|vier)?|feb(?:ruary|ruar)?|mar(?:ch|zo)?|märz|apr(?:il)?|may|mai|june?|juni|july?|juli|aug(?:ust)?"
    "|sept?(?:ember)?|o[ck]t(?:ober)?|nov(?:ember)?|de[cz](?:ember)?|févr?(?:ier)?|mars|avril|juin|juillet|août|septembre"
    "|octobre|novembre|décembre|enero|febrero|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre"
)
_DAYS = (
    "mon(?:day)?s?|tue(?:s(?:day)?)?s?|wed(?:nesday)?s?|thu(?:rs(?:day)?)?s?|fri(?:day)?s?|sat(?:urday)?s?|sun(?:day)?s?"
    "|montags?|dienstags?|mittwochs?|donnerstags?|freitags?|samstags?|sonntags?|lundi|mardi|mercredi|jeudi|vendredi|samedi"
    "|dimanche|lunes|martes|miércoles|jueves|viernes|sábados?|domingos?"
)
_UNITS = (
    "milliseconds?|seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|nights?|weeks?|months?|years?|yrs?|ms|[smhd]|sekunden?"
    "|minuten?|stunden?|std|tagen?|tage|wochen?|monaten?|monate|jahren?|jahre|uhr|jours?|heures?|semaines?|mois|ans?|días?"
    "|horas?|minutos?|semanas?|meses|años?|euros?|eur|usd|gbp|chf|cad|aud|jpy|dollars?|bucks|pounds?|cents?|quid|grand|francs?"
    "|[kmgt]i?b(?:ps|/s)?|bytes?|[kmg]bit/s|px|dpi|[kmg]?hz|rpm|fps|qps|rps|req/s|tokens?|[kmµu]?g|mcg|lbs?|oz|ounces?|grams?"
    "|kilos?|[kcmµn]?m|km/h|mph|miles?|mi|feet|foot|ft|inch(?:es)?|yards?|acres?|m[²2³3]|sqm|sq\\.? ?ft|[mcd]?l|lit(?:er|re)s?"
    "|cups?|tbsp|tsp|gallons?|gal|pints?|k?cal|k?wh|[kmg]?w|watts?|volts?|v|m?ah?|bar|psi|°[cf]?|degrees?|k?pa|mmhg|mg/dl"
    "|mmol/l|bpm|iu|units?|percent|prozent|pct|pp|people|persons?|guests?|personen|gäste|personnes?|personas|adults?|kids"
    "|children|seats?|rooms?|bedrooms?|pieces?|stück|pages?|copies|users?|requests?|rows?|items?|nodes?|replicas?|cores?"
    "|instances?|times|mal|fois|veces|tablets?|pills?|元|块|万|亿|人|个|天|小时|分钟|公斤|公里|岁|円|年|月|日|時|分|名|個|本|枚"
    "|원|명|개|시간|일|월"
)
_LABELS = (
    "room|gate|flight|order|ticket|invoice|case|apt|apartment|suite|unit|port|pid|id|account|ref|reference|booking|confirmation"
    "|po|pr|issue|bug|build|line|lot|batch|pin|code|zip|article|section|clause|paragraph|page|floor|platform|seat|row|extension"
    "|ext|chapter|figure|table|version|member|policy|patient|locker|track|size|model|nr|no|number|zimmer|bestellung|rechnung"
    "|artikel|gleis|kunde|kundennummer|aktenzeichen|chambre|commande|facture|numéro|habitación|pedido|factura|número"
)
_NUMBER = r"\d+(?:[.,'’\u00a0\u202f]\d{3})*(?:[.,]\d+)?"
_MONEY = r"[$€£¥₹₩₽₪฿]"
_PART = r"[A-Za-z0-9_]"
_TOP = r"(?:com|org|net|io|dev|ai|de|fr|es|uk|ch|at|eu|internal|local|cloud|app|example|test)"
_EXTENSIONS = (
    "py|whl|js|ts|tsx|jsx|json|jsonl|ya?ml|toml|ini|cfg|conf|env|md|rst|txt|csv|tsv|xlsx?|docx?|pptx?|pdf|png|jpe?g|gif|svg|zip|gz|tgz"
    "|tar|bz2|xz|7z|sql|db|sqlite3?|parquet|ipynb|sh|bash|ps1|bat|exe|dll|so|java|kt|rs|go|rb|php|c|cc|cpp|h|hpp|cs|swift|html?"
    "|css|scss|xml|log|lock|pem|key|crt|mp[34]|wav|mov|avi|mkv|heic|psd|ics|eml|tf|proto|plist|bak|tmp|odt|ods|epub|stl|dwg|tex|bib"
)

_URL = pattern(
    r"(?:https?|ftp|wss?|s3|gs|git|ssh|file|postgres(?:ql)?|mysql|redis|mongodb)(?:\+\w+)?://[^\s<>\"'`，。、）」]+"
    r"|\bwww\.[\w-]+\.[^\s<>\"'`，。、）」]+",
    re.IGNORECASE | re.ASCII,
)
_EMAIL = pattern(r"(?<![\w.+%-])[\w.+%-]+@[\w-]+(?:\.[\w-]+)+", re.ASCII)
_HANDLE = pattern(r"(?<![\w@./&])[@#][A-Za-z][\w.-]*\w", re.ASCII)
_TICKED = pattern(r"`([^`\n]{1,120})`")
_WINDOWS_PATH = pattern(r"(?:\b[A-Za-z]:\\|\\\\[\w.-]+\\)[^\s\"'<>|*?`,;，。]+")
_UNIX_PATH = pattern(
    r"(?<![\w/.:])(?:~|\.{1,2})?/(?:[\w.@%+~{}$:À-ÿ-]+/?)+"
    r"|(?<![\w/.:@])[\w.@-]+(?:/[\w.@%+{}$À-ÿ-]+){2,}/?"
    r"|(?<![\w/.:@])[\w@-]+/[\w.-]+\.[A-Za-z]\w{0,7}\b",
    re.ASCII,
)
_FILE = pattern(
    rf"(?<![\w/.@-])[A-Za-z0-9_À-ɏЀ-ӿ-][A-Za-z0-9_À-ɏЀ-ӿ.-]*\.(?:{_EXTENSIONS})\b(?![.-]\w)|(?<![\w/])\.env(?:\.\w+)?\b",
    re.IGNORECASE | re.ASCII,
)
# These look like numbers or dates in part, so they go before both.
_STRONG_CODES = pattern(
    r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b"
    r"|\b(?:\d{1,3}\.){3}\d{1,3}(?:/\d{1,2})?(?::\d{2,5})?\b|(?<![\w:])(?:[0-9a-fA-F]{0,4}:){3,7}[0-9a-fA-F]{1,4}\b"
    r"|\b[A-Z]{2}\d{2}(?:\s[\dA-Z]{2,4}){3,8}\b|\b(?:\d{4}[ -]){2,4}\d{2,4}\b|\b[A-Z]{1,3}[ -][A-Z]{1,2}[ -]?\d{1,4}\b"
    r"|\b[A-Z]{2,3}(?: \d{3,4}){1,3}(?: \d)?\b"
    r"|(?<![\w.+-])\+\d[\d\s().–/-]{6,18}\d|(?<![\w.-])\(?0\d{1,4}\)?[\s/-]\d[\d\s/-]{4,14}\d|(?<!\w)\(\d{3}\)\s?\d{3}-\d{4}"
    r"|\b\d{3}[-.]\d{3,4}[-.]\d{4}\b|\b\d{3}-\d{4}\b|\bv\d+(?:\.\d+)*(?:[-+][\w.]+)?\b"
    r"|(?<![\w-])(?!\d\d?\.\d\d?\.(?:19|20)\d\d\b)\d+\.\d+\.\d+(?:\.\d+)*(?:[-+][\w.]+)?\b"
    r"|\b\d+\.\d+-?(?:rc|beta|alpha|b|a|dev|post)\.?\d+\b|§+\s?\d+\w*(?:\s(?:Abs\.|Satz|Nr\.|para\.)\s?\d+)*",
    re.ASCII,
)
_CODES = pattern(
    rf"\b[A-Za-z][\w-]*(?:\.[\w-]+)*:\d{{2,5}}(?![\d:])|\b[A-Za-z][\w-]*(?:\.[A-Za-z][\w-]*)*\.{_TOP}(?![\w-])"
    rf"|(?<![A-Za-z0-9_/-])(?=[\w./:#-]*\d)(?=[\w./:#-]*[A-Za-z])[A-Za-z0-9]{_PART}*(?:[-_./:#]+[A-Za-z0-9]{_PART}*)*"
    r"|[#№]\s?\d[\w-]*|(?<![\w.,])\d[\d-]{4,}\d\b|\b\d+(?:[-/]\d+)+\b",
    re.ASCII,
)
_LABELLED = pattern(
    rf"(?<![a-z0-9_])(?:{_LABELS})\.?:?\s(?:number:?\s|no\.?\s|nr\.?\s|is\s|#\s?)?(?=[\w./-]*\d)[a-z0-9][\w./-]*", re.ASCII
)
_NAMED = pattern(
    r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b|\b[A-Z0-9]+(?:-[A-Z0-9]+){2,}\b|\b[A-Za-z]\w*_\w+\b|\b[a-z]+(?:[A-Z][a-z0-9]+)+\b|\b(?:[A-Z][a-z0-9]+){3,}\b"
    r"|\b[A-Za-z_]\w+(?:\.[A-Za-z_]\w+)+(?:\(\))?|\b\w+(?:::\w+)+|(?<![\w-])--[a-z][\w-]+(?:=[^\s,;]+)?",
    re.ASCII,
)
_NAMED_HINT = pattern(r"_|[a-z][A-Z]|[A-Z]-[A-Z]|::|--[a-z]")
_DOTTED = pattern(r"\.[A-Za-z]")
# Read in lower case and from the edge of a word or number on: that lets the engine rule out most places by one look.
_DATES = pattern(
    r"(?<![a-z0-9_:.-])(?:"
    r"\d{4}-\d\d?-\d\d?(?:[t ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:z|[+-]\d\d:?\d\d)?)?(?![\w-])"
    r"|\d{4}/\d\d?/\d\d?(?!\w)|\d{4}-w\d\d(?!\w)"
    r"|\d{4}年(?:\d{1,2}月(?:\d{1,2}[日号])?)?|\d{4}년(?:\s?\d{1,2}월(?:\s?\d{1,2}일)?)?"
    r"|\d{1,2}(?:/\d\d?/\d{2,4}(?!\w)|\.\d\d?\.(?:(?:19|20)\d\d(?!\w)|(?=\s|$|[,;)]))|月\d{1,2}[日号]|월\s?\d{1,2}일"
    rf"|(?:st|nd|rd|th|er|\.|º)?\s(?:of\s|de\s)?(?:{_MONTHS})(?!\w)\.?(?:,?\s(?:de\s)?\d{{4}}(?!\w))?|(?:st|nd|rd|th)(?!\w)"
    r"|(?::\d\d){0,2}\s?[ap]\.?m(?!\w)|:\d\d(?::\d\d(?:[.,]\d+)?)?(?![\d:])|h\d\d(?!\w))"
    r"|q[1-4](?:\s\d{4})?(?!\w)|kw\s?\d\d?(?!\w)"
    rf"|(?:{_DAYS}),?\s(?:the\s|den\s|le\s|el\s)?(?:\d{{1,2}}(?:st|nd|rd|th|er|\.|º)?\s(?:of\s|de\s)?(?:{_MONTHS})(?!\w)\.?"
    rf"(?:,?\s(?:de\s)?\d{{4}}(?!\w))?|(?:{_MONTHS})\.?\s\d{{1,2}}(?:st|nd|rd|th)?(?!\w)(?:,?\s\d{{4}}(?!\w))?)"
    rf"|(?:{_MONTHS})(?:\.?\s\d{{1,2}}(?:st|nd|rd|th)?(?!\w)(?:,?\s\d{{4}}(?!\w))?|\s(?:de\s)?\d{{4}}(?!\w))"
    r")",
    re.ASCII,
)
_NOT_WORD = r"(?![a-z0-9_à-ɏ])"
_QUANTITIES = pattern(
    rf"{_MONEY}\s?{_NUMBER}(?:\s?(?:k|m|bn|million|billion|thousand){_NOT_WORD})?"
    rf"|(?<![a-z0-9_.,:/-])[-+−]?{_NUMBER}(?:\s?[%‰]|\s?k?\s?{_MONEY}|\s?°\s?[cf]?{_NOT_WORD}"
    rf"|(?:\s?[x×]\s?\d+(?:[.,]\d+)?){{1,2}}(?:\s?(?:{_UNITS}))?{_NOT_WORD}"
    rf"|\s?(?:-|–|to|bis|à|a)\s?{_NUMBER}[\s-]?(?:{_UNITS}){_NOT_WORD}"
    rf"|[\s\u00a0-]?(?:k\s|thousand\s|million\s|mio\.?\s)?(?:{_UNITS}){_NOT_WORD}(?!-\w))"
    r"|(?<![a-z0-9_.,:/-])\d{1,3}(?:[.,'’]\d{3})+(?![\w-])|(?<![a-z0-9_.,:/-])\d+[.,]\d+(?![\w.-])"
    r"|(?<![a-z0-9_.,:/-])\d{3,5}(?![\w:/-])",
    re.ASCII,
)
_DIGIT = pattern(r"\d", re.ASCII)
_TRAILING = ".,;:!?)]}'\"*…/"


def items_of(text: str) -> list[LiteralItem]:
    """The items of `text` in order of place; none overlaps another. Meant for a sentence or so."""
    found: list[LiteralItem] = []
    if "://" in text or "www." in text:
        _collect(found, "url", _URL, text)
    if "@" in text:
        _collect(found, "identifier", _EMAIL, text)
    if "/" in text or "\\" in text:
        _collect(found, "path", _WINDOWS_PATH, text)
        _collect(found, "path", _UNIX_PATH, text)
    is_dotted = _DOTTED.search(text) is not None
    if is_dotted:
        _collect(found, "path", _FILE, text)
    if _DIGIT.search(text):
        lower = text.lower()
        lower = lower if len(lower) == len(text) else text
        _collect(found, "identifier", _STRONG_CODES, text)
        _collect(found, "date", _DATES, lower)
        labelled = [match.span() for match in _LABELLED.finditer(lower)]
        _collect(found, "quantity", _QUANTITIES, lower, beside=labelled)
        _collect(found, "identifier", _LABELLED, lower)
        _collect(found, "identifier", _CODES, text)
    elif is_dotted:
        _collect(found, "identifier", _CODES, text)
    if is_dotted or _NAMED_HINT.search(text):
        _collect(found, "identifier", _NAMED, text)
    if "`" in text:
        _collect(found, "identifier", _TICKED, text, group=1)
    if "@" in text or "#" in text:
        _collect(found, "identifier", _HANDLE, text)
    found.sort(key=lambda item: item.start)
    return found


def _collect(
    found: list[LiteralItem],
    kind: ItemKind,
    pattern: re.Pattern[str],
    text: str,
    *,
    group: int = 0,
    beside: Sequence[tuple[int, int]] = (),
) -> None:
    taken = [*((item.start, item.end) for item in found), *beside]
    for match in pattern.finditer(text):
        start, end = match.span(group)
        if kind != "quantity":
            end = _without_trailing(text, start, end)
        if end > start and not any(start < there_end and there_start < end for there_start, there_end in taken):
            found.append(LiteralItem(kind, start, end))


def _without_trailing(text: str, start: int, end: int) -> int:
    """Punctuation after an item is the sentence's, unless it closes a bracket that the item opens, as in `main()`."""
    while end > start + 1 and text[end - 1] in _TRAILING and not (text[end - 1] == ")" and "(" in text[start:end]):
        end -= 1
    return end
