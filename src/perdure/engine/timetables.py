"""Words for times: names of days, months, units, numbers, seasons and parts of the day, in four languages."""

from __future__ import annotations

from collections.abc import Iterable


def word_set(text: str) -> frozenset[str]:
    """The words of `text`."""
    return frozenset(text.split())


NUMBERS = {
    word: number
    for number, words in {
        1: "a an one ein eine einem einer un une una uno",
        2: "two couple zwei deux dos",
        3: "three few drei trois tres",
        4: "four vier quatre cuatro",
        5: "five fünf cinq cinco",
        6: "six sechs seis",
        7: "seven sieben sept siete",
        8: "eight acht huit ocho",
        9: "nine neun neuf nueve",
        10: "ten zehn dix diez",
        11: "eleven elf onze once",
        12: "twelve zwölf douze doce",
        13: "thirteen dreizehn treize trece",
        14: "fourteen vierzehn quatorze catorce",
        15: "fifteen fünfzehn quinze quince",
        16: "sixteen sechzehn seize dieciséis",
        17: "seventeen siebzehn diecisiete",
        18: "eighteen achtzehn dieciocho",
        19: "nineteen neunzehn diecinueve",
        20: "twenty zwanzig vingt veinte",
        30: "thirty dreißig trente treinta",
        40: "forty vierzig quarante cuarenta",
        50: "fifty fünfzig cinquante cincuenta",
        60: "sixty sechzig soixante sesenta",
        70: "seventy siebzig setenta",
        80: "eighty achtzig ochenta",
        90: "ninety neunzig noventa",
    }.items()
    for word in words.split()
}
UNITS = {
    word: unit
    for unit, words in {
        "minute": "minute minutes min mins minuten minuto minutos",
        "hour": "hour hours hr hrs stunde stunden heure heures hora horas",
        "day": "day days tag tage tagen jour jours día días dia dias",
        "week": "week weeks woche wochen semaine semaines semana semanas",
        "month": "month months monat monate monaten monats mois mes meses",
        "quarter": "quarter quarters quartal quartalen trimestre trimestres",
        "year": "year years yr yrs jahr jahre jahren jahres an ans année années año años",
    }.items()
    for word in words.split()
}
# In a question, also these.
ASKED_UNITS = UNITS | {
    word: unit
    for unit, words in {
        "second": "second seconds sec secs sekunde sekunden seconde secondes segundo segundos",
        "minute": "'",
        "hour": "h std",
        "day": "d",
        "week": "wk wks",
        "fortnight": "fortnight fortnights quinzaine",
        "quarter": "qtr qtrs quartale quartals",
        "year": "annee annees",
    }.items()
    for word in words.split()
}
WEEKDAYS = {
    word: number
    for number, words in enumerate(
        (
            "monday mon montag lundi lunes",
            "tuesday tue tues dienstag mardi martes",
            "wednesday wed weds mittwoch mercredi miércoles",
            "thursday thu thur thurs donnerstag jeudi jueves",
            "friday fri freitag vendredi viernes",
            "saturday sat samstag samedi sábado",
            "sunday sun sonntag dimanche domingo",
        )
    )
    for word in words.split()
}
# Short forms that are words of their own count only in capitals and behind a word such as `on`.
SHORT_WEEKDAYS = frozenset(["mon", "tue", "tues", "wed", "weds", "thu", "thur", "thurs", "fri", "sat", "sun"])
MONTHS = {
    word: number
    for number, words in enumerate(
        (
            "january jan januar janvier enero",
            "february feb februar février febrero",
            "march mar märz mars marzo",
            "april apr avril abril",
            "may mai mayo",
            "june jun juni juin junio",
            "july jul juli juillet julio",
            "august aug août agosto",
            "september sep sept septembre septiembre",
            "october oct oktober octobre octubre",
            "november nov novembre noviembre",
            "december dec dezember décembre diciembre",
        ),
        start=1,
    )
    for word in words.split()
}
SEASONS = {
    word: month
    for month, words in {
        3: "spring frühling frühjahr printemps primavera",
        6: "summer sommer été verano",
        9: "autumn fall herbst automne otoño",
        12: "winter hiver invierno",
    }.items()
    for word in words.split()
}
DAYS = {
    word: offset
    for offset, words in {
        -2: "vorgestern avant-hier anteayer",
        -1: "yesterday gestern ayer",
        0: "today heute hoy aujourd'hui aujourd’hui",
        1: "tomorrow tmrw tmw tomorow tommorow tommorrow demain",
        2: "übermorgen après-demain",
    }.items()
    for word in words.split()
}
# First hour, hour after the last, and the hour a cron line takes for it.
PARTS = {
    word: hours
    for hours, words in {
        (5, 12, 8): "morning",
        (12, 17, 14): "afternoon",
        (17, 22, 19): "evening",
        (20, 24, 21): "night",
    }.items()
    for word in words.split()
}
# In a question, a part of the day is what anyone may call so: first hour, and hour after the last.
WIDE_PARTS = {
    word: hours
    for hours, words in {
        (0, 12): "morning vormittag matin mañana morgen madrugada früh",
        (0, 9): "early-morning",
        (12, 14): "lunch lunchtime lunch-time mittag midi mediodía mittags",
        (12, 19): "afternoon nachmittag après-midi tarde nachmittags",
        (18, 24): "evening night tonight abend nacht soir soirée nuit noche abends",
    }.items()
    for word in words.split()
}
# Minutes east of Greenwich.
ZONES = {
    word: minutes
    for minutes, words in {
        0: "gmt utc wet",
        60: "bst cet mez west",
        120: "cest mesz eet sast",
        180: "eest msk",
        330: "ist",
        480: "sgt hkt awst",
        540: "jst kst",
        600: "aest",
        660: "aedt",
        -180: "brt art",
        -240: "edt ast",
        -300: "est cdt",
        -360: "cst mdt",
        -420: "mst pdt",
        -480: "pst akdt",
        -540: "akst",
        -600: "hst",
    }.items()
    for word in words.split()
}
LAST = frozenset(["last", "past", "previous", "letzte", "letzten", "letzter", "letztes", "vergangene", "vergangenen"])
NEXT = frozenset(["next", "nächste", "nächsten", "nächster", "nächstes", "kommende", "kommenden"])
HOLIDAYS = {
    "christmas eve": (12, 24),
    "christmas day": (12, 25),
    "christmas": (12, 25),
    "new year's eve": (12, 31),
    "new year's day": (1, 1),
    "halloween": (10, 31),
    "valentine's day": (2, 14),
    "weihnachten": (12, 25),
    "heiligabend": (12, 24),
    "silvester": (12, 31),
    "noël": (12, 25),
    "navidad": (12, 25),
}
ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4}
ORDINAL_WORDS = {
    word: number
    for number, words in {
        1: "first erste ersten erster erstes premier première primer primero primera",
        2: "second zweite zweiten zweiter zweites deuxième segundo segunda",
        3: "third dritte dritten dritter drittes troisième tercer tercero tercera",
        4: "fourth vierte vierten vierter viertes quatrième cuarto cuarta",
        5: "fifth fünfte fünften fünfter cinquième quinto quinta",
        6: "sixth",
        7: "seventh",
        8: "eighth",
        9: "ninth",
        10: "tenth",
        11: "eleventh",
        12: "twelfth",
        13: "thirteenth",
        14: "fourteenth",
        15: "fifteenth",
        16: "sixteenth",
        17: "seventeenth",
        18: "eighteenth",
        19: "nineteenth",
        20: "twentieth",
        21: "twenty-first",
        22: "twenty-second",
        23: "twenty-third",
        24: "twenty-fourth",
        25: "twenty-fifth",
        26: "twenty-sixth",
        27: "twenty-seventh",
        28: "twenty-eighth",
        29: "twenty-ninth",
        30: "thirtieth",
        31: "thirty-first",
    }.items()
    for word in words.split()
}


DECADES = {"twenties": 2, "thirties": 3, "forties": 4, "fifties": 5, "sixties": 6, "seventies": 7, "eighties": 8, "nineties": 9}
# Words that no German sentence has: beside one of them, `hier` is yesterday.
FRENCH = word_set(
    "depuis avant après jusqu le la les de du et je j tu il elle nous vous ils ai as a avons avez ont est était c qu que quoi "
    "quel quelle fait dit avec dans pour sur à mon ma mes ce cette soir matin après-midi midi vu été au aux"
)


def any_of(words: Iterable[str]) -> str:
    """A pattern for any of `words`, the longest first."""
    return "(?:" + "|".join(sorted(words, key=lambda word: (-len(word), word))) + ")"
