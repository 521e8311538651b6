"""Reading what was appended: its words go into the index, and the standing orders in it are kept.

Appending does none of this. It is done by the job that counts new messages, or by the first call that reads, whichever comes
first; done twice, it changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from perdure.domain.conversation.messages import Message
from perdure.domain.jobs import Job
from perdure.domain.scope import Owner
from perdure.domain.values import dataclass
from perdure.engine.conversation.jobs import TALLY
from perdure.ports.clock import Clock
from perdure.ports.store import Store, Tx, View
from perdure.services.conversation.sessions import lock_sessions
from perdure.services.index.unread import SessionPlace, UnreadMessages, sessions_of, unread_messages, unread_of
from perdure.services.index.writes import entry_of
from perdure.services.knowledge.instructions import orders_in, take_in

PAGE = 100
"""Messages that are read at once; a call that reads looks at the time after so many."""
PAGES_MAX = 100_000
WAITING_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Intake:
    store: Store
    clock: Clock
    zone: str

    def read_up_to(self, owner: Owner, place: SessionPlace, seq: int) -> None:
        """Read the session up to this message, and with it whatever else of its user is unread: orders take effect in the
        order in which they were given, wherever that was.
        """

        def next_page(view: View) -> UnreadMessages:
            first = unread_of(view, *place, limit=1)
            if not first or first[0].seq > seq:
                return UnreadMessages((), more=False)
            waiting = sessions_of(view.ask_waiting((TALLY,), limit=WAITING_MAX)())
            return unread_messages(view, [*(one for one in waiting if one != place), place], limit=PAGE)

        for _ in range(PAGES_MAX):
            unread = self.store.read(owner, next_page)
            if not unread.messages:
                return
            self._take_in(owner, unread.messages)

    def read_some(self, owner: Owner, jobs: Sequence[Job], seconds: float) -> None:
        """Read what is unread in the sessions of these jobs, one page in any case, until the time is up."""
        places = sessions_of(jobs)
        until = self.clock.monotonic() + seconds
        while True:
            unread = self.store.read(owner, lambda view: unread_messages(view, places, limit=PAGE))
            if unread.messages:
                self._take_in(owner, unread.messages)
            if not unread.more or self.clock.monotonic() >= until:
                return

    def _take_in(self, owner: Owner, page: Sequence[Message]) -> None:
        entries = {message.id: entry_of(message, self.zone) for message in page}
        orders = orders_in(page)
        places = {(one.address.agent, one.address.channel, one.session_number) for one in page}
        now = self.clock.now()

        def work(tx: Tx) -> None:
            # What was forgotten or deleted since we read it must not come back: the sessions keep rivals off.
            lock_sessions(tx, places)
            held = tx.find_messages(list(entries))
            if any(held.get(message.id) != message for message in page):
                return  # it is read again as it is now
            take_in(tx, page, orders, now=now)
            tx.index.put(list(entries.values()), now=now)

        self.store.write(owner, work)
