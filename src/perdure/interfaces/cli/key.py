"""`perdure key`: the API keys that let callers in over the network."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

import perdure
from perdure import settings as settings_module
from perdure.app import asked_by
from perdure.domain.accesses import COMMAND_LINE
from perdure.domain.api_keys import ApiKey
from perdure.handles.api_keys import ApiKeyHandle
from perdure.interfaces.cli.output import safe

app = typer.Typer(
    no_args_is_help=True, help="Make, list and revoke the API keys that `perdure serve` asks for.", rich_markup_mode=None
)


@app.command("create")
def create(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="To tell it from others.")],
    permission: Annotated[str, typer.Option(help="read, write or admin; each comes with those before it")] = "write",
    for_: Annotated[
        list[str] | None, typer.Option("--for", help="Whom it is for; may be repeated. Default: everybody.")
    ] = None,
    days: Annotated[float | None, typer.Option(help="It ends by itself after so many days.")] = None,
) -> None:
    """Make an API key. Its secret is printed once and kept nowhere.

    From then on `perdure serve` asks everybody for a key, on this machine, too.

    Example: perdure key create laptop --for ana --permission write --days 90
    """
    users = list(for_ or ()) + ([] if ctx.obj.user is None else [ctx.obj.user])
    with _keys(ctx) as keys:
        made = keys.create(name, users=users or None, permission=permission, days=days)
    ctx.obj.out.value(made, [safe(made.secret)])
    if not ctx.obj.out.as_json:
        ctx.obj.out.note(
            f"key {made.key.id} for {safe(_for(made.key))} may {made.key.permissions[-1]}; keep it: it is not shown again"
        )


@app.command("list")
def list_keys(ctx: typer.Context) -> None:
    """List API keys, the newest first. Secrets are not kept and cannot be shown.

    Example: perdure key list --json
    """
    with _keys(ctx) as keys:
        found = keys.list()
    ctx.obj.out.table(
        found,
        {
            "id": [one.id for one in found],
            "name": [one.name for one in found],
            "for": [_for(one) for one in found],
            "may": [one.permissions[-1] for one in found],
            "made": [one.made_at.isoformat(timespec="seconds") for one in found],
            "ends": ["" if one.expires_at is None else one.expires_at.isoformat(timespec="seconds") for one in found],
            "revoked": ["" if one.revoked_at is None else one.revoked_at.isoformat(timespec="seconds") for one in found],
        },
        empty="there are no API keys; `perdure key create NAME` makes one",
    )


@app.command("revoke")
def revoke(
    ctx: typer.Context, id: Annotated[str, typer.Argument(help="The id of a key; `perdure key list` shows them.")]
) -> None:
    """Take an API key out of use, for good. A running server refuses it within 5 seconds.

    Example: perdure key revoke 0123456789ab
    """
    with _keys(ctx) as keys:
        revoked = keys.revoke(id)
    ctx.obj.out.value(revoked, [f"{revoked.id} {safe(revoked.name)} lets nobody in any more"])


@contextmanager
def _keys(ctx: typer.Context) -> Iterator[ApiKeyHandle]:
    """Keys belong to a space, as users do."""
    with perdure.open(settings=settings_module.load(url=ctx.obj.url, space=ctx.obj.space)) as engine:
        yield asked_by(engine, COMMAND_LINE).api_keys


def _for(key: ApiKey) -> str:
    return "everybody" if key.users is None else ", ".join(key.users)
