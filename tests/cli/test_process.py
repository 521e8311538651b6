"""The command line, as a user runs it: in a process of its own, with real pipes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fork_server import ForkServer
from perdure.domain.errors import ALL_ERRORS
from perdure.interfaces.cli.derived import in_commands
from perdure.interfaces.errors import EXIT_CODES

SCRIPT = Path(sys.executable).with_name("perdure")


class Shell:
    def __init__(self, folder: Path, script: Path) -> None:
        self.folder = folder
        self.script = script
        home = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config"), "XDG_DATA_HOME": str(folder / "data")}
        self.env = {"PATH": os.environ["PATH"], "PERDURE_URL": f"sqlite:///{folder}/cli.db", "COLUMNS": "200", **home}

    def run(self, *args: str, stdin: str | None = None, **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.script), *args],
            capture_output=True,
            text=True,
            timeout=120,
            input=stdin,
            env={**self.env, **env},
            cwd=self.folder,
        )

    def json(self, *args: str) -> Any:
        done = self.run(*args, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def shell(tmp_path: Path, forked: ForkServer) -> Shell:
    return Shell(tmp_path, forked.bin / "perdure")


@pytest.fixture
def installed(tmp_path: Path) -> Shell:
    """The script that was installed, which starts Python anew for each command."""
    return Shell(tmp_path, SCRIPT)


def test_a_message_goes_in_and_comes_back(installed: Shell) -> None:
    shell = installed
    sent = shell.json("append", "user", "I moved to Seattle", "--user", "ana", "--agent", "coach")
    assert (sent["seq"], sent["repeated"]) == (1, False)
    [held] = shell.json("--user", "ana", "--agent=coach", "messages")
    assert held == sent
    assert shell.json("messages", "--user", "bob") == []
    assert "I moved to Seattle" in shell.run("messages", "--user", "ana", "--agent", "coach").stdout
    assert (
        "(already held)"
        in shell.run("append", "user", "I moved to Seattle", "--user", "ana", "--agent", "coach", "--id", sent["id"]).stdout
    )


def test_text_comes_from_stdin_and_words_that_look_like_options_are_kept(shell: Shell) -> None:
    shell.run("append", "--user", "ana", "user", "-", stdin="from a pipe\nwith two lines")
    shell.run("append", "--user", "ana", "--", "user", "--json")
    assert [one["content"] for one in shell.json("messages", "--user", "ana")] == ["from a pipe\nwith two lines", "--json"]


def test_the_slice_from_message_to_journal(shell: Shell) -> None:
    shell.run("append", "--user", "ana", "user", "hello", "--session", "s", "--at", "2026-01-05T09:00:00+01:00")
    assert [(one["kind"], one["state"]) for one in shell.json("admin", "jobs", "list", "--user", "ana")] == [("tally", "ready")]
    assert shell.json("worker", "--once")["ran"] > 0
    assert shell.json("session", "tally", "--user", "ana")["by_role"] == {"user": 1}
    assert "tally/1" in {one["actor"] for one in shell.json("journal", "list", "--user", "ana")}
    assert shell.json("session", "list", "--user", "ana")[0]["opened_at"] == "2026-01-05T08:00:00+00:00"
    assert shell.json("admin", "jobs", "retry", "--user", "ana") == {"retried": 0}
    assert shell.json("admin", "purge")["jobs_removed"] > 0
    for command in ("session list", "session tally", "journal list", "admin jobs list"):
        done = shell.run(*command.split(), "--user", "ana")
        assert (done.returncode, done.stderr) == (0, "" if command != "admin jobs list" else "no such jobs\n"), command


def test_state_from_the_shell(shell: Shell, tmp_path: Path) -> None:
    user = ("--user", "ana")
    assert shell.json("state", "set", "units", '"metric"', *user) == {"key": "units", "revision": 1}
    (tmp_path / "v.json").write_text('{"a": [1, null]}')
    shell.json("state", "set", "units", "@v.json", "--expected", "1", *user)
    assert shell.run("state", "set", "units", "1", "--expected", "1", *user).returncode == EXIT_CODES["conflict"]
    assert shell.run("state", "set", "list", "-", *user, stdin="[]").returncode == 0
    assert shell.json("state", "get", "units", *user)["value"] == {"a": [1, None]}
    assert json.loads(shell.run("state", "get", "units", *user).stdout) == {"a": [1, None]}
    assert shell.json("state", "get", "units", "--revision", "1", *user)["value"] == "metric"
    assert [one["key"] for one in shell.json("state", "list", *user)] == ["list", "units"]
    assert shell.json("state", "search", "un*", *user)["results"] == {"units": {"a": [1, None]}}
    assert [one["number"] for one in shell.json("state", "history", "units", *user)] == [2, 1]
    assert shell.json("state", "restore", "units", "1", *user)["revision"] == 3
    assert shell.json("state", "delete", "list", *user)["deleted"] is True
    assert shell.run("state", "get", "list", *user).returncode == EXIT_CODES["not_found"]
    assert shell.run("state", "set", "x", "not json", *user).returncode == EXIT_CODES["invalid_input"]
    assert shell.run("state", "clear", *user).returncode == EXIT_CODES["invalid_input"]
    assert shell.json("state", "clear", "--yes", *user) == {"deleted": 1}
    assert shell.json("state", "list", *user) == []


def test_series_from_the_shell(shell: Shell) -> None:
    user = ("--user", "ana")
    entries = json.dumps([{"a": 1, "timestamp": "2025-10-02T10:00:00Z"}, {"timestamp": "soon"}])
    window = ("--window", "2025-10-01T00:00:00Z", "2025-10-03T00:00:00Z")
    done = shell.json("series", "merge", "kudos_timeseries", entries, *window, "--id-template", "k_{a}", *user)
    assert (done["added"], len(done["rejected"])) == (1, 1)
    answer = shell.json("series", "query", "kudos_timeseries", "2025-10-01", "2025-10-05", *user)
    assert (answer["coverage"], answer["count"]) == ("partial", 1)
    [gap] = shell.json("series", "gaps", "kudos_timeseries", "2025-10-01", "2025-10-05", *user)
    assert gap == {"start": "2025-10-03T00:00:00+00:00", "end": "2025-10-05T00:00:00+00:00"}
    assert [one["name"] for one in shell.json("series", "list", *user)] == ["kudos_timeseries"]
    shown = shell.run("series", "show", "kudos_timeseries", "--days", "3000", *user).stdout
    assert "·" in shown
    assert "1 entry" in shown
    assert len(shell.json("series", "show", "kudos_timeseries", "--days", "3000", *user)["windows"]) == 1
    assert json.loads(shell.run("series", "export", "kudos_timeseries", *user).stdout)["_id"] == "k_1"
    assert shell.run("series", "export", "kudos_timeseries", "--format", "csv", *user).stdout.startswith("a,timestamp,_id")
    assert shell.json("series", "cleanup", "kudos_timeseries", "--keep-days", "1", *user)["removed"] == 1
    assert shell.run("series", "export", "nothing", *user).returncode == EXIT_CODES["not_found"]
    assert (
        shell.run("series", "query", "kudos_timeseries", "2025-10-05", "2025-10-01", *user).returncode
        == EXIT_CODES["invalid_input"]
    )


def test_backup_restore_and_verify(shell: Shell, tmp_path: Path) -> None:
    shell.run("append", "--user", "ana", "user", "hello")
    assert shell.json("admin", "backup", "b.perdure")["rows"]["messages"] == 1
    assert shell.run("admin", "backup", "b.perdure").returncode == EXIT_CODES["conflict"]
    assert shell.run("admin", "backup", "b.perdure", "--replace").returncode == 0
    assert shell.run("admin", "restore", "b.perdure").returncode == EXIT_CODES["conflict"]
    assert shell.json("admin", "restore", "b.perdure", "--url", "sqlite:///copy.db")["rows"]["messages"] == 1
    assert shell.json("admin", "verify", "--url", "sqlite:///copy.db")["clean"] is True
    assert "sound" in shell.run("admin", "verify").stdout


def test_verify_tells_by_its_exit_code(shell: Shell, tmp_path: Path) -> None:
    shell.run("append", "--user", "ana", "user", "hello")
    import apsw

    vandal = apsw.Connection(str(tmp_path / "cli.db"))
    vandal.execute("UPDATE sessions SET messages = 9")
    vandal.close()
    done = shell.run("admin", "verify")
    assert done.returncode == EXIT_CODES["corrupt"]
    assert "a session counts its messages" in done.stdout
    assert json.loads(shell.run("admin", "verify", "--json").stdout)["clean"] is False


def test_doctor_is_healthy_or_says_what_is_not(shell: Shell) -> None:
    assert "healthy" in shell.run("doctor").stdout
    done = shell.run("doctor", "--url", "memory:")
    assert done.returncode == 9
    assert "degraded" in done.stdout


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["append", "user", "x"], 2, "--user"),
        (["append", "bishop", "x", "--user", "ana"], 2, "bishop"),
        (["frobnicate"], 2, "--help"),
        (["messages", "--user", "ana", "--limit", "0"], 2, "limit"),
        (["messages", "--user", "ana", "--limit", "99999999"], 6, "page_rows_max"),
        (["messages", "--user", "ana", "--session", "none"], 3, "none"),
        (["admin", "restore", "nothing.here"], 3, "nothing.here"),
        (["doctor", "--url", "mysql://h/x"], 2, "sqlite:///"),
        (["append", "user", "x", "--user", "ana", "--at", "noon"], 2, "ISO 8601"),
        (["append", "user", "x", "--user", "ana", "--at", "2026-01-01"], 2, "time zone"),
        (["append", "--user", "ana"], 2, "ROLE and CONTENT"),
        (["append", "user", "--file", "-", "--user", "ana"], 2, "`--file`"),
        (["append", "user", "--user", "ana"], 2, "CONTENT"),
        (["doctor", "--url", "sqlite:////no/such/dir/x.db"], 5, "directory"),
        (["messages", "--user", ""], 2, "--user"),
    ],
)
def test_bad_input_gets_one_clear_line_and_a_stable_exit_code(shell: Shell, args: list[str], code: int, words: str) -> None:
    done = shell.run(*args)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    told = json.loads(shell.run(*args, "--json").stderr)["error"]
    assert EXIT_CODES[told["code"]] == code
    assert words in told["message"]


def test_every_error_has_an_exit_code() -> None:
    assert {error.code for error in ALL_ERRORS} == EXIT_CODES.keys()
    assert len(set(EXIT_CODES.values())) == len(EXIT_CODES)


def test_text_from_memory_is_shown_never_obeyed(shell: Shell) -> None:
    shell.run("append", "--user", "ana", "user", "[red]boo[/red] \x1b[2J\x07 done")
    shown = shell.run("messages", "--user", "ana").stdout
    assert "[red]boo[/red]" in shown
    assert "\x1b" not in shown
    assert "\\x1b[2J\\x07" in shown


def test_settings_are_listed_with_their_sources_and_without_passwords(shell: Shell) -> None:
    listed = {one["name"]: one for one in shell.json("admin", "config", "list", "--url", "postgresql://ana:hunter2@h/db")}
    assert listed["url"] == {"name": "url", "value": "postgresql://ana:***@h/db", "source": "argument"}
    assert listed["queue_jobs_max"]["source"] == "default"
    for url in (
        "postgresql://ana:hunter2@h/db",
        "postgresql://h/db?user=ana&password=hunter2",
        "postgresql://ana:h@hunter2@h/db",
    ):
        assert "hunter2" not in shell.run("admin", "config", "list", PERDURE_URL=url).stdout


def test_a_reader_that_goes_away_is_no_error(shell: Shell) -> None:
    shell.run("append", "--user", "ana", "user", "word " * 20_000)
    done = subprocess.run(
        f"{SCRIPT} messages --user ana | head -c 10", shell=True, capture_output=True, text=True, env=shell.env, timeout=60
    )
    assert "Traceback" not in done.stderr


def test_the_demo_walks_through_everything(shell: Shell) -> None:
    steps = shell.json("demo")
    assert {step["about"] for step in steps} == {"log", "series", "overseer", "context", "knowledge", "lessons", "store"}
    assert [step["at"] for step in steps] == sorted(step["at"] for step in steps)
    assert all(step.get("sound", True) is True and step.get("healthy", True) is True for step in steps)
    done = shell.run("demo")
    assert done.returncode == 0
    assert "07:00 A message is logged durably (log)\n      id: m1  session: 1  seq: 1" in done.stdout
    assert list(shell.folder.iterdir()) == []


def test_every_command_explains_itself(shell: Shell) -> None:
    listing = shell.run("--help").stdout
    for command in ("append", "messages", "session", "journal", "worker", "doctor", "demo", "admin"):
        assert command in listing
        assert shell.run(command, "--help").returncode == 0
    assert shell.run("--version").stdout.startswith("perdure ")


def test_an_error_names_the_command_or_the_option_that_helps() -> None:
    assert (
        in_commands("no memory 'x'; list them with `memories.list()`") == "no memory 'x'; list them with `perdure memory list`"
    )
    assert in_commands("no session; list them with `sessions()`") == "no session; list them with `perdure session list`"
    assert in_commands("exists; replace it with `replace=True`") == "exists; replace it with `--replace`"
    assert in_commands("ask `other.call()`") == "ask `other.call()`"
