"""What a power cut may leave of a recording: a model of the weakest disk that still keeps what it was told to sync.

Of writes and truncations not yet synced any part may be there, in any order, torn between sectors. A name that was made,
moved or removed since its folder was last synced may be in any state it has had since. Nothing else is ever lost.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Literal

from proof.recorded_disk import ROOT_FOLDER, Ack, Event, Name, Sync, Truncate, Write

Lot = Literal["nothing", "all", "beginning", "some"]
"""What is left of the writes to a file that were not synced: `some` are any sectors in any order."""
SECTOR = 512
SHM_BYTES = 32_768


@dataclass(slots=True)
class _File:
    content: bytearray = field(default_factory=bytearray)
    pending: list[Write | Truncate] = field(default_factory=list)

    def sync(self) -> None:
        for change in self.pending:
            _apply(self.content, change)
        self.pending.clear()


@dataclass(slots=True)
class _Folder:
    names: dict[str, int | None] = field(default_factory=dict)
    """As last synced."""
    since: dict[str, list[int | None]] = field(default_factory=dict)
    """What each name has meant since."""

    def sync(self) -> None:
        self.names |= {name: states[-1] for name, states in self.since.items()}
        self.since.clear()


@dataclass(slots=True)
class Cut:
    """How a cut went: what was at stake, and what became of it."""

    lot: Lot | None = None
    """The same for every file, or each draws its own."""
    pending: int = 0
    """Writes and truncations that were not synced."""
    lost: int = 0
    torn: int = 0
    names_lost: int = 0


class Disk:
    """The disk as it is after some events."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.acks: list[Ack] = []
        self._files: dict[int, _File] = {}
        self._folders = {ROOT_FOLDER: _Folder()}
        for event in events:
            self._after(event)

    def _after(self, event: Event) -> None:
        if isinstance(event, Ack):
            self.acks.append(event)
        elif isinstance(event, Name):
            self._folders[event.folder].since.setdefault(event.name, []).append(event.file)
            if event.is_folder and event.file is not None:
                self._folders[event.file] = _Folder()
            elif event.file is not None and event.file not in self._folders:
                self._files.setdefault(event.file, _File())
        elif isinstance(event, Sync):
            (self._folders.get(event.file) or self._files[event.file]).sync()
        else:
            self._files[event.file].pending.append(event)

    def content(self) -> dict[str, bytes]:
        """Every file as it would be read now, by its path."""
        return self._collect(ROOT_FOLDER, "", None, Cut())

    def cut(self, chance: random.Random, lot: Lot | None = None) -> tuple[dict[str, bytes], Cut]:
        """The power goes now: what is there afterwards. Where nothing is left, names that were not synced are gone, too."""
        cut = Cut(lot)
        return self._collect(ROOT_FOLDER, "", chance, cut), cut

    def _collect(self, folder: int, path: str, chance: random.Random | None, cut: Cut) -> dict[str, bytes]:
        left: dict[str, bytes] = {}
        held = self._folders[folder]
        for name in {**held.names, **held.since}:
            states = [held.names.get(name), *held.since.get(name, ())]
            number = states[-1] if chance is None else states[0] if cut.lot == "nothing" else _one_of(states, chance)
            cut.names_lost += number != states[-1]
            if number is None:
                continue
            if number in self._folders:
                left |= self._collect(number, f"{path}{name}/", chance, cut)
            else:
                file = self._files[number]
                left[f"{path}{name}"] = bytes(_survivor(file, chance, cut) if chance else _whole(file))
        return left


def materialised(content: dict[str, bytes], folder: Path, chance: random.Random) -> None:
    """Put the files into a folder. SQLite's shared memory is never synced: it is gone, empty or rubbish."""
    folder.mkdir(parents=True)
    for name, data in content.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        if name.endswith(".db") and (shm := chance.choice((None, b"", chance.randbytes(SHM_BYTES)))) is not None:
            (folder / f"{name}-shm").write_bytes(shm)


def _one_of(states: list[int | None], chance: random.Random) -> int | None:
    return states[0] if len(states) == 1 else chance.choice((states[0], states[-1], chance.choice(states)))


def _whole(file: _File) -> bytearray:
    content = bytearray(file.content)
    for change in file.pending:
        _apply(content, change)
    return content


def _survivor(file: _File, chance: random.Random, cut: Cut) -> bytearray:
    """The file after the cut."""
    cut.pending += len(file.pending)
    if not file.pending:
        return file.content
    lot = cut.lot or chance.choice(("nothing", "all", "beginning", "some", "some"))
    content = bytearray(file.content)
    if lot == "all":
        return _whole(file)
    if lot == "nothing":
        cut.lost += len(file.pending)
        return content
    if lot == "beginning":
        kept = file.pending[: chance.randrange(len(file.pending))]
        last = file.pending[len(kept)]
        parts = _sectors(last)
        torn = parts[: chance.randrange(len(parts))]
        cut.lost += len(file.pending) - len(kept)
        cut.torn += bool(torn)
        for change in (*kept, *torn):
            _apply(content, change)
        return content
    share = chance.random()
    surviving: list[Write | Truncate] = []
    for change in file.pending:
        parts = _sectors(change)
        kept_parts = [part for part in parts if chance.random() < share]
        cut.lost += not kept_parts
        cut.torn += 0 < len(kept_parts) < len(parts)
        surviving += kept_parts
    if chance.random() < 0.5:
        chance.shuffle(surviving)
    for change in surviving:
        _apply(content, change)
    return content


def _sectors(change: Write | Truncate) -> list[Write | Truncate]:
    if isinstance(change, Truncate):
        return [change]
    first = SECTOR - change.offset % SECTOR
    bounds = [0, *range(first, len(change.data), SECTOR), len(change.data)]
    return [Write(change.file, change.offset + start, change.data[start:end]) for start, end in pairwise(bounds) if end > start]


def _apply(content: bytearray, change: Write | Truncate) -> None:
    if isinstance(change, Truncate):
        if change.size < len(content):
            del content[change.size :]
        else:
            content.extend(bytes(change.size - len(content)))
        return
    if change.offset > len(content):
        content.extend(bytes(change.offset - len(content)))
    content[change.offset : change.offset + len(change.data)] = change.data
