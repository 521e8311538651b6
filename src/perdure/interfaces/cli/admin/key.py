"""`perdure admin key`: the API keys of callers over the network."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer

import perdure
from perdure import settings as settings_module
from perdure.app import asked_by
from perdure.domain.access import COMMAND_LINE, ApiKey
from perdure.handles.admin import ApiKeyHandle
from perdure.interfaces.cli.derived import Form, Group, line, table
from perdure.interfaces.cli.output import Columns, safe

app = Group("admin key", "API keys that `perdure serve` asks for.", last="")


@contextmanager
def _keys(ctx: typer.Context) -> Iterator[ApiKeyHandle]:
    """Keys belong to a space, as users do."""
    with perdure.open(settings=settings_module.load(url=ctx.obj.url, space=ctx.obj.space)) as engine:
        yield asked_by(engine, COMMAND_LINE).api_keys


def _for(key: ApiKey) -> str:
    return "everybody" if key.users is None else ", ".join(key.users)


KEYS: Columns = {
    "id": "id",
    "name": "name",
    "users": _for,
    "permission": lambda one: one.permissions[-1],
    "holder": lambda one: "agent" if one.agent else "person",
    "created": "made_at",
    "expires": "expires_at",
    "revoked": "revoked_at",
}
app.offer((ApiKeyHandle, "list"), table(KEYS, "there are no API keys; `perdure admin key create NAME` makes one"), at=_keys)
app.offer(
    (ApiKeyHandle, "revoke"),
    line(lambda revoked, _: f"{revoked.id} {safe(revoked.name)} is revoked"),
    form=Form(names={"key_id": "id"}),
    at=_keys,
)


@app.command("create")
def create(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(help="A name to recognise it by.")],
    permission: Annotated[str, typer.Option(help="read, write or admin; each comes with those before it")] = "write",
    for_: Annotated[
        list[str] | None, typer.Option("--for", help="A user whose data it opens; may be repeated. Default: everybody.")
    ] = None,
    days: Annotated[float | None, typer.Option(help="Expires after so many days.")] = None,
    agent: Annotated[bool, typer.Option("--agent", help="A model holds it: what it stores is the agent's word.")] = False,
) -> None:
    """Make an API key, and print its secret. Its secret is printed once and kept nowhere.

    Example: perdure admin key create laptop --for ana --permission write --days 90
    """
    users = list(for_ or ()) + ([] if ctx.obj.user is None else [ctx.obj.user])
    with _keys(ctx) as keys:
        made = keys.create(name, users=users or None, permission=permission, days=days, agent=agent)  # type: ignore[arg-type]  # checked by the service
    ctx.obj.out.value(made, [safe(made.secret)])
    if not ctx.obj.out.as_json:
        ctx.obj.out.note(
            f"key {made.key.id} for {safe(_for(made.key))} may {made.key.permissions[-1]}"
            f"{', as an agent' if made.key.agent else ''}; keep it: it is not shown again"
        )
