"""How a script in the environment of a framework checks an adapter: each check by itself, and how many passed at the end."""

from __future__ import annotations

import asyncio
import sys
import tempfile
from collections.abc import Awaitable, Callable

import perdure


def run(*checks: Callable[[perdure.Engine], Awaitable[None]]) -> None:
    """Each check on a store of its own, of the kind that the command names; the first that fails ends it."""
    for check in checks:
        with tempfile.TemporaryDirectory() as folder:
            url = "memory:" if sys.argv[1:] == ["memory"] else f"sqlite:///{folder}/store.db"
            with perdure.open(url) as engine:
                asyncio.run(check(engine))
                assert engine.verify().clean, check.__name__
        print(check.__name__)
    print(len(checks), "passed")
