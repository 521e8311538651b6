"""Rules for questions: times of day, stretches of a day, and the zones that people write behind them.

An hour that is named is the whole hour, a minute the whole minute. Part of the grammar of `rules`.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from functools import partial

from perdure.engine.times.calendar import Moment, Shift, Stretch, midnight
from perdure.engine.times.grammar import HOUR_WORDS, Rule, amount, ask_rule, vocabulary

_ZONED = r"\(?(?P<zone>(?:utc|gmt) ?[+-]\d{1,2}(?::?\d\d)?|<<zones>>)\b\)?"
_ZONE = rf"(?:\s*{_ZONED})?"
_HALF = r"\(?(?P<half>[ap](?:\.?\s?m\b\.?))\)?"
_SHORT_HALF = r"(?P<half>[ap](?:\.?\s?m\b\.?|\b\.?))"
_MINUTE_WORDS = r"(?:(?:oh|ou|o|zero|twenty|thirty|forty|fifty)[ -]<<digits>>|<<tens>>)"
_ABOUT = r"(?:(?:about|around|approximately|exactly|gegen|vers|sobre|hacia|circa|ca\.) )?"
_AFTER_NOON = ("afternoon", "evening", "night", "tonight", "tarde", "noche", "abends", "nachmittags", "soir", "après-midi")


def _clock(match: re.Match[str], moment: Moment) -> Stretch | None:
    groups = match.groupdict()
    hour = _hour(groups["h"])
    written = groups.get("mi") or ""
    minute = int(written) if written.isdecimal() else _minute(written)
    second = int(groups.get("s") or 0)
    half = (groups.get("half") or "").lower()[:1]
    part = (groups.get("part") or "").lower()
    if part:
        half = "p" if part in _AFTER_NOON and hour < 12 and not (part in ("night", "noche") and hour < 5) else ""
    if half and not 1 <= hour <= 12:
        return None
    twelve = not (half or part or groups.get("day")) and 1 <= hour <= 12 and not groups["h"].startswith("0")
    if half:
        hour = hour % 12 + (12 if half == "p" else 0)
    elif twelve and not written and moment.tense < 0 and hour <= 5:
        hour, twelve = hour + 12, False  # `at 3` is after noon unless it is said otherwise
    if hour > 23 or minute > 59 or second > 59:
        return None
    grain = "second" if groups.get("s") else "minute" if written else "hour"
    found = time_of_day(moment, hour, minute, second, grain)
    return replace(found, twelve=twelve, offset_min=_offset(groups.get("zone")))


def _offset(zone: str | None) -> int | None:
    """Minutes east of Greenwich of `EST`, `UTC+2`, `Z` or `+05:30`."""
    zone = (zone or "").lower().replace(" ", "")
    if not zone or zone in vocabulary().zones:
        return vocabulary().zones.get(zone)
    hours = re.fullmatch(r"[a-z]*(?:(?P<sign>[+-])(?P<h>\d\d?):?(?P<mi>\d\d)?)?", zone)
    if hours is None or not hours["h"]:
        return 0
    return (-1 if hours["sign"] == "-" else 1) * (60 * int(hours["h"]) + int(hours["mi"] or 0))


def _instant(match: re.Match[str], moment: Moment) -> Stretch | None:
    """`2024-03-04T09:15:30+02:00`: that minute or second."""
    day = replace(moment, now=datetime.combine(date(int(match["y"]), int(match["m"]), int(match["d"])), time()))
    clock = _clock(match, day)
    return replace(clock, loose=False, twelve=False) if clock else None


def time_of_day(moment: Moment, hour: int, minute: int = 0, second: int = 0, grain: str = "minute") -> Stretch:
    low = midnight(moment.today) + timedelta(hours=hour, minutes=minute, seconds=second)
    return Stretch(low, low + timedelta(**{f"{grain}s": 1}), clock=True, loose=True, grain=grain)


def _hour(word: str) -> int:
    return int(word) if word.isdecimal() else vocabulary().numbers[word.lower()]


def _minute(words: str) -> int:
    return sum(vocabulary().numbers.get(word, 0) for word in re.split(r"[ -]", words.lower()))


def _noon(_: re.Match[str], moment: Moment) -> Stretch:
    return time_of_day(moment, 12, grain="hour")


def _midnight(_: re.Match[str], moment: Moment) -> Stretch:
    return time_of_day(moment, 0, grain="hour")


def _part(match: re.Match[str], moment: Moment) -> Stretch:
    low, high = vocabulary().wide_parts[match["part"].lower().replace(" ", "-")]
    return _hours(moment, low, high)


def _hours(moment: Moment, low: int, high: int) -> Stretch:
    start = midnight(moment.today)
    return Stretch(start + timedelta(hours=low), start + timedelta(hours=high), clock=True, loose=True, grain="part")


def _set_part(_: re.Match[str], moment: Moment, *, low: int, high: int) -> Stretch:
    return _hours(moment, low, high)


def _today_part(match: re.Match[str], moment: Moment, *, day: int) -> Stretch:
    low, high = vocabulary().wide_parts[match["part"].lower().replace(" ", "-")]
    return _part_on(moment, day, low, high)


def _part_on(moment: Moment, day: int, low: int, high: int) -> Stretch:
    return replace(_hours(replace(moment, now=moment.now + timedelta(days=day)), low, high), loose=False)


def _night(match: re.Match[str], moment: Moment, *, day: int) -> Stretch:
    return _part_on(moment, day, 21 if match["late"] else 18, 24)


def _part_turn(match: re.Match[str], _: Moment) -> Shift:
    """`the morning of`, a day; `the night before` and `the morning after` it."""
    low, high = vocabulary().wide_parts[match["part"].lower()]
    beside = {"before": -1, "after": 1}.get((match["side"] or "").lower(), 0)

    def picked(day: Stretch, __: Moment) -> Stretch | None:
        if day.clock or day.width > timedelta(days=1):
            return None
        start = day.low + timedelta(days=beside)
        return replace(
            day, low=start + timedelta(hours=low), high=start + timedelta(hours=high), clock=True, yearly=None, grain="part"
        )

    return Shift(picked)


def _past_hour(match: re.Match[str], _: Moment) -> Shift | None:
    """`20 past`, `a quarter to`, `half past`: the hour comes after it."""
    words = match["n"].lower()
    minutes = 15 if "quarter" in words or "viertel" in words else 30 if "half" in words else int(amount(words))
    sign = -1 if re.fullmatch(r"to|till|before|of|vor", match["side"], re.IGNORECASE) else 1
    if sign < 0 and minutes % 5 and "min" not in match[0].lower():
        return None  # `9 to 5` is no time of day

    def moved(clock: Stretch, __: Moment) -> Stretch | None:
        if not clock.clock or clock.grain != "hour":
            return None
        low = clock.low + sign * timedelta(minutes=minutes)
        return replace(clock, low=low, high=low + timedelta(minutes=1), grain="minute")

    return Shift(moved)


def _span(match: re.Match[str], moment: Moment) -> Stretch | None:
    """`3 to 5 pm`, `9-11am`, `von 15 bis 17 Uhr`, `de 15h à 17h`: the hour after `to` is where it ends."""
    groups = match.groupdict()
    low, high = _hour(match["h"]), _hour(match["h2"])
    half, half2 = ((groups.get(name) or "").lower()[:1] for name in ("half", "half2"))
    part = (groups.get("part") or "").lower()
    half2 = half2 or ("p" if part in _AFTER_NOON else "a" if part else "")
    if half2 and not (1 <= low <= 12 and 1 <= high <= 12):
        return None
    if half2:
        high = high % 12 + (12 if half2 == "p" else 0)
        half = half or ("p" if half2 == "p" and low % 12 + 12 <= high else "a")
        low = low % 12 + (12 if half == "p" else 0)
    mi, mi2 = int(groups.get("mi") or 0), int(groups.get("mi2") or 0)
    if low > 23 or high > 24 or mi > 59 or mi2 > 59:
        return None
    start = midnight(moment.today)
    found = Stretch(
        start + timedelta(hours=low, minutes=mi), start + timedelta(hours=high, minutes=mi2), "span", clock=True, loose=True
    )
    if found.high <= found.low:
        found = replace(
            found, high=found.high + timedelta(hours=12 if not half2 and found.width > timedelta(hours=-12) else 24)
        )
    return replace(found, offset_min=_offset(groups.get("zone")), twelve=not half2 and high <= 12 and not groups.get("mark"))


_GERMAN_HOURS = "(?:zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf|[2-9]|1[0-2])"


def _weekday_part(match: re.Match[str], moment: Moment) -> Stretch:
    """`Montagmorgen`."""
    wanted, part = vocabulary().weekday_parts[match["day"].lower()]
    ahead = (wanted - moment.today.weekday()) % 7 or 7
    return _part_on(moment, (ahead - 7 or -7) if moment.tense < 0 else ahead, *vocabulary().wide_parts[part])


def _half_before(match: re.Match[str], moment: Moment) -> Stretch:
    """`halb neun` is half past eight."""
    return replace(time_of_day(moment, _hour(match["h"]) - 1, 30), twelve=True)


_HOUR_OF_DAY = "an hour is the whole hour, a minute the whole minute"
_PART_OF_DAY = "a part of the day, taken widely"
_IN_PART = (
    r" (?:in the |in |at |am |du |de l['’]|de la |del |por la |this )(?P<part>morning|afternoon|evening|"
    r"night|tarde|noche|mañana|matin|soir|après-midi)"
)
_MINUTES = r"\d{1,2}|<<numbers>>"
_PAST_SIDE = rf"(?P<side>past|after|to|till|before|of|from)(?= (?:\d|noon|midnight|{HOUR_WORDS}))"
_TO = r"\s?(?:-|–|to|and|until|till|untill|['’]?til|bis|à|a las|a|y|et|und)\s?"
_SPAN_LEAD = r"(?:(?:from|in between|between|von|zwischen|de|entre|desde las|de las|entre las|d['’]) ?)?"

RULES: tuple[Rule, ...] = (
    ask_rule(
        "# from between in von zwischen de entre desde d <<numbers>>",
        rf"{_SPAN_LEAD}(?P<h>\d{{1,2}}|{HOUR_WORDS})(?::(?P<mi>\d\d))?\s?(?P<half>[ap]\.?m\b\.?)?{_TO}"
        rf"(?P<h2>\d{{1,2}}|{HOUR_WORDS})(?::?(?P<mi2>\d\d))?\s?(?P<half2>[ap]\.?\s?m\b\.?){_ZONE}",
        _span,
        "from the first hour to the second",
    ),
    ask_rule(
        "# from between von zwischen de entre desde d",
        rf"{_SPAN_LEAD}(?P<h>\d{{1,2}})(?:[:.](?P<mi>\d\d))?(?:\s?Uhr)?{_TO}(?P<h2>\d{{1,2}})(?:[:.](?P<mi2>\d\d))?\s?(?P<mark>Uhr){_ZONE}",
        _span,
        "from the first hour to the second",
    ),
    ask_rule(
        "# from between von zwischen de entre desde d",
        rf"{_SPAN_LEAD}(?P<h>\d{{1,2}})\s?h\s?(?P<mi>\d\d)?{_TO}(?P<h2>\d{{1,2}})\s?(?P<mark>h)\s?(?P<mi2>\d\d)?{_ZONE}",
        _span,
        "from the first hour to the second",
    ),
    ask_rule(
        "# from between de entre desde",
        rf"{_SPAN_LEAD}(?P<h>\d{{1,2}})(?::(?P<mi>\d\d))?{_TO}(?P<h2>\d{{1,2}})(?::(?P<mi2>\d\d))?{_IN_PART}",
        _span,
        "from the first hour to the second",
    ),
    ask_rule(
        "from between in von zwischen entre",
        r"(?:from|in between|between|von|zwischen|entre) "
        rf"(?P<h>\d{{1,2}})(?::(?P<mi>\d\d))?{_TO}(?P<h2>\d{{1,2}})(?::(?P<mi2>\d\d))?(?: ?ish)?",
        _span,
        "from the first hour to the second",
        latent=True,
    ),
    ask_rule(
        "#",
        rf"(?P<h>\d{{1,2}})(?:[:. ]?(?P<mi>\d\d))?(?::(?P<s>\d\d))?\s?(?:ish )?{_HALF}(?:[ -]?ish)?{_ZONE}",
        _clock,
        _HOUR_OF_DAY,
    ),
    ask_rule(
        "#",
        r"(?P<y>(?:19|20)\d\d)-(?P<m>\d\d?)-(?P<d>\d\d?)(?:T| )(?P<h>\d\d):(?P<mi>\d\d)(?::(?P<s>\d\d)(?:\.\d{1,9})?)?"
        r"(?:\s?(?P<zone>z|[+-]\d\d:?\d\d)\b)?",
        _instant,
        _HOUR_OF_DAY,
    ),
    ask_rule("#", rf"(?P<h>\d{{1,2}})(?::?(?P<mi>\d\d))?\s?{_SHORT_HALF}{_ZONE}", _clock, _HOUR_OF_DAY, latent=True),
    ask_rule(
        "#",
        rf"(?<![\d:.])(?P<h>\d{{1,2}}):(?P<mi>\d\d)(?::(?P<s>\d\d))?(?!:?\d)(?: ?Uhr| ?h)?(?: ?ish)?{_ZONE}",
        _clock,
        _HOUR_OF_DAY,
    ),
    ask_rule("#", rf"(?P<h>\d{{1,2}})(?:[:.](?P<mi>\d\d))? ?(?:Uhr|o['’ ]?clock){_ZONE}", _clock, _HOUR_OF_DAY),
    ask_rule("#", r"(?P<h>[01]\d|2[0-3])(?P<mi>[0-5]\d) ?(?:hours|hrs)", _clock, _HOUR_OF_DAY),
    ask_rule("#", rf"(?P<h>\d{{1,2}}) ?o['’ ]?clock {_HALF}{_ZONE}", _clock, _HOUR_OF_DAY),
    ask_rule("#", rf"(?P<h>\d{{1,2}})(?::?(?P<mi>\d\d))?(?: ?o['’ ]?clock)?{_IN_PART}", _clock, _HOUR_OF_DAY),
    ask_rule(
        "<<numbers>>",
        rf"(?P<h>{HOUR_WORDS})(?:[ -](?P<mi>{_MINUTE_WORDS}))?(?: ?o['’ ]?clock)? ?{_HALF}{_ZONE}",
        _clock,
        _HOUR_OF_DAY,
    ),
    ask_rule(
        "<<numbers>>",
        rf"(?P<h>{HOUR_WORDS})(?:[ -](?P<mi>{_MINUTE_WORDS}))?(?: o['’ ]?clock)?{_IN_PART}",
        _clock,
        _HOUR_OF_DAY,
    ),
    ask_rule("<<numbers>>", rf"(?P<h>{HOUR_WORDS}) o['’ ]?clock{_ZONE}", _clock, _HOUR_OF_DAY),
    ask_rule("<<numbers>>", rf"(?P<h>{HOUR_WORDS})(?:[ -](?P<mi>{_MINUTE_WORDS}))?", _clock, _HOUR_OF_DAY, latent=True),
    ask_rule("#", rf"(?P<h>\d{{1,2}}) ?(?P<day>h) ?(?P<mi>\d\d)?{_ZONE}", _clock, _HOUR_OF_DAY, weak=True),
    ask_rule(
        "at um à a", rf"(?:at|um|à|a las|a la) {_ABOUT}(?P<h>\d{{1,2}}) ?(?P<day>h) ?(?P<mi>\d\d)?{_ZONE}", _clock, _HOUR_OF_DAY
    ),
    ask_rule("#", rf"(?P<h>\d{{1,2}})(?::? ?(?P<mi>[0-5]\d))?(?: ?ish)?{_ZONE}", _clock, _HOUR_OF_DAY, latent=True),
    ask_rule(
        "at um à a",
        rf"(?:at|um|à|a las|a la) {_ABOUT}(?P<h>\d{{1,2}})(?=\s*(?:[?.,;!)](?!\d)|$|on\b|tomorrow\b|today\b|"
        r"yesterday\b|tonight\b|sharp\b|last\b|gestern\b|hier\b|ayer\b))",
        _clock,
        _HOUR_OF_DAY,
    ),
    ask_rule(
        "at",
        rf"at {_ABOUT}(?P<h>{HOUR_WORDS})(?:[ -](?P<mi>{_MINUTE_WORDS}))?(?=\s*(?:[?.,;!)](?!\d)|$|on\b|tomorrow\b|"
        r"today\b|yesterday\b|tonight\b|sharp\b|last\b))",
        _clock,
        _HOUR_OF_DAY,
    ),
    ask_rule(
        "at um", rf"(?:at|um) {_ABOUT}(?P<h>\d{{1,2}})\.(?P<mi>[0-5]\d)(?![\d%]|\.\d){_ZONE}", _clock, _HOUR_OF_DAY, weak=True
    ),
    ask_rule("at", rf"at {_ABOUT}(?P<h>\d{{1,2}}) {_ZONED}", _clock, _HOUR_OF_DAY),
    ask_rule(
        "noon noonish midday mid midi mediodía the #",
        r"(?:12(?::00)? |the )?(?:noon|mid-?day|midi|mediodía)(?:[ -]?ish)?",
        _noon,
        _HOUR_OF_DAY,
    ),
    ask_rule(
        "midnight mid mitternacht minuit medianoche #",
        r"(?:12(?::00)? )?mid-?night|mitternacht|minuit|medianoche",
        _midnight,
        _HOUR_OF_DAY,
    ),
    ask_rule(
        "in the at early during morning afternoon evening night lunch lunchtime am vormittag nachmittag abend "
        "morgen le matin soir por tarde noche à",
        r"(?:(?:in|at|during|am|por|à|de) )?(?:the |la |le |l['’]|this )?(?P<part>early morning|morning|"
        r"afternoon|evening|night|lunch time|lunchtime|lunch|"
        r"vormittag|nachmittag|abend|matin|soir|après-midi|noche|nuit|madrugada)",
        _part,
        _PART_OF_DAY,
        weak=True,
    ),
    ask_rule("am por", r"(?:am|por la) (?P<part>morgen|mañana|tarde)", _part, _PART_OF_DAY, weak=True),
    ask_rule("after", r"after lunch", partial(_set_part, low=13, high=17), _PART_OF_DAY),
    ask_rule("after", r"after school", partial(_set_part, low=15, high=21), _PART_OF_DAY),
    ask_rule("after", r"after work", partial(_set_part, low=17, high=21), _PART_OF_DAY),
    ask_rule(
        "this",
        r"this (?P<part>early morning|morning|afternoon|evening|lunch time|lunchtime|lunch|night)",
        partial(_today_part, day=0),
        _PART_OF_DAY,
    ),
    ask_rule(
        "heute ce cet cette esta",
        r"(?:heute|ce|cet|cette|esta) (?P<part>früh|morgen|vormittag|nachmittag|mittag|abend|nacht|matin|soir|"
        r"soirée|après-midi|nuit|mañana|tarde|noche)",
        partial(_today_part, day=0),
        _PART_OF_DAY,
    ),
    ask_rule(
        "gestern hier ayer",
        r"(?:gestern|hier|ayer)(?: à| por la| en la| a)? (?P<part>früh|morgen|vormittag|nachmittag|mittag|"
        r"abend|nacht|matin|soir|après-midi|nuit|midi|tarde|noche|mañana|mediodía)",
        partial(_today_part, day=-1),
        _PART_OF_DAY,
    ),
    ask_rule("<<weekday_parts>>", r"(?P<day><<weekday_parts>>)", _weekday_part, _PART_OF_DAY),
    ask_rule("am", r"am (?P<day><<weekday_parts>>)", _weekday_part, _PART_OF_DAY),
    ask_rule("um halb", rf"(?:um )?halb (?P<h>{_GERMAN_HOURS})", _half_before, _HOUR_OF_DAY),
    ask_rule("anoche", r"(?P<part>)anoche", lambda _, moment: _part_on(moment, -1, 18, 24), _PART_OF_DAY),
    ask_rule("letzte cette", r"letzte nacht|la nuit dernière", lambda _, moment: _part_on(moment, -1, 18, 24), _PART_OF_DAY),
    ask_rule(
        "morgen demain mañana",
        r"(?:morgen|demain|mañana)(?: por la| en la)? (?P<part>früh|vormittag|nachmittag|abend|matin|soir|"
        r"après-midi|tarde|noche|mañana)",
        partial(_today_part, day=1),
        _PART_OF_DAY,
    ),
    ask_rule(
        "late tonight tonite later", r"(?:later )?(?P<late>late )?(?:tonight|tonite)", partial(_night, day=0), _PART_OF_DAY
    ),
    ask_rule("late last yesterday", r"(?P<late>late )?(?:last night|yesterday night)", partial(_night, day=-1), _PART_OF_DAY),
    ask_rule(
        "the in on morning afternoon evening night",
        r"(?:(?:in|on) )?(?:the )?(?P<part>morning|afternoon|evening|night) (?P<side>of|on|before|after)?",
        _part_turn,
        _PART_OF_DAY,
    ),
    ask_rule(
        "at a half quarter for # <<numbers>>",
        rf"(?:(?:at|for) )?(?P<n>(?:a )?quarter|half) {_PAST_SIDE}",
        _past_hour,
        _HOUR_OF_DAY,
    ),
    ask_rule(
        "half at",
        rf"(?:at )?(?P<n>half)(?P<side>)(?= (?:\d\d?|{HOUR_WORDS})(?:$|[\s.,?!]+(?:[ap]\.?m|in|at|on|today|to)))",
        _past_hour,
        _HOUR_OF_DAY,
        latent=True,
    ),
    ask_rule("# at <<numbers>>", rf"(?:at )?(?P<n>{_MINUTES}) min(?:ute)?s? {_PAST_SIDE}", _past_hour, _HOUR_OF_DAY),
    ask_rule("at", rf"at (?P<n>{_MINUTES}) {_PAST_SIDE}", _past_hour, _HOUR_OF_DAY),
    ask_rule("# <<numbers>>", rf"(?P<n>{_MINUTES}) {_PAST_SIDE}", _past_hour, _HOUR_OF_DAY, latent=True),
)
