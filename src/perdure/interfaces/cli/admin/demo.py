"""`perdure demo`: one simulated day, step by step, on a throw-away store."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

import perdure
from perdure.interfaces.cli.output import Output, safe
from perdure.interfaces.demo.day import StepOutcome, walk
from perdure.interfaces.demo.day_world import World


def run_demo(out: Output) -> None:
    """Walk through the day. Neither the environment nor the user's settings are asked: it needs no model and no network."""
    shown: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory(prefix="perdure-demo-") as name:
        folder = Path(name)
        world = World(folder, perdure.Settings(url=f"sqlite:///{folder}/day.db"))
        try:
            for taken in walk(world):
                shown.append({"step": taken.step.title, "at": taken.at, "about": taken.step.about, **taken.facts})
                if not out.as_json:
                    out.value(None, _lines(taken))
        finally:
            world.close()
    if out.as_json:
        out.value(shown)
    else:
        out.note("The store was thrown away. Make one that stays: perdure append --user ana user 'I moved to Seattle'")


def _lines(taken: StepOutcome) -> list[str]:
    head = f"[cyan]{taken.step.at}[/cyan] [bold]{safe(taken.step.title)}[/bold] [dim]({taken.step.about})[/dim]"
    facts = (f"[dim]{safe(name.replace('_', ' '))}:[/dim] {safe(_words(value))}" for name, value in taken.facts.items())
    return [head, f"      {'  '.join(facts)}"]


def _words(value: object) -> str:
    """A fact as people write it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {_words(held)}" for name, held in value.items()) or "-"
    if isinstance(value, list | tuple):
        return ", ".join(_words(held) for held in value) or "-"
    return str(value)
