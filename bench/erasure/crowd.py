"""A large store made quickly: the rows of one user, copied by the database itself under other names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import perdure
from perdure.ports.tables.rows import TABLES

TEMPLATE = "template"
WORDS = "The quick brown fox of the neighbours jumps over our lazy dog every other morning, and nobody minds. "


def make_template(engine: perdure.Engine, messages: int) -> None:
    """One user with a conversation, some memories, a key and a series, and whatever jobs make of them."""
    memory = engine.memory(TEMPLATE)
    memory.append_many([perdure.NewMessage("user", f"{number}: {WORDS * 3}") for number in range(messages)])
    for number in range(3):
        memory.remember(f"Has {number} boats in harbour {number}", entities=[f"person:skipper{number}"])
        memory.state.save(f"harbour {number}", {"words": WORDS})
    memory.series("runs").merge(
        [{"id": str(one), "timestamp": f"2026-01-{one + 1:02}T00:00:00Z", "km": one} for one in range(20)]
    )
    while engine.process(600).ran:
        pass


def multiply(execute: Callable[[str], Any], columns: Callable[[str], list[str]], first: int, last: int, numbers: str) -> None:
    """Copy the template's rows for the users `first` to `last`. `numbers` is a query of the numbers between, as `n`."""
    for table in TABLES:
        names = columns(table)
        taken = ", ".join("'user-' || n" if name == "user_id" else name for name in names)
        source = numbers.format(first=first, last=last)
        execute(
            f"INSERT INTO {table} ({', '.join(names)}) SELECT {taken} FROM {table}, ({source}) AS counted "
            f"WHERE user_id = '{TEMPLATE}'"
        )
