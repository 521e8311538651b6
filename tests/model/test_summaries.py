"""Folds and digests by a real model: whatever it writes, nothing is lost, and ids stay as they were said."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

import perdure
from perdure.ports.models import ChatModel
from tests.model.contracts import check_digests, check_log, check_memories, check_usage, digests

pytestmark = pytest.mark.model

SAID = [
    ("user", "Book the river route for Saturday, ticket RX-4471, please."),
    ("assistant", "Booked RX-4471 for Saturday 9:00 at gate B12."),
    ("user", "Never use the highway, I hate it."),
    ("assistant", "Understood, no highways."),
    ("user", "The invoice number is INV-2291, pay 340 euros."),
    ("assistant", "Paid 340 euros for INV-2291."),
    ("user", "What is left for Saturday?"),
    ("assistant", "Only the bike rental at 8:30."),
]
IDS = ("RX-4471", "INV-2291")
LAYERS = perdure.Layers(spine_turns=3)
JOBS_S = 600.0


def talk(engine: perdure.Engine) -> perdure.Memory:
    ana = engine.memory("ana")
    ana.append_many([perdure.NewMessage(role, content) for role, content in SAID])
    return ana


@pytest.mark.parametrize("right", ["ollama"], indirect=True)
def test_a_fold_by_a_model_keeps_what_matters_and_leads_back(right: str, opened: Callable[..., perdure.Engine]) -> None:
    engine = opened(right)
    ana = talk(engine)
    [fold] = ana.conversation.compact(force=True)
    assert (fold.kind, fold.summariser, fold.fallback) == ("fold", "qwen", False)
    kept = "\n".join([fold.text, *fold.pinned])
    assert all(one in kept for one in IDS)
    assert [message.content for message in ana.conversation.expand(fold)] == [content for _, content in SAID[: fold.last_seq]]
    assert all(one in ana.context().text for one in IDS)
    check_log(engine, ana, SAID)
    check_digests(ana)
    check_usage(ana, "fold")


def test_a_fold_by_a_bad_model_loses_nothing(wrong: ChatModel, opened: Callable[..., perdure.Engine]) -> None:
    engine = opened(wrong)
    ana = talk(engine)
    with suppress(perdure.Unavailable):
        ana.conversation.compact(force=True)
    assert all(one in ana.context().text for one in IDS)
    check_log(engine, ana, SAID)
    check_digests(ana)
    check_usage(ana, "fold")


def a_day(engine: perdure.Engine) -> perdure.Memory:
    """A conversation to its end, with all that is due after it."""
    ana = talk(engine)
    engine.process(JOBS_S)
    ana.conversation.close()
    engine.process(JOBS_S)
    return ana


@pytest.mark.parametrize("right", ["openai"], indirect=True)
def test_every_layer_can_be_written_by_a_model(right: str, opened: Callable[..., perdure.Engine]) -> None:
    engine = opened(right, layers=LAYERS)
    ana = a_day(engine)
    written = {digest.kind: digest for digest in digests(ana)}
    assert written.keys() >= {"rolling", "session", "spine"}
    assert {digest.summariser for digest in written.values()} == {"qwen"}
    assert "RX-4471" in ana.context().text or "Saturday" in ana.context().text
    check_log(engine, ana, SAID)
    check_digests(ana)
    check_memories(ana)
    check_usage(ana, "rolling", "session", "spine", "extract")


@pytest.mark.parametrize("wrong", ["ollama"], indirect=True)
def test_whatever_a_bad_model_writes_everything_can_be_found_again(
    wrong: ChatModel, opened: Callable[..., perdure.Engine]
) -> None:
    engine = opened(wrong, layers=LAYERS)
    ana = a_day(engine)
    check_log(engine, ana, SAID)
    check_digests(ana)
    check_memories(ana)
    check_usage(ana, "rolling", "session", "spine", "extract")
    assert any("INV-2291" in hit.text for hit in ana.recall("What was the number of the invoice?").hits)
