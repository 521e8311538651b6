"""SQL kept in files, and how the stores run it: named queries, numbered migrations with checksums, the journal.

Names are the same in every database. A query that both understand stands in this folder; what they say differently stands in
theirs. The values of a statement have names: `:name` in its text, the driver's mark on the wire. Names become positions once,
when the statement is read: drivers bind faster so, and a row whose columns are the names of the statement goes as it is.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

from perdure.domain.errors import Conflict, Corrupt
from perdure.domain.values import dataclass
from perdure.ports.tables.rows import TABLES
from perdure.ports.tables.table import AnyRow

_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_FILE = re.compile(r"^(\d{4})_(\w+)\.sql$")
SHARED = "perdure.adapters.sql"


@dataclass(frozen=True, slots=True)
class Migration:
    version: int
    name: str
    sql: str
    checksum: str


@dataclass(frozen=True, slots=True)
class AppliedMigration:
    """A migration as the database remembers it."""

    version: int
    checksum: str


@cache
def queries(package: str) -> Mapping[str, str]:
    """The queries that both databases share and those of `package/queries`, by the name in the comment line above each."""
    found: dict[str, str] = {}
    for folder in (files(SHARED).joinpath("queries"), files(package).joinpath("queries")):
        for file in sorted(folder.iterdir(), key=lambda path: path.name):
            if file.name.endswith(".sql"):
                parts = _NAME.split(file.read_text(encoding="utf-8"))
                for name, text in zip(parts[1::2], parts[2::2], strict=True):
                    if name in found:
                        raise ValueError(f"query `{name}` is defined twice for {package}")
                    found[name] = text.strip().rstrip(";")
    return found


@cache
def migrations(package: str) -> tuple[Migration, ...]:
    """The migrations of `package/migrations`, in order: numbered from 1 without holes."""
    found = []
    for file in files(package).joinpath("migrations").iterdir():
        if match := _FILE.match(file.name):
            sql = file.read_text(encoding="utf-8")
            found.append(Migration(int(match[1]), match[2], sql, hashlib.sha256(sql.encode()).hexdigest()))
    found.sort(key=lambda migration: migration.version)
    if [migration.version for migration in found] != list(range(1, len(found) + 1)):
        raise ValueError(f"migrations of {package} are not numbered 1 to {len(found)}")
    return tuple(found)


def schema(package: str) -> str:
    """The whole schema as it is today, for a store made from scratch."""
    return files(package).joinpath("schema.sql").read_text(encoding="utf-8")


def pending(known: Sequence[Migration], applied: Sequence[AppliedMigration]) -> tuple[Migration, ...]:
    """Migrations still to run. A database from a newer version, or one whose history differs from ours, is refused."""
    held = [one.version for one in applied]
    if held != list(range(1, len(held) + 1)):
        raise Corrupt(f"the store's migrations are numbered {held[:20]}, with holes; restore it from a backup")
    if len(held) > len(known):
        raise Conflict(
            f"the store has schema version {len(held)}, but this perdure knows {len(known)} at most; upgrade perdure to open it"
        )
    for ours, theirs in zip(known, applied, strict=False):
        if ours.checksum != theirs.checksum:
            raise Corrupt(
                f"migration {ours.version} (`{ours.name}`) was applied with checksum {theirs.checksum[:12]}, "
                f"but this perdure ships {ours.checksum[:12]}; install the version that made the store"
            )
    return tuple(known[len(held) :])


def refuse_newer(schema_version: int, known: Sequence[Migration]) -> None:
    """A backup of a later schema than ours cannot be taken over."""
    if not 1 <= schema_version <= len(known):
        raise Conflict(
            f"the backup has schema version {schema_version}, but this perdure knows 1 to {len(known)}; upgrade perdure first"
        )


MAX_INTEGER = 2**63 - 1
OWNED = "space = :space AND user_id = :user_id"
# Not the `::type` of a cast.
_VALUE = re.compile(r"(?<!:):([a-z_]+)")


class Query:
    __slots__ = ("_of_columns", "names", "sql", "values")

    def __init__(self, text: str, mark: str) -> None:
        self.names = tuple(_VALUE.findall(text))
        """The names of the values, in the order of their marks; one that is used twice stands there twice."""
        self.sql = _VALUE.sub(mark, text)
        self.values: Callable[[Mapping[str, Any]], AnyRow] = _picker(self.names)
        """From values by name to values by position."""
        self._of_columns: dict[tuple[str, ...], Callable[[AnyRow], AnyRow]] = {}

    def of_row(self, row: NamedTuple) -> AnyRow:
        """The values that a row has by name."""
        [values] = self.of_rows([row])
        return values

    def of_rows(self, rows: Sequence[NamedTuple]) -> Sequence[AnyRow]:
        """The values that each of these rows of one table has by name."""
        if not rows or rows[0]._fields == self.names:
            return rows
        columns = rows[0]._fields
        if columns not in self._of_columns:
            self._of_columns[columns] = _picker([columns.index(name) for name in self.names])
        return [*map(self._of_columns[columns], rows)]


def _picker(keys: Sequence[Any]) -> Callable[[Any], AnyRow]:
    if len(keys) > 1:
        return itemgetter(*keys)
    return lambda held: tuple(held[key] for key in keys)


@cache
def insertion(table: str, mark: str) -> Query:
    """The statement that inserts a row of the table."""
    columns = TABLES[table].columns
    values = ", ".join(f":{name}" for name in columns)
    return Query(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({values})", mark)


@cache
def replacement(table: str, mark: str) -> Query:
    """The statement that overwrites the columns outside the key of a row that is held."""
    columns, key = TABLES[table].columns, TABLES[table].key
    changes = ", ".join(f"{name} = :{name}" for name in columns[key:])
    place = " AND ".join(f"{name} = :{name}" for name in columns[:key])
    return Query(f"UPDATE {table} SET {changes} WHERE {place}", mark)


@cache
def selection(table: str, mark: str, *, owned: bool) -> Query:
    """The statement that reads all rows of the table, or one owner's, by key."""
    columns, key = TABLES[table].columns, TABLES[table].key
    where = f" WHERE {OWNED}" if owned else ""
    return Query(f"SELECT {', '.join(columns)} FROM {table}{where} ORDER BY {', '.join(columns[:key])}", mark)


@cache
def deletion(table: str, mark: str) -> Query:
    """The statement that deletes all rows of an owner in the table."""
    return Query(f"DELETE FROM {table} WHERE {OWNED}", mark)


class SqlStatements(Protocol):
    """Running named queries on a connection that is inside a transaction, for one owner.

    Values are given by the names they have in the query; `space` and `user_id` are the owner's, and need not be given.
    """

    journalled: list[int]
    """The numbers of the operations that this transaction has recorded."""

    def all(self, name: str, /, **values: Any) -> list[AnyRow]:
        """Every row of the query."""

    def ask(self, name: str, /, **values: Any) -> Callable[[], list[AnyRow]]:
        """Have it asked with the next statement; the function answers with every row."""

    def change(self, name: str, /, **values: Any) -> int:
        """Run it; how many rows it changed."""

    def send(self, name: str, /, **values: Any) -> None:
        """Run it. Nobody waits for it: what is wrong with it comes out with a later statement, or at the end."""

    def change_row(self, name: str, row: NamedTuple) -> int:
        """Run it with the columns of the row as values; how many rows it changed."""

    def put(self, name: str, rows: Sequence[NamedTuple]) -> None:
        """Run it with the columns of each row as values. What a constraint refuses is a `Conflict`, here or at the end."""

    def together(self, works: Sequence[Callable[[], Any]]) -> list[Any]:
        """The answer of each of these, which only read. Their statements may travel together, and a work may run again."""

    def whole(self, table: str) -> Iterator[AnyRow]:
        """All rows of the owner in one of `ports.tables.rows.TABLES`."""

    def replace(self, table: str, row: AnyRow) -> None:
        """Overwrite the columns outside the key of a row that is held."""

    def array(self, values: Sequence[str]) -> Any:
        """A list as one value."""

    def shared(self, name: str) -> str:
        """The variant of a look-up that keeps off who would lock the row, but not others like this one."""

    def locked(self, name: str) -> str:
        """The variant of a look-up that keeps rivals off the row; the same one where the transaction does that anyway."""
