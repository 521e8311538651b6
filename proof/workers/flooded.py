"""A process that is written to far faster than its jobs are done: what it acknowledged, what it refused, what memory it took."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import perdure
from perdure.types import Extraction, ExtractionRequest

SLOW_S = 0.05


class Slow:
    """An extractor that takes its time, as a model does."""

    name = "slow/1"

    def __init__(self) -> None:
        self.asked = 0

    def extract(self, request: ExtractionRequest) -> Extraction:
        self.asked += 1
        time.sleep(SLOW_S)
        return Extraction()


def resident_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    return 0


def flood(there: Any, url: str, writes: int, queue_max: int) -> None:
    """Write without a pause; tell what became of it, then drain, and tell what is there."""
    limits = perdure.Limits(queue_jobs_max=queue_max)
    settings = perdure.Settings(url=url, limits=limits, durability="normal")
    acknowledged: list[str] = []
    refused: list[tuple[str, bool, str]] = []
    most_waiting = 0
    with perdure.open(settings=settings, background=True, extractor=Slow()) as engine:
        text = "0123456789" * 400
        for number in range(50):
            engine.memory("warm", agent=f"w{number % 4}").append("user", text)
        began = resident_bytes()
        for number in range(writes):
            id = f"m-{number}"
            try:
                engine.memory("ana", agent=f"agent-{number}").append("user", f"{number} {text}", id=id)
                acknowledged.append(id)
            except perdure.PerdureError as error:
                if len(refused) < 5 or not error.retriable:
                    refused.append((type(error).__name__, error.retriable, str(error)))
                else:
                    refused.append(("", True, ""))
                if len(refused) % 20 == 0:
                    time.sleep(0.01)  # as a caller does who was told to wait, if not for long enough
            if number % 50 == 0:
                ana = engine.memory("ana")
                most_waiting = max(
                    most_waiting, len(ana.admin.jobs("ready", limit=10_000)) + len(ana.admin.jobs("running", limit=10_000))
                )
        grown = resident_bytes() - began
    there.send({"acknowledged": acknowledged, "refused": refused, "grown": grown, "most_waiting": most_waiting})
    there.close()
