"""Planted ids, rules, questions and decisions after compaction, as an agent on a store would see them, and by `expand`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

import pytest

import perdure
from perdure.testing import PROBES, Probe, StoppedClock, run_probes

Compact = Callable[[perdure.Memory], object]


def folded_for_a_request(ana: perdure.Memory) -> None:
    ana.conversation.fold()


def bounded(ana: perdure.Memory) -> None:
    ana.conversation.compact(force=True)


@pytest.mark.parametrize("compact", [folded_for_a_request, bounded])
def test_what_was_planted_is_seen_and_all_of_it_can_be_reached(compact: Compact) -> None:
    """At least 95 % of identifiers and constraints verbatim in what the agent would see, 100 % by `expand`."""
    unreachable: list[str] = []

    def seen(probe: Probe) -> str:
        with perdure.open("memory:", clock=StoppedClock(_last(probe))) as engine:
            ana = engine.memory("ana")
            ana.append_many(probe.messages)
            compact(ana)
            context = ana.context()
            [fold] = ana.conversation.digests("fold")
            told = "\n".join(message.content for message in ana.conversation.expand(fold, whole=True))
            whole = told + "\n".join(message.content for message in context.messages)
            unreachable.extend(plant.text for plant in probe.plants if plant.text not in whole)
            assert len(context.messages) < len(probe.messages)
            return context.text

    report = run_probes(seen)
    assert unreachable == []
    assert report.share("identifier", "constraint") >= 0.95, str(report)


@pytest.mark.slow
def test_what_was_planted_survives_fold_after_fold() -> None:
    """Each fold continues the one before: pinned lines are carried on. Where one would not shorten, it is not made yet."""
    folds: list[int] = []

    def seen(probe: Probe) -> str:
        with perdure.open("memory:", clock=StoppedClock(_last(probe))) as engine:
            ana = engine.memory("ana")
            for start in range(0, len(probe.messages), 12):
                ana.append_many(probe.messages[start : start + 12])
                ana.conversation.fold()
            folds.append(len(ana.conversation.digests("fold")))
            return ana.context().text

    report = run_probes(seen)
    assert sum(folds) >= 2 * len(folds)
    assert report.share("identifier", "constraint") >= 0.95, str(report)


def _last(probe: Probe) -> datetime:
    times = [message.at for message in probe.messages if message.at is not None]
    return max(times) if times else datetime.fromisoformat("2026-01-05T10:00:00+00:00")


def test_there_are_probes() -> None:
    assert len(PROBES) >= 24
