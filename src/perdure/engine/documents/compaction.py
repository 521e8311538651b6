"""Compaction of a context document: what leaves the history, what the summary says of it, which facts and tasks stay.

The order is fixed: length, tokens, facts, tasks. `planned` decides and touches nothing; `apply` carries it out. Whatever
leaves the document is handed over in `archived`.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypedDict, get_args

from perdure.domain.conversation.digests import SummaryRequest
from perdure.domain.conversation.documents import Archived, CompactionReport, ContextData, HistoryEntry, Task
from perdure.domain.conversation.messages import Message, Role
from perdure.domain.errors import InvalidInput
from perdure.domain.scope import MessageId, SessionId
from perdure.domain.text.rules import brief, compact_json, utf8_size
from perdure.domain.times.instants import from_us
from perdure.domain.values import dataclass, replace
from perdure.engine.documents.json_form import entry_json, entry_of, task_json
from perdure.engine.text.tokens import estimate_tokens

SUMMARY_HEADING = "Previous conversation summary:"
TERMINAL = frozenset(
    {
        *("completed", "complete", "done", "finished", "succeeded", "success", "closed"),
        *("failed", "failure", "error", "errored", "timed_out", "timeout", "expired"),
        *("cancelled", "canceled", "aborted", "stopped", "skipped", "rejected"),
    }
)
KEPT_OF_TEN = 6
TOKENS_MIN = 64
SUMMARY_CHARS_MIN = 200
_CONDENSED = re.compile(r"- \((\d+) earlier entries are in the history only\)")
_CUT = re.compile(r" … \[cut from \d+ characters, whole in the history: ([0-9a-f]{16})\]\Z")
_FULL_STOPS = ".!…,;。！ "


class RuleFields(TypedDict, total=False):
    """The rules of a compaction by name, see `CompactionRules`."""

    max_history: int
    keep: int | None
    max_tokens: int
    summary_chars_max: int
    line_chars_max: int
    excerpt_chars_max: int
    task_keep_s: int
    terminal: Iterable[str]
    redact: Callable[[str], str] | None
    is_relevant: Callable[[str], bool] | None
    count_tokens: Callable[[str], int]


@dataclass(frozen=True, slots=True)
class CompactionRules:
    """When and how far a document is compacted."""

    max_history: int = 50
    """More entries than this are compacted to `keep`."""
    keep: int | None = None
    """Fewer than `max_history`; 60 % of it if not given."""
    max_tokens: int = 100_000
    """A history of more tokens loses its older half, until it has no more."""
    summary_chars_max: int = 8_000
    """The whole summary. Over it, its oldest lines become one line that says how many there were."""
    line_chars_max: int = 240
    """One line of the summary; at most a quarter of it."""
    excerpt_chars_max: int = 2_000
    """What stays of an entry that alone has more than `max_tokens`."""
    task_keep_s: int = 86_400
    """How long a finished task stays after its last change."""
    terminal: Iterable[str] = TERMINAL
    """Statuses that are an end, in any case, with blanks or hyphens for underscores."""
    redact: Callable[[str], str] | None = None
    """Applied to each whole content before a line of the summary is made of it."""
    is_relevant: Callable[[str], bool] | None = None
    """Facts for which it is false are removed."""
    count_tokens: Callable[[str], int] = estimate_tokens
    """For entries that state no count."""

    def __post_init__(self) -> None:
        smallest = {"max_history": 2, "max_tokens": TOKENS_MIN, "summary_chars_max": SUMMARY_CHARS_MIN, "line_chars_max": 20}
        for name, low in (smallest | {"excerpt_chars_max": 0, "task_keep_s": 0}).items():
            _check_at_least(getattr(self, name), low, name)
        if self.keep is not None:
            _check_at_least(self.keep, 1, "keep")
        if self.kept >= self.max_history:
            raise InvalidInput(
                f"`keep` = {brief(self.kept)} must be less than `max_history` = {brief(self.max_history)}, or every message "
                "compacts again; "
                "give only `max_history` to keep 60 % of it"
            )
        if isinstance(self.terminal, str) or not isinstance(self.terminal, Iterable):
            raise InvalidInput(f"`terminal` is a `{type(self.terminal).__name__}`; pass a list of statuses")
        object.__setattr__(self, "terminal", frozenset(_status(word) for word in self.terminal))

    @property
    def kept(self) -> int:
        return self.max_history * KEPT_OF_TEN // 10 if self.keep is None else self.keep

    @property
    def line_chars(self) -> int:
        return min(self.line_chars_max, self.summary_chars_max // 4)


@dataclass(frozen=True, slots=True)
class CompactionPlan:
    """The document's changed fields as they will be, and what leaves it."""

    recent_history: tuple[HistoryEntry, ...]
    long_term_summary: str
    facts: tuple[str, ...]
    active_tasks: tuple[Task, ...]
    from_the_future: tuple[Task, ...]
    """Finished tasks whose last change lies ahead of the clock: they age from now on."""
    archived: tuple[Archived, ...]
    report: CompactionReport
    now_s: int


def planned(context: ContextData, rules: CompactionRules, *, now_s: int, force: bool = False) -> CompactionPlan:
    """Decide; the same document, rules and instant give the same plan."""
    utf8_size(context.long_term_summary, "`long_term_summary`")
    history = _History(context.recent_history, rules)
    tokens_before = sum(history.tokens)
    history.limit_length(force=force)
    history.limit_tokens()
    summary, dropped, condensed = _bounded_summary(
        _with_lines(context.long_term_summary, history.lines), rules.summary_chars_max
    )
    facts = _facts(context.facts, rules.is_relevant)
    bodies = {id(task): task_json(task, f"active_tasks[{place}]") for place, task in enumerate(context.active_tasks)}
    tasks, finished, ahead = _tasks(context.active_tasks, rules, now_s)
    archived = [
        *history.archived,
        *(Archived("summary", text) for text in dropped),
        *(Archived("fact", fact) for fact in _gone(context.facts, facts)),
        *(Archived("task", bodies[id(task)]) for task in finished),
    ]
    report = CompactionReport(
        summarised=len(history.lines),
        shortened=history.shortened,
        condensed=condensed,
        facts_removed=len(context.facts) - len(facts),
        tasks_removed=len(finished),
        tokens_before=tokens_before,
        tokens_after=sum(history.tokens),
    )
    return CompactionPlan(
        recent_history=tuple(history.entries),
        long_term_summary=summary,
        facts=tuple(facts),
        active_tasks=tuple(tasks),
        from_the_future=tuple(ahead),
        archived=tuple(archived),
        report=report,
        now_s=now_s,
    )


def summary_request(context: ContextData, count: int, rules: CompactionRules) -> SummaryRequest:
    """What a summariser is asked: carry the summary on over the oldest entries, which leave the document."""
    said = tuple(_as_message(entry, place, rules) for place, entry in enumerate(context.recent_history[:count], 1))
    asked = next((one.content for one in reversed(said) if one.role == "user"), "")
    return SummaryRequest("fold", context.long_term_summary, said, rules.summary_chars_max, question=asked)


def _as_message(entry: HistoryEntry, place: int, rules: CompactionRules) -> Message:
    return Message(
        id=MessageId(f"entry-{place}"),
        session=SessionId("document"),
        session_number=1,
        seq=place,
        role=entry.role if entry.role in get_args(Role) else "user",  # type: ignore[arg-type]
        content=_redacted(entry, rules),
        at=from_us(entry.timestamp * 1_000_000),
        tokens=entry.token_count or 0,
        metadata={},
    )


def with_summary(plan: CompactionPlan, text: str, before: str) -> CompactionPlan:
    """The plan with a summary that somebody wrote; the one before it is archived, since it may say more."""
    dropped = [one for one in plan.archived if one.kind != "summary"]
    kept = [Archived("summary", before)] if before.strip() and before != text else []
    return replace(plan, long_term_summary=text, archived=(*dropped, *kept), report=replace(plan.report, condensed=0))


def apply(context: ContextData, plan: CompactionPlan) -> None:
    """Carry the plan out, in the lists the caller holds."""
    context.recent_history[:] = plan.recent_history
    context.long_term_summary = plan.long_term_summary
    context.facts[:] = plan.facts
    context.active_tasks[:] = plan.active_tasks
    for task in plan.from_the_future:
        task.updated_at = plan.now_s
    context.archived.extend(plan.archived)
    context.last_compaction = plan.report


def full_history(archived: Sequence[Archived], recent: Iterable[HistoryEntry]) -> list[HistoryEntry]:
    """Every entry there ever was, in order and whole: those that left the document, then those in it."""
    wholes = whole_entries(archived)
    entries = [entry_of(one.body) for one in archived if one.kind == "entry"]
    return [excerpt_chain(entry, wholes)[-1] for entry in (*entries, *recent)]


def whole_entries(archived: Iterable[Archived]) -> dict[str, HistoryEntry]:
    """The entries of which excerpts stayed, by what an excerpt names them."""
    found = [entry_of(one.body) for one in archived if one.kind == "whole"]
    return {_key(entry): entry for entry in found}


def excerpt_chain(entry: HistoryEntry, wholes: Mapping[str, HistoryEntry]) -> list[HistoryEntry]:
    """The entry, and what it is an excerpt of, the whole one last: an excerpt may have been cut again."""
    chain = [entry]
    while (found := _CUT.search(chain[-1].content)) and found[1] in wholes:
        chain.append(wholes[found[1]])
    return chain


Kept = tuple[ContextData, Sequence[Archived]]
"""A document, and what was taken out of it."""


def added(held: Kept, given: Kept) -> list[Archived] | None:
    """What the archive of `held` lacks for it to become `given`; None if `given` does not continue it."""
    (old, old_archive), (new, new_archive) = held, given
    entries, others = _by_kind(new_archive)
    old_entries, old_others = _by_kind(old_archive)
    before, after = full_history(old_archive, old.recent_history), full_history(new_archive, new.recent_history)
    is_earlier = after[: len(before)] == before and others[: len(old_others)] == old_others
    if not is_earlier or len(entries) < len(old_entries):
        return None
    entries, others = entries[len(old_entries) :], others[len(old_others) :]
    held_wholes, wholes = whole_entries(old_archive), whole_entries(new_archive)
    chains = [excerpt_chain(entry, wholes) for entry in (*(entry_of(one.body) for one in entries), *new.recent_history)]
    lacking = {key: entry for chain in chains for entry in chain[1:] if (key := _key(entry)) not in held_wholes}
    return [*(Archived("whole", entry_json(entry)) for entry in lacking.values()), *entries, *others]


def _by_kind(archived: Iterable[Archived]) -> tuple[list[Archived], list[Archived]]:
    """Entries, and what is not of the history."""
    kinds: dict[str, list[Archived]] = {"entry": [], "whole": [], "": []}
    for one in archived:
        kinds.get(one.kind, kinds[""]).append(one)
    return kinds["entry"], kinds[""]


def normalised_fact(fact: str) -> str:
    """Equal for facts that differ only in case, blanks, width of characters or the full stop."""
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", fact).casefold())
    return " ".join(text.split()).rstrip(_FULL_STOPS) or text.strip()


class _History:
    """The history while it is being cut: what stays, what it costs, and what has left."""

    def __init__(self, entries: Sequence[HistoryEntry], rules: CompactionRules) -> None:
        self._rules = rules
        self._bodies = [entry_json(entry, f"recent_history[{place}]") for place, entry in enumerate(entries)]
        self._whole = [True] * len(entries)
        self.entries = list(entries)
        self.tokens = [self._count(entry) for entry in entries]
        self.lines: list[str] = []
        self.archived: list[Archived] = []
        self.shortened = 0

    def limit_length(self, *, force: bool) -> None:
        count, keep = len(self.entries), self._rules.kept
        if count > self._rules.max_history or (force and count > keep):
            self._take(self._boundary(count - keep, at_least=max(1, count - self._rules.max_history)))
        elif force and count > 1:
            self._take(self._boundary(count // 2, at_least=1))

    def limit_tokens(self) -> None:
        while sum(self.tokens) > self._rules.max_tokens:
            count = len(self.entries)
            cut = self._boundary(count // 2, at_least=1)
            # One entry that alone is too much, and would stay, must not cost us all the others.
            staying = range(cut if cut < count else 0, count)
            huge = [place for place in staying if self._whole[place] and self.tokens[place] > self._rules.max_tokens]
            if huge:
                for place in huge:
                    self._shorten(place)
            elif cut < count or not self._shorten_largest():
                self._take(cut)

    def _count(self, entry: HistoryEntry) -> int:
        if entry.token_count is not None:
            return entry.token_count
        return self._rules.count_tokens(entry.content)

    def _boundary(self, wanted: int, *, at_least: int) -> int:
        """How many of the oldest to take: `wanted`, or fewer, so that no result loses its call; more if fewer is too few."""
        follows = _results_of_calls(self.entries)
        back = wanted
        while back and follows[back]:
            back -= 1
        if back >= at_least:
            return back
        forward = max(wanted, at_least)
        while forward < len(follows) and follows[forward]:
            forward += 1
        return forward

    def _take(self, count: int) -> None:
        self.archived += [Archived("entry", body) for body in self._bodies[:count]]
        self.lines += [_line(entry, self._rules) for entry in self.entries[:count]]
        del self.entries[:count], self._bodies[:count], self.tokens[:count], self._whole[:count]

    def _shorten_largest(self) -> bool:
        """Shorten the entry that costs most, if that helps."""
        place = max(range(len(self.entries)), key=self.tokens.__getitem__)
        return self._whole[place] and self._shorten(place)

    def _shorten(self, place: int) -> bool:
        short, tokens = self._excerpt(self.entries[place])
        self._whole[place] = False
        if tokens >= self.tokens[place]:
            return False
        self.archived.append(Archived("whole", self._bodies[place]))
        self.entries[place] = short
        self._bodies[place] = entry_json(short)
        self.tokens[place] = tokens
        self.shortened += 1
        return True

    def _excerpt(self, entry: HistoryEntry) -> tuple[HistoryEntry, int]:
        mark = f" … [cut from {len(entry.content)} characters, whole in the history: {_key(entry)}]"
        chars = min(self._rules.excerpt_chars_max, len(entry.content))
        while True:
            content = entry.content[:chars].rstrip() + mark
            tokens = self._rules.count_tokens(content)
            if tokens <= self._rules.max_tokens or not chars:
                return HistoryEntry(entry.timestamp, entry.role, content, tokens), tokens
            chars //= 2


def _key(entry: HistoryEntry) -> str:
    """What an excerpt names its whole entry by."""
    return hashlib.sha256(compact_json(entry_json(entry)).encode()).hexdigest()[:16]


def _results_of_calls(entries: Sequence[HistoryEntry]) -> list[bool]:
    """For each entry whether it is a tool's result that belongs to the assistant entry before it."""
    follows: list[bool] = []
    for place, entry in enumerate(entries):
        follows.append(entry.role == "tool" and place > 0 and (follows[-1] or entries[place - 1].role == "assistant"))
    return follows


def _redacted(entry: HistoryEntry, rules: CompactionRules) -> str:
    content = entry.content if rules.redact is None else rules.redact(entry.content)
    if not isinstance(content, str):
        raise InvalidInput(f"`redact` gave a `{type(content).__name__}`, not text; return the text with secrets replaced")
    return content


def _line(entry: HistoryEntry, rules: CompactionRules) -> str:
    line = f"- {entry.role}: {' '.join(_redacted(entry, rules).split())}".rstrip()
    return line if len(line) <= rules.line_chars else line[: rules.line_chars - 1].rstrip() + "…"


def _with_lines(summary: str, lines: Sequence[str]) -> str:
    if not lines:
        return summary
    parts = summary.rstrip().split("\n") if summary.strip() else []
    if SUMMARY_HEADING not in parts:
        parts.append(SUMMARY_HEADING)
    return "\n".join([*parts, *lines])


def _bounded_summary(summary: str, chars_max: int) -> tuple[str, list[str], int]:
    """The summary within its budget, the texts that left it, and how many lines those were."""
    if len(summary) <= chars_max:
        return summary, [], 0
    before, _, after = f"\n{summary}\n".partition(f"\n{SUMMARY_HEADING}\n")
    before, lines = before.strip("\n"), [line for line in after.split("\n") if line]
    dropped = []
    room = chars_max // 2 if lines else chars_max
    if len(before) > room:
        dropped.append(before)
        before = before[: room - 1].rstrip() + "…"
    if not lines:
        return before, dropped, len(dropped)
    earlier = 0
    if known := _CONDENSED.fullmatch(lines[0]):
        earlier = int(known[1])
        del lines[0]
    head = [before] if before else []
    free = chars_max - sum(len(part) + 1 for part in [*head, SUMMARY_HEADING, _condensed_line(earlier + len(lines))])
    stays = 0
    while stays < len(lines) and free >= len(lines[-stays - 1]) + 1:
        stays += 1
        free -= len(lines[-stays]) + 1
    leaving = lines[: len(lines) - stays]
    if leaving:
        dropped.append("\n".join(leaving))
    earlier += sum(line.startswith("- ") for line in leaving)
    told = [_condensed_line(earlier)] if earlier else []
    return "\n".join([*head, SUMMARY_HEADING, *told, *lines[len(leaving) :]]), dropped, len(leaving)


def _condensed_line(entries: int) -> str:
    return f"- ({entries} earlier entries are in the history only)"


def _facts(facts: Sequence[str], is_relevant: Callable[[str], bool] | None) -> list[str]:
    """Each fact once, in its first spelling, sorted by code point."""
    first: dict[str, str] = {}
    for place, fact in enumerate(facts):
        utf8_size(fact, f"`facts[{place}]`")
        if fact.strip() and (is_relevant is None or is_relevant(fact)):
            first.setdefault(normalised_fact(fact), fact)
    return sorted(first.values())


def _gone(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """The spellings that are no longer there, each once."""
    kept = set(after)
    return [fact for fact in dict.fromkeys(before) if fact not in kept]


def _tasks(tasks: Sequence[Task], rules: CompactionRules, now_s: int) -> tuple[list[Task], list[Task], list[Task]]:
    """Which tasks stay, which have been finished for long, and which say they were finished in the future."""
    staying: list[Task] = []
    finished: list[Task] = []
    ahead: list[Task] = []
    for task in tasks:
        is_finished = _status(task.status) in rules.terminal
        (finished if is_finished and now_s - task.updated_at >= rules.task_keep_s else staying).append(task)
        if is_finished and task.updated_at > now_s:
            ahead.append(task)
    return staying, finished, ahead


def _status(word: str) -> str:
    utf8_size(word, "a status")
    return re.sub(r"[\s-]+", "_", word.strip().casefold())


def _check_at_least(value: int, low: int, name: str) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < low:
        raise InvalidInput(f"`{name}` = {brief(value)} must be a whole number of at least {low}")
