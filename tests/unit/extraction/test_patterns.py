"""The words and patterns of extraction are data: all of them can be read, each is used, and a language is one more file."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib.resources import files

import pytest

from perdure.engine.extraction import order_topics, orders, patterns
from perdure.engine.extraction.order_topics import withdraws
from perdure.engine.extraction.orders import standing_instructions
from perdure.engine.extraction.patterns import any_of, english, pattern, pieces_of, spelled, word_lists
from perdure.engine.extraction.predicates import attributes, attributes_that_are, predicates

FOLDER = files("perdure.engine.extraction")
CODE = "\n".join(item.read_text() for item in FOLDER.iterdir() if item.name.endswith(".py"))
DATA = "\n".join(item.read_text() for item in FOLDER.iterdir() if item.name.endswith(".toml"))


def test_a_form_is_spelled_out() -> None:
    pieces = pieces_of({"WHO": "{NAMES}|my boss", "ASKS": "{WHO} ask'?s"}, {"NAMES": any_of(["Jo", "Joan"])})
    form = spelled("^{ASKS}{1,2}\n    |{OTHER}$", pieces)
    assert form == "^(?:(?:(?:Joan|Jo)|my boss) ask['’]?s){1,2}|{OTHER}$"


def test_a_word_list_may_hold_another() -> None:
    assert word_lists({"A": "one two", "B": "{A} three"}) == {"A": ("one", "two"), "B": ("one", "two", "three")}


def test_every_pattern_can_be_compiled_and_is_looked_for() -> None:
    for name in english()["patterns"]:
        assert pattern(name)
        assert f'"{name}"' in CODE, name
    for predicate in predicates():
        assert predicate.own.groups == predicate.other.groups


def test_every_list_and_piece_is_used() -> None:
    for section in ("words", "maps", "pieces"):
        for name in english()[section]:
            assert f'"{name}"' in CODE or f"{{{name}}}" in DATA, name


def test_predicates_tell_attributes_that_have_a_name() -> None:
    groups = {group for one in predicates() for group in one.own.groupindex} - {"verb"}
    known = attributes().keys() | {"then", "next_org", "founder_of", "started_as", "workplace"}
    assert groups <= known
    assert attributes_that_are("of_strangers") <= attributes_that_are("personal") <= attributes().keys()


def test_every_form_of_every_language_can_be_compiled() -> None:
    for language, data in orders.languages().items():
        for kind, forms in data.items():
            if isinstance(forms, list) and kind != "hint_phrases":
                assert not orders._forms(language, kind).match("what nobody says")
    for name in orders.languages()["en"]["patterns"]:
        assert orders._english(name)
        assert f'"{name}"' in CODE, name
    for name in order_topics._FORMS:
        assert not re.search(r"\{[A-Z]", order_topics._pattern(name).pattern), name


PORTUGUESE = """
hints = 'sempre nunca mais'
orders = ['(?:por favor,? )?{VERB} .{0,80}sempre', 'nunca mais {NOT_VERB}']
withdrawals = ['já não precisas de .{2,80}']
[words]
VERB = 'responde escreve'
NOT_VERB = 'uses escrevas'
[about]
in_language = 'em'
common = 'responde sempre'
[languages]
english = 'inglês'
french = 'francês'
"""
CACHED = [
    *(orders.languages, orders.language_names, orders._hints, orders._foreign, orders._pieces, orders._forms),
    *(orders.of_all_languages, order_topics._either, order_topics._words, order_topics._common_roots),
]


@pytest.fixture
def portuguese(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    held = orders.tables("perdure.engine.extraction", "orders")
    monkeypatch.setattr(orders, "tables", lambda *_: {**held, "pt": tomllib.loads(PORTUGUESE)})
    for one in CACHED:
        one.cache_clear()
    yield
    monkeypatch.undo()
    for one in CACHED:
        one.cache_clear()


@pytest.mark.usefixtures("portuguese")
def test_a_file_is_enough_for_another_language() -> None:
    assert [one.kind for one in standing_instructions("Responde em inglês sempre. Nunca mais uses emojis!")] == ["order"] * 2
    assert withdraws("Responde sempre em francês.", ["Responde sempre em inglês."], kind="order") == 0


def test_what_no_file_has_is_not_read() -> None:
    assert standing_instructions("Responde em inglês sempre. Nunca mais uses emojis!") == ()
    assert patterns.words("BOSSES") == {"boss", "manager", "supervisor"}
