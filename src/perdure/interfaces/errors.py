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
DEGRADED = 9
INTERRUPTED = 130


def exit_code(error: PerdureError) -> int:
    return EXIT_CODES[error.code]


def as_json(error: PerdureError) -> dict[str, object]:
    return {"error": {"code": error.code, "message": str(error), "retriable": error.retriable}}
