"""`perdure admin key`, and what `perdure serve` opens."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import perdure
import perdure.interfaces.demo
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
    secret = perdure_(
        "admin", "key", "create", "laptop", "--for", "ana", "--user", "bo", "--permission", "read", "--days", "2"
    ).strip()
    with perdure.open(f"sqlite:///{tmp_path}/store.db") as engine:
        found = engine.api_keys.recognise(secret)
    assert found is not None
    assert (found.users, found.permissions) == (("ana", "bo"), ("read",))
    listed = perdure_("admin", "key", "list")
    assert "ana, bo" in listed
    assert secret not in listed
    assert "is revoked" in perdure_("admin", "key", "revoke", found.id)
    assert json.loads(perdure_("admin", "key", "list", "--json"))[0]["revoked_at"]


def test_keys_speak_json(perdure_: Callable[..., str]) -> None:
    made = json.loads(perdure_("admin", "key", "create", "all", "--json"))
    assert made["secret"].startswith(f"pdr_{made['key']['id']}_")
    assert (made["key"]["users"], made["key"]["permissions"]) == (None, ["read", "write"])
    assert json.loads(perdure_("admin", "key", "revoke", made["key"]["id"], "--json"))["id"] == made["key"]["id"]


def test_keys_belong_to_their_space(perdure_: Callable[..., str]) -> None:
    perdure_("admin", "key", "create", "laptop", "--space", "other")
    assert json.loads(perdure_("admin", "key", "list", "--json")) == []
    assert len(json.loads(perdure_("admin", "key", "list", "--space", "other", "--json"))) == 1


def test_the_token_is_printed_alone_and_made_anew_when_asked(perdure_: Callable[..., str], tmp_path: Path) -> None:
    token = perdure_("admin", "token").strip()
    file = tmp_path / "store.db.token"
    assert file.read_text().strip() == token
    assert json.loads(perdure_("admin", "token", "--json")) == {"token": token, "file": str(file)}
    other = perdure_("admin", "token", "--renew").strip()
    assert other != token
    assert perdure_("admin", "token").strip() == other
    assert file.stat().st_mode & 0o777 == 0o600
    with pytest.raises(perdure.InvalidInput, match="store in memory"):
        perdure_("admin", "token", "--url", "memory:")


@pytest.mark.parametrize(("mode", "text", "words"), [(0o644, None, "other accounts"), (0o600, "secret", "holds no token")])
def test_a_token_that_is_none_is_refused_with_a_remedy(
    perdure_: Callable[..., str], tmp_path: Path, mode: int, text: str | None, words: str
) -> None:
    file = tmp_path / "store.db.token"
    token = perdure_("admin", "token").strip()
    file.write_text(token if text is None else text)
    file.chmod(mode)
    with pytest.raises(perdure.InvalidInput, match=words):
        perdure_("serve", "--port", "0")
    file.unlink()
    assert perdure_("admin", "token").strip() != token


def test_a_store_on_a_server_has_its_token_among_the_users_data(perdure_: Callable[..., str], tmp_path: Path) -> None:
    one, same, other = (
        json.loads(perdure_("admin", "token", "--json", "--url", f"postgresql://me:{word}@localhost/{name}"))
        for word, name in (("first", "a"), ("second", "a"), ("first", "b"))
    )
    assert one == same, "whatever the password"
    assert one["token"] != other["token"]
    assert Path(one["file"]).parent == tmp_path / "perdure"


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
    monkeypatch.setattr(perdure.interfaces.demo, "data", demo, raising=False)
    monkeypatch.setitem(sys.modules, "perdure.interfaces.demo.data", demo)
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
    monkeypatch.setattr(perdure.interfaces.demo, "data", demo, raising=False)
    monkeypatch.setitem(sys.modules, "perdure.interfaces.demo.data", demo)
    with pytest.raises(RuntimeError):
        perdure_("serve", "--demo", "--port", "0")
    with perdure.open(f"sqlite:///{tmp_path}/perdure/demo.db") as engine:
        assert engine.users() == []


def test_it_says_what_to_open_and_how_to_connect_an_agent(
    perdure_: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    served = Served(monkeypatch)
    said = perdure_("serve", "--port", "0", "--user", "ana", "--rate", "9", "--tools", "state", "--body-max-mb", "2")
    for word in ("page:", "/openapi.json", "/mcp", '"command": "perdure"', "Ctrl-C", "Authorization: Bearer $(cat "):
        assert word in said
    [options] = served.options
    assert (options.user, options.rate, options.tools, options.body_max_mb) == ("ana", 9, "state", 2)
    assert f"/login?token={options.token}" in said
    told = json.loads(perdure_("serve", "--port", "0", "--allow-host", "a.example", "--json"))
    assert (told["access"], served.options[-1].token) == ("token", options.token), "stable across restarts"
    assert told["connect"]["http"]["mcpServers"]["perdure"]["headers"] == {"Authorization": f"Bearer {options.token}"}
    assert served.options[-1].allow_hosts == ("a.example",)
