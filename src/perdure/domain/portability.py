"""Data on its way out of a store or into one: the formats there are, what a file says of itself, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

ExportFormat = Literal["jsonl", "vault", "seed"]
EXPORT_FORMATS: tuple[ExportFormat, ...] = get_args(ExportFormat)
"""`jsonl`: every row, exactly. `vault`: a folder of Markdown notes, for people. `seed`: memories under the seed's names."""
IMPORT_FORMATS = ("auto", "jsonl", "vault", "mem0", "mcp")
"""`mem0`: what mem0 exports as JSON. `mcp`: the `memory.json` of the reference memory server of MCP. Plugins add others."""

FORMAT = "perdure-export"
VERSION = 1


@dataclass(frozen=True, slots=True)
class ExportPart:
    """The rows of one user in an exported file. A file of several users has a part for each."""

    schema: int
    space: str
    user: str
    number: int = 1
    of: int = 1
    rows: int = 0

    def heading(self) -> dict[str, object]:
        """What the first line of it says."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "schema": self.schema,
            "space": self.space,
            "user": self.user,
            "part": self.number,
            "of": self.of,
        }


@dataclass(frozen=True, slots=True)
class ExportReport:
    """What was written."""

    format: ExportFormat
    users: tuple[str, ...]
    rows: Mapping[str, int]
    """Rows by table; of a vault, notes by kind."""
    bytes: int
    sha256: str = ""
    """Of everything in the file, before it is packed; empty for a vault."""
    written: tuple[str, ...] = ()
    """Notes of a vault that are new, or say something else than before."""
    removed: tuple[str, ...] = ()
    """Notes that told of what is no more."""
    edited: tuple[str, ...] = ()
    """Notes that a person has changed since they were written: they are left as they are."""


Verdict = Literal["added", "changed", "mentioned", "unchanged", "ignored", "refused"]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)


@dataclass(frozen=True, slots=True)
class ImportedItem:
    """What became of one thing that was to be imported."""

    where: str
    """The note and its line, or the place in the other engine's export."""
    kind: str
    """`memory`, `lesson`, `todo`, `relation`, or `note`."""
    verdict: Verdict
    why: str = ""


@dataclass(frozen=True, slots=True)
class Doubt:
    """Something that looks wrong with what another engine has remembered."""

    fault: str
    items: tuple[str, ...]
    why: str


@dataclass(frozen=True, slots=True)
class ImportReport:
    """What was imported, or with `dry_run` would be."""

    format: str
    users: tuple[str, ...]
    dry_run: bool
    rows: Mapping[str, int]
    """Rows by table, of a lossless export."""
    items: tuple[ImportedItem, ...] = ()
    """Of the other formats: what became of each thing."""
    doubts: tuple[Doubt, ...] = ()
    """Of another engine's export: what an audit finds."""

    @property
    def counts(self) -> dict[str, int]:
        """How many things met which end."""
        found = [item.verdict for item in self.items]
        return {verdict: found.count(verdict) for verdict in VERDICTS if verdict in found}
