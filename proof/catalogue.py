"""All promises, found by their modules' names: `promises/p01_….py` holds `PROMISE` of id P1."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping

from proof import promises
from proof.harness import Promise


class Catalogue(Mapping[str, Promise]):
    """By id, in order. Each is imported when it is asked for: some need seconds for what they break."""

    def __init__(self) -> None:
        found = sorted(one.name for one in pkgutil.iter_modules(promises.__path__) if one.name.startswith("p"))
        self._modules = {f"P{int(module[1:3])}": module for module in found}

    def __getitem__(self, name: str) -> Promise:
        promise: Promise = importlib.import_module(f"proof.promises.{self._modules[name]}").PROMISE
        return promise

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __len__(self) -> int:
        return len(self._modules)


def all_promises() -> Catalogue:
    return Catalogue()
