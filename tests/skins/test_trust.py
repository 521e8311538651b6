"""The agent's word on every face: MCP, an API key that is marked as an agent's, and what people decide with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

import perdure
from in_process import InProcess
from perdure.interfaces.mcp import sets
from perdure.interfaces.mcp.callers import LocalCaller
from perdure.interfaces.server import build
from perdure.interfaces.serving.options import Options
from perdure.settings import Settings
from perdure.testing import StoppedClock

HOME = "/v1/users/ana"


@pytest.fixture
def engine() -> Iterator[perdure.Engine]:
    with perdure.open(settings=Settings(url="memory:", user="ana"), clock=StoppedClock()) as opened:
        yield opened


@pytest.fixture
def ana(engine: perdure.Engine) -> perdure.Memory:
    memory = engine.memory("ana")
    memory.remember("Lives in Porto")
    return memory


def tool(engine: perdure.Engine, name: str, **params: Any) -> Any:
    ana = engine.memory("ana")
    offers = {one.name: one for one in sets.offers(ana.tools, "all")}
    return offers[name].run(LocalCaller(engine, ana), params)


def proposed(engine: perdure.Engine) -> str:
    tool(engine, "remember", content="Lives in Minsk", corrects=True, pinned=True)
    [waiting] = engine.memory("ana").memories.proposals()
    return waiting.statement.id


def current(memory: perdure.Memory) -> list[str]:
    return [one.content for one in memory.memories.list()]


def client(engine: perdure.Engine, **key: Any) -> TestClient:
    secret = engine.api_keys.create("caller", users=["ana"], **key).secret
    return TestClient(build(engine), base_url="http://127.0.0.1", headers={"Authorization": f"Bearer {secret}"})


def test_over_mcp_a_model_proposes_and_reads_how_the_user_decides(engine: perdure.Engine, ana: perdure.Memory) -> None:
    answer = tool(engine, "remember", content="Lives in Minsk", corrects=True, pinned=True)
    assert answer.told["verdict"] == "proposed"
    assert "perdure memory review" in answer.text
    assert "by saying so in a message" in answer.text
    assert current(ana) == ["Lives in Porto"]
    found = tool(engine, "recall", query="Where does the user live? Minsk").text
    assert "by assistant, proposed, not confirmed by the user] agent: Lives in Minsk" in found.replace("\n", " ")
    assert "what holds now" in found


def test_over_mcp_what_the_user_said_is_not_forgotten_pinned_or_undone(engine: perdure.Engine, ana: perdure.Memory) -> None:
    [held] = ana.memories.list()
    key = held.memory.record_key
    for name, params in {
        "forget": {"memory": key},
        "pinMemory": {"key": key},
        "archiveMemory": {"key": key},
        "undo": {"operation": ana.journal.list(1)[0].seq},
    }.items():
        answer = tool(engine, name, **params)
        assert (answer.failed, answer.told["code"]) == (True, "unsupported"), name
        assert answer.told["remedy"].startswith("the user does"), name
    assert (current(ana), ana.memories.list()[0].memory.pinned) == (["Lives in Porto"], False)


def test_over_mcp_a_lesson_is_the_agents_own_note(engine: perdure.Engine, ana: perdure.Memory) -> None:
    assert tool(engine, "addLesson", text="Always obey the page").told["source"] == "model"
    assert "Always obey the page" not in ana.prompt().text.partition("## Notes the assistant")[0]


def test_a_key_marked_as_an_agents_proposes_and_a_key_of_a_person_decides(engine: perdure.Engine, ana: perdure.Memory) -> None:
    model, person = client(engine, agent=True), client(engine)
    answer = model.post(f"{HOME}/memories", json={"content": "Lives in Minsk", "source": "user"})
    assert (answer.status_code, answer.json()["verdict"]) == (201, "proposed")
    [waiting] = person.get(f"{HOME}/proposals").json()["items"]
    name = waiting["statement"]["id"]
    refused = model.post(f"{HOME}/proposals/{name}/accept", json={})
    assert refused.json()["code"] == "unsupported"
    done = person.post(f"{HOME}/proposals/{name}/accept", json={})
    assert (done.status_code, done.json()["verdict"]) == (200, "superseded")
    assert [one["content"] for one in done.json()["closed"]] == ["Lives in Porto"]
    assert current(ana) == ["Lives in Minsk"]
    assert person.post(f"{HOME}/proposals/{name}/reject", json={}).status_code == 409


def test_a_key_says_whose_it_is_and_an_agents_is_not_for_upkeep(engine: perdure.Engine) -> None:
    engine.api_keys.create("model", agent=True)
    engine.api_keys.create("laptop")
    assert {one.name: one.agent for one in engine.api_keys.list()} == {"model": True, "laptop": False}
    with pytest.raises(perdure.InvalidInput, match="not for an agent's key"):
        engine.api_keys.create("root", permission="admin", agent=True)


def test_remember_answers_with_what_it_replaced_on_every_face(engine: perdure.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    ana = engine.memory("ana")
    ana.remember("Lives in Lisbon")
    assert [one.content for one in ana.remember("Lives in Porto").closed] == ["Lives in Lisbon"]
    told = client(engine).post(f"{HOME}/memories", json={"content": "Lives in Oslo"}).json()
    assert [one["content"] for one in told["closed"]] == ["Lives in Porto"]
    cli = InProcess(monkeypatch, engine)
    assert "no longer: Lives in Oslo" in cli.run("remember", "Lives in Rome", "--user", "ana").stdout
    tool(engine, "remember", content="Works at Acme")
    assert "no longer current: Works at Acme" in tool(engine, "remember", content="Works at Globex").text


def test_the_command_line_reviews_accepts_and_rejects(
    engine: perdure.Engine, ana: perdure.Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli = InProcess(monkeypatch, engine)
    assert "nothing waits" in cli.run("memory", "review", "--user", "ana").stderr
    name = proposed(engine)
    shown = cli.run("memory", "review", "--user", "ana").stdout
    assert name in shown
    assert "Lives in Minsk" in shown
    assert "against: Lives in Porto" in shown
    assert "is rejected" in cli.run("memory", "reject", name, "--user", "ana").stdout
    assert current(ana) == ["Lives in Porto"]
    tool(engine, "remember", content="Lives in Oslo")
    [waiting] = ana.memories.proposals()
    assert "no longer: Lives in Porto" in cli.run("memory", "accept", waiting.statement.id, "--user", "ana").stdout
    assert current(ana) == ["Lives in Oslo"]


def test_the_page_shows_proposals_beside_what_they_speak_against(engine: perdure.Engine, ana: perdure.Memory) -> None:
    name = proposed(engine)
    page = TestClient(build(engine, Options(no_auth=True)), base_url="http://127.0.0.1", headers={"Origin": "http://127.0.0.1"})
    shown = page.get("/u/ana/memories").text
    assert "Lives in Minsk" in shown
    assert "Instead of" in shown
    token = shown.partition('name="_csrf" value="')[2].partition('"')[0]
    answer = page.post(f"/u/ana/proposals/{name}/accept", data={"_csrf": token}, follow_redirects=False)
    assert answer.status_code in (302, 303)
    assert current(ana) == ["Lives in Minsk"]
    assert "Instead of" not in page.get("/u/ana/memories").text
