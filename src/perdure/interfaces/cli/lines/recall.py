"""What was found, as lines for a terminal. What was stored is data: it is shown, never obeyed."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from perdure.domain.context.recall import Hit, Neighbour, Recall, Understood
from perdure.domain.knowledge.memories import ROLE_OF_TRUST
from perdure.interfaces.cli.lines.conversation import HIT_CHARS, INDENT, WIDTH_MIN, body, local, one_line, wrapped

HEADINGS = ("", "score", "date", "who", "text")
SCORE_WIDTH, DATE_WIDTH, WHO_WIDTH_MAX = 6, 16, 16
GAP = "  "


def table(found: Recall, width: int, *, full: bool) -> Iterator[Text]:
    """A line for each hit, and for each message beside it. Texts are cut at the edge of the terminal unless `full`."""
    if not found.hits:
        return
    names = [HEADINGS[3], *map(_who, found.hits), *(_who(one) for hit in found.hits for one in hit.neighbours)]
    columns = (len(str(len(found.hits))), SCORE_WIDTH, DATE_WIDTH, min(WHO_WIDTH_MAX, max(map(cell_len, names))))
    room = None if full else max(WIDTH_MIN, width - sum(columns) - len(GAP) * len(columns))
    yield _row(HEADINGS, columns, room, "bold")
    for place, hit in enumerate(found.hits, 1):
        yield _row((str(place), f"{hit.score:.3f}", local(hit.at), _who(hit), one_line(_marked_text(hit))), columns, room)
        for now in hit.current:
            yield _row(("", "", local(now.since), "now", one_line(now.text)), columns, room, "dim")
        for one in hit.neighbours:
            yield _row(("", "", local(one.at), _who(one), one_line(one.text)), columns, room, "dim")


def explained(found: Recall, width: int, *, full: bool) -> Iterator[Text]:
    """How the question was read, then each hit with what every arm measured and added, and the reasons in words."""
    yield from _question(found.understood, width)
    for place, hit in enumerate(found.hits, 1):
        yield Text()
        yield Text.assemble(
            (f"{place}. ", "bold"),
            (f"{hit.score:.3f}", "bold"),
            f"{GAP}{hit.kind}",
            GAP,
            one_line(hit.id),
            GAP,
            (local(hit.at), "dim"),
            GAP,
            one_line(hit.speaker),
        )
        yield from body(_marked_text(hit), width, full=full, chars=HIT_CHARS)
        for now in hit.current:
            yield from wrapped(f"what holds now: {now.text}", width)
        yield from _scored(hit, width)
        for one in hit.neighbours:
            side = "before it" if one.seq < (hit.seq or 0) else "after it"
            yield Text.assemble((f"{INDENT}{side}", "dim"), GAP, (local(one.at), "dim"), GAP, one_line(one.speaker))
            yield from body(one.text, width, full=full, chars=HIT_CHARS)


def _marked_text(hit: Hit) -> str:
    """Its text, marked where it is not the user's word."""
    if hit.proposes is not None:
        return f"(proposed, not confirmed) {hit.text}"
    return hit.text if hit.kind != "memory" or hit.trust in (None, "user") else f"({ROLE_OF_TRUST[hit.trust]}) {hit.text}"


def _question(read: Understood, width: int) -> Iterator[Text]:
    span = read.time_range
    told = {
        "terms": ", ".join(read.terms) or "none",
        "names": ", ".join(read.names),
        "said by": ", ".join(read.roles),
        "time": "" if span is None else f"{span.start.isoformat()} to {span.end.isoformat()}",
    }
    for title, words in told.items():
        if words:
            yield from wrapped(f"{title}: {words}", width, indent="")


def _scored(hit: Hit, width: int) -> Iterator[Text]:
    trace = hit.trace
    name_width = max((len(name) for name in trace.arms), default=0)
    for name, arm in trace.arms.items():
        yield Text(f"{INDENT}{name:<{name_width}}  +{arm.share:.3f}  measured {arm.raw:.3f}")
    if trace.relevance != hit.score:
        yield Text(f"{INDENT}relevance {trace.relevance:.3f}")
    if trace.recency or trace.frequency:
        parts = f"similarity {trace.similarity:.3f}, recency {trace.recency:.3f}, frequency {trace.frequency:.3f}"
        yield Text(f"{INDENT}blended of {parts}")
    for reason in trace.why:
        yield from wrapped(one_line(reason), width, "dim")


def _who(one: Hit | Neighbour) -> str:
    """Who said it; of what nobody said as it stands, what it is."""
    return one_line(one.speaker if isinstance(one, Neighbour) or one.kind == "message" else one.kind)


def _row(cells: tuple[str, ...], columns: tuple[int, ...], room: int | None, style: str = "") -> Text:
    *first, text = cells
    line = GAP.join(set_cell_size(cell, wide) for cell, wide in zip(first, columns, strict=True))
    text = text.rstrip()
    cut = text if room is None or cell_len(text) <= room else f"{set_cell_size(text, room - 1).rstrip()}…"
    return Text(f"{line}{GAP}{cut}", style)
