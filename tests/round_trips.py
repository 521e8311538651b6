"""How often PostgreSQL is asked and waited for during a call: counted from what the driver's library says it sent and got."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from psycopg import pq

from perdure.adapters.postgres.connections import AbandonedTransactions

_DONE = re.compile(r"B\t\d+\tCommandComplete")


@dataclass(frozen=True)
class Traffic:
    round_trips: int
    """How often something was sent after something had come back: so often the call waits for the network."""
    statements: int
    """Statements that were carried out, `BEGIN` and what is set with it included."""


class Counter:
    def __init__(self) -> None:
        self._files: list[Any] = []

    def watch(self, connection: Any) -> None:
        file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        connection.pgconn.trace(file.fileno())
        connection.pgconn.set_trace_flags(pq.Trace.SUPPRESS_TIMESTAMPS)
        self._files.append(file)

    def of(self, call: Callable[[], object]) -> Traffic:
        before = [file.seek(0, os.SEEK_END) for file in self._files]
        call()
        before += [0] * (len(self._files) - len(before))
        return _added([_traffic(file, start) for file, start in zip(self._files, before, strict=True)])

    def close(self) -> None:
        for file in self._files:
            file.close()


@contextmanager
def counted(patch: Any) -> Iterator[Counter]:
    """Counts for stores that are opened within the block."""
    counter = Counter()
    end_all = AbandonedTransactions.end_all

    def watched(self: AbandonedTransactions, connection: Any) -> None:
        end_all(self, connection)
        counter.watch(connection)

    # The last thing that is done with a connection before the pool lends it.
    patch.setattr(AbandonedTransactions, "end_all", watched)
    yield counter
    counter.close()


def _traffic(file: Any, start: int) -> Traffic:
    lines = os.pread(file.fileno(), 2**26, start).decode(errors="replace").splitlines()
    # A text may hold a line break: only lines of messages begin with a direction, a tab and a length.
    ways = [line[0] for line in lines if re.match(r"[FB]\t\d+\t", line)]
    turns = sum(way == "F" and (place == 0 or ways[place - 1] == "B") for place, way in enumerate(ways))
    return Traffic(turns, sum(bool(_DONE.match(line)) for line in lines))


def _added(all_of_them: list[Traffic]) -> Traffic:
    return Traffic(sum(one.round_trips for one in all_of_them), sum(one.statements for one in all_of_them))
