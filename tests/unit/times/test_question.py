"""The time that a question names: exact ranges in four languages at a fixed clock, and what is no time (S0-42, S0-43, X-7)."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from functools import cache
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanes import examples
from perdure.domain.errors import InvalidInput
from perdure.engine.times import grammar, pieces
from perdure.engine.times import question as timeranges
from perdure.engine.times.question import TEXT_CHARS_MAX, TimeRange, extract_time_range

BERLIN = "Europe/Berlin"
NOW = datetime(2026, 5, 13, 15, 30, tzinfo=UTC)  # a Wednesday, 17:30 in Berlin


def found(text: str, now: datetime = NOW, zone: str = BERLIN) -> TimeRange:
    got = extract_time_range(text, now, zone)
    assert got is not None, f"no time in {text!r}"
    return got


def local(moment: datetime | None, zone: str = BERLIN) -> str:
    """On the asker's clock: a day if it is midnight, `…` if open."""
    if moment is None:
        return "…"
    there = moment.astimezone(ZoneInfo(zone))
    return there.strftime("%Y-%m-%d" if there.strftime("%H:%M:%S") == "00:00:00" else "%Y-%m-%d %H:%M")


def ends(text: str, now: datetime = NOW, zone: str = BERLIN) -> str:
    got = found(text, now, zone)
    return f"{local(got.start, zone)} to {local(got.end, zone)}"


ENGLISH = """
last 24 hours                                 | 2026-05-12 17:30 to 2026-05-13 17:30
Get kudos from last 24 hours                  | 2026-05-12 17:30 to 2026-05-13 17:30
kudos from the past 48 hours, please          | 2026-05-11 17:30 to 2026-05-13 17:30
what happened in the last 2 days?             | 2026-05-11 17:30 to 2026-05-13 17:30
24 hours                                      | 2026-05-12 17:30 to 2026-05-13 17:30
2 days                                        | 2026-05-11 17:30 to 2026-05-13 17:30
the last hour                                 | 2026-05-13 16:30 to 2026-05-13 17:30
the last three weeks                          | 2026-04-22 17:30 to 2026-05-13 17:30
over the past month                           | 2026-04-13 17:30 to 2026-05-13 17:30
past week                                     | 2026-05-06 17:30 to 2026-05-13 17:30
who was active in the last week               | 2026-05-06 17:30 to 2026-05-13 17:30
the past few days                             | 2026-05-10 17:30 to 2026-05-13 17:30
next 3 days                                   | 2026-05-13 17:30 to 2026-05-16 17:30
within 2 weeks                                | 2026-05-13 17:30 to 2026-05-27 17:30
last week                                     | 2026-05-04 to 2026-05-11
What did we decide last week about the roof?  | 2026-05-04 to 2026-05-11
this week                                     | 2026-05-11 to 2026-05-18
this month                                    | 2026-05-01 to 2026-06-01
last month                                    | 2026-04-01 to 2026-05-01
last quarter                                  | 2026-01-01 to 2026-04-01
last year                                     | 2025-01-01 to 2026-01-01
next year                                     | 2027-01-01 to 2028-01-01
the week before last                          | 2026-04-27 to 2026-05-04
the month after next                          | 2026-07-01 to 2026-08-01
Friday before last                            | 2026-05-01 to 2026-05-02
2 days ago                                    | 2026-05-11 to 2026-05-12
What did I eat three days ago?                | 2026-05-10 to 2026-05-11
a fortnight ago                               | 2026-04-29 to 2026-04-30
two weeks ago                                 | 2026-04-27 to 2026-05-04
six months ago                                | 2025-11-01 to 2025-12-01
3 years ago                                   | 2023-01-01 to 2024-01-01
3 hours ago                                   | 2026-05-13 14:30 to 2026-05-13 15:30
half an hour ago                              | 2026-05-13 17:00 to 2026-05-13 17:01
in 3 days                                     | 2026-05-16 to 2026-05-17
the race that I took part in a week ago       | 2026-05-04 to 2026-05-11
yesterday                                     | 2026-05-12 to 2026-05-13
What did Ana say yesterday?                   | 2026-05-12 to 2026-05-13
today                                         | 2026-05-13 to 2026-05-14
tomorrow                                      | 2026-05-14 to 2026-05-15
the day before yesterday                      | 2026-05-11 to 2026-05-12
yesterday morning                             | 2026-05-12 to 2026-05-12 12:00
yesterday afternoon                           | 2026-05-12 12:00 to 2026-05-12 19:00
last night                                    | 2026-05-12 18:00 to 2026-05-13
this morning                                  | 2026-05-13 to 2026-05-13 12:00
tonight                                       | 2026-05-13 18:00 to 2026-05-14
on Friday                                     | 2026-05-08 to 2026-05-09
what did I do on Friday                       | 2026-05-08 to 2026-05-09
what am I going to do on Friday               | 2026-05-15 to 2026-05-16
What will we do on Friday?                    | 2026-05-15 to 2026-05-16
what do I have on Friday                      | 2026-05-15 to 2026-05-16
last Friday                                   | 2026-05-08 to 2026-05-09
next Friday                                   | 2026-05-22 to 2026-05-23
Tuesday of last week                          | 2026-05-05 to 2026-05-06
last week on Tuesday                          | 2026-05-05 to 2026-05-06
Friday afternoon                              | 2026-05-08 12:00 to 2026-05-08 19:00
What did Ana say on Friday afternoon about it?       | 2026-05-08 12:00 to 2026-05-08 19:00
on Monday at 10 in the morning                | 2026-05-11 10:00 to 2026-05-11 11:00
early yesterday morning                       | 2026-05-12 to 2026-05-12 09:00
last weekend                                  | 2026-05-09 to 2026-05-11
over the weekend                              | 2026-05-09 to 2026-05-11
on the 5th                                    | 2026-05-05 to 2026-05-06
what was said on the 20th?                    | 2026-04-20 to 2026-04-21
March 3                                       | 2026-03-03 to 2026-03-04
on June 5                                     | 2025-06-05 to 2025-06-06
3rd of March 1990                             | 1990-03-03 to 1990-03-04
March third, 2015                             | 2015-03-03 to 2015-03-04
2025-10-01                                    | 2025-10-01 to 2025-10-02
24.12.2025                                    | 2025-12-24 to 2025-12-25
12/24/2025                                    | 2025-12-24 to 2025-12-25
in March                                      | 2026-03-01 to 2026-04-01
in October                                    | 2025-10-01 to 2025-11-01
October 2014                                  | 2014-10-01 to 2014-11-01
in 2019                                       | 2019-01-01 to 2020-01-01
in the 90s                                    | 1990-01-01 to 2000-01-01
Q3 2025                                       | 2025-07-01 to 2025-10-01
the third quarter of 2025                     | 2025-07-01 to 2025-10-01
Q3                                            | 2025-07-01 to 2025-10-01
first half of 2025                            | 2025-01-01 to 2025-07-01
mid-June                                      | 2025-06-11 to 2025-06-21
what happened in mid-June?                    | 2025-06-11 to 2025-06-21
early March                                   | 2026-03-01 to 2026-03-11
late 2024                                     | 2024-09-01 to 2025-01-01
at the end of the month                       | 2026-05-21 to 2026-06-01
end of last month                             | 2026-04-21 to 2026-05-01
the beginning of last week                    | 2026-05-04 to 2026-05-07
last summer                                   | 2025-06-01 to 2025-09-01
in the summer of 2020                         | 2020-06-01 to 2020-09-01
last winter                                   | 2025-12-01 to 2026-03-01
3 to 5 pm yesterday                           | 2026-05-12 15:00 to 2026-05-12 17:00
yesterday from 3 to 5 pm                      | 2026-05-12 15:00 to 2026-05-12 17:00
between 3 and 5 pm yesterday                  | 2026-05-12 15:00 to 2026-05-12 17:00
from 9:30 - 11:00 on Thursday                 | 2026-05-07 09:30 to 2026-05-07 11:00
at 3pm yesterday                              | 2026-05-12 15:00 to 2026-05-12 16:00
yesterday at 15:20                            | 2026-05-12 15:20 to 2026-05-12 15:21
at 9:30                                       | 2026-05-13 09:30 to 2026-05-13 09:31
at 8pm                                        | 2026-05-12 20:00 to 2026-05-12 21:00
yesterday at half past three pm               | 2026-05-12 15:30 to 2026-05-12 15:31
yesterday at 4pm UTC                          | 2026-05-12 18:00 to 2026-05-12 19:00
yesterday 9am PST                             | 2026-05-12 19:00 to 2026-05-12 20:00
since Monday                                  | 2026-05-11 to …
What changed since Monday?                    | 2026-05-11 to …
since 2019                                    | 2019-01-01 to …
since March                                   | 2026-03-01 to …
from Monday on                                | 2026-05-11 to …
What did she say yesterday on the phone?      | 2026-05-12 to 2026-05-13
kudos from yesterday                          | 2026-05-12 to 2026-05-13
from tomorrow                                 | 2026-05-14 to …
after 2 pm                                    | 2026-05-13 14:00 to …
after March 3                                 | 2026-03-04 to …
before 2020                                   | … to 2020-01-01
until March                                   | … to 2026-03-01
until yesterday                               | … to 2026-05-13
before Monday                                 | … to 2026-05-11
by Friday                                     | 2026-05-13 17:30 to 2026-05-16
between 2025-10-01 and 2025-10-05             | 2025-10-01 to 2025-10-06
from Monday to Wednesday                      | 2026-05-11 to 2026-05-14
from March to May 2025                        | 2025-03-01 to 2025-06-01
what was in Boston between August and November 2023? | 2023-08-01 to 2023-12-01
how many pets did he have, as of September 2023      | … to 2023-10-01
Where was he in the last week of October 2023?       | 2023-10-23 to 2023-10-30
over the weekend before 4th October, 2023     | 2023-09-30 to 2023-10-02
What did she do last week before 23 January 2023?    | 2023-01-16 to 2023-01-23
on the Wednesday two months ago               | 2026-03-01 to 2026-04-01
from 9 to 23:00 yesterday                     | 2026-05-12 09:00 to 2026-05-12 23:00
from November to March                        | 2025-11-01 to 2026-04-01
between Nov 5 and March 3 2026                | 2025-11-05 to 2026-03-04
February 29 two years ago                     | 2024-02-29 to 2024-03-01
the closest Monday to May 5                   | 2026-05-04 to 2026-05-05
Saturday and Sunday                           | 2026-05-09 to 2026-05-11
yesterday after 5pm                           | 2026-05-12 17:00 to 2026-05-13
yesterday before 10am                         | 2026-05-12 to 2026-05-12 10:00
between March 3 and March 7                   | 2026-03-03 to 2026-03-08
July 13-15                                    | 2025-07-13 to 2025-07-16
from the 13th to the 15th of July             | 2025-07-13 to 2025-07-16
from 2010 to 2015                             | 2010-01-01 to 2016-01-01
the third Tuesday of September 2014           | 2014-09-16 to 2014-09-17
the last Friday of October                    | 2025-10-31 to 2025-11-01
the first Monday of the month                 | 2026-05-04 to 2026-05-05
two days before Christmas                     | 2025-12-23 to 2025-12-24
the day after Easter 2026                     | 2026-04-06 to 2026-04-07
the week of March 4                           | 2026-03-02 to 2026-03-09
at Christmas                                  | 2025-12-25 to 2025-12-26
last Christmas                                | 2025-12-25 to 2025-12-26
Thanksgiving 2014                             | 2014-11-27 to 2014-11-28
Christmas two years ago                       | 2024-12-25 to 2024-12-26
Easter                                        | 2026-04-05 to 2026-04-06
year to date                                  | 2026-01-01 to 2026-05-13 17:30
"""
GERMAN = """
letzte 24 Stunden                             | 2026-05-12 17:30 to 2026-05-13 17:30
Was war in den letzten 24 Stunden?            | 2026-05-12 17:30 to 2026-05-13 17:30
die letzten 7 Tage                            | 2026-05-06 17:30 to 2026-05-13 17:30
in den vergangenen zwei Wochen                | 2026-04-29 17:30 to 2026-05-13 17:30
Was habe ich vor 2 Tagen gegessen?            | 2026-05-11 to 2026-05-12
vor drei Stunden                              | 2026-05-13 14:30 to 2026-05-13 15:30
gestern                                       | 2026-05-12 to 2026-05-13
vorgestern                                    | 2026-05-11 to 2026-05-12
gestern Abend                                 | 2026-05-12 18:00 to 2026-05-13
heute Morgen                                  | 2026-05-13 to 2026-05-13 12:00
morgen                                        | 2026-05-14 to 2026-05-15
letzte Woche                                  | 2026-05-04 to 2026-05-11
vorletzte Woche                               | 2026-04-27 to 2026-05-04
diesen Monat                                  | 2026-05-01 to 2026-06-01
dieses Jahr                                   | 2026-01-01 to 2027-01-01
im letzten Jahr                               | 2025-01-01 to 2026-01-01
voriges Jahr                                  | 2025-01-01 to 2026-01-01
nächste Woche                                 | 2026-05-18 to 2026-05-25
Was habe ich am Freitag gemacht?              | 2026-05-08 to 2026-05-09
Am Freitag habe ich einen Termin              | 2026-05-15 to 2026-05-16
letzten Freitag                               | 2026-05-08 to 2026-05-09
nächsten Montag                               | 2026-05-18 to 2026-05-19
vorletzten Freitag                            | 2026-05-01 to 2026-05-02
Was war am Montagmorgen?                      | 2026-05-11 to 2026-05-11 12:00
vor ein paar Tagen                            | 2026-05-07 to 2026-05-12
vor einer halben Stunde                       | 2026-05-13 17:00 to 2026-05-13 17:01
gestern um halb neun                          | 2026-05-12 08:30 to 2026-05-12 08:31
Was steht nächste Woche an?                   | 2026-05-18 to 2026-05-25
von Montag an                                 | 2026-05-11 to …
bis Ende des Monats                           | … to 2026-06-01
seit Montag                                   | 2026-05-11 to …
seit dem 3. Mai                               | 2026-05-03 to …
ab Montag                                     | 2026-05-11 to …
bis März                                      | … to 2026-03-01
vor dem 5. Mai                                | … to 2026-05-05
zwischen 2025-10-01 und 2025-10-05            | 2025-10-01 to 2025-10-06
zwischen dem 1. und dem 5. Oktober 2025       | 2025-10-01 to 2025-10-06
vom 1. bis 5. Oktober                         | 2025-10-01 to 2025-10-06
von Montag bis Mittwoch                       | 2026-05-11 to 2026-05-14
im Oktober                                    | 2025-10-01 to 2025-11-01
im Oktober 2014                               | 2014-10-01 to 2014-11-01
3. Quartal 2025                               | 2025-07-01 to 2025-10-01
im dritten Quartal 2025                       | 2025-07-01 to 2025-10-01
Mitte Juni                                    | 2025-06-11 to 2025-06-21
Anfang März                                   | 2026-03-01 to 2026-03-11
Ende 2024                                     | 2024-09-01 to 2025-01-01
letzten Sommer                                | 2025-06-01 to 2025-09-01
im Sommer 2020                                | 2020-06-01 to 2020-09-01
am 5.                                         | 2026-05-05 to 2026-05-06
am 5. März                                    | 2026-03-05 to 2026-03-06
am 24.12.2025                                 | 2025-12-24 to 2025-12-25
gestern von 15 bis 17 Uhr                     | 2026-05-12 15:00 to 2026-05-12 17:00
gestern um 15 Uhr                             | 2026-05-12 15:00 to 2026-05-12 16:00
Was hat sie am Montag Abend gesagt?           | 2026-05-11 18:00 to 2026-05-12
letztes Wochenende                            | 2026-05-09 to 2026-05-11
an Weihnachten                                | 2025-12-25 to 2025-12-26
"""
FRENCH = """
les dernières 24 heures                       | 2026-05-12 17:30 to 2026-05-13 17:30
Que s'est-il passé ces 7 derniers jours ?     | 2026-05-06 17:30 to 2026-05-13 17:30
au cours des deux dernières semaines          | 2026-04-29 17:30 to 2026-05-13 17:30
il y a 2 jours                                | 2026-05-11 to 2026-05-12
Qu'est-ce que j'ai dit hier ?                 | 2026-05-12 to 2026-05-13
hier                                          | 2026-05-12 to 2026-05-13
avant-hier                                    | 2026-05-11 to 2026-05-12
hier soir                                     | 2026-05-12 18:00 to 2026-05-13
ce matin                                      | 2026-05-13 to 2026-05-13 12:00
demain                                        | 2026-05-14 to 2026-05-15
la semaine dernière                           | 2026-05-04 to 2026-05-11
la semaine prochaine                          | 2026-05-18 to 2026-05-25
ce mois-ci                                    | 2026-05-01 to 2026-06-01
cette année                                   | 2026-01-01 to 2027-01-01
le mois dernier                               | 2026-04-01 to 2026-05-01
l'an dernier                                  | 2025-01-01 to 2026-01-01
vendredi dernier                              | 2026-05-08 to 2026-05-09
lundi prochain                                | 2026-05-18 to 2026-05-19
depuis lundi                                  | 2026-05-11 to …
depuis hier                                   | 2026-05-12 to …
il y a quelques jours                         | 2026-05-07 to 2026-05-12
à la fin du mois                              | 2026-05-21 to 2026-06-01
au début de l'année                           | 2026-01-01 to 2026-04-01
depuis 2019                                   | 2019-01-01 to …
à partir de lundi                             | 2026-05-11 to …
jusqu'en mars                                 | … to 2026-03-01
avant lundi                                   | … to 2026-05-11
entre le 1er et le 5 octobre 2025             | 2025-10-01 to 2025-10-06
entre 2025-10-01 et 2025-10-05                | 2025-10-01 to 2025-10-06
du 1er au 5 octobre                           | 2025-10-01 to 2025-10-06
en octobre                                    | 2025-10-01 to 2025-11-01
T3 2025                                       | 2025-07-01 to 2025-10-01
au troisième trimestre 2025                   | 2025-07-01 to 2025-10-01
mi-juin                                       | 2025-06-11 to 2025-06-21
début mars                                    | 2026-03-01 to 2026-03-11
fin 2024                                      | 2024-09-01 to 2025-01-01
l'été dernier                                 | 2025-06-01 to 2025-09-01
en été 2020                                   | 2020-06-01 to 2020-09-01
le 5                                          | 2026-05-05 to 2026-05-06
le 3 mars                                     | 2026-03-03 to 2026-03-04
hier de 15h à 17h                             | 2026-05-12 15:00 to 2026-05-12 17:00
hier à 15h                                    | 2026-05-12 15:00 to 2026-05-12 16:00
le week-end dernier                           | 2026-05-09 to 2026-05-11
à Noël                                        | 2025-12-25 to 2025-12-26
"""
SPANISH = """
las últimas 24 horas                          | 2026-05-12 17:30 to 2026-05-13 17:30
¿Qué pasó en los últimos 7 días?              | 2026-05-06 17:30 to 2026-05-13 17:30
la última semana                              | 2026-05-06 17:30 to 2026-05-13 17:30
hace 2 días                                   | 2026-05-11 to 2026-05-12
¿Qué dije ayer?                               | 2026-05-12 to 2026-05-13
anteayer                                      | 2026-05-11 to 2026-05-12
anoche                                        | 2026-05-12 18:00 to 2026-05-13
esta mañana                                   | 2026-05-13 to 2026-05-13 12:00
ayer por la tarde                             | 2026-05-12 12:00 to 2026-05-12 19:00
mañana                                        | 2026-05-14 to 2026-05-15
la semana pasada                              | 2026-05-04 to 2026-05-11
la semana antepasada                          | 2026-04-27 to 2026-05-04
la próxima semana                             | 2026-05-18 to 2026-05-25
la semana que viene                           | 2026-05-18 to 2026-05-25
este mes                                      | 2026-05-01 to 2026-06-01
el mes pasado                                 | 2026-04-01 to 2026-05-01
el año pasado                                 | 2025-01-01 to 2026-01-01
el viernes pasado                             | 2026-05-08 to 2026-05-09
¿Qué hice el viernes?                         | 2026-05-08 to 2026-05-09
hace unos días                                | 2026-05-07 to 2026-05-12
a fin de mes                                  | 2026-05-21 to 2026-06-01
después del 5 de mayo                         | 2026-05-06 to …
¿Qué pasó la noche del viernes?               | 2026-05-08 18:00 to 2026-05-09
desde el lunes                                | 2026-05-11 to …
a partir del lunes                            | 2026-05-11 to …
hasta marzo                                   | … to 2026-03-01
antes del lunes                               | … to 2026-05-11
entre 2025-10-01 y 2025-10-05                 | 2025-10-01 to 2025-10-06
entre el 1 y el 5 de octubre de 2025          | 2025-10-01 to 2025-10-06
del 1 al 5 de octubre                         | 2025-10-01 to 2025-10-06
de lunes a miércoles                          | 2026-05-11 to 2026-05-14
en octubre                                    | 2025-10-01 to 2025-11-01
tercer trimestre de 2025                      | 2025-07-01 to 2025-10-01
a mediados de junio                           | 2025-06-11 to 2025-06-21
a principios de marzo                         | 2026-03-01 to 2026-03-11
a finales de 2024                             | 2024-09-01 to 2025-01-01
el verano pasado                              | 2025-06-01 to 2025-09-01
en el verano de 2020                          | 2020-06-01 to 2020-09-01
el día 5                                      | 2026-05-05 to 2026-05-06
el 5                                          | 2026-05-05 to 2026-05-06
el 3 de marzo                                 | 2026-03-03 to 2026-03-04
ayer de 3 a 5 de la tarde                     | 2026-05-12 15:00 to 2026-05-12 17:00
ayer a las 15:00                              | 2026-05-12 15:00 to 2026-05-12 15:01
el fin de semana pasado                       | 2026-05-09 to 2026-05-11
en Navidad                                    | 2025-12-25 to 2025-12-26
"""


def rows(table: str) -> list[tuple[str, str]]:
    return [(text.strip(), ends.strip()) for text, ends in (line.split(" | ") for line in table.strip().splitlines())]


@pytest.mark.parametrize(("text", "expected"), rows(ENGLISH))
def test_english_words_give_exact_ranges(text: str, expected: str) -> None:
    assert ends(text) == expected


@pytest.mark.parametrize(("text", "expected"), rows(GERMAN))
def test_german_words_give_exact_ranges(text: str, expected: str) -> None:
    assert ends(text) == expected


@pytest.mark.parametrize(("text", "expected"), rows(FRENCH))
def test_french_words_give_exact_ranges(text: str, expected: str) -> None:
    assert ends(text) == expected


@pytest.mark.parametrize(("text", "expected"), rows(SPANISH))
def test_spanish_words_give_exact_ranges(text: str, expected: str) -> None:
    assert ends(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "pasta",
        "Order pasta for the blast party",
        "blast",
        "last name",
        "My last name is Day",
        "May I",
        "May I ask something?",
        "march on, soldiers",
        "second opinion",
        "a minute detail",
        "spring mattress",
        "don't fall down",
        "the fall of Rome",
        "Will Smith",
        "Sunday School Musical",
        "Ask June Carter",
        "Mr. Friday called",
        "12 March Street",
        "Python 3.11",
        "open 24/7",
        "a ratio of 3:2",
        "call 555-0134",
        "ISBN 978-3-16-148410-0",
        "room 2019",
        "on the 15th floor",
        "the odds are 10 to 1",
        "use 2 to 4 eggs",
        "wait a second",
        "it takes two hours",
        "I am planning another theme park weekend",
        "every Monday",
        "I lent it to my sister",
        "Giving Tuesday is a fine idea",
        "enter several films at once",
        "their song Midnight Sky",
        "yoga on Saturday mornings",
        "Christmas gifts for the kids",
        "I finished the book in two weeks",
        "on weekdays",
        "31 April",
        "2026-13-45",
        "on 05/06/2026",  # day or month first: the text does not say
        "Ich bin hier und warte",
        "Guten Morgen!",
        "Il a été gentil",
        "Buenos días",
        "",
        "   ",
    ],
)
def test_what_is_no_time_gives_nothing(text: str) -> None:
    """X-7: the words `last`, `past`, `hours` inside other words opened the seed's gate."""
    assert extract_time_range(text, NOW, BERLIN) is None


@pytest.mark.parametrize(
    "text", ["yesterday", "since Monday", "between 2025-10-01 and 2025-10-05", "gestern", "depuis lundi", "ayer"]
)
def test_no_word_gates_the_parser(text: str) -> None:
    """X-7: the seed's gate was closed for these."""
    assert extract_time_range(text, NOW, BERLIN) is not None


@pytest.mark.parametrize("text", [text for text, _ in rows(ENGLISH)])
def test_the_case_of_letters_does_not_matter(text: str) -> None:
    said = found(text)
    for other in (found(text.upper()), found(text.lower())):
        assert (other.start, other.end, other.at) == (said.start, said.end, said.at)


@pytest.mark.parametrize("text", [text for table in (ENGLISH, GERMAN, FRENCH, SPANISH) for text, _ in rows(table)])
def test_words_are_those_of_the_text_and_mean_the_same_alone(text: str) -> None:
    got = found(text)
    assert got.words == text[slice(*got.at)]
    assert got.words in got.explanation
    assert extract_time_range(text, NOW, BERLIN) == got


ABSOLUTE = re.compile(
    r"\d{4}|Q3|march|may|june?|july|oct|christmas|easter|spring|summer|winter|month|quarter|year|5th|20th|first|90s|half",
    re.IGNORECASE,
)
RELATIVE = [text for text, _ in rows(ENGLISH) if not ABSOLUTE.search(text)]


@pytest.mark.parametrize("weeks", [-53, -2, 1, 9, 200])
@pytest.mark.parametrize("text", RELATIVE)
def test_weeks_later_the_same_words_mean_the_same_weeks_later(text: str, weeks: int) -> None:
    shift = timedelta(weeks=weeks)
    one, two = found(text, NOW, "UTC"), found(text, NOW + shift, "UTC")
    assert two.start == (one.start and one.start + shift)
    assert two.end == (one.end and one.end + shift)


def test_the_first_range_with_an_end_of_its_own_is_chosen_and_else_the_first_time() -> None:
    assert found("Compare yesterday with what was done since Monday").words == "since Monday"
    assert found("What did I do yesterday that I did not do last week?").words == "yesterday"
    assert found("every Monday, but what about yesterday?").words == "yesterday"


def test_weeks_begin_on_monday_or_on_sunday() -> None:
    sunday = extract_time_range("last week", NOW, BERLIN, week_start="sunday")
    assert sunday is not None
    assert (local(sunday.start), local(sunday.end)) == ("2026-05-03", "2026-05-10")
    assert ends("last week") == "2026-05-04 to 2026-05-11"
    on_sunday = datetime(2026, 5, 17, 12, tzinfo=UTC)
    assert ends("this week", on_sunday) == "2026-05-11 to 2026-05-18"
    this = extract_time_range("this week", on_sunday, BERLIN, week_start="sunday")
    assert this is not None
    assert local(this.start) == "2026-05-17"
    past = extract_time_range("past week", NOW, BERLIN, week_start="sunday")
    assert past is not None
    assert past.start == NOW - timedelta(weeks=1)


def test_a_day_has_the_hours_it_has_in_the_zone() -> None:
    """In Berlin the clocks went forward on 29 March 2026 and back on 25 October."""
    spring, autumn = (
        found("yesterday", datetime(2026, 3, 30, 12, tzinfo=UTC)),
        found("today", datetime(2026, 10, 25, 12, tzinfo=UTC)),
    )
    assert (length(spring), length(autumn)) == (timedelta(hours=23), timedelta(hours=25))


def test_hours_and_days_before_now_are_real_time_whatever_the_clocks_did() -> None:
    """S0-43: 24 hours are 24 hours."""
    now = datetime(2026, 3, 29, 12, tzinfo=UTC)
    assert length(found("last 24 hours", now)) == timedelta(hours=24)
    assert length(found("last 2 days", now)) == timedelta(hours=48)
    assert found("3 hours ago", datetime(2026, 3, 29, 3, tzinfo=UTC)).start == datetime(2026, 3, 29, tzinfo=UTC)


def test_an_hour_that_the_clocks_left_out_is_not_empty() -> None:
    got = found("today from 2:00 to 3:00", datetime(2026, 3, 29, 12, tzinfo=UTC))
    assert got.start is not None
    assert got.end is not None
    assert got.start < got.end


def test_today_is_the_day_of_the_asker_not_of_the_server() -> None:
    late = datetime(2026, 5, 13, 23, 30, tzinfo=UTC)
    assert ends("today", late, "Asia/Tokyo") == "2026-05-14 to 2026-05-15"
    assert ends("today", late, "America/New_York") == "2026-05-13 to 2026-05-14"
    assert extract_time_range("today", late, ZoneInfo("Asia/Tokyo")) == found("today", late, "Asia/Tokyo")


def test_open_ends_close_at_what_the_caller_knows() -> None:
    earliest = datetime(2020, 1, 1, tzinfo=UTC)
    monday = datetime(2026, 5, 10, 22, tzinfo=UTC)
    assert found("since Monday").bounds(NOW, earliest=earliest) == (monday, NOW)
    assert found("before Monday").bounds(NOW, earliest=earliest) == (earliest, monday)
    ahead = found("starting tomorrow")
    assert ahead.bounds(NOW, earliest=earliest) == (ahead.start, ahead.start)


def test_a_time_without_a_zone_an_unknown_zone_or_week_is_refused() -> None:
    with pytest.raises(InvalidInput, match="`now` = 2026-05-13T15:30:00 has no time zone"):
        extract_time_range("today", NOW.replace(tzinfo=None), BERLIN)
    with pytest.raises(InvalidInput, match="zone"):
        extract_time_range("today", NOW, "Mars/Olympus")
    with pytest.raises(InvalidInput, match="`week_start` = 'friday'"):
        extract_time_range("today", NOW, BERLIN, week_start="friday")  # type: ignore[arg-type]


def test_dates_that_no_calendar_holds_give_nothing() -> None:
    assert extract_time_range("at 3pm", datetime(1, 1, 1, 12, tzinfo=UTC), "UTC") is None
    assert extract_time_range("Christmas", datetime(1, 1, 1, 12, tzinfo=UTC), "UTC") is None
    assert extract_time_range("February 29 last year", NOW, BERLIN) != extract_time_range("last year", NOW, "UTC")
    assert extract_time_range("9999 years ago", NOW, BERLIN) is None
    assert extract_time_range("9999-12-31", NOW, "America/Los_Angeles") is None
    assert extract_time_range("yesterday", datetime(1, 1, 1, tzinfo=UTC), "UTC") is None


def test_a_time_in_another_zone_is_that_instant() -> None:
    assert found("yesterday at 9:30 EST").start == datetime(2026, 5, 12, 14, 30, tzinfo=UTC)
    assert found("from 9:30 to 11:00 GMT yesterday").end == datetime(2026, 5, 12, 11, tzinfo=UTC)


def length(got: TimeRange) -> timedelta:
    assert got.start is not None
    assert got.end is not None
    return got.end - got.start


SOUP = (  # words that rules look for
    "last next this past every on in by until since from to between and Monday Friday may May march March 3 15th 2019 12:30 pm week "
    "month year hours ago two summer end of the mid tomorrow yesterday at noon daily weekend Q3 2026-05-01 hier morgen İ ß 31 . before "
    "after third quarter half 5 letzte seit Juni depuis dernière desde el lunes Christmas Easter closest first - –"
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=80)
WORDS = st.lists(st.sampled_from(SOUP.split()), max_size=16).map(" ".join)


@settings(max_examples=examples(400), deadline=None)
@given(WORDS | TEXTS, st.datetimes(timezones=st.just(UTC)), st.sampled_from(["UTC", BERLIN, "Pacific/Apia"]))
def test_a_range_lies_in_the_text_begins_before_it_ends_and_is_the_same_again(text: str, now: datetime, zone: str) -> None:
    got = extract_time_range(text, now, zone)
    assert got == extract_time_range(text, now, zone)
    if got is None:
        return
    assert got.words == text[slice(*got.at)]
    assert got.words
    assert got.start is not None or got.end is not None
    assert got.start is None or got.end is None or got.start < got.end
    for end in (got.start, got.end):
        assert end is None or end.utcoffset() == timedelta()


class Counting:
    """Counts the matches that are tried."""

    def __init__(self, source: str) -> None:
        self.pattern = re.compile(grammar.filled(source), re.IGNORECASE)

    tried = 0

    def __getattr__(self, name: str) -> object:
        if name in ("match", "search", "fullmatch", "finditer"):
            Counting.tried += 1
        return getattr(self.pattern, name)


@pytest.mark.parametrize(
    "unit",
    [
        "3 ",
        "33333",
        "1-2-3-",
        "12:30 ",
        "last last the end of ",
        "from 3 to ",
        "the first of the second of ",
        "May 5 and ",
        "a ",
        "of the ",
        "recently one of these days ",
        "Recently A While Ago ",
    ],
)
def test_work_grows_with_the_text_and_no_faster(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hostile text: twice as much of it takes about twice as many matches, and beyond the bound none at all."""
    for module in (grammar, pieces, pieces, timeranges):
        if hasattr(module, "compiled"):
            monkeypatch.setattr(module, "compiled", cache(Counting))
    tried = []
    for size in (1_000, 2_000, TEXT_CHARS_MAX, 100_000)[: 4 if unit == "3 " else 2]:
        Counting.tried = 0
        extract_time_range((unit * (size // len(unit) + 1))[:size], NOW, BERLIN)
        tried.append(Counting.tried)
    assert 0 < tried[1] <= 2.5 * tried[0] + 100
    assert tried[-1] <= max(1.1 * tried[-2], tried[1])


def test_nothing_is_read_or_compiled_before_it_is_needed() -> None:
    """Opening a store must not pay for patterns that it may never use."""
    script = (
        "import re; made = []; real = re.compile\n"
        "def counting(source, *flags):\n    made.append(source); return real(source, *flags)\n"
        "re.compile = counting\n"
        "import perdure.engine.times.question, perdure.engine.times.mentions\n"
        "from perdure.engine.words import lines, table\n"
        "print(sum(len(source) > 200 for source in made if isinstance(source, str)))\n"
        "print(lines.cache_info().currsize, table.cache_info().currsize)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "0", "0"]
