"""The judge of a fuzz: what hangs is told by the processor time it takes, however slow or fast the clock runs beside it."""

from __future__ import annotations

import multiprocessing
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))
from proof import fuzzing  # noqa: E402
from proof.harness import Round  # noqa: E402
from proof.promises import p09_any_input as any_input  # noqa: E402


def _computes_for_ever() -> None:
    while True:
        pass


def _waits(seconds: float | None = None) -> None:
    threading.Event().wait(seconds)


def _judged(tmp_path: Path, attempt: Callable[[], None]) -> tuple[str, list[str]]:
    trial = Round("P9", 5, "quick", tmp_path)
    with fuzzing.watchdog():
        fate = fuzzing.judged(trial, fuzzing.Tally(), "a call", attempt, told=lambda: "nothing")
    return fate, [one.kind for one in trial.wrongs]


def test_a_call_that_computes_for_ever_hangs(tmp_path, monkeypatch):
    monkeypatch.setattr(fuzzing, "CALL_S", 0.1)
    assert _judged(tmp_path, _computes_for_ever) == ("wrong", ["hangs"])


def test_a_call_that_waits_for_the_machine_does_not_hang(tmp_path, monkeypatch):
    monkeypatch.setattr(fuzzing, "CALL_S", 0.1)
    assert _judged(tmp_path, lambda: _waits(0.3)) == ("answered", [])


@pytest.mark.parametrize(
    ("work", "bounds", "said"),
    [
        (_computes_for_ever, {"CASE_S": 0.1}, "s of processor time"),
        (_waits, {"STILL_S": 0.1}, "stood still"),
    ],
    ids=["computes", "waits"],
)
def test_a_case_that_never_tells_anything_is_told_by_whoever_waits(monkeypatch, work, bounds, said):
    for name, value in {**bounds, "POLL_S": 0.05}.items():
        monkeypatch.setattr(any_input, name, value)
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=work)
    process.start()
    try:
        assert said in any_input._hangs(here, process)
    finally:
        process.kill()
        process.join()
        here.close()
        there.close()
