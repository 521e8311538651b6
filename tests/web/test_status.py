"""The status page: each part with its state, and the remedy beside what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

import perdure
from perdure.interfaces.server import Options, build
from perdure.settings import Settings
from perdure.testing import FAULTS, ScriptedModelServer, StoppedClock


class Reranker:
    name = "a-reranker"

    def rerank(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        raise ConnectionRefusedError


def client_of(engine: perdure.Engine, **headers: str) -> TestClient:
    return TestClient(
        build(engine, Options(no_auth=True)), base_url="http://127.0.0.1", headers={"Accept": "text/html", **headers}
    )


def checked(client: TestClient) -> str:
    token = client.app.state.guard.csrf_local  # type: ignore[attr-defined]  # it is our application
    answer = client.post("/u/ana/status", data={"_csrf": token})
    assert answer.status_code == 200
    return " ".join(unescape(answer.text).split())


def test_what_is_in_use_is_shown_without_asking_it(tmp_path: Path) -> None:
    with ScriptedModelServer() as server:
        settings = Settings(url=f"sqlite:///{tmp_path}/status.db", model=server.setting("openai", "a-model"))
        with perdure.open(settings=settings) as engine:
            page = client_of(engine).get("/u/ana/status").text
        for name in ("Store", "Model", "Embedder", "Reranker", "Workers", "a-model", "static", str(tmp_path)):
            assert name in page
        assert server.asked == []


def test_a_check_asks_each_part_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with ScriptedModelServer() as server:
        settings = Settings(
            url=f"sqlite:///{tmp_path}/status.db",
            model=server.setting("openai", "a-model"),
            embedder=server.setting("openai", "an-embedder"),
        )
        with perdure.open(settings=settings) as engine:
            page = checked(client_of(engine))
            assert page.count("Answered in") == 2
            assert "Round trip" in page
            assert engine.users() == []
        assert {one.path for one in server.asked} == {"/v1/chat/completions", "/v1/embeddings"}


def test_what_fails_stands_with_its_remedy(tmp_path: Path) -> None:
    with ScriptedModelServer(FAULTS["wrong_key"]) as server:
        settings = Settings(
            url=f"sqlite:///{tmp_path}/status.db",
            model=server.setting("openai", "a-model"),
            embedder=server.setting("openai", "an-embedder"),
        )
        with perdure.open(settings=settings, reranker=Reranker()) as engine:
            page = checked(client_of(engine))
    assert page.count("it wants another API key") == 2
    for setting in ("model_key", "embedder_key"):
        assert f"<code>{setting}</code>" in page
    assert "ConnectionRefusedError" in page
    assert page.count("Remedy:") == 3


def test_jobs_that_failed_are_told_with_their_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    with perdure.open("memory:") as engine:
        held = engine.health()

        def troubled(_engine: Any) -> Any:
            from dataclasses import replace

            return replace(held, degraded=("jobs: 2 failed; fix the cause, then `perdure admin jobs retry`",))

        monkeypatch.setattr(perdure.Engine, "health", troubled)
        page = " ".join(client_of(engine).get("/u/ana/status").text.split())
    assert "<b>Remedy:</b> Fix the cause, then <code>perdure admin jobs retry</code>" in page


def test_how_long_a_job_has_waited_is_told_as_people_say_it(tmp_path: Path) -> None:
    clock = StoppedClock(datetime(2026, 1, 5, 9, tzinfo=UTC))
    with perdure.open(f"sqlite:///{tmp_path}/late.db", clock=clock) as engine:
        engine.memory("ana").append("user", "I live in Porto")
        for passed, told in (
            (timedelta(minutes=7), "7 minutes"),
            (timedelta(hours=3), "3 hours"),
            (timedelta(days=4), "4 days"),
        ):
            clock.set(datetime(2026, 1, 5, 9, tzinfo=UTC) + passed)
            page = " ".join(client_of(engine).get("/u/ana/status").text.split())
            assert f"A job has waited {told} and no worker takes it" in page


def test_the_status_of_the_store_is_for_those_who_may_see_all_of_it() -> None:
    with perdure.open("memory:") as engine:
        key = engine.api_keys.create("a key", users=["ana"], permission="write").secret
        client = client_of(engine, Authorization=f"Bearer {key}")
        page = client.get("/u/ana/status")
        assert page.status_code == 200
        assert "Only a key for all users" in page.text
        assert "Durability" not in page.text
        assert client.post("/u/ana/status").status_code == 403
