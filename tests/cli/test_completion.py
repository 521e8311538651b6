"""What makes the command line comfortable: completion, progress on a terminal, and settings one by one."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import perdure
from in_process import InProcess
from perdure.interfaces.cli.completion import series_names, setting_names, state_keys, user_names
from perdure.interfaces.cli.output import Output
from perdure.interfaces.errors import EXIT_CODES


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with something to complete."""
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    file = tmp_path / "held.db"
    monkeypatch.setenv("PERDURE_URL", f"sqlite:///{file}")
    with perdure.open() as engine:
        for user in ("ana", "anton", "bob"):
            engine.memory(user).state.save("units", "metric")
        engine.memory("ana").state.save("unity\x1b", 1)
        engine.memory("ana").series("runs").configure(zone="UTC")
    return file


class Line:
    """A command line as a shell completes it: what was read of the global options so far."""

    def __init__(self, **params: str) -> None:
        self.params: dict[str, Any] = params

    def find_root(self) -> Line:
        return self


# -- completion


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_script(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with perdure.open("memory:") as engine:
        done = InProcess(monkeypatch, engine).run("--show-completion", shell)
    assert done.code == 0
    assert "_PERDURE_COMPLETE" in done.stdout
    assert f"complete_{shell}" in done.stdout


def test_a_shell_is_offered_commands_users_and_keys(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with perdure.open("memory:") as engine:
        cli = InProcess(monkeypatch, engine)

        def offered(*words: str) -> set[str]:
            with monkeypatch.context() as patch:
                patch.setenv("_PERDURE_COMPLETE", "complete_bash")
                patch.setenv("COMP_WORDS", " ".join(("perdure", *words)))
                patch.setenv("COMP_CWORD", str(len(words)))
                return set(cli.run().stdout.split())

        assert {"serve", "series", "session"} <= offered("se")
        assert offered("state", "get", "--user", "an") == {"ana", "anton"}
        assert offered("state", "get", "--user", "ana", "un") == {"units"}
        assert offered("admin", "config", "get", "zo") == {"zone"}
    assert store.exists()


def test_completion_finds_what_there_is(store: Path) -> None:
    line: Any = Line(user="ana")
    assert user_names(line, "an") == ["ana", "anton"]
    # A name that would turn the terminal around is not offered.
    assert state_keys(line, "un") == ["units"]
    assert series_names(line, "") == ["runs"]
    assert setting_names("session_") == ["session_idle_s", "session_resume_s"]


def test_completion_never_fails_and_never_makes_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    broken = tmp_path / "broken.db"
    broken.write_text("this is no store " * 100)
    for url in (
        f"sqlite:///{tmp_path}/none.db",
        f"sqlite:///{broken}",
        "memory:",
        "postgresql://nobody@192.0.2.1/x",
        "",
        "nonsense",
    ):
        line: Any = Line(url=url, user="ana")
        assert (user_names(line, ""), state_keys(line, ""), series_names(line, "")) == ([], [], [])
    nobody: Any = Line(url=f"sqlite:///{broken}")
    monkeypatch.setenv("PERDURE_NONSENSE", "1")
    assert user_names(nobody, "") == []
    assert sorted(one.name for one in tmp_path.rglob("*.db")) == ["broken.db"]


# -- progress


def on_a_terminal(*, as_json: bool) -> tuple[Output, io.StringIO]:
    out, seen = Output(as_json=as_json), io.StringIO()
    out._err = Console(file=seen, force_terminal=True, width=100, highlight=False)
    return out, seen


def test_progress_is_drawn_on_a_terminal_with_what_is_in_hand() -> None:
    out, seen = on_a_terminal(as_json=False)
    with out.progress("backing up", total=30) as progress:
        assert progress is not None
        progress("messages", 10)
        progress("sta[te", 5)
    assert "backing up: sta[te" in seen.getvalue()
    assert "15 of 30" in seen.getvalue()
    out, seen = on_a_terminal(as_json=False)
    with out.progress("verifying") as progress:
        assert progress is not None
        progress("messages", 1_234)
    assert "1,234" in seen.getvalue()
    assert " of " not in seen.getvalue()


def test_progress_is_silent_in_json_and_off_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    out, seen = on_a_terminal(as_json=True)
    with out.progress("backing up") as progress:
        assert progress is None
    assert seen.getvalue() == ""
    with Output(as_json=False).progress("backing up") as progress:
        assert progress is None
    assert capsys.readouterr() == ("", "")


def test_a_worker_tells_what_it_ran() -> None:
    told: list[tuple[str, int]] = []
    with perdure.open("memory:") as engine:
        engine.memory("ana").append("user", "I moved to Austin")
        report = engine.worker().process(10.0, progress=lambda kind, count: told.append((kind, count)))
    last = dict(told)
    assert sum(last.values()) == report.ran > 0
    assert {"index", "tally"} <= last.keys()


# -- settings


def test_settings_are_listed_with_their_sources_and_got_one_by_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "perdure.toml"
    file.write_text('zone = "Europe/Berlin"\nmodel_key = "sk-secret"\n')
    monkeypatch.setenv("PERDURE_CONFIG", str(file))
    monkeypatch.setenv("PERDURE_SPACE", "shop")
    with perdure.open("memory:") as engine:
        cli = InProcess(monkeypatch, engine)
        listed = {one["name"]: one for one in cli.run("admin", "config", "list", "--json", "--user", "ana").json}
        assert listed["zone"] == {"name": "zone", "value": "Europe/Berlin", "source": str(file)}
        assert (listed["space"]["source"], listed["user"]["source"]) == ("PERDURE_SPACE", "argument")
        assert listed["deadline_s"]["source"] == "default"
        assert cli.run("admin", "config", "get", "zone").stdout == "Europe/Berlin\n"
        assert cli.run("admin", "config", "get", "model_key").stdout == "(set)\n"
        assert cli.run("admin", "config", "get", "zone", "--json").json == listed["zone"]
        assert cli.run("admin", "config", "get", "colour").code == EXIT_CODES["not_found"]
        assert cli.run("admin", "config", "path").stdout == f"{file}\n"
        assert cli.run("admin", "config", "path", "--json").json == {"path": str(file), "exists": True}
        assert "sk-secret" not in json.dumps(listed)
