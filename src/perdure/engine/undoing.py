"""Which operations on a row still have an effect: an undo takes it back to an earlier state, and what lay between is over."""

from __future__ import annotations

from collections.abc import Sequence

from perdure.domain.journal import Operation

UNDO = "undo"


def standing(operations: Sequence[Operation]) -> list[Operation]:
    """Of the operations on one row, oldest first, those that lead to its state as it is now.

    What was undone is over, until that is undone in turn; a new change makes it final.
    """
    line: list[Operation] = []
    reached = 0
    for operation in operations:
        if operation.action == UNDO and (place := _place(line, reached, operation.after)) is not None:
            reached = place
            continue
        del line[reached:]
        line.append(operation)
        reached += 1
    return line[:reached]


def _place(line: Sequence[Operation], reached: int, state: object) -> int | None:
    """How far along `line` the row was in that state: the nearest such place, before or behind where it is."""
    states = [line[0].before if line else None, *(operation.after for operation in line)]
    places = [place for place, held in enumerate(states) if held == state and place != reached]
    return min(places, key=lambda place: abs(place - reached), default=None)


def firsts(operations: Sequence[Operation]) -> list[Operation]:
    """For each row, the earliest of its operations: what that one found is what undoing all of them restores."""
    earliest: dict[tuple[str, str], Operation] = {}
    for operation in sorted(operations, key=lambda one: one.seq):
        earliest.setdefault((operation.kind, operation.key), operation)
    return sorted(earliest.values(), key=lambda one: -one.seq)
