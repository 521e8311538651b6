"""Which pins a budget can hold: the most important first, what says the same once, ids bare where their line is too long."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from perdure.engine.pins import BARE, GAP, ITEM_KINDS, Pin, PinKind

BARE_SHARE = 0.3
"""The part of the budget that lines leave to ids whose own lines find no room."""
JOINED_CHARS_MAX = 400

# User rules first, then what is open, then what was decided; then what cannot be guessed; then amounts and dates, and what
# else the user said. Ids from tools, from long explanations and from what was pasted come late: most of them are bulk.
_CLASSES: dict[PinKind, int] = {
    "constraint": 0, "question": 1, "decision": 2, "identifier": 3, "path": 3, "url": 3, "wish": 3,
    "quantity": 4, "date": 4, "statement": 5,
}  # fmt: skip
_BULK_CLASS = 6
_LAST_CLASS = 7
_ROLES: dict[str, int] = {"user": 0, "system": 1, "assistant": 2, "tool": 3}
_WORD = re.compile(r"[^\W_]+")


def fit_pins(pins: Sequence[Pin], tokens_max: int, count: Callable[[str], int]) -> tuple[str, ...]:
    """Lines that keep the most important pins within `tokens_max`, in the order of the log.

    Rules of the user go first, then open questions, decisions, ids with paths and addresses, amounts and dates; within a
    class the user before the agent before tools, and the newer before the older. What says the same is kept once. Items
    whose line finds no room go into one last line, bare, as far as they fit.
    """
    return _Fit(pins, tokens_max, count).lines()


class _Fit:
    """One choice of pins. Sentences of one message share a line, so the second of them costs no head."""

    def __init__(self, pins: Sequence[Pin], tokens_max: int, count: Callable[[str], int]) -> None:
        self._pins = pins
        self._tokens_max = tokens_max
        self._count = count
        self._ranked = sorted(_distinct(pins), key=lambda index: _rank(pins[index], index))
        self._order = {index: order for order, index in enumerate(self._ranked)}
        self._text_costs = {index: count(pins[index].text) + 1 for index in self._ranked}
        self._head_costs = {head: count(head) for head in {pins[index].head for index in self._ranked}}
        self._chosen: set[int] = set()
        self._lines_begun: set[tuple[int, str]] = set()
        self._held = ""
        self._bare = _bare_items(pins, self._ranked)

    def lines(self) -> tuple[str, ...]:
        all_tokens = sum(self._text_costs.values()) + sum(self._head_costs[self._pins[index].head] for index in self._ranked)
        bare_tokens = self._count(BARE + ", ".join(self._bare)) if self._bare else 0
        is_tight = all_tokens > self._tokens_max
        reserve = min(int(self._tokens_max * BARE_SHARE), bare_tokens) if is_tight else 0
        self._choose(self._tokens_max - reserve, repeats=False)
        left = self._tokens_max - self._count("\n".join(self._written()))
        self._choose(left, repeats=True)
        while self._chosen and self._count("\n".join(self._written())) > self._tokens_max:
            self._chosen.remove(max(self._chosen, key=self._order.__getitem__))
        return self._written()

    def _choose(self, tokens: int, *, repeats: bool) -> None:
        """Take pins in their order as long as there is room; lines whose items are all there already only if `repeats`."""
        for index in self._ranked:
            pin = self._pins[index]
            if index in self._chosen or not pin.text:
                continue
            is_known = bool(pin.items) and pin.kind in ITEM_KINDS and all(_core(item) in self._held for item in pin.items)
            if is_known and not (repeats and pin.role == "user"):
                continue
            line = (pin.seq, pin.head)
            cost = self._text_costs[index] + (self._head_costs[pin.head] if line not in self._lines_begun else 1)
            if cost <= tokens:
                tokens -= cost
                self._chosen.add(index)
                self._lines_begun.add(line)
                self._held += f"\n{pin.text}"

    def _written(self) -> tuple[str, ...]:
        lines = tuple(_joined(self._pins[index] for index in sorted(self._chosen)))
        last = self._bare_line(lines)
        return (*lines, last) if last else lines

    def _bare_line(self, lines: Sequence[str]) -> str:
        """The items that no line holds, as many as fit beside the lines, in log order; empty if none."""
        seen = "\n".join(lines)
        left = self._tokens_max - (self._count(seen) + 1 if lines else 0) - self._count(BARE)
        fitting: list[tuple[int, str]] = []
        for item, index in self._bare.items():
            if left <= 1:
                break
            cost = self._count(f" {item}") + 1
            if cost <= left and _core(item) not in seen:
                left -= cost
                fitting.append((index, item))
        fitting.sort(key=lambda pair: pair[0])
        return BARE + ", ".join(item for _, item in fitting) if fitting else ""


def _joined(pins: Iterable[Pin]) -> Iterable[str]:
    """The lines of pins in log order. Words that did not stand together have a gap between them."""
    for _, group in groupby(pins, key=lambda pin: (pin.seq, pin.head)):
        line, place = "", -1
        for pin in group:
            if line and len(line) + len(pin.text) <= JOINED_CHARS_MAX:
                line += (" " if pin.place == place + 1 else GAP) + pin.text
            else:
                if line:
                    yield line
                line = pin.head + pin.text
            place = pin.place
        yield line


def _core(item: str) -> str:
    """What of an item tells it from others: `order A-1001` and `A-1001` are one thing."""
    last = item.rsplit(" ", 1)[-1]
    return last if len(last) >= 4 else item


def _distinct(pins: Sequence[Pin]) -> list[int]:
    """Of pins whose words are the same, the newest; nothing that has neither words nor items."""
    newest: dict[str, int] = {}
    for index, pin in enumerate(pins):
        if pin.text or pin.items:
            newest[" ".join(_WORD.findall(pin.text.casefold())) or pin.line] = index
    return sorted(newest.values())


def _rank(pin: Pin, index: int) -> tuple[int, int, int]:
    kind = _CLASSES[pin.kind]
    if pin.role == "user" and pin.is_bulk:
        kind = max(kind + 4, 5)
    elif pin.role != "user":
        # What the agent asks or settles is no rule of the user; its amounts and dates are mostly explanation.
        kind = _LAST_CLASS if kind > 3 else _BULK_CLASS if pin.is_bulk else max(kind, 2)
    return kind, _ROLES.get(pin.role, 3), -index


def _bare_items(pins: Sequence[Pin], ranked: Sequence[int]) -> dict[str, int]:
    """Items by the index of their pin, most important first. An amount of the agent's says nothing without its line."""
    wanted: dict[str, int] = {}
    for index in ranked:
        if pins[index].role == "user" or pins[index].kind not in ("quantity", "date"):
            for item in pins[index].items:
                wanted.setdefault(item, index)
    return wanted
