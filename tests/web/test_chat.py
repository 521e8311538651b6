"""The chat in a real browser, against a scripted model: the answer comes in pieces, beside it what was given and what was learned."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from playwright.sync_api import Browser, Page, expect

import perdure
from live_site import WAIT_MS, looking, serving
from perdure.interfaces.server import Options, build
from perdure.settings import Settings
from perdure.testing import FAULTS, ScriptedModelServer
from perdure.testing.model_server import Act, ModelExchange, answer_well, streamed

pytest.importorskip("httpx2", reason="the extra `models` is not installed")

Look = Callable[..., Page]
MOVED = "My sister Clara moved to Porto."
EVIL = "<img src=x onerror=alert(1)>\u202e{{7*7}}"


def only_chat(act: Act) -> Act:
    """Plays it for a message; whatever else the model is asked for is answered well."""

    def play(exchange: ModelExchange) -> None:
        (act if exchange.asked.body.get("stream") or exchange.asked.schema is None else answer_well)(exchange)

    return play


@dataclass(frozen=True)
class Talk:
    look: Look
    engine: perdure.Engine
    model: ScriptedModelServer

    @property
    def ana(self) -> perdure.Memory:
        return self.engine.memory("ana", agent="coach", channel="app")


@pytest.fixture
def talk(chromium: Browser, tmp_path: Path) -> Iterator[Talk]:
    """With a model, which finds nothing to learn."""
    with ScriptedModelServer() as model:
        settings = Settings(url=f"sqlite:///{tmp_path}/chat.db", model=model.setting("openai", "a-model"))
        with perdure.open(settings=settings) as engine, serving(engine) as site, looking(chromium, site.url) as look:
            yield Talk(look, engine, model)


@pytest.fixture
def alone(chromium: Browser, tmp_path: Path) -> Iterator[Talk]:
    """Without a model."""
    with (
        ScriptedModelServer() as model,
        perdure.open(f"sqlite:///{tmp_path}/chat.db") as engine,
        serving(engine) as site,
        looking(chromium, site.url) as look,
    ):
        yield Talk(look, engine, model)


CHAT = "/u/ana/chat?agent=coach&channel=app"


def say(page: Page, text: str) -> None:
    page.get_by_label("Message").fill(text)
    page.get_by_label("Message").press("Enter")


def made(page: Page) -> None:
    """Wait until the turn is complete."""
    page.locator("article.turn[data-fresh]:not(.pending)").wait_for()


def test_an_answer_is_seen_while_it_comes_and_kept_when_it_has(talk: Talk) -> None:
    talk.ana.remember("Rui is a running friend", "PEOPLE", entities=["person:Rui"])
    seen = threading.Event()
    talk.model.always(only_chat(streamed("Rui is your ", "running friend.", pause=lambda: seen.wait(WAIT_MS / 1000))))
    page = talk.look(CHAT)
    say(page, "Who is Rui?")
    expect(page.locator("[data-answer]")).to_have_text("Rui is your")
    expect(page.locator(".pending [aria-label='Given to the model']")).to_contain_text("Rui is a running friend")
    seen.set()
    made(page)
    expect(page.locator("article.turn .said.assistant .words")).to_have_text("Rui is your running friend.")
    assert [(one.role, one.content) for one in talk.ana.messages()] == [
        ("user", "Who is Rui?"),
        ("assistant", "Rui is your running friend."),
    ]
    page = talk.look(CHAT)
    expect(page.locator("[aria-label='Given to the model']")).to_contain_text("tokens")
    page.locator("[aria-label='Given to the model'] summary").first.click()
    expect(page.get_by_role("link", name="Rui is a running friend")).to_be_visible()


def test_what_the_model_notes_for_itself_is_not_shown_while_it_comes(talk: Talk) -> None:
    seen = threading.Event()
    note = "\nMEMORY_APPEND: Answer in short sentences"
    talk.model.always(only_chat(streamed("Hello.", note[:8], note[8:], pause=lambda: seen.wait(0.2))))
    page = talk.look(CHAT)
    say(page, "Hello")
    made(page)
    expect(page.locator(".said.assistant .words")).to_have_text("Hello.")
    expect(page.locator("[aria-label='Learned from this turn']")).to_contain_text("Answer in short sentences")


def test_a_model_that_fails_is_told_and_the_message_is_kept(talk: Talk) -> None:
    talk.model.always(only_chat(FAULTS["wrong_key"]))
    page = talk.look(CHAT)
    say(page, "Hello")
    made(page)
    expect(page.get_by_role("alert")).to_contain_text("Your message is kept")
    assert [one.content for one in talk.ana.messages()] == ["Hello"]


def test_a_model_that_cannot_be_learned_with_is_told_beside_its_answer(talk: Talk) -> None:
    talk.model.always(lambda exchange: (streamed("Fine.") if exchange.asked.body.get("stream") else FAULTS["ill"])(exchange))
    page = talk.look(CHAT)
    say(page, MOVED)
    made(page)
    expect(page.locator(".said.assistant .words")).to_have_text("Fine.")
    expect(page.get_by_role("alert")).to_contain_text("Not learned yet")
    assert "Nothing new was learned" not in page.locator("main").inner_text()


def test_without_a_model_it_shows_what_one_would_be_given(alone: Talk) -> None:
    alone.ana.remember("Rui is a running friend", "PEOPLE", entities=["person:Rui"])
    page = alone.look(CHAT)
    assert "No model is configured" in page.locator("main").inner_text()
    say(page, "Who is Rui?")
    made(page)
    shown = page.get_by_label("What a model would be given").inner_text()
    assert "Rui is a running friend" in shown
    assert "Who is Rui?" in shown
    assert [one.role for one in alone.ana.messages()] == ["user"]


def test_a_long_chat_opens_at_its_latest_turn(alone: Talk) -> None:
    for number in range(30):
        alone.ana.append("user", f"I ran {number} kilometres.")
    page = alone.look(CHAT)
    said = page.get_by_text("I ran 29 kilometres.", exact=True).first
    expect(said).to_be_in_viewport()
    below, form = said.bounding_box(), page.locator("#compose").bounding_box()
    assert below is not None
    assert form is not None
    assert below["y"] + below["height"] <= form["y"]


def test_what_a_turn_taught_is_corrected_pinned_and_undone_beside_it(alone: Talk) -> None:
    page = alone.look(CHAT)
    say(page, MOVED)
    made(page)
    learned = page.locator("[aria-label='Learned from this turn'] li", has_text="Clara lives in Porto")
    learned.get_by_role("button", name="Pin").click()
    expect(page.locator("#page > .notice[role=status]")).to_be_visible()
    assert any(one.memory.pinned for one in alone.ana.memories.list())
    learned = page.locator("[aria-label='Learned from this turn'] li", has_text="Clara lives in Porto")
    learned.get_by_role("button", name="Unpin").click()
    expect(page.locator("#page > .notice[role=status]")).to_contain_text("Unpinned")
    learned.locator("summary").click()
    learned.get_by_label("Correction").fill("Clara lives in Braga")
    learned.locator("input[name=value]").fill("Braga")
    learned.get_by_role("button", name="Correct").click()
    expect(page.locator("#page > .notice[role=status]")).to_contain_text("Corrected")
    assert "/chat" in page.url
    corrected = page.locator("[aria-label='Learned from this turn'] li", has_text="Clara lives in Braga")
    expect(corrected).to_contain_text("corrected")
    known = {one.content for one in alone.ana.memories.list()}
    assert "Clara lives in Braga" in known
    assert "Clara lives in Porto" not in known
    page.locator("#page > .notice[role=status]").get_by_role("button", name="Undo").click()
    expect(page.locator("#page > .notice[role=status]")).to_contain_text("Undone: Clara lives in")
    assert "Clara lives in Porto" in {one.content for one in alone.ana.memories.list()}


def test_the_chat_works_without_scripts(talk: Talk) -> None:
    talk.model.always(only_chat(streamed("Hello, ", "Ana.")))
    page = talk.look(CHAT, scripts=False)
    page.get_by_label("Message").fill("Hello")
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".said.assistant .words")).to_have_text("Hello, Ana.")


def test_any_agent_and_channel_can_be_talked_to(alone: Talk) -> None:
    page = alone.look("/u/ana/chat")
    page.get_by_label("Agent", exact=True).fill("planner")
    page.get_by_label("Channel", exact=True).fill("terminal")
    page.get_by_role("button", name="Switch").click()
    say(page, "Hello")
    made(page)
    planner = alone.engine.memory("ana", agent="planner", channel="terminal")
    assert [one.content for one in planner.messages()] == ["Hello"]


def test_no_text_of_a_chat_is_ever_run(talk: Talk) -> None:
    talk.model.always(only_chat(streamed(EVIL, EVIL)))
    page = talk.look(CHAT)
    say(page, f"I like {EVIL}")
    made(page)
    assert page.locator("img, main script").count() == 0
    assert "\u202e" not in page.content()


def test_an_empty_message_and_a_key_that_only_reads_say_nothing() -> None:
    with perdure.open("memory:") as engine:
        app = build(engine, Options(no_auth=True))
        client = TestClient(app, base_url="http://127.0.0.1", headers={"Accept": "text/html"})
        form = {"_csrf": app.state.guard.csrf_local, "text": "  "}
        refused = client.post("/u/ana/chat", data=form)
        assert refused.status_code == 422
        assert "the message is empty" in refused.text
        assert client.post("/u/ana/chat", data={"text": "Hello"}).status_code == 403
        key = engine.api_keys.create("a key", permission="read").secret
        reader = TestClient(app, base_url="http://127.0.0.1", headers={"Accept": "text/html", "Authorization": f"Bearer {key}"})
        assert "data-chat" not in reader.get("/u/ana/chat").text
        assert reader.post("/u/ana/chat", data={"text": "Hello"}).status_code == 403
        assert engine.memory("ana").messages() == []
