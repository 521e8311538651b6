"""Where the machine token of a store is kept: beside its file, or among the user's data if the store is on a server."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from perdure.compose.store import target
from perdure.settings import Settings, default_store_path


@dataclass(frozen=True, slots=True)
class MachineToken:
    """What lets the account that owns a store in, by the faces of this machine."""

    secret: str
    file: Path | None
    """None: it ends with the process, as its store does."""


def machine_token(settings: Settings, *, renew: bool = False) -> MachineToken:
    """The token of the store that the settings name. It is made once and stays the same; `renew` makes another one."""
    from perdure.adapters.files.token import kept_token, new_token

    path = _token_path(settings)
    if path is None:
        return MachineToken(new_token(), None)
    return MachineToken(kept_token(path, renew=renew), path)


def _token_path(settings: Settings) -> Path | None:
    asked = target(settings.url)
    if asked.kind == "memory":
        return None
    if asked.kind == "sqlite":
        store = Path(asked.path).resolve()
        return store.with_name(f"{store.name}.token")
    parts = urlsplit(settings.url)
    # Without the password: a name of a file is no place for anything that is made of it.
    named = f"{parts.username} {parts.hostname} {parts.port} {parts.path} {settings.postgres_schema}"
    return default_store_path().with_name(f"postgresql-{hashlib.sha256(named.encode()).hexdigest()[:16]}.token")
