"""`Memory.export` and `Memory.import_`: one user's data on its way out and in. `Engine` has both for all users of a space."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from perdure.domain.errors import InvalidInput, NotFound, Unavailable
from perdure.domain.reports import (
    EXPORT_FORMATS,
    IMPORT_FORMATS,
    ExportFormat,
    ExportPart,
    ExportReport,
    ImportReport,
)
from perdure.domain.scope import Owner, Scope, shared_owner
from perdure.domain.text.rules import check_choice, check_flag, utf8_size
from perdure.domain.values import dataclass
from perdure.ports.files import Source, Target, check_path
from perdure.ports.store import Progress
from perdure.services.portability.export import Exporter, SeedExporter
from perdure.services.portability.import_ import ForeignImporter, Importer, format_of
from perdure.services.portability.vault_export import VaultExporter
from perdure.services.portability.vault_import import VaultImporter


@dataclass(frozen=True, slots=True)
class Importation:
    """How something is to be imported."""

    format: str = "auto"
    replace: bool = False
    dry_run: bool = False
    progress: Progress | None = None

    def __post_init__(self) -> None:
        utf8_size(self.format, "`format`")
        check_flag(self.replace, "replace")
        check_flag(self.dry_run, "dry_run")


@dataclass(frozen=True, slots=True)
class Portability:
    """What the handles call."""

    exporter: Exporter
    importer: Importer
    foreign: ForeignImporter
    vaults: VaultExporter
    notes: VaultImporter
    seeds: SeedExporter

    def export(self, scope: Scope, to: Target, form: ExportFormat, *, replace: bool, progress: Progress | None) -> ExportReport:
        """See `Memory.export`."""
        check_choice(form, "format", EXPORT_FORMATS)
        check_flag(replace, "replace")
        if form == "jsonl":
            return self.exporter.export(scope.owner, to, replace=replace, progress=progress)
        if form == "seed":
            return self.seeds.export(scope, to, replace=replace, progress=progress)
        if not isinstance(to, str | os.PathLike):
            raise InvalidInput("a vault is a folder; name one")
        return self.vaults.export(scope.owner, check_path(to, "to"), replace=replace, progress=progress)

    def import_(
        self, scope: Scope, source: Source, form: str, *, replace: bool, dry_run: bool, progress: Progress | None
    ) -> ImportReport:
        """See `Memory.import_`."""
        how = Importation(form, replace, dry_run, progress)
        if how.format not in IMPORT_FORMATS:
            self.foreign.plugins.check(how.format)
        if isinstance(source, str | os.PathLike) and check_path(source, "source").is_dir():
            if how.format not in ("auto", "vault"):
                raise InvalidInput(f"{source} is a folder, which the format `{how.format}` is not; name a file, or use `vault`")
            _refuse_replacing("vault", how)
            return self.notes.import_(scope, Path(source), dry_run=how.dry_run)
        if how.format == "vault":
            raise InvalidInput("a vault is a folder; name one that `perdure admin export --format vault` wrote")
        with _opened(source) as file:
            found = format_of(file) if how.format == "auto" else how.format
            if found == "jsonl":
                return self._import_rows(file, lambda part: _owner_of_handle(scope.owner, part), how)
            _refuse_replacing(found, how)
            return self.foreign.import_(scope, file, found, dry_run=how.dry_run)

    def import_all(
        self, space: str, source: Source, *, replace: bool, dry_run: bool, progress: Progress | None
    ) -> ImportReport:
        """See `Engine.import_`."""
        how = Importation(replace=replace, dry_run=dry_run, progress=progress)
        with _opened(source) as file:
            return self._import_rows(file, lambda part: _owner_in_file(space, part), how)

    def _import_rows(self, file: IO[bytes], owner_of: Callable[[ExportPart], Owner], how: Importation) -> ImportReport:
        return self.importer.import_rows(file, owner_of, replace=how.replace, dry_run=how.dry_run, progress=how.progress)


def _refuse_replacing(form: str, how: Importation) -> None:
    if how.replace:
        raise InvalidInput(f"`replace` is for lossless exports; what comes from `{form}` is added to what is known")


def _owner_of_handle(owner: Owner, part: ExportPart) -> Owner:
    """The user of the handle, no matter who the file names; one user is all it can be."""
    if part.of > 1 or part.user == shared_owner(part.space).user:
        raise InvalidInput(f"the export holds {part.of} users; import it for the whole space, or export one of them")
    return owner


def _owner_in_file(space: str, part: ExportPart) -> Owner:
    """The user that the file names, in the space in force."""
    return shared_owner(space) if part.user == shared_owner(part.space).user else Scope.of(part.user, space=space).owner


@contextmanager
def _opened(source: Source) -> Iterator[IO[bytes]]:
    if not isinstance(source, str | os.PathLike):
        if not hasattr(source, "seek") or not hasattr(source, "read"):
            raise InvalidInput(
                f"`source` is a `{type(source).__name__}`; give the name of a file, or an open one in binary mode"
            )
        with _readable("`source`"):
            if not isinstance(source.read(0), bytes):
                raise InvalidInput("`source` is open in text mode; open it in binary mode")
            yield source
        return
    try:
        file = check_path(source, "source").open("rb")  # closed below; what goes wrong then is not about opening it
    except FileNotFoundError:
        raise NotFound(f"{source} does not exist; check the name") from None
    except OSError as error:
        raise Unavailable(f"{source} cannot be read ({error.strerror}); check its permissions") from error
    try:
        with _readable(str(source)):
            yield file
    finally:
        with suppress(OSError):  # it was only read: nothing is lost, and the import has happened or not
            file.close()


@contextmanager
def _readable(name: str) -> Iterator[None]:
    """A disk, or a stream of the caller's, that fails half-way is told by name; nothing was imported."""
    try:
        yield
    except OSError as error:
        raise Unavailable(f"{name} cannot be read ({error.strerror or error}); see to it, then try again") from error
