"""Data goes to stdout, as tables for people or as JSON for programs; progress, notes and errors go to stderr."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from operator import attrgetter
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from perdure.handles.registry.shapes import plain
from perdure.interfaces.visible import visible as visible
from perdure.ports.store import Progress

Columns = Mapping[str, str | Callable[[Any], object]]
"""What stands under each heading of a table: an attribute such as `address.agent`, or what is made of each value."""


def safe(text: object) -> str:
    """Stored text for a line with markup: markup and control characters are shown, never obeyed."""
    return escape(visible(text))


def plural(count: int, one: str, many: str | None = None) -> str:
    """`1 message`, `12 messages`."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def counted(name: str, count: int) -> str:
    """A count by its name, which is a plural: `1 memory`, `2 jobs waiting`."""
    noun, _, rest = name.partition("_")
    if name.endswith("_keys"):
        noun, rest = name.replace("_", " "), ""
    one = noun if noun == "series" else f"{noun[:-3]}y" if noun.endswith("ies") else noun.removesuffix("s")
    return f"{plural(count, one, noun)} {rest}".strip()


def _cell(value: object, column: str | Callable[[Any], object]) -> object:
    shown = column(value) if callable(column) else attrgetter(column)(value)
    if isinstance(shown, datetime):
        return shown.isoformat(timespec="seconds")
    return "" if shown is None else shown


class Output:
    def __init__(self, *, as_json: bool) -> None:
        self.as_json = as_json
        self._out = Console(highlight=False, emoji=False, soft_wrap=True)
        self._err = Console(stderr=True, highlight=False, emoji=False, soft_wrap=True)

    @property
    def width(self) -> int:
        """Columns of the terminal."""
        return self._out.width

    def value(self, value: object, lines: Iterable[str | Text] = ()) -> None:
        """One answer: as JSON, or as the given lines: `Text`, or a string with markup."""
        if self.as_json:
            self._json(value)
        else:
            for line in lines:
                self._out.print(line)

    def entries(self, values: Sequence[object], lines: Iterable[str | Text], *, empty: str) -> None:
        """Several answers: as a JSON list, or as the given lines. That there are none is said on stderr."""
        self.value(values, lines)
        if not values and not self.as_json:
            self.note(empty)

    def each(self, values: Sequence[Any], entry: Callable[[Any, int], Iterable[str | Text]], *, empty: str) -> None:
        """As `entries`: each value as the lines that are made of it for this width."""
        self.entries(values, (line for one in values for line in entry(one, self.width)), empty=empty)

    def table(self, values: Sequence[object], columns: Columns, *, empty: str) -> None:
        """Several answers: as a JSON list, or as a table. An empty one says so on stderr."""
        if self.as_json:
            self._json(values)
        elif not values:
            self.note(empty)
        else:
            table = Table(*columns, box=None, pad_edge=False, header_style="bold")
            for one in values:
                table.add_row(*(safe(_cell(one, column)) for column in columns.values()))
            self._out.print(table)

    def note(self, text: str) -> None:
        self._err.print(text)

    def error(self, answer: Mapping[str, object], text: str) -> None:
        if self.as_json:
            print(json.dumps(answer, ensure_ascii=False), file=sys.stderr)
        else:
            self._err.print(f"[red]error:[/red] {safe(text)}")

    @contextmanager
    def progress(self, title: str, *, total: int | None = None) -> Iterator[Progress | None]:
        """A bar for long work, on a terminal; silence elsewhere and with JSON.

        What is yielded is called with what is in hand and how much of it is done: `progress("messages", 500)`. With a
        `total` over all that is in hand the bar fills up; without one it counts.
        """
        if not self._err.is_terminal or self.as_json:
            yield None
            return
        from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as Bars

        counted = "{task.completed:,.0f}" if total is None else "{task.completed:,.0f} of {task.total:,.0f}"
        columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn(counted), TimeElapsedColumn())
        done: dict[str, int] = {}
        with Bars(*columns, console=self._err, transient=True) as bars:
            bar = bars.add_task(safe(title), total=total)

            def progress(what: str, count: int) -> None:
                done[what] = count
                bars.update(bar, completed=sum(done.values()), description=safe(f"{title}: {what}"))

            yield progress

    def _json(self, value: object) -> None:
        # A broken pipe or an odd terminal encoding must not lose the data: JSON stays ASCII. A reader of a pipe gets
        # each answer when it is given.
        print(json.dumps(plain(value)), flush=True)
