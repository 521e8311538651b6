"""Settings from the command line: each with its value and where that came from."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from perdure import settings as settings_module
from perdure.domain.errors import NotFound
from perdure.interfaces.cli.completion import setting_names
from perdure.interfaces.cli.derived import Group
from perdure.interfaces.cli.output import safe

app = Group("admin config", "Settings, and where their values come from.")


@app.command("list")
def list_(ctx: typer.Context) -> None:
    """List every setting with its value and where that came from.

    Example: perdure admin config list
    """
    shown = _listed(ctx)
    ctx.obj.out.table(shown, {"setting": "name", "value": "value", "from": "source"}, empty="no settings")


@app.command()
def get(ctx: typer.Context, name: Annotated[str, typer.Argument(help="Which setting.", autocompletion=setting_names)]) -> None:
    """Print the value of one setting.

    Example: perdure admin config get zone
    """
    for one in _listed(ctx):
        if one.name == name:
            ctx.obj.out.value(one, [safe(one.value)])
            return
    raise NotFound(f"setting {name!r:.60} does not exist; `perdure admin config list` names them all")


@app.command()
def path(ctx: typer.Context) -> None:
    """Print the path of the settings file. It need not exist.

    Example: perdure admin config path
    """
    found = settings_module.config_path()
    ctx.obj.out.value({"path": str(found), "exists": found.is_file()}, [safe(found)])


def _listed(ctx: typer.Context) -> list[settings_module.Setting]:
    found = settings_module.listing(url=ctx.obj.url, space=ctx.obj.space, user=ctx.obj.user)
    return [_without_password(one) for one in found]


def _without_password(setting: settings_module.Setting) -> settings_module.Setting:
    if setting.name not in ("url", "model", "embedder"):
        return settings_module.Setting(setting.name, setting.display, setting.source)
    shown = re.sub(r"(://[^/@:]*:).*@", r"\1***@", str(setting.value))
    shown = re.sub(r"(password=)[^&\s]*", r"\1***", shown)
    return settings_module.Setting(setting.name, shown, setting.source)
