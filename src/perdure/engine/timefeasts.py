"""Rules for questions: holidays, by the calendars that fix them. Part of the grammar of `timerules`."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from functools import cache, partial

from perdure.engine import timemoons as moons
from perdure.engine.calendars import Moment, Stretch, Turn, days_from
from perdure.engine.timegrammar import BACK, NEAR_STARTS, ON, THIS, YEAR, Rule, asked, way

Feast = Callable[[int], date]
Days = int | Callable[[int], int]


def easter(year: int) -> date:
    """Western Easter Sunday (Meeus/Jones/Butcher)."""
    century, rest = divmod(year, 100)
    golden = year % 19
    shift = (19 * golden + century - century // 4 - (century - (century + 8) // 25 + 1) // 3 + 15) % 30
    weekday = (32 + 2 * (century % 4) + 2 * (rest // 4) - shift - rest % 4) % 7
    late = (golden + 11 * shift + 22 * weekday) // 451
    month, day = divmod(shift + weekday - 7 * late + 114, 31)
    return date(year, month, day + 1)


def orthodox_easter(year: int) -> date:
    """Eastern Easter Sunday (Meeus, Julian), on the calendar of today."""
    shift = (19 * (year % 19) + 15) % 30
    weekday = (2 * (year % 4) + 4 * (year % 7) - shift + 34) % 7
    month, day = divmod(shift + weekday + 114, 31)
    return date(year, month, day + 1) + timedelta(days=year // 100 - year // 400 - 2)


def nth(year: int, *, month: int, weekday: int, place: int) -> date:
    """That weekday of the month; counted from its end if `place` is negative."""
    if place > 0:
        first = date(year, month, 1)
        return first + timedelta(days=(weekday - first.weekday()) % 7 + 7 * (place - 1))
    last = date(year + month // 12, month % 12 + 1, 1) - timedelta(days=1)
    return last - timedelta(days=(last.weekday() - weekday) % 7 + 7 * (-place - 1))


_MON, _TUE, _THU, _FRI, _SAT, _SUN = 0, 1, 3, 4, 5, 6
_FIXED: dict[tuple[int, int], str] = {
    (1, 1): "new year['’]?s? day|new year['’]?s|neujahr|neujahrstag|nouvel an|jour de l['’]an|año nuevo",
    (1, 6): "feast of the epiphany|epiphany day|three kings['’]? day|dreikönigstag|épiphanie|día de reyes",
    (2, 2): "groundhog day|candlemas|chandeleur",
    (2, 14): "valentine['’]?s? day|valentine['’]?s|valentinstag|saint-valentin|san valentín",
    (3, 8): "international women['’]?s day|women['’]?s day|weltfrauentag",
    (3, 14): "pi day",
    (3, 17): "(?:st|st\\.|saint) (?:patrick|paddy)['’]?s? day",
    (4, 1): "april fools['’]?(?: day)?|april fool['’]?s day",
    (4, 7): "world health day",
    (4, 10): "siblings day",
    (4, 15): "tax day",
    (4, 16): "emancipation day",
    (4, 22): "earth day",
    (5, 1): "may day|labou?r day in europe|tag der arbeit|fête du travail",
    (5, 4): "star wars day",
    (5, 5): "cinco de mayo",
    (6, 5): "world environment day",
    (6, 19): "juneteenth",
    (7, 4): "independence day|fourth of july|4th of july|july fourth|july 4th",
    (7, 14): "bastille day|fête nationale",
    (8, 15): "assumption day|mariä himmelfahrt|assomption",
    (10, 3): "tag der deutschen einheit|german unity day",
    (10, 24): "united nations day|un day",
    (10, 31): "hallowe['’]?en|reformationstag",
    (11, 1): "all saints['’]? day|allerheiligen|toussaint|todos los santos",
    (11, 2): "all souls['’]? day|allerseelen",
    (11, 5): "guy fawkes(?: night| day)?|bonfire night",
    (11, 11): "veterans['’]? day|veteran['’]?s day|armistice day|remembrance day|singles['’]? day|martinstag",
    (12, 1): "world aids day",
    (12, 10): "human rights day",
    (12, 6): "(?:st\\.? |saint )?nicholas day|nikolaustag",
    (12, 24): "christmas['’]?s? eve|xmas eve|heiligabend|heiliger abend|nochebuena|veille de noël|réveillon de noël",
    (12, 25): "christmas(?: day)?|x-?mas(?: day)?|weihnachten|noël|navidad",
    (12, 26): "boxing day|st\\.? stephen['’]?s day|zweiter weihnachtstag",
    (12, 31): "new year['’]?s? eve|nye|silvester|saint-sylvestre|nochevieja",
}
_WEEKDAYS: tuple[tuple[str, int, int, int], ...] = (
    ("mlk(?: jr\\.?)?['’]?s? day|martin luther king(?:,? jr\\.?)?['’]?s?(?: day)?", 1, _MON, 3),
    ("president['’]?s['’]? day|presidents['’]? day|washington['’]?s birthday", 2, _MON, 3),
    ("mother['’]?s['’]? day|mothers['’]? day|muttertag|día de la madre", 5, _SUN, 2),
    ("memorial day|decoration day", 5, _MON, -1),
    ("father['’]?s['’]? day|fathers['’]? day", 6, _SUN, 3),
    ("labou?r day", 9, _MON, 1),
    ("columbus day|indigenous peoples['’]? day", 10, _MON, 2),
    ("thanksgiving(?: day)?", 11, _THU, 4),
)
_EASTER: tuple[tuple[str, int], ...] = (
    ("shrove monday|rosenmontag", -48),
    ("shrove tuesday|mardi gras|fat tuesday|pancake (?:day|tuesday)|fastnacht|faschingsdienstag", -47),
    ("ash wednesday|aschermittwoch|mercredi des cendres|miércoles de ceniza", -46),
    ("palm sunday|palmsonntag|domingo de ramos", -7),
    ("maundy thursday|holy thursday|covenant thu(?:rsday)?|thu(?:rsday)? of mysteries", -3),
    ("gründonnerstag|jeudi saint|jueves santo", -3),
    ("good friday|holy friday|karfreitag|vendredi saint|viernes santo", -2),
    ("holy saturday|easter saturday|easter eve|karsamstag", -1),
    ("easter(?: sunday| day)?|ostern|ostersonntag|pâques|pascua", 0),
    ("easter mon(?:day)?|ostermontag|lundi de pâques", 1),
    ("ascension (?:day|thursday)|christi himmelfahrt|vatertag", 39),
    ("pentecost(?: sunday)?|whit ?sunday|pfingsten|pfingstsonntag|pentecôte|pentecostés", 49),
    ("whit monday|pentecost monday|monday of the holy spirit|pfingstmontag", 50),
    ("trinity sunday", 56),
    ("corpus christi|fronleichnam|fête-dieu", 60),
)
_ORTHODOX: tuple[tuple[str, int], ...] = (
    ("(?:orthodox )?clean monday|ash monday|orthodox shrove monday", -48),
    ("lazarus saturday", -8),
    ("orthodox palm sunday", -7),
    ("orthodox good friday|(?:orthodox )?great friday", -2),
    ("orthodox easter(?: sunday)?", 0),
    ("orthodox easter monday|orthodox bright monday", 1),
    ("orthodox ascension day", 39),
    ("orthodox pentecost(?: sunday)?", 49),
    ("orthodox whit monday", 50),
)


def _black_friday(year: int) -> date:
    return nth(year, month=11, weekday=_THU, place=4) + timedelta(days=1)


def _beside(feast: Feast, days: int, year: int) -> date:
    return feast(year) + timedelta(days=days)


def _nearest_workday(year: int, *, month: int, day: int) -> date:
    wanted = date(year, month, day)
    return wanted + timedelta(days={_SAT: -1, _SUN: 1}.get(wanted.weekday(), 0))


def _fixed(year: int, *, month: int, day: int) -> date:
    return date(year, month, day)


# Feasts by the moon: names, month, day of it, and for Hindu ones the time of day that decides and days after it.

_ISLAMIC: tuple[tuple[str, int, int], ...] = (
    ("(?:islamic|hijri|muslim) new year(?:['’]?s day)?", 1, 1),
    ("(?:day of )?ashura|ashoura", 1, 10),
    ("mawlid(?: an-nabi)?|milad(?:-un-nabi)?|(?:the )?prophet['’]?s birthday", 3, 12),
    ("isra and mi['’]?raj|isra['’]? and mi['’]?raj|the prophet['’]?s ascension|the night journey|ascension to heaven", 7, 27),
    ("mid-sha['’]?ban|lailat al bara['’]?ah|shab-e-barat", 8, 15),
    ("la[iy]lat al[- ][qk]adr|night of (?:power|decree|destiny)|shab-e-qadr", 9, 27),
    ("eid[- ][aeu]l[- ]fit[re]r?|id[- ][au]l[- ]fitr|zuckerfest|eid ul-fitr", 10, 1),
    ("day of arafa[ht]?|arafat? day", 12, 9),
    ("eid[- ][aeu]l[- ]adha|id[- ][au]l[- ]adha|bakr[- ]?e?id|bakrid|opferfest", 12, 10),
    ("(?:feast|festival) of (?:the )?sacrifice|sacrifice feast", 12, 10),
)
_HINDU: tuple[tuple[str, str, int, str, int], ...] = (
    ("ugadi|yugadi|samvatsaradi|chaitra sukh?ladi|gudi padwa", "chaitra", 1, "sunrise", 0),
    ("ra[a]?ma?[- ]?navami", "chaitra", 9, "noon", 0),
    ("mahav(?:ir|eer)a? (?:jayanti|janma kalyanak)", "chaitra", 13, "sunrise", 0),
    ("hanuman jayanti", "chaitra", 15, "sunrise", 0),
    ("akshaya tritiya", "vaishakha", 3, "noon", 0),
    ("vesak|(?:the )?buddha(?:['’]?s)? (?:day|purnima|jayanti|birthday)", "vaishakha", 15, "evening", 0),
    ("ra?th[ -]?yatra|rath jatra|chariot festival", "ashadha", 2, "sunrise", 0),
    ("guru purnima", "ashadha", 15, "sunrise", 0),
    ("raksha bandhan|rakhi|rakhi purnima", "shravana", 15, "noon", 0),
    ("(?:krishna )?janmashtami|gokulashtami|krishnashtami", "shravana", 23, "midnight", 0),
    ("ganesha? chaturthi|vinayaka chaturthi|vinayak chaturthi", "bhadrapada", 4, "noon", 0),
    ("dussehra|dasara|vijaya ?dashami", "ashvina", 10, "noon", 0),
    ("(?:maharishi )?valmiki jayanti|pargat diwas|sharad purnima", "ashvina", 15, "sunrise", 0),
    ("kar[vw]a chauth", "ashvina", 19, "evening", 0),
    ("dhanteras|dhanatrayodashi|dhanvantari trayodashi", "ashvina", 28, "evening", 0),
    ("naraka? chaturdashi|kali chaudas|chh?oti diwali|roop chaudas", "ashvina", 29, "evening", 0),
    ("diwali|deepavali|divali|lakshmi puja|festival of lights", "ashvina", 30, "evening", 0),
    ("govardhan puja|annakut", "ashvina", 30, "evening", 1),
    ("bhai dooj|bhai duj|bhaiya dooj|bhai ?tika|bhau beej|bhai phonta", "kartika", 2, "noon", 0),
    ("chhath(?: puja)?|surya shashthi|dala (?:chhath|puja)|dala puja", "kartika", 6, "evening", 0),
    ("guru nanak(?:['’]?s)? (?:jayanti|birthday|gurpurab)", "kartika", 15, "sunrise", 0),
    ("guru gobind singh(?:['’]?s)? (?:jayanti|birthday|gurpurab)", "pausha", 7, "sunrise", 0),
    ("[bv]asant panchami|saraswati puja", "magha", 5, "noon", 0),
    ("guru ravidass?(?:['’]?s)? (?:jayanti|birthday)", "magha", 15, "sunrise", 0),
    ("(?:maha )?shi[vw]a?ratri", "magha", 29, "midnight", 0),
    ("holika dahan|chh?oti holi|kamudu pyre", "phalguna", 15, "evening", 0),
    ("holi|dhulandi|dhuleti|dhulivandan|phagwah", "phalguna", 15, "evening", 1),
    ("navaratri|navratri", "ashvina", 1, "sunrise", 0),
)
# From the evening before: names, the day as a function, and with how many days from that evening on.
_PASSOVER = 163


def _spring(days: int) -> Feast:
    return partial(moons.hebrew_spring, days_before_new_year=_PASSOVER - days)


def _autumn(days: int) -> Feast:
    return partial(moons.hebrew, days_after_new_year=days)


_JEWISH: tuple[tuple[str, Feast, int], ...] = (
    ("rosh ha-?shanah|rosh ha-?shana|rosh ha-?shannah?|jewish new year|yom teruah", _autumn(0), 3),
    ("yom kippur|day of atonement", _autumn(9), 2),
    ("sukk?ot[h]?|succos|sukkos|feast of (?:tabernacles|booths|the ingathering)", _autumn(14), 9),
    ("shemini atzeret", _autumn(21), 2),
    ("simc?hat torah", _autumn(22), 2),
    ("hanukah|hanukkah|hannukah|hannukkah|chanukah|chanukkah|chanuka|hanuka|hanukka|chanukka", moons.hanukkah, 8),
    ("tu bi?['’]?shvat|tu bishvat", moons.tu_bishvat, 2),
    ("purim", _spring(-30), 2),
    ("passover|pesa[ck]h", _spring(0), 9),
    ("yom ha-?shoah?|holocaust(?: remembrance)? day", partial(moons.but_not_on, _spring(12), {_FRI: -1, _SUN: 1}), 2),
    ("yom ha['’]?atzmaut|israeli independence day", partial(moons.but_not_on, _spring(20), {_FRI: -1, _SAT: -2, _MON: 1}), 2),
    ("lag (?:ba['’]?|la)omer", _spring(33), 2),
    ("shavuot|shavuoth|shavout|shavuos|feast of weeks", _spring(50), 3),
    ("tisha b['’]?av", partial(moons.but_not_on, _spring(112), {_SAT: 1}), 2),
)


_FROM_EVENING = frozenset(names for names, _, _ in _JEWISH)


def _parsi_new_year(year: int) -> date:
    return date(2018, 8, 17) + timedelta(days=365 * (year - 2018))


def _kings_day(year: int) -> date:
    day = date(year, 4, 27)
    return day - timedelta(days=1) if day.weekday() == _SUN else day


def _lunar() -> list[tuple[str, Feast, Days]]:
    return [
        *((names, partial(moons.islamic_day, month=month, day=day), 1) for names, month, day in _ISLAMIC),
        ("ramadan|ramadhan|ramazan", partial(moons.islamic_day, month=9, day=1), partial(moons.islamic_month_days, month=9)),
        ("jamat[- ]ul[- ]vida|jumu['’]?at[- ]?ul[- ](?:wida|vida)['’]?a?h?", moons.last_friday_of_ramadan, 1),
        *(
            (names, partial(moons.hindu, month=month, tithi=tithi, at=at, days=days), 9 if "navaratri" in names else 1)
            for names, month, tithi, at, days in _HINDU
        ),
        *((names, partial(_beside, feast, -1), days) for names, feast, days in _JEWISH),
        ("lohri|bhogi(?: pongal)?", partial(moons.sun_enters, sign=9, days=-1), 1),
        ("(?:thai |surya )?pongal|maghi|makara? sankranti", partial(moons.sun_enters, sign=9), 1),
        ("mattu pongal", partial(moons.sun_enters, sign=9, days=1), 1),
        ("kaanum pongal|kanni pongal", partial(moons.sun_enters, sign=9, days=2), 1),
        ("vaish?akhi|baisakhi|vaisakhadi|vaishakhi|vasakhi", partial(moons.sun_enters, sign=0, sunset=24), 1),
        ("puthandu|tamil new year|vishu", partial(moons.sun_enters, sign=0), 1),
        (
            "(?:chinese|lunar|chinese lunar) new year(?:['’]?s)?(?: day)?|spring festival|chinesisches neujahr",
            moons.chinese_new_year,
            1,
        ),
        ("parsi new year|jamshedi nav?roz|jamshedi nowruz", _parsi_new_year, 1),
        ("king['’]?s day|koningsdag", _kings_day, 1),
        ("rabindra(?:nath)? jayanti", partial(_fixed, month=5, day=9), 1),
    ]


@cache
def feasts() -> tuple[tuple[str, Feast, Days], ...]:
    """Names, as patterns; when it begins in a year; and how many days it has."""
    found: list[tuple[str, Feast, Days]] = [
        *((names, partial(_fixed, month=month, day=day), 1) for (month, day), names in _FIXED.items()),
        *((names, partial(nth, month=month, weekday=weekday, place=place), 1) for names, month, weekday, place in _WEEKDAYS),
        *((names, partial(_beside, easter, days), 1) for names, days in _EASTER),
        *((names, partial(_beside, orthodox_easter, days), 1) for names, days in _ORTHODOX),
        ("black friday", _black_friday, 1),
        ("cyber monday", partial(_beside, _black_friday, 3), 1),
        ("boss['’]?s?['’]? day", partial(_nearest_workday, month=10, day=16), 1),
        ("fastenzeit|carême|cuaresma", partial(_beside, easter, -46), 46),
        *_lunar(),
        ("holy week|karwoche|semana santa|semaine sainte", partial(_beside, easter, -7), 7),
    ]
    return tuple(found)


def _long_weekend(day: date) -> Stretch:
    """`Labor Day weekend`: Saturday and Sunday with the feast, if that is beside them."""
    saturday = day + timedelta(days=(_SAT - day.weekday()) % 7 - (7 if day.weekday() in (_MON, _TUE, _SUN) else 0))
    first, last = min(day, saturday), max(day, saturday + timedelta(days=1))
    return days_from(first, (last - first).days + 1)


def _feast(match: re.Match[str], moment: Moment, *, feast: Feast, days: Days) -> Stretch:
    groups = match.groupdict()

    def make(year: int) -> Stretch:
        first = feast(year)
        if groups.get("weekend"):
            return _long_weekend(first)
        return days_from(first, days if isinstance(days, int) else days(year))

    if groups.get("year"):
        return make(int(groups["year"]))
    if groups.get("of"):
        return make(moment.today.year + way(match["of"]))
    return _nearest(make, moment, moment.tense or 1, whole=False)


def _nearest(make: Callable[[int], Stretch], moment: Moment, tense: int, *, whole: bool) -> Stretch:
    """The next or the last one; with `whole`, the last one that is over."""
    year, this = moment.today.year, make(moment.today.year)
    if tense > 0 and this.high <= moment.now:
        year += 1
    elif tense < 0 and (this.high if whole else this.low) > moment.now:
        year -= 1
    return replace(make(year), yearly=make, grain="feast")


def _near(match: re.Match[str], _: Moment) -> Turn:
    """`last Christmas`, `this Thanksgiving`."""
    tense = way(match["rel"]) or 1

    def picked(feast: Stretch, moment: Moment) -> Stretch | None:
        if feast.grain != "feast" or feast.yearly is None:
            return None
        return replace(_nearest(feast.yearly, moment, tense, whole=True), yearly=None, grain="")

    return Turn(picked)


def _starts(names: str) -> set[str]:
    """The words that the alternatives of `names` can begin with: each letter and group before `?` may be left out."""
    words: set[str] = set()
    for name in re.split(r"\|(?![^(]*\))", names):
        forms = {""}
        for token in re.findall(r"\(\?:[^)]*\)\??|\[[^]]*\]\??|\\?.\??", name):
            choices = (
                token.rstrip("?")[3:-1].split("|")
                if token.startswith("(")
                else list(token.rstrip("?").strip("[]").lstrip("\\"))
            )
            forms = {form + choice for form in forms for choice in (*choices, *([""] if token.endswith("?") else []))}
            if all(" " in form.strip() for form in forms):
                break
        words.update(re.split(r"[\W_]", form.strip())[0].lower() for form in forms)
    return words


_NOT_OF_IT = (
    r"(?! (?:gifts?|presents?|trees?|cards?|songs?|carols?|costumes?|decorations?|cookies?|markets?|movies?|films?|"
    r"lights|sweaters?|horror|party)\b)"
)
_IN_YEAR = rf"(?:,? (?:of |in |de )?{YEAR}| (?:of )?(?P<of>this|last|next) year)?"


@cache
def rules() -> tuple[Rule, ...]:
    """One rule per feast, and one for the words that say which of them."""
    found = (
        asked(
            _starts(names),
            rf"(?:{names})(?P<weekend> weekend)?{_IN_YEAR}{_NOT_OF_IT}",
            partial(_feast, feast=feast, days=days),
            "a holiday, from the evening before" if names in _FROM_EVENING else "a holiday",
        )
        for names, feast, days in feasts()
    )
    return (
        asked(f"the {NEAR_STARTS}", rf"(?:the )?(?P<rel>{THIS}|{BACK}|{ON}|upcoming)", _near, "the holiday next to now"),
        *found,
    )
