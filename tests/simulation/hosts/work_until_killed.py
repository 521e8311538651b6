"""Runs tally jobs until the process is killed: path of the store, lease in seconds, `hang` to stop with a job in hand."""

import sys
import threading

from perdure.adapters.clock import SystemClock
from perdure.adapters.sqlite.store import SqliteStore
from perdure.domain.jobs import Job
from perdure.engine.conversation.jobs import TALLY
from perdure.services.conversation.intake import Intake
from perdure.services.conversation.upkeep import tally_handler
from perdure.services.jobs.worker import Effect, Worker

path, lease_s, manner = sys.argv[1:]
store, clock = SqliteStore(path), SystemClock()
tally = tally_handler(store, clock, Intake(store, clock, "UTC").read_up_to)


def hang(job: Job) -> Effect | None:
    print("in hand", flush=True)
    sys.stdin.read()
    raise AssertionError("nobody ends this")


worker = Worker(store, clock, {TALLY: hang if manner == "hang" else tally}, "doomed", lease_s=float(lease_s))
if manner != "hang":
    print("ready", flush=True)
worker.run(threading.Event(), poll_s=0.01)
