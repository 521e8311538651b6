"""How well the time that a question names is read: a public corpus of phrases, and sentences that name no time.

    PERDURE_BENCH_DATA=DIR python bench/times.py [--misses] [--alarms] [--json]

`DIR/timex/duckling_en_time.json` holds English phrases with the value that Duckling's authors expect at one moment. It is
written for assistants that schedule, so it is read with `bias="future"`; everything else is as in `extract_time_range`. A
phrase belongs to the part `tune` or `report` by its hash; cases at the top of the file, which were seen while its format was
looked at, are all `tune`. Phrases of `report` are never printed. Phrases of one case can fall into both parts, so that
`report` says how far the rules carry within this corpus, not beyond it.

*Found*: any range was given. *Right*, of those found: it begins and ends as expected, or differs only as the documented
readings of `perdure.engine.times.question` differ from the corpus's:

- counted (`7 days ago`): the corpus names the moment to a finer unit, perdure the whole minute, hour, day, week, month or
  year, which must hold it;
- window (`last 2 days`, `next 3 weeks`): the corpus counts whole units beside the current one, perdure real time from now;
  both ends rounded to the unit of the corpus, both down or both to the next, must be its ends;
- end (`9:30 to 11:00`, `for 10 days from Dec 18`): the corpus counts the minute, hour or day in which it ends, perdure ends
  where that begins;
- hour (`4pm CET`): where both begin alike, the whole hour and its first minute are the same answer;
- weekend: the corpus begins on Friday at 18:00, perdure on Saturday;
- season: the corpus goes by the sun, perdure by whole months, which begin and end up to 24 days earlier.

Of the holidays of the corpus, about half follow the moon; perdure does not read those.

*Same* counts only those that begin and end exactly as expected. The counts of each reading are printed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import os
import platform
import sys
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

from perdure.engine.times.question import TimeRange, read_time_range

sys.path.insert(0, str(Path(__file__).resolve().parent))
import machine
from times_sentences import sentences

FILE = Path("timex") / "duckling_en_time.json"
SEEN_CASES = 12
FOUND_AIM, RIGHT_AIM, ALARM_AIM = 0.85, 0.95, 0.01
SEASON_SHIFT = timedelta(days=24)
Z = 1.959964
PARTS = ("tune", "report")
CLOCK = ("Second", "Minute", "Hour")
FIXED = {"Second": 1, "Minute": 60, "Hour": 3_600, "Day": 86_400, "Week": 604_800}
COARSER = {"Second": "Minute", "Minute": "Hour", "Hour": "Day", "Day": "Month", "Month": "Year"}
"""The longest unit that is counted by a moment of that grain: weeks and months are counted by days."""


class Case(NamedTuple):
    """A phrase and what is expected of it, on the clock of the corpus."""

    phrase: str
    group: str
    part: str
    grain: str
    start: datetime | None
    end: datetime | None


class Verdict(NamedTuple):
    """`same`, the name of a reading that accounts for the difference, `wrong` or `missed`."""

    case: Case
    how: str
    got: TimeRange | None


# The corpus.


def part_of(phrase: str) -> str:
    return PARTS[hashlib.sha256(phrase.encode()).digest()[0] % 2]


def floor(moment: datetime, grain: str) -> datetime:
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    match grain:
        case "Second" | "Minute" | "Hour":
            return day + (moment - day) // timedelta(seconds=FIXED[grain]) * timedelta(seconds=FIXED[grain])
        case "Week":
            return day - timedelta(days=day.weekday())
        case "Month":
            return day.replace(day=1)
        case "Quarter":
            return day.replace(day=1, month=(day.month - 1) // 3 * 3 + 1)
        case "Year":
            return day.replace(day=1, month=1)
    return day


def following(moment: datetime, grain: str) -> datetime:
    if grain in FIXED:
        return moment + timedelta(seconds=FIXED[grain])
    months = moment.year * 12 + moment.month - 1 + {"Month": 1, "Quarter": 3, "Year": 12}[grain]
    return moment.replace(year=months // 12, month=months % 12 + 1)


def next_(moment: datetime, grain: str) -> datetime:
    return following(floor(moment, grain), grain)


def cases(path: Path) -> tuple[datetime, list[Case]]:
    corpus = json.loads(path.read_text(encoding="utf-8"))
    found = []
    for number, case in enumerate(corpus["cases"]):
        times = [datetime.fromisoformat(moment) for moment in case["times"]]
        grain = case["grain"]
        if case["open"]:
            ends = (times[0], None) if case["open"] == "After" else (None, times[0])
        elif len(times) == 2:
            ends = (times[0], times[1])
        else:
            # Holidays that begin a year are given with the grain of a year; they are days.
            grain = "Day" if grain == "Year" and floor(times[0], "Year") != times[0] else grain
            ends = (times[0], following(times[0], grain))
        group = "holiday" if case["holiday"] else "open" if case["open"] else "interval" if len(times) == 2 else "point"
        for phrase in case["phrases"]:
            part = "tune" if number < SEEN_CASES else part_of(phrase)
            found.append(Case(phrase, group, part, grain, *ends))
    return datetime.fromisoformat(corpus["reference"]), found


# Judging.


def judged(case: Case, now: datetime) -> Verdict:
    got = read_time_range(case.phrase, now, now.tzinfo or UTC, week_start="monday", bias="future")
    if got is None:
        return Verdict(case, "missed", None)
    start, end = (one and one.astimezone(now.tzinfo).replace(tzinfo=None) for one in (got.start, got.end))
    return Verdict(case, difference(case, start, end, got.explanation), got)


def difference(case: Case, start: datetime | None, end: datetime | None, explanation: str) -> str:
    if (start, end) == (case.start, case.end):
        return "same"
    if not (start and end and case.start and case.end):
        return "wrong"
    for reading, holds in READINGS.items():
        if holds(case, (start, end), (case.start, case.end), explanation):
            return reading
    return "wrong"


Ends = tuple[datetime, datetime]


def counted(case: Case, got: Ends, wanted: Ends, explanation: str) -> bool:
    if "counted" not in explanation or case.group == "interval" or case.grain not in COARSER:
        return False
    return got[0] <= wanted[0] < got[1] <= following(got[0], COARSER[case.grain])


def window(case: Case, got: Ends, wanted: Ends, explanation: str) -> bool:
    both = (tuple(rounded(end, case.grain) for end in got) for rounded in (floor, next_))
    return "window" in explanation and wanted in both


def last_included(case: Case, got: Ends, wanted: Ends, explanation: str) -> bool:
    if case.group != "interval" or case.grain not in (FIXED if "that long" in explanation else CLOCK):
        return False
    return got == (wanted[0], wanted[1] - timedelta(seconds=FIXED[case.grain]))


def hour(case: Case, got: Ends, wanted: Ends, _: str) -> bool:
    if case.group == "interval" or case.grain not in CLOCK or got[0] != wanted[0]:
        return False
    return got[1] - got[0] in (timedelta(minutes=1), timedelta(hours=1))


def weekend(_: Case, got: Ends, wanted: Ends, explanation: str) -> bool:
    return "Saturday and Sunday" in explanation and (got[0] - timedelta(hours=6), got[1]) == wanted


def season(_: Case, got: Ends, wanted: Ends, explanation: str) -> bool:
    late = [theirs - ours for ours, theirs in zip(got, wanted, strict=True)]
    return "three whole months" in explanation and all(timedelta() <= one <= SEASON_SHIFT for one in late)


READINGS: dict[str, Callable[[Case, Ends, Ends, str], bool]] = {
    "counted": counted,
    "window": window,
    "end": last_included,
    "hour": hour,
    "weekend": weekend,
    "season": season,
}


# Figures.


class Share(NamedTuple):
    """Some of all, with Wilson's interval."""

    part: int
    whole: int

    def row(self) -> dict[str, float | int]:
        low, high = wilson(self.part, self.whole)
        return {
            "value": self.part / self.whole if self.whole else 0.0,
            "low": low,
            "high": high,
            "count": self.part,
            "of": self.whole,
        }


def wilson(part: int, whole: int) -> tuple[float, float]:
    """Where a share lies with 95 % confidence, given one sample."""
    if not whole:
        return 0.0, 1.0
    share, slack = part / whole, Z * Z / whole
    middle = share + slack / 2
    spread = Z * math.sqrt(share * (1 - share) / whole + slack / (4 * whole))
    return max(0.0, (middle - spread) / (1 + slack)), min(1.0, (middle + spread) / (1 + slack))


def shares(verdicts: Iterable[Verdict]) -> dict[str, Any]:
    rows = list(verdicts)
    found = [row for row in rows if row.how != "missed"]
    right = [row for row in found if row.how != "wrong"]
    return {
        "found": Share(len(found), len(rows)).row(),
        "right": Share(len(right), len(found)).row(),
        "same": Share(sum(row.how == "same" for row in found), len(found)).row(),
        "readings": {how: sum(row.how == how for row in found) for how in READINGS},
    }


def figures(verdicts: list[Verdict]) -> dict[str, Any]:
    groups = sorted({verdict.case.group for verdict in verdicts})
    by_group = {group: shares(verdict for verdict in verdicts if verdict.case.group == group) for group in groups}
    return {"all": shares(verdicts), **by_group}


def alarms(now: datetime) -> dict[str, list[tuple[str, str]]]:
    """Sentences without a time in which one was found, by part, each with the words that were taken for it."""
    found: dict[str, list[tuple[str, str]]] = {part: [] for part in PARTS}
    for sentence in sentences():
        got = read_time_range(sentence, now, "UTC", week_start="monday", bias="past")
        if got:
            found[part_of(sentence)].append((sentence, got.words))
    return found


def speed(phrases: list[str], now: datetime) -> float:
    """Microseconds per phrase, patterns compiled."""
    started = time.perf_counter()
    for phrase in phrases:
        read_time_range(phrase, now, UTC, week_start="monday", bias="past")
    return (time.perf_counter() - started) / len(phrases) * 1e6


def show(name: str, row: dict[str, Any], aim: float | None, *, at_most: bool = False) -> None:
    good = "" if aim is None else "met" if (row["value"] <= aim if at_most else row["value"] >= aim) else "MISSED"
    wanted = "" if aim is None else f"aim {'≤' if at_most else '≥'} {aim:.0%}"
    spread = f"{row['low']:.1%} to {row['high']:.1%}"
    print(f"  {name:28}{row['value']:7.1%}   {spread:18}{row['count']:5} of {row['of']:4}   {wanted:10} {good}".rstrip())


def show_part(part: str, rows: dict[str, Any]) -> None:
    print(f"\n{part}" + ("" if part == "tune" else " (phrases never printed)"))
    for group, row in rows.items():
        whole = group == "all"
        show(f"{group}: found", row["found"], FOUND_AIM if whole else None)
        show(f"{group}: right of found", row["right"], RIGHT_AIM if whole else None)
        show(f"{group}: same ends", row["same"], None)
        if whole:
            print("  right by a reading: " + ", ".join(f"{name} {count}" for name, count in row["readings"].items()))


def main() -> None:
    parser = argparse.ArgumentParser(description="Time words: how many phrases are read, how many rightly, and false alarms.")
    parser.add_argument("--data", type=Path, default=os.environ.get("PERDURE_BENCH_DATA"), help="directory that holds `timex/`")
    parser.add_argument("--misses", action="store_true", help="list what was missed or wrong in the part `tune`")
    parser.add_argument("--alarms", action="store_true", help="list false alarms in the part `tune`")
    parser.add_argument("--json", action="store_true", help="print one JSON object and nothing else")
    options = parser.parse_args()
    if not options.data:
        raise SystemExit("set PERDURE_BENCH_DATA to the folder that holds `timex/`")
    now, found = cases(Path(options.data) / FILE)
    verdicts = [judged(case, now) for case in found]
    by_part = {part: [verdict for verdict in verdicts if verdict.case.part == part] for part in PARTS}
    wrongly, every = alarms(now), sentences()
    counts = {part: sum(part_of(sentence) == part for sentence in every) for part in PARTS}
    report: dict[str, Any] = {
        "facts": {
            "perdure": version("perdure"),
            "python": platform.python_version(),
            "machine": f"{machine.cpu_model()}, {os.cpu_count()} cores, {platform.platform()}",
            "data": f"{FILE.name}: {len(found)} phrases at {now.isoformat()}; {len(every)} sentences without a time",
            "seed": "none: nothing is drawn",
            "speed": f"{speed([case.phrase for case in found], now):.0f} µs a phrase, {speed(every, now):.0f} µs a sentence",
        },
        **{part: figures(by_part[part]) for part in PARTS},
        "false alarms": {part: Share(len(wrongly[part]), counts[part]).row() for part in PARTS},
    }
    if options.json:
        print(json.dumps(report, indent=2, ensure_ascii=False))
        return
    for name, value in report["facts"].items():
        print(f"{name}: {value}")
    for part in PARTS:
        show_part(part, report[part])
    print("\nfalse alarms")
    for part in PARTS:
        show(part, report["false alarms"][part], ALARM_AIM, at_most=True)
    if options.misses:
        list_misses(by_part["tune"], now)
    if options.alarms:
        for sentence, words in wrongly["tune"]:
            print(f"{words!r:30} {sentence}")


def list_misses(verdicts: list[Verdict], now: datetime) -> None:
    def local(one: datetime | None) -> str:
        return one.astimezone(now.tzinfo).strftime("%y-%m-%d %H:%M") if one else "open"

    for verdict in verdicts:
        if verdict.how in ("missed", "wrong"):
            case, got = verdict.case, verdict.got
            expected = " / ".join("open" if one is None else one.strftime("%y-%m-%d %H:%M") for one in (case.start, case.end))
            given = f"{local(got.start)} / {local(got.end)} `{got.words}`" if got else ""
            print(f"{verdict.how:7} {case.group:9}{case.phrase:42} {expected}  {given}")


if __name__ == "__main__":
    main()
