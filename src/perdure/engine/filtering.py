"""Which items of a shelf a question may be answered from at all. This comes first: nothing else is even counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perdure.domain.recall import EntryKind
from perdure.domain.spans import Span
from perdure.engine.entries import ARCHIVED, FOREVER, KIND_CODES, ROLE_CODES
from perdure.engine.shelf import Flags, Longs
from perdure.engine.stacks import Stack

_UNTRUSTED_ROLES = (ROLE_CODES["tool"], ROLE_CODES["system"])


@dataclass(frozen=True, slots=True)
class Filter:
    """What may answer. Times are in microseconds."""

    kinds: tuple[EntryKind, ...]
    agent: int
    """The hash of the agent that asks: it sees what is its own, and what is everybody's."""
    now_us: int
    as_of_us: int | None = None
    known_at_us: int | None = None
    sessions: tuple[int, ...] | None = None
    """Hashes of the sessions it must be from."""
    time_range: Span | None = None
    terms: tuple[frozenset[int], ...] | None = None
    """It must have all terms of one of these sets."""
    places: tuple[int, ...] = ()
    """Hashes of the channel on which it asks: there it sees what is of that channel."""
    trusted: bool = False
    """No messages of tools, and none that came from elsewhere."""


def allowed(stack: Stack, wanted: Filter) -> Flags:
    """For each item whether it may answer."""
    kinds = np.zeros(256, bool)
    kinds[[KIND_CODES[kind] for kind in wanted.kinds]] = True
    seen: Flags = (stack.agent == 0) | (stack.agent == np.uint64(wanted.agent))
    for place in wanted.places:
        seen |= stack.agent == np.uint64(place)
    mask: Flags = stack.live & kinds[stack.shelf.kind] & seen
    mask &= (stack.flags & ARCHIVED) == 0
    mask &= _holding(stack, wanted)
    if wanted.sessions is not None:
        mask &= np.isin(stack.session, np.array(wanted.sessions, np.uint64))
    if wanted.time_range is not None:
        # A series holds times of its own: whether it covers the range is told with the answer.
        mask &= within(stack, wanted.time_range) | (stack.shelf.kind == KIND_CODES["series"])
    if wanted.terms is not None:
        mask &= _naming(stack, wanted.terms)
    if wanted.trusted:
        mask &= ~((stack.shelf.kind == KIND_CODES["message"]) & np.isin(stack.shelf.role, _UNTRUSTED_ROLES))
    return mask


def _holding(stack: Stack, wanted: Filter) -> Flags:
    """What was so at the moment asked about, as far as was known at the other; as `Statement.holds_at` says for one."""
    said = stack.shelf.kind == KIND_CODES["message"]
    if wanted.as_of_us is None and wanted.known_at_us is None:
        # A message stays what was said, whatever the clock of its sender was.
        current: Flags = said | ((stack.valid_from <= wanted.now_us) & (wanted.now_us < stack.valid_to))
        return current
    end = stack.valid_to
    holding: Flags = np.ones(len(stack.number), bool)
    if wanted.known_at_us is not None:
        holding = stack.known_from <= wanted.known_at_us
        end = np.where(stack.closed_at > wanted.known_at_us, FOREVER, end)
    moment = wanted.known_at_us if wanted.as_of_us is None else wanted.as_of_us
    return holding & _at(stack, wanted.now_us if moment is None else moment, end)


def _at(stack: Stack, moment: int, end: Longs) -> Flags:
    holds: Flags = (stack.valid_from <= moment) & (moment < end)
    return holds


def within(stack: Stack, span: Span) -> Flags:
    """What was said in that time, or speaks of it."""
    shelf = stack.shelf
    mask = (shelf.at >= span.start_us) & (shelf.at < span.end_us)
    speaks = (shelf.time_start < span.end_us) & (shelf.time_end > span.start_us)
    mask[shelf.time_item[speaks]] = True
    return mask


def _naming(stack: Stack, sets: Sequence[frozenset[int]]) -> Flags:
    mask = np.zeros(len(stack.number), bool)
    for terms in sets:
        found, passages, _ = stack.shelf.postings(np.array(sorted(terms), np.uint64))
        pairs = np.unique(np.stack((stack.shelf.passage_item[passages], found)), axis=1)
        mask |= np.bincount(pairs[0], minlength=len(mask)) >= max(1, len(terms))
    return mask
