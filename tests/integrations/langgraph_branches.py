"""Run in LangGraph's own environment: two checkpoints that follow the same one, and what forgetting does to them."""

from __future__ import annotations

from langgraph.checkpoint.base import empty_checkpoint

import perdure
from perdure.integrations.langgraph import PerdureSaver

with perdure.open("memory:", background=False) as engine:
    ana = engine.memory("ana")
    saver = PerdureSaver(ana)
    root = {"configurable": {"thread_id": "a/b*", "checkpoint_ns": ""}}
    ids = {}
    for word in ("Maria", "tea"):
        version = saver.get_next_version(None, None)
        checkpoint = {
            **empty_checkpoint(),
            "channel_values": {"said": f"{word} is here"},
            "channel_versions": {"said": version},
        }
        ids[word] = saver.put(root, checkpoint, {"source": "input", "step": 1, "parents": {}}, {"said": version})
    assert {word: saver.get_tuple(one).checkpoint["channel_values"]["said"] for word, one in ids.items()} == {
        "Maria": "Maria is here",
        "tea": "tea is here",
    }
    ana.remember("Maria is my sister", "PEOPLE", entities=["person:Maria"])
    ana.forget(entity="person:maria")
    assert saver.get_tuple(ids["Maria"]).checkpoint["channel_values"] == {}
    assert saver.get_tuple(ids["tea"]).checkpoint["channel_values"]["said"] == "tea is here"
    assert engine.verify().clean
print("each its own")
