"""`perdure agent before|after`, `perdure journal decisions` and `perdure series when`: what is given for a goal, what is kept of a result, and why, seen from a terminal."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from typer.testing import CliRunner

import perdure
from perdure.domain.errors import PerdureError
from perdure.interfaces.cli.commands import app
from perdure.interfaces.errors import EXIT_CODES
from perdure.types import Block, Choice, Decision, Injection, KeptResult, SeriesOffer

SCRIPT = Path(sys.executable).with_name("perdure")
HERE = ("--user", "ana", "--agent", "coach")
GOAL = "Who from my kudos list was active recently?"
GIVERS = ["athlete_123", "athlete_456"]
RUNS = [{"id": 1, "created_at": "2026-01-02T00:00:00Z"}, {"id": 2, "created_at": "2026-01-03T00:00:00Z"}]
HINT = "nothing is saved yet; the same with --accept saves it\n"


class Cli:
    """The commands on a store of their own: in this process with `run`, in another one with `start`."""

    def __init__(self, folder: Path) -> None:
        home = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config"), "XDG_DATA_HOME": str(folder / "data")}
        url = f"sqlite:///{folder}/cli.db"
        self.env = {"PATH": os.environ["PATH"], "PERDURE_URL": url, "COLUMNS": "120", "TZ": "UTC", **home}
        self.engine = perdure.open(url)
        self.ana = self.engine.memory("ana", agent="coach")

    def run(self, *args: str, who: tuple[str, ...] = HERE, stdin: str | None = None, **env: str) -> Any:
        return CliRunner(env=self.env | env).invoke(app, [*args, *who], input=stdin)

    def json(self, *args: str, who: tuple[str, ...] = HERE, stdin: str | None = None) -> Any:
        done = self.run(*args, "--json", who=who, stdin=stdin)
        assert (done.exit_code, done.stderr) == (0, ""), done.output
        return json.loads(done.stdout)

    def refused(self, *args: str, who: tuple[str, ...] = HERE, stdin: str | None = None) -> PerdureError:
        done = self.run(*args, who=who, stdin=stdin)
        assert isinstance(done.exception, PerdureError), done.output
        return done.exception

    def settle(self) -> None:
        while self.engine.process().ran:
            pass

    def kudos(self) -> None:
        self.ana.state.save("kudos_givers_2025", GIVERS)
        self.ana.state.save("favorite_routes", ["river loop"])
        self.settle()


@pytest.fixture
def cli(tmp_path: Path) -> Iterator[Cli]:
    made = Cli(tmp_path)
    yield made
    assert made.engine.verify().findings == ()
    made.engine.close()


def fields_of(kind: Any) -> set[str]:
    return set(kind.__dataclass_fields__)


# -- before a goal


def test_what_the_agent_is_given_is_printed_as_it_stands(cli: Cli) -> None:
    cli.kudos()
    done = cli.run("agent", "before", GOAL)
    assert done.stdout == cli.ana.before(GOAL).text + "\n"
    assert re.fullmatch(r"\d+ of 2,000 tokens: state \d+\n", done.stderr)
    goal = cli.run("agent", "before", GOAL, "--target", "goal")
    assert goal.stdout == f"{GOAL}\n\n[Relevant Memory]\n{json.dumps({'kudos_givers_2025': GIVERS}, indent=2)}\n"


def test_nothing_is_given_where_nothing_bears_on_the_goal(cli: Cli) -> None:
    cli.kudos()
    said = "nothing relevant found; the goal is passed on unchanged\n"
    done = cli.run("agent", "before", "What is 2 + 2?")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", said)
    done = cli.run("agent", "before", "What is 2 + 2?", "--target", "goal")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "What is 2 + 2?\n", said)
    assert cli.json("agent", "before", "What is 2 + 2?")["nothing"] is True


def test_each_inclusion_and_exclusion_is_explained(cli: Cli) -> None:
    cli.kudos()
    shown = cli.run("agent", "before", GOAL, "--explain").stdout
    assert re.search(r"^── Saved state  \d+ tokens; for this goal; from key-value state", shown, re.MULTILINE)
    assert re.search(
        r"^── given  1 things\n  state  kudos_givers_2025  \d+ tokens\n    relevant to the goal \(", shown, re.MULTILINE
    )
    assert re.search(r"^── left out  1 things\n  state  favorite_routes\n    hardly relevant to the goal", shown, re.MULTILINE)
    assert re.search(r"^── decided  by rules; \d+ ms; decision [0-9a-f-]{36}$", shown, re.MULTILINE)


def test_the_time_and_the_coverage_of_a_series_are_told(cli: Cli) -> None:
    series = cli.ana.series("kudos_timeseries", description="Kudos received on my activities")
    series.merge([{"id": 1, "timestamp": "2026-01-02", "who": "bob"}], window=("2026-01-01", "2026-01-03"))
    cli.settle()
    told = cli.json("agent", "before", "Who gave me kudos in January 2026?")
    assert told["time_range"] == {"start": "2026-01-01T00:00:00+00:00", "end": "2026-02-01T00:00:00+00:00"}
    assert told["values"]["kudos_timeseries"]["gaps"] == [["2026-01-03T00:00:00Z", "2026-02-01T00:00:00Z"]]
    shown = cli.run("agent", "before", "Who gave me kudos in January 2026?", "--explain").stdout
    assert "── time  2026-01-01T00:00:00+00:00 to 2026-02-01T00:00:00+00:00\n" in shown


def test_every_field_is_in_the_json(cli: Cli) -> None:
    cli.kudos()
    told = cli.json("agent", "before", GOAL, "--budget", "500", "--deadline", "5")
    assert told.keys() == fields_of(Injection) | {"text", "stable", "tail", "version", "nothing"}
    assert (told["budget_tokens"], told["model_calls"], told["outcome"]) == (500, 0, "rules")
    assert all(one.keys() == fields_of(Choice) for one in told["choices"])
    assert all(one.keys() == fields_of(Block) for one in told["blocks"])
    assert told["text"] == told["tail"]


# -- after a tool


def test_a_window_among_the_arguments_of_a_tool_is_covered(cli: Cli) -> None:
    """S0-57: on the command line as over HTTP and in Python."""
    rows = json.dumps([{"id": one, "created_at": f"2026-01-02T0{one}:00:00Z"} for one in (3, 5)])
    asked = json.dumps({"start": "2026-01-02", "end": "2026-01-03"})
    kept = cli.json(
        "agent", "after", "getKudos", "--goal", "save the kudos", "--mode", "auto", "--arguments", asked, stdin=rows
    )
    assert (kept["action"], kept["covers"]) == ("merged", "window")
    assert cli.json("series", "gaps", "kudos", "2026-01-02", "2026-01-03") == []


def test_by_default_nothing_is_kept(cli: Cli) -> None:
    done = cli.run("agent", "after", "get_profile", stdin='{"city": "Seattle"}')
    assert done.stdout == "none\n  mode manual: results are saved by hand only\n"
    assert (done.exit_code, cli.ana.state.keys()) == (0, [])


def test_a_suggestion_is_saved_when_it_is_accepted(cli: Cli) -> None:
    result = '{"city": "Seattle"}'
    done = cli.run("agent", "after", "get_user_profile", "-", "--mode", "suggest", stdin=result)
    assert done.stdout.startswith("suggested  state user_profile\n  `profile` in the tool's name")
    assert (done.stderr, cli.ana.state.keys()) == (HINT, [])
    done = cli.run("agent", "after", "get_user_profile", "--accept", stdin=result)
    assert done.stdout.startswith("saved  state user_profile  revision 1\n  accepted: ")
    assert (done.exit_code, done.stderr, cli.ana.state.load("user_profile")) == (0, "", {"city": "Seattle"})
    again = cli.run("agent", "after", "get_user_profile", "--accept", stdin=result)
    assert (again.exit_code, again.stdout.split()[0]) == (0, "unchanged")


def test_what_the_goal_wants_kept_is_kept_and_a_collision_is_a_revision(cli: Cli, tmp_path: Path) -> None:
    for number, city in enumerate(("Seattle", "Austin"), 1):
        file = tmp_path / f"{city}.json"
        file.write_text(json.dumps({"city": city}))
        told = cli.json("agent", "after", "lookup", str(file), "--goal", "remember my home as home_city", "--mode", "auto")
        assert (told["action"], told["key"], told["revision"], told["saved"]) == ("saved", "home_city", number, True)
        assert told.keys() == fields_of(KeptResult) | {"saved"}
    assert cli.ana.state.find("home_city", revision=1).value == {"city": "Seattle"}


def test_entries_are_offered_as_a_series_and_merged_with_their_window(cli: Cli) -> None:
    rows = json.dumps(RUNS)
    done = cli.run("agent", "after", "list_runs", "--mode", "suggest", stdin=rows)
    assert "suggested  series runs\n  2 entries with `created_at` and ids" in done.stdout
    assert "id id, time created_at, 2 entries from 2026-01-02T00:00:00+00:00 to\n" in done.stdout
    told = cli.json("agent", "after", "list_runs", "--mode", "suggest", stdin=rows)["series"]
    assert told.keys() == fields_of(SeriesOffer)
    assert told["window"]["start"] == "2026-01-02T00:00:00+00:00"
    window = ("2026-01-01T00:00:00+00:00", "2026-01-04T00:00:00+00:00")
    done = cli.run("agent", "after", "list_runs", "--mode", "auto", "--goal", "save my runs", "--window", *window, stdin=rows)
    assert done.stdout.startswith("merged  series runs\n"), done.output
    assert cli.ana.series("runs").query(*window).coverage == "full"
    told = cli.json("agent", "after", "list_walks", "--accept", "--window", *window, stdin=rows)
    assert (told["action"], told["window"]) == ("merged", dict(zip(("start", "end"), window, strict=True)))
    assert cli.ana.series("walks").query(*window).coverage == "full"


def test_secrets_and_tools_on_the_lists_are_not_kept(cli: Cli) -> None:
    secret = '{"api_key": "sk-123456789012345678901234567890"}'
    done = cli.run("agent", "after", "get_profile", "--accept", stdin=secret)
    assert (done.exit_code, done.stdout.split()[0]) == (EXIT_CODES["invalid_input"], "refused")
    assert "sk-1234" not in done.output
    for args in (("--deny", "get_profile"), ("--allow", "get_team", "--allow", "get_club")):
        assert cli.json("agent", "after", "get_profile", "--mode", "auto", *args, stdin='{"a": "b"}')["action"] == "none"
    assert cli.json("agent", "after", "getCurrentDate", "--mode", "auto", stdin='{"a": "b"}')["action"] == "none"
    assert cli.ana.state.keys() == []


# -- the record


def test_decisions_are_listed_the_newest_first(cli: Cli) -> None:
    assert cli.run("journal", "decisions").stderr == "no decisions here yet\n"
    cli.kudos()
    cli.run("agent", "before", GOAL)
    cli.run("agent", "after", "get_user_profile", "--mode", "suggest", "--goal", "Plan my week", stdin='{"a": "b"}')
    shown = cli.run("journal", "decisions").stdout
    after, before = re.split(r"^(?=[0-9a-f]{8}-)", shown, flags=re.MULTILINE)[1:]
    assert re.match(
        r"\S{36}  after  [\d-]+ [\d:]+\n  Plan my week\n  get_user_profile: suggested user_profile, by rules\n", after
    )
    assert re.match(rf"\S{{36}}  before  .+\n  {re.escape(GOAL)}\n  gave state kudos_givers_2025\n  \d+ of 2000 tokens", before)
    told = cli.json("journal", "decisions", "--kind", "before")
    assert [(one["kind"], one.keys()) for one in told] == [("before", fields_of(Decision))]
    assert len(cli.json("journal", "decisions", "--limit", "1")) == 1
    assert cli.json("journal", "decisions", "--before", told[0]["id"]) == []


# -- times


def test_the_time_of_a_text_is_told_with_how_it_was_read(cli: Cli) -> None:
    at = ("--now", "2026-06-15T09:00:00+00:00")
    done = cli.run("series", "when", "kudos of the last 24 hours", *at, "--zone", "Europe/Berlin", who=())
    first, second, *_ = done.stdout.splitlines()
    assert first == "2026-06-14T09:00:00+00:00 to 2026-06-15T09:00:00+00:00"
    assert second.startswith("  `the last 24 hours`: ")
    assert cli.run("series", "when", "since yesterday", *at, who=()).stdout.startswith("2026-06-14T00:00:00+00:00 to open\n")
    told = cli.json("series", "when", "yesterday", *at, who=())
    assert told.keys() == fields_of(perdure.TimeRange)
    assert (told["start"], told["words"], told["at"]) == ("2026-06-14T00:00:00+00:00", "yesterday", [0, 9])


def test_zone_and_start_of_the_week_come_from_the_settings(cli: Cli) -> None:
    words = ("series", "when", "this week", "--now", "2026-06-17T09:00:00+00:00")
    done = cli.run(*words, who=(), PERDURE_ZONE="Europe/Berlin", PERDURE_WEEK_START="sunday")
    assert done.stdout.startswith("2026-06-13T22:00:00+00:00 to 2026-06-20T22:00:00+00:00\n")


def test_a_text_without_a_time_names_none(cli: Cli) -> None:
    done = cli.run("series", "when", "my last name is Blast", who=())
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "no time is named\n")
    assert cli.json("series", "when", "my last name is Blast", who=()) is None


# -- text from memory, errors, help

HOSTILE = ["\x1b[2J\x1b]0;owned\x07", "[red]boo[/red] [/]", "\u202egnp.exe", "x\u2028y\x85z", "two\n── given  9 things"]
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_text_from_memory_is_shown_never_obeyed(cli: Cli, text: str) -> None:
    cli.ana.state.save(f"kudos needle {text}"[:80], f"value {text}")
    cli.settle()
    goal = f"show my kudos needle {text}"
    calls = [
        ("agent", "before", goal),
        ("agent", "before", goal, "--explain"),
        ("agent", "before", goal, "--target", "goal"),
        ("journal", "decisions"),
    ]
    for args in (*calls, ("agent", "after", f"get_profile {text}", "--mode", "suggest", "--goal", goal)):
        done = cli.run(*args, stdin=json.dumps([text]))
        assert done.exit_code == 0, done.output
        assert OBEYED.search(done.output) is None, args
        if "--explain" in args:
            assert len(re.findall("^── given", done.stdout, re.MULTILINE)) == 1


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (
            ("agent", "before", GOAL, "--target", "nowhere"),
            "`--target` = 'nowhere' is unknown; use one of goal, first_step, system",
        ),
        (("agent", "before", " "), "`goal` is empty; say what to do"),
        (("agent", "before", GOAL, "--budget", "1"), "`budget_tokens` = 1 must be a whole number of at least 100"),
        (("agent", "before", GOAL, "--deadline", "0"), "`deadline_s` = 0.0 must be a number of seconds above 0"),
        (("agent", "after", "t", "--mode", "always"), "`--mode` = 'always' is unknown; use one of manual, suggest, auto"),
        (("agent", "after", "t", "--mode", "auto", "--accept"), "`--accept` saves what is suggested; leave `--mode` out"),
        (("agent", "after", "t", "--window", "soon", "2026-01-02"), "`window_start` = 'soon' is not a time"),
        (("journal", "decisions", "--kind", "during"), "`--kind` = 'during' is unknown; use one of before, after"),
        (("series", "when", "today", "--now", "noon"), "`--now` = 'noon' is no ISO 8601 time"),
        (("series", "when", "today", "--zone", "Mars"), "`zone` = 'Mars' is not a known time zone"),
    ],
)
def test_errors_name_the_thing_the_value_and_the_remedy(cli: Cli, args: tuple[str, ...], words: str) -> None:
    error = cli.refused(*args, stdin="{}")
    assert (error.code, words in str(error)) == ("invalid_input", True), str(error)


def test_a_result_must_be_json_and_a_file_must_exist(cli: Cli) -> None:
    assert "stdin is not JSON (" in str(cli.refused("agent", "after", "t", stdin="Seattle"))
    error = cli.refused("agent", "after", "t", "nothing.json")
    assert (error.code, str(error)) == ("not_found", "nothing.json does not exist; check the name")


@pytest.mark.parametrize("args", [("agent", "before", GOAL), ("agent", "after", "t"), ("journal", "decisions")])
def test_a_user_must_be_named(cli: Cli, args: tuple[str, ...]) -> None:
    assert "no user is named" in str(cli.refused(*args, who=(), stdin="{}"))


@pytest.mark.parametrize("name", ["agent before", "agent after", "journal decisions", "series when"])
def test_every_command_explains_itself_with_an_example(name: str) -> None:
    command: Any = typer.main.get_command(app)
    for word in name.split():
        command = command.commands[word]
    assert f"Example: perdure {name}" in command.help
    assert all(one.help for one in command.params if one.opts[0].startswith("--"))


def test_with_a_model_behind_a_server_its_choice_and_its_faults_are_told(cli: Cli) -> None:
    from perdure.testing.model_server import FAULTS, ScriptedModelServer, answer

    cli.kudos()
    with ScriptedModelServer() as server:
        server.script(answer({"relevant_keys": ["favorite_routes"], "time_range": ""}), FAULTS["wrong_key"])
        cli.env |= {"PERDURE_MODEL": server.setting("openai"), "PERDURE_MODEL_KEY": "sk-of-ours"}
        shown = cli.run("agent", "before", GOAL, "--explain").stdout
        assert re.search(r"given  1 things\n  state  favorite_routes  \d+ tokens\n    chosen by scripted", shown)
        assert "── decided  1 calls of a model: ok; " in shown
        done = cli.run("agent", "before", GOAL)
        assert "the rules have chosen" in done.stderr
        assert "kudos_givers_2025" in done.stdout
        assert "sk-of-ours" not in done.output


def test_exit_codes_are_those_of_the_other_commands(cli: Cli) -> None:
    def start(*args: str) -> int:
        done = subprocess.run(
            [str(SCRIPT), *args],
            env=cli.env,
            input="{}",
            capture_output=True,
            text=True,
            timeout=120,
        )
        return done.returncode

    assert start("series", "when", "yesterday") == 0
    assert start("agent", "after", "t", *HERE) == 0
    assert start("agent", "after", "t", "--accept", *HERE) == EXIT_CODES["invalid_input"]
    assert start("agent", "after", "t", "missing.json", *HERE) == EXIT_CODES["not_found"]
