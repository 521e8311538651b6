"""A fold shortens: about 300 words with and without a model, never longer than what it replaces, rules and ids word for word."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import perdure
from perdure import Summary
from perdure.domain.conversation.digests import SummaryRequest
from perdure.engine.context.assemble import fold_text
from perdure.engine.text.sentences import count_words
from perdure.engine.text.tokens import estimate_tokens
from perdure.testing import StoppedClock

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
TALK = (
    "we moved the server to another rack and it took a while because the cables were short the fans are loud but fine now "
    "people find their numbers faster on a page that has three charts and most visitors like it more than the old one"
)
WORDS = TALK.split()
RULE = "You must never call me before nine."
INVOICE = "Pay invoice INV-2041 from /srv/pay/2041.csv."


class Wordy:
    """A model that says far more than it was asked for."""

    name = "wordy-1"

    def summarise(self, request: SummaryRequest) -> Summary:
        return Summary("There was talk about many things. " * 400)


def talk(ana: perdure.Memory, said: list[str]) -> int:
    """The messages, by turns; what they cost."""
    for place, text in enumerate(said):
        ana.append("user" if place % 2 == 0 else "assistant", text)
    return sum(estimate_tokens(f"{one.role}: {one.content}") for one in ana.messages(1_000))


def opened(model: Wordy | None = None) -> perdure.Engine:
    fields = perdure.Settings(url="memory:", profile="channel_bot")
    return perdure.open(settings=fields, clock=StoppedClock(START), summariser=model)


sentences = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=30).map(" ".join), min_size=8, max_size=24)


@settings(max_examples=40)
@given(said=sentences, by_model=st.booleans(), ruled=st.booleans())
def test_a_fold_is_shorter_than_what_it_replaces_or_is_not_made(said: list[str], by_model: bool, ruled: bool) -> None:
    """S4-7, S4-10, S4-11, S4-33: whoever writes it. What binds stays word for word, in the fold or in the messages."""
    if ruled:
        said = [said[0], said[1], f"{said[2]}. {RULE} {INVOICE}", *said[3:]]
    with opened(Wordy() if by_model else None) as engine:
        ana = engine.memory("ana")
        replaced = talk(ana, said)
        tokens = [one.tokens for one in ana.messages(1_000)]
        context = ana.context()
        folds = ana.conversation.digests("fold")
        gone = sum(tokens[: len(tokens) - len(context.messages)])
        if gone >= 50 and not ruled:  # a standing wish is told besides, folded or not
            assert context.tokens <= sum(tokens) + 4 * len(tokens), "the prompt is no longer than without the fold"
        for fold in folds:
            assert estimate_tokens(fold_text(fold)) <= replaced
            assert count_words(fold_text(fold)) <= 330
        told = context.text + "".join(one.content for one in context.messages)
        for binding in ("INV-2041", "/srv/pay/2041.csv", "never call me before nine") if ruled else ():
            assert binding in told


@pytest.mark.parametrize("model", [None, Wordy()], ids=["rules", "model"])
def test_a_long_talk_is_told_in_about_three_hundred_words(model: Wordy | None) -> None:
    """S4-10, S4-11: one system message, text and kept lines together."""
    with opened(model) as engine:
        ana = engine.memory("ana", channel="discord:42")
        said = [f"{' '.join(WORDS[n % 20 :] + WORDS[: n % 20])}, which is point {n}." for n in range(40)]
        said[4] += f" {RULE} {INVOICE}"
        replaced = talk(ana, said)
        given_ = ana.context().as_messages()
        assert [one["role"] for one in given_] == ["system"]
        [fold] = ana.conversation.digests("fold")
        assert count_words(fold_text(fold)) <= 330
        assert estimate_tokens(fold_text(fold)) < replaced / 2
        assert RULE in given_[0]["content"]
        assert "INV-2041" in given_[0]["content"]


def test_what_is_all_rules_and_ids_is_not_folded_yet() -> None:
    """S4-7: no model is asked for a fold that could not be shorter; with more talk around them they are folded."""
    asked: list[SummaryRequest] = []

    class Counted(Wordy):
        def summarise(self, request: SummaryRequest) -> Summary:
            asked.append(request)
            return super().summarise(request)

    with opened(Counted()) as engine:
        ana = engine.memory("ana")
        rules = [f"You must never pay INV-20{n} from /srv/{n}.csv before 2026-02-1{n}." for n in range(8)]
        for rule in rules:
            ana.append("user", rule)
        ana.append("assistant", "ok")
        assert [one.content for one in ana.context().messages] == [*rules, "ok"]
        assert (asked, ana.conversation.digests("fold")) == ([], [])
        assert [one.last_seq for fold in ana.conversation.fold() for one in fold.sources] == [9], "who asks for a fold gets it"
        assert len(asked) == 1
        ana.conversation.undo()
        asked.clear()
        talk(ana, [" ".join(WORDS * 2) for _ in range(8)])
        told = ana.context().text
        assert len(asked) == 1
        assert all(f"INV-20{n}" in told for n in range(8))
