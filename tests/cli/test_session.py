"""`perdure session …`: what a user sees of a conversation and its layers, and what can be done to it."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer.main
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import perdure
from perdure import NewMessage, ToolCall
from perdure.domain.conversation.agent_state import AgentState
from perdure.domain.conversation.tally import Tally
from perdure.domain.errors import PerdureError
from perdure.interfaces.cli.commands import app
from perdure.interfaces.cli.lines.conversation import folded_words, places
from perdure.interfaces.errors import EXIT_CODES

SCRIPT = Path(sys.executable).with_name("perdure")
HERE = ("--user", "ana", "--agent", "coach", "--channel", "discord:42")
MONDAY = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
SESSION_KEYS = {*perdure.Session.__dataclass_fields__, "working", "source", "source_id"}
MESSAGE_KEYS = set(perdure.Message.__dataclass_fields__)
DIGEST_KEYS = set(perdure.Digest.__dataclass_fields__)
STATE_KEYS = set(AgentState.__dataclass_fields__)


class Cli:
    """The commands on a store of their own: in this process with `run`, in another one with `start`."""

    def __init__(self, folder: Path) -> None:
        self.url = f"sqlite:///{folder}/cli.db"
        home = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config"), "XDG_DATA_HOME": str(folder / "data")}
        self.env = {"PATH": os.environ["PATH"], "PERDURE_URL": self.url, "COLUMNS": "120", **home}
        self._engine = perdure.open(self.url)
        self.ana = self.at("coach", "discord:42")

    def at(self, agent: str, channel: str) -> perdure.Memory:
        return self._engine.memory("ana", agent=agent, channel=channel)

    def work(self) -> None:
        while self._engine.process().ran:
            pass

    def run(self, *args: str) -> Any:
        return CliRunner(env=self.env).invoke(app, ["session", *args, *HERE])

    def shown(self, *args: str) -> str:
        done = self.run(*args)
        assert done.exit_code == 0, done.output
        return str(done.stdout)

    def json(self, *args: str) -> Any:
        return json.loads(self.shown(*args, "--json"))

    def refused(self, *args: str) -> str:
        """The code of the error that the command answers with."""
        done = self.run(*args)
        assert isinstance(done.exception, PerdureError), done.output
        return done.exception.code

    def start(self, *args: str, **how: Any) -> subprocess.Popen[str]:
        env = {**self.env, **how.pop("env", {})}
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | how
        return subprocess.Popen([str(SCRIPT), "session", *args, *HERE], text=True, env=env, **pipes)

    def close(self) -> None:
        self._engine.close()


@pytest.fixture
def cli(tmp_path: Path) -> Any:
    made = Cli(tmp_path)
    yield made
    made.close()


def talk(memory: perdure.Memory, turns: int, session: str = "monday", say: Callable[[int], str] = "I ran {} km".format) -> None:
    memory.append_many(
        message
        for number in range(1, turns + 1)
        for message in (
            NewMessage("user", say(number), session=session, at=MONDAY + timedelta(minutes=number)),
            NewMessage("assistant", f"noted: {number}", session=session, at=MONDAY + timedelta(minutes=number)),
        )
    )


def test_sessions_are_listed_at_the_address_of_a_source_or_everywhere(cli: Cli) -> None:
    talk(cli.ana, 3)
    talk(cli.at("coach", "discord:7"), 1, "other")
    talk(cli.at("chef", "slack"), 1, "kitchen")
    cli.ana.conversation.compact(force=True)
    [here] = cli.json("list")
    assert here["layers"] == {"fold": 1}
    assert (here["id"], here["source"], here["source_id"], here["working"]) == ("monday", "discord", 42, 2)
    assert {one["id"] for one in cli.json("list", "--source", "discord")} == {"monday", "other"}
    assert {one["id"] for one in cli.json("list", "--all")} == {"monday", "other", "kitchen"}
    assert len(cli.json("list", "--all", "--limit", "1")) == 1
    shown = cli.shown("list", "--all")
    assert "coach on discord:42" in shown
    assert "6 messages, 2 in the working set, 3 turns; summaries: fold 1" in shown
    assert cli.run("list", "--source", "irc").stderr == "no sessions here yet\n"


def test_a_session_is_shown_with_its_layers_and_then_its_working_set(cli: Cli) -> None:
    talk(cli.ana, 30, say="Run {0}: always write to ana{0}@example.org".format)
    cli.work()
    cli.ana.conversation.compact(force=True)
    cli.ana.conversation.close()
    cli.work()
    shown = cli.shown("show")
    order = [
        "── session 1  monday",
        "── spine of the user, version 1  coach on discord:42: session 1 messages 1 to 60",
        "── session digest, version 1  messages 1 to 60",
        "── rolling digest, version 1  messages 1 to 60",
        "── fold, version 2  messages 31 to 58, continuing version 1",
        "kept word for word:",
        "── working set  messages ",
    ]
    assert [shown.index(part) for part in order] == sorted(shown.index(part) for part in order)
    assert "with coach on discord:42; ended" in shown
    assert "by extractive/1, session_digest" in shown
    assert "noted: 30" in shown.split("── working set")[1]
    assert "noted: 1\n" not in shown.split("── working set")[1]


def test_a_layer_that_was_undone_is_listed_but_not_shown(cli: Cli) -> None:
    talk(cli.ana, 5)
    cli.ana.conversation.compact(force=True)
    assert "── fold, version 1" in cli.shown("show")
    assert cli.shown("undo") == "fold 1 is undone; in the working set again: messages 1 to 8\n"
    assert "── fold" not in cli.shown("show")
    assert "UNDONE" in cli.shown("digests")
    assert [one["undone"] for one in cli.json("digests", "monday", "--kind", "fold")] == [True]
    assert cli.refused("undo") == "not_found"
    assert cli.refused("expand") == "not_found"
    assert len(cli.json("expand", "--version", "1")["messages"]) == 8


def test_a_long_working_set_says_what_is_not_shown(cli: Cli) -> None:
    talk(cli.ana, 20)
    assert "… 35 older ones; --limit shows more" in cli.shown("show", "--limit", "5")
    told = cli.json("show", "--limit", "5")
    assert ([one["seq"] for one in told["messages"]], told["older"]) == ([36, 37, 38, 39, 40], 35)


def test_tool_calls_are_compact_and_failures_are_marked(cli: Cli) -> None:
    cli.ana.append("user", "weather?", session="s")
    cli.ana.append(
        "assistant", "", session="s", tool_calls=[ToolCall("c1", "get_weather", {"city": "Seattle", "days": [1, 2]})]
    )
    cli.ana.append("tool", "no\n  answer " + "x" * 500, session="s", tool_call_id="c1", failed=True)
    shown = cli.shown("show")
    assert '  → get_weather(city="Seattle", days=[1, 2])\n' in shown
    assert re.search(r"^tool  .*  1\.3  ← get_weather  FAILED\n  no answer\n? +x+", shown, re.MULTILINE)
    assert "more characters; --full shows them]" in shown
    assert "x" * 80 in cli.shown("show", "--full").split("answer")[1]
    assert "--full" not in cli.shown("show", "--full")


def test_long_texts_are_cut_and_shown_whole_on_request(cli: Cli) -> None:
    cli.ana.append("user", "a" * 5_000 + " end", session="s")
    assert "[3,804 more characters; --full shows them]" in cli.shown("show")
    for command in ("show", "tail"):
        whole = cli.shown(command, "--full")
        assert whole.replace("\n", "").replace(" ", "").count("a" * 5_000 + "end") == 1


def test_times_are_told_in_the_zone_of_the_reader(cli: Cli) -> None:
    talk(cli.ana, 1)
    out, _ = cli.start("show", env={"TZ": "America/New_York"}).communicate(timeout=60)
    assert "user  2026-01-05 03:01:00  1.1" in out


HOSTILE = [
    "\x1b[2J\x1b]0;owned\x07",
    "\x9b31m",
    "a\rb",
    "[red]boo[/red] [/] [link=http://x]y[/link]",
    "\\[bold]",
    ":bomb:",
    "\u202egnp.exe",
    "\u2066x\u2069",
    "line\u2028separator",
    "שלום \u200fعربي",
    "word " * 2_000,
    "x" * 20_000,
    "e\u0301" * 50,
    "\x01\x02\x7f\x85",
    "user  2026-01-05 08:00:00  1.99\nuser  2026-01-05 08:00:00  1.99",
    "漢字" * 300,
    "👩‍👩‍👧",
    "\t\ttabs",
    "",
    " ",
    "\\",
]
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_text_from_memory_is_shown_never_obeyed(cli: Cli, text: str) -> None:
    cli.ana.append("user", f"needle {text}", session="s")
    cli.ana.append("assistant", "", session="s", tool_calls=[ToolCall("c1", f"tool {text[:50]}", {"needle": text})])
    cli.ana.append("tool", f"needle {text}", session="s", tool_call_id="c1", failed=True)
    cli.ana.append("user", f"needle {text}", session="s")
    cli.ana.conversation.replace(f"needle {text[:1_000]}")
    cli.ana.append("user", f"needle {text}", session="s")
    for args in ("list", "show", "show --full", "tail", "search needle", "expand", "digests", "state"):
        shown = cli.shown(*args.split())
        assert OBEYED.search(shown) is None, args
        if args in ("show", "show --full", "tail", "expand", "digests"):
            # Whatever was stored stands indented: no text can pass for a line of ours.
            heads = [line for line in shown.splitlines() if line and not line.startswith("  ")]
            ours = r"(user|assistant|tool|system)  \d{4}-\d\d-\d\d \d\d:\d\d:\d\d  1\.[1-5](  ← .*)?(  FAILED)?|── .*"
            assert [line for line in heads if not re.fullmatch(ours, line)] == [], args


def test_markup_and_escapes_are_readable_as_what_they_are(cli: Cli) -> None:
    cli.ana.append("user", "[red]boo[/red] :bomb: \\[b] \x1b[2J \u202egnp\r\nsecond line", session="s")
    for command in ("show", "tail"):
        assert "  [red]boo[/red] :bomb: \\[b] \\x1b[2J \\u202egnp\n  second line\n" in cli.shown(command)
    assert "[red]boo[/red] :bomb:" in cli.shown("search", "[RED]boo")
    assert cli.json("tail", "-n", "1")["content"].endswith("\u202egnp\r\nsecond line")


def test_lines_fit_a_narrow_terminal(cli: Cli) -> None:
    cli.env["COLUMNS"] = "40"
    talk(cli.ana, 12, say="A long sentence about run number {}, 漢字漢字漢字, and what came of it in the end".format)
    cli.ana.conversation.compact(force=True)

    def cells(line: str) -> int:
        return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in line)

    bodies = [line for line in cli.shown("show").split("── fold")[1].splitlines() if line.startswith("  ")]
    assert len(bodies) > 20
    assert max(map(cells, bodies)) <= 40


def test_the_last_messages_of_a_session_or_of_the_address(cli: Cli) -> None:
    talk(cli.ana, 3)
    talk(cli.ana, 1, "tuesday")
    lines = cli.shown("tail", "-n", "3", "--json").splitlines()
    assert [(one["session"], one["seq"]) for one in map(json.loads, lines)] == [("monday", 6), ("tuesday", 1), ("tuesday", 2)]
    assert [json.loads(line)["seq"] for line in cli.shown("tail", "monday", "--limit", "2", "--json").splitlines()] == [5, 6]
    shown = cli.shown("tail", "-n", "3")
    assert shown.index("── session 1  monday") < shown.index("── session 2  tuesday")
    assert cli.refused("tail", "friday") == "not_found"
    assert cli.refused("tail", "--follow", "--poll", "0") == "invalid_input"
    assert cli.refused("tail", "--follow", "--poll", "nan") == "invalid_input"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_following_prints_what_comes_and_stops_cleanly(cli: Cli, number: signal.Signals) -> None:
    with cli.start("tail", "--follow", "--poll", "0.1", "--json") as child:
        assert child.stdout is not None
        assert child.stderr is not None
        assert "following" in child.stderr.readline()
        for text in ("one", "two"):
            cli.ana.append("user", text, session="s")
            assert json.loads(child.stdout.readline())["content"] == text
        cli.ana.append("user", "kept", session="before")
        assert json.loads(child.stdout.readline())["content"] == "kept"
        child.send_signal(number)
        out, err = child.communicate(timeout=60)
    assert (child.returncode, out, err) == (0, "", "")


def test_following_goes_on_when_the_session_is_deleted(cli: Cli) -> None:
    cli.ana.append("user", "first", session="a")
    with cli.start("tail", "--follow", "--poll", "0.1", "--json") as child:
        assert child.stdout is not None
        assert json.loads(child.stdout.readline())["content"] == "first"
        cli.ana.conversation.delete("a")
        cli.ana.append("user", "second", session="b")
        assert json.loads(child.stdout.readline())["content"] == "second"
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=60) == 0


def test_a_working_set_is_folded_expanded_and_restored(cli: Cli) -> None:
    talk(cli.ana, 20)
    assert cli.json("compact") == []
    assert "within its bounds" in cli.shown("compact")
    [made] = cli.json("compact", "--force")
    assert set(made) == DIGEST_KEYS
    told = cli.json("expand", "monday", "--kind", "fold")
    assert [one["seq"] for one in told["messages"]] == list(range(1, made["sources"][0]["last_seq"] + 1))
    [second] = cli.json("fold")
    assert second["based_on"] == 1
    whole = cli.json("expand", "--whole")["messages"]
    assert [one["seq"] for one in whole] == list(range(1, second["sources"][0]["last_seq"] + 1))
    assert len(cli.json("expand")["messages"]) < len(whole)
    assert cli.json("expand", "--version", "1")["digest"] == made
    assert "I ran 1 km" in cli.shown("expand", "--version", "1")
    assert cli.json("undo")["version"] == 2
    assert cli.json("undo")["version"] == 1
    assert cli.json("show")["session"]["working"] == 40
    assert cli.shown("clear") == "the working set is empty; only in the log: messages 1 to 40\n"
    assert cli.json("clear") == {"cleared": False, "fold": None}
    assert "(no summary: the working set was cleared)" in cli.shown("show")
    assert "── working set  empty" in cli.shown("show")
    assert cli.refused("expand", "--version", "99") == "not_found"
    assert cli.refused("expand", "--version", "0") == "invalid_input"
    assert cli.refused("expand", "--version", "-3") == "invalid_input"
    assert cli.refused("expand", "--kind", "gist") == "invalid_input"


def test_a_fold_in_the_terminal_says_what_it_did(cli: Cli) -> None:
    talk(cli.ana, 20)
    assert re.fullmatch(
        r"fold 1 by extractive/1 stands for messages 1 to \d+\n\d+ messages in the working set\n", cli.shown("fold")
    )
    assert "nothing to fold: there are fewer messages" in cli.shown("fold")


def test_the_spine_is_expanded_to_messages_of_all_sessions(cli: Cli) -> None:
    talk(cli.ana, 15, "monday", "My name is Ana, run {}".format)
    talk(cli.ana, 15, "tuesday", "I live in Lisbon, run {}".format)
    cli.work()
    told = cli.json("expand", "--kind", "spine", "--whole")
    assert {one["session"] for one in told["messages"]} == {"monday", "tuesday"}
    assert [one["kind"] for one in cli.json("digests", "--kind", "spine")] == ["spine"]
    shown = cli.shown("expand", "--kind", "spine", "--whole")
    assert shown.index("── session 1  monday") < shown.index("── session 2  tuesday")


def test_a_session_ends_goes_on_and_ends(cli: Cli) -> None:
    cli.ana.append("user", "hello", session="s")
    assert cli.json("close")["ended_at"] is not None
    assert re.fullmatch(r"session s ended \S+ \S+\n", cli.shown("close", "s"))
    assert cli.json("resume", "s")["ended_at"] is None
    assert "session s is open" in cli.shown("resume")
    talk(cli.ana, 1, "long ago")
    cli.ana.conversation.close("long ago")
    assert cli.refused("resume", "long ago") == "conflict"


def test_deleting_tells_what_goes_and_needs_a_yes(cli: Cli) -> None:
    talk(cli.ana, 3)
    cli.ana.conversation.compact(force=True)
    assert cli.json("delete", "monday", "--dry-run") == {
        "session": "monday",
        "deleted": False,
        "messages": 6,
        "layers": {"fold": 1},
    }
    assert cli.shown("delete", "monday", "--dry-run") == "would remove: 6 messages; summaries: 1 of fold\n"
    assert cli.refused("delete", "monday") == "invalid_input"
    assert cli.refused("delete", "monday", "--json") == "invalid_input"
    assert cli.json("show", "monday")["session"]["messages"] == 6
    told = cli.json("delete", "monday", "--yes")
    assert (told["deleted"], told["messages"]) == (True, 6)
    for command in ("show", "delete", "close", "expand"):
        assert cli.refused(command, "monday") == "not_found"


@pytest.mark.parametrize(("answer", "code", "left"), [("y", 0, 0), ("n", 130, 6), ("", 130, 6)])
def test_a_person_is_asked_before_a_session_is_deleted(cli: Cli, answer: str, code: int, left: int) -> None:
    talk(cli.ana, 3)
    ours, theirs = pty.openpty()
    child = cli.start("delete", "monday", stdin=theirs)
    os.write(ours, f"{answer}\n".encode())
    out, err = child.communicate(timeout=60)
    os.close(ours)
    os.close(theirs)
    assert child.returncode == code, err
    assert "this deletes 6 messages" in err
    assert ("nothing was deleted" in err) == (left > 0)
    assert ("6 messages deleted" in out) == (left == 0)
    assert len(cli.ana.messages()) == left


def test_hits_have_their_words_marked_and_say_where_they_are(cli: Cli) -> None:
    cli.ana.append(
        "user", "begin " + "x" * 500 + " My Knee hurts, and the knee brace is lost " + "y" * 500, session="s", id="m1"
    )
    cli.ana.append("user", "no such thing", session="t")
    [found] = cli.json("search", "KNEE hurts")
    assert (found["id"], set(found)) == ("m1", MESSAGE_KEYS)
    cli.env["FORCE_COLOR"] = "1"
    shown = cli.shown("search", "KNEE hurts")
    assert shown.count("\x1b[1;7m") == 3
    for word in ("Knee", "hurts", "knee"):
        assert f"\x1b[1;7m{word}\x1b[0m" in shown
    del cli.env["FORCE_COLOR"]
    plain = cli.shown("search", "KNEE hurts")
    assert re.match(r"1\.1  user  \S+ \S+  m1  session s\n  …x", plain)
    assert "begin" not in plain
    assert cli.json("search", "thing", "--session", "s") == []
    assert len(cli.json("search", "t", "--limit", "1")) == 1
    assert cli.run("search", "absent").stderr == "no message has all these words\n"
    assert cli.refused("search", "  ") == "invalid_input"


@given(st.text(max_size=40), st.text(max_size=40), st.sampled_from(["Straße", "cafe\u0301", "ﬁne", "İ", "knee", "漢字", "ΣΑΣ"]))
def test_words_are_marked_where_they_stand(before: str, after: str, word: str) -> None:
    text = f"{before} {word} {after}"
    found = places(text, folded_words(word))
    assert found == sorted(found)
    assert all(low < high <= len(text) for low, high in found)
    assert all(high < low for (_, high), (low, _) in pairwise(found))
    start = len(before) + 1
    assert any(low <= start and start + len(word) <= high for low, high in found)


def test_counters_are_shown_and_layers_are_chosen(cli: Cli) -> None:
    assert cli.json("state")["turns"] == 0
    assert "last ran never" in cli.shown("state")
    talk(cli.ana, 5)
    cli.work()
    told = cli.json("state")
    assert (told["turns"], told["last_text"], told["rolling_error"]) == (5, "I ran 5 km", None)
    assert told["rolling"]
    shown = cli.shown("state")
    assert "turns: 5" in shown
    assert "last words of the user: I ran 5 km" in shown
    assert (
        cli.shown("configure", "--profile", "channel_bot", "--casual")
        == "profile: channel_bot; casual: yes; private: no; shared: no\n"
    )
    assert cli.json("configure", "--private")["private"] is True
    told = cli.json("configure", "--not-casual", "--not-private")
    assert (told["profile"], told["casual"], told["shared"]) == ("channel_bot", False, False)
    assert cli.json("configure", "--shared")["shared"] is True
    assert "shared: yes" in cli.shown("state")
    assert cli.json("configure", "--not-shared")["shared"] is False
    assert cli.refused("configure") == "invalid_input"
    assert cli.refused("configure", "--profile", "bishop") == "invalid_input"


@pytest.mark.parametrize(
    ("args", "keys"),
    [
        ("list", SESSION_KEYS | {"layers"}),
        ("list --all", SESSION_KEYS | {"layers"}),
        ("show", {"session", "layers", "messages", "older"}),
        ("tail -n 1", MESSAGE_KEYS),
        ("search ran", MESSAGE_KEYS),
        ("digests", DIGEST_KEYS),
        ("expand", {"digest", "messages"}),
        ("state", STATE_KEYS | {"rolling"}),
        ("compact --force", DIGEST_KEYS),
        ("fold", DIGEST_KEYS),
        ("undo", DIGEST_KEYS),
        ("clear", {"cleared", "fold"}),
        ("replace Runs", DIGEST_KEYS),
        ("message m1", MESSAGE_KEYS),
        ("tally", set(Tally.__dataclass_fields__)),
        ("close", SESSION_KEYS),
        ("resume monday", SESSION_KEYS),
        ("pop", MESSAGE_KEYS),
        ("delete monday --yes", {"session", "deleted", "messages", "layers"}),
        ("configure --casual", STATE_KEYS),
    ],
)
def test_every_answer_is_complete_in_json(cli: Cli, args: str, keys: set[str]) -> None:
    cli.ana.append_many(
        NewMessage(role, f"I ran {number} km", session="monday", id="m1" if number == 1 and role == "user" else None)
        for number in range(10)
        for role in ("user", "assistant")
    )
    cli.ana.conversation.compact(force=True)
    cli.ana.append_many(NewMessage("user", "again", session="monday") for _ in range(9))
    found = cli.json(*args.split())
    first = found[0] if isinstance(found, list) else found
    assert set(first) == keys


def test_every_command_has_a_json_test_and_explains_itself_with_an_example(cli: Cli) -> None:
    group: Any = typer.main.get_command(app)
    commands = group.commands["session"].commands
    marks = test_every_answer_is_complete_in_json.pytestmark  # type: ignore[attr-defined]
    [tried] = [mark.args[1] for mark in marks if mark.name == "parametrize"]
    groups = {"document", "transcript"}  # theirs answer in JSON in the walk through all commands
    assert {args.split()[0] for args, _ in tried} == commands.keys() - groups
    leaves = [(name,) for name in commands.keys() - groups]
    for words in [*leaves, *((group, name) for group in groups for name in commands[group].commands)]:
        assert f"Example: perdure session {' '.join(words)}" in " ".join(cli.shown(*words, "--help").split()), words


@pytest.mark.parametrize("command", ["show", "close", "resume", "compact", "fold", "undo", "clear", "expand", "delete x"])
def test_where_nothing_was_said_there_is_no_session(cli: Cli, command: str) -> None:
    assert cli.refused(*command.split()) == "not_found"
    child = cli.start(*command.split(), "--json")
    _, err = child.communicate(timeout=60)
    assert child.returncode == EXIT_CODES["not_found"]
    assert json.loads(err)["error"]["code"] == "not_found"


@pytest.mark.parametrize("command", ["list", "digests", "tail", "search x"])
def test_what_is_empty_says_so_on_stderr(cli: Cli, command: str) -> None:
    done = cli.run(*command.split())
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr.startswith("no ")
    if command != "tail":
        assert cli.json(*command.split()) == []


@pytest.mark.parametrize("command", ["list", "show", "tail", "search x", "digests", "state"])
def test_a_user_must_be_named(cli: Cli, command: str) -> None:
    done = CliRunner(env=cli.env).invoke(app, ["session", *command.split()])
    assert isinstance(done.exception, perdure.InvalidInput)
