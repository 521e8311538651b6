"""What a shell may complete: users, state keys and series of a store that is on this machine.

A completion never fails, never waits for a server and never makes a store: then there is nothing to complete.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import typer

import perdure
from perdure import settings as settings_module
from perdure.app import asked_by
from perdure.domain.access import COMMAND_LINE
from perdure.domain.errors import PerdureError

SHELLS = ("bash", "zsh", "fish", "powershell", "pwsh")
SHOWN_MAX = 200


def user_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Users of the store."""
    return _completions(ctx, incomplete, lambda engine, _: engine.users())


def state_keys(ctx: typer.Context, incomplete: str) -> list[str]:
    """State keys of the user that the line names."""
    return _completions(ctx, incomplete, lambda engine, user: [] if user is None else engine.memory(user).state.keys())


def series_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Series of the user that the line names."""
    return _completions(
        ctx,
        incomplete,
        lambda engine, user: [] if user is None else [one.name for one in engine.memory(user).series.list(SHOWN_MAX)],
    )


def setting_names(incomplete: str) -> list[str]:
    """Settings there are."""
    return [name for name in settings_module.defaults() if name.startswith(incomplete)]


def _completions(ctx: typer.Context, incomplete: str, look: Callable[[perdure.Engine, str | None], Any]) -> list[str]:
    names: list[str] = []
    with suppress(PerdureError, OSError), _opened(ctx) as (engine, user):
        if engine is not None:
            names = [str(one) for one in look(engine, user)]
    # A name with what a shell reads as its own would not come back as it is.
    return [name for name in names if name.startswith(incomplete) and name.isprintable()][:SHOWN_MAX]


@contextmanager
def _opened(ctx: typer.Context) -> Iterator[tuple[perdure.Engine | None, str | None]]:
    given = ctx.find_root().params
    settings = settings_module.load(url=given.get("url"), space=given.get("space"), user=given.get("user"))
    path = settings_module.default_store_path() if not settings.url else _file(settings.url)
    if path is None or not path.is_file():
        yield None, None
        return
    with perdure.open(settings=settings) as engine:
        yield asked_by(engine, COMMAND_LINE), settings.user or None


def _file(url: str) -> Path | None:
    """The file of a store in a file; None for a server, which a completion does not wait for."""
    return Path(unquote(url.removeprefix("sqlite:///"))) if url.startswith("sqlite:///") else None
