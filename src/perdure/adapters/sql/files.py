"""SQL kept in files: named queries, and numbered migrations with checksums. The same names in every database.

A query that both databases understand stands in this folder; what they say differently stands in theirs.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from perdure.domain.errors import Conflict, Corrupt

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
