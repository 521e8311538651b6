"""Every bound a caller can meet, with its name. Errors quote these names."""

from __future__ import annotations

from typing import Literal, get_args

from perdure.domain.errors import InvalidInput, LimitExceeded
from perdure.domain.text.rules import brief
from perdure.domain.values import dataclass, fields

NUMBER_MAX = 2**62
CoverageRule = Literal["ledger", "seed_span", "two_sided_span"]


@dataclass(frozen=True, slots=True)
class Switches:
    """Behaviour that a seed document wants differently.

    Each is for comparison, and is set in Python; the setting `seed` sets those of one seed at once.
    """

    relevance: Literal["all", "keyword_gate"] = "all"
    """`keyword_gate`: a goal with a word of time gets series alone, any other goal plain keys alone."""
    coverage: CoverageRule = "ledger"
    """The rule of a query that names none. `seed_span`: the oldest entry decides."""
    clear_small: bool = True
    """False: the periodic flush leaves silent sessions with few messages as they are."""
    rolling_scope: Literal["session", "persona"] = "session"
    """`persona`: a new session continues with the rolling digest of the one before, as its own."""
    spine_unit: Literal["turns", "messages"] = "turns"
    """`messages`: the spine counts two for each exchange."""
    statements: Literal["add", "replace"] = "add"
    """`replace`: of two statements under one memory key, the newer one takes the place of the other."""
    lessons: Literal["budget", "all"] = "budget"
    """`all`: a prompt has every lesson that holds, whatever the budget."""
    transcript: Literal["one", "new_each_time"] = "one"
    """`new_each_time`: a new file each time that a session is written down."""
    importance_growth: bool = True
    """False: what is said often becomes no more important."""
    attributes: bool = True
    """False: a new value of an attribute closes no earlier one."""

    def __post_init__(self) -> None:
        for name, choices in CHOICES.items():
            if (value := getattr(self, name)) not in choices:
                raise InvalidInput(f"switch `{name}` = {brief(value)} is unknown; use {' or '.join(map(str, choices))}")


CHOICES: dict[str, tuple[object, ...]] = {
    "relevance": ("all", "keyword_gate"),
    "coverage": get_args(CoverageRule),
    "rolling_scope": ("session", "persona"),
    "spine_unit": ("turns", "messages"),
    "statements": ("add", "replace"),
    "lessons": ("budget", "all"),
    "transcript": ("one", "new_each_time"),
    **dict.fromkeys(("clear_small", "importance_growth", "attributes"), (True, False)),
}


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest sizes and counts that are accepted. All are settings; the defaults suit chat."""

    message_bytes_max: int = 1_048_576
    """Content and tool call arguments of one message, in UTF-8."""
    metadata_bytes_max: int = 65_536
    """Metadata of one message, as JSON."""
    batch_messages_max: int = 10_000
    """Messages in one `append_many`."""
    queue_jobs_max: int = 1_000
    """Jobs of one user that are ready or running. Waiting can help, so the error is retriable."""
    page_rows_max: int = 10_000
    """Rows one listing returns at most."""
    state_value_bytes_max: int = 67_108_864
    """One state value, as JSON."""
    state_revisions_max: int = 1_000
    """Revisions kept of one state key; older ones are forgotten."""
    entry_bytes_max: int = 1_048_576
    """One entry of a series, as JSON."""
    batch_entries_max: int = 100_000
    """Entries in one merge."""
    import_bytes_max: int = 4_294_967_296
    """What one import may bring, unpacked."""
    accesses_kept: int = 100_000
    """Entries of the access log kept of one user; the oldest go first."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise InvalidInput(f"limit `{field.name}` = {brief(value)} must be a whole number of at least 1")

    @staticmethod
    def before(number: int | None) -> int | None:
        """`number` if rows may be counted up to it."""
        if number is not None and (isinstance(number, bool) or not isinstance(number, int) or not 0 <= number <= NUMBER_MAX):
            raise InvalidInput(f"`before` = {brief(number)} must be a whole number from 0 on")
        return number

    def page(self, limit: int) -> int:
        """`limit` if one listing may have so many rows."""
        if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
            raise InvalidInput(f"`limit` = {brief(limit)} must be a whole number of at least 1")
        if limit > self.page_rows_max:
            most = self.page_rows_max
            raise LimitExceeded(f"`limit` = {brief(limit)} is more than `page_rows_max` = {most}; read page by page")
        return limit
