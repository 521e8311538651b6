"""Run in the SDK's own environment: sessions as the SDK mirrors them, read back by the SDK's own helpers."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any
from uuid import uuid4

from claude_agent_sdk import fork_session_via_store, get_session_messages_from_store, list_sessions_from_store

import perdure
from perdure.integrations.claude import PerdureSessionStore, remembering

FOLDER = "/home/ana/app"
PROJECT = "-home-ana-app"
FIRST, SECOND = str(uuid4()), str(uuid4())
SECRET = "sk-ant-api03-" + "a1B2" * 20


def entry(role: str, content: Any, **more: Any) -> dict[str, Any]:
    return {
        "type": role,
        "uuid": str(uuid4()),
        "parentUuid": None,
        "sessionId": FIRST,
        "timestamp": datetime.now(UTC).isoformat().replace("+00:00", "Z"),
        "isSidechain": False,
        "cwd": FOLDER,
        "message": {"role": role, "content": content},
        **more,
    }


async def test_entries_come_back_as_they_were(store: PerdureSessionStore, ana: perdure.Memory) -> None:
    key = {"project_key": PROJECT, "session_id": FIRST}
    asked = entry("user", "I live in Lisbon, and my sister is called Rita.")
    answered = entry("assistant", [{"type": "text", "text": "Noted."}])
    result = [{"type": "tool_result", "tool_use_id": "t", "content": f"key {SECRET} a\0b \ud83d"}]
    called = entry("user", result)
    notes = [entry("user", "Caveat: made by a command", isMeta=True), entry("user", "<command-name>/clear</command-name>")]
    batch = [asked, answered, called, *notes]
    for one, after in pairwise(batch):
        after["parentUuid"] = one["uuid"]
    await store.append(key, batch)
    await store.append(key, batch)  # sent again after an answer was lost
    await store.append(key, [asked, {"type": "mode", "mode": "plan"}])
    await store.append(key, [{"type": "mode", "mode": "plan"}])
    await store.append({**key, "subpath": "subagents/agent-1"}, [entry("user", "Look at the tests.", isSidechain=True)])
    assert await store.load(key) == [*batch, {"type": "mode", "mode": "plan"}, {"type": "mode", "mode": "plan"}]
    said = [(one.role, one.content) for one in ana.messages(session=FIRST)]
    assert said == [("user", "I live in Lisbon, and my sister is called Rita."), ("assistant", "Noted.")], said


async def test_the_sdk_reads_what_was_kept(store: PerdureSessionStore, ana: perdure.Memory) -> None:
    listed = await list_sessions_from_store(store, directory=FOLDER)
    assert [(one.session_id, one.first_prompt) for one in listed] == [
        (FIRST, "I live in Lisbon, and my sister is called Rita.")
    ], listed
    messages = await get_session_messages_from_store(store, FIRST, directory=FOLDER)
    assert [one.type for one in messages] == ["user", "assistant", "user", "user"], messages
    forked = await fork_session_via_store(store, FIRST, directory=FOLDER)
    assert len(await get_session_messages_from_store(store, forked.session_id, directory=FOLDER)) == 4
    assert len(ana.messages()) == 2, "what a fork copies was not said again"
    await store.delete({"project_key": PROJECT, "session_id": forked.session_id})


async def test_the_second_conversation_knows_what_was_said_in_the_first(ana: perdure.Memory) -> None:
    [matcher] = remembering(ana)["UserPromptSubmit"]
    [hook] = matcher.hooks
    base = {"session_id": SECOND, "transcript_path": "", "cwd": FOLDER, "hook_event_name": "UserPromptSubmit"}
    told = await hook({**base, "prompt": "Where do I live?"}, None, {"signal": None})
    output = told["hookSpecificOutput"]
    assert output["hookEventName"] == "UserPromptSubmit"
    assert "Lisbon" in output["additionalContext"]
    assert "<memory " in output["additionalContext"]
    assert await hook({**base, "prompt": " "}, None, {"signal": None}) == {}


async def test_appends_at_once_are_all_in_the_summary(store: PerdureSessionStore) -> None:
    key = {"project_key": "busy", "session_id": SECOND}
    titles = [{"type": "custom-title", "customTitle": f"title {number}", "uuid": str(uuid4())} for number in range(8)]
    await asyncio.gather(*(store.append(key, [one]) for one in titles))
    assert len(await store.load(key) or ()) == 8
    [listed], [summary] = await store.list_sessions("busy"), await store.list_session_summaries("busy")
    assert summary["mtime"] >= listed["mtime"]
    assert summary["data"]["custom_title"].startswith("title ")


async def test_deleting_a_session_takes_the_log_with_it(store: PerdureSessionStore, ana: perdure.Memory) -> None:
    key = {"project_key": PROJECT, "session_id": FIRST}
    await store.delete(key)
    assert await store.load(key) is None
    assert await store.list_subkeys(key) == []
    assert list(ana.messages()) == []
    await store.append(key, [entry("user", "Hello again.")])
    assert [one.content for one in ana.messages(session=FIRST)] == ["Hello again."]


async def test_what_is_forgotten_is_gone_from_transcripts(store: PerdureSessionStore, ana: perdure.Memory) -> None:
    key = {"project_key": PROJECT, "session_id": FIRST}
    ana.remember("Knows Konrad Weber", entities=["person:Konrad Weber"])
    await store.append(
        key, [entry("user", "I met Konrad Weber."), entry("user", "cut \ud83d: Konrad Weber"), entry("user", "Bye.")]
    )
    ana.forget(entity="person:Konrad Weber")
    left = await store.load(key) or []
    assert [one["message"]["content"] for one in left] == ["Hello again.", "Bye."], left
    await store.append(key, [entry("user", "Still here.")])
    [summary] = await store.list_session_summaries(PROJECT)
    assert "Konrad" not in str(summary)


async def main(engine: perdure.Engine) -> None:
    ana = engine.memory("ana")
    store = PerdureSessionStore(ana)
    await test_entries_come_back_as_they_were(store, ana)
    engine.process()
    await test_the_sdk_reads_what_was_kept(store, ana)
    await test_the_second_conversation_knows_what_was_said_in_the_first(ana)
    await test_appends_at_once_are_all_in_the_summary(store)
    await test_deleting_a_session_takes_the_log_with_it(store, ana)
    await test_what_is_forgotten_is_gone_from_transcripts(store, ana)
    assert engine.verify().clean


with perdure.open("memory:", background=False) as opened:
    asyncio.run(main(opened))
print("all kept")
