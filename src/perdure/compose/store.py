"""Which store a URL means, opened, and where its machine token is kept. Adapters are imported when one is needed."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import cast
from urllib.parse import parse_qsl, unquote, urlsplit

from perdure.compose.models import plugin, plugin_names
from perdure.domain.errors import InvalidInput
from perdure.domain.text.rules import utf8_size
from perdure.domain.values import dataclass
from perdure.ports.store import Store
from perdure.settings import Settings, default_store_path


@dataclass(frozen=True, slots=True)
class StoreUrl:
    """A store URL taken apart."""

    kind: str
    path: str = ""


def target(url: str) -> StoreUrl:
    """Which store a URL means; `InvalidInput` if none."""
    if not url:
        return StoreUrl("sqlite", str(default_store_path()))
    if url == "memory:":
        return StoreUrl("memory")
    try:
        utf8_size(url, "the store URL")
        parts = urlsplit(url)
    except ValueError:
        raise InvalidInput("the store URL cannot be read; use sqlite:///FILE, postgresql://… or memory:") from None
    if parts.scheme in ("postgresql", "postgres"):
        return StoreUrl("postgres")
    if parts.scheme == "sqlite" and not parts.netloc and len(parts.path) > 1 and parts.path.startswith("/"):
        if parts.path.endswith("/:memory:"):
            raise InvalidInput("a store in memory is opened with the URL memory:")
        if parse_qsl(parts.query, keep_blank_values=True) or parts.fragment:
            raise InvalidInput("a `sqlite:` URL takes no `?` or `#`; write them as %3F and %23 if they are part of the name")
        # As elsewhere: three slashes for a relative path, four for an absolute one.
        path = unquote(parts.path[1:])
        utf8_size(path, "the path in the store URL")
        return StoreUrl("sqlite", path)
    names = plugin_names("stores")
    if parts.scheme in names:
        return StoreUrl("plugin", parts.scheme)
    # The URL is not quoted: it may carry a password.
    more = "".join(f", {name}:…" for name in names)
    raise InvalidInput(
        f"the store URL with scheme {parts.scheme!r:.20} cannot be opened; "
        f"use the path of a file (agent.db), sqlite:///FILE, postgresql://…{more} or memory:"
    )


def open_store(settings: Settings) -> Store:
    """The store that the settings name, opened."""
    asked = target(settings.url)
    if settings.encryption_key and asked.kind != "sqlite":
        raise InvalidInput("`encryption_key` encrypts SQLite files only; leave it out, or encrypt the server's disk")
    if asked.kind == "memory":
        from perdure.adapters.memory.store import MemoryStore

        return MemoryStore()
    if asked.kind == "plugin":
        return _plugged_store(asked.path, settings.url)
    if asked.kind == "sqlite":
        from perdure.adapters.sqlite.store import SqliteStore

        return SqliteStore(
            asked.path, synchronous=settings.durability.upper(), busy_s=settings.deadline_s, key=settings.encryption_key
        )
    try:
        from perdure.adapters.postgres.store import PostgresStore
    except ImportError as error:
        raise InvalidInput(f"PostgreSQL needs `{error.name}`; install it with: pip install 'perdure[postgres]'") from error
    return PostgresStore(
        settings.url,
        schema=settings.postgres_schema,
        pool_max=settings.postgres_pool_max,
        deadline_s=settings.deadline_s,
    )


def _plugged_store(name: str, url: str) -> Store:
    store = plugin("stores", name, url.partition(":")[2])
    if not all(callable(getattr(store, method, None)) for method in ("read", "write", "snapshot", "close")):
        raise InvalidInput(
            f"plugin {name!r:.60} of `perdure.stores` made a `{type(store).__name__}`, which is no store; fix it"
        )
    return cast("Store", store)


def scratch_store(folder: Path, key: str = "") -> Store:
    """A store that is thrown away with its folder: what is imported is looked at there first. Encrypted as the real one is."""
    from perdure.adapters.sqlite.store import SqliteStore

    return SqliteStore(folder / "scratch.db", synchronous="NORMAL", key=key)


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
