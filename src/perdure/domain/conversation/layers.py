"""Which summary layers an address keeps, and when each of them acts. All are settings; the defaults are the seeds'."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal, get_args

from perdure.domain.errors import InvalidInput
from perdure.domain.text.rules import brief

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
        for field in fields(self):
            value = getattr(self, field.name)
            least = 0 if field.name == "history_messages_keep" else 1
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= 10**9:
                raise InvalidInput(f"setting `{field.name}` = {brief(value)} must be a whole number of at least {least}")
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
