"""The stored form of digests and agent states, as `ports.rows` has it for everything else."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from datetime import datetime

from perdure.domain.agents import AgentState, Failure, TurnLease
from perdure.domain.digests import DIGEST_KINDS, Digest, Source
from perdure.domain.errors import Conflict
from perdure.domain.journal import Attribution, Operation
from perdure.domain.scope import Owner
from perdure.domain.text import Json
from perdure.domain.times import from_us, to_us
from perdure.ports.rows import AnyRow, address_of, dump, readable


def _maybe_us(instant: datetime | None) -> int | None:
    return None if instant is None else to_us(instant)


def _maybe_at(us: int | None) -> datetime | None:
    return None if us is None else from_us(us)


# -- agent states ------------------------------------------------------------------------------------------------------


def agent_state_row(owner: Owner, state: AgentState, lease: TurnLease | None = None) -> AnyRow:
    return (
        owner.space, owner.user, state.address.agent, state.address.channel, state.turns, _maybe_us(state.last_at),
        state.last_text, state.profile, int(state.casual), int(state.private), _maybe_us(state.rolling_tried_at),
        _maybe_us(state.rolling_done_at), failure_text(state.rolling_error), _maybe_us(state.curated_at),
        state.curated_memories, None if lease is None else lease.holder, None if lease is None else to_us(lease.until),
        int(state.shared),
    )  # fmt: skip


def failure_text(failure: Failure | None) -> str | None:
    return None if failure is None else dump({"reason": failure.reason, "detail": failure.detail})


def to_agent_state(row: AnyRow) -> AgentState:
    return readable("agent_states", _read_agent_state, row)


def _read_agent_state(row: AnyRow) -> AgentState:
    (_, _, agent, channel, turns, last, text, profile, casual, private, tried, done, error, curated, memories, _, _,
     shared) = row  # fmt: skip
    failure = None if error is None else Failure(**json.loads(error))
    return AgentState(
        address_of(agent, channel), turns, _maybe_at(last), text, profile, bool(casual), bool(private),
        _maybe_at(tried), _maybe_at(done), failure, _maybe_at(curated), memories, bool(shared),
    )  # fmt: skip


def to_turn(row: AnyRow) -> TurnLease | None:
    *_, holder, until, _ = row
    return None if holder is None else TurnLease(holder, from_us(until))


# -- digests -----------------------------------------------------------------------------------------------------------


def digest_body(digest: Digest) -> str:
    """Everything about a digest that its key does not say, as JSON text."""
    return dump(
        {
            "policy": digest.policy,
            "based_on": digest.based_on,
            "sources": [
                [one.address.agent, one.address.channel, one.session_number, one.first_seq, one.last_seq]
                for one in digest.sources
            ],
            "text": digest.text,
            "pinned": list(digest.pinned),
            "lessons": list(digest.lessons),
            "fields": dict(digest.fields),
            "summariser": digest.summariser,
            "fallback": digest.fallback,
        }
    )


def digest_row(owner: Owner, digest: Digest, operation: int) -> AnyRow:
    return (
        owner.space, owner.user, digest.address.agent, digest.address.channel, digest.session_number, digest.kind,
        digest.version, to_us(digest.made_at), int(digest.undone), digest_body(digest), operation,
    )  # fmt: skip


def to_digest(row: AnyRow) -> Digest:
    return readable("digests", _read_digest, row)


def _read_digest(row: AnyRow) -> Digest:
    _, _, agent, channel, number, kind, version, made, undone, text, _ = row
    body = json.loads(text)
    if kind not in DIGEST_KINDS:
        raise ValueError(kind)
    sources = tuple(Source(address_of(one[0], one[1]), *one[2:]) for one in body["sources"])
    return Digest(
        address_of(agent, channel), number, kind, version, body["policy"], body["based_on"], sources, body["text"],
        tuple(body["pinned"]), tuple(body["lessons"]), body["fields"], body["summariser"], body["fallback"], from_us(made),
        bool(undone),
    )  # fmt: skip


def digest_key(digest: Digest) -> str:
    """What identifies a digest in the journal."""
    return dump([digest.address.agent, digest.address.channel, digest.session_number, digest.kind, digest.version])


def digest_record(digest: Digest) -> Json:
    """What the journal keeps of a digest: enough to tell a changed one, and none of its words, so that deleting is enough."""
    words = hashlib.sha256(digest_body(digest).encode()).hexdigest()
    return {"policy": digest.policy, "last_seq": digest.last_seq, "undone": digest.undone, "sha256": words}


def digest_operation(seq: int, held: Digest | None, digest: Digest | None, by: Attribution) -> Operation:
    """The journal entry of putting `digest` where `held` is; removing it if None."""
    subject = digest if digest is not None else held
    if subject is None or (held is not None and digest is not None and replace(held, undone=digest.undone) != digest):
        raise Conflict("a digest of that version is held already, with other words; read again and write the next version")
    action = "add" if held is None else "remove" if digest is None else "undo" if digest.undone else "redo"
    before = None if held is None else digest_record(held)
    after = None if digest is None else digest_record(digest)
    return Operation(seq, by.at, by.actor, action, "digest", digest_key(subject), before, after, by.why, by.batch or seq)
