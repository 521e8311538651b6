"""Digests: summaries over the log. A digest names the messages it stands for; it never takes their place in the log.

Which layers of them an address keeps, and when each acts, is set; the defaults are the seeds'.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, get_args

from perdure.domain.conversation.messages import Message
from perdure.domain.errors import InvalidInput
from perdure.domain.knowledge.memories import TRUSTS, Trust
from perdure.domain.scope import DEFAULT, Address, Owner
from perdure.domain.text.rules import Json, brief
from perdure.domain.values import dataclass, field, fields

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
    """A request to a summariser: extend `previous` by `messages`, within the given length."""

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
    """A summariser's answer. `text` is within the length asked for."""

    text: str
    lessons: tuple[str, ...] = ()
    fields: Mapping[str, Json] = field(default_factory=dict)
    """For `session` and `spine`: the text's parts by name."""


@dataclass(frozen=True, slots=True)
class Digest:
    """One version of a summary. Its coverage is that of the version it is based on, and its own sources."""

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


Policy = Literal["bounded_history", "request_fold", "periodic_flush", "rolling_digest", "session_digest", "spine"]
POLICIES: tuple[Policy, ...] = get_args(Policy)

# The bound on the working set is in every profile: nothing may grow for ever.
PROFILES: dict[str, frozenset[Policy]] = {
    "task_agent": frozenset({"bounded_history"}),
    "channel_bot": frozenset({"bounded_history", "request_fold", "periodic_flush"}),
    "companion": frozenset({"bounded_history", "rolling_digest", "session_digest", "spine"}),
    "complete": frozenset(POLICIES),
}
DEFAULT_PROFILE = "companion"
KEEP_SHARE = 0.6


@dataclass(frozen=True, slots=True)
class Layers:
    """Thresholds and lengths of the layers."""

    history_messages_max: int = 50
    """More messages than this in a working set, and its oldest are folded."""
    history_messages_keep: int = 0
    """So many of the newest stay in it then. 0: three fifths of `history_messages_max`."""
    history_tokens_max: int = 100_000
    """More tokens than this, and the oldest half is folded, until it fits. Also the budget of a context that names none."""
    fold_messages_min: int = 8
    """From so many messages on, a request folds the turns that are over."""
    fold_words_max: int = 300
    """Words of the text that such a fold leaves."""
    flush_every_s: int = 1_800
    """Seconds between two looks of the periodic flush at an address."""
    flush_inactive_s: int = 1_800
    """After silence of more seconds than this, it clears the working set."""
    flush_messages_min: int = 4
    """Below so many messages it asks no model."""
    rolling_turns: int = 4
    """A rolling digest after every so many turns of a session."""
    rolling_chars_max: int = 600
    """Characters of a rolling digest."""
    spine_turns: int = 20
    """A new version of the spine after more turns of the user than this."""
    spine_chars_max: int = 4_000
    """Characters of the spine."""
    summary_tokens_max: int = 2_000
    """Tokens of a fold, what it keeps word for word included."""
    window_messages: int = 20
    """So many messages a model is shown at once when it summarises."""

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            least = 0 if one.name == "history_messages_keep" else 1
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= 10**9:
                raise InvalidInput(f"setting `{one.name}` = {brief(value)} must be a whole number of at least {least}")
        if self.history_messages_keep >= self.history_messages_max:
            raise InvalidInput(
                f"setting `history_messages_keep` = {self.history_messages_keep} must be less than "
                f"`history_messages_max` = {self.history_messages_max}; else every message would fold the history"
            )

    @property
    def keep(self) -> int:
        """How many messages stay in a working set that was over its bound."""
        return self.history_messages_keep or int(self.history_messages_max * KEEP_SHARE)


def check_profile(name: str) -> str:
    """`name` if there is such a profile."""
    if not isinstance(name, str) or name not in PROFILES:
        raise InvalidInput(f"profile {brief(name)} is unknown; use one of {', '.join(PROFILES)}")
    return name
