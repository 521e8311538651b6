"""Words for times are data: every language has its file, and every pattern finds the words that it names."""

from __future__ import annotations

import re

import pytest

from perdure.engine.times import clock, dates, grammar, holidays, offsets, rules, windows
from perdure.engine.words import tables

TABLES = (windows.RULES, offsets.RULES, dates.RULES, clock.RULES, holidays.rules(), rules.RULES)


@pytest.mark.parametrize("rule", [rule for table in TABLES for rule in table], ids=lambda rule: rule.source[:40])
def test_a_rule_names_words_that_the_files_have(rule: grammar.Rule) -> None:
    assert rule.first_words()
    assert not re.search(r"<<|>>", rule.pattern.pattern)


@pytest.mark.parametrize(
    "section", ["numbers", "ordinals", "decades", "units", "weekdays", "months", "seasons", "days", "zones"]
)
def test_no_word_of_a_table_means_two_things(section: str) -> None:
    meanings: dict[str, set[str]] = {}
    for language in tables("perdure.engine.times", "words").values():
        for key, words in language.get(section, {}).items():
            for word in words.split():
                meanings.setdefault(word, set()).add(key)
    assert {word: keys for word, keys in meanings.items() if len(keys) > 1} == {}


def test_a_file_more_is_a_language_more(monkeypatch: pytest.MonkeyPatch) -> None:
    portuguese = {"weekdays": {"1": "segunda-feira"}, "months": {"2": "fevereiro"}, "near": {"last": "passada"}}
    files = {**tables("perdure.engine.times", "words"), "pt": portuguese}
    monkeypatch.setattr(grammar, "tables", lambda *_: files)
    words = grammar.vocabulary.__wrapped__()
    assert (words.weekdays["segunda-feira"], words.months["fevereiro"]) == (0, 2)
    assert "passada" in grammar.word_sets.__wrapped__()["near.last_asked"]


def test_words_that_hold_for_questions_only_are_not_read_in_messages() -> None:
    words = grammar.word_sets()
    assert set(words["near.last"]) < set(words["near.last_asked"])
    assert "as of" in words["leads.since"]
    assert "as of" not in words["leads.since_asked"]
    assert "pasada" not in words["near"]
