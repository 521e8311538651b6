"""Every bound a caller can meet, with its name. Errors quote these names."""

from __future__ import annotations

from dataclasses import dataclass, fields

from perdure.domain.errors import InvalidInput, LimitExceeded
from perdure.domain.text.rules import brief

NUMBER_MAX = 2**62


@dataclass(frozen=True, slots=True)
class Limits:
    """What one call may carry and what may wait. All are settings; the defaults suit chat."""

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
