"""What bears on a goal: laws of the measure, whatever the words."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lanes import examples
from perdure.adapters.embedding.static import StaticEmbedder, word_vectors
from perdure.domain.errors import InvalidInput
from perdure.engine.oversight.choice import SHOWN_MAX, chosen_by_rules, ranked
from perdure.engine.oversight.needs import NEEDS_MIN, needs
from perdure.engine.oversight.offers import offered, state_forms
from perdure.engine.oversight.relevance import (
    FEATURES,
    Catalogue,
    Naming,
    SavedItem,
    Vectors,
    goal_words,
    measure,
    naming_of,
    scores,
)
from perdure.engine.oversight.results import as_series, clean_key, key_of, plain, preview_of, secret_in, verdict
from perdure.engine.oversight.statements import any_of, limiting
from perdure.engine.search.lexicon import name_words
from perdure.engine.text.tokens import estimate_tokens
from perdure.engine.words import fitted, raw, sections

PACKAGE = "perdure.engine.oversight"
NOW = datetime(2026, 6, 15, 8, tzinfo=UTC)

texts = st.text(max_size=60)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def test_names_are_taken_apart_however_they_are_written() -> None:
    assert name_words("raceCalendar-2026") == ("race", "calendar", "2026")
    assert name_words("HTTPServer.base_url") == ("http", "server", "base", "url")
    assert name_words("") == ()


def test_the_weights_are_for_the_embedder_that_is_in_the_package() -> None:
    """Another table has other meanings in its columns: then `tools/build_before.py` has to run again."""
    embedder = StaticEmbedder()
    assert f"{embedder.name}/{embedder.version}" == fitted(PACKAGE, "weights.json")["embedder"]


def test_the_goals_of_the_repository_make_the_files_that_are_shipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3] / "tools"))
    from build_before import files

    made = files()
    assert sorted(made) == ["affinity.bin", "needs.bin", "weights.json"]
    assert [name for name, data in made.items() if data != raw(PACKAGE, name)] == []


@settings(max_examples=examples(60), deadline=None)
@given(goal=texts, names=st.lists(texts, max_size=6), with_meaning=st.booleans())
def test_any_goal_and_any_names_give_finite_scores(goal: str, names: list[str], with_meaning: bool) -> None:
    candidates = [SavedItem("state", name, "", json.dumps(name)) for name in names]
    catalogue = Catalogue(candidates, word_vectors if with_meaning else None)
    rows = measure(goal, catalogue, timed=False)
    assert rows.shape == (len(names), len(FEATURES))
    assert np.isfinite(rows).all()
    found = scores(goal, catalogue, timed=True)
    assert found.shape == (len(names),)
    assert ((found >= 0) & (found <= 1)).all()
    assert 0 <= needs(goal, timed=with_meaning) <= 1


@pytest.mark.parametrize(
    ("needing", "plain"),
    [
        ("Can I lift the new boxes on my own?", "What is a slipped disc?"),
        ("Was brauche ich noch für meine Reise am Freitag?", "Wie hoch ist der Eiffelturm?"),
        ("Qui doit encore me payer ?", "Qui a peint La Joconde ?"),
        ("¿Qué puedo cenar hoy con mis hijos?", "¿Cuál es la capital de Perú?"),
    ],
)
def test_what_only_the_user_can_know_is_told_from_what_everybody_could_ask(needing: str, plain: str) -> None:
    assert needs(needing, timed=False) >= NEEDS_MIN > needs(plain, timed=False)


@pytest.mark.parametrize("vectors", [None, word_vectors], ids=["words", "meaning"])
def test_a_saved_thing_that_the_goal_names_is_chosen_with_and_without_an_embedder(vectors: Vectors | None) -> None:
    """S1-33: where meaning is not compared, the words that goal and name share stand for it."""
    saved = [
        SavedItem("state", "favorite_routes", "", '["river loop"]'),
        SavedItem("state", "kudos_givers", "", '["athlete_1"]'),
    ]
    goal, catalogue = "Who from my kudos list was active recently?", Catalogue(saved, vectors)
    found = scores(goal, catalogue, timed=True)
    order = ranked(saved, found, naming_of(goal, catalogue), lambda _: NOW, limit=2)
    choices = chosen_by_rules(order, opens=True)
    assert [choice.id for choice in choices if choice.included] == ["kudos_givers"]


@pytest.mark.parametrize(
    ("goal", "key", "value", "naming"),
    [
        ("What does my insurance cover?", "insurance", "{}", Naming.WORD),
        ("Which meetings do I have?", "meetings_timeseries", "", Naming.WORD),
        ("Where does Maria live? Look at the maria address", "maria_address", "", Naming.NAME),
        ("Add bread to the shopping list", "shopping_list", "", Naming.WORD),
        ("What coffee does Ana like?", "notes", '"Ana likes coffee."', Naming.GOAL),
        ("What does insurance mean?", "car_insurance", "{}", Naming.NOT),
        ("What coffee does Ana like?", "notes", '"Ana likes tea."', Naming.NOT),
        ("", "notes", '"Ana likes tea."', Naming.NOT),
        ("What is my list?", "my_list", "[]", Naming.NOT),
    ],
)
def test_a_goal_names_what_it_has_all_words_of_or_what_has_all_of_its_words(
    goal: str, key: str, value: str, naming: Naming
) -> None:
    assert naming_of(goal, Catalogue([SavedItem("state", key, "", value)], None)) == [naming]


def test_a_thing_saved_alone_is_as_likely_to_be_needed_as_beside_others() -> None:
    """What it is compared with is what is usual, while there is little."""
    goal, thing = "What does my insurance cover?", SavedItem("state", "insurance", "", "{}")
    others = [SavedItem("state", name, "", "{}") for name in ("wifi", "plants", "bikes", "recipes", "songs")]
    alone, beside = (scores(goal, Catalogue([thing, *some], word_vectors), timed=False)[0] for some in ([], others))
    assert alone > 0.5
    assert abs(alone - beside) < 0.2


def test_what_others_saved_does_not_come_first_because_there_is_much_of_it() -> None:
    many = [SavedItem("state", f"invoice_{n}", "", "{}") for n in range(300)]
    catalogue = Catalogue([*many, SavedItem("state", "kudos_givers", "", "[]")], word_vectors)
    assert int(np.argmax(scores("Who is on my kudos list?", catalogue, timed=False))) == 300


@given(opens=st.booleans(), found=st.lists(st.floats(0, 1), max_size=40))
def test_rules_choose_few_and_none_for_a_goal_that_needs_nothing(opens: bool, found: list[float]) -> None:
    candidates = [SavedItem("state", str(place)) for place in range(len(found))]
    naming = [Naming(place % 4) for place in range(len(found))]
    order = ranked(candidates, np.array(found, np.float32), naming, lambda _: NOW, limit=40)
    choices = chosen_by_rules(order, opens=opens)
    taken = [one for one in choices if one.included]
    assert len(taken) <= SHOWN_MAX
    assert all(one.reason for one in choices)
    assert opens or not taken


def test_of_two_that_are_as_relevant_the_one_saved_last_comes_first() -> None:
    candidates = [SavedItem("state", name) for name in ("old", "new", "other")]
    likely, naming = np.array([0.501, 0.499, 0.9], np.float32), [Naming.NOT] * 3
    order = ranked(candidates, likely, naming, lambda place: NOW + timedelta(days=place), limit=3)
    assert [one.candidate.id for one in order] == ["other", "new", "old"]


def test_hostile_goals_take_no_longer_than_their_size() -> None:
    assert len(goal_words("a1 " * 100_000)) <= 40
    assert goal_words("\ud800\x00 kudos") != ()


# -- keeping


@given(json_values)
def test_json_is_left_as_it_is(value: object) -> None:
    shaped = plain(value)
    assert json.loads(json.dumps(shaped)) == shaped
    assert preview_of(shaped).endswith("...") == (len(json.dumps(shaped, separators=(",", ":"), ensure_ascii=False)) > 500)


def test_what_has_no_end_is_refused_by_name() -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(InvalidInput, match="nested"):
        plain(endless)


@pytest.mark.parametrize(
    ("tool", "key"),
    [
        ("getUserProfile", "user_profile"),
        ("list_my_contacts", "contacts"),
        ("fetch", "fetch"),
        ("", "result"),
        ("获取", "获取"),
    ],
)
def test_a_key_is_named_after_what_the_tool_gets(tool: str, key: str) -> None:
    assert key_of(tool) == key


@given(texts)
def test_a_key_that_a_model_names_is_made_of_words(name: str) -> None:
    key = clean_key(name)
    assert len(key) <= 100
    assert not key.startswith("_")
    assert "/" not in key


@pytest.mark.parametrize(
    ("goal", "key"),
    [
        ("Get last week activities and save kudos givers to memory", "kudos_givers"),
        ("remember my allergies", "allergies"),
        ("save it as team-list", "team_list"),
        ("please keep the list for later", "thing"),
        ("don't forget to save my shoe size", "shoe_size"),
        ("Don't tell Bob, but remember the gift list", "gift"),
    ],
)
def test_a_goal_that_asks_to_keep_names_the_key(goal: str, key: str) -> None:
    found = verdict("getThing", ["a", "b"], goal)
    assert (found.save, found.key) == (True, key)


@pytest.mark.parametrize(
    "goal",
    [
        "Never store my health data",
        "Do not remember my location",
        "Don't save this, just show me",
        "Find a store near me",
        "Keep it short: weather?",
        "How do I save money on flights?",
        "what is the keep-alive policy",
        "bitte nicht speichern",
        "Do you remember where we met?",
        "Save nothing",
        "stop saving my location",
        "Ne retiens pas ça",
        "remember that I hate mondays",
    ],
)
def test_a_goal_that_says_not_to_keep_or_means_something_else_keeps_nothing(goal: str) -> None:
    assert not verdict("get_weather", {"a": "b"}, goal).save


def test_what_the_goal_says_not_to_keep_is_not_kept_even_if_it_would_last() -> None:
    found = verdict("getUserProfile", {"a": "b"}, "show my profile but do not save it")
    assert (found.save, found.final) == (False, True)


@pytest.mark.parametrize(
    "result",
    [
        {"password": 12345678},
        {"password": ["hunter2"]},
        {"credentials": {"user": "a", "pass": "b"}},
        {"pin": "1234"},
        {"token": "0123456789abcdef0123456789abcdef01234567"},
        {"sk-proj-abcdefghijklmnop1234": 1},
        "postgres://u:pw@h/x",
        ["AKIAIOSFODNN7EXAMPLE", "x" * 1_000_001],
        {"sessionToken": "x"},
    ],
)
def test_secrets_are_seen_wherever_they_stand(result: object) -> None:
    assert secret_in(plain(result)) is not None


@pytest.mark.parametrize(
    "result",
    [{"password": ""}, {"token_count": 12}, {"passenger": "Ana"}, {"pins": ["a"]}, {"token": "EUR"}, {"pin": "Central Park"}],
)
def test_what_only_sounds_like_a_secret_passes(result: object) -> None:
    assert secret_in(plain(result)) is None


@pytest.mark.parametrize(
    ("rows", "time_field"),
    [
        (
            [
                {"id": 1, "duration": 3600, "start_time": "2026-01-01T10:00:00Z"},
                {"id": 2, "duration": 60, "start_time": "2026-01-02"},
            ],
            "start_time",
        ),
        (
            [
                {"id": 1, "updated_at": "2026-01-03", "createdAt": "2026-01-01"},
                {"id": 2, "updated_at": "2026-01-03", "createdAt": "2026-01-02"},
            ],
            "createdAt",
        ),
        ([{"id": 1, "lat": 47.6}, {"id": 2, "lat": 48.1}], None),
        ([{"id": 1, "population": 133000}, {"id": 2, "population": 5}], None),
        ([{"id": 1, "time": 3600}, {"id": 2, "time": 60}], None),
        ([{"paid": 1, "at": "2026-01-01"}, {"paid": 2, "at": "2026-01-02"}], None),
        ([{"id": 1, "ts": 1767225600}, {"id": 2, "ts": 1767312000}], "ts"),
    ],
)
def test_the_time_of_an_entry_is_when_it_happened(rows: list[object], time_field: str | None) -> None:
    found = as_series("get_things", plain(rows))
    assert (None if found is None else found.time_field) == time_field


@pytest.mark.parametrize("part", ["aaa", "1 ", "a:", "eyJ", "sk-", "://"])
def test_the_search_for_secrets_takes_one_look_at_each_character(part: str) -> None:
    """A result in base64 is one long run of letters. Were this quadratic, the test would not end."""
    secret_in(part * 100_000)


def test_a_single_search_is_not_kept() -> None:
    assert not verdict("searchWeb", [{"title": "x"}], "find flights to Rome").save


@given(json_values)
def test_nothing_that_a_tool_returns_breaks_the_look_for_secrets_and_series(value: object) -> None:
    shaped = plain(value)
    secret_in(shaped)
    as_series("getThings", shaped)


def test_entries_without_times_or_ids_are_no_series() -> None:
    assert as_series("x", [{"id": 1}, {"id": 2}]) is None
    assert as_series("x", [{"at": "2026-01-01"}, {"at": "2026-01-02"}]) is None
    assert as_series("x", [{"id": 1, "at": "soon"}, {"id": 2, "at": "later"}]) is None
    assert as_series("x", [{"id": 1, "at": "2026-01-01"}, {"id": 1, "at": "2026-01-02"}]) is None


# -- offering


@given(values=st.lists(json_values, min_size=1, max_size=5), room=st.integers(0, 400))
def test_what_is_shown_fits_the_room(values: list[object], room: int) -> None:
    offers = [state_forms(f"key_{place}", plain(value)) for place, value in enumerate(values)]
    shown, missing = offered(offers, room, estimate_tokens)
    assert len(shown) + len(missing) == len(offers)
    lines = "".join(
        f"- {name}: {json.dumps(form, separators=(',', ':'), ensure_ascii=False)}\n" for (_, name), form in shown.items()
    )
    assert estimate_tokens(lines) <= room + len(shown)


WORLD = (
    "Emil has a severe nut allergy",
    "No workmen in the yard on Sundays",
    "Collects old tuning forks",
    "Lives in a village near Sibiu",
)


@pytest.mark.parametrize(
    ("goal", "limit"),
    [("what can I put on the table tonight?", WORLD[0]), ("get the roofer to come next week, suggest two slots", WORLD[1])],
)
def test_what_limits_a_goal_is_known_though_no_word_is_the_same(goal: str, limit: str) -> None:
    assert [text for text, limits in zip(WORLD, limiting(goal, WORLD), strict=True) if limits] == [limit]


@given(st.text(max_size=80), st.lists(st.text(max_size=60), max_size=6))
def test_any_goal_and_anything_told_have_an_answer(goal: str, texts: list[str]) -> None:
    assert len(limiting(goal, texts)) == len(texts)


def test_each_kind_of_limit_has_both_its_sides() -> None:
    headings = sections(PACKAGE, "about.txt")
    areas = {name.partition(" ")[2] for name in headings if name.startswith("limit ")}
    assert areas
    assert all(headings[f"goal {area}"] and headings[f"limit {area}"] for area in areas)
    for name in headings:
        any_of(name)


def test_no_weight_speaks_against_what_fits_the_goal_better() -> None:
    weights = fitted(PACKAGE, "weights.json")["keys"]
    assert set(weights) == {*FEATURES, "bias"}
    assert all(weights[name] >= 0 for name in set(FEATURES) - {"is_series", "state_in_time"})
