"""Imported by the server that processes are forked from: everything that a store needs, so that opening one imports nothing."""

import tempfile
from pathlib import Path

import perdure
import perdure.adapters.postgres.store
import perdure.interfaces.server
import proof.servers  # noqa: F401 - imported to be there

with tempfile.TemporaryDirectory(prefix="warm-") as _folder:
    with perdure.open(f"sqlite:///{Path(_folder) / 'warm.db'}") as _engine:
        _memory = _engine.memory("ana")
        _memory.append("user", "I own a boat.", id="m1")
        _memory.remember("Owns a boat")
        _memory.todos.add("send a parcel")
        _memory.series("s").merge([{"id": "e1", "timestamp": 1_700_000_000}], window=(1_700_000_000, 1_700_000_001))
