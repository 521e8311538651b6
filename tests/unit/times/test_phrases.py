"""Times as people write them: many phrases, each with the one range that it names, worked out by calendar.

A table groups phrases of one meaning: `phrase; phrase | beginning to end`, in UTC, `…` is open.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from perdure.engine.times.question import Bias, read_time_range

WEDNESDAY = datetime(2026, 5, 13, 17, 30, tzinfo=UTC)
TUESDAY = datetime(2024, 10, 15, 6, 15, tzinfo=UTC)

ASKED_ON_WEDNESDAY = """
today | 2026-05-13 to 2026-05-14
the day before yesterday; monday; this past monday | 2026-05-11 to 2026-05-12
day after tomorrow; this coming friday; friday of this week | 2026-05-15 to 2026-05-16
the day after tomorrow at 5pm | 2026-05-15 17:00 to 2026-05-15 18:00
tmrw; in a day | 2026-05-14 to 2026-05-15
two days from tomorrow; in three days' time | 2026-05-16 to 2026-05-17
a week from tomorrow | 2026-05-21 to 2026-05-22
this past saturday | 2026-05-09 to 2026-05-10
last thursday; on thurs | 2026-05-07 to 2026-05-08
tues; on the twelfth of may; may twelfth; the 12th of this month; on the 12th | 2026-05-12 to 2026-05-13
next tuesday | 2026-05-19 to 2026-05-20
friday next week; two fridays from now | 2026-05-22 to 2026-05-23
tuesday last week; last week's tuesday; a week ago yesterday | 2026-05-05 to 2026-05-06
the monday after next | 2026-05-25 to 2026-05-26
monday a week ago | 2026-05-04 to 2026-05-05
wednesday two weeks ago; two weeks ago today; 14 days ago | 2026-04-29 to 2026-04-30
a week ago today | 2026-05-06 to 2026-05-07
a year ago today | 2025-05-13 to 2025-05-14
march 3rd; the 3rd of march; 3 march; the third of march; march the third; march the 3rd | 2026-03-03 to 2026-03-04
tuesday 3 march; tue, mar 3; tuesday the 3rd | 2026-03-03 to 2026-03-04
3 mar 2024; mar. 3, 2024; march 3 2024; 3rd march 2024; the 3rd of march, 2024 | 2024-03-03 to 2024-03-04
3rd of march of 2024; 3-mar-2024; 03-mar-24; 2024-3-3; 2024/03/03; 2024 march 3; 2024 mar 3 | 2024-03-03 to 2024-03-04
sunday march 3rd 2024; sunday, march 3, 2024; sun 3 mar 2024; sunday the 3rd of march 2024 | 2024-03-03 to 2024-03-04
2024.03.15 | 2024-03-15 to 2024-03-16
3/31/2024; 31/3/2024; 31.3.2024; 31-03-2024; 3/31/24 | 2024-03-31 to 2024-04-01
3/31; 31/3; on 3/31 | 2026-03-31 to 2026-04-01
the twenty-first of april; april twenty first | 2026-04-21 to 2026-04-22
the 12th day of april; the 12th of last month | 2026-04-12 to 2026-04-13
the 12th day of april 2024 | 2024-04-12 to 2024-04-13
april 12 last year | 2025-04-12 to 2025-04-13
the ides of march | 2026-03-15 to 2026-03-16
feb 29 2024; the last day of february 2024 | 2024-02-29 to 2024-03-01
mon, 4 mar 2024 at 9am | 2024-03-04 09:00 to 2024-03-04 10:00
2024-03-04T09:15; 2024-03-04 at 09:15; 4th march 2024 9:15 am | 2024-03-04 09:15 to 2024-03-04 09:16
9:15am on the 4th of march 2024 | 2024-03-04 09:15 to 2024-03-04 09:16
3/31/2024 at 5:30 pm | 2024-03-31 17:30 to 2024-03-31 17:31
october 2014; oct. 2014; oct '14; october of 2014; october, 2014; 2014 october; 10/2014 | 2014-10-01 to 2014-11-01
2014-10; the month of october 2014 | 2014-10-01 to 2014-11-01
the month of march; last march; this march | 2026-03-01 to 2026-04-01
october last year; october of last year; last october | 2025-10-01 to 2025-11-01
next march | 2027-03-01 to 2027-04-01
march two years ago; third month of 2024 | 2024-03-01 to 2024-04-01
2014; the year 2014; in the year 2014; twenty fourteen | 2014-01-01 to 2015-01-01
the 1980s; the eighties | 1980-01-01 to 1990-01-01
q2 2024; 2024 q2; 2024q2; second quarter of 2024; 2nd quarter 2024; the 2nd qtr of 2024 | 2024-04-01 to 2024-07-01
q2 of 2024 | 2024-04-01 to 2024-07-01
q2 last year | 2025-04-01 to 2025-07-01
the last quarter of 2024 | 2024-10-01 to 2025-01-01
first half of 2024 | 2024-01-01 to 2024-07-01
second half of last year | 2025-07-01 to 2026-01-01
h2 2024 | 2024-07-01 to 2025-01-01
summer 2024; summer of '24 | 2024-06-01 to 2024-09-01
winter of 2023 | 2023-12-01 to 2024-03-01
last fall | 2025-09-01 to 2025-12-01
this spring | 2026-03-01 to 2026-06-01
next autumn | 2026-09-01 to 2026-12-01
the summer of last year | 2025-06-01 to 2025-09-01
this week; the current week | 2026-05-11 to 2026-05-18
previous week; the week of the 6th; a week back | 2026-05-04 to 2026-05-11
the previous month | 2026-04-01 to 2026-05-01
next month; the following month; a month from now | 2026-06-01 to 2026-07-01
coming week | 2026-05-18 to 2026-05-25
last qtr; january to march | 2026-01-01 to 2026-04-01
next quarter | 2026-07-01 to 2026-10-01
this year | 2026-01-01 to 2027-01-01
the past 3 days | 2026-05-10 17:30 to 2026-05-13 17:30
last 15 minutes; past 15 mins | 2026-05-13 17:15 to 2026-05-13 17:30
last 30 seconds | 2026-05-13 17:29:30 to 2026-05-13 17:30
the last couple of days; last 48h | 2026-05-11 17:30 to 2026-05-13 17:30
the last few hours | 2026-05-13 14:30 to 2026-05-13 17:30
the last two and a half hours | 2026-05-13 15:00 to 2026-05-13 17:30
the last half hour; past half an hour | 2026-05-13 17:00 to 2026-05-13 17:30
last 3 months; previous three months | 2026-02-13 17:30 to 2026-05-13 17:30
over the past two years | 2024-05-13 17:30 to 2026-05-13 17:30
last 7d | 2026-05-06 17:30 to 2026-05-13 17:30
next 90 minutes | 2026-05-13 17:30 to 2026-05-13 19:00
coming three days | 2026-05-13 17:30 to 2026-05-16 17:30
the next couple of weeks | 2026-05-13 17:30 to 2026-05-27 17:30
over the next five years | 2026-05-13 17:30 to 2031-05-13 17:30
within 3 hours | 2026-05-13 17:30 to 2026-05-13 20:30
within the next 2 days | 2026-05-13 17:30 to 2026-05-15 17:30
within a week | 2026-05-13 17:30 to 2026-05-20 17:30
this weekend | 2026-05-16 to 2026-05-18
last weekend | 2026-05-09 to 2026-05-11
next weekend | 2026-05-23 to 2026-05-25
the weekend before last | 2026-05-02 to 2026-05-04
the weekend of march 14 | 2026-03-14 to 2026-03-16
week of march 4 2024; the week starting march 4 2024 | 2024-03-04 to 2024-03-11
the year before last | 2024-01-01 to 2025-01-01
in 2 minutes; 2 minutes from now | 2026-05-13 17:32 to 2026-05-13 17:33
in half an hour; in a half hour | 2026-05-13 18:00 to 2026-05-13 18:01
in 2 and a half hours; in 2.5 hours; in two and an half hours | 2026-05-13 20:00 to 2026-05-13 20:01
in an hour and a half | 2026-05-13 19:00 to 2026-05-13 19:01
in a quarter of an hour | 2026-05-13 17:45 to 2026-05-13 17:46
in three-quarters of an hour | 2026-05-13 18:15 to 2026-05-13 18:16
in 1 hour and 15 minutes | 2026-05-13 18:45 to 2026-05-13 18:46
in 24 hrs | 2026-05-14 17:30 to 2026-05-14 18:30
in 7 days; in 1 week; a week from today | 2026-05-20 to 2026-05-21
in a couple of months | 2026-07-01 to 2026-08-01
in three years; three years from now | 2029-01-01 to 2030-01-01
a fortnight from now | 2026-05-27 to 2026-05-28
45 minutes ago | 2026-05-13 16:45 to 2026-05-13 16:46
30 secs ago | 2026-05-13 17:29:30 to 2026-05-13 17:29:31
an hour ago; about an hour ago | 2026-05-13 16:30 to 2026-05-13 17:30
two and a half hours ago | 2026-05-13 15:00 to 2026-05-13 15:01
a couple of weeks ago | 2026-04-20 to 2026-05-04
a few months ago | 2025-11-01 to 2026-04-01
two quarters ago | 2025-10-01 to 2026-01-01
three mondays ago | 2026-04-27 to 2026-04-28
first monday of march 2024; the 1st monday in march 2024; first monday after march 3 2024 | 2024-03-04 to 2024-03-05
second tuesday in november 2024 | 2024-11-12 to 2024-11-13
third thursday of next month | 2026-06-18 to 2026-06-19
last friday of may 2024 | 2024-05-31 to 2024-06-01
last monday in may 2025 | 2025-05-26 to 2025-05-27
first day of the month | 2026-05-01 to 2026-05-02
last day of last month | 2026-04-30 to 2026-05-01
first day of 2024 | 2024-01-01 to 2024-01-02
the second week of march 2024 | 2024-03-11 to 2024-03-18
first weekend of march 2024 | 2024-03-02 to 2024-03-04
the last weekend of october 2024 | 2024-10-26 to 2024-10-28
the first three days of march 2024 | 2024-03-01 to 2024-03-04
the first two weeks of 2024 | 2024-01-01 to 2024-01-15
last 2 days of april | 2026-04-29 to 2026-05-01
the second to last day of march 2024 | 2024-03-30 to 2024-03-31
the friday before march 3 2024 | 2024-03-01 to 2024-03-02
beginning of the month | 2026-05-01 to 2026-05-11
end of last year | 2025-09-01 to 2026-01-01
mid 2023 | 2023-05-01 to 2023-09-01
in early 2024; jan-mar 2024; between january and march 2024 | 2024-01-01 to 2024-04-01
from january 2024 through march 2024 | 2024-01-01 to 2024-04-01
mid-january 2024 | 2024-01-11 to 2024-01-21
late october 2024; the end of october 2024 | 2024-10-21 to 2024-11-01
early last week | 2026-05-04 to 2026-05-07
end of next month | 2026-06-21 to 2026-07-01
earlier this week | 2026-05-11 to 2026-05-13 17:30
earlier today | 2026-05-13 to 2026-05-13 17:30
later today | 2026-05-13 17:30 to 2026-05-14
later this month; by the end of the month | 2026-05-13 17:30 to 2026-06-01
rest of the week | 2026-05-13 17:30 to 2026-05-18
month to date | 2026-05-01 to 2026-05-13 17:30
3 p.m.; at 3PM; 3pm-ish; 3ish pm; around 3pm; about 3 in the afternoon | 2026-05-13 15:00 to 2026-05-13 16:00
3 o'clock pm | 2026-05-13 15:00 to 2026-05-13 16:00
3:15 pm; 3.15pm; 3:15p; 15:15; 15h15; 1515 hours; at 1515 hrs; quarter past 3 pm | 2026-05-13 15:15 to 2026-05-13 15:16
a quarter past three pm; quarter after 3pm; 15 past 3pm | 2026-05-13 15:15 to 2026-05-13 15:16
15:15:30 | 2026-05-13 15:15:30 to 2026-05-13 15:15:31
0800 hours | 2026-05-13 08:00 to 2026-05-13 08:01
at 20 past 3pm; twenty past three in the afternoon | 2026-05-13 15:20 to 2026-05-13 15:21
half past 9 in the morning | 2026-05-13 09:30 to 2026-05-13 09:31
half after 3pm; three thirty pm; three thirty in the afternoon | 2026-05-13 15:30 to 2026-05-13 15:31
quarter to noon | 2026-05-13 11:45 to 2026-05-13 11:46
a quarter to four pm | 2026-05-13 15:45 to 2026-05-13 15:46
ten minutes to four pm | 2026-05-13 15:50 to 2026-05-13 15:51
5 minutes past 9am; nine oh five am | 2026-05-13 09:05 to 2026-05-13 09:06
8 at night; eight in the evening | 2026-05-12 20:00 to 2026-05-12 21:00
8 o'clock in the morning | 2026-05-13 08:00 to 2026-05-13 09:00
noon; 12 noon | 2026-05-13 12:00 to 2026-05-13 13:00
midnight | 2026-05-13 to 2026-05-13 01:00
at 6 this morning | 2026-05-13 06:00 to 2026-05-13 07:00
this morning at 6:45 | 2026-05-13 06:45 to 2026-05-13 06:46
yesterday at noon; noon yesterday | 2026-05-12 12:00 to 2026-05-12 13:00
8am on monday; monday 8 am | 2026-05-11 08:00 to 2026-05-11 09:00
monday at 8 o'clock in the evening | 2026-05-11 20:00 to 2026-05-11 21:00
8 tomorrow morning; tomorrow morning at 8 | 2026-05-14 08:00 to 2026-05-14 09:00
tonight at 8; 8 tonight; 8 o'clock tonight | 2026-05-13 20:00 to 2026-05-13 21:00
at 8:30 tonight | 2026-05-13 20:30 to 2026-05-13 20:31
tomorrow evening at 7:30 | 2026-05-14 19:30 to 2026-05-14 19:31
sunday night at 9 | 2026-05-10 21:00 to 2026-05-10 22:00
9pm last night; last night at 9 | 2026-05-12 21:00 to 2026-05-12 22:00
yesterday at quarter to 5 pm | 2026-05-12 16:45 to 2026-05-12 16:46
yesterday half past 4 pm | 2026-05-12 16:30 to 2026-05-12 16:31
thursday 8 o'clock am gmt | 2026-05-07 08:00 to 2026-05-07 09:00
thursday 8:00 GMT | 2026-05-07 08:00 to 2026-05-07 08:01
yesterday at 4pm CET | 2026-05-12 15:00 to 2026-05-12 16:00
yesterday 16:00 (CEST) | 2026-05-12 14:00 to 2026-05-12 14:01
9am EST yesterday | 2026-05-12 14:00 to 2026-05-12 15:00
yesterday at 9am UTC+2 | 2026-05-12 07:00 to 2026-05-12 08:00
2024-03-04T09:15:00Z | 2024-03-04 09:15:00 to 2024-03-04 09:15:01
2024-03-04T09:15:00+02:00 | 2024-03-04 07:15:00 to 2024-03-04 07:15:01
yesterday evening; yesterday after 6pm | 2026-05-12 18:00 to 2026-05-13
late last night | 2026-05-12 21:00 to 2026-05-13
tomorrow night | 2026-05-14 18:00 to 2026-05-15
monday morning | 2026-05-11 to 2026-05-11 12:00
early monday morning | 2026-05-11 to 2026-05-11 09:00
last tuesday afternoon | 2026-05-12 12:00 to 2026-05-12 19:00
this past saturday night | 2026-05-09 18:00 to 2026-05-10
march 3 in the evening | 2026-03-03 18:00 to 2026-03-04
the evening of march 3 2024; march 3rd 2024 evening | 2024-03-03 18:00 to 2024-03-04
the night of october 31st 2024 | 2024-10-31 18:00 to 2024-11-01
in the morning of 2024-03-03 | 2024-03-03 to 2024-03-03 12:00
christmas morning 2024; the morning of christmas 2024 | 2024-12-25 to 2024-12-25 12:00
lunch yesterday | 2026-05-12 12:00 to 2026-05-12 14:00
tomorrow at lunch | 2026-05-14 12:00 to 2026-05-14 14:00
late tonight | 2026-05-13 21:00 to 2026-05-14
late yesterday afternoon | 2026-05-12 16:00 to 2026-05-12 19:00
early afternoon yesterday | 2026-05-12 12:00 to 2026-05-12 15:00
yesterday after lunch | 2026-05-12 13:00 to 2026-05-12 17:00
from 9 to 11 tomorrow | 2026-05-14 09:00 to 2026-05-14 11:00
9-11am yesterday; 9am-11am yesterday; 9 am to 11 am yesterday | 2026-05-12 09:00 to 2026-05-12 11:00
yesterday 9:30-11:00; yesterday 9:30 – 11 | 2026-05-12 09:30 to 2026-05-12 11:00
from 9:30 until 11 on thursday; thursday from 9:30 to 11:00 | 2026-05-07 09:30 to 2026-05-07 11:00
between 9:30 and 11:00 on thursday | 2026-05-07 09:30 to 2026-05-07 11:00
thursday from 9a to 11a | 2026-05-07 09:00 to 2026-05-07 11:00
between 9:30am and noon yesterday | 2026-05-12 09:30 to 2026-05-12 12:00
yesterday between noon and 5pm | 2026-05-12 12:00 to 2026-05-12 17:00
3:30 to 5:00 pm yesterday; 3:30-5pm yesterday | 2026-05-12 15:30 to 2026-05-12 17:00
11 to 1pm yesterday; 11am - 1 pm yesterday | 2026-05-12 11:00 to 2026-05-12 13:00
yesterday 10pm to 2am | 2026-05-12 22:00 to 2026-05-13 02:00
from 3pm till 5pm yesterday; three to five pm yesterday | 2026-05-12 15:00 to 2026-05-12 17:00
yesterday from 5 to 7 in the evening | 2026-05-12 17:00 to 2026-05-12 19:00
march 3 2024 from 9am to 5pm; 9am to 5pm on 3 march 2024; 3 march 2024, 9am - 5pm | 2024-03-03 09:00 to 2024-03-03 17:00
from march 3 2024 9am to march 4 2024 5pm | 2024-03-03 09:00 to 2024-03-04 17:00
yesterday from 0930 to 1130 hours | 2026-05-12 09:30 to 2026-05-12 11:30
yesterday before noon | 2026-05-12 to 2026-05-12 12:00
yesterday until 10am | 2026-05-12 to 2026-05-12 10:00
monday after 3pm | 2026-05-11 15:00 to 2026-05-12
9am to 5pm EST yesterday | 2026-05-12 14:00 to 2026-05-12 22:00
july 13 to 15; july 13th - 15th; july 13-july 15; july 13th thru july 15th; from july 13-15 | 2025-07-13 to 2025-07-16
13-15 july 2024; 13th to 15th july 2024; 13th - 15th of july 2024 | 2024-07-13 to 2024-07-16
from the 13th through the 15th of july 2024; july 13 through 15, 2024 | 2024-07-13 to 2024-07-16
between july 13 and 15 2024; from 13 to 15 of july 2024 | 2024-07-13 to 2024-07-16
aug 28 - sept 3 2024; 28 aug to 3 sep 2024 | 2024-08-28 to 2024-09-04
from the 28th of august to the 3rd of september 2024 | 2024-08-28 to 2024-09-04
dec 28 to jan 4 | 2025-12-28 to 2026-01-05
the 3rd to the 7th; from the 3rd until the 7th | 2026-05-03 to 2026-05-08
monday through tuesday; mon-tue; monday - tuesday; from last monday to yesterday | 2026-05-11 to 2026-05-13
yesterday and today | 2026-05-12 to 2026-05-14
from yesterday to tomorrow | 2026-05-12 to 2026-05-15
from may 1 to today | 2026-05-01 to 2026-05-14
from may 1 until yesterday | 2026-05-01 to 2026-05-13
2010-2015; between 2010 and 2015 | 2010-01-01 to 2016-01-01
2024-01-01 to 2024-01-31; 2024-01-01 - 2024-01-31 | 2024-01-01 to 2024-02-01
1/15/2024 - 1/31/2024; from 1/15/2024 to 1/31/2024 | 2024-01-15 to 2024-02-01
from march 3 2024 for 10 days; for 10 days from 3rd march 2024; 10 days starting march 3 2024 | 2024-03-03 to 2024-03-13
10 days beginning march 3rd 2024 | 2024-03-03 to 2024-03-13
2 weeks from march 4 2024 | 2024-03-18 to 2024-03-19
from 3pm yesterday for 45 minutes | 2026-05-12 15:00 to 2026-05-12 15:45
for 30 minutes starting at 6pm yesterday | 2026-05-12 18:00 to 2026-05-12 18:30
yesterday at 6pm for 2 hours | 2026-05-12 18:00 to 2026-05-12 20:00
10 days after march 3 2024 | 2024-03-13 to 2024-03-14
two weeks before christmas 2024 | 2024-12-11 to 2024-12-12
three days after easter 2025 | 2025-04-23 to 2025-04-24
the day before thanksgiving 2024 | 2024-11-27 to 2024-11-28
the week after easter 2025 | 2025-04-21 to 2025-04-28
the weekend before easter 2025 | 2025-04-12 to 2025-04-14
one month after 2024-01-15 | 2024-02-15 to 2024-02-16
a year before march 3 2024 | 2023-03-03 to 2023-03-04
30 minutes after 3pm yesterday | 2026-05-12 15:30 to 2026-05-12 15:31
an hour before noon yesterday | 2026-05-12 11:00 to 2026-05-12 12:00
since yesterday | 2026-05-12 to …
since last week | 2026-05-04 to …
since 9am | 2026-05-13 09:00 to …
since the 3rd of may | 2026-05-03 to …
since two days ago; after last week; from monday onward | 2026-05-11 to …
ever since 2019 | 2019-01-01 to …
since christmas | 2025-12-25 to …
after easter | 2026-04-06 to …
anytime after march 3 | 2026-03-04 to …
from now on | 2026-05-13 17:30 to …
until now | … to 2026-05-13 17:30
so far this year | 2026-01-01 to 2026-05-13 17:30
until the end of last month | … to 2026-05-01
up to yesterday | … to 2026-05-13
till noon | … to 2026-05-13 12:00
sometime before march | … to 2026-03-01
prior to 2020 | … to 2020-01-01
before last christmas | … to 2025-12-25
no later than friday | 2026-05-13 17:30 to 2026-05-16
by tomorrow | 2026-05-13 17:30 to 2026-05-15
by 8pm tomorrow | 2026-05-13 17:30 to 2026-05-14 20:00
by the end of next week | 2026-05-13 17:30 to 2026-05-25
"""
SCHEDULED_ON_WEDNESDAY = """
friday | 2026-05-15 to 2026-05-16
wednesday; the 20th | 2026-05-20 to 2026-05-21
monday at 8 | 2026-05-18 08:00 to 2026-05-18 09:00
march 3 | 2027-03-03 to 2027-03-04
the 3rd | 2026-06-03 to 2026-06-04
may 20th at 3:30 pm | 2026-05-20 15:30 to 2026-05-20 15:31
8pm; at 8 | 2026-05-13 20:00 to 2026-05-13 21:00
at 9:30 | 2026-05-13 21:30 to 2026-05-13 21:31
half past eight | 2026-05-13 20:30 to 2026-05-13 20:31
quarter to nine | 2026-05-13 20:45 to 2026-05-13 20:46
7ish; around 7 | 2026-05-13 19:00 to 2026-05-13 20:00
10am | 2026-05-14 10:00 to 2026-05-14 11:00
in the morning | 2026-05-14 to 2026-05-14 12:00
from 9 to 11 tomorrow | 2026-05-14 09:00 to 2026-05-14 11:00
8-10pm; 8 to 10 tonight; later than 8pm but before 10pm | 2026-05-13 20:00 to 2026-05-13 22:00
friday from 2 to 4 pm; friday 2-4pm; friday between 2 and 4 pm | 2026-05-15 14:00 to 2026-05-15 16:00
july 13-15 | 2026-07-13 to 2026-07-16
from the 18th to the 22nd; monday to friday | 2026-05-18 to 2026-05-23
for 10 days from 18th dec; 18th dec for 10 days; from december 18 for 10 days | 2026-12-18 to 2026-12-28
starting december 18 for 10 days | 2026-12-18 to 2026-12-28
for 2 weeks starting june 1 | 2026-06-01 to 2026-06-15
by 6pm | 2026-05-13 17:30 to 2026-05-13 18:00
by friday | 2026-05-13 17:30 to 2026-05-16
by christmas | 2026-05-13 17:30 to 2026-12-26
until friday | … to 2026-05-16
after friday | 2026-05-16 to …
after 8pm | 2026-05-13 20:00 to …
christmas; next christmas; this christmas | 2026-12-25 to 2026-12-26
easter | 2027-03-28 to 2027-03-29
thanksgiving | 2026-11-26 to 2026-11-27
mother's day | 2027-05-09 to 2027-05-10
last christmas | 2025-12-25 to 2025-12-26
the christmas after next; christmas next year | 2027-12-25 to 2027-12-26
thanksgiving in a year | 2027-11-25 to 2027-11-26
halloween in 2 years | 2028-10-31 to 2028-11-01
2 days before thanksgiving | 2026-11-24 to 2026-11-25
a week after halloween | 2026-11-07 to 2026-11-08
the friday before christmas | 2026-12-18 to 2026-12-19
in june | 2026-06-01 to 2026-07-01
this summer; summer | 2026-06-01 to 2026-09-01
the first tuesday of october | 2026-10-06 to 2026-10-07
the last monday in october | 2026-10-26 to 2026-10-27
third tuesday of september 2026 | 2026-09-15 to 2026-09-16
the 1st of june at noon | 2026-06-01 12:00 to 2026-06-01 13:00
tomorrow at 5pm | 2026-05-14 17:00 to 2026-05-14 18:00
tomorrow at 5:20 pm | 2026-05-14 17:20 to 2026-05-14 17:21
tomorrow after 5pm | 2026-05-14 17:00 to 2026-05-15
tomorrow before 10am | 2026-05-14 to 2026-05-14 10:00
tomorrow late morning | 2026-05-14 09:00 to 2026-05-14 12:00
friday evening | 2026-05-15 18:00 to 2026-05-16
weekend; at the weekend | 2026-05-16 to 2026-05-18
sunday at 7:30 in the evening | 2026-05-17 19:30 to 2026-05-17 19:31
7:30pm on fri, may 15; fri, may 15, 7:30pm | 2026-05-15 19:30 to 2026-05-15 19:31
12:30 - 1pm tomorrow | 2026-05-14 12:30 to 2026-05-14 13:00
quarter past noon tomorrow | 2026-05-14 12:15 to 2026-05-14 12:16
a week from friday | 2026-05-22 to 2026-05-23
two weeks from monday | 2026-06-01 to 2026-06-02
"""
SCHEDULED_ON_TUESDAY = """
thursday; a day after tomorrow | 2024-10-17 to 2024-10-18
next thursday; thurs next week | 2024-10-24 to 2024-10-25
wednesday of next week; next week wednesday; next week on wednesday; wednesday 23rd | 2024-10-23 to 2024-10-24
wed the 23rd; the 23rd wednesday; 3 days from oct 20; tomorrow week | 2024-10-23 to 2024-10-24
wednesday in two weeks | 2024-10-30 to 2024-10-31
last sunday; sunday from last week; last week's sunday | 2024-10-13 to 2024-10-14
one week from today; in one week; one week from now | 2024-10-22 to 2024-10-23
two days before yesterday | 2024-10-12 to 2024-10-13
three days after tomorrow | 2024-10-19 to 2024-10-20
sunday after next | 2024-10-27 to 2024-10-28
day after tomorrow 5pm; thursday 9am pst; thursday at 5 | 2024-10-17 17:00 to 2024-10-17 18:00
the 20th of october; october the 20th; oct 20th; 20 oct; 10/20; 10/20/2024; 10/20/24 | 2024-10-20 to 2024-10-21
10-20-2024; 10.20.2024 | 2024-10-20 to 2024-10-21
20 october 2024 at 10:30 | 2024-10-20 10:30 to 2024-10-20 10:31
on the 20th at 3 pm | 2024-10-20 15:00 to 2024-10-20 16:00
the 20th at noon; noon on the 20th | 2024-10-20 12:00 to 2024-10-20 13:00
by the 20th | 2024-10-15 06:15 to 2024-10-21
the 1st of march; first of march; march first; sat, mar 1; saturday 1st march | 2025-03-01 to 2025-03-02
mar 1st 2026 | 2026-03-01 to 2026-03-02
monday, oct 21; monday, october twenty-first | 2024-10-21 to 2024-10-22
mon october 21 2024 at 9 am | 2024-10-21 09:00 to 2024-10-21 10:00
dec '24; next december; this december; this coming december; end of q4 | 2024-12-01 to 2025-01-01
next june; june next year; june of next year | 2025-06-01 to 2025-07-01
last june | 2024-06-01 to 2024-07-01
june in two years | 2026-06-01 to 2026-07-01
2nd week of december | 2024-12-09 to 2024-12-16
the first week of march 2025 | 2025-03-03 to 2025-03-10
last week of march 2025 | 2025-03-24 to 2025-03-31
third week of 2025 | 2025-01-20 to 2025-01-27
the last day of the year | 2024-12-31 to 2025-01-01
last day of this month; the last thursday of this month | 2024-10-31 to 2024-11-01
two weeks from thursday | 2024-10-31 to 2024-11-01
the first day of next year; new year 2025 | 2025-01-01 to 2025-01-02
the second day of december | 2024-12-02 to 2024-12-03
first friday of november; 1st fri of november; in 2 weeks and 3 days | 2024-11-01 to 2024-11-02
third saturday in november | 2024-11-16 to 2024-11-17
last tuesday in november | 2024-11-26 to 2024-11-27
second monday of next month; 2 mondays after nov 1 | 2024-11-11 to 2024-11-12
first tuesday of march 2026 | 2026-03-03 to 2026-03-04
penultimate friday of november; second last friday of november | 2024-11-22 to 2024-11-23
q1 2025; q1 next year; first quarter of next year; 1st qtr 2025; early 2025 | 2025-01-01 to 2025-04-01
the 4th quarter; q4 of this year; the last three months of the year | 2024-10-01 to 2025-01-01
noon; at 12 pm; noonish; 12-1; 12pm - 1pm | 2024-10-15 12:00 to 2024-10-15 13:00
midnight; 12 am; midnight tonight; 12:00 midnight | 2024-10-16 to 2024-10-16 01:00
12:30 am | 2024-10-16 00:30 to 2024-10-16 00:31
12:30pm; thirty minutes past noon; half past noon | 2024-10-15 12:30 to 2024-10-15 12:31
at 8; 8 a.m.; 8a | 2024-10-15 08:00 to 2024-10-15 09:00
at 8 in the evening; 8 pm sharp; at exactly 8pm; 8ish tonight; at about 8pm | 2024-10-15 20:00 to 2024-10-15 21:00
approximately 8pm; this evening around 8 | 2024-10-15 20:00 to 2024-10-15 21:00
20:30; 2030 hours; at 20h30; 8:30 in the evening; half past eight in the evening | 2024-10-15 20:30 to 2024-10-15 20:31
half eight pm | 2024-10-15 20:30 to 2024-10-15 20:31
quarter past 8 tonight | 2024-10-15 20:15 to 2024-10-15 20:16
a quarter to 9 tonight; quarter till 9 pm; quarter of 9 pm; 15 minutes to 9pm | 2024-10-15 20:45 to 2024-10-15 20:46
15 to 9pm | 2024-10-15 20:45 to 2024-10-15 20:46
twenty to nine pm | 2024-10-15 20:40 to 2024-10-15 20:41
five past nine pm; 5 after 9pm | 2024-10-15 21:05 to 2024-10-15 21:06
nine fifteen pm | 2024-10-15 21:15 to 2024-10-15 21:16
nine-fifteen in the morning | 2024-10-15 09:15 to 2024-10-15 09:16
eleven thirty am; 1130am | 2024-10-15 11:30 to 2024-10-15 11:31
15 minutes before noon | 2024-10-15 11:45 to 2024-10-15 11:46
9 o'clock tomorrow morning; tomorrow 9 o'clock; tomorrow @ 9am; 9am tomorrow | 2024-10-16 09:00 to 2024-10-16 10:00
tomorrow, 9am | 2024-10-16 09:00 to 2024-10-16 10:00
at 9 in the morning on thursday; thursday morning at 9; 9-10am on thursday | 2024-10-17 09:00 to 2024-10-17 10:00
thursday between 9 and 10 am; thursday 9-10 am; thursday 9 am-10 am | 2024-10-17 09:00 to 2024-10-17 10:00
thursday at 8:30 gmt | 2024-10-17 08:30 to 2024-10-17 08:31
tomorrow at 14:00 utc | 2024-10-16 14:00 to 2024-10-16 14:01
tomorrow 3pm ist | 2024-10-16 09:30 to 2024-10-16 10:30
today at 16:00 cet | 2024-10-15 15:00 to 2024-10-15 15:01
today in one hour; in an hour | 2024-10-15 07:15 to 2024-10-15 08:15
in 20 minutes; 20 minutes hence | 2024-10-15 06:35 to 2024-10-15 06:36
in about two hours | 2024-10-15 08:15 to 2024-10-15 09:15
in a couple of minutes | 2024-10-15 06:17 to 2024-10-15 06:18
in a few hours | 2024-10-15 09:15 to 2024-10-15 10:15
in 3/4 of an hour | 2024-10-15 07:00 to 2024-10-15 07:01
in thirty-five minutes | 2024-10-15 06:50 to 2024-10-15 06:51
in a day | 2024-10-16 to 2024-10-17
in ten days | 2024-10-25 to 2024-10-26
in 45 days; friday after thanksgiving | 2024-11-29 to 2024-11-30
this morning | 2024-10-15 to 2024-10-15 12:00
this afternoon | 2024-10-15 12:00 to 2024-10-15 19:00
this evening; tonight; tonite | 2024-10-15 18:00 to 2024-10-16
tomorrow afternoon | 2024-10-16 12:00 to 2024-10-16 19:00
thursday night; in the evening on thursday | 2024-10-17 18:00 to 2024-10-18
the night of the 20th | 2024-10-20 18:00 to 2024-10-21
early tomorrow morning; tomorrow early morning | 2024-10-16 to 2024-10-16 09:00
tomorrow in the morning | 2024-10-16 to 2024-10-16 12:00
late thursday evening | 2024-10-17 21:00 to 2024-10-18
october 20th in the afternoon | 2024-10-20 12:00 to 2024-10-20 19:00
9am to 5pm; 9 - 5pm | 2024-10-15 09:00 to 2024-10-15 17:00
from 9 to 5 tomorrow; 9:00-17:00 tomorrow | 2024-10-16 09:00 to 2024-10-16 17:00
tomorrow from 9 to 10:30 am | 2024-10-16 09:00 to 2024-10-16 10:30
tomorrow 13:30-15:00; tomorrow from 1:30pm to 3; tomorrow from 1:30 pm until 3 pm | 2024-10-16 13:30 to 2024-10-16 15:00
tomorrow 1:30-3pm; 1:30 to 3 tomorrow afternoon | 2024-10-16 13:30 to 2024-10-16 15:00
tomorrow between 3 and 4 in the afternoon; tomorrow at 3 | 2024-10-16 15:00 to 2024-10-16 16:00
thursday from 9:30 am - 11:00 am; from 9:30 to 11:00 (am) thursday | 2024-10-17 09:30 to 2024-10-17 11:00
between 9:30 to 11:00 on thursday; between 9:30am - 11am thursday | 2024-10-17 09:30 to 2024-10-17 11:00
thursday 9:30am to 11am gmt | 2024-10-17 09:30 to 2024-10-17 11:00
9:30 - 11:00 am on oct 20; on oct 20 from 9:30 to 11; oct 20 9:30-11:00 | 2024-10-20 09:30 to 2024-10-20 11:00
from thursday to saturday; thursday till saturday; thu - sat; between thursday and saturday | 2024-10-17 to 2024-10-20
thursday and friday | 2024-10-17 to 2024-10-19
tomorrow to friday; from tomorrow until friday; for 3 days starting tomorrow | 2024-10-16 to 2024-10-19
tomorrow for 3 days; starting tomorrow for 3 days | 2024-10-16 to 2024-10-19
from oct 20 to 25; oct 20-25; 20th-25th oct; 20 to 25 october; the 20th to 25th of october | 2024-10-20 to 2024-10-26
from 20 october to 25 october; from 10/20 to 10/25 | 2024-10-20 to 2024-10-26
oct 20th to 25th 2025 | 2025-10-20 to 2025-10-26
20 oct - 2 nov; oct 20 until nov 2; between oct 20 and nov 2; from oct 20, 2024 to nov 2, 2024 | 2024-10-20 to 2024-11-03
december to february; dec 2024 - feb 2025; this winter; next season | 2024-12-01 to 2025-03-01
for a week starting monday; upcoming week; all of next week; starting monday for a week | 2024-10-21 to 2024-10-28
the week starting monday | 2024-10-21 to 2024-10-28
for the next three days | 2024-10-15 06:15 to 2024-10-18 06:15
from 6pm for 2 hours; between 6pm and 8pm; sometime between 6 and 8 pm | 2024-10-15 18:00 to 2024-10-15 20:00
6pm for 30 mins | 2024-10-15 18:00 to 2024-10-15 18:30
tomorrow at 6 pm for one hour | 2024-10-16 18:00 to 2024-10-16 19:00
for 90 minutes from 6 pm tomorrow | 2024-10-16 18:00 to 2024-10-16 19:30
within 2 hours | 2024-10-15 06:15 to 2024-10-15 08:15
by noon | 2024-10-15 06:15 to 2024-10-15 12:00
by 5 pm tomorrow | 2024-10-15 06:15 to 2024-10-16 17:00
by midnight; by the end of the day; by eod; for the rest of today; rest of the day | 2024-10-15 06:15 to 2024-10-16
by the end of october; for the rest of the month | 2024-10-15 06:15 to 2024-11-01
by eod tomorrow | 2024-10-15 06:15 to 2024-10-17
before 6 pm; until 6pm | … to 2024-10-15 18:00
after 6pm | 2024-10-15 18:00 to …
after lunch | 2024-10-15 13:00 to 2024-10-15 17:00
since yesterday | 2024-10-14 to …
from thursday on | 2024-10-17 to …
starting next week | 2024-10-21 to …
last 2 hours | 2024-10-15 04:15 to 2024-10-15 06:15
past 2 weeks | 2024-10-01 06:15 to 2024-10-15 06:15
next 2 months | 2024-10-15 06:15 to 2024-12-15 06:15
this weekend; upcoming weekend | 2024-10-19 to 2024-10-21
next weekend; the following weekend | 2024-10-26 to 2024-10-28
past weekend | 2024-10-12 to 2024-10-14
last summer | 2024-06-01 to 2024-09-01
christmas | 2024-12-25 to 2024-12-26
two weeks after christmas | 2025-01-08 to 2025-01-09
three days before new year's eve | 2024-12-28 to 2024-12-29
new year's eve at 11pm | 2024-12-31 23:00 to 2025-01-01
thanksgiving of next year | 2025-11-27 to 2025-11-28
last easter | 2024-03-31 to 2024-04-01
next valentine's day; valentine's day next year | 2025-02-14 to 2025-02-15
easter two years from now | 2026-04-05 to 2026-04-06
mother's day in 2026 | 2026-05-10 to 2026-05-11
3 days after thanksgiving 2025 | 2025-11-30 to 2025-12-01
the sunday before thanksgiving | 2024-11-24 to 2024-11-25
the first monday after christmas | 2024-12-30 to 2024-12-31
the weekend after thanksgiving | 2024-11-30 to 2024-12-02
from thanksgiving to christmas | 2024-11-28 to 2024-12-26
until christmas | … to 2024-12-26
after christmas | 2024-12-26 to …
between christmas and new year's | 2024-12-25 to 2025-01-02
upcoming friday; this upcoming friday; on the 18th of the month; the eighteenth | 2024-10-18 to 2024-10-19
the week after next | 2024-10-28 to 2024-11-04
a month after oct 20 | 2024-11-20 to 2024-11-21
six months before oct 20 2024 | 2024-04-20 to 2024-04-21
2 hours after noon | 2024-10-15 14:00 to 2024-10-15 15:00
an hour before 6pm | 2024-10-15 17:00 to 2024-10-15 18:00
45 minutes before 6 pm tomorrow | 2024-10-16 17:15 to 2024-10-16 17:16
beginning of next month | 2024-11-01 to 2024-11-11
mid november; the middle of november | 2024-11-11 to 2024-11-21
end of november | 2024-11-21 to 2024-12-01
end of the year | 2024-09-01 to 2025-01-01
18th next month; next month on the 18th; the third monday after nov 1 | 2024-11-18 to 2024-11-19
first half of next year; q1-q2 2025 | 2025-01-01 to 2025-07-01
the quarter after next | 2025-04-01 to 2025-07-01
in a year and a half | 2026-04-01 to 2026-05-01
the last decade | 2014-10-15 06:15 to 2024-10-15 06:15
a decade ago | 2014-01-01 to 2015-01-01
1999-12 | 1999-12-01 to 2000-01-01
Feb-2025 | 2025-02-01 to 2025-03-01
12/24/18 3pm; 2018-12-24 3pm | 2018-12-24 15:00 to 2018-12-24 16:00
jan 5 1999 - jan 9 1999 | 1999-01-05 to 1999-01-10
november 1 noon | 2024-11-01 12:00 to 2024-11-01 13:00
around noonish tomorrow; between noon and one tomorrow | 2024-10-16 12:00 to 2024-10-16 13:00
late afternoon on thursday | 2024-10-17 16:00 to 2024-10-17 19:00
close of business tomorrow | 2024-10-16 17:00 to 2024-10-17
end of business friday | 2024-10-18 17:00 to 2024-10-19
start of next week | 2024-10-21 to 2024-10-24
a week on tuesday; tuesday week | 2024-10-29 to 2024-10-30
the 1st thru the 5th | 2024-11-01 to 2024-11-06
from nov 1st onwards; no earlier than nov 1; not before nov 1 | 2024-11-01 to …
nov 1 at the latest | 2024-10-15 06:15 to 2024-11-02
3pm or later | 2024-10-15 15:00 to …
from 3 to 5pm on nov 1st; nov 1, 3pm-5pm | 2024-11-01 15:00 to 2024-11-01 17:00
saturday 3pm - sunday 5pm | 2024-10-19 15:00 to 2024-10-20 17:00
saturday evening to sunday morning | 2024-10-19 18:00 to 2024-10-20 12:00
friday night through sunday | 2024-10-18 18:00 to 2024-10-21
from now until friday; between now and friday | 2024-10-15 06:15 to 2024-10-19
today until midnight | 2024-10-15 to 2024-10-16
in the next hour; within the hour | 2024-10-15 06:15 to 2024-10-15 07:15
in the next 24 hours | 2024-10-15 06:15 to 2024-10-16 06:15
earlier this morning | 2024-10-15 to 2024-10-15 06:15
throughout october | 2024-10-01 to 2024-11-01
christmas week | 2024-12-23 to 2024-12-30
this season | 2024-09-01 to 2024-12-01
8 a.m. to 1 p.m.; 8h00-13h00 | 2024-10-15 08:00 to 2024-10-15 13:00
0800-1300 hours tomorrow; 8:00-1:00 tomorrow; 8-1 tomorrow; tomorrow 8a-1p | 2024-10-16 08:00 to 2024-10-16 13:00
between 11:30 and 1:30 tomorrow; 11:30-1:30 pm tomorrow | 2024-10-16 11:30 to 2024-10-16 13:30
tomorrow after 8am but before 10am; tomorrow after 8am and before 10am | 2024-10-16 08:00 to 2024-10-16 10:00
tomorrow no later than 8am | 2024-10-16 to 2024-10-16 08:00
thursday from 10 until noon; thursday 10-12; thursday oct 17 from 10-12 | 2024-10-17 10:00 to 2024-10-17 12:00
17 oct 10h-12h; 10-12 on october 17; 10am-12pm on thursday the 17th | 2024-10-17 10:00 to 2024-10-17 12:00
nov 11-12, 2024; 11 to 12 of november; monday nov 11 - tuesday nov 12 | 2024-11-11 to 2024-11-13
monday 11th to tuesday 12th; the 11th and 12th of november | 2024-11-11 to 2024-11-13
nov 28th to december 3rd, 2025 | 2025-11-28 to 2025-12-04
from 28.11.2024 to 3.12.2024; 28/11/2024-03/12/2024; 11/28/2024 to 12/03/2024 | 2024-11-28 to 2024-12-04
2024-11-28/2024-12-03; 2024-11-28..2024-12-03 | 2024-11-28 to 2024-12-04
from last week to next week | 2024-10-07 to 2024-10-28
last week and this week | 2024-10-07 to 2024-10-21
from march until now | 2024-03-01 to 2024-10-15 06:15
from monday until now | 2024-10-14 to 2024-10-15 06:15
between last friday and now | 2024-10-11 to 2024-10-15 06:15
from yesterday at 9am until now | 2024-10-14 09:00 to 2024-10-15 06:15
2023 through 2024; 2023/2024 | 2023-01-01 to 2025-01-01
spring to summer 2025 | 2025-03-01 to 2025-09-01
for 3 hours from noon | 2024-10-15 12:00 to 2024-10-15 15:00
for 2 days from tomorrow | 2024-10-16 to 2024-10-18
from 3pm to 3:45 | 2024-10-15 15:00 to 2024-10-15 15:45
from half past two to quarter past three tomorrow afternoon | 2024-10-16 14:30 to 2024-10-16 15:15
noon-2pm tomorrow | 2024-10-16 12:00 to 2024-10-16 14:00
from midnight until 6 am tomorrow | 2024-10-16 to 2024-10-16 06:00
10pm-6am | 2024-10-15 22:00 to 2024-10-16 06:00
from tomorrow 10pm to friday 6am | 2024-10-16 22:00 to 2024-10-18 06:00
tomorrow evening between 7 and 9 | 2024-10-16 19:00 to 2024-10-16 21:00
friday evening from 7 to 9; from 7 to 9 friday evening | 2024-10-18 19:00 to 2024-10-18 21:00
7-9 in the evening on friday | 2024-10-18 19:00 to 2024-10-18 21:00
the last 2 weeks of october | 2024-10-18 to 2024-11-01
first two months of 2025 | 2025-01-01 to 2025-03-01
week 46; week 46 of 2024 | 2024-11-11 to 2024-11-18
in exactly 3 weeks | 2024-11-05 to 2024-11-06
3 weeks from tuesday | 2024-11-12 to 2024-11-13
3 weeks ago tuesday | 2024-09-24 to 2024-09-25
2 hrs 30 mins ago | 2024-10-15 03:45 to 2024-10-15 03:46
1 day and 3 hours ago | 2024-10-14 03:15 to 2024-10-14 04:15
in 1 day 3 hours | 2024-10-16 09:15 to 2024-10-16 10:15
a year and 2 months ago | 2023-08-01 to 2023-09-01
5 to 10 minutes ago | 2024-10-15 06:05 to 2024-10-15 06:10
the 3 last days | 2024-10-12 06:15 to 2024-10-15 06:15
in 2 days at 3pm | 2024-10-17 15:00 to 2024-10-17 16:00
3 days ago around noon | 2024-10-12 12:00 to 2024-10-12 13:00
at 5pm two days ago | 2024-10-13 17:00 to 2024-10-13 18:00
a week from thursday at 3pm | 2024-10-24 15:00 to 2024-10-24 16:00
next tuesday at half past 3 in the afternoon | 2024-10-22 15:30 to 2024-10-22 15:31
the day before yesterday at noon | 2024-10-13 12:00 to 2024-10-13 13:00
on the first monday of november at 9am | 2024-11-04 09:00 to 2024-11-04 10:00
the morning after christmas | 2024-12-26 to 2024-12-26 12:00
the night before christmas | 2024-12-24 18:00 to 2024-12-25
christmas eve morning | 2024-12-24 to 2024-12-24 12:00
the evening before thanksgiving | 2024-11-27 18:00 to 2024-11-28
easter sunday at 10 am | 2025-04-20 10:00 to 2025-04-20 11:00
black friday at 6am | 2024-11-29 06:00 to 2024-11-29 07:00
monday of thanksgiving week | 2024-11-25 to 2024-11-26
third sunday after easter 2025 | 2025-05-11 to 2025-05-12
last year's memorial day weekend | 2023-05-27 to 2023-05-30
this past christmas | 2023-12-25 to 2023-12-26
the last 4th of july | 2024-07-04 to 2024-07-05
the next 4th of july | 2025-07-04 to 2025-07-05
closest christmas to march 2020 | 2019-12-25 to 2019-12-26
dr. martin luther king jr. day 2025 | 2025-01-20 to 2025-01-21
st. patty's day 2025 | 2025-03-17 to 2025-03-18
eve of christmas 2024 | 2024-12-24 to 2024-12-25
first friday before november 10; a week from nov 1 | 2024-11-08 to 2024-11-09
the last monday before christmas | 2024-12-23 to 2024-12-24
an hour after midnight on new year's day 2025 | 2025-01-01 01:00 to 2025-01-01 02:00
tomorrow at 17.30; tomorrow at 5:30p; 530pm tomorrow | 2024-10-16 17:30 to 2024-10-16 17:31
sunday oct 20 2024 8pm est | 2024-10-21 01:00 to 2024-10-21 02:00
8 pm (pst) tomorrow | 2024-10-17 04:00 to 2024-10-17 05:00
16:30 utc+1 tomorrow | 2024-10-16 15:30 to 2024-10-16 15:31
9am to 11am pst tomorrow | 2024-10-16 17:00 to 2024-10-16 19:00
thursday 15:00 gmt - 18:00 gmt | 2024-10-17 15:00 to 2024-10-17 18:00
8 gmt tomorrow | 2024-10-16 08:00 to 2024-10-16 09:00
since the summer | 2024-06-01 to …
until the summer | … to 2025-06-01
since the summer of 2023 | 2023-06-01 to …
winter 2023/24; winter 2023-2024 | 2023-12-01 to 2024-03-01
the late 1980s | 1987-01-01 to 1990-01-01
in the mid 2000s | 2004-01-01 to 2007-01-01
q3 '23 | 2023-07-01 to 2023-10-01
previous hour | 2024-10-15 05:15 to 2024-10-15 06:15
since winter | 2023-12-01 to …
9 til 11 tomorrow; 9am til 11am tomorrow; in between 9 and 11 tomorrow | 2024-10-16 09:00 to 2024-10-16 11:00
sometime tomorrow between 9 and 11; anytime between 9 and 11 tomorrow | 2024-10-16 09:00 to 2024-10-16 11:00
any time from 9 to 11 tomorrow | 2024-10-16 09:00 to 2024-10-16 11:00
9:30 'til 11 tomorrow | 2024-10-16 09:30 to 2024-10-16 11:00
monday til friday; monday 'til friday; from monday for 5 days; for five days from monday | 2024-10-21 to 2024-10-26
til friday; upto friday | … to 2024-10-19
thursday from 9am to 11am (gmt) | 2024-10-17 09:00 to 2024-10-17 11:00
8th nov - 12th nov; 8 nov - 12 nov 2024; november 8th-12th; november 8 - 12; nov 8 to nov 12 | 2024-11-08 to 2024-11-13
8-12 nov; 8.-12. november; 8th to the 12th of november; 8th through 12th of november | 2024-11-08 to 2024-11-13
from nov 8 through the 12th; from nov 8th to the 12th; nov 8th until the 12th; nov 8 thru 12 | 2024-11-08 to 2024-11-13
nov 8 til 12; the 8th of november to the 12th of november; the 8th of nov through to the 12th | 2024-11-08 to 2024-11-13
between 8 and 12 november; from the 8th to 12th november 2024 | 2024-11-08 to 2024-11-13
november 8 2024 to november 12 2024; 8 november 2024 - 12 november 2024 | 2024-11-08 to 2024-11-13
fri nov 8 to tue nov 12; 2024-11-08 to 2024-11-12 | 2024-11-08 to 2024-11-13
nov 8, 9am - nov 12, 5pm; nov 8 at 9am to nov 12 at 5pm; nov 8 9:00 to nov 12 17:00 | 2024-11-08 09:00 to 2024-11-12 17:00
9-10; 9:00 - 10; 9 am - 10 | 2024-10-15 09:00 to 2024-10-15 10:00
1 to 3 pm; 1-3; 1pm-3pm; 13-15h; 13h-15h; 13:00 to 15:00; 1300 to 1500 hours | 2024-10-15 13:00 to 2024-10-15 15:00
from 1p to 3p | 2024-10-15 13:00 to 2024-10-15 15:00
12:30-1:15 | 2024-10-15 12:30 to 2024-10-15 13:15
11-2; 11 to 2pm; from 11 to 2 in the afternoon | 2024-10-15 11:00 to 2024-10-15 14:00
8 until 10 tonight; from 8 until 10pm tonight; tonight from 8 til 10; tonight 8-10 | 2024-10-15 20:00 to 2024-10-15 22:00
tonight between 8 and 10 | 2024-10-15 20:00 to 2024-10-15 22:00
this evening from 6:30 to 8 | 2024-10-15 18:30 to 2024-10-15 20:00
this afternoon between 2 and 4 | 2024-10-15 14:00 to 2024-10-15 16:00
tomorrow afternoon 2-4; tomorrow 2-4 pm | 2024-10-16 14:00 to 2024-10-16 16:00
last night between 9 and 11; last night from 9 to 11pm | 2024-10-14 21:00 to 2024-10-14 23:00
yesterday evening 6 to 8 | 2024-10-14 18:00 to 2024-10-14 20:00
2 hours starting at 3pm tomorrow; starting at 3pm tomorrow for 2 hours | 2024-10-16 15:00 to 2024-10-16 17:00
2 hours from 3pm tomorrow | 2024-10-16 17:00 to 2024-10-16 18:00
for one month starting nov 1; a month starting nov 1; for the whole month of november | 2024-11-01 to 2024-12-01
for next month | 2024-11-01 to 2024-12-01
the remainder of this year | 2024-10-15 06:15 to 2025-01-01
for this week | 2024-10-14 to 2024-10-21
"""
HOLIDAYS = """
christmas day 2023; christmas 3 years ago; three years ago at christmas | 2023-12-25
xmas 2022 | 2022-12-25
xmas eve 2022 | 2022-12-24
christmas of 2021; 2021 christmas | 2021-12-25
christmas last year; last year's christmas | 2025-12-25
next year's easter | 2027-03-28
christmas in two years | 2028-12-25
last new year's eve | 2025-12-31
new years eve 2024 | 2024-12-31
new year's day 2025; new years 2025 | 2025-01-01
valentine's day last year | 2025-02-14
valentines day 2024; st valentine's day 2024 | 2024-02-14
st. patrick's day 2024 | 2024-03-17
saint patricks day 2023 | 2023-03-17
april fools day 2024; april fool's 2024 | 2024-04-01
juneteenth 2024 | 2024-06-19
the fourth of july 2023; us independence day 2023 | 2023-07-04
4th of july last year | 2025-07-04
labor day 2024 | 2024-09-02
labour day 2023 | 2023-09-04
memorial day 2025 | 2025-05-26
thanksgiving 2022; turkey day 2022 | 2022-11-24
thanksgiving two years ago | 2024-11-28
canadian thanksgiving 2024; columbus day 2024; indigenous people's day 2024 | 2024-10-14
black friday 2025 | 2025-11-28
cyber monday 2025 | 2025-12-01
mother's day 2024 | 2024-05-12
mothers day last year | 2025-05-11
father's day 2024 | 2024-06-16
martin luther king day 2024 | 2024-01-15
martin luther king jr. day 2025 | 2025-01-20
mlk day 2023 | 2023-01-16
presidents' day 2024 | 2024-02-19
president's day 2025 | 2025-02-17
veterans day 2023 | 2023-11-11
halloween last year | 2025-10-31
all hallows' eve 2024 | 2024-10-31
boxing day 2023 | 2023-12-26
mothering sunday 2024 | 2024-03-10
spring bank holiday 2024 | 2024-05-27
bastille day 2024 | 2024-07-14
mardi gras 2024 | 2024-02-13
shrove tuesday 2025 | 2025-03-04
ash wednesday 2025 | 2025-03-05
palm sunday 2023 | 2023-04-02
maundy thursday 2025 | 2025-04-17
good friday 2025 | 2025-04-18
easter sunday 2025; easter of 2025 | 2025-04-20
easter monday 2023 | 2023-04-10
ascension day 2025; feast of the ascension 2025 | 2025-05-29
pentecost 2025 | 2025-06-08
whit monday 2025 | 2025-06-09
trinity sunday 2025 | 2025-06-15
corpus christi 2025 | 2025-06-19
epiphany 2024 | 2024-01-06
all saints day 2024 | 2024-11-01
all souls day 2024 | 2024-11-02
feast of the assumption 2024 | 2024-08-15
st nicholas day 2024 | 2024-12-06
international women's day 2024 | 2024-03-08
international workers' day 2024 | 2024-05-01
leap day 2024 | 2024-02-29
"""
HOLIDAYS_AND_MORE = """
lent 2024 | 2024-02-14 to 2024-03-31
holy week 2024 | 2024-03-24 to 2024-03-31
memorial day weekend 2025 | 2025-05-24 to 2025-05-27
labor day weekend last year | 2025-08-30 to 2025-09-02
easter weekend 2025 | 2025-04-19 to 2025-04-21
9am on christmas 2024 | 2024-12-25 09:00 to 2024-12-25 10:00
christmas 2024 at noon | 2024-12-25 12:00 to 2024-12-25 13:00
christmas eve 2024 at 6pm | 2024-12-24 18:00 to 2024-12-24 19:00
new year's eve 2024 at 11:59pm | 2024-12-31 23:59 to 2025-01-01
thanksgiving evening 2024 | 2024-11-28 18:00 to 2024-11-29
on the night of halloween 2024; halloween night 2024 | 2024-10-31 18:00 to 2024-11-01
between christmas and new year's eve 2024 | 2024-12-25 to 2025-01-01
from christmas to new year's day 2025 | 2024-12-25 to 2025-01-02
between thanksgiving and christmas 2024 | 2024-11-28 to 2024-12-26
since last thanksgiving | 2025-11-27 to …
before mother's day 2024 | … to 2024-05-12
the week of thanksgiving 2024 | 2024-11-25 to 2024-12-02
the monday after easter 2025 | 2025-04-21 to 2025-04-22
the second monday after easter 2025 | 2025-04-28 to 2025-04-29
two sundays before christmas 2024 | 2024-12-15 to 2024-12-16
the saturday before mother's day 2024 | 2024-05-11 to 2024-05-12
a week before valentine's day 2024 | 2024-02-07 to 2024-02-08
the month before christmas 2024 | 2024-11-25 to 2024-12-25
the day after black friday 2024 | 2024-11-30 to 2024-12-01
"""


def rows(table: str) -> list[tuple[str, str]]:
    lines = (line.split(" | ") for line in table.strip().splitlines())
    return [(phrase, ends) for phrases, ends in lines for phrase in phrases.split("; ")]


def instant(words: str) -> datetime | None:
    return None if words == "…" else datetime.fromisoformat(words).replace(tzinfo=UTC)


def check(phrase: str, wanted: str, now: datetime, bias: Bias) -> None:
    for text in (phrase, phrase.upper(), f"{phrase}?"):
        got = read_time_range(text, now, "UTC", week_start="monday", bias=bias)
        assert got is not None, f"no time in {text!r}"
        first, last = wanted.split(" to ")
        assert (got.start, got.end) == (instant(first), instant(last)), got.explanation


@pytest.mark.parametrize(("phrase", "wanted"), rows(ASKED_ON_WEDNESDAY) + rows(HOLIDAYS_AND_MORE))
def test_what_somebody_asks_is_read_as_the_past(phrase: str, wanted: str) -> None:
    check(phrase, wanted, WEDNESDAY, "past")


@pytest.mark.parametrize(("phrase", "wanted"), rows(SCHEDULED_ON_WEDNESDAY))
def test_what_somebody_schedules_is_read_as_the_future(phrase: str, wanted: str) -> None:
    check(phrase, wanted, WEDNESDAY, "future")


@pytest.mark.parametrize(("phrase", "wanted"), rows(SCHEDULED_ON_TUESDAY))
def test_what_is_scheduled_early_in_the_day(phrase: str, wanted: str) -> None:
    check(phrase, wanted, TUESDAY, "future")


@pytest.mark.parametrize(("phrase", "day"), rows(HOLIDAYS))
def test_a_holiday_of_one_day(phrase: str, day: str) -> None:
    check(phrase, f"{day} to {date.fromisoformat(day) + timedelta(days=1)}", WEDNESDAY, "past")


@pytest.mark.parametrize(
    "phrase",
    [
        "Brazilian independence day 2024",  # a holiday of another land
        "Foo Sunday 2024",  # the name of a holiday that no table has
        "Foo festival 2024",
        "International Foo Day 2024",
        "on 05/06/2026",
        "until further notice",
    ],
)
def test_what_is_not_certain_gives_nothing(phrase: str) -> None:
    assert read_time_range(phrase, WEDNESDAY, "UTC", week_start="monday", bias="past") is None


@pytest.mark.parametrize(
    "phrase", ["What did we do on holiday in 2019?", "my birthday in 2019", "What happened on a Monday in 2019?"]
)
def test_a_year_beside_a_common_word_is_that_year(phrase: str) -> None:
    got = read_time_range(phrase, WEDNESDAY, "UTC", week_start="monday", bias="past")
    assert got is not None
    assert (got.start, got.end) == (datetime(2019, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize(
    "text", ["Who was Martin Luther King?", "a talk by Bill Nye", "he lent me money", "I bought it at 4.50", "I want it now"]
)
def test_names_and_words_of_holidays_and_times_are_not_always_those(text: str) -> None:
    assert read_time_range(text, WEDNESDAY, "UTC", week_start="monday", bias="past") is None


def test_a_date_close_by_tells_which_number_is_the_month() -> None:
    check("from 28/11/2024 to 03/12/2024", "2024-11-28 to 2024-12-04", WEDNESDAY, "past")
    check("from 11/28/2024 to 12/03/2024", "2024-11-28 to 2024-12-04", WEDNESDAY, "past")
