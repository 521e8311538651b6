"""Reading back: messages, sessions, counts, jobs and the journal of one scope."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from perdure.domain.errors import InvalidInput, NotFound
from perdure.domain.jobs import JOB_STATES, Job, JobState
from perdure.domain.journal import Operation, is_for
from perdure.domain.limits import Limits
from perdure.domain.messages import Cursor, Message, MessageQuery, Session
from perdure.domain.scope import ID_BYTES_MAX, MessageId, Scope, SessionId
from perdure.domain.tally import Tally
from perdure.domain.text import brief, check_choice, check_id
from perdure.ports.store import Store, Tx, View


@dataclass(frozen=True, slots=True)
class History:
    store: Store
    limits: Limits

    def messages(
        self, scope: Scope, *, limit: int, session: str | None = None, before: str | None = None, after: str | None = None
    ) -> list[Message]:
        """Oldest first: the latest `limit`, or those next to the message named by `before` or `after`."""
        rows = self.limits.page(limit)
        if before is not None and after is not None:
            raise InvalidInput("`before` and `after` are both given; page in one direction at a time")

        def work(view: View) -> list[Message]:
            number = None if session is None else self._session(view, scope, session).number
            query = MessageQuery(
                address=scope.address,
                limit=rows,
                session_number=number,
                before=None if before is None else self._place(view, scope, before),
                after=None if after is None else self._place(view, scope, after),
            )
            return view.list_messages(query)

        return self.store.read(scope.owner, work)

    def message(self, scope: Scope, message_id: str) -> Message:
        check_id(message_id, "id", bytes_max=ID_BYTES_MAX)
        return self.store.read(scope.owner, lambda view: self._held(view, scope, message_id))

    def sessions(self, scope: Scope, *, limit: int) -> list[Session]:
        rows = self.limits.page(limit)
        return self.store.read(scope.owner, lambda view: view.list_sessions(scope.address, limit=rows))

    def tally(self, scope: Scope, session: str | None) -> Tally:
        """Counts of one session, by default the newest. They may lag behind the log until the job has run."""

        def work(view: View) -> Tally:
            if session is None:
                latest = view.latest_session(scope.address)
                if latest is None:
                    raise NotFound("nothing was said at this address yet; append a message first")
            else:
                latest = self._session(view, scope, session)
            held = view.find_tally(scope.address, latest.number)
            return held if held is not None else Tally(scope.address, latest.number)

        return self.store.read(scope.owner, work)

    def journal(self, scope: Scope, *, limit: int, before: int | None = None) -> list[Operation]:
        rows = self.limits.page(limit)
        top = self.limits.before(before)
        found = self.store.read(scope.owner, lambda view: view.list_operations(limit=rows, before=top))
        return [operation for operation in found if is_for(operation, scope.address.agent)]

    def jobs(self, scope: Scope, state: JobState | None, *, limit: int) -> list[Job]:
        if state is not None:
            check_choice(state, "state", JOB_STATES)
        rows = self.limits.page(limit)
        return self.store.read(scope.owner, lambda view: view.list_jobs(state, limit=rows))

    def retry_jobs(self, scope: Scope, now: datetime) -> int:
        def work(tx: Tx) -> int:
            dead = tx.list_jobs("dead", limit=self.limits.page_rows_max)
            return sum(tx.retry_job(job.kind, job.key, now=now) for job in dead)

        return self.store.write(scope.owner, work)

    def _session(self, view: View, scope: Scope, session: str) -> Session:
        check_id(session, "session", bytes_max=ID_BYTES_MAX)
        held = view.find_session(scope.address, SessionId(session))
        if held is None:
            raise NotFound(f"no session {brief(session, 80)} at this address; list them with `sessions()`")
        return held

    def _place(self, view: View, scope: Scope, message_id: str) -> Cursor:
        check_id(message_id, "message id", bytes_max=ID_BYTES_MAX)
        message = self._held(view, scope, message_id)
        return Cursor(message.session_number, message.seq)

    def _held(self, view: View, scope: Scope, message_id: str) -> Message:
        message = view.find_messages([MessageId(message_id)]).get(MessageId(message_id))
        if message is None or message.address != scope.address:
            raise NotFound(f"no message {brief(message_id, 80)} at this address")
        return message
