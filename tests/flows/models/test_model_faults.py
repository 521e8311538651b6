"""Every fault of a model's server, in every layer that asks one (B-16, B-27, B-50, B-51): no message is lost, the outcome is
typed and counted, a goal goes on, the store verifies, and what waited is done once the fault is over."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner

import perdure
from perdure.domain.models import OUTCOMES, ChatReply, ChatRequest, Usage
from perdure.interfaces.cli.commands import app
from perdure.services.context import assembly
from perdure.services.models import model_backed
from perdure.services.store.doctor import model_troubles
from perdure.settings import Settings
from perdure.testing import StoppedClock
from perdure.testing.model_server import FAULTS, POISON, ScriptedModelServer, answer, answer_well, body, status
from scripted import ScriptedSummariser

pytest.importorskip("httpx2", reason="the extra `models` is not installed")

KEY = "sk-very-secret-4711"
SLOW = ("silent", "drips", "drips_headers")
OUTCOME_OF = {
    **dict.fromkeys(SLOW, "timeout"),
    **dict.fromkeys(("resets", "busy", "ill", "half_answer", "no_json", "huge"), "unavailable"),
    **dict.fromkeys(("half_json", "wrong_schema", "prose", "ambiguous", "empty"), "unreadable"),
    **dict.fromkeys(("refuses", "filtered", "wrong_key", "no_such_model", "redirects"), "refused"),
    "injected": "ok",
}
LAYERS = perdure.Layers(fold_messages_min=6, rolling_turns=2, spine_turns=2, history_messages_max=40)
TALK = [
    ("user", "I live in Austin and my sister is called Maria."),
    ("assistant", "Noted, Austin it is. It is good to hear from you again, and I hope that the two of you are well."),
    ("user", "Please plan the trip to Lisbon for the 14th of May."),
    (
        "assistant",
        "I will look for flights on May 14. There are a few that leave early and a few that leave late; the late ones are cheaper.",
    ),
    ("user", "Never book before 10am. The booking code is QX-4711."),
    (
        "assistant",
        "Understood. The later flights suit that well, and there is time for breakfast before the taxi comes to the door.",
    ),
    ("user", "I will send the report to John by Friday."),
    (
        "assistant",
        "Good luck with it. It sounds like a lot of work, and it will be a relief to have it out of the way before the journey.",
    ),
]
PURPOSES = {"extract", "fold", "rolling", "session", "spine"}
HOUR = 3_600


@pytest.fixture
def server() -> Iterator[ScriptedModelServer]:
    with ScriptedModelServer() as server:
        yield server


@pytest.fixture
def clock() -> StoppedClock:
    return StoppedClock()


def opened(server: ScriptedModelServer, clock: StoppedClock, url: str = "memory:", protocol: str = "openai") -> perdure.Engine:
    settings = Settings(url=url, profile="complete", layers=LAYERS, model=server.setting(protocol, "tiny"), model_key=KEY)
    return perdure.open(settings=settings, clock=clock)


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """Deadlines that a test can wait for; those of faults that answer at once are never reached."""
    fault = request.node.callspec.params.get("fault", "") if hasattr(request.node, "callspec") else ""
    seconds = 0.15 if fault in SLOW else 20.0
    monkeypatch.setattr(model_backed, "CALL_S", seconds)
    monkeypatch.setattr(assembly, "FOLD_S", seconds)
    monkeypatch.setattr("perdure.adapters.wire.PAUSE_S", 0.0)


def talked(ana: perdure.Memory, clock: StoppedClock) -> None:
    for role, content in TALK:
        ana.append(role, content)
        clock.move(seconds=20)


def worked(engine: perdure.Engine, clock: StoppedClock, rounds: int) -> None:
    """Let the jobs run, round after round, an hour apart: longer than any pause after a failure."""
    for _ in range(rounds):
        engine.process(60)
        clock.move(seconds=HOUR)


def contents(ana: perdure.Memory) -> list[str]:
    return [message.content for message in ana.messages(limit=100)]


@pytest.mark.parametrize("fault", FAULTS)
def test_no_fault_costs_a_message_or_a_goal_and_all_is_done_when_it_is_over(
    fault: str, server: ScriptedModelServer, clock: StoppedClock, tmp_path: Path
) -> None:
    with opened(server, clock, f"sqlite:///{tmp_path / 'x.db'}") as engine:
        ana = engine.memory("ana")
        server.always(FAULTS[fault])
        talked(ana, clock)
        started = time.monotonic()
        context = ana.context("Book the trip")
        assert time.monotonic() - started < 15, "the goal waits no longer than the fold may take"
        assert "QX-4711" in context.text, "what could not be folded is there word for word; what was, is pinned"
        worked(engine, clock, 2)
        assert contents(ana) == [content for _, content in TALK]
        assert engine.verify().clean
        usage = {(one.purpose, one.outcome): one.calls for one in ana.admin.usage()}
        assert usage, "every question is counted"
        assert {outcome for _, outcome in usage} <= set(OUTCOMES)
        expected = OUTCOME_OF[fault]
        for purpose in ("fold", "extract", "session", "spine"):
            assert {outcome for asked, outcome in usage if asked == purpose} == {expected}, purpose
        if expected != "ok":
            assert any("calls for `extract` failed" in line for line in engine.doctor().degraded)
            assert not engine.doctor().healthy

        server.always(answer_well)
        worked(engine, clock, 3)
        assert engine.verify().clean
        jobs = [job for job in ana.admin.jobs() if job.state in ("running", "dead") or (job.state == "ready" and job.attempts)]
        assert jobs == [], "nothing is left undone"
        kinds = {
            digest.kind for session in ana.conversation.sessions() for digest in ana.conversation.digests(session=session.id)
        }
        assert {"session", "rolling", "fold"} <= kinds
        assert ana.conversation.digests("spine")
        assert contents(ana) == [content for _, content in TALK]
        assert not any("extract" in line for line in engine.doctor().degraded)


@pytest.mark.parametrize("fault", ["silent", "half_json", "huge", "refuses", "injected", "no_json"])
def test_faults_are_the_same_behind_ollama(fault: str, server: ScriptedModelServer, clock: StoppedClock) -> None:
    with opened(server, clock, protocol="ollama") as engine:
        ana = engine.memory("ana")
        server.always(FAULTS[fault])
        talked(ana, clock)
        assert "QX-4711" in ana.context("Book the trip").text
        worked(engine, clock, 2)
        assert {one.outcome for one in ana.admin.usage() if one.purpose in ("fold", "extract")} == {OUTCOME_OF[fault]}
        assert contents(ana) == [content for _, content in TALK]
        assert engine.verify().clean


@pytest.mark.parametrize("protocol", ["openai", "ollama"])
def test_what_a_prompt_injected_model_answers_becomes_neither_memory_nor_lesson(
    protocol: str, server: ScriptedModelServer, clock: StoppedClock
) -> None:
    with opened(server, clock, protocol=protocol) as engine:
        ana = engine.memory("ana")
        server.always(FAULTS["injected"])
        talked(ana, clock)
        ana.context("Book the trip")
        worked(engine, clock, 2)
        assert all(POISON not in memory.content for memory in ana.memories.list())
        assert all(POISON not in todo.content for todo in ana.todos.list())
        digests = [digest for session in ana.conversation.sessions() for digest in ana.conversation.digests(session=session.id)]
        assert digests
        assert all(digest.lessons == () for digest in digests)


def test_a_model_that_stays_ill_is_stood_in_for_by_the_rules(server: ScriptedModelServer, clock: StoppedClock) -> None:
    """After its last try: what was said is learned, and the session is told, by rules; nothing is given up."""
    with opened(server, clock) as engine:
        ana = engine.memory("ana")
        server.always(FAULTS["ill"])
        talked(ana, clock)
        worked(engine, clock, 12)
        assert "Lives in Austin" in [memory.content for memory in ana.memories.list()]
        assert ana.journal.list(limit=200)
        assert any(one.actor == "rules/1" for one in ana.journal.list(limit=500))
        [session] = ana.conversation.sessions()
        [digest] = ana.conversation.digests("session", session=session.id)
        assert digest.fallback
        assert digest.summariser.startswith("extractive/")
        assert contents(ana) == [content for _, content in TALK]
        assert engine.verify().clean


def test_a_server_that_asks_for_a_pause_is_left_alone_for_so_long(server: ScriptedModelServer, clock: StoppedClock) -> None:
    with opened(server, clock) as engine:
        ana = engine.memory("ana")
        ana.append("user", "I live in Austin.")
        server.always(status(429, retry_after="1800"))
        engine.process(60)
        [job] = [job for job in ana.admin.jobs() if job.kind == "extract"]
        assert (job.state, job.attempts) == ("ready", 1)
        assert job.due_at == clock.now() + timedelta(seconds=1_800)
        asked = len(server.asked)
        clock.move(seconds=1_700)
        engine.process(60)
        assert len(server.asked) == asked


def test_a_model_that_works_writes_the_layers_with_schemas(server: ScriptedModelServer, clock: StoppedClock) -> None:
    with opened(server, clock, protocol="ollama") as engine:
        ana = engine.memory("ana")
        talked(ana, clock)
        server.script(
            answer({"context": "They plan a trip to Lisbon.", "lessons": ["Check the calendar before booking", "None."]})
        )
        assert "They plan a trip to Lisbon." in ana.context().text
        [fold] = ana.conversation.digests("fold")
        assert (fold.summariser, fold.lessons) == ("tiny", ("Check the calendar before booking",))
        worked(engine, clock, 2)
        assert {one.purpose for one in ana.admin.usage()} == PURPOSES
        assert {one.outcome for one in ana.admin.usage()} == {"ok"}
        schemas = [asked.schema for asked in server.asked]
        assert sum(schema is None for schema in schemas) == sum(
            one.calls for one in ana.admin.usage() if one.purpose == "rolling"
        )
        assert all(asked.body["truncate"] is False for asked in server.asked)
        assert engine.doctor().model == "tiny"
        assert not any(line.startswith("model") for line in engine.doctor().degraded)


def test_what_the_model_proposes_is_learned_with_its_evidence(server: ScriptedModelServer, clock: StoppedClock) -> None:
    proposal = {
        "n": 1,
        "quote": "I live in Austin",
        "type": "PROFILE",
        "fact_type": "fact",
        "content": "Lives in Austin",
        "entities": [{"type": "place", "label": "Austin"}],
        "attribute": "lives_in",
        "value": "Austin",
        "ended": False,
        "corrects": False,
        "confidence": 0.9,
    }
    with opened(server, clock) as engine:
        ana = engine.memory("ana")
        ana.append("user", "I live in Austin and my sister is called Maria.")
        server.script(answer({"proposals": [proposal, {**proposal, "quote": "I live in Paris"}], "todos": []}))
        learned = ana.memories.extract()
        assert [outcome.verdict for outcome in learned.outcomes] == ["added"]
        assert ana.journal.list()[0].actor == "tiny"
        assert [(one.purpose, one.outcome, one.tokens_in) for one in ana.admin.usage()] == [("extract", "ok", 11)]


def test_a_model_is_not_asked_where_surely_nothing_is_told(server: ScriptedModelServer, clock: StoppedClock) -> None:
    with opened(server, clock) as engine:
        ana = engine.memory("ana")
        ana.append("user", "what is the capital of france")
        ana.append("assistant", "Paris.")
        ana.append("user", "haha nice one, thanks!")
        assert ana.memories.extract().outcomes == ()
        assert server.asked == []


def test_an_answer_to_a_question_is_always_shown_to_the_model(server: ScriptedModelServer, clock: StoppedClock) -> None:
    with opened(server, clock) as engine:
        ana = engine.memory("ana")
        ana.append("assistant", "Do you live in Austin?")
        ana.append("user", "haha nice one")
        server.script(answer({"proposals": [], "todos": []}))
        ana.memories.extract()
        assert len(server.asked) == 1


def test_a_long_talk_is_shown_in_portions_that_fit_a_small_model(server: ScriptedModelServer, clock: StoppedClock) -> None:
    with opened(server, clock) as engine:
        ana = engine.memory("ana")
        for number in range(8):
            ana.append("user", f"Number {number}. " + "The quick brown fox jumps over the lazy dog. " * 150)
        ana.memories.extract()
        shown = [len(asked.body["messages"][0]["content"]) for asked in server.asked]
        assert len(shown) >= 4
        assert max(shown) < 22_000


def test_the_key_is_not_in_the_database(server: ScriptedModelServer, clock: StoppedClock, tmp_path: Path) -> None:
    quoting = {"error": {"message": f"the key {KEY} is wrong", "code": KEY, "param": KEY}}
    with opened(server, clock, f"sqlite:///{tmp_path / 'x.db'}") as engine:
        ana = engine.memory("ana")
        for act in (status(401, quoting), status(400, quoting), body(KEY.encode()), status(500, quoting)):
            server.always(act)
            talked(ana, clock)
            notes = ana.context("Book the trip").notes
            assert KEY not in repr(notes)
            worked(engine, clock, 2)
        assert KEY not in repr(engine.doctor())
        assert KEY not in repr(ana.admin.jobs())
        assert KEY not in repr(engine._settings)
        assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"
    for path in tmp_path.iterdir():
        assert KEY.encode() not in path.read_bytes(), path.name


class Hanging:
    """A host's model that never answers and knows no deadline."""

    name = "hanging"

    def __init__(self) -> None:
        self.release = threading.Event()

    def chat(self, request: ChatRequest) -> ChatReply:
        self.release.wait(60)
        return ChatReply("{}")


@pytest.mark.parametrize("fault", ["silent"])  # for its short deadlines
def test_a_hosts_model_that_hangs_holds_up_no_goal(fault: str, clock: StoppedClock) -> None:
    """B-27: the goal runs with what there is; the fold is left to a job."""
    model = Hanging()
    settings = Settings(url="memory:", profile="complete", layers=LAYERS)
    try:
        with perdure.open(settings=settings, clock=clock, model=model) as engine:
            ana = engine.memory("ana")
            talked(ana, clock)
            started = time.monotonic()
            context = ana.context("Book the trip")
            assert time.monotonic() - started < 5
            assert any("request_fold" in note for note in context.notes)
            worked(engine, clock, 1)
            assert {one.outcome for one in ana.admin.usage()} <= {"timeout", "unavailable"}
            assert contents(ana) == [content for _, content in TALK]
    finally:
        model.release.set()


def test_a_fold_that_waits_for_its_next_try_is_not_waited_for_by_every_request(
    server: ScriptedModelServer, clock: StoppedClock
) -> None:
    """B-27: a model that hangs costs one request its patience, not all of them."""
    with opened(server, clock) as engine:
        ana = engine.memory("ana")
        server.always(FAULTS["ill"])
        talked(ana, clock)
        assert any("the summariser failed" in note for note in ana.context("Book the trip").notes)
        engine.process(60)
        folds = [one.calls for one in ana.admin.usage() if one.purpose == "fold"]
        context = ana.context("Book the trip")
        assert any("request_fold: left to its job" in note for note in context.notes)
        assert [one.calls for one in ana.admin.usage() if one.purpose == "fold"] == folds, "no model was asked again"
        assert "QX-4711" in context.text
        server.always(answer_well)
        clock.move(seconds=600)
        assert not any("fold" in note for note in ana.context("Book the trip").notes)
        assert ana.conversation.digests("fold")


def test_no_model_is_a_mode_of_its_own(clock: StoppedClock) -> None:
    with perdure.open(settings=Settings(url="memory:", profile="complete", layers=LAYERS), clock=clock) as engine:
        ana = engine.memory("ana")
        talked(ana, clock)
        ana.context("Book the trip")
        worked(engine, clock, 2)
        assert ana.admin.usage() == []
        report = engine.doctor()
        assert (report.model, report.models) == ("", ())
        assert not any("model" in line for line in report.degraded)


def test_what_the_host_brings_comes_before_the_model(server: ScriptedModelServer, clock: StoppedClock) -> None:
    summariser = ScriptedSummariser()
    settings = Settings(url="memory:", profile="complete", layers=LAYERS, model=server.setting("openai", "tiny"))
    with perdure.open(settings=settings, clock=clock, summariser=summariser) as engine:
        ana = engine.memory("ana")
        talked(ana, clock)
        ana.context()
        worked(engine, clock, 1)
        assert summariser.requests[0].owner == ana.scope.owner
        assert {one.purpose for one in ana.admin.usage()} == {"extract"}


@pytest.mark.parametrize("wrong", ["gpt", 5, object()])
def test_what_is_no_model_is_refused_at_once(wrong: object) -> None:
    with pytest.raises(perdure.InvalidInput, match="chat"):
        perdure.open("memory:", model=wrong)  # type: ignore[arg-type]


# -- what the doctor says


def usage(purpose: str, outcome: str, calls: int, minutes_ago: float) -> Usage:
    return Usage(purpose, outcome, calls, 10, 5, 100.0, NOW - timedelta(minutes=minutes_ago))


NOW = datetime(2026, 1, 5, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("counts", "lines"),
    [
        ([], []),
        ([usage("extract", "ok", 20, 1)], []),
        (
            [usage("extract", "ok", 8, 5), usage("extract", "timeout", 12, 1)],
            ["12 of 20 calls for `extract` failed, last: timeout"],
        ),
        (
            [usage("extract", "ok", 99, 5), usage("extract", "refused", 1, 1)],
            ["1 of 100 calls for `extract` failed, last: refused"],
        ),
        ([usage("extract", "ok", 99, 1), usage("extract", "refused", 1, 5)], []),
        (
            [usage("fold", "repaired", 9, 1), usage("fold", "unreadable", 9, 5)],
            ["9 of 18 calls for `fold` failed, last: unreadable"],
        ),
        ([usage("fold", "repaired", 9, 1), usage("fold", "unreadable", 9, 3_000)], []),
        ([usage("fold", "ok", 1, 1), usage("fold", "unreadable", 3, 5)], []),
        ([usage("spine", "unavailable", 1, 1), usage("fold", "timeout", 1, 1)], ["`fold`", "`spine`"]),
    ],
)
def test_the_doctor_names_what_fails_and_a_remedy(counts: list[Usage], lines: list[str]) -> None:
    found = model_troubles(counts, NOW)
    assert len(found) == len(lines)
    for line, expected in zip(found, lines, strict=True):
        assert expected in line
        assert line.startswith("model: ")


def test_the_doctor_of_the_command_line_shows_what_models_were_asked(
    server: ScriptedModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path / 'x.db'}"
    monkeypatch.setenv("PERDURE_MODEL", server.setting("openai", "tiny"))
    monkeypatch.setenv("PERDURE_MODEL_KEY", KEY)
    server.always(FAULTS["wrong_key"])
    with perdure.open(url) as engine:
        engine.memory("ana").append("user", "I live in Austin")
        with pytest.raises(perdure.Unavailable):
            engine.memory("ana").memories.extract()
    shown = CliRunner().invoke(app, ["--url", url, "doctor"])
    assert shown.exit_code == 9
    assert "model: tiny" in shown.output
    assert "model calls for extract: 1 refused" in shown.output
    assert "`model_key`" in " ".join(shown.output.split())
    as_json = CliRunner().invoke(app, ["--url", url, "--json", "doctor"])
    [counted] = json.loads(as_json.output)["models"]
    assert (counted["purpose"], counted["outcome"], counted["calls"]) == ("extract", "refused", 1)
    config = CliRunner().invoke(app, ["admin", "config", "list"])
    assert all(KEY not in one.output for one in (shown, as_json, config))
