"""Lines of the recall benchmark: calls that are timed, on the clock and on the processor, in rounds shared with others."""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import machine
from machine import Interval


@dataclass
class Line:
    """One thing measured: what is done, by whom, with which size, at most how often per round."""

    task: str
    who: str
    size: int
    call: Callable[[Any], Any]
    most: int = 1_000_000
    before: Callable[[], object] | None = None
    """Called before each call, and not timed."""
    samples: list[machine.Sample] = field(default_factory=list)
    cpu_s: list[list[float]] = field(default_factory=list)
    """What this process took of a processor for each call: on a busy machine, less than the call lasted."""

    def run(self, items: Sequence[Any]) -> None:
        gc.collect()
        calls_s, cpu_s = [], []
        for item in items[: self.most]:
            if self.before is not None:
                self.before()
            cpu, started = time.process_time(), time.perf_counter()
            self.call(item)
            calls_s.append(time.perf_counter() - started)
            cpu_s.append(time.process_time() - cpu)
        self.samples.append(machine.Sample(sum(calls_s), calls_s))
        self.cpu_s.append(cpu_s)

    def calls_s(self, rounds: Iterable[int]) -> list[float]:
        return [call_s for number in rounds for call_s in self.samples[number].calls_s]

    def ms(self, share: float, rounds: Iterable[int]) -> float:
        return machine.percentile(self.calls_s(rounds), share) * 1e3

    def within_ms(self, share: float) -> Interval:
        """How long the fastest `share` of the calls took at most."""
        return machine.resampled(lambda rounds: self.ms(share, rounds), len(self.samples))

    def cpu_ms(self) -> Interval:
        """The median of what a call took of a processor."""
        return machine.resampled(self._cpu_ms, len(self.samples))

    def cpu_over(self, other: Line) -> Interval:
        return machine.resampled(lambda rounds: self._cpu_ms(rounds) / other._cpu_ms(rounds), len(self.samples))

    def _cpu_ms(self, rounds: Iterable[int]) -> float:
        return machine.percentile([one for number in rounds for one in self.cpu_s[number]], 0.5) * 1e3

    def over(self, other: Line) -> Interval:
        """How many times the other's median this one's is, in the same rounds."""
        return machine.resampled(lambda rounds: self.ms(0.5, rounds) / other.ms(0.5, rounds), len(self.samples))

    def per_s(self) -> Interval:
        return machine.resampled(self._rate, len(self.samples))

    def rate_over(self, other: Line) -> Interval:
        return machine.resampled(lambda rounds: self._rate(rounds) / other._rate(rounds), len(self.samples))

    def _rate(self, rounds: Sequence[int]) -> float:
        calls_s = self.calls_s(rounds)
        return self.size * len(calls_s) / sum(calls_s)

    def row(self) -> dict[str, Any]:
        whole = range(len(self.samples))
        told = {"task": self.task, "size": self.size, "who": self.who, "calls": len(self.calls_s(whole))}
        cpu_ms = self.cpu_ms().value if self.cpu_s else None
        middle = asdict(self.within_ms(0.5))
        return told | {"p50_ms": middle, "p95_ms": self.ms(0.95, whole), "p50_cpu_ms": cpu_ms}


def in_rounds(lines: Sequence[Line], items: Sequence[Sequence[Any]]) -> None:
    """All lines get the items of each round, in an order that changes; the first round only warms up."""
    gc.collect()
    # What the peers' packages leave in memory would make everybody's garbage collections slower.
    gc.freeze()
    for number, part in enumerate(items):
        for line in random.Random(number).sample(lines, len(lines)):
            line.run(part)
    for line in lines:
        del line.samples[0], line.cpu_s[0]


def show_times(rows: Sequence[dict[str, Any]], tasks: Sequence[str]) -> None:
    """Print how long everything took, by task and size."""
    print(f"\n{'':18}{'size':>9}  {'':20}{'calls':>6}{'p50 ms':>10}   {'95 % interval':22}{'p95 ms':>10}{'CPU p50':>10}")
    for row in sorted(rows, key=lambda row: (tasks.index(row["task"]), row["size"])):
        middle, cpu = row["p50_ms"], "" if row["p50_cpu_ms"] is None else f"{row['p50_cpu_ms']:,.2f}"
        spread = f"{middle['low']:,.2f} to {middle['high']:,.2f}"
        what = f"{row['task']:18}{row['size']:9,}  {row['who']:20}{row['calls']:6}"
        print(f"{what}{middle['value']:10,.2f}   {spread:22}{row['p95_ms']:10,.2f}{cpu:>10}")
