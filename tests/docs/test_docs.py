"""The documentation keeps what it says: commands run, links resolve, nothing public is left out.

The Python examples run as tests of their own (conftest.py at the root), but for the page on PostgreSQL, which needs a server.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import psycopg
import pytest
import typer.main
from psycopg.conninfo import conninfo_to_dict

import perdure
import perdure.engine.times.question
from cli_reference import leaves
from fork_server import ForkServer
from perdure.domain.errors import ALL_ERRORS
from perdure.interfaces.cli.commands import app
from perdure.interfaces.errors import DEGRADED, EXIT_CODES, INTERRUPTED
from perdure.settings import defaults

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
POSTGRES_PAGE = DOCS / "how-to" / "postgresql.md"
EVERY_COMMAND = Path(__file__).with_name("commands.md")
"""Each command with what it prints. The reference, which is generated, shows no output."""
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")])
BIN = Path(sys.executable).parent

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
EXIT = re.compile(r"# exit (\d+)$")
SERVE = re.compile(r"perdure serve\b(?!.*(--help|# exit))")
CURL = re.compile(r"\bcurl\b")
ADDRESS = re.compile(r"\b(?:127\.0\.0\.1|localhost):\d+\b")
ANYWHERE = "127.0.0.1:1"


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@dataclass(frozen=True)
class Block:
    language: str
    text: str


def blocks(page: Path) -> list[Block]:
    return [Block(language, text) for language, text in FENCE.findall(page.read_text())]


@dataclass(frozen=True)
class Command:
    line: str
    shown: str
    """What the page says it prints; empty if it says nothing."""

    @property
    def exit_code(self) -> int:
        stated = EXIT.search(self.line)
        return int(stated[1]) if stated else 0


def commands(block: Block) -> Iterator[Command]:
    """The commands of a console block, each with the lines under it."""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        line, _, shown = part.partition("\n")
        yield Command(line, shown.strip())


def consoles(page: Path) -> list[Command]:
    return [command for block in blocks(page) if block.language == "console" for command in commands(block)]


class Terminal:
    """A shell in an empty directory, with an empty home and a store of its own.

    `perdure serve` goes on in the background, on a free port, and requests of the page go there.
    """

    def __init__(self, folder: Path, programs: Path) -> None:
        self._folder = folder
        self._server: subprocess.Popen[str] | None = None
        self._address = ""
        self._env = {
            "PATH": f"{programs}{os.pathsep}{BIN}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(folder),
            "XDG_CONFIG_HOME": str(folder),
            "XDG_DATA_HOME": str(folder),
            "PERDURE_URL": "sqlite:///perdure.db",
            "COLUMNS": "200",
        }

    def check(self, command: Command) -> None:
        """Run it; exit code and output are as the page says."""
        if SERVE.match(command.line):
            self._serve(command)
            return
        if CURL.search(command.line):
            if self._server is None:
                self._serve(Command("perdure serve", ""))
            if shutil.which("curl") is None:
                self._make_curl()
        line = ADDRESS.sub(self._address, command.line) if self._address else command.line
        done = subprocess.run(
            ["/bin/sh", "-c", line],
            cwd=self._folder,
            env=self._env,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=120,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert done.returncode == command.exit_code, f"{command.line}\n{done.stdout}"
        if command.shown:
            assert _as_shown(command, done.stdout), f"{command.line}\n{done.stdout}"

    def _make_curl(self) -> None:
        made = self._folder / "bin" / "curl"
        made.parent.mkdir(exist_ok=True)
        made.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{Path(__file__).with_name("plain_curl.py")}" "$@"\n')
        made.chmod(0o755)
        self._env["PATH"] = f"{made.parent}{os.pathsep}{self._env['PATH']}"

    def _serve(self, command: Command) -> None:
        """Start the server as the page says, but on a free port; it says where it is when it is ready."""
        self.close()
        words = list(re.sub(r"--port[ =]\d+", "", EXIT.sub("", command.line).rstrip(" &")).split()[1:])
        self._server = subprocess.Popen(
            [str(BIN / "perdure"), *words, "--port", "0"],
            cwd=self._folder,
            env={**self._env, "PYTHONUNBUFFERED": "1"},
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert self._server.stdout is not None
        said = ""
        watch = threading.Timer(60, self._server.kill)
        watch.start()
        try:
            while not (self._address and (not command.shown or _as_shown(command, ADDRESS.sub(ANYWHERE, said)))):
                line = self._server.stdout.readline()
                assert line, f"{command.line} ended, or did not say what the page shows:\n{said}"
                said += line
                if found := ADDRESS.search(line):
                    self._address = found[0]
        finally:
            watch.cancel()

    def close(self) -> None:
        if self._server is not None:
            self._server.terminate()
            self._server.communicate(timeout=30)
            self._server, self._address = None, ""


def _as_shown(command: Command, output: str) -> bool:
    pattern = ".*".join(re.escape(part.strip()) for part in re.split("…", _squeezed(ADDRESS.sub(ANYWHERE, command.shown))))
    return re.fullmatch(pattern, _squeezed(ADDRESS.sub(ANYWHERE, output)), re.DOTALL) is not None


def _squeezed(text: str) -> str:
    """With runs of blanks as one, so that the width of a column does not matter."""
    return "\n".join(" ".join(line.split()) for line in text.strip().splitlines())


@pytest.fixture
def terminal(tmp_path: Path, forked: ForkServer) -> Iterator[Terminal]:
    terminal = Terminal(tmp_path, forked.bin)
    yield terminal
    terminal.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [page for page in (*PAGES, EVERY_COMMAND) if page != POSTGRES_PAGE and consoles(page)], ids=name_of
)
def test_commands_do_what_the_page_says(page: Path, terminal: Terminal) -> None:
    for command in consoles(page):
        terminal.check(command)


def test_the_page_on_postgresql_does_what_it_says(postgres_url: str, terminal: Terminal) -> None:
    """Its blocks in order, on the server of the tests: `localhost` becomes that server, which asks for no password."""
    socket = conninfo_to_dict(postgres_url)["host"]
    names: dict[str, Any] = {}

    def here(text: str) -> str:
        return re.sub(r"@localhost/(\w+)", rf"@/\1?host={socket}", text)

    with psycopg.connect(postgres_url, autocommit=True) as superuser:
        try:
            for block in blocks(POSTGRES_PAGE):
                if block.language == "sql":
                    run_sql(block.text, superuser, here)
                elif block.language == "python":
                    exec(here(block.text), names)
                elif block.language == "console":
                    for command in commands(block):
                        terminal.check(Command(here(command.line), command.shown))
        finally:
            superuser.execute("DROP DATABASE IF EXISTS agents WITH (FORCE)")
            superuser.execute("DROP ROLE IF EXISTS agents_owner, agents_service")


def run_sql(text: str, superuser: psycopg.Connection[Any], here: Any) -> None:
    """The first line says as whom: `-- as a superuser`, or `-- as ROLE in DATABASE`."""
    heading, _, statements = text.partition("\n")
    if heading == "-- as a superuser":
        for statement in statements.split(";"):
            if statement.strip():
                superuser.execute(statement.encode())
        return
    found = re.fullmatch(r"-- as (\w+) in (\w+)", heading)
    assert found, heading
    role, database = found.groups()
    superuser.execute(f"ALTER ROLE {role} CREATEROLE".encode())
    with psycopg.connect(here(f"postgresql://{role}:x@localhost/{database}"), autocommit=True) as connection:
        connection.execute(statements.encode())


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_configuration_can_be_read_as_what_it_is(page: Path) -> None:
    for block in blocks(page):
        if block.language == "json":
            json.loads(block.text)
        elif block.language == "toml":
            tomllib.loads(block.text)


def test_every_block_says_what_it_is() -> None:
    """So that none is left unchecked by a slip of the pen. `sh` is what a reader types elsewhere, `text` what is printed."""
    known = {"python", "console", "json", "toml", "sql", "sh", "text", "markdown", "yaml", "http"}
    wrong = {name_of(page): block.text[:60] for page in PAGES for block in blocks(page) if block.language not in known}
    assert wrong == {}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_between_pages_resolve(page: Path) -> None:
    prose = FENCE.sub("", page.read_text())
    wrong = []
    for target in LINK.findall(prose):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            wrong.append(target)
    assert wrong == []


def anchors(page: Path) -> set[str]:
    """The names under which headings can be linked to."""
    headings = HEADING.findall(FENCE.sub("", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_every_page_is_listed_in_the_table_of_contents() -> None:
    targets = [target.partition("#")[0] for target in LINK.findall((DOCS / "index.md").read_text())]
    assert sorted(set(targets)) == sorted(targets)
    listed = {(DOCS / target).resolve() for target in targets}
    assert [name_of(page) for page in PAGES if page.resolve() not in listed and page.name != "index.md"] == []


def test_every_command_is_run_and_every_option_named() -> None:
    group: Any = typer.main.get_command(app)
    reference = (DOCS / "reference" / "cli.md").read_text()
    assert [name for name in option_names(group) if f"`{name}`" not in reference] == []
    run = "\n".join(command.line for command in consoles(EVERY_COMMAND))
    commands = [(words, command) for name, one in group.commands.items() for words, command in leaves(one, f"perdure {name}")]
    assert [words for words, _ in commands if not re.search(rf"\b{words}\b", run)] == []
    offered = [(words, name) for words, one in commands for name in option_names(one)]
    assert [(words, name) for words, name in offered if f"`{name}`" not in line_of(words, reference)] == []
    described = reference.partition("\n## Options\n")[2]
    shared = [name for name, taken in Counter(name for _, name in offered).items() if taken > 1]
    assert [name for name in shared if not re.search(rf"^- .*`{name}`.*: [`\w]", described, re.MULTILINE)] == []


def line_of(words: str, reference: str) -> str:
    """What the reference says of a command."""
    [line] = re.findall(rf"^- `{words}(?: [^`a-z]*)?`: .*$", reference, re.MULTILINE)
    return str(line)


def option_names(command: Any) -> list[str]:
    return [name for one in command.params for name in one.opts if name.startswith("--") and name != "--help"]


@pytest.mark.parametrize("page", ["cli", "errors"])
def test_every_exit_code_is_in_the_tables(page: str) -> None:
    text = (DOCS / "reference" / f"{page}.md").read_text()
    for code, number in EXIT_CODES.items():
        assert re.search(rf"^\| .*`{code}` \| {number} \||^\| {number} \| `{code}` \|", text, re.MULTILINE), code
    assert str(DEGRADED) in text
    assert str(INTERRUPTED) in text


def test_every_error_is_described_with_whether_to_retry() -> None:
    page = (DOCS / "reference" / "errors.md").read_text()
    for error in ALL_ERRORS:
        [row] = re.findall(rf"^\| `{error.__name__}` \| `{error.code}` \|.*$", page, re.MULTILINE)
        if error is not perdure.LimitExceeded:
            assert ("| yes |" in row) == error.retriable, row


def test_every_public_name_and_call_is_described() -> None:
    page = (DOCS / "reference" / "python-calls.md").read_text() + (DOCS / "reference" / "errors.md").read_text()
    names = set(perdure.__all__)
    for kind in (perdure.Engine, perdure.Memory):
        names |= {name for name, _ in inspect.getmembers(kind) if not name.startswith("_")}
    for value in (perdure.Message, perdure.NewMessage, perdure.ToolCall, perdure.Session):
        names |= {one.name for one in fields(value)}
    wrong = [name for name in sorted(names) if not re.search(rf"`(\w+\((\w+, )*)?{name}[`(:,)]", page)]
    assert wrong == []


def test_every_setting_is_listed_with_its_variable_and_default() -> None:
    page = (DOCS / "reference" / "settings.md").read_text()
    for name, default in defaults().items():
        shown = f"`{default}`" if default != "" else "empty"
        assert f"| `{name}` | `PERDURE_{name.upper()}` | {shown} |" in page, name


def test_decisions_are_short_and_say_what_they_cost() -> None:
    pages = sorted((DOCS / "decisions").glob("*.md"))
    assert [page.name[:4] for page in pages] == [f"{number:04}" for number in range(1, len(pages) + 1)]
    for page in pages:
        text = page.read_text()
        assert len(text.splitlines()) < 60, page.name
        assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Context", "Choice", "Price"], page.name


def test_the_page_on_times_has_the_readings_that_the_module_states() -> None:
    page = (DOCS / "how-to" / "time-ranges.md").read_text()
    stated = [line for line in (inspect.getdoc(perdure.engine.times.question) or "").splitlines() if line.startswith("| ")]
    assert [line for line in stated[1:] if line not in page] == []
