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
        15: "fifteen fünfzehn quinze quince",
        20: "twenty zwanzig vingt veinte",
        30: "thirty dreißig trente treinta",
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
        1: "tomorrow tmrw tomorow demain",
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


def any_of(words: Iterable[str]) -> str:
    """A pattern for any of `words`, the longest first."""
    return "(?:" + "|".join(sorted(words, key=lambda word: (-len(word), word))) + ")"
