"""For your own tests: a clock that stands still, a store that fails on demand, a model server that misbehaves as told, the
contract every store keeps, a strict checker of chat messages, and probes.

`StoreContract` needs pytest; the rest does not.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from perdure.testing.chat_lists import chat_problems
from perdure.testing.clock import StoppedClock
from perdure.testing.failing_store import FailingStore

if TYPE_CHECKING:
    from perdure.testing.contract import StoreContract
    from perdure.testing.model_server import FAULTS, ScriptedModelServer
    from perdure.testing.probes import PROBES, REPORT, TUNE, Plant, Probe, ProbeReport, ProbeScore, run_probes, score_probe

__all__ = [
    "FAULTS",
    "PROBES",
    "REPORT",
    "TUNE",
    "FailingStore",
    "Plant",
    "Probe",
    "ProbeReport",
    "ProbeScore",
    "ScriptedModelServer",
    "StoppedClock",
    "StoreContract",
    "chat_problems",
    "run_probes",
    "score_probe",
]

# Loaded when asked for: one imports pytest, one an HTTP server, and one reads two dozen conversations.
_LATER = {
    **dict.fromkeys(__all__, "perdure.testing.probes"),
    "StoreContract": "perdure.testing.contract",
    **dict.fromkeys(("FAULTS", "ScriptedModelServer"), "perdure.testing.model_server"),
}


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module 'perdure.testing' has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)
