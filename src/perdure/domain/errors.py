"""Every error a caller can see, named by what the caller can do about it.

    PerdureError
    ├── InvalidInput   fix the call
    ├── NotFound       ask for something that exists
    ├── Conflict       read again, then decide
    ├── Unavailable    try again later (`retry_after_s`)
    ├── LimitExceeded  send less, or raise the limit
    ├── Unsupported    this store cannot do it
    └── Corrupt        stop, run `perdure admin verify`

Messages name the thing, the value and the remedy. They never carry the text of a message or a memory.
"""

from __future__ import annotations

from typing import ClassVar

from perdure.domain.text.secrets import without_secrets

MESSAGE_CHARS_MAX = 1_000


class PerdureError(Exception):
    """Root of all errors raised by perdure on purpose. Whatever a message quotes, it can be printed, and is not long."""

    code: ClassVar[str] = "error"
    retriable: bool = False

    def __init__(self, message: str = "") -> None:
        super().__init__(_tellable(message))


class InvalidInput(PerdureError):
    """The call itself is wrong; the same call will never succeed."""

    code = "invalid_input"


class NotFound(PerdureError):
    """What was named does not exist in this scope."""

    code = "not_found"


class Conflict(PerdureError):
    """Another write came first, or the same id already stands for something else."""

    code = "conflict"


class Unavailable(PerdureError):
    """The store cannot answer now: busy, full, gone, or too slow for the deadline."""

    code = "unavailable"
    retriable = True

    def __init__(self, message: str, *, retry_after_s: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class LimitExceeded(PerdureError):
    """A named bound was reached; nothing was stored. `retriable` says whether waiting can help."""

    code = "limit_exceeded"

    def __init__(self, message: str, *, retriable: bool = False) -> None:
        super().__init__(message)
        self.retriable = retriable


class Unsupported(PerdureError):
    """The store says in its features that it cannot do this."""

    code = "unsupported"


class Corrupt(PerdureError):
    """Stored data breaks an invariant. Stop writing and run `perdure admin verify`."""

    code = "corrupt"


def _tellable(message: str) -> str:
    """The message without secrets, and without what no terminal or log can take.

    Of a long one the beginning, and the end, which says what to do.
    """
    if not message.isascii():
        message = message.encode(errors="backslashreplace").decode()
    if "\0" in message:
        message = message.replace("\0", "\\0")
    message = without_secrets(message)
    if len(message) > MESSAGE_CHARS_MAX:
        message = f"{message[:600]} … {message[-300:]}"
    return message


ALL_ERRORS: tuple[type[PerdureError], ...] = (
    PerdureError,
    InvalidInput,
    NotFound,
    Conflict,
    Unavailable,
    LimitExceeded,
    Unsupported,
    Corrupt,
)
