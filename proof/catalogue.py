"""All promises, found by their modules' names: `promises/p01_….py` holds `PROMISE`."""

from __future__ import annotations

import importlib
import pkgutil

from proof import promises
from proof.harness import Promise


def all_promises() -> dict[str, Promise]:
    """By id, in order."""
    found = {}
    for module in sorted(one.name for one in pkgutil.iter_modules(promises.__path__) if one.name.startswith("p")):
        promise = importlib.import_module(f"proof.promises.{module}").PROMISE
        found[promise.id] = promise
    return found
