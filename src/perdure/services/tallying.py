"""The first derived data: counts per session, brought up to date by a job after messages arrive."""

from __future__ import annotations

from collections.abc import Callable

from perdure.domain.jobs import Job
from perdure.domain.journal import Attribution
from perdure.domain.messages import Cursor, Message, MessageQuery
from perdure.domain.scope import Address
from perdure.domain.tally import Tally, extended
from perdure.engine.upkeep import TALLY, session_job
from perdure.ports.clock import Clock
from perdure.ports.store import Store, Tx, View
from perdure.services.work import Effect, Handler

ACTOR = "tally/1"
MESSAGES_PER_RUN = 1_000


def tally_handler(store: Store, clock: Clock, after: Callable[[Address, int], Effect] | None = None) -> Handler:
    """`after` gives what else the newest messages of a session cause; it is committed together with the count."""

    def handle(job: Job) -> Effect | None:
        address = Address(job.payload["agent"], job.payload["channel"])
        number: int = job.payload["session_number"]

        def read(view: View) -> tuple[Tally, list[Message]]:
            held = view.find_tally(address, number) or Tally(address, number)
            query = MessageQuery(address, MESSAGES_PER_RUN, number, after=Cursor(number, held.up_to_seq))
            return held, view.list_messages(query)

        held, messages = store.read(job.owner, read)
        if not messages:
            return None if after is None else after(address, number)
        now = clock.now()
        counted = extended(held, messages)
        by = Attribution(ACTOR, now, f"messages {messages[0].seq} to {messages[-1].seq} arrived")

        def effect(tx: Tx) -> None:
            session = tx.find_session(address, number)
            if session is None or session.deleted_at is not None:
                return  # deleted while this was counted
            tx.put_tally(counted, by=by)
            if after is not None:
                after(address, number)(tx)
            if len(messages) == MESSAGES_PER_RUN:
                # More may be waiting: the job marks itself to run again.
                tx.enqueue(session_job(TALLY, address, number, now), now=now, queue_max=2**31)

        return effect

    return handle
