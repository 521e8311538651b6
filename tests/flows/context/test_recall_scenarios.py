"""Finding again: T-38 to T-41, S3-17 to S3-23, S3-39, X-25, X-26, X-35, X-46, B-44, B-47, B-48, through the public calls, on a
stopped clock, on both databases. The embedder is a scripted one where its numbers matter, else the built-in one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import perdure
from perdure import InvalidInput, LimitExceeded, Memory, NewMessage, NotFound, Unavailable
from perdure.domain.context.recall import Blend, Recall, Uncovered
from perdure.engine.search import segments
from perdure.engine.search.lexicon import lexemes, term_hash
from perdure.engine.search.ranking import frequencies
from perdure.ports.tables.rows import TABLES
from perdure.services.index import job
from perdure.testing import StoppedClock
from scripted import ScriptedSummariser
from scripted_embedder import ScriptedEmbedder

START = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)
JOHN: dict[str, Any] = {"entities": ["person:John"]}
ANIMALS = (
    "zebra",
    "lion",
    "tiger",
    "wolf",
    "otter",
    "heron",
    "moose",
    "lynx",
    "badger",
    "weasel",
    "ferret",
    "gecko",
    "newt",
    "toad",
    "crane",
    "stork",
    "raven",
    "finch",
    "robin",
    "eagle",
    "shrew",
    "vole",
    "hare",
    "stoat",
    "mink",
    "bison",
    "camel",
)


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock(START)


@pytest.fixture
def embedder() -> ScriptedEmbedder:
    return ScriptedEmbedder()


Open = Callable[..., perdure.Engine]


@pytest.fixture
def open_(backend: Any, clock: StoppedClock, embedder: ScriptedEmbedder) -> Open:
    """An engine on the backend with the scripted embedder, or with what it is given; None is the one that the setting names."""

    def open_one(*, setting: str = "static", **fields: Any) -> perdure.Engine:
        given = {name: fields.pop(name) for name in ("embedder", "summariser", "reranker") if name in fields}
        models = {"embedder": embedder if setting == "static" else None} | given
        chosen = replace(backend.settings, embedder=setting, **fields)
        engine = perdure.open(settings=chosen, clock=clock, **models)
        backend._opened.append(engine)
        return engine

    return open_one


@pytest.fixture
def engine(open_: Open) -> perdure.Engine:
    return open_()


@pytest.fixture
def ana(engine: perdure.Engine) -> Memory:
    return engine.memory("ana", agent="coach")


def texts(found: Recall) -> list[str]:
    return [hit.text for hit in found.hits]


def scores(found: Recall) -> dict[str, float]:
    return {hit.text: hit.score for hit in found.hits}


def block(context: perdure.Context, kind: str) -> str:
    """The text of the one block of a kind; empty if there is none."""
    found = [one.text for one in context.blocks if one.kind == kind]
    assert len(found) <= 1
    return found[0] if found else ""


def settle(engine: perdure.Engine) -> None:
    """Run all jobs, and those that they cause: a digest that was written after its vectors were due has some now."""
    for _ in range(3):
        engine.process()


def table(engine: perdure.Engine, name: str) -> list[Any]:
    with engine._store.snapshot() as snapshot:
        return list(snapshot.rows(name))


# -- T-38: numbers -------------------------------------------------------------------------------------------------------


def test_the_blend_gives_the_numbers_of_the_requirements_t_38_s3_20() -> None:
    blend = Blend()
    assert blend.score(0.8, 14, 1) == pytest.approx(0.77, abs=1e-12)
    assert blend.score(0.9, 56, 0) == pytest.approx(0.37875, abs=1e-12)
    assert (blend.recency_of(0), blend.recency_of(14), blend.recency_of(28)) == (1, 0.5, 0.25)
    assert blend.recency_of(-3) == 1, "what is of the future is new"


class TestRankingNumbers:
    """T-38 through recall: two statements whose similarity, age and frequency are those of the requirements."""

    CLOSE, CLOSER, CLOSEST = "Ada mends clocks", "Bo sings tenor", "Cy rows upstream"

    @pytest.fixture
    def embedder(self) -> ScriptedEmbedder:
        # The question looks along the first axis. What all others lack of it adds up to what these three have: their mean
        # is nothing, so a cosine is what it says.
        script: dict[str, tuple[float, ...]] = {
            "quux": (1.0,),
            self.CLOSEST: (1.0,),
            self.CLOSER: (0.9, 0.435889894),
            self.CLOSE: (0.8, 0.6),
        }
        script |= {f"Keeps a {animal}": (-0.1, 0, 0.994987437) for animal in ANIMALS}
        return ScriptedEmbedder(script)

    def recalled(self, engine: perdure.Engine, clock: StoppedClock) -> Recall:
        ana = engine.memory("ana")
        ana.remember(self.CLOSER)
        clock.move(days=42)
        ana.remember(self.CLOSE, "PEOPLE", entities=["person:Ada"])
        clock.move(days=14)
        ana.remember(self.CLOSEST)
        for animal in ANIMALS:
            ana.remember(f"Keeps a {animal}")
        engine.process()
        return ana.recall("quux")

    def test_the_fresher_and_more_frequent_one_wins_with_the_pipeline_t_38(self, open_: Open, clock: StoppedClock) -> None:
        found = self.recalled(open_(recall_blend="on"), clock)
        traces = {hit.text: hit.trace for hit in found.hits}
        assert traces[self.CLOSE].similarity == pytest.approx(0.8, abs=2e-3)
        assert (traces[self.CLOSE].recency, traces[self.CLOSE].frequency) == (0.5, 1.0)
        assert traces[self.CLOSER].similarity == pytest.approx(0.9, abs=2e-3)
        assert (traces[self.CLOSER].recency, traces[self.CLOSER].frequency) == (0.0625, 0.0)
        assert scores(found)[self.CLOSE] == pytest.approx(0.77, abs=1e-3)
        assert scores(found)[self.CLOSER] == pytest.approx(0.37875, abs=1e-3)
        order = texts(found)
        assert order.index(self.CLOSE) < order.index(self.CLOSER)
        for hit in found.hits:
            expected = 0.4 * hit.trace.similarity + 0.3 * hit.trace.recency + 0.3 * hit.trace.frequency
            assert hit.score == pytest.approx(expected, abs=1e-9)

    def test_the_more_similar_one_wins_without_the_pipeline_t_38(self, open_: Open, clock: StoppedClock) -> None:
        found = self.recalled(open_(), clock)
        assert texts(found)[:3] == [self.CLOSEST, self.CLOSER, self.CLOSE]

    def test_other_weights_can_be_set_s3_20(self, open_: Open, clock: StoppedClock) -> None:
        found = self.recalled(open_(recall_blend="0.2,0.8,0"), clock)
        assert scores(found)[self.CLOSE] == pytest.approx(0.2 * 0.8 + 0.8 * 0.5, abs=1e-3)

    @pytest.mark.parametrize("weights", ["yes", "0.4,0.3", "0.5,0.5,0.5", "1,-0.5,0.5", "nan,0,1", "0.4,0.3,0.3,0"])
    def test_weights_that_are_none_are_refused(self, weights: str) -> None:
        with pytest.raises(InvalidInput, match="recall_blend"):
            perdure.Settings(recall_blend=weights)


def test_frequency_is_the_mean_over_references_of_count_by_highest_count_b_47() -> None:
    assert frequencies([("a",), ("a", "b"), (), ("c",)]) == [1.0, 0.75, 0.0, 0.5]
    assert frequencies([("a", "a"), ("a",), ("b",)]) == [1.0, 1.0, 0.5], "a name counts once for each candidate"
    assert (frequencies([]), frequencies([(), ()])) == ([], [0.0, 0.0])


def test_frequency_counts_the_entities_among_what_was_found_b_47(open_: Open) -> None:
    ana = open_(recall_blend="on").memory("ana")
    ana.remember("John rows boats", "PEOPLE", **JOHN)
    ana.remember("Rows boats with Mia", "PEOPLE", entities=["person:John", "person:Mia"], fact_type="habit")
    ana.remember("Rows boats for fun")
    found = {hit.text: hit.trace.frequency for hit in ana.recall("rows boats").hits}
    assert found == {"John rows boats": 1.0, "Rows boats with Mia": 0.75, "Rows boats for fun": 0.0}


# -- T-39, S3-19, X-25: filters first --------------------------------------------------------------------------------------


def test_sixty_archived_rows_do_not_crowd_out_five_active_ones_t_39_x_25(
    backend: Any, clock: StoppedClock, engine: perdure.Engine, ana: Memory
) -> None:
    for number in range(60):
        ana.remember(f"Plays chess with Viktor, game {number}", "PEOPLE", entities=[f"person:Viktor {number}"])
    for one in ana.memories.list(limit=100):
        ana.memories.archive(one.memory.record_key)
    active = [f"Once heard a lecture by somebody about chess in {city}" for city in ("Oslo", "Rome", "Lima", "Kyiv", "Pune")]
    for content in active:
        ana.remember(content)
    engine.process()
    assert sorted(texts(ana.recall("plays chess with Viktor"))) == sorted(active)
    assert sorted(texts(ana.recall("plays chess with Viktor", limit=5))) == sorted(active)
    with_goal = ana.context("plays chess with Viktor", budget_tokens=4_000).text
    assert all(content in with_goal for content in active)
    assert "game" not in with_goal


def test_rows_of_other_agents_and_other_users_crowd_nobody_out_x_25_s3_19(engine: perdure.Engine, ana: Memory) -> None:
    other_user, companion = engine.memory("bob", agent="coach"), engine.memory("ana", agent="companion")
    for number in range(60):
        other_user.remember(f"Plays chess with Viktor, game {number}")
        ana.remember(f"Plays chess with Viktor, match {number}", visible_to="companion")
        companion.append("user", f"Chess with Viktor was fun, round {number}")
    ana.remember("Once heard of chess")
    engine.process()
    own = ana.recall("plays chess with Viktor", kinds=["message", "memory"])
    assert texts(own) == ["Once heard of chess"]
    theirs = texts(companion.recall("chess with Viktor", kinds=["message", "memory"], limit=200))
    assert sum("match" in text for text in theirs) == 60
    assert sum("round" in text for text in theirs) == 60


def test_what_was_superseded_or_is_of_the_future_is_not_found_s3_19(ana: Memory, clock: StoppedClock) -> None:
    for city in ("Austin", "Boston", "Chicago"):
        ana.remember(f"Lives in {city}", entities=[f"place:{city}"], attribute="lives_in", value=city)
        clock.move(days=1)
    later = clock.now() + timedelta(days=30)
    ana.remember("Lives in Denver", attribute="lives_in", value="Denver", valid_from=later)
    assert texts(ana.recall("lives in", kinds=["memory"])) == ["Lives in Chicago"]
    clock.set(later)
    assert texts(ana.recall("lives in", kinds=["memory"])) == ["Lives in Denver"]


def test_an_archived_memory_comes_back_when_it_is_restored(engine: perdure.Engine, ana: Memory) -> None:
    key = ana.remember("Keeps a zebra").statement.memory  # type: ignore[union-attr]
    for expected, change in (([], "archive"), (["Keeps a zebra"], "restore"), ([], "archive")):
        getattr(ana.memories, change)(key)
        assert texts(ana.recall("zebra")) == expected
        engine.process()
        assert texts(ana.recall("zebra")) == expected


# -- kinds, sessions, entities, times ---------------------------------------------------------------------------------------


def everything(engine: perdure.Engine, ana: Memory) -> None:
    """One thing of every kind that speaks of boats."""
    ana.append("user", "my boat leaks", id="m1")
    ana.remember("Owns a boat")
    ana.instructions.add("Always call the boat Nellie")
    ana.todos.add("Paint the boat")
    ana.state.save("boatName", "Nellie")
    ana.series("boat_trips").merge([{"id": 1, "timestamp": "2025-01-01"}], window=("2025-01-01", "2025-01-02"))
    ana.conversation.replace("in short: the boat leaks")


def test_each_kind_of_thing_is_found_and_only_those_asked_for_s2_45(engine: perdure.Engine, ana: Memory) -> None:
    everything(engine, ana)
    expected = {
        "message": "my boat leaks",
        "memory": "Owns a boat",
        "instruction": "Always call the boat Nellie",
        "todo": "Paint the boat",
        "digest": "in short: the boat leaks",
    }
    for _ in range(2):
        found = ana.recall("boat", limit=50)
        assert {hit.kind for hit in found.hits} == {*expected, "state", "series"}
        for kind, text in expected.items():
            assert texts(ana.recall("boat", kinds=[kind])) == [text]  # type: ignore[list-item]
        [state] = ana.recall("boat", kinds=["state"]).hits
        assert (state.id, "Nellie" in state.text) == ("boatName", True)
        [series] = ana.recall("boat", kinds=["series"]).hits
        assert (series.id, series.kind) == ("boat_trips", "series")
        assert {hit.kind for hit in ana.recall("boat", kinds=["todo", "memory"]).hits} == {"todo", "memory"}
        engine.process()


def test_a_hit_says_where_it_comes_from(ana: Memory, clock: StoppedClock) -> None:
    said = ana.append("user", "my boat leaks", metadata={"name": "Ana Lima"}, session="harbour")
    [hit] = ana.recall("boat", kinds=["message"]).hits
    assert (hit.id, hit.session, hit.seq, hit.at, hit.speaker) == (said.id, "harbour", 1, said.at, "Ana Lima")
    assert (hit.address, hit.sources, hit.trust, hit.valid_to) == (said.address, (said.id,), "user", None)
    made = ana.remember("Owns a sloop", "PROJECT", entities=["project:Sloop"]).statement
    assert made is not None
    [hit] = ana.recall("sloop", kinds=["memory"]).hits
    assert (hit.id, hit.entities, hit.valid_from, hit.trust) == (made.id, ("project:sloop",), made.valid_from, made.trust)


@pytest.mark.parametrize("wrong", [["messages"], [], "message", [1]])
def test_kinds_that_are_none_are_refused(ana: Memory, wrong: Any) -> None:
    with pytest.raises(InvalidInput, match="kinds"):
        ana.recall("boat", kinds=wrong)


def test_only_the_sessions_asked_for_are_searched(engine: perdure.Engine, ana: Memory) -> None:
    for session in ("one", "two", "three"):
        ana.append("user", f"the boat in session {session}", session=session)
    ana.remember("Owns a boat")
    assert texts(ana.recall("boat", sessions=["two"])) == ["the boat in session two"]
    assert set(texts(ana.recall("boat", sessions=["one", "three"]))) == {"the boat in session one", "the boat in session three"}
    with pytest.raises(NotFound, match="four"):
        ana.recall("boat", sessions=["four"])
    elsewhere = engine.memory("ana", agent="coach", channel="other")
    with pytest.raises(NotFound):
        elsewhere.recall("boat", sessions=["two"])


def test_only_what_names_an_entity_is_found_through_any_of_its_names(engine: perdure.Engine, ana: Memory) -> None:
    ana.append("user", "John Doe plays the cello", id="m1")
    ana.append("user", "Johnny was late for the cello lesson", id="m2")
    ana.append("user", "the cello is a fine instrument", id="m3")
    ana.remember("Plays the cello", "PEOPLE", entities=["person:John Doe"])
    ana.remember("Plays the cello as well", "PEOPLE", entities=["person:Mia"])
    ana.entities.alias("person:John Doe", "Johnny")
    for name in ("person:John Doe", "person:john_doe", "person:Johnny"):
        found = ana.recall("cello", entities=[name])
        assert {hit.text for hit in found.hits} == {
            "John Doe plays the cello",
            "Johnny was late for the cello lesson",
            "Plays the cello",
        }, name
    assert texts(ana.recall("cello", entities=["person:Mia"])) == ["Plays the cello as well"]
    assert len(ana.recall("cello", entities=["person:Mia", "person:Johnny"]).hits) == 4
    assert texts(ana.recall("cello", entities=["person:Nobody"])) == []
    assert ana.recall("What does Johnny play?").understood.names == ("person:john_doe",)


def test_a_message_with_one_name_is_found_by_another_however_it_is_written(ana: Memory) -> None:
    ana.append("user", "John Doe will sail to Norway")
    ana.append("user", "the weather is fine", session="other")
    ana.remember("Plays chess", "PEOPLE", entities=["person:John Doe"])
    ana.entities.alias("person:John Doe", "Skipper")
    for question in ("what about skipper", "What about Skipper?", "Skipper?", "Tell me about Skipper's plans"):
        assert "John Doe will sail to Norway" in texts(ana.recall(question, kinds=["message"])), question


def test_a_merged_name_is_found_by_the_other(ana: Memory) -> None:
    ana.remember("Collects stamps", "PEOPLE", entities=["person:Wolfgang Amadeus"])
    ana.remember("Speaks Welsh", "PEOPLE", entities=["person:Wolfie"], fact_type="habit")
    ana.entities.merge("person:Wolfie", "person:Wolfgang Amadeus")
    for name in ("person:Wolfie", "person:Wolfgang Amadeus"):
        assert sorted(texts(ana.recall("stamps Welsh", entities=[name]))) == ["Collects stamps", "Speaks Welsh"]


def test_a_question_with_a_very_long_name_is_answered(ana: Memory) -> None:
    long = "".join(chr(0x20000 + number) for number in range(100))
    ana.remember("Plays chess", "PEOPLE", entities=["person:Bob"])
    ana.entities.alias("person:Bob", long)
    assert ana.recall(long).understood.names == ("person:bob",)


@pytest.mark.parametrize("question", ["", " ", "?", "_", "\u200b", "🙂", "…", "the of and", "\ufe0f x", "%", "a" * 50_000])
def test_any_question_is_answered(ana: Memory, question: str) -> None:
    ana.append("user", "the boat")
    ana.remember("Owns a boat", "PEOPLE", **JOHN)
    assert ana.recall(question).query == question
    assert ana.context(question or None, budget_tokens=500).tokens <= 500


def test_what_no_question_can_be_is_refused_in_words(ana: Memory) -> None:
    with pytest.raises(LimitExceeded, match="question"):
        ana.recall("x" * 100_001)
    for fields in (
        {"limit": 0},
        {"limit": True},
        {"budget_tokens": 0},
        {"budget_tokens": 1.5},
        {"neighbours": -1},
        {"neighbours": 11},
        {"explain": 1},
        {"as_of": "yesterday"},
        {"known_at": datetime(2026, 1, 1)},
        {"since": (START,)},
        {"since": START, "until": START},
        {"until": 5},
        {"entities": "person:John"},
        {"sessions": [5]},
    ):
        with pytest.raises(InvalidInput):
            ana.recall("boat", **fields)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unexpected"):
        ana.recall("boat", wrong=1)  # type: ignore[call-arg]


def test_a_time_range_holds_what_was_said_in_it_or_speaks_of_it(ana: Memory, clock: StoppedClock) -> None:
    ana.append("user", "the boat was painted", id="old")
    clock.move(days=10)
    ana.append("user", "the boat will be sold on January 20, 2026", id="plan")
    clock.move(days=30)
    ana.append("user", "the boat is gone", id="new")

    def found(first: int, last: int) -> set[str]:
        since, until = START + timedelta(days=first), START + timedelta(days=last)
        return {hit.id for hit in ana.recall("boat", kinds=["message"], since=since, until=until).hits}

    assert found(-1, 1) == {"old"}
    assert found(0, 10) == {"old"}, "the end is not in it"
    assert found(14, 16) == {"plan"}, "said on the 10th day, of the 15th"
    assert found(5, 60) == {"plan", "new"}
    late, early = ana.recall("boat", since=START + timedelta(days=14)), ana.recall("boat", until=START + timedelta(days=5))
    assert ({hit.id for hit in late.hits}, {hit.id for hit in early.hits}) == ({"plan", "new"}, {"old"}), "either stands alone"
    with pytest.raises(InvalidInput, match="`until`"):
        ana.recall("boat", since=START, until=START)
    assert found(100, 200) == set()


def test_a_question_about_a_time_prefers_what_was_said_then(ana: Memory, clock: StoppedClock) -> None:
    for month in range(3):
        ana.append("user", f"went sailing, trip {month}", session=f"s{month}")
        clock.move(days=30)
    found = ana.recall("where did I go sailing in early January 2026?")
    assert found.understood.time_range is not None
    assert found.hits[0].text == "went sailing, trip 0"
    assert "fits the time that is asked about" in found.hits[0].trace.why


def test_as_of_and_known_at_look_back_on_both_axes(ana: Memory, clock: StoppedClock) -> None:
    """As `memories.list`: Seattle was told in March and was so since January; in February nobody knew."""
    home: dict[str, Any] = {"attribute": "lives_in"}
    ana.remember("Lives in Austin", value="Austin", valid_from=datetime(2025, 1, 1, tzinfo=UTC), **home)
    february = START + timedelta(days=30)
    clock.move(days=60)
    ana.remember("Lives in Seattle", value="Seattle", valid_from=START, **home)

    def found(**when: datetime) -> list[str]:
        return texts(ana.recall("lives", kinds=["memory"], **when))  # type: ignore[arg-type]

    assert found() == ["Lives in Seattle"]
    assert found(as_of=february) == ["Lives in Seattle"]
    assert found(as_of=february, known_at=february) == ["Lives in Austin"]
    assert found(known_at=february) == ["Lives in Austin"]
    assert found(as_of=datetime(2025, 6, 1, tzinfo=UTC)) == ["Lives in Austin"]
    assert found(as_of=datetime(2024, 6, 1, tzinfo=UTC)) == []
    assert found(known_at=START - timedelta(days=1)) == []


def test_neighbours_come_with_a_found_message(ana: Memory) -> None:
    for number in range(9):
        ana.append(
            "user" if number % 2 == 0 else "assistant", "the zebra" if number == 4 else f"line {number}", id=f"m{number}"
        )
    ana.append("user", "another session", session="other")
    [hit] = [hit for hit in ana.recall("zebra", neighbours=2).hits if hit.text == "the zebra"]
    assert [(one.id, one.role, one.text) for one in hit.neighbours] == [
        ("m2", "user", "line 2"),
        ("m3", "assistant", "line 3"),
        ("m5", "assistant", "line 5"),
        ("m6", "user", "line 6"),
    ]
    [first] = [hit for hit in ana.recall("another session", neighbours=10).hits if hit.session == "other"]
    assert first.neighbours == ()
    assert all(hit.neighbours == () for hit in ana.recall("zebra").hits)


def test_a_budget_holds_for_hits_with_their_neighbours_and_what_is_cut_is_named(ana: Memory) -> None:
    for number in range(12):
        ana.append("user", f"boat number {number} " + "and so on " * 10, session=f"s{number}")
    whole = ana.recall("boat", limit=12)
    each = whole.hits[0].tokens
    found = ana.recall("boat", limit=12, budget_tokens=each * 3)
    assert (len(found.hits), found.tokens, found.uncovered.cut) == (3, each * 3, 9)
    assert texts(found) == texts(whole)[:3]
    assert any("9 more hits" in line for line in found.uncovered.lines())
    assert ana.recall("boat", limit=12, budget_tokens=1).hits == ()
    ana.append_many([NewMessage("user", "filler " * 200 if number != 2 else "the zebra", session="z") for number in range(5)])
    near = ana.recall("zebra", kinds=["message"], neighbours=2, budget_tokens=50)
    spent = sum(hit.tokens + sum(len(one.text.split()) for one in hit.neighbours) for hit in near.hits)
    assert spent <= 50, "neighbours are text, too"


def test_an_explanation_names_terms_arms_and_what_is_missing(engine: perdure.Engine, ana: Memory) -> None:
    ana.append("user", "John Doe rows the boat", metadata={"name": "Mia"})
    ana.remember("Rows a boat", "PEOPLE", entities=["person:John Doe"])
    engine.process()
    ana.append("user", "a boat without vectors", session="new")
    found = ana.recall("Which boat does John Doe row?", explain=True)
    assert found.explanation == found.explain()
    for part in ("terms: ", "boat", "names: person:john_doe", "words ", "not covered: ", found.hits[0].id):
        assert part in found.explanation, part
    for hit in found.hits:
        shares = sum(arm.share for arm in hit.trace.arms.values())
        assert shares == pytest.approx(hit.score, abs=1e-5)
    assert ana.recall("boat").explanation == ""


# -- agents ----------------------------------------------------------------------------------------------------------------


def test_what_is_told_to_one_agent_is_not_found_by_another_s3_39_s3_40_s3_41(engine: perdure.Engine, ana: Memory) -> None:
    companion = engine.memory("ana", agent="companion")
    companion.append("user", "I am afraid of spiders")
    companion.remember("Is afraid of spiders", visible_to="companion")
    companion.remember("Mia is afraid of spiders", "PEOPLE", entities=["person:Mia"], visible_to="companion", pinned=True)
    companion.todos.add("Ask a doctor about spiders")
    companion.instructions.add("Never mention spiders")
    companion.conversation.replace("in short: spiders")
    ana.remember("Keeps spiders at work")
    for _ in range(2):
        assert texts(ana.recall("spiders", limit=50)) == ["Keeps spiders at work"]
        assert ana.recall("Mia and spiders").understood.names == ()
        assert "afraid" not in ana.context("what about Mia and the spiders", budget_tokens=4_000).text
        assert len(companion.recall("spiders", limit=50).hits) >= 6
        engine.process()


def test_what_another_agent_was_told_changes_no_score(engine: perdure.Engine, ana: Memory) -> None:
    for text in ("the boat is blue", "a red car", "blue skies"):
        ana.append("user", text, session=text)
    settle(engine)
    before = scores(ana.recall("blue boat"))
    companion = engine.memory("ana", agent="companion")
    for number in range(10):  # fewer turns than make a spine, which is the user's and so for every agent
        companion.append("user", f"blue boats, blue boats {number}", metadata={"name": "Blue"})
        ana.remember(f"Saw blue boat {number}", visible_to="companion")
    for _ in range(2):
        after = ana.recall("blue boat")
        assert scores(after) == pytest.approx(before, abs=1e-4)
        settle(engine)


def test_vectors_of_what_another_agent_was_told_change_no_score_of_what_waits_for_its_own(
    engine: perdure.Engine, ana: Memory
) -> None:
    ana.remember("Owns a blue boat")
    before = scores(ana.recall("blue boat"))
    ana.forget(user=True)
    ana.remember("Saw a red car", visible_to="companion")
    engine.process()
    ana.remember("Owns a blue boat")
    assert scores(ana.recall("blue boat")) == pytest.approx(before, abs=1e-4)


# -- cards: T-40, S3-22, S3-23, B-48 ------------------------------------------------------------------------------------------


def test_an_entity_card_has_the_two_facts_that_matter_and_nothing_is_repeated_t_40(
    engine: perdure.Engine, ana: Memory, clock: StoppedClock
) -> None:
    ana.remember("Works at Google", "PEOPLE", pinned=True, **JOHN)
    clock.move(minutes=1)
    ana.remember("Lives in London", "PEOPLE", importance=2, **JOHN)
    clock.move(minutes=1)
    ana.remember("Plays chess", "PEOPLE", importance=1, **JOHN)
    engine.process()
    context = ana.context("What do I know about John?", budget_tokens=4_000)
    assert block(context, "memories").splitlines()[0] == "[person:john]: Works at Google; Lives in London"
    for fact in ("Google", "London", "chess"):
        assert context.text.count(fact) <= 1, f"{fact} is told twice"


def test_cards_stand_on_top_of_what_was_found_s3_23(engine: perdure.Engine, ana: Memory) -> None:
    ana.append("user", "we spoke about rowing with John", session="old")
    ana.remember("John rows on Sundays", "PEOPLE", importance=2, **JOHN)
    ana.remember("Mia rows, too", "PEOPLE", importance=3, entities=["person:Mia"])
    ana.append("user", "hello", session="new")
    engine.process()
    lines = block(ana.context("who is rowing?", budget_tokens=4_000), "memories").splitlines()
    cards = [line for line in lines if line.startswith("[")]
    assert set(cards) == {"[person:john]: John rows on Sundays", "[person:mia]: Mia rows, too"}
    assert lines[: len(cards)] == cards
    assert any("we spoke about rowing" in line for line in lines[len(cards) :])


def test_a_card_has_the_three_weightiest_facts_pinned_first_then_the_newest_s3_22(
    engine: perdure.Engine, ana: Memory, clock: StoppedClock
) -> None:
    told: list[tuple[str, str, int, bool]] = [
        ("Rows boats old", "fact", 2, False),
        ("Rows boats pinned", "preference", 1, True),
        ("Rows boats minor", "habit", 1, False),
        ("Rows boats weighty", "relationship", 3, False),
        ("Rows boats new", "friction", 2, False),
    ]
    for content, kind, importance, pinned in told:
        ana.remember(content, "PEOPLE", fact_type=kind, importance=importance, pinned=pinned, **JOHN)  # type: ignore[arg-type]
        clock.move(days=1)
    context = ana.context("who rows boats?", budget_tokens=4_000)
    assert block(context, "memories").splitlines()[0] == (
        "[person:john]: Rows boats pinned; Rows boats weighty; Rows boats new"
    )
    for content, *_ in told:
        assert context.text.count(content) <= 1


def test_a_card_brings_facts_that_were_not_found_themselves_s3_22(engine: perdure.Engine, ana: Memory) -> None:
    ana.remember("John rows boats", "PEOPLE", importance=1, **JOHN)
    ana.remember("Is allergic to nuts", "PEOPLE", importance=3, fact_type="preference", **JOHN)
    found = ana.recall("who rows boats?")
    assert "Is allergic to nuts" not in texts(found)
    assert "[person:john]: Is allergic to nuts" in block(ana.context("who rows boats?"), "memories")


def test_a_memory_with_two_references_stands_on_one_card_b_48(engine: perdure.Engine, ana: Memory) -> None:
    both = {"entities": ["person:John", "person:Mia"]}
    ana.remember("John and Mia row boats", "PEOPLE", importance=2, pinned=True, **both)  # type: ignore[arg-type]
    ana.remember("Mia has a boat", "PEOPLE", importance=2, entities=["person:Mia"])
    context = ana.context("who has boats to row?", budget_tokens=4_000)
    assert context.text.count("John and Mia row boats") == 1
    assert context.text.count("Mia has a boat") == 1


def test_closed_and_foreign_facts_do_not_keep_a_pinned_one_off_its_card_x_25(ana: Memory, clock: StoppedClock) -> None:
    ana.remember("John is the best man", "PEOPLE", pinned=True, fact_type="relationship", **JOHN)
    for number in range(220):
        clock.move(minutes=1)
        town = f"Town {number}"
        ana.remember(
            f"Lives in {town}",
            "PEOPLE",
            subject="person:John",
            attribute="lives_in",
            value=town,
            visible_to="companion" if number % 2 else None,
            **JOHN,
        )
    assert "John is the best man" in block(ana.context("where does John live?", budget_tokens=4_000), "memories")


def test_a_statement_that_came_from_a_message_still_makes_a_card_s3_22(engine: perdure.Engine, ana: Memory) -> None:
    """The message may be the better hit: then it stands for the statement, whose entities count all the same."""
    ana.append("user", "My cofounder John works at Google.", session="old")
    engine.process()
    [work] = [one for one in ana.memories.list() if "Google" in one.content]
    ana.memories.edit(work.memory.record_key, importance=2)
    ana.append("user", "hello", session="new")
    engine.process()
    for question in ("John works at Google", "my cofounder John works at Google", "where does John work?"):
        context = ana.context(question, budget_tokens=4_000)
        assert "[person:john]: " in block(context, "memories"), question


# -- T-41, X-26, X-35, X-46: what always belongs into a context ----------------------------------------------------------------


def test_twenty_of_twenty_five_pinned_are_shown_and_the_rest_is_named_and_searchable_t_41_x_26(
    engine: perdure.Engine, ana: Memory, clock: StoppedClock
) -> None:
    for number in range(25):
        ana.remember(f"Pinned fact number {number} about {ANIMALS[number]}s", pinned=True)
        clock.move(minutes=1)
    engine.process()
    ana.memories.curate()
    context = ana.context(budget_tokens=20_000)
    lines = block(context, "foundation").splitlines()
    assert lines == [f"- Pinned fact number {number} about {ANIMALS[number]}s" for number in range(20)]
    assert any("5 of 25" in one for one in context.dropped)
    assert len(ana.memories.list(pinned=True)) == 25
    assert {(one.memory.status, one.memory.importance) for one in ana.memories.list(pinned=True)} == {("ACTIVE", 3)}
    for number in (0, 24):
        assert texts(ana.recall(ANIMALS[number]))[0] == f"Pinned fact number {number} about {ANIMALS[number]}s"
    sought = ana.context(f"what about the {ANIMALS[22]}s", budget_tokens=20_000)
    assert sought.text.count(f"number 22 about {ANIMALS[22]}s") == 1


def test_the_foundation_and_what_was_found_tell_nothing_twice_b_48(engine: perdure.Engine, ana: Memory) -> None:
    ana.remember("Owns a boat called Nellie", pinned=True)
    ana.remember("Sails the boat on Sundays")
    engine.process()
    context = ana.context("what about the boat?", budget_tokens=4_000)
    assert (context.text.count("Nellie"), context.text.count("on Sundays")) == (1, 1)
    assert {"foundation", "memories"} == {one.kind for one in context.blocks}


def test_what_is_due_is_told_once_b_48(ana: Memory, clock: StoppedClock) -> None:
    ana.todos.add("Paint the boat", due_at=clock.now() + timedelta(hours=2))
    context = ana.context("what about the boat?", budget_tokens=4_000)
    assert context.text.count("Paint the boat") == 1


def test_instructions_and_lessons_are_told_without_being_asked_for_x_35(
    open_: Open, tmp_path: Path, clock: StoppedClock
) -> None:
    layers = perdure.Layers(history_messages_max=4, fold_messages_min=3)
    summariser = ScriptedSummariser(lessons=["Never deploy on Fridays"])
    engine = open_(files_dir=str(tmp_path / "files"), profile="complete", layers=layers, summariser=summariser)
    ana = engine.memory("ana", agent="coach")
    for number in range(8):
        ana.append("user", f"line {number}")
    ana.context()
    ana.instructions.add("Always answer in French")
    for goal in (None, "something else entirely", "when do I deploy?"):
        context = ana.context(goal, budget_tokens=4_000)
        assert context.text.count("Never deploy on Fridays") == 1, goal
        assert context.text.count("Always answer in French") == 1, goal


def test_lessons_beyond_their_budget_are_chosen_by_the_goal_x_35(open_: Open, tmp_path: Path) -> None:
    layers = perdure.Layers(history_messages_max=4, fold_messages_min=3)
    lessons = [f"Feed the {animal} before noon, and never after it has begun to rain" for animal in ANIMALS]
    summariser = ScriptedSummariser(lessons=lessons)
    engine = open_(files_dir=str(tmp_path / "files"), profile="complete", layers=layers, summariser=summariser)
    ana = engine.memory("ana", agent="coach")
    for number in range(8):
        ana.append("user", f"line {number}")
    ana.context()
    engine.process()
    context = ana.context("when does the stork eat?", budget_tokens=1_000)
    assert "stork" in block(context, "lessons")
    assert any("Lessons" in one for one in context.dropped)


def test_of_two_statements_that_clash_the_newest_comes_first_with_its_date_x_46(
    engine: perdure.Engine, ana: Memory, clock: StoppedClock
) -> None:
    """Of sentences in which no attribute is read: with one, the newer would close the older."""
    older = ana.remember("Home is Austin", entities=["place:Austin"])
    clock.move(days=30)
    newer = ana.remember("Home is Seattle", entities=["place:Seattle"])
    assert older.statement is not None
    assert older.statement.attribute is None
    assert newer.statement is not None
    assert newer.statement.attribute is None
    ana.memories.curate()
    engine.process()
    assert texts(ana.recall("where is the home of the user?", kinds=["memory"])) == ["Home is Seattle", "Home is Austin"]
    told = ana.context("where is the home of the user?", budget_tokens=4_000).text
    assert told.index("Seattle") < told.index("Austin")
    assert all(day in told for day in ("2026-01-05", "2026-02-04"))


# -- B-44: changed text -------------------------------------------------------------------------------------------------------


def test_a_changed_value_is_found_by_its_new_words_and_not_by_the_old_b_44(
    engine: perdure.Engine, ana: Memory, embedder: ScriptedEmbedder
) -> None:
    ana.state.save("favourite", "zebra")
    ana.series("trips", description="rides on the zebra").merge([])
    engine.process()
    assert {hit.kind for hit in ana.recall("zebra").hits} == {"state", "series"}
    first = {(row[2], row[3]): row[4] for row in table(engine, "index_vectors")}
    ana.state.save("favourite", "lion")
    ana.series("trips").configure(description="rides on the lion")
    for _ in range(2):
        assert ana.recall("zebra", kinds=["state", "series"]).hits == () or all(
            "zebra" not in hit.text for hit in ana.recall("zebra").hits
        )
        assert not any("words" in hit.trace.arms for hit in ana.recall("zebra").hits)
        assert {hit.kind for hit in ana.recall("lion").hits if "words" in hit.trace.arms} == {"state", "series"}
        engine.process()
    second = {(row[2], row[3]): row[4] for row in table(engine, "index_vectors")}
    assert not first.keys() & second.keys(), "the vectors of the old words are gone, and new ones were made"
    assert {name for name, _ in second} == {"scripted/1/16"}
    assert any("lion" in text for kind, text in embedder.asked if kind == "passage")


def test_what_was_forgotten_is_not_found_by_its_words_b_44(engine: perdure.Engine, ana: Memory) -> None:
    ana.append("user", "Zephyrine keeps bees in Lyon", id="m1")
    ana.remember("Keeps bees in Lyon", "PEOPLE", entities=["person:Zephyrine"])
    engine.process()
    assert len(ana.recall("Zephyrine").hits) >= 1
    ana.forget(entity="person:Zephyrine")
    for _ in range(2):
        assert not any("words" in hit.trace.arms for hit in ana.recall("Zephyrine").hits)
        assert "Zephyrine" not in repr(ana.recall("who keeps bees in Lyon?").hits)
        engine.process()
    assert engine.verify().clean


def test_a_digest_is_found_in_its_newest_version_and_when_undone_in_the_one_before(ana: Memory) -> None:
    ana.append("user", "hello")
    ana.conversation.replace("in short: the zebra")
    ana.append("user", "more")
    ana.conversation.replace("in short: the lion")
    assert texts(ana.recall("zebra", kinds=["digest"])) == []
    assert texts(ana.recall("lion", kinds=["digest"])) == ["in short: the lion"]
    ana.conversation.undo()
    assert texts(ana.recall("zebra", kinds=["digest"])) == ["in short: the zebra"]
    assert texts(ana.recall("lion", kinds=["digest"])) == []


def test_what_is_undone_is_not_found_and_comes_back_when_that_is_undone(ana: Memory) -> None:
    ana.remember("Keeps a zebra")
    undone = ana.undo(ana.journal.list(1)[0].seq)
    assert texts(ana.recall("zebra")) == []
    ana.undo(undone)
    assert texts(ana.recall("zebra")) == ["Keeps a zebra"]


def test_an_archived_memory_that_was_undone_and_done_again_stays_archived(engine: perdure.Engine, ana: Memory) -> None:
    key = ana.remember("Keeps a zebra").statement.memory  # type: ignore[union-attr]
    ana.memories.archive(key)
    undone = ana.undo(1, cascade=True)
    ana.undo(undone)
    assert [one.memory.status for one in ana.memories.list(archived=True)] == ["ARCHIVED"]
    assert texts(ana.recall("zebra")) == []
    ana.admin.reindex()
    assert texts(ana.recall("zebra")) == []


# -- doubles -------------------------------------------------------------------------------------------------------------------


def test_a_statement_and_its_message_are_one_hit(engine: perdure.Engine, ana: Memory) -> None:
    said = ana.append("user", "My sister Rachel lives in Seattle.")
    engine.process()
    assert ana.memories.list(), "something was learned"
    found = ana.recall("where does Rachel live?", limit=50)
    about = [hit for hit in found.hits if "Seattle" in hit.text and hit.kind in ("message", "memory")]
    assert len(about) == 1
    assert said.id in (*about[0].sources, about[0].id)
    assert any("says the same" in reason for reason in about[0].trace.why)


def test_no_thing_is_found_twice(engine: perdure.Engine, ana: Memory, clock: StoppedClock) -> None:
    for number in range(30):
        ana.append("user", f"boat number {number}")
        ana.remember("Owns a boat")
        clock.move(minutes=1)
        if number % 7 == 0:
            engine.process()
    names = Counter((hit.kind, hit.id) for hit in ana.recall("boat", limit=100).hits)
    assert set(names.values()) == {1}


def test_a_thing_that_changes_after_it_was_packed_is_found_once_and_as_it_is_now(
    open_: Open, clock: StoppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pack is a copy of old entries: whoever reads it must know which of them are over, however often they changed."""
    monkeypatch.setattr(job, "PACK_ITEMS", 4)
    engine = open_()
    ana = engine.memory("ana")
    for animal in ANIMALS[:5]:
        ana.remember(f"Keeps a {animal}")
    engine.process()
    assert table(engine, "index_packs"), "there is a pack"
    for round_ in range(3):
        clock.move(days=1)
        ana.remember("Keeps a zebra")
        for reader in (engine, open_()):
            found = reader.memory("ana").recall("zebra")
            assert [hit.at for hit in found.hits if hit.text == "Keeps a zebra"] == [clock.now()], round_
    ana.memories.archive(next(one.memory.record_key for one in ana.memories.list() if "zebra" in one.content))
    for reader in (engine, open_()):
        assert "Keeps a zebra" not in texts(reader.memory("ana").recall("zebra"))
    engine.process()
    for reader in (engine, open_()):
        assert "Keeps a zebra" not in texts(reader.memory("ana").recall("zebra"))
    assert engine.verify().clean


def test_what_is_forgotten_while_it_is_packed_is_in_no_pack(
    open_: Open, clock: StoppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even as a hash: whoever has the pack could ask whether a name was in it."""
    monkeypatch.setattr(job, "PACK_ITEMS", 4)
    engine = open_()
    ana = engine.memory("ana")
    for _ in range(3):
        ana.remember("Zephyrine keeps bees", "PEOPLE", entities=["person:Zephyrine"])
        clock.move(days=1)
    for number in range(4):
        ana.append("user", f"line {number}")
    plain, forgotten = segments.to_pack, []

    def meanwhile(segment: Any) -> bytes:
        if not forgotten:
            forgotten.append(ana.forget(entity="person:Zephyrine"))
        return plain(segment)

    monkeypatch.setattr(segments, "to_pack", meanwhile)
    engine.process()
    assert forgotten
    hashes = [term_hash(term).to_bytes(8, "little") for term in lexemes("Zephyrine bees")]
    for name in ("index_entries", "index_packs"):
        assert not [row[:4] for row in table(engine, name) for one in hashes if one in row[-1]], name


def test_what_changes_often_does_not_make_the_index_grow_without_bound(
    engine: perdure.Engine, ana: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "GONE_MAX", 10)
    for number in range(60):
        ana.state.save("counter", number)
        if number % 20 == 0:
            engine.process()
    engine.process()
    assert len(table(engine, "index_entries")) < 30
    for _ in range(3):
        ana.admin.reindex()
    assert len(table(engine, "index_entries")) < 30


# -- what an answer does not cover -------------------------------------------------------------------------------------------------


def test_entries_without_vectors_are_found_by_their_words_and_counted(engine: perdure.Engine, ana: Memory) -> None:
    ana.append("user", "the boat")
    found = ana.recall("boat")
    assert (texts(found), found.uncovered) == (["the boat"], Uncovered(waiting=1))
    engine.process()
    assert ana.recall("boat").uncovered.nothing
    ana.append("user", "another boat")
    ana.remember("Owns a boat")
    found = ana.recall("boat")
    assert (len(found.hits), found.uncovered.waiting) == (3, 2)
    assert "2 new entries" in found.uncovered.lines()[0]
    assert any("2 new entries" in note for note in ana.context("boat").notes)
    engine.process()
    assert ana.recall("boat").uncovered.nothing


def test_where_meaning_is_not_compared_nothing_waits_and_words_do(open_: Open) -> None:
    engine = open_(setting="none")
    ana = engine.memory("ana")
    ana.append("user", "the boat")
    for _ in range(2):
        found = ana.recall("boat")
        assert (texts(found), found.uncovered.nothing) == (["the boat"], True)
        engine.process()
    assert table(engine, "index_vectors") == []


def test_series_that_fit_name_what_they_do_not_hold_of_the_time_asked_for(ana: Memory) -> None:
    series = ana.series("kudos_given", description="kudos given per week")
    series.merge([{"id": 1, "timestamp": "2025-01-03"}], window=("2025-01-01", "2025-01-10"))
    since, until = datetime(2025, 1, 5, tzinfo=UTC), datetime(2025, 2, 1, tzinfo=UTC)
    named = ana.recall("kudos given", since=since, until=until)
    for found in (named, ana.recall("kudos given from 2025-01-05 to 2025-01-31")):
        assert [hit.id for hit in found.hits] == ["kudos_given"]
        [gap] = found.uncovered.gaps
        assert (gap.series, gap.spans[0].start) == ("kudos_given", datetime(2025, 1, 10, tzinfo=UTC))
        assert any("kudos_given" in line for line in found.uncovered.lines())
    held = {"since": datetime(2025, 1, 2, tzinfo=UTC), "until": datetime(2025, 1, 9, tzinfo=UTC)}
    assert ana.recall("kudos given", **held).uncovered.gaps == ()
    assert ana.recall("kudos given").uncovered.gaps == ()
    told = block(ana.context("kudos given in January 2025"), "series")
    assert "kudos_given" in told
    assert "2025-01-10" in told


@pytest.mark.parametrize("where", ["embed", "dims"])
def test_an_embedder_that_is_down_degrades_the_answer_and_says_so(
    engine: perdure.Engine, ana: Memory, embedder: ScriptedEmbedder, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana.append("user", "the boat")
    engine.process()
    if where == "dims":
        embedder.down = True
    else:

        def fail(*_args: object, **_fields: object) -> Any:
            raise Unavailable("the embedder does not answer; try later", retry_after_s=1)

        monkeypatch.setattr(embedder, "embed", fail)
    found = ana.recall("boat")
    assert texts(found) == ["the boat"]
    assert found.uncovered.degraded is not None
    assert "does not answer" in found.uncovered.degraded
    assert any("meaning" in line for line in found.explain().splitlines() if "not covered" in line)
    ana.append("user", "another boat")
    assert len(ana.recall("boat").hits) == 2
    engine.process()
    monkeypatch.undo()
    embedder.down = False
    told = ana.recall("boat").uncovered.degraded
    assert told is None or told.startswith("vectors could not be made"), "the question itself is understood again"
    assert ana.context("boat").text


def test_the_index_job_waits_for_an_embedder_that_is_down(
    engine: perdure.Engine, ana: Memory, embedder: ScriptedEmbedder, clock: StoppedClock
) -> None:
    embedder.down = True
    ana.append("user", "the boat")
    engine.process()
    assert texts(ana.recall("boat")) == ["the boat"]
    embedder.down = False
    clock.move(hours=1)
    engine.process()
    assert ana.recall("boat").uncovered.nothing
    assert engine.verify().clean


def test_old_data_is_named_until_its_job_has_run_after_a_restore(
    backend: Any, open_: Open, clock: StoppedClock, tmp_path: Path
) -> None:
    engine = open_()
    ana = engine.memory("ana", agent="coach")
    everything(engine, ana)
    settle(engine)
    before = scores(ana.recall("boat", limit=50))
    report = engine.backup(tmp_path / "b")
    assert not any(name.startswith("index_") for name in report.rows), "a backup has no index"
    perdure.restore(report.path, settings=backend.settings, replace=True)
    ana.append("user", "a new boat", session="new")
    found = ana.recall("boat", limit=50)
    assert found.uncovered.unindexed
    assert texts(found) == ["a new boat"]
    assert any("older data" in line for line in found.uncovered.lines())
    settle(engine)
    found = ana.recall("boat", limit=50)
    assert (found.uncovered.nothing, {*before, "a new boat"} <= {*texts(found)}) == (True, True)
    perdure.restore(report.path, settings=backend.settings, replace=True)
    assert ana.recall("boat").uncovered.unindexed
    settle(engine)
    found = ana.recall("boat", limit=50)
    assert (found.uncovered.nothing, scores(found)) == (True, pytest.approx(before, abs=1e-3))
    assert engine.verify().clean


def test_an_engine_that_stays_open_notices_a_restore(backend: Any, open_: Open, tmp_path: Path) -> None:
    engine = open_()
    ana = engine.memory("ana")
    ana.append("user", "the zebra")
    report = engine.backup(tmp_path / "b")
    ana.append("user", "the lion")
    assert texts(ana.recall("lion", kinds=["message"]))[0] == "the lion"
    perdure.restore(report.path, settings=backend.settings, replace=True)
    engine.process()
    assert "the lion" not in texts(ana.recall("lion"))
    assert texts(ana.recall("zebra")) == ["the zebra"]


def test_a_forgotten_user_is_not_found_and_may_begin_anew(engine: perdure.Engine, ana: Memory) -> None:
    ana.append("user", "the zebra")
    engine.process()
    assert ana.recall("zebra").hits
    ana.forget(user=True)
    assert ana.recall("zebra").hits == ()
    assert all(not table(engine, name) for name in TABLES if name.startswith("index_"))
    ana.append("user", "the lion")
    assert (texts(ana.recall("lion")), texts(ana.recall("zebra"))) == (["the lion"], [])


# -- another embedder ------------------------------------------------------------------------------------------------------------


def test_vectors_are_made_anew_for_another_embedder_while_the_old_ones_answer(open_: Open, clock: StoppedClock) -> None:
    """From the built-in one to another: until the last vector is made, the built-in one's answer, and nothing is degraded."""
    engine = open_(embedder=None)
    ana = engine.memory("ana")
    for text in ("I bought a new car", "the cat sleeps all day", "rain in the mountains"):
        ana.append("user", text, session=text)
    engine.process()
    assert texts(ana.recall("automobile"))[0] == "I bought a new car", "by meaning alone"
    other = ScriptedEmbedder({"automobile": (0, 1), "the cat sleeps all day": (0, 1), "I bought a new car": (1,)}, name="other")
    changed = open_(embedder=other)
    asker = changed.memory("ana")
    found = asker.recall("automobile")
    assert (texts(found)[0], found.uncovered.degraded) == ("I bought a new car", None), "the old vectors answer"
    changed.process()
    found = asker.recall("automobile")
    nearest = max(found.hits, key=lambda hit: hit.trace.arms["meaning"].share if "meaning" in hit.trace.arms else 0.0)
    assert (nearest.text, found.uncovered.nothing) == ("the cat sleeps all day", True)
    assert {row[2] for row in table(changed, "index_vectors")} == {"other/1/16"}, "the old vectors are gone"
    assert changed.verify().clean


def test_another_version_of_an_embedder_is_another_embedder(
    engine: perdure.Engine, ana: Memory, embedder: ScriptedEmbedder
) -> None:
    ana.append("user", "the boat")
    engine.process()
    embedder.version = "2"
    ana.append("user", "more")
    engine.process()
    assert {row[2] for row in table(engine, "index_vectors")} == {"scripted/2/16"}
    assert ana.recall("boat").uncovered.nothing


def test_an_embedder_that_was_given_up_halfway_leaves_nothing(
    engine: perdure.Engine, ana: Memory, embedder: ScriptedEmbedder, clock: StoppedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job, "EMBED_BATCH", 1)
    for number in range(3):
        ana.append("user", f"boat {number}")
    engine.process()
    embedder.name, plain, calls = "second", embedder.embed, []

    def fail_later(batch: Any, **fields: Any) -> Any:
        calls.append(batch)
        if len(calls) > 1:
            raise Unavailable("out of order; try later", retry_after_s=1)
        return plain(batch, **fields)

    monkeypatch.setattr(embedder, "embed", fail_later)
    ana.append("user", "boat 4")
    engine.process()
    monkeypatch.setattr(embedder, "embed", plain)
    embedder.name = "third"
    clock.move(hours=1)
    ana.append("user", "boat 5")
    engine.process()
    assert {row[2] for row in table(engine, "index_vectors")} == {"third/1/16"}


def test_vectors_of_two_embedders_are_never_compared_even_if_one_comes_while_a_question_is_asked(open_: Open) -> None:
    one = ScriptedEmbedder({"apple": (1, 0), "banana": (0, 1), "quux": (1, 0)}, dims=2, name="one")
    other = ScriptedEmbedder({"apple": (0, 1), "banana": (1, 0), "quux": (0, 1)}, dims=2, name="other")
    engine, rival = open_(embedder=one), open_(embedder=other)
    ana = engine.memory("ana")
    for text in ("apple", "banana"):
        ana.remember(text)
    engine.process()
    assert texts(ana.recall("quux", kinds=["memory"]))[0] == "apple"
    plain = one.embed

    def meanwhile(batch: Any, *, kind: str = "passage") -> Any:
        if kind == "query":
            rival.memory("ana").admin.reindex()
        return plain(batch, kind=kind)

    one.embed = meanwhile  # type: ignore[method-assign]
    found = ana.recall("quux", kinds=["memory"])
    assert texts(found)[:1] in ([], ["apple"])
    assert found.uncovered.degraded is not None or texts(found)[:1] == ["apple"]


def test_packs_made_without_an_embedder_are_made_again_with_one(open_: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job, "PACK_ITEMS", 4)
    engine = open_(setting="none")
    for number in range(9):
        engine.memory("ana").append("user", f"boat {number}")
    engine.process()
    assert {row[4] for row in table(engine, "index_packs")} == {""}
    engine = open_()
    engine.memory("ana").append("user", "one more")
    engine.process()
    assert {row[4] for row in table(engine, "index_packs")} == {"scripted/1/16"}
    assert {row[3] for row in table(engine, "index_vectors")} == {row[2] for row in table(engine, "index_entries")}
    found = open_().memory("ana").recall("boat", limit=20)
    assert all("meaning" in hit.trace.arms for hit in found.hits if hit.text == "boat 3")


def test_a_reranker_has_the_last_word_on_the_order(open_: Open) -> None:
    class Backwards:
        name = "backwards/1"

        def rerank(self, question: str, texts: Any) -> list[float]:
            assert question == "boat"
            return [float("fine" in text) for text in texts]

    ana = open_(reranker=Backwards()).memory("ana")
    for text in ("boat boat boat", "a boat", "a fine vessel, that boat, and then a great many other words about the sea"):
        ana.append("user", text, session=text[:8])
    found = ana.recall("boat", limit=1)
    assert "fine" in texts(found)[0]
    assert any("backwards/1" in reason for reason in found.hits[0].trace.why)


# -- both stores --------------------------------------------------------------------------------------------------------------------


def test_both_stores_rank_alike(tmp_path: Path, postgres_url: str, postgres_schema: str) -> None:
    """The same life on SQLite, on PostgreSQL and in memory: the same hits with the same scores for every question."""
    answers = []
    for url in (f"sqlite:///{tmp_path}/p.db", postgres_url, "memory:"):
        clock = StoppedClock(START)
        chosen = perdure.Settings(url=url, postgres_schema=postgres_schema)
        with perdure.open(settings=chosen, clock=clock, embedder=ScriptedEmbedder()) as engine:
            ana = engine.memory("ana", agent="coach")
            for number, animal in enumerate(ANIMALS):
                ana.append("user", f"I saw a {animal} and a Ünïcode {animal[::-1]}", metadata={"name": f"Guide {number % 3}"})
                ana.append("assistant", f"How nice, the {animal}!")
                ana.remember(f"Likes the {animal}", "PEOPLE", entities=[f"person:Guide {number % 3}"], fact_type="preference")
                clock.move(hours=7)
                if number == 12:
                    engine.process()
            everything(engine, ana)
            ana.conversation.delete(ana.conversation.sessions()[3].id)
            questions = ("lion", "what did Guide 2 see?", "boat", "which animals last week?", "likes the otter", "nice")
            answers.append(
                [
                    [(hit.kind, hit.id, round(hit.score, 5), hit.at) for hit in ana.recall(question, limit=50).hits]
                    for question in questions
                ]
            )
    assert answers[0] == answers[1] == answers[2]
    assert all(answers[0])
