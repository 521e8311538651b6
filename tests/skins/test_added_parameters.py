"""A parameter that is added to a handle's method is on the command line and on MCP; for HTTP see `tests/http`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Annotated, Any

import pytest
import typer
import typer.main
from typer.testing import CliRunner

import perdure
from perdure.handles import operation as declared
from perdure.interfaces.cli.derived import Group
from perdure.interfaces.cli.output import Output
from perdure.interfaces.mcp.tools import tool

Where = Annotated[str, declared.Arg("Where.", min_length=2)]
Hours = Annotated[int | None, declared.Arg("How many hours.", ge=1, le=24)]


class Weather(declared.Handle, namespace="weather"):
    """A handle that there is not."""

    @declared.operation("read")
    def forecast(self, place: Where, *, days: int = 1) -> dict[str, int]:
        """How it will be."""
        return {"days": days, "letters": len(place)}


class WeatherByHour(Weather, namespace="weather"):
    """The same with one parameter more, which is one edit."""

    @declared.operation("read")
    def forecast(self, place: Where, *, days: int = 1, hours: Hours = None) -> dict[str, int]:
        """How it will be."""
        return {"days": days, "letters": len(place), "hours": hours or 0}


@pytest.fixture
def scope() -> Iterator[Any]:
    with perdure.open("memory:") as engine:
        yield engine.memory("ana").scope


def test_it_is_an_option_of_the_command(scope: Any) -> None:
    def command_of(kind: type[Weather], app: Group, name: str) -> None:
        @contextmanager
        def place(_: typer.Context) -> Iterator[Weather]:
            yield kind(scope)

        @app.derived((kind, "forecast"), example="Porto", name=name, at=place)
        def show(out: Output, found: dict[str, int]) -> None:
            out.value(found)

    app = Group("weather", "Weather.")
    command_of(Weather, app, "before")
    command_of(WeatherByHour, app, "after")

    def run(*words: str) -> Any:
        return CliRunner().invoke(app, words, obj=SimpleNamespace(out=Output(as_json=True)))

    commands: Any = typer.main.get_command(app)
    before, after = ({one.name: one for one in commands.commands[name].params} for name in ("before", "after"))
    assert after.keys() - before.keys() == {"hours"}
    assert (after["hours"].opts, after["hours"].help, after["hours"].required) == (["--hours"], "How many hours.", False)
    assert "How it will be." in run("after", "--help").output
    assert json.loads(run("after", "Porto", "--hours", "3").output) == {"days": 1, "letters": 5, "hours": 3}
    assert json.loads(run("after", "Porto").output) == {"days": 1, "letters": 5, "hours": 0}
    assert run("before", "Porto", "--hours", "3").exit_code == 2
    assert run("after", "Porto", "--hours", "many").exit_code == 2


def test_it_is_in_the_schema_of_the_tool_that_takes_it(scope: Any) -> None:
    answer = ({"type": "object"}, str)
    said = ("getForecast", "Forecast", "How it will be.")
    offer = tool((WeatherByHour, "forecast"), *said, takes=("place", "hours"), answer=answer)
    assert offer.parameters["hours"] == {"type": "integer", "description": "How many hours."}
    assert offer.required == ("place",)
    caller: Any = SimpleNamespace(memory=lambda _: SimpleNamespace(weather=WeatherByHour(scope)))
    assert offer.call(caller, place="Porto", hours=3) == {"days": 1, "letters": 5, "hours": 3}
    with pytest.raises(TypeError, match="takes place, hours, which"):
        tool((Weather, "forecast"), *said, takes=("place", "hours"), answer=answer)
