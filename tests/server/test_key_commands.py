"""`perdure key`, and what `perdure serve` opens."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import perdure
import perdure.interfaces
from perdure.interfaces import server
from perdure.interfaces.cli import commands


@pytest.fixture
def perdure_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """A command on a store of its own; what it printed."""
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("PERDURE_URL", f"sqlite:///{tmp_path}/store.db")

    def run(*words: str) -> str:
        commands.app(list(words), standalone_mode=False)
        return capsys.readouterr().out

    return run


def test_a_secret_is_printed_once_and_alone(perdure_: Callable[..., str], tmp_path: Path) -> None:
    secret = perdure_("key", "create", "laptop", "--for", "ana", "--user", "bo", "--permission", "read", "--days", "2").strip()
    with perdure.open(f"sqlite:///{tmp_path}/store.db") as engine:
        found = engine.api_keys.recognise(secret)
    assert found is not None
    assert (found.users, found.permissions) == (("ana", "bo"), ("read",))
    listed = perdure_("key", "list")
    assert "ana, bo" in listed
    assert secret not in listed
    assert "lets nobody in" in perdure_("key", "revoke", found.id)
    assert json.loads(perdure_("key", "list", "--json"))[0]["revoked_at"]


def test_keys_speak_json(perdure_: Callable[..., str]) -> None:
    made = json.loads(perdure_("key", "create", "all", "--json"))
    assert made["secret"].startswith(f"pdr_{made['key']['id']}_")
    assert (made["key"]["users"], made["key"]["permissions"]) == (None, ["read", "write"])
    assert json.loads(perdure_("key", "revoke", made["key"]["id"], "--json"))["id"] == made["key"]["id"]


def test_keys_belong_to_their_space(perdure_: Callable[..., str]) -> None:
    perdure_("key", "create", "laptop", "--space", "other")
    assert json.loads(perdure_("key", "list", "--json")) == []
    assert len(json.loads(perdure_("key", "list", "--space", "other", "--json"))) == 1


class Served:
    """In place of a server: what it was asked to serve."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.stores: list[str] = []
        self.options: list[Any] = []

        def build(engine: perdure.Engine, options: Any) -> object:
            self.stores.append(engine.health().store.location)
            self.options.append(options)
            return object()

        monkeypatch.setattr(server, "build", build)
        monkeypatch.setattr(server, "run", lambda _app, _at, ready: ready())


def test_the_demo_has_a_store_of_its_own_that_is_filled_once(
    perdure_: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled: list[perdure.Engine] = []

    def fill(engine: perdure.Engine) -> None:
        filled.append(engine)
        engine.memory("demo").append("user", "hello")

    demo = SimpleNamespace(USER="demo", fill=fill)
    monkeypatch.setattr(perdure.interfaces, "demo_data", demo, raising=False)
    monkeypatch.setitem(sys.modules, "perdure.interfaces.demo_data", demo)
    served = Served(monkeypatch)
    for _ in range(2):
        perdure_("serve", "--demo", "--port", "0")
    assert f"sqlite:///{tmp_path}/perdure/demo.db" in perdure_("serve", "--demo", "--port", "0"), (
        "the agent is given this store"
    )
    perdure_("serve", "--port", "0")
    assert [Path(one).name for one in served.stores] == ["demo.db"] * 3 + ["store.db"]
    assert [one.user for one in served.options] == ["demo"] * 3 + [None]
    assert len(filled) == 1


def test_half_a_demo_is_taken_away(perdure_: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fill(engine: perdure.Engine) -> None:
        engine.memory("demo").append("user", "hello")
        raise RuntimeError

    demo = SimpleNamespace(USER="demo", fill=fill)
    monkeypatch.setattr(perdure.interfaces, "demo_data", demo, raising=False)
    monkeypatch.setitem(sys.modules, "perdure.interfaces.demo_data", demo)
    with pytest.raises(RuntimeError):
        perdure_("serve", "--demo", "--port", "0")
    with perdure.open(f"sqlite:///{tmp_path}/perdure/demo.db") as engine:
        assert engine.users() == []


def test_it_says_what_to_open_and_how_to_connect_an_agent(
    perdure_: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    served = Served(monkeypatch)
    said = perdure_("serve", "--port", "0", "--user", "ana", "--rate", "9", "--tools", "state", "--body-max-mb", "2")
    for word in ("page:", "/openapi.json", "/mcp", '"command": "perdure"', "Ctrl-C", "whoever is on this machine"):
        assert word in said
    [options] = served.options
    assert (options.user, options.rate, options.tools, options.body_max_mb) == ("ana", 9, "state", 2)
    told = json.loads(perdure_("serve", "--port", "0", "--require-key", "--allow-host", "a.example", "--json"))
    assert told["asks_for_key"]
    assert "Authorization" in told["connect"]["http"]["mcpServers"]["perdure"]["headers"]
    assert served.options[-1].allow_hosts == ("a.example",)
