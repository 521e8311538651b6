"""What is left of planted ids, rules, questions and decisions after a compaction without a model."""

from __future__ import annotations

import pytest

from perdure.domain.conversation.digests import SummaryRequest
from perdure.engine.summary.extractive import ExtractiveSummariser
from perdure.engine.summary.pins import carried, fit_pins
from perdure.engine.text.sentences import count_words
from perdure.engine.text.tokens import estimate_tokens
from perdure.testing import PROBES, REPORT, TUNE, Plant, Probe, ProbeReport, run_probes, score_probe

OFFLINE = ExtractiveSummariser()
WORDS, TOKENS = 300, 1_000


def compacted(probe: Probe, *, window: int | None = None, words: int = WORDS, tokens: int = TOKENS) -> str:
    """What the agent would see: the pinned lines, then the summary. With a window, piece by piece."""
    messages = probe.stored()
    text, pinned = "", tuple[str, ...]()
    size = window or len(messages)
    for start in range(0, len(messages), size):
        piece = messages[start : start + size]
        text = OFFLINE.summarise(SummaryRequest("fold", text, piece, 4_000, words)).text
        pinned = fit_pins(carried(pinned, piece), tokens, estimate_tokens)
    assert count_words(text) <= words
    assert estimate_tokens("\n".join(pinned)) <= tokens
    return "\n".join([*pinned, text])


def test_the_probes_are_as_many_and_as_rich_as_promised() -> None:
    assert len(PROBES) >= 24
    assert len(TUNE) == len(REPORT) == len(PROBES) // 2
    assert len({probe.language for probe in PROBES} - {"en"}) >= 3
    assert sum(any(message.tool_calls for message in probe.messages) for probe in PROBES) >= 6
    for probe in PROBES:
        assert 15 <= len(probe.messages) <= 60
        assert len(probe.plants) >= 8
        assert {plant.kind for plant in probe.plants} == {"identifier", "constraint", "question", "decision"}
        assert min(plant.index for plant in probe.plants) < len(probe.messages) / 3
        assert max(plant.index for plant in probe.plants) > len(probe.messages) * 2 / 3
        for plant in probe.plants:
            assert plant.text in probe.messages[plant.index].content
        called = {call.id for message in probe.messages for call in message.tool_calls}
        assert {message.tool_call_id for message in probe.messages if message.role == "tool"} <= called


@pytest.mark.parametrize("half", [TUNE, REPORT], ids=["tune", "report"])
def test_of_ids_and_rules_nineteen_in_twenty_are_seen_word_for_word(half: tuple[Probe, ...]) -> None:
    report = run_probes(compacted, half)
    assert report.share("identifier", "constraint") >= 0.95, str(report)
    assert report.share("question", "decision") >= 0.85, str(report)


def test_they_survive_a_compaction_in_pieces() -> None:
    report = run_probes(lambda probe: compacted(probe, window=20), REPORT)
    assert report.share("identifier", "constraint") >= 0.95, str(report)


def test_half_the_budget_keeps_nine_in_ten() -> None:
    report = run_probes(lambda probe: compacted(probe, words=150, tokens=500), REPORT)
    assert report.share("identifier", "constraint") >= 0.90, str(report)


def test_everything_is_found_in_the_log_and_nothing_in_silence() -> None:
    assert run_probes(lambda probe: "\n".join(message.content for message in probe.messages)).share() == 1
    assert run_probes(lambda _: "").share() == 0
    assert ProbeReport(()).share() == 1


def test_a_score_names_what_is_missing() -> None:
    plants = [Plant("identifier", "OPS-1", 0), Plant("constraint", "never on  Fridays", 1), Plant("question", "who pays?", 2)]
    score = score_probe("x OPS-1 y\nnever\non Fridays, Who pays?", plants, name="n")
    assert [plant.text for plant in score.missing] == ["who pays?"]
    told = str(ProbeReport((score,)))
    assert "n: question: who pays?" in told
    assert "identifier     1 of    1   100.0%" in told
