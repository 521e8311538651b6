"""A context document seen over the log: which messages its history shows, and what saving it adds to the log.

The log is never changed. What a caller took out of the history is told by a fold; what stands there otherwise than in the
log (an excerpt, another order, a gap) is noted beside it, in a `DocumentRecord`.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from perdure.domain.conversation.documents import Archived, ContextData, HistoryEntry
from perdure.domain.conversation.messages import Message, NewMessage
from perdure.domain.conversation.tally import Tally
from perdure.domain.errors import Conflict, InvalidInput
from perdure.domain.text.rules import Json, compact_json
from perdure.domain.times.instants import from_us, to_us
from perdure.domain.values import dataclass, field
from perdure.engine.conversation.append import TOKENS_MAX
from perdure.engine.documents.compaction import excerpt_chain, whole_entries
from perdure.engine.documents.json_form import DOCUMENT_FIELDS, document_json, document_of, entry_json, entry_of

FORM = 1
MARK = "context"
"""Under this name a message's metadata holds what an entry says and a message cannot."""
FIRST_S, LAST_S = (to_us(datetime.fromisoformat(f"{year}-01-01T00:00:00+00:00")) // 1_000_000 for year in ("0002", "9998"))
IN_LOG = frozenset({"recent_history", "long_term_summary"})
Run = tuple[int, int]
"""Messages by their first and last number, both included."""
Key = tuple[int, str, str, int | None]


@dataclass(frozen=True, slots=True)
class LogPosition:
    """Where the log stood when a context was loaded or saved. Travels with the context, as its `lineage`."""

    document: str
    """Which document it is, among those that had its id one after the other; empty if it was never saved."""
    copy: str
    """Tells contexts that were loaded apart."""
    boundary: int = 0
    last: int = 0
    fold: int = 0
    """The version of the newest fold; 0 if there is none."""
    unseen: tuple[Run, ...] = ()
    """Messages up to `last` that the context does not have: they arrived while it was being worked on."""

    def render(self) -> str:
        unseen = ",".join(f"{first}-{last}" for first, last in self.unseen)
        return f"{self.document}/{self.copy}/{self.boundary}/{self.last}/{self.fold}/{unseen}"

    @classmethod
    def parse(cls, text: str) -> LogPosition | None:
        """None if `text` says nothing; `Conflict` if it comes from elsewhere."""
        if not text:
            return None
        try:
            document, copy, boundary, last, fold, runs = text.split("/")
            unseen = [run.split("-") for run in runs.split(",") if run]
            return cls(document, copy, int(boundary), int(last), int(fold), tuple((int(one), int(two)) for one, two in unseen))
        except ValueError:
            raise Conflict(
                "the context was loaded from another storage; use `copy_contexts`, or load it from this one"
            ) from None


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """What the store holds of a document besides the log."""

    document: str
    session: str | None
    """The session of the log; None while nothing was said."""
    boundary: int
    last: int
    fold: int
    unseen: tuple[Run, ...]
    """Their tool calls and tokens are not in the document's counters."""
    fields: dict[str, Json]
    """The document without history and summary; its facts in order of arrival."""
    facts_sorted: bool = False
    summary: str | None = None
    """Only while no fold tells it."""
    shown: tuple[int, ...] | None = None
    """Which messages the history shows; None if it is those after the boundary, in order."""
    forms: dict[int, tuple[HistoryEntry, ...]] = field(default_factory=dict)
    """Messages of which an excerpt is shown: one after the other as it was cut, the shown one last."""
    taught: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Its own facts that were remembered, and as which statements."""

    def body(self) -> dict[str, Json]:
        return {
            "form": FORM,
            "document": self.document,
            "session": self.session,
            "boundary": self.boundary,
            "last": self.last,
            "fold": self.fold,
            "unseen": [list(run) for run in self.unseen],
            "fields": self.fields,
            "facts_sorted": self.facts_sorted,
            "summary": self.summary,
            "shown": None if self.shown is None else list(self.shown),
            "forms": {str(seq): [entry_json(entry) for entry in forms] for seq, forms in self.forms.items()},
            "taught": {fact: list(ids) for fact, ids in self.taught.items()},
        }

    @classmethod
    def of(cls, body: Any) -> DocumentRecord:
        """Raises if it is not the body of a record."""
        if body["form"] != FORM:
            raise ValueError(f"form {body['form']}, written by another version")
        return cls(
            body["document"],
            body["session"],
            body["boundary"],
            body["last"],
            body["fold"],
            tuple((first, last) for first, last in body["unseen"]),
            dict(body["fields"]),
            body["facts_sorted"],
            body["summary"],
            None if body["shown"] is None else tuple(body["shown"]),
            {int(seq): tuple(map(entry_of, forms)) for seq, forms in body["forms"].items()},
            {fact: tuple(ids) for fact, ids in body.get("taught", {}).items()},
        )

    def places(self, boundary: int, last: int) -> list[int]:
        """Which messages the history shows now that boundary and end of the log are these."""
        shown = range(self.boundary + 1, self.last + 1) if self.shown is None else self.shown
        before = range(boundary + 1, self.boundary + 1)  # a fold was undone
        after = range(max(boundary, self.last) + 1, last + 1)
        return [*before, *(seq for seq in shown if seq > boundary), *after]


@dataclass(frozen=True, slots=True)
class ShownMessage:
    """One entry of a history: the message behind it, and how it was cut, if it was."""

    seq: int
    entry: HistoryEntry
    forms: tuple[HistoryEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class HistoryChange:
    """What saving a history does: messages to append, numbered from the end of the log on, and what is shown then."""

    new: tuple[HistoryEntry, ...]
    places: tuple[int, ...]
    forms: dict[int, tuple[HistoryEntry, ...]]

    def boundary(self, last: int) -> int:
        """Where the working set has to begin, when the log ends at `last`."""
        return min(self.places, default=last + 1) - 1

    def told_places(self, last: int) -> tuple[int, ...] | None:
        """The places, if it takes more than the boundary to tell them."""
        return None if self.places == tuple(range(self.boundary(last) + 1, last + 1)) else self.places


def entry_of_message(message: Message) -> HistoryEntry:
    """A message as a history shows it. Calls of tools, which an entry has no field for, are its text if it has no other."""
    said = message.metadata.get(MARK, {})
    content = message.content
    if not content and message.tool_calls:
        content = "\n".join(f"{call.name}({compact_json(call.arguments)})" for call in message.tool_calls)
    timestamp = said.get("timestamp", to_us(message.at) // 1_000_000)
    return HistoryEntry(timestamp, message.role, content, said.get("token_count", message.tokens))


def message_of_entry(entry: HistoryEntry, *, message_id: str, session: str) -> NewMessage:
    """The message that `entry_of_message` makes `entry` of."""
    said: dict[str, Json] = {}
    tokens, at_s = entry.token_count, min(max(entry.timestamp, FIRST_S), LAST_S)
    if tokens is None or tokens > TOKENS_MAX:
        said["token_count"] = tokens
        tokens = None if tokens is None else TOKENS_MAX
    if at_s != entry.timestamp:
        said["timestamp"] = entry.timestamp
    at = from_us(at_s * 1_000_000)
    return NewMessage(
        role=entry.role,
        content=entry.content,
        id=message_id,
        at=at,
        session=session,
        tokens=tokens,
        metadata={MARK: said} if said else None,
    )


def changed(
    base: Sequence[ShownMessage],
    arrived: Sequence[int],
    last: int,
    recent: Sequence[HistoryEntry],
    archived: Sequence[Archived],
) -> HistoryChange:
    """What became of a history that showed `base`; messages that `arrived` meanwhile stand where the log has them.

    An entry that is neither of the base nor an excerpt of one of it is new. So an entry that was edited is said anew, and
    the log keeps what was said at first.
    """
    wholes = whole_entries(archived)
    taken = [entry_of(one.body) for one in archived if one.kind == "entry"]
    chains = [excerpt_chain(entry, wholes) for entry in (*taken, *recent)]
    known = {_key(one.entry) for one in base}
    links = [next((link for link, entry in enumerate(chain) if _key(entry) in known), len(chain) - 1) for chain in chains]
    matches = _matched(
        [_key(one.entry) for one in base], [_key(chain[link]) for chain, link in zip(chains, links, strict=True)]
    )
    new: list[HistoryEntry] = []
    places: list[int] = []
    forms: dict[int, tuple[HistoryEntry, ...]] = {}
    follows = 0  # how many of the places are those of the base, or before one of it
    for number, (chain, link, match) in enumerate(zip(chains, links, matches, strict=True)):
        cut = tuple(reversed(chain[:link]))
        if match is None:
            new.append(chain[-1])
            seq, cut = last + len(new), tuple(reversed(chain[:-1]))
        else:
            seq, cut = base[match].seq, base[match].forms + cut
        if number < len(taken):
            continue
        places.append(seq)
        if cut:
            forms[seq] = cut
        if match is not None:
            follows = len(places)
    for seq in arrived:
        places.insert(next((place for place in range(follows) if places[place] > seq), follows), seq)
        follows += 1
    return HistoryChange(tuple(new), tuple(places), forms)


def _matched(base: Sequence[Key], given: Sequence[Key]) -> list[int | None]:
    """For each of `given`, which of `base` it is; each of them once."""
    for start, key in enumerate(base):
        # As a rule, the oldest were cut off and something was added at the end.
        if given and key == given[0] and base[start:] == given[: len(base) - start]:
            return [*range(start, len(base)), *[None] * (len(given) - len(base) + start)]
    free: defaultdict[Key, deque[int]] = defaultdict(deque)
    for number, key in enumerate(base):
        free[key].append(number)
    return [free[key].popleft() if free[key] else None for key in given]


def _key(entry: HistoryEntry) -> Key:
    return entry.timestamp, entry.role, entry.content, entry.token_count


def fields_of(context: ContextData, held: DocumentRecord | None) -> tuple[dict[str, Json], bool]:
    """The document without history and summary, and whether it shows its facts sorted. They are kept as they arrived."""
    fields = {name: value for name, value in document_json(context).items() if name not in IN_LOG}
    facts: list[str] = fields["facts"]
    arrived = _in_order_of_arrival([] if held is None else held.fields["facts"], facts)
    if arrived == facts or sorted(arrived) != facts:
        return fields, False
    return fields | {"facts": arrived}, True


def _in_order_of_arrival(held: Iterable[str], given: Sequence[str]) -> list[str]:
    left: defaultdict[str, int] = defaultdict(int)
    for fact in given:
        left[fact] += 1
    staying: list[str] = []
    for fact in held:
        if left[fact]:
            left[fact] -= 1
            staying.append(fact)
    for fact in given:
        if left[fact]:
            left[fact] -= 1
            staying.append(fact)
    return staying


def document(
    session_id: str, record: DocumentRecord | None, entries: Iterable[HistoryEntry], summary: str, since: Tally
) -> ContextData:
    """The document as it stands: as last saved, and what the log says since."""
    fields: dict[str, Json] = {}
    if record is not None:
        fields = dict(record.fields)
        if record.facts_sorted:
            fields["facts"] = sorted(fields["facts"])
        if fields.keys() != set(DOCUMENT_FIELDS) - IN_LOG or fields["session_id"] != session_id:
            raise InvalidInput("its fields are not those of the document")
    context = document_of(fields | {"recent_history": [], "long_term_summary": ""}) if fields else ContextData(session_id)
    context.recent_history += entries
    context.long_term_summary = summary
    for tool, calls in since.by_tool.items():
        context.tool_stats.by_tool[tool] = context.tool_stats.by_tool.get(tool, 0) + calls
        context.tool_stats.total_calls += calls
    context.tool_stats.failures += since.failures
    context.token_usage.count(input_tokens=since.input_tokens, output_tokens=since.output_tokens)
    return context
