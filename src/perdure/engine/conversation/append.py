"""Turns what a caller wants to append into the rows to write, given what is held. Touches nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import cast

from perdure.domain.conversation.messages import ROLES, CallState, Message, NewMessage, Role, Session, ToolCall
from perdure.domain.errors import Conflict, InvalidInput, LimitExceeded
from perdure.domain.limits import Limits
from perdure.domain.scope import ID_BYTES_MAX, Address, MessageId, SessionId, ToolCallId
from perdure.domain.text.rules import Json, brief, check_choice, check_id, encode_json, same_json, utf8_size
from perdure.domain.text.secrets import without_secrets
from perdure.domain.times.instants import check_instant
from perdure.domain.values import dataclass, field, replace
from perdure.engine.text.tokens import estimate_tokens

TOKENS_MAX = 2**31 - 1
FUTURE_MAX = timedelta(days=1)
"""Clocks differ; by more than this, one of them is wrong."""
NO_METADATA: Mapping[str, Json] = {}
STRAY = "answers"
"""Where the metadata of a result names a call that was not made here."""


@dataclass(frozen=True, slots=True)
class MessageDraft:
    """A message that is ready to be placed: valid, with id, time and size settled, but no session or number yet.

    It is made once, before the first try, so that a write repeated after a lost answer meets its own id.
    """

    message: NewMessage
    id: MessageId
    at: datetime
    tokens: int
    metadata: Mapping[str, Json]
    tool_calls: tuple[ToolCall, ...]
    may_be_stray: bool = False
    """It may answer a call that nobody made here: then it pairs with nothing."""


@dataclass(slots=True)
class AppendPlan:
    """What one append writes. `results` answers the caller in the order of the drafts."""

    results: list[Message] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)
    sessions: dict[int, Session] = field(default_factory=dict)
    calls: dict[tuple[int, ToolCallId], CallState] = field(default_factory=dict)
    closed: list[int] = field(default_factory=list)
    """Numbers of the sessions that it ends."""


@dataclass(frozen=True, slots=True)
class DraftRules:
    """What making a draft takes besides the message."""

    limits: Limits
    now: datetime
    new_id: Callable[[], str]
    count: Callable[[str], int] = estimate_tokens
    """Counts the tokens of messages that come without a count."""


def draft(message: NewMessage, by: DraftRules) -> MessageDraft:
    """Check one message against every rule that needs no store."""
    limits = by.limits
    if not isinstance(message.failed, bool):
        raise InvalidInput(f"`failed` = {brief(message.failed)} must be True or False")
    check_choice(message.role, "role", ROLES)
    size = utf8_size(message.content, "`content`")
    tool_calls = _check_tool_calls(message)
    most = limits.message_bytes_max
    for number, call in enumerate(tool_calls):
        what = f"arguments of tool call {brief(call.id, 80)}"
        text = encode_json(call.arguments, what, bytes_max=most, limit="message_bytes_max")
        size += utf8_size(call.id, "tool call id") + utf8_size(call.name, "tool name") + utf8_size(text, what)
        # As it will be read back: a tuple becomes a list here, so that repeating the message finds it equal.
        tool_calls[number] = replace(call, arguments=json.loads(text))
    if size > most:
        raise LimitExceeded(f"the message is {size} bytes, more than `message_bytes_max` = {most}; split it or raise the limit")
    if message.id is not None:
        check_id(message.id, "id", bytes_max=ID_BYTES_MAX)
    if message.session is not None:
        check_id(message.session, "session", bytes_max=ID_BYTES_MAX)
    at = by.now if message.at is None else check_instant(message.at, "at")
    metadata = _check_metadata(message.metadata, limits)
    if (content := without_secrets(message.content)) != message.content:
        message = replace(message, content=content)
    return MessageDraft(
        message=message,
        id=MessageId(message.id if message.id is not None else by.new_id()),
        at=at,
        tokens=_check_tokens(message, by.count),
        metadata=metadata,
        tool_calls=tuple(tool_calls),
    )


def _check_tokens(message: NewMessage, count: Callable[[str], int]) -> int:
    given = message.tokens
    if given is None:
        return count(message.content)
    if not isinstance(given, int) or isinstance(given, bool) or not 0 <= given <= TOKENS_MAX:
        raise InvalidInput(f"`tokens` = {brief(given)} must be a whole number from 0 to {TOKENS_MAX}; omit it for an estimate")
    return given


def _check_metadata(metadata: Mapping[str, Json] | None, limits: Limits) -> Mapping[str, Json]:
    if not metadata:
        return NO_METADATA
    if not isinstance(metadata, Mapping):
        raise InvalidInput(f"`metadata` must be a mapping, not `{type(metadata).__name__}`; pass a dict")
    text = encode_json(dict(metadata), "`metadata`", bytes_max=limits.metadata_bytes_max, limit="metadata_bytes_max")
    held: Mapping[str, Json] = json.loads(text)
    return held


def _check_tool_calls(message: NewMessage) -> list[ToolCall]:
    if message.tool_call_id is not None:
        if message.role != "tool":
            raise InvalidInput(
                f"`tool_call_id` is set on a message of role {message.role!r}; only `tool` messages answer a call"
            )
        check_id(message.tool_call_id, "tool_call_id", bytes_max=ID_BYTES_MAX)
    elif message.failed and message.role != "tool":
        raise InvalidInput(f"`failed` is set on a message of role {message.role!r}; only `tool` messages can fail")
    if not message.tool_calls:
        return []
    if message.role != "assistant":
        raise InvalidInput(f"`tool_calls` are set on a message of role {message.role!r}; only `assistant` messages make calls")
    calls = list(message.tool_calls)
    for call in calls:
        if not isinstance(call, ToolCall):
            raise InvalidInput(f"`tool_calls` holds a `{type(call).__name__}`; pass `perdure.ToolCall` values")
        check_id(call.id, "tool call id", bytes_max=ID_BYTES_MAX)
        check_id(call.name, "tool name", bytes_max=ID_BYTES_MAX)
    if len({call.id for call in calls}) != len(calls):
        raise InvalidInput("two `tool_calls` of one message share an id; give each call its own")
    return calls


@dataclass(slots=True)
class _Growth:
    """A session while messages are added at its end: it is made anew once, not for each of them."""

    session: Session
    """As it was before them."""
    messages: int
    tokens: int
    turns: int
    last_at: datetime
    ended_at: datetime | None

    def grown(self) -> Session:
        return replace(
            self.session,
            last_at=self.last_at,
            ended_at=self.ended_at,
            messages=self.messages,
            tokens=self.tokens,
            turns=self.turns,
            deleted_at=None,
        )


@dataclass(slots=True)
class LogPlacement:
    """Places drafts into the log of one address, one after the other, on top of what is held."""

    address: Address
    idle: timedelta
    new_id: Callable[[], str]
    held: Mapping[MessageId, Message]
    latest: Session | None
    """The newest session of the address, read under the writer's lock."""
    named: dict[str, Session]
    """Sessions that drafts name, as far as they exist, and the resumed one."""
    now: datetime
    calls: Sequence[CallState]
    """Calls that drafts answer or make again, as far as they are held, by session number."""
    resumed: Session | None = None
    """An older session that is open although the newest has ended."""
    plan: AppendPlan = field(default_factory=AppendPlan)
    _placed: dict[MessageId, Message] = field(default_factory=dict)
    _growth: _Growth | None = None

    def place_all(self, drafts: Sequence[MessageDraft]) -> AppendPlan:
        for one in drafts:
            repeat_of = self.held.get(one.id) or self._placed.get(one.id)
            if repeat_of is not None:
                check_same(one, repeat_of, self.address)
                self.plan.results.append(replace(repeat_of, repeated=True))
            else:
                message = self._place(one)
                self._placed[one.id] = message
                self.plan.messages.append(message)
                self.plan.results.append(message)
        self._settle()
        return self.plan

    def _place(self, one: MessageDraft) -> Message:
        if one.may_be_stray and not self._has_call(one.message):
            one = stray(one)
        given = one.message
        growth = self._growth_for(one)
        growth.messages += 1
        growth.tokens += one.tokens
        growth.turns += given.role == "user"
        # A message imported with an old time must not make the session look idle.
        growth.last_at = max(self._moment(one), growth.last_at)
        growth.ended_at = _end_of(growth, given)
        message = Message(
            id=one.id,
            session=growth.session.id,
            session_number=growth.session.number,
            seq=growth.messages,
            role=cast(Role, given.role),
            content=given.content,
            at=one.at,
            tokens=one.tokens,
            metadata=one.metadata,
            tool_calls=one.tool_calls,
            tool_call_id=None if given.tool_call_id is None else ToolCallId(given.tool_call_id),
            failed=given.failed,
            address=self.address,
        )
        if message.tool_calls or message.tool_call_id is not None:
            self._pair(message)
        return message

    def _growth_for(self, one: MessageDraft) -> _Growth:
        """The session that the message goes into, as it has grown so far."""
        growth, given = self._growth, one.message
        if (
            growth is not None
            and growth.ended_at is None
            and given.session is None
            and given.tool_call_id is None
            and self._moment(one) - growth.last_at <= self.idle
            and self._goes_on(growth.session)
        ):
            return growth
        self._settle()
        held = self._session_for(one)
        self._growth = _Growth(held, held.messages, held.tokens, held.turns, held.last_at, held.ended_at)
        return self._growth

    def _goes_on(self, session: Session) -> bool:
        current = self._current()
        return current is not None and current.number == session.number

    def _settle(self) -> None:
        """Note how the session has grown; look a session up only after this."""
        growth, self._growth = self._growth, None
        if growth is not None:
            self._keep(growth.grown())

    def _session_for(self, one: MessageDraft) -> Session:
        given = one.message
        if given.session is not None:
            session = self.named.get(given.session)
            if session is None:
                return self._open(SessionId(given.session), self._moment(one))
            return session if session.deleted_at is None else self._begin_again(session, self._moment(one))
        if given.tool_call_id is not None:
            call = self._call(ToolCallId(given.tool_call_id))
            # However long a tool ran, its result belongs to the session of its call.
            return self._session_numbered(call.session_number)
        current = self._current()
        if current is None or self._moment(one) - current.last_at > self.idle:
            return self._open(SessionId(self.new_id()), self._moment(one))
        return current

    def _current(self) -> Session | None:
        """The session that goes on: the newest, or an older one that was resumed after the newest had ended."""
        if self.latest is not None and self.latest.ended_at is None:
            return self.latest
        if self.resumed is None:
            return None
        resumed = self.named.get(self.resumed.id, self.resumed)
        return resumed if resumed.ended_at is None else None

    def _moment(self, one: MessageDraft) -> datetime:
        """When a session was active: a message from a clock far ahead must not keep it open until then."""
        return one.at if one.at - self.now <= FUTURE_MAX else self.now

    def _session_numbered(self, number: int) -> Session:
        if self.latest is not None and self.latest.number == number:
            return self.latest
        return next(session for session in self.named.values() if session.number == number)

    def _open(self, session_id: SessionId, at: datetime) -> Session:
        number = 1 if self.latest is None else self.latest.number + 1
        current = self._current()
        if current is not None:
            self._keep(replace(current, ended_at=current.last_at))
            self.plan.closed.append(current.number)
        session = Session(
            address=self.address, number=number, id=session_id, opened_at=at, last_at=at, ended_at=None, messages=0, tokens=0
        )
        self.latest = session
        self.named[session_id] = session
        return session

    def _begin_again(self, session: Session, at: datetime) -> Session:
        """Go on under the id of a deleted session, of which nothing is left but its number."""
        current = self._current()
        if current is not None:
            self._keep(replace(current, ended_at=current.last_at))
            self.plan.closed.append(current.number)
        begun = replace(session, last_at=max(at, session.last_at), ended_at=None, deleted_at=None)
        self.resumed = begun
        self._keep(begun)
        return begun

    def _keep(self, session: Session) -> None:
        self.plan.sessions[session.number] = session
        if self.latest is not None and self.latest.number == session.number:
            self.latest = session
        if session.id in self.named:
            self.named[session.id] = session

    def _call(self, call_id: ToolCallId, number: int | None = None) -> CallState:
        """The newest call under the id, or the one of a certain session."""
        known = {(call.session_number, call.id): call for call in self.calls if call.id == call_id}
        known |= {place: call for place, call in self.plan.calls.items() if place[1] == call_id}
        fitting = [place for place in known if number in (None, place[0])]
        if not fitting:
            where = "at this address" if number is None else "in that session"
            raise InvalidInput(
                f"`tool_call_id` = {brief(call_id, 80)} answers no call {where}; "
                "append the assistant message that makes the call first"
            )
        return known[max(fitting)]

    def _has_call(self, given: NewMessage) -> bool:
        """Whether the call that a message answers was made here, if it answers any."""
        if given.tool_call_id is None:
            return True
        session = None if given.session is None else self.named.get(given.session)
        if given.session is not None and session is None:
            return False
        made = {(call.session_number, call.id) for call in self.calls} | set(self.plan.calls)
        return any(id_ == given.tool_call_id and (session is None or session.number == number) for number, id_ in made)

    def _pair(self, message: Message) -> None:
        number = message.session_number
        for made in message.tool_calls:
            place = (number, made.id)
            if place in self.plan.calls or any((call.session_number, call.id) == place for call in self.calls):
                raise Conflict(f"tool call {brief(made.id, 80)} was already made in this session; give each call its own id")
            self.plan.calls[place] = CallState(number, made.id, made.name, message.seq)
        if message.tool_call_id is not None:
            call = self._call(message.tool_call_id, number)
            if call.result_seq is not None:
                raise Conflict(f"tool call {brief(call.id, 80)} already has a result; a call is answered once")
            self.plan.calls[(number, call.id)] = replace(call, result_seq=message.seq, failed=message.failed)


def _end_of(growth: _Growth, given: NewMessage) -> datetime | None:
    """A late tool result does not reopen an ended session; naming the session does."""
    return None if growth.ended_at is None or given.session is not None else growth.last_at


def stray(one: MessageDraft) -> MessageDraft:
    """A result whose call is not here, as it is held: it names the call in its metadata, and pairs with nothing."""
    given = one.message
    metadata = {**one.metadata, STRAY: given.tool_call_id}
    return replace(one, message=replace(given, tool_call_id=None), metadata=metadata)


def check_same(one: MessageDraft, held: Message, address: Address) -> None:
    """`Conflict` unless appending `one` again would store exactly what is held under its id."""
    if one.may_be_stray and held.tool_call_id is None and STRAY in held.metadata:
        one = stray(one)
    given = one.message
    same = (
        held.address == address
        and held.role == given.role
        and held.content == given.content
        and same_json(held.metadata, one.metadata)
        and held.tool_calls == one.tool_calls
        and held.tool_call_id == given.tool_call_id
        and held.failed == given.failed
        and (given.at is None or held.at == one.at)
        and (given.tokens is None or held.tokens == one.tokens)
        and (given.session is None or held.session == given.session)
    )
    if not same:
        raise Conflict(
            f"message id {brief(one.id, 80)} is already held with another body or at another address; "
            "use a new id, or send exactly what was sent before"
        )
