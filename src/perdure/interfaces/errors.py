"""How every skin tells an error: one table from our codes to theirs."""

from __future__ import annotations

from perdure.domain.errors import PerdureError

EXIT_CODES: dict[str, int] = {
    "error": 1,
    "invalid_input": 2,
    "not_found": 3,
    "conflict": 4,
    "unavailable": 5,
    "limit_exceeded": 6,
    "unsupported": 7,
    "corrupt": 8,
}
HTTP_STATUSES: dict[str, int] = {
    "error": 500,
    "invalid_input": 422,
    "not_found": 404,
    "conflict": 409,
    "unavailable": 503,
    "limit_exceeded": 413,
    "unsupported": 422,
    "corrupt": 500,
}
DEGRADED = 9
INTERRUPTED = 130


def exit_code(error: PerdureError) -> int:
    return EXIT_CODES[error.code]


def http_status(error: PerdureError) -> int:
    """As the table says; a bound that waiting helps against is 429."""
    return 429 if error.code == "limit_exceeded" and error.retriable else HTTP_STATUSES[error.code]


def as_json(error: PerdureError) -> dict[str, object]:
    return {"error": {"code": error.code, "message": str(error), "retriable": error.retriable}}
