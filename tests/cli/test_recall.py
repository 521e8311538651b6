"""`perdure recall|context` and `perdure admin reindex`: asking, explaining, giving to an agent and indexing anew, seen from a terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer.main
from typer.testing import CliRunner

import perdure
from perdure.domain.errors import PerdureError
from perdure.interfaces.cli.commands import app
from perdure.interfaces.errors import EXIT_CODES
from perdure.types import Arm, Hit, Neighbour, Recall, Trace, Uncovered, Understood

SCRIPT = Path(sys.executable).with_name("perdure")
HERE = ("--user", "ana", "--agent", "coach")
MONDAY = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)
LAGS = "the index lags behind; `perdure worker --once` brings it up to date\n"
WAITING = "not covered: {} new entries are found by their words only until their vectors are made\n"
NOTHING = "no results\n"


class Cli:
    """The commands on a store of their own: in this process with `run`, in another one with `start`."""

    def __init__(self, folder: Path) -> None:
        home = {"HOME": str(folder), "XDG_CONFIG_HOME": str(folder / "config"), "XDG_DATA_HOME": str(folder / "data")}
        self.env = {
            "PATH": os.environ["PATH"],
            "PERDURE_URL": f"sqlite:///{folder}/cli.db",
            "COLUMNS": "120",
            "TZ": "UTC",
            **home,
        }
        self.engine = perdure.open(self.env["PERDURE_URL"])
        self.ana = self.engine.memory("ana", agent="coach")

    def run(self, *args: str, who: tuple[str, ...] = HERE, **env: str) -> Any:
        return CliRunner(env=self.env | env).invoke(app, [*args, *who])

    def shown(self, *args: str, **env: str) -> str:
        done = self.run(*args, **env)
        assert done.exit_code == 0, done.output
        return str(done.stdout)

    def json(self, *args: str, who: tuple[str, ...] = HERE) -> Any:
        done = self.run(*args, "--json", who=who)
        assert (done.exit_code, done.stderr) == (0, ""), done.output
        return json.loads(done.stdout)

    def texts(self, *args: str) -> list[str]:
        """What `recall` finds, best first."""
        return [hit["text"] for hit in self.json("recall", *args)["hits"]]

    def refused(self, *args: str, who: tuple[str, ...] = HERE) -> PerdureError:
        done = self.run(*args, who=who)
        assert isinstance(done.exception, PerdureError), done.output
        return done.exception

    def start(self, *args: str, **how: Any) -> subprocess.CompletedProcess[str]:
        how = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | how
        return subprocess.run([str(SCRIPT), *args], text=True, env=self.env, timeout=120, **how)

    def say(self, text: str, minutes: int = 0, *, role: str = "user", **fields: Any) -> None:
        self.ana.append(role, text, at=MONDAY + timedelta(minutes=minutes), **{"session": "monday", **fields})

    def talk(self) -> None:
        """A talk that is indexed as a whole."""
        self.say("My sister Maria moved to Lisbon.", id="m1")
        self.say("How nice!", 1, id="m2", role="assistant")
        self.say("I run every Tuesday.", 2, id="m3")
        self.say("The zebra at the zoo was asleep.", 60 * 24, id="m4", session="tuesday")
        while self.engine.process().ran:
            pass


@pytest.fixture
def cli(tmp_path: Path) -> Any:
    made = Cli(tmp_path)
    yield made
    made.engine.close()


# -- asking


def test_hits_stand_in_a_table_best_first(cli: Cli) -> None:
    cli.talk()
    done = cli.run("recall", "the sleeping zebra")
    heading, first, *_ = done.stdout.splitlines()
    assert heading.split() == ["score", "date", "who", "text"]
    assert re.fullmatch(r"1  \d\.\d{3}   2026-01-06 08:00  user\s+The zebra at the zoo was asleep\.", first)
    scores = [float(line.split()[1]) for line in done.stdout.splitlines()[1:]]
    assert scores == sorted(scores, reverse=True)
    assert (done.exit_code, done.stderr) == (0, "")


def test_what_nobody_said_as_it_stands_is_told_by_its_kind_and_people_by_their_names(cli: Cli) -> None:
    cli.say("The zebra was asleep.", metadata={"name": "Caroline"})
    cli.ana.remember("Likes a zebra", fact_type="preference")
    cli.ana.state.save("zebra_count", 3)
    shown = cli.shown("recall", "zebra")
    assert sorted(line.split()[4] for line in shown.splitlines()[1:]) == ["Caroline", "memory", "state"]


def test_texts_are_cut_at_the_edge_of_the_terminal_and_shown_whole_on_request(cli: Cli) -> None:
    cli.say("zebra " + "漢字 " * 100 + "end\nof it")
    for columns in (60, 100):
        lines = cli.shown("recall", "zebra", COLUMNS=str(columns)).splitlines()
        assert len(lines) == 2
        assert lines[1].endswith("…")
        width = sum(2 if char in "漢字" else 1 for char in lines[1])
        assert columns - 4 <= width <= columns
    assert cli.shown("recall", "zebra", "--full").rstrip().endswith("end of it")
    assert "[266 more characters; --full shows them]" not in cli.shown("recall", "zebra", "--explain", "--full")
    assert "more characters; --full shows them]" in cli.shown("recall", "zebra", "--explain")


def test_only_some_kinds_are_asked(cli: Cli) -> None:
    cli.talk()
    cli.ana.todos.add("Visit the zebra")
    assert {hit["kind"] for hit in cli.json("recall", "zebra", "--kind", "todo")["hits"]} == {"todo"}
    both = cli.json("recall", "zebra", "--kind", "todo", "--kind", "MESSAGE")["hits"]
    assert {hit["kind"] for hit in both} == {"todo", "message"}


def test_only_a_stretch_of_time_is_asked(cli: Cli) -> None:
    cli.talk()
    tuesday = "2026-01-06T00:00:00+00:00"
    question = ("zebra or sister", "--kind", "message")
    assert cli.texts(*question, "--since", tuesday) == ["The zebra at the zoo was asleep."]
    assert "The zebra at the zoo was asleep." not in cli.texts(*question, "--until", tuesday)
    assert cli.texts(*question, "--since", "2026-01-05T07:00:00Z", "--until", "2026-01-05T08:01:00Z") == [
        "My sister Maria moved to Lisbon."
    ]
    told = cli.json("recall", *question, "--since", tuesday, "--until", "2026-01-07T00:00:00+00:00")["understood"]
    assert told["time_range"] == {"start": tuesday, "end": "2026-01-07T00:00:00+00:00"}


def test_only_what_names_an_entity_is_asked(cli: Cli) -> None:
    cli.talk()
    cli.ana.remember("John Doe moved to Rome", "PEOPLE", entities=["person:John Doe"])
    assert cli.texts("who moved", "--entity", "person:John Doe") == ["John Doe moved to Rome"]
    both = cli.texts(
        "who moved", "--entity", "person:John Doe", "--entity", "person:Maria", "--kind", "message", "--kind", "memory"
    )
    assert sorted(both) == ["John Doe moved to Rome", "My sister Maria moved to Lisbon."]


def test_only_some_sessions_are_asked(cli: Cli) -> None:
    cli.talk()
    question = ("zebra or sister", "--kind", "message", "--session", "tuesday")
    assert cli.texts(*question) == ["The zebra at the zoo was asleep."]
    assert "My sister Maria moved to Lisbon." in cli.texts(*question, "--session", "monday")


def test_looking_back_by_when_it_was_so_and_by_when_it_was_known(cli: Cli) -> None:
    for city, year in (("Austin", 2024), ("Seattle", 2025)):
        cli.ana.remember(
            f"Lives in {city}",
            attribute="lives_in",
            value=city,
            valid_from=datetime(year, 1, 1, tzinfo=UTC),
        )
    assert cli.texts("lives", "--kind", "memory") == ["Lives in Seattle"]
    assert cli.texts("lives", "--kind", "memory", "--as-of", "2024-06-01T00:00:00+00:00") == ["Lives in Austin"]
    assert cli.texts("lives", "--kind", "memory", "--known-at", "2024-06-01T00:00:00+00:00") == []


def test_how_much_is_answered_is_bounded_and_what_did_not_fit_is_told(cli: Cli) -> None:
    cli.talk()
    assert len(cli.texts("zebra or sister", "--limit", "1")) == 1
    done = cli.run("recall", "zebra or sister", "--kind", "message", "--budget", "9")
    assert len(done.stdout.splitlines()) == 2
    assert re.fullmatch(r"not covered: \d+ more hits did not fit into the token budget\n", done.stderr)
    assert cli.json("recall", "zebra", "--budget", "9")["tokens"] <= 9


def test_messages_beside_a_hit_come_with_it(cli: Cli) -> None:
    cli.talk()
    [hit] = cli.json("recall", "sister", "--limit", "1", "--neighbours", "1", "--kind", "message")["hits"]
    assert [one["id"] for one in hit["neighbours"]] == ["m2"]
    _, first, beside = cli.shown("recall", "sister", "--limit", "1", "--neighbours", "1", "--kind", "message").splitlines()
    assert first.endswith("My sister Maria moved to Lisbon.")
    assert re.fullmatch(r"\s+2026-01-05 08:01  assistant  How nice!", beside)
    assert "  after it  2026-01-05 08:01:00  assistant\n  How nice!\n" in cli.shown(
        "recall", "sister", "--limit", "1", "--neighbours", "1", "--kind", "message", "--explain"
    )


def test_an_explanation_says_how_the_question_was_read_and_adds_up(cli: Cli) -> None:
    cli.talk()
    shown = cli.shown("recall", "Where did Maria move in January 2026?", "--explain", "--kind", "message", "--limit", "2")
    assert re.match(r"terms: .*maria.*\nnames: person:maria\ntime: 2026-01-01T00:00:00\+00:00 to 2026-02-01T", shown)
    _, *hits = shown.split("\n\n")
    assert len(hits) == 2
    for hit in hits:
        score = float(hit.split()[1])
        shares = [float(share) for share in re.findall(r"^  \w+ +\+(\d\.\d{3})  measured -?\d+\.\d{3}$", hit, re.MULTILINE)]
        assert sum(shares) == pytest.approx(score, abs=0.005)
    assert hits[0].startswith("1. ")
    assert "  message  m1  2026-01-05 08:00:00  user\n  My sister Maria moved to Lisbon.\n  words " in hits[0]
    assert "\n  has " in hits[0]
    told = cli.json("recall", "Where did you say Maria lives?", "--explain")
    assert told["understood"]["roles"] == ["assistant"]
    assert told["explanation"].startswith("terms: ")
    assert "said by: assistant\n" in cli.shown("recall", "What did you say about Maria?", "--explain")


def test_the_parts_of_a_blend_are_told(cli: Cli) -> None:
    cli.talk()
    shown = cli.shown("recall", "zebra", "--explain", PERDURE_RECALL_BLEND="on")
    assert re.search(r"^  blended of similarity 1\.000, recency \d\.\d{3}, frequency \d\.\d{3}$", shown, re.MULTILINE)


# -- what is not covered


def test_no_hit_is_said_and_is_no_error(cli: Cli) -> None:
    cli.say("The zebra was asleep.")
    cli.engine.process()
    done = cli.run("recall", "crocodile", "--kind", "todo")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", NOTHING)
    assert cli.json("recall", "crocodile", "--kind", "todo")["hits"] == []
    assert cli.run("recall", "crocodile", "--kind", "todo", "--explain").stdout == "terms: crocodil\n"


def test_an_index_that_lags_says_what_to_run(cli: Cli) -> None:
    cli.env["PERDURE_CATCH_UP_MS"] = "0"
    cli.talk()
    cli.say("The lion was awake.", 60 * 25, session="tuesday")
    done = cli.run("recall", "crocodile", "--kind", "todo")
    assert (done.exit_code, done.stderr) == (0, NOTHING + WAITING.format(1) + LAGS)
    assert cli.run("recall", "lion").stderr == WAITING.format(1) + LAGS
    assert cli.json("recall", "lion")["uncovered"]["waiting"] == 1
    assert cli.run("worker", "--once").exit_code == 0
    assert cli.run("recall", "lion").stderr == ""


def test_what_was_stored_before_there_was_an_index_is_named(cli: Cli) -> None:
    cli.talk()
    owner = cli.ana.scope.owner
    cli.engine._store.write(owner, lambda tx: tx.index.put_head(replace(tx.index.head(), lexicon=0)))
    assert cli.run("recall", "zebra").stderr == "not covered: older data is still being indexed\n" + LAGS
    assert cli.run("worker", "--once").exit_code == 0
    assert cli.run("recall", "zebra").stderr == ""


class Foreign:
    """An embedder that the command line does not have."""

    name, version, dims = "foreign", "1", 2

    def embed(self, texts: Any, *, kind: str = "passage") -> Any:
        return np.full((len(texts), 2), 0.5**0.5, np.float32)


def test_vectors_of_another_embedder_are_named_and_reindexing_makes_our_own(cli: Cli) -> None:
    cli.env["PERDURE_CATCH_UP_MS"] = "0"
    cli.talk()
    with perdure.open(cli.env["PERDURE_URL"], embedder=Foreign()) as other:
        other.memory("ana", agent="coach").admin.reindex()
    done = cli.run("recall", "zebra")
    told = "not covered: meaning is not compared: the vectors are of embedder 'foreign', which is not in use here\n"
    assert done.stderr == told
    assert "asleep" in done.stdout
    assert "meaning" not in cli.json("recall", "zebra")["hits"][0]["trace"]["arms"]
    cli.shown("admin", "reindex")
    assert cli.run("recall", "zebra").stderr == ""
    assert "meaning" in cli.json("recall", "zebra")["hits"][0]["trace"]["arms"]


def test_what_a_series_does_not_hold_of_the_time_is_named(cli: Cli) -> None:
    cli.ana.series("kudos").merge([{"id": 1, "timestamp": "2026-01-02"}], window=("2026-01-01", "2026-01-03"))
    cli.engine.process()
    done = cli.run("recall", "kudos in January 2026")
    told = "not covered: series 'kudos' does not hold all of 2026-01-03T00:00:00+00:00 to 2026-02-01T00:00:00+00:00\n"
    assert done.stderr == told
    uncovered = cli.json("recall", "kudos in January 2026")["uncovered"]
    gap = {"start": "2026-01-03T00:00:00+00:00", "end": "2026-02-01T00:00:00+00:00"}
    assert uncovered["gaps"] == [{"series": "kudos", "spans": [gap], "future": None}]
    assert uncovered["lines"] == [told.removeprefix("not covered: ").rstrip()]


# -- JSON and text from memory


def fields_of(kind: Any) -> set[str]:
    return set(kind.__dataclass_fields__)


def test_every_field_of_every_hit_is_in_the_json(cli: Cli) -> None:
    cli.talk()
    cli.ana.remember("Likes the zebra", fact_type="preference", entities=["person:Zoe"])
    told = cli.json("recall", "zebra", "--neighbours", "1")
    assert told.keys() == fields_of(Recall)
    assert told["uncovered"].keys() == fields_of(Uncovered) | {"lines"}
    assert told["understood"].keys() == fields_of(Understood)
    assert len(told["hits"]) > 1
    held = {hit.id: hit for hit in cli.ana.recall("zebra", neighbours=1).hits}
    for hit in told["hits"]:
        assert hit.keys() == fields_of(Hit)
        assert hit["trace"].keys() == fields_of(Trace)
        assert all(arm.keys() == fields_of(Arm) for arm in hit["trace"]["arms"].values())
        assert all(one.keys() == fields_of(Neighbour) for one in hit["neighbours"])
        ours = held[hit["id"]]
        assert (hit["text"], hit["at"], hit["score"]) == (ours.text, ours.at.isoformat(), pytest.approx(ours.score))
        assert (hit["sources"], hit["entities"], hit["trust"]) == ([*ours.sources], [*ours.entities], ours.trust)


HOSTILE = [
    "\x1b[2J\x1b]0;owned\x07",
    "a\rb",
    "[red]boo[/red] [/]",
    "\\[bold]",
    "\u202egnp.exe",
    "\u2066isolated\u2069",
    "x\u2028y\x85z",
    "two\n1  9.999   2026-01-01 00:00  user  fake",
    "two\n1. 9.999  message  fake",
    "漢字" * 80,
]
OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_text_from_memory_is_shown_never_obeyed(cli: Cli, text: str) -> None:
    cli.say(f"needle {text}", id=f"needle {text}"[:80], metadata={"name": f"n {text}"}, session=f"s {text}"[:80])
    cli.say(f"beside {text}", 1, metadata={"name": text}, session=f"s {text}"[:80])
    cli.ana.remember(f"needle {text}", entities=[f"person:needle {text}"], source=text[:100])
    cli.ana.state.save(f"needle {text}"[:80], text)
    cli.ana.series(f"needle {text}"[:80]).merge([], window=("2026-01-01", "2026-01-03"))
    calls = [
        ("recall", "needle in 2026"),
        ("recall", "needle", "--full", "--neighbours", "2"),
        ("recall", f"needle {text}", "--explain", "--neighbours", "2"),
        ("recall", "needle", "--explain", "--full"),
        ("context", f"needle {text}"),
        ("context", "needle in 2026", "--messages"),
    ]
    for args in calls:
        done = cli.run(*args)
        assert done.exit_code == 0, done.output
        assert "needle" in done.stdout, args
        assert OBEYED.search(done.output) is None, args
        if args[0] == "recall":
            # Every line that begins with a number is ours: no text can pass for a hit.
            assert len(re.findall(r"^\d", done.stdout, re.MULTILINE)) == len(cli.json(*args)["hits"]), args


def test_markup_is_readable_as_what_it_is(cli: Cli) -> None:
    cli.say("needle [red]boo[/red] \x1b[2J \u202e")
    assert "needle [red]boo[/red] \\x1b[2J \\u202e" in cli.shown("recall", "needle")


def test_names_of_users_are_shown_never_obeyed(cli: Cli) -> None:
    user = "[red]\x1b[2J\nbob: 9 entries"
    cli.engine.memory(user).append("user", "hello")
    done = cli.run("admin", "reindex", "--all", who=())
    assert done.stdout == "default/[red]\\x1b[2J bob: 9 entries: 1 entry\n"


# -- errors


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("--kind", "fact"), "invalid_input", "`--kind` = 'fact' is unknown; use one of message, memory, instruction"),
        (("--since", "yesterday"), "invalid_input", "`--since` = 'yesterday' is no ISO 8601 time; write e.g. 2026-"),
        (("--until", "2026-01-01"), "invalid_input", "`--until` = 2026-01-01T00:00:00 has no time zone; add one"),
        (
            ("--since", "2999-01-01T00:00:00Z", "--until", "2026-01-01T00:00:00Z"),
            "invalid_input",
            "is not after `since` = 2999-01-01",
        ),
        (("--as-of", "then"), "invalid_input", "`--as-of` = 'then' is no ISO 8601 time"),
        (("--known-at", "2026-01-01"), "invalid_input", "`--known-at` = 2026-01-01T00:00:00 has no time zone"),
        (("--session", "july"), "not_found", "there is no session 'july' at this address; list them with `sessions()`"),
        (("--entity", "person:"), "invalid_input", "a label has no visible character; give the entity a name"),
        (("--limit", "0"), "invalid_input", "`limit` = 0 must be a whole number of at least 1"),
        (("--budget", "0"), "invalid_input", "`budget_tokens` = 0 must be a whole number from 1 on"),
        (("--neighbours", "11"), "invalid_input", "`neighbours` = 11 must be a whole number from 0 to 10"),
    ],
)
def test_errors_name_the_thing_the_value_and_the_remedy(cli: Cli, args: tuple[str, ...], code: str, words: str) -> None:
    error = cli.refused("recall", "zebra", *args)
    assert error.code == code
    assert words in str(error)


def test_exit_codes_are_those_of_the_other_commands(cli: Cli) -> None:
    for args, code in (
        (("recall", "zebra", *HERE), 0),
        (("recall", "zebra", "--kind", "fact", *HERE), EXIT_CODES["invalid_input"]),
        (("recall", "zebra", "--session", "july", *HERE), EXIT_CODES["not_found"]),
        (("recall", *HERE), EXIT_CODES["invalid_input"]),
        (("context", "zebra", "--budget", "1", *HERE), EXIT_CODES["invalid_input"]),
        (("admin", "reindex", "--all", *HERE), EXIT_CODES["invalid_input"]),
    ):
        done = cli.start(*args)
        assert done.returncode == code, args
        assert (done.stderr.count("\n"), done.stderr.startswith("error: ")) == (1, code != 0), args


def test_an_empty_store_answers_with_nothing(cli: Cli) -> None:
    done = cli.run("recall", "zebra")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", NOTHING)
    assert cli.json("recall", "zebra")["uncovered"] == {**EMPTY, "lines": []}
    done = cli.run("context")
    assert (done.exit_code, done.stdout) == (0, "")
    assert done.stderr == "0 of 100,000 tokens\n"
    assert cli.json("context", "--messages") == []
    assert cli.run("context", "zebra").stdout == "user: zebra\n"
    assert cli.json("context", "zebra", "--messages") == [{"role": "user", "content": "zebra"}]
    assert cli.json("admin", "reindex", "--all", who=()) == {"users": [], "entries": 0}
    assert cli.run("admin", "reindex", "--all", who=()).stderr == "0 entries of 0 users\n"
    assert cli.run("instruction", "list").stderr == "no standing instructions\n"


EMPTY = {"waiting": 0, "unindexed": False, "degraded": None, "gaps": [], "cut": 0}


@pytest.mark.parametrize("args", [("recall", "zebra"), ("context",), ("admin", "reindex")])
def test_a_user_must_be_named(cli: Cli, args: tuple[str, ...]) -> None:
    assert str(cli.refused(*args, who=())) == "no user is named; add `--user NAME`, or set `PERDURE_USER`"
    assert cli.run(*args, who=(), PERDURE_USER="ana").exit_code == 0


@pytest.mark.parametrize(
    "name", ["recall", "context", "admin reindex", "instruction add", "instruction list", "instruction withdraw"]
)
def test_every_command_explains_itself_with_an_example(name: str) -> None:
    command: Any = typer.main.get_command(app)
    for word in name.split():
        command = command.commands[word]
    assert f"Example: perdure {name}" in command.help
    assert all(one.help for one in command.params if one.opts[0].startswith("--"))


# -- the context for a goal


def test_a_context_holds_what_is_remembered_for_the_goal(cli: Cli) -> None:
    cli.talk()
    cli.say("From now on, answer in French.", 60 * 30, session="wednesday")
    done = cli.run("context", "Where does my sister Maria live?", "--budget", "600")
    assert 'kind="instructions"' in done.stdout
    assert "From now on, answer in French." in done.stdout
    assert re.search(r'<memory kind="memories".*Maria', done.stdout, re.DOTALL)
    spent = re.match(r"(\d+) of 600 tokens\n", done.stderr)
    assert spent is not None
    assert int(spent[1]) <= 600
    assert "words only" not in done.stderr, "so little is indexed by the call that reads"


def test_the_context_is_what_the_agent_is_given(cli: Cli) -> None:
    cli.ana.append("user", "My address is 12 Elm Street", session="s")
    for number in range(9):
        cli.ana.append("assistant", f"noted {number}")
        cli.ana.append("user", "word " * 30)
    cli.ana.conversation.compact(force=True)
    told = cli.json("context", "--budget", "400")
    assert set(told) == {"messages", "blocks", "tokens", "budget_tokens", "dropped", "notes", "pending"}
    assert told["messages"][0]["role"] == "system"
    assert [block["kind"] for block in told["blocks"]] == ["summary"]
    assert told["tokens"] <= told["budget_tokens"] == 400
    done = cli.run("context", "--budget", "400")
    assert done.stdout.startswith("<memory ")
    assert "12 Elm Street" in done.stdout
    assert "of 400 tokens" in done.stderr
    assert cli.refused("context", "--budget", "3").code == "invalid_input"


def test_a_context_as_messages_is_what_a_chat_model_takes(cli: Cli) -> None:
    cli.talk()
    cli.ana.remember("Maria likes zebras", "PEOPLE", entities=["person:Maria"])
    cli.ana.append("user", "I need a present.")
    goal = ("context", "What does Maria like?", "--budget", "1000")
    done = cli.run(*goal, "--messages")
    messages = json.loads(done.stdout)
    assert messages == cli.ana.context("What does Maria like?", budget_tokens=1000).as_messages()
    assert {message["role"] for message in messages} >= {"system", "user"}
    assert re.match(r"\d+ of 1,000 tokens\n", done.stderr)
    assert cli.json(*goal, "--messages") == messages
    told = cli.json(*goal)
    assert told.keys() == {"messages", "blocks", "tokens", "budget_tokens", "dropped", "notes", "pending"}
    assert told["messages"] == messages
    [found] = [block for block in told["blocks"] if block["kind"] == "memories"]
    assert found["volatile"] is True
    assert found["sources"]


def test_what_did_not_fit_into_the_context_is_told(cli: Cli) -> None:
    for number in range(30):
        cli.say(f"Fact {number} about the zebra: {'it eats grass and sleeps. ' * 5}", number)
    done = cli.run("context", "zebra", "--budget", "200")
    assert "over budget: " in done.stderr
    assert cli.json("context", "zebra", "--budget", "200")["dropped"]


# -- indexing anew


def test_the_index_of_a_user_is_made_anew(cli: Cli) -> None:
    cli.talk()
    before = cli.json("recall", "zebra")
    done = cli.run("admin", "reindex")
    assert (done.exit_code, done.stderr) == (0, "")
    assert re.fullmatch(r"default/ana: \d+ entries\n", done.stdout)
    told = cli.json("admin", "reindex")
    assert told["users"] == [{"space": "default", "user": "ana", "entries": told["entries"]}]
    assert cli.json("admin", "reindex", who=("--user", "ana", "--space", "other")) == {
        "users": [{"space": "other", "user": "ana", "entries": 0}],
        "entries": 0,
    }
    assert [hit["id"] for hit in cli.json("recall", "zebra")["hits"]] == [hit["id"] for hit in before["hits"]]
    assert cli.engine.verify().clean


def test_the_indexes_of_all_users_are_made_anew(cli: Cli) -> None:
    cli.talk()
    for user, space in (("bob", "default"), ("ana", "other"), ("eva", "other")):
        cli.engine.memory(user, space=space).append("user", f"{user} saw a zebra")
    told = cli.json("admin", "reindex", "--all", who=())
    names = [f"{one['space']}/{one['user']}" for one in told["users"]]
    assert names == ["default/ana", "default/bob", "other/ana", "other/eva"]
    assert told["entries"] == sum(one["entries"] for one in told["users"])
    assert all(one["entries"] for one in told["users"])
    done = cli.run("admin", "reindex", "--all", who=())
    assert done.stdout.splitlines()[1:] == ["default/bob: 1 entry", "other/ana: 1 entry", "other/eva: 1 entry"]
    assert done.stderr == f"{told['entries']:,} entries of 4 users\n"
    assert cli.engine.memory("bob").recall("zebra").uncovered.nothing
    assert cli.engine.verify().clean


@pytest.mark.parametrize("option", ["--user", "--space"])
def test_all_users_and_some_are_not_named_together(cli: Cli, option: str) -> None:
    error = cli.refused("admin", "reindex", "--all", who=(option, "ana"))
    assert str(error) == f"`--all` and `{option}` = 'ana' are both given; leave one of them out"


def test_on_a_terminal_progress_is_shown(cli: Cli) -> None:
    cli.talk()
    ours, theirs = pty.openpty()
    done = cli.start("admin", "reindex", *HERE, stderr=theirs)
    os.close(theirs)
    seen = os.read(ours, 65_536).decode()
    os.close(ours)
    assert done.returncode == 0
    assert "indexing" in seen
    assert re.fullmatch(r"default/ana: \d+ entries\n", done.stdout)


def test_the_demo_shows_recall(cli: Cli) -> None:
    steps = {step["step"]: step for step in cli.json("demo", who=())}
    assert "knee" in steps["A question finds what was said, by words and by meaning"]["found"]
    explained = steps["and every hit can be explained"]
    assert sum(explained["shares"].values()) == pytest.approx(explained["score"], abs=0.05)
    told = steps["A goal brings what is known of it into the context"]
    assert told["home_found"] is True
    assert {"instructions", "memories"} <= set(told["blocks"])
