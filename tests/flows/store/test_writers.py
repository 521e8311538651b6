"""Writers of one file that wait for their turn: one that leaves stops nobody else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from perdure.adapters.sqlite.group_commit import Ticket, WriterGroup

INTERRUPTED = """
import os, signal, sys, threading, time, perdure
signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background may have been told to ignore it
engine = perdure.open(sys.argv[1])
ana = engine.memory("ana")
busy, finish = threading.Event(), threading.Event()

def slow(tx):
    busy.set()
    finish.wait(20)

thread = threading.Thread(target=lambda: engine._store.write(ana.scope.owner, slow))
thread.start()
busy.wait(20)
threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT)).start()  # a real one: it wakes a thread that waits
try:
    ana.append("user", "interrupted while waiting")
except KeyboardInterrupt:
    print("interrupted")
finish.set()
thread.join()
print(ana.append("user", "afterwards").seq)
"""


@pytest.mark.slow
def test_an_interrupted_writer_stops_nobody_else(tmp_path: Path) -> None:
    """Ctrl-C in a thread that waits for its turn must not leave the others without a leader."""
    url = f"sqlite:///{tmp_path}/a.db"
    done = subprocess.run([sys.executable, "-c", INTERRUPTED, url], capture_output=True, text=True, timeout=60)
    assert (done.stdout.split(), done.stderr) == (["interrupted", "1"], "")


def test_a_ticket_that_leaves_hands_the_lead_on() -> None:
    led: list[Any] = []
    group = WriterGroup(lambda batch: led.extend(ticket.work for ticket in batch))
    heir, next_one = Ticket("heir"), Ticket("next")
    heir.heir = True
    group._led = True
    group._queue.extend([heir, next_one])
    assert group._leave(heir)
    assert next_one.heir
    assert next_one.wait(1)
    assert group._leave(next_one)
    group.submit(Ticket("alone"), 1)
    assert led == ["alone"]
