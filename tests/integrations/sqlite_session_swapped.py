"""A plugin for pytest: the SDK's own tests of `SQLiteSession` run on `PerdureSession`, on a store where they want a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import agents
import agents.memory

import perdure
from perdure.integrations.openai_agents import PerdureSession

OPEN: dict[str, perdure.Engine] = {}


class SwappedSession(PerdureSession):
    """With the arguments of the one that it stands for."""

    def __init__(self, session_id: str, db_path: str | Path = ":memory:", *_tables: str, session_settings: Any = None) -> None:
        where = f"{db_path}"
        url = "memory:" if where == ":memory:" else f"sqlite:///{where}.perdure"
        if where == ":memory:" or where not in OPEN:
            OPEN[where] = perdure.open(url, background=False)
        super().__init__(session_id, OPEN[where].memory("somebody"), session_settings=session_settings)

    def close(self) -> None:
        """The engine stays open for the other sessions of the file."""


agents.SQLiteSession = agents.memory.SQLiteSession = SwappedSession  # type: ignore[misc, assignment]
