"""Calls of the handles over HTTP: each answers what the handle answers, in the form that all skins share."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

import perdure
from perdure.handles.registry.shapes import plain
from perdure.interfaces.server import Options, build

Json = dict[str, Any]


def ok(response: Any, status: int = 200) -> Any:
    assert response.status_code == status, response.text
    return response.json()


def memory_of(engine: perdure.Engine, home: str) -> perdure.Memory:
    return engine.memory(home.rpartition("/")[2])


def said(client: TestClient, home: str, *texts: str) -> list[str]:
    return [ok(client.post(f"{home}/messages", json={"role": "user", "content": text}), 201)["id"] for text in texts]


# -- messages and sessions


def test_a_message_is_logged_and_found_again(client: TestClient, engine: perdure.Engine, home: str) -> None:
    made = client.post(
        f"{home}/messages?agent=coach",
        json={"role": "assistant", "content": "Hi", "tool_calls": [{"id": "c1", "name": "look", "arguments": {"a": [1]}}]},
    )
    body = ok(made, 201)
    assert ok(client.get(made.headers["location"])) == body
    handle = engine.memory(home.rpartition("/")[2], agent="coach")
    assert plain(handle.conversation.message(body["id"])) == body
    assert client.get(f"{home}/messages/{body['id']}").status_code == 404  # another agent


def test_the_idempotency_key_becomes_the_id_of_a_message(client: TestClient, home: str) -> None:
    for status, repeated in ((201, False), (200, True)):
        response = client.post(f"{home}/messages", json={"role": "user", "content": "x"}, headers={"Idempotency-Key": "k1"})
        assert ok(response, status)["id"] == "k1"
        assert response.json()["repeated"] is repeated
    other = client.post(f"{home}/messages", json={"role": "user", "content": "y"}, headers={"Idempotency-Key": "k1"})
    assert (other.status_code, other.json()["code"]) == (409, "conflict")


def test_messages_are_paged_both_ways(client: TestClient, home: str) -> None:
    ids = said(client, home, *(f"number {n}" for n in range(7)))
    older, cursor = [], ""
    while True:
        page = ok(client.get(f"{home}/messages?limit=3{cursor}"))
        older = [one["id"] for one in page["items"]] + older
        if page["next"] is None:
            break
        cursor = f"&cursor={page['next']}"
    assert older == ids
    newer = ok(client.get(f"{home}/messages?limit=3&after={ids[0]}"))
    assert [one["id"] for one in newer["items"]] == ids[1:4]
    rest = ok(client.get(f"{home}/messages?limit=30&cursor={newer['next']}"))
    assert ([one["id"] for one in rest["items"]], rest["next"]) == (ids[4:], None)
    back = ok(client.get(f"{home}/messages?cursor={rest['previous']}"))
    assert [one["id"] for one in back["items"]] == ids[:4]


def test_a_batch_is_logged_whole_or_not_at_all(client: TestClient, home: str) -> None:
    two = {"messages": [{"role": "user", "content": "a", "id": "1"}, {"role": "user", "content": "b", "id": "2"}]}
    assert [one["id"] for one in ok(client.post(f"{home}/messages/batch", json=two), 201)["items"]] == ["1", "2"]
    clash = {"messages": [{"role": "user", "content": "c", "id": "3"}, {"role": "user", "content": "d", "id": "1"}]}
    assert client.post(f"{home}/messages/batch", json=clash).status_code == 409
    assert len(ok(client.get(f"{home}/messages"))["items"]) == 2


def test_messages_are_forgotten(client: TestClient, home: str) -> None:
    first, second, third = said(client, home, "red apples", "green pears", "green apples")
    gone = ok(client.delete(f"{home}/messages?first={first}&last={second}"))
    assert gone["forgotten"]
    assert "apples" not in client.get(f"{home}/messages/{first}").text
    assert ok(client.get(f"{home}/messages/{third}"))["content"] == "green apples"


def test_a_session_is_closed_resumed_folded_and_deleted(client: TestClient, engine: perdure.Engine, home: str) -> None:
    for n in range(6):
        said(client, home, f"question {n} about the trip")
        client.post(f"{home}/messages", json={"role": "assistant", "content": f"answer {n}"})
    session = ok(client.get(f"{home}/sessions"))["items"][0]
    at = f"{home}/sessions/{session['id']}"
    assert ok(client.get(at)) == session == plain(memory_of(engine, home).conversation.session())
    assert ok(client.get(f"{home}/conversations"))["items"][0]["session"]["id"] == session["id"]
    folds = ok(client.post(f"{at}/compact", json={"force": True}))["items"]
    assert folds[0]["kind"] == "fold"
    assert ok(client.get(f"{home}/digests?kind=fold&session={session['id']}"))["items"] == folds
    assert ok(client.post(f"{at}/undo"))["undone"]
    assert ok(client.post(f"{at}/close"))["ended_at"] is not None
    assert ok(client.post(f"{at}/resume"))["ended_at"] is None
    assert ok(client.delete(at)) == {"session": session["id"], "deleted": True, "messages": 12}
    assert client.get(at).status_code == 404
    assert client.post(f"{at}/burn").status_code == 404


def test_an_address_is_configured(client: TestClient, engine: perdure.Engine, home: str) -> None:
    assert ok(client.patch(f"{home}/agent-state", json={}))["casual"] is False
    assert ok(client.patch(f"{home}/agent-state", json={"casual": True, "profile": "task_agent"}))["casual"] is True
    assert memory_of(engine, home).conversation.agent_state().profile == "task_agent"
    assert client.patch(f"{home}/agent-state", json={"profile": "other"}).status_code == 422


# -- what is known


def test_a_memory_is_kept_changed_and_forgotten(client: TestClient, engine: perdure.Engine, home: str) -> None:
    body = {"content": "Lives in Austin", "attribute": "lives_in", "value": "Austin"}
    made = client.post(f"{home}/memories", json=body)
    assert ok(made, 201)["verdict"] == "added"
    at = made.headers["location"]
    held = ok(client.get(at))
    assert held["content"] == "Lives in Austin"
    assert plain(memory_of(engine, home).memories.get(held["key"])) == held
    assert ok(client.post(f"{home}/memories", json=body))["verdict"] in ("mentioned", "known")
    assert ok(client.patch(at, json={"importance": 2}))["memory"]["importance"] == 2
    assert ok(client.post(f"{at}/pin"))["memory"]["pinned"]
    assert client.post(f"{at}/archive").status_code == 422
    assert ok(client.get(f"{home}/memories?pinned=true"))["items"][0]["key"] == held["key"]
    assert not ok(client.post(f"{at}/unpin"))["memory"]["pinned"]
    assert ok(client.post(f"{at}/archive"))["memory"]["status"] == "ARCHIVED"
    assert ok(client.get(f"{home}/memories"))["items"] == []
    assert len(ok(client.get(f"{home}/memories?archived=true"))["items"]) == 1
    assert ok(client.post(f"{at}/restore"))["memory"]["status"] == "ACTIVE"
    assert len(ok(client.get(f"{at}/history"))["items"]) == 1
    assert ok(client.get(f"{home}/memories?as_of=2020-01-01T00:00:00Z"))["items"] == []
    assert ok(client.delete(at))["forgotten"]
    assert client.get(at).status_code == 404


def test_several_statements_are_kept_or_none_and_one_is_corrected(
    client: TestClient, engine: perdure.Engine, home: str
) -> None:
    austin = {"content": "Lives in Austin", "attribute": "lives_in", "value": "Austin"}
    both = {"statements": [austin, {"content": "Likes green tea"}]}
    kept = ok(client.post(f"{home}/memories/batch", json=both), 201)["items"]
    assert [one["verdict"] for one in kept] == ["added", "added"]
    wrong = {"statements": [{"content": "Likes red wine"}, {**austin, "importance": 9}]}
    assert client.post(f"{home}/memories/batch", json=wrong).status_code == 422
    assert len(ok(client.get(f"{home}/memories"))["items"]) == 2
    at = f"{home}/memories/{kept[0]['statement']['memory']}"
    done = ok(client.post(f"{at}/correct", json={"content": "Lives in Seattle", "value": "Seattle"}))
    assert done["statement"]["value"] == "Seattle"
    assert [one.content for one in memory_of(engine, home).memories.get(done["statement"]["memory"]).statements] == [
        "Lives in Seattle"
    ]


def test_entities_are_named_merged_and_the_merge_is_undone(client: TestClient, home: str) -> None:
    for name in ("person:Ben Ito", "person:Eva Lind"):
        body = {"content": f"{name[7:]} is my cofounder", "type": "PEOPLE", "entities": [name], "fact_type": "relationship"}
        ok(client.post(f"{home}/memories", json=body), 201)
    assert [one["ref"] for one in ok(client.get(f"{home}/entities?type=person"))["items"]] == [
        "person:ben_ito",
        "person:eva_lind",
    ]
    assert "person:johnny" in ok(client.post(f"{home}/entities/person:ben_ito/aliases", json={"label": "Johnny"}))["aliases"]
    merged = ok(client.post(f"{home}/entities/person:eva_lind/merge", json={"into": "person:ben_ito"}))
    assert merged["into"] == "person:ben_ito"
    assert ok(client.get(f"{home}/entities/person:eva_lind"))["ref"] == "person:ben_ito"
    assert ok(client.post(f"{home}/journal/{merged['action']}/undo", json={}))["undone"] == merged["action"]
    assert ok(client.get(f"{home}/entities/person:eva_lind"))["ref"] == "person:eva_lind"
    for suggestion in ok(client.get(f"{home}/suggestions"))["items"]:
        assert ok(client.post(f"{home}/suggestions/{suggestion['id']}/dismiss"))["state"] == "dismissed"
    assert ok(client.delete(f"{home}/entities/person:ben_ito"))["forgotten"]
    assert client.get(f"{home}/entities/person:ben_ito").status_code == 404


def test_todos_tasks_and_instructions(client: TestClient, home: str) -> None:
    todo = ok(client.post(f"{home}/todos", json={"content": "Call the dentist", "due_at": "2030-01-31T09:30:00Z"}), 201)
    assert ok(client.get(f"{home}/todos?kind=commitment"))["items"] == [todo]
    for verb, state in (("complete", "completed"), ("reopen", "pending"), ("skip", "skipped")):
        assert ok(client.post(f"{home}/todos/{todo['id']}/{verb}"))["state"] == state
    assert client.post(f"{home}/todos", json={"content": "Water", "recurrence": "often"}).status_code == 422
    task = ok(client.post(f"{home}/tasks", json={"description": "Compare flights"}), 201)
    assert ok(client.patch(f"{home}/tasks/{task['id']}", json={"progress": 1, "state": "completed"}))["progress"] == 1
    assert (ok(client.get(f"{home}/tasks"))["items"], len(ok(client.get(f"{home}/tasks?closed=true"))["items"])) == ([], 1)
    order = ok(client.post(f"{home}/instructions", json={"text": "Always answer in metric units"}), 201)
    assert ok(client.get(f"{home}/instructions"))["items"] == [order]
    assert ok(client.post(f"{home}/instructions/{order['id']}/withdraw"))["state"] == "withdrawn"
    assert ok(client.get(f"{home}/instructions?withdrawn=true"))["items"]


def test_lessons(client: TestClient, home: str) -> None:
    lesson = ok(client.post(f"{home}/lessons", json={"text": "Ask before booking anything", "scope": "user"}), 201)
    at = f"{home}/lessons/{lesson['id']}"
    assert ok(client.post(f"{at}/pin"))["pinned"]
    assert not ok(client.post(f"{at}/unpin"))["pinned"]
    assert ok(client.post(f"{at}/archive"))["archived_at"]
    assert ok(client.post(f"{at}/restore"))["archived_at"] is None
    assert ok(client.delete(at))["ended_at"]
    assert ok(client.get(f"{home}/lessons?ended=true"))["items"]
    heard = ok(client.post(f"{home}/lessons/from-reply", json={"reply": "Done.\nMEMORY_APPEND: Prefers trains to flights"}))
    assert (heard["text"].strip(), len(heard["appended"])) == ("Done.", 1)


# -- state and series


def test_state_is_saved_under_its_revision(client: TestClient, home: str) -> None:
    at = f"{home}/state/units"
    first = client.put(at, json={"value": "metric"}, headers={"If-None-Match": "*"})
    assert ok(first) == {"key": "units", "revision": 1}
    assert client.put(at, json={"value": 1}, headers={"If-None-Match": "*"}).status_code == 409
    assert ok(client.put(at, json={"value": [1, None]}, headers={"If-Match": first.headers["etag"]}))["revision"] == 2
    assert client.put(at, json={"value": 1}, headers={"If-Match": first.headers["etag"]}).status_code == 409
    found = client.get(at)
    assert (ok(found)["value"], found.headers["etag"]) == ([1, None], '"2"')
    assert ok(client.get(f"{at}?revision=1"))["value"] == "metric"
    page = ok(client.get(f"{at}/history?limit=1"))
    assert page["items"][0]["number"] == 2
    assert ok(client.get(f"{at}/history?limit=1&cursor={page['next']}"))["items"][0]["number"] == 1
    assert ok(client.post(f"{at}/restore", json={"revision": 1}))["revision"] == 3
    assert [one["key"] for one in ok(client.get(f"{home}/state?pattern=uni*"))["items"]] == ["units"]
    assert ok(client.get(f"{home}/state?pattern=Uni*"))["items"] == []
    assert ok(client.delete(at)) == {"key": "units", "deleted": True}
    assert client.get(at).status_code == 404


def test_the_same_save_twice_is_one_revision(client: TestClient, home: str) -> None:
    for _ in range(2):
        assert ok(client.put(f"{home}/state/k", json={"value": 1}, headers={"Idempotency-Key": "a"}))["revision"] == 1


RANGE = "start=2026-01-01T00:00:00Z&end=2026-02-01T00:00:00Z"


def test_a_series_is_merged_asked_and_deleted(client: TestClient, home: str) -> None:
    at = f"{home}/series/kudos_timeseries"
    entries = [{"id": f"k{n}", "timestamp": f"2026-01-{n:02}T08:00:00Z", "by": "Ben" if n % 2 else "Eva"} for n in range(1, 6)]
    body = {"entries": [*entries, {"nothing": 1}], "window": {"start": "2026-01-01T00:00:00Z", "end": "2026-01-20T00:00:00Z"}}
    done = ok(client.post(f"{at}/entries", json=body, headers={"Idempotency-Key": "m1"}))
    other = body | {"entries": [one | {"id": f"other {number}"} for number, one in enumerate(body["entries"])]}
    lost = client.post(f"{at}/entries", json=other, headers={"Idempotency-Key": "m1"})
    assert lost.status_code == 409, "it would be answered as stored, and is not"
    assert (done["added"], len(done["rejected"])) == (5, 1)
    assert ok(client.post(f"{at}/entries", json=body, headers={"Idempotency-Key": "m1"})) == done
    assert ok(client.get(at))["count"] == 5
    assert [one["name"] for one in ok(client.get(f"{home}/series"))["items"]] == ["kudos_timeseries"]
    answer = ok(client.get(f"{at}/entries?{RANGE}&limit=2"))
    assert (answer["count"], answer["coverage"], len(answer["entries"])) == (5, "partial", 2)
    assert len(ok(client.get(f"{at}/entries?{RANGE}&limit=5&cursor={answer['next_page']}"))["entries"]) == 3
    assert ok(client.get(f"{at}/gaps?{RANGE}"))["items"][0]["start"] == "2026-01-20T00:00:00+00:00"
    newer = {"entries": [{**entries[0], "by": "Ada"}]}
    assert ok(client.post(f"{at}/entries", json=newer))["updated"] == 1
    assert ok(client.patch(at, json={"zone": "Europe/Berlin"}))["name"] == "kudos_timeseries"
    assert client.patch(at, json={"zone": "Nowhere/Land"}).status_code == 422
    assert ok(client.delete(at)) == {"name": "kudos_timeseries", "removed": 5}
    assert client.get(at).status_code == 404


# -- recall and the overseer


def test_recall_context_and_prompt(client: TestClient, engine: perdure.Engine, home: str) -> None:
    said(client, home, "My dentist is Dr. Weiss in Porto.")
    hit = ok(client.post(f"{home}/recall", json={"query": "Who is my dentist?", "explain": True}))
    assert "Weiss" in hit["hits"][0]["text"]
    assert hit["explanation"]
    later = {"query": "dentist", "since": "2100-01-01T00:00:00Z", "kinds": ["message"]}
    assert ok(client.post(f"{home}/recall", json=later))["hits"] == []
    assert client.post(f"{home}/recall", json={**later, "until": "2099-01-01T00:00:00Z"}).status_code == 422
    both = {"query": "dentist", "since": "2020-01-01T00:00:00Z", "until": "2100-01-01T00:00:00Z", "kinds": ["message"]}
    assert ok(client.post(f"{home}/recall", json=both))["hits"]
    context = ok(client.post(f"{home}/context", json={"goal": "Call the dentist", "budget_tokens": 500}))
    assert context == plain(memory_of(engine, home).context("Call the dentist", budget_tokens=500))
    assert ok(client.post(f"{home}/prompt", json={}))["text"]


def test_the_overseer_before_and_after(client: TestClient, home: str) -> None:
    given = ok(client.post(f"{home}/before", json={"goal": "What units do I use?"}))
    assert given["nothing"]
    result = {"name": "Ana", "ftp": 250, "weight": 61.5}
    asked = {"tool": "getAthlete", "result": result, "goal": "Remember my FTP and weight for later", "mode": "suggest"}
    kept = ok(client.post(f"{home}/after", json=asked))
    if kept["action"] == "suggested":
        assert ok(client.post(f"{home}/accept", json={"suggested": kept, "result": result}))["saved"]
    page = ok(client.get(f"{home}/decisions?limit=1"))
    assert page["items"][0]["kind"] == "after"
    more = ok(client.get(f"{home}/decisions?cursor={page['next']}"))
    assert [one["kind"] for one in more["items"]][-1] == "before"


def test_what_the_overseer_suggested_can_be_accepted(client: TestClient, home: str) -> None:
    result = [{"id": n, "timestamp": f"2026-01-{n:02}T08:00:00Z", "km": n} for n in range(1, 9)]
    asked = {"tool": "getActivities", "result": result, "goal": "Track my activities", "mode": "suggest"}
    kept = ok(client.post(f"{home}/after", json=asked))
    assert kept["action"] == "suggested"
    assert ok(client.post(f"{home}/accept", json={"suggested": kept, "result": result}))["saved"]
    assert client.post(f"{home}/accept", json={"suggested": kept, "result": []}).status_code == 422


# -- history, jobs, the store


def test_the_journal_is_paged_and_jobs_are_listed(client: TestClient, engine: perdure.Engine, home: str) -> None:
    for city in ("Austin", "Porto", "Lyon"):
        body = {"content": f"Lives in {city}", "attribute": "lives_in", "value": city}
        ok(client.post(f"{home}/memories", json=body), 201)
    said(client, home, "Hello")
    page = ok(client.get(f"{home}/journal?limit=2"))
    rest = ok(client.get(f"{home}/journal?limit=100&cursor={page['next']}"))
    numbers = [one["seq"] for one in page["items"] + rest["items"]]
    assert numbers == sorted(numbers, reverse=True)
    assert numbers[-1] == 1
    assert ok(client.get(f"{home}/jobs?state=ready"))["items"]
    assert engine.process(5).failed == 0
    assert ok(client.post(f"{home}/jobs/retry")) == {"retried": 0}


def test_a_user_is_forgotten(client: TestClient, home: str) -> None:
    said(client, home, "I live in Austin.")
    assert home.rpartition("/")[2] in ok(client.get("/v1/users?limit=1000"))["items"]
    assert ok(client.delete(home))["forgotten"]
    assert ok(client.get(f"{home}/messages"))["items"] == []
    assert home.rpartition("/")[2] not in ok(client.get("/v1/users?limit=1000"))["items"]


def test_agents(client: TestClient) -> None:
    saved = client.put("/v1/agents/the%2Fcoach", json={"soul": "Be kind."})
    assert ok(saved)["soul"] == "Be kind."
    assert ok(client.get(saved.headers["location"]))["id"] == "the/coach"
    assert ok(client.get("/v1/agents"))["items"][0]["id"] == "the/coach"
    assert ok(client.delete("/v1/agents/the%2Fcoach"))["removed"]
    assert client.get("/v1/agents/the%2Fcoach").status_code == 404


def test_tools_are_listed_and_called(client: TestClient, home: str) -> None:
    assert ok(client.get(f"{home}/tools?style=mcp"))["items"][0]["inputSchema"]
    assert ok(client.post(f"{home}/tools/saveState", json={"params": {"key": "k", "value": 1}}))["success"]
    assert ok(client.post(f"{home}/tools/noSuchTool", json={}))["success"] is False


# -- requests carried out once


@pytest.mark.parametrize("key", ["1", "~!"])
def test_a_write_with_the_same_key_is_carried_out_once(client: TestClient, home: str, key: str) -> None:
    def start(description: str) -> Any:
        return client.post(f"{home}/tasks", json={"description": description}, headers={"Idempotency-Key": key})

    first, second = start("Compare flights"), start("Compare flights")
    assert ok(second, 201) == ok(first, 201)
    assert second.headers["idempotent-replay"] == "true"
    assert len(ok(client.get(f"{home}/tasks"))["items"]) == 1
    assert start("Something else").status_code == 409


def test_a_write_that_failed_may_be_made_again_with_its_key(client: TestClient, home: str) -> None:
    headers = {"Idempotency-Key": "k"}
    assert client.post(f"{home}/todos/none/complete", headers=headers).status_code == 404
    todo = ok(client.post(f"{home}/todos", json={"content": "Call Ben"}, headers=headers), 201)
    assert todo["content"] == "Call Ben"


def test_answers_about_a_user_are_not_kept_after_forgetting(engine: perdure.Engine, home: str) -> None:
    client = TestClient(build(engine, Options(no_auth=True)), base_url="http://127.0.0.1")
    body = {"content": "John is my cofounder", "type": "PEOPLE", "entities": ["person:John Doe"]}
    ok(client.post(f"{home}/memories", json=body, headers={"Idempotency-Key": "k"}), 201)
    ok(client.delete(f"{home}/entities/person:john_doe"))
    again = client.post(f"{home}/memories", json=body, headers={"Idempotency-Key": "k"})
    assert again.status_code == 409
    assert "John" not in again.text
