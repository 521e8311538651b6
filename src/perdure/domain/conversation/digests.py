"""Digests: summaries over the log. A digest names the messages it stands for; it never takes their place in the log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, get_args

from perdure.domain.conversation.messages import Message
from perdure.domain.knowledge.memories import TRUSTS, Trust
from perdure.domain.scope import DEFAULT, Address, Owner
from perdure.domain.text.rules import Json

DigestKind = Literal["fold", "rolling", "session", "spine"]
DIGEST_KINDS: tuple[DigestKind, ...] = get_args(DigestKind)

SPINE_ADDRESS = Address(DEFAULT, DEFAULT)
"""Where the spine of an owner is kept: it belongs to no session."""
SPINE_SESSION = 0

SESSION_FIELDS = ("one_liner", "what_mattered", "open_loops", "commitments", "people", "tone")
SPINE_SECTIONS = ("PROFILE", "PROJECTS", "PEOPLE", "OPEN_LOOPS")


@dataclass(frozen=True, slots=True)
class DigestSource:
    """A run of messages of one session, both ends included."""

    address: Address
    session_number: int
    first_seq: int
    last_seq: int


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """What a summariser is asked: carry `previous` on over `messages`, within the given length."""

    kind: DigestKind
    """`fold`: what the agent needs to go on, and lessons. `rolling`: where we are. `session`: `SESSION_FIELDS`.
    `spine`: `SPINE_SECTIONS`."""
    previous: str
    """The text that the new one continues and replaces; empty at first."""
    messages: tuple[Message, ...]
    """Everything said since, in log order."""
    chars_max: int
    words_max: int | None = None
    question: str = ""
    """The latest thing the user said: what the summary should serve."""
    owner: Owner | None = None
    """On whose behalf it is asked, for those who count what a model costs."""
    deadline_s: float | None = None
    """How long it may take if somebody waits for it; None: nobody does."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What a summariser answers. `text` is within the length asked for."""

    text: str
    lessons: tuple[str, ...] = ()
    fields: Mapping[str, Json] = field(default_factory=dict)
    """For `session` and `spine`: the text's parts by name."""


@dataclass(frozen=True, slots=True)
class Digest:
    """One version of one layer. Its coverage is that of the version it is based on, and its own sources."""

    address: Address
    session_number: int
    kind: DigestKind
    version: int
    policy: str
    """Which rule made it: `request_fold`, `periodic_flush`, `bounded_history`, `clear`, `rolling_digest`, …"""
    based_on: int
    """The version it continues; 0 if none."""
    sources: tuple[DigestSource, ...]
    text: str
    pinned: tuple[str, ...]
    """Lines that were taken over word for word."""
    lessons: tuple[str, ...]
    fields: Mapping[str, Json]
    summariser: str
    """Name and version of what wrote the text, such as `extractive/1`."""
    fallback: bool
    """The summariser asked for had failed for good; the offline one stood in."""
    made_at: datetime
    undone: bool = False

    @property
    def last_seq(self) -> int:
        """The last message of its session that it covers."""
        return self.sources[-1].last_seq if self.sources else 0


def trust_of(digest: Digest | None) -> Trust:
    """That of the least of the messages it tells of; none, or one that does not say, is as good as its summariser."""
    said = None if digest is None else digest.fields.get("trust")
    return next((one for one in TRUSTS if one == said), "agent")
