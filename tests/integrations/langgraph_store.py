"""Run in LangGraph's own environment: the store with the embedder that is built in, its filters, and what forgetting does."""

from __future__ import annotations

import asyncio

import pytest

import perdure
from perdure.integrations.langgraph import PerdureStore

HERE = ("ana", "memories")


async def main(url: str) -> None:
    with perdure.open(url, background=False) as engine:
        ana = engine.memory("ana")
        store = PerdureStore(ana, fields=["text"])
        store.put(HERE, "1", {"text": "I love pizza and pasta", "size": {"of meal": 3}})
        store.put(HERE, "2", {"text": "My car is an old Beetle", "size": {"of meal": 1}})
        await store.aput(HERE, "a/b*", {"text": "Maria is my sister", "packed": b"\0"})
        found = store.search(("ana",), query="what food do I like?")
        assert (found[0].key, found[0].namespace) == ("1", HERE)
        assert [one.key for one in await store.asearch((), query="food", filter={"size.of meal": {"$lt": 2}})] == ["2"]
        assert store.search((), filter={"text') = '' OR '1'='1": "x"}) == []
        assert store.search((), filter={"text": {"$gt": 3}}) == []
        with pytest.raises(ValueError, match=r"\$near"):
            store.search((), filter={"text": {"$near": 3}})
        assert (await store.aget(HERE, "a/b*")).value["packed"] == b"\0"
        assert any(hit.kind == "state" for hit in ana.recall("pizza").hits), "recall finds it, too"
        ana.remember("Maria is my sister", "PEOPLE", entities=["person:Maria"])
        ana.forget(entity="person:maria")
        assert store.get(HERE, "a/b*") is None
        assert store.list_namespaces() == [HERE]
        assert engine.verify().clean
    with perdure.open(url, background=False) as engine:
        again = PerdureStore(engine.memory("ana"))
        kept = again.get(HERE, "1")
        assert kept.value["text"] == "I love pizza and pasta"
        assert PerdureStore(engine.memory("bea")).search(()) == []


asyncio.run(main("sqlite:///store.db"))
print("found")
