"""Before a goal: chooses what to give to the agent, or nothing; says why; never loads a value to choose."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from perdure.domain.context.context import Block
from perdure.domain.context.recall import Hit, Recall, RecallQuery
from perdure.domain.conversation.messages import MessageQuery, Session
from perdure.domain.errors import LimitExceeded, Unavailable
from perdure.domain.knowledge.memories import Statement
from perdure.domain.models import Consultation
from perdure.domain.oversight import Choice, ChoiceKind, Decision, Injection
from perdure.domain.scope import Scope
from perdure.domain.series import Series
from perdure.domain.state import KeyInfo
from perdure.domain.text.rules import Json
from perdure.domain.text.secrets import without_secrets_in
from perdure.domain.times.instants import to_us
from perdure.domain.times.spans import Span
from perdure.domain.values import dataclass, field, replace
from perdure.engine.context.blocks import UNTRUSTED_SHARE, ContextList, found_block, listed_block
from perdure.engine.oversight.offers import (
    ItemForms,
    as_stable,
    blocks_of,
    offered,
    preview_form,
    series_forms,
    state_forms,
    values_of,
    visible,
)
from perdure.engine.times.question import TimeRange, Weekday, extract_time_range
from perdure.ports.clock import Clock
from perdure.ports.store import Store, Tx, View
from perdure.ports.tables.oversight import DECISIONS_KEPT
from perdure.services.context.knowledge import KnowledgeReader, line_of
from perdure.services.context.recall import RecallService
from perdure.services.index.writes import enter_echoes
from perdure.services.models.consultant import Consultant, Question, TooLate, run_within
from perdure.services.models.prompted import prompt_named
from perdure.services.oversight.log import tell_coverage
from perdure.services.oversight.request import BeforeRequest, check_request
from perdure.services.series.series import FRESH_S, QueryOptions, SeriesService
from perdure.services.series.state import PREVIEW_CHARS, StateService

if TYPE_CHECKING:
    from perdure.engine.oversight.choice import RankedItem
    from perdure.engine.oversight.relevance import Catalogue, Naming, Vectors

KEYS_MAX = 5_000
"""Keys and series that are looked at; a user with more is told so."""
OFFERED_MAX = 30
"""What a model is shown: more names would cost more than they tell (B-23)."""
ENTRIES_SHOWN_MAX = 50
EARLIEST, LATEST = datetime(1970, 1, 1, tzinfo=UTC), datetime(9000, 1, 1, tzinfo=UTC)
MODEL_SHARE = 0.8
"""Of the time there is, what a model may take: the rest of the work needs some, too."""
SMALL_BYTES = 65_536
LOADED_BYTES_MAX = 16_777_216
"""Of all chosen values together; what is beyond is shown by how it begins."""
OPEN_SESSIONS_MAX, TURN_MESSAGES = 100, 8
"""A host may hold several conversations with a user at once; the goal is of the one in which something was said last."""
CARDS_MAX, CARD_HITS = 8, 3
"""So many cards at most, of those that an earlier goal had and of those that the best of what was found is about."""
CHOICES_KEPT_MAX = 40
"""Of what was left out, so much is told."""
FOUND_MAX = 30
FOUND_TOKENS = 200
"""What was found takes no more, however much more there would be room for: it is there to remind, not to be read through."""
KINDS = ("message", "memory", "todo", "digest")
GOAL_KEPT_CHARS = 200
STABLE_SHARE = 0.5
SHRINK = 0.8
TRIES_MAX = 12


@dataclass(slots=True)
class _Work:
    """One decision while it is made."""

    scope: Scope
    asked: BeforeRequest
    now: datetime
    until: float
    notes: list[str] = field(default_factory=list)
    choices: list[Choice] = field(default_factory=list)
    calls: int = 0
    outcome: str = "rules"
    time_range: TimeRange | None = None
    span: Span | None = None
    opens: bool = False
    """Whether the goal needs anything of the user's."""
    looks: bool = False
    """Whether what was told lately is looked through for what says who they are, or limits it."""
    naming: Sequence[Naming] = ()
    """How the goal names each of what is saved."""
    cards: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _SavedThings:
    """What there is to choose from: the keys, then the series."""

    keys: Sequence[KeyInfo] = ()
    series: Sequence[Series] = ()
    left_out: bool = False

    def catalogue(self, vectors: Vectors | None) -> Catalogue:
        names = tuple((info.key, info.preview or "") for info in self.keys)
        return _catalogue(names, tuple((one.name, one.spec.description) for one in self.series), vectors)

    def saved_at(self, place: int) -> datetime:
        count = len(self.keys)
        return self.keys[place].updated_at if place < count else self.series[place - count].last_updated


@dataclass(frozen=True, slots=True)
class _Turn:
    """Where in a conversation the goal is asked."""

    earlier_cards: tuple[str, ...] = ()
    session: Session | None = None
    """The one that the goal was said in: the agent has its working set before it already."""

    def is_at_hand(self, hit: Hit) -> bool:
        """Whether it was said just now, so that it need not be told again."""
        session = self.session
        return session is not None and hit.session == session.id and (hit.seq or 0) > session.boundary_seq


@dataclass(frozen=True, slots=True)
class Overseer:
    store: Store
    clock: Clock
    state: StateService
    series: SeriesService
    recall: RecallService
    knowledge: KnowledgeReader
    consultant: Consultant | None
    """None: the rules choose alone."""
    count: Callable[[str], int]
    zone: str
    week_start: Weekday
    idle: timedelta
    """More silence than this ends a session."""
    vectors: Vectors | None

    def before(self, scope: Scope, asked: BeforeRequest) -> Injection:
        """What to give to the agent for this goal. It does not raise for a slow or wrong model: it says so."""
        check_request(asked)
        began = self.clock.monotonic()
        work = _Work(scope, asked, self.clock.now(), began + asked.deadline_s)
        work.time_range = extract_time_range(asked.goal, work.now, self.zone, week_start=self.week_start)
        turn, held, answer = self._saved_and_recalled(work)
        offers = self._offers(held, work)
        blocks, shown = self._packed(turn, offers, answer, work)
        tell_coverage(shown)
        took_ms = (self.clock.monotonic() - began) * 1000
        made = self._injection(blocks, shown, work, took_ms)
        try:
            self._record(made, work)
        except (Unavailable, LimitExceeded) as error:
            # A full disk is no reason to send the agent off without what was found.
            return replace(made, notes=(*made.notes, f"the decision could not be recorded: {error}"))
        return made

    # -- what there is

    def _saved_and_recalled(self, work: _Work) -> tuple[_Turn, _SavedThings, Recall | None]:
        """What is saved, and what was found for the goal, without what was said just now; and whether the goal opens for it."""
        from perdure.engine.oversight.choice import is_open
        from perdure.engine.oversight.needs import MAYBE_MIN, needs
        from perdure.engine.oversight.relevance import Naming, naming_of
        from perdure.engine.oversight.statements import is_whole, looks_at_statements

        goal = work.asked.goal
        if is_whole(goal):
            return _Turn(), _SavedThings(), None
        turn, held = self.store.read(work.scope.owner, lambda view: (self._turn(view, work), self._saved_things(view, work)))
        if held.left_out:  # told here: a read may be made again
            work.notes.append(f"only the first {KEYS_MAX} keys were looked at")
        answer = self._recalled(work)
        if answer is not None:
            answer = replace(answer, hits=tuple(hit for hit in answer.hits if not turn.is_at_hand(hit)))
        hits, entities = ((), ()) if answer is None else (answer.hits, answer.understood.names)
        needed = needs(goal, timed=work.time_range is not None)
        work.naming = naming_of(goal, held.catalogue(self.vectors))
        naming = max(work.naming, default=Naming.NOT)
        work.opens = is_open(goal, hits, needed=needed, entities=entities, naming=naming)
        work.looks = looks_at_statements(goal, likely=work.opens or needed >= MAYBE_MIN)
        return turn, held, answer

    def _turn(self, view: View, work: _Work) -> _Turn:
        from perdure.engine.oversight.choice import was_said_last

        address = work.scope.address
        recent, open_ones, latest = view.together(
            lambda: view.oversight.list_decisions(limit=1, kind="before", address=address),
            lambda: view.conversation.open_sessions(address, limit=OPEN_SESSIONS_MAX),
            lambda: view.list_messages(MessageQuery(address, TURN_MESSAGES)),
        )
        live = [one for one in open_ones if work.now - one.last_at <= self.idle]
        session = max(live, key=lambda one: (one.last_at, one.number), default=None)
        if session is not None and all(message.session_number != session.number for message in latest):
            latest = view.list_messages(MessageQuery(address, TURN_MESSAGES, session.number))
        cards = recent[0].body.get("cards") if recent else ()
        return _Turn(
            earlier_cards=tuple(str(card) for card in cards) if isinstance(cards, list) else (),
            session=session if session and was_said_last(work.asked.goal, session, latest) else None,
        )

    def _saved_things(self, view: View, work: _Work) -> _SavedThings:
        keys, series = view.together(
            lambda: self.state.keys_in(view, work.now, limit=KEYS_MAX + 1),
            lambda: view.series.list_series(after=None, limit=KEYS_MAX),
        )
        return _SavedThings(keys[:KEYS_MAX], series, len(keys) > KEYS_MAX)

    def _ranked(self, held: _SavedThings, work: _Work) -> list[RankedItem]:
        """The keys and series that are most relevant to the goal."""
        from perdure.engine.oversight.choice import ranked
        from perdure.engine.oversight.relevance import scores

        catalogue = held.catalogue(self.vectors)
        found = scores(work.asked.goal, catalogue, timed=work.time_range is not None)
        return ranked(catalogue.candidates, found, work.naming, held.saved_at, limit=CHOICES_KEPT_MAX)

    # -- keys and series

    def _offers(self, held: _SavedThings, work: _Work) -> list[ItemForms]:
        """The chosen state keys and series, with what can be shown of them."""
        from perdure.engine.oversight.choice import chosen_by_rules
        from perdure.engine.oversight.statements import asks_about_the_user

        if not held.keys and not held.series:
            return []
        order = self._ranked(held, work)
        left_out = len(held.keys) + len(held.series) - len(order)
        choices = None if self.consultant is None else self._by_model(self.consultant, order, left_out, work)
        if choices is None:
            timed, about_user = work.time_range is not None, asks_about_the_user(work.asked.goal)
            choices = chosen_by_rules(order, opens=work.opens, timed=timed, about_user=about_user)
        work.choices += choices
        if left_out:
            work.notes.append(f"{left_out} more keys are less relevant")
        if work.time_range is not None:
            work.span = self._span(work.time_range, work.now)
        infos = {one.candidate.id: held.keys[one.place] for one in order if one.candidate.kind == "state"}
        series = {one.name: one for one in held.series}
        chosen = [one for one in choices if one.included]
        small = [one.id for one in chosen if one.kind == "state" and infos[one.id].size_bytes <= SMALL_BYTES]
        values = self.state.find_many(work.scope.owner, small)
        offers = []
        left_bytes = LOADED_BYTES_MAX
        for choice in chosen:
            if choice.kind == "series":
                offers.append(self._series_offer(series[choice.id], work))
                continue
            info = infos[choice.id]
            left_bytes -= info.size_bytes
            if choice.id not in small and left_bytes >= 0 and self.clock.monotonic() < work.until:
                values |= self.state.find_many(work.scope.owner, [choice.id])
            elif choice.id not in small:
                work.notes.append(f"{choice.id!r:.80} is shown by how it begins: loading it would take too long")
                offers.append(preview_form(choice.id, (info.preview or "")[:PREVIEW_CHARS], info.size_bytes))
            if choice.id in values:
                offers.append(state_forms(choice.id, values[choice.id]))
        return offers

    def _by_model(self, consultant: Consultant, order: Sequence[RankedItem], left_out: int, work: _Work) -> list[Choice] | None:
        """The choices of the model among the best; None if it gave none that can be used."""
        from perdure.engine.oversight.choice import SCHEMA, chosen_by_model, relevance_messages

        best = order[:OFFERED_MAX]
        names = {one.candidate.id for one in best}

        def read(answer: Json) -> tuple[list[str], str]:
            found = cast("dict[str, Json]", answer)
            wanted = found["relevant_keys"]
            return [str(name) for name in wanted], str(found.get("time_range") or "")

        shown = [one.candidate for one in best]
        left = left_out + len(order) - len(best)
        messages = relevance_messages(prompt_named("relevance").body.strip(), shown, work.asked.goal, left_out=left)
        question = Question("relevance", messages, SCHEMA, read)
        left_s = (work.until - self.clock.monotonic()) * MODEL_SHARE
        got: Consultation[tuple[list[str], str]] = consultant.ask(work.scope.owner, question, deadline_s=max(left_s, 0.01))
        work.calls, work.outcome = got.calls, got.outcome
        if got.value is None:
            work.notes.append(f"the model's choice cannot be used ({got.outcome}: {got.detail}); the rules have chosen")
            return None
        wanted, words = got.value
        unknown = [name for name in wanted if name not in names]
        if unknown:
            work.notes.append(f"the model named {len(unknown)} keys that there are not; they are left out")
        if work.time_range is None and words and words.casefold() in work.asked.goal.casefold():
            # The model points at words of the goal; what they mean is worked out here, as for any other words.
            work.time_range = extract_time_range(words, work.now, self.zone, week_start=self.week_start)
        not_offered = [
            Choice(one.candidate.kind, one.candidate.id, False, "not offered to the model", round(one.score, 4))
            for one in order[OFFERED_MAX:]
        ]
        return chosen_by_model(best, wanted, consultant.name) + not_offered

    def _span(self, found: TimeRange, now: datetime) -> Span | None:
        start, end = found.bounds(now, earliest=EARLIEST)
        return Span(to_us(start), to_us(end)) if start < end else None

    def _series_offer(self, series: Series, work: _Work) -> ItemForms:
        span = work.span
        fresh_s = max(series.spec.fresh_for_s, FRESH_S)
        options = QueryOptions(limit=min(ENTRIES_SHOWN_MAX, self.series.limits.page_rows_max), fresh_for_s=fresh_s)
        if span is None:
            # What is still to come is stored as well as what was.
            start, end = EARLIEST, LATEST
        else:
            start, end = span.start, span.end
        answer = self.series.query(work.scope.owner, series.name, start, end, options)
        return series_forms(series.name, series.spec.description, answer, asked=span is not None)

    # -- what is remembered

    def _recalled(self, work: _Work) -> Recall | None:
        """What was found for the goal; None if that took too long."""
        query = RecallQuery(work.asked.goal, kinds=KINDS, limit=FOUND_MAX)  # type: ignore[arg-type]
        left_s = work.until - self.clock.monotonic()
        try:
            if self.recall.asks_nobody:
                answer = self.recall.balanced(work.scope, query)
            else:
                answer = run_within(left_s, lambda: self.recall.balanced(work.scope, query))
        except TooLate:
            work.notes.append(f"memories were not looked up within {work.asked.deadline_s:g} s; the goal runs without them")
            return None
        work.notes += answer.uncovered.lines()
        return answer

    def _packed(
        self, turn: _Turn, offers: Sequence[ItemForms], answer: Recall | None, work: _Work
    ) -> tuple[list[Block], dict[tuple[str, str], Json]]:
        """The blocks within the budget, and what they show of keys and series."""
        from perdure.engine.oversight.choice import ToldChooser, hits_that_bear

        goal, opens = work.asked.goal, work.opens
        hits = () if answer is None else answer.hits
        chooser = ToldChooser(goal, hits)
        standing = self.knowledge.standing(work.scope, chooser if work.looks else None)
        lists = standing.lists
        elsewhere = _sources_in(lists)
        hits = tuple(hit for hit in hits if hit.id not in elsewhere)
        kept, choices = hits_that_bear(hits, opens=opens, limits=chooser.limits)
        work.choices += choices
        earlier = turn.earlier_cards if opens and work.asked.target != "goal" else ()
        cards = self.knowledge.cards_about(work.scope, kept[:CARD_HITS], earlier, limit=CARDS_MAX, elsewhere=elsewhere)
        work.cards = tuple(card.entity for card in cards)
        elsewhere |= {fact.id for card in cards for fact in card.facts}
        about = _about(work.asked.goal, [one for one in standing.picked if one.id not in elsewhere])
        elsewhere |= _sources_in(about)
        work.choices += [Choice("card", card.entity, True, "relevant to this or an earlier goal") for card in cards]
        kept = [hit for hit in kept if hit.id not in elsewhere]
        work.notes += [note for one in lists for note in one.notes]
        work.choices += [
            Choice(
                _LIST_KINDS[one.kind], source, True, "about the user, or a constraint" if one in about else "always included"
            )
            for one in (*lists, *about)
            for line in one.lines
            for source in line.sources[:1]
        ]
        budget = work.asked.budget_tokens
        for _ in range(TRIES_MAX):
            dropped: list[str] = []
            room = int(budget * STABLE_SHARE)
            stable = [block for one in lists if (block := listed_block(one, int(room * one.share * 2), self.count, dropped))]
            card_block = found_block(cards, (), max(room - sum(block.tokens for block in stable), 0), self.count, dropped)
            stable += [replace(as_stable(card_block), kind="cards", title="Who and what this is about")] if card_block else []
            left = budget - sum(block.tokens for block in stable)
            own = [block for one in about if (block := listed_block(one, int(left * one.share), self.count, dropped))]
            left -= sum(block.tokens for block in own)
            # What was said keeps its half: saved values, which may be anybody's words, take no more than is left of it.
            most = min(int(left * (1 - UNTRUSTED_SHARE)), FOUND_TOKENS)
            said = found_block((), kept, most, self.count, []) if kept else None
            shown, missing = offered(offers, left - (said.tokens if said else 0), self.count)
            tail = blocks_of(shown, self.count)
            dropped += [f"{offer.kind} {offer.id}" for offer in missing]
            left -= sum(block.tokens for block in tail)
            found = found_block((), kept, max(min(left, FOUND_TOKENS), 0), self.count, dropped) if kept else None
            blocks = [*stable, *own, *([found] if found else []), *tail]
            if self._cost(blocks, shown, work.asked) <= work.asked.budget_tokens:
                work.notes += [f"no room: {what}" for what in dropped]
                return blocks, shown
            budget = int(budget * SHRINK)
        work.notes.append("nothing of it fits into the budget")
        return [], {}

    def _cost(self, blocks: Sequence[Block], shown: Mapping[tuple[str, str], Json], asked: BeforeRequest) -> int:
        if asked.target != "goal":
            return sum(block.tokens for block in blocks)
        draft = Injection(
            id="",
            goal="",
            target="goal",
            blocks=tuple(blocks),
            values=values_of(shown, blocks),
            choices=(),
            tokens=0,
            budget_tokens=0,
        )
        return self.count(draft.text) if blocks else 0

    # -- the answer

    def _injection(
        self, blocks: Sequence[Block], shown: Mapping[tuple[str, str], Json], work: _Work, took_ms: float
    ) -> Injection:
        asked = work.asked
        tokens = {source: block.tokens for block in blocks for source in block.sources}
        sources = {source for block in blocks for source in block.sources} | {name for _, name in shown} | set(work.cards)
        choices = [
            replace(one, tokens=tokens.get(one.id, 0))
            if one.id in sources or not one.included
            else replace(one, included=False, reason=f"{one.reason}, but there was no room")
            for one in work.choices
        ]
        return Injection(
            id=self.clock.new_id(),
            goal=asked.goal,
            target=asked.target,
            blocks=tuple(blocks),
            values=cast("dict[str, Json]", visible(values_of(shown, blocks))),
            choices=tuple(choices),
            tokens=self._cost(blocks, shown, asked),
            budget_tokens=asked.budget_tokens,
            time_range=work.span,
            model_calls=work.calls,
            outcome=work.outcome,
            took_ms=round(took_ms, 3),
            notes=tuple(work.notes),
        )

    def _record(self, made: Injection, work: _Work) -> None:
        """Kept for audit; and what is put into a prompt is noted, so that nothing is learned from it when it comes back."""
        body: dict[str, Json] = {
            "goal": made.goal[:GOAL_KEPT_CHARS],
            "target": made.target,
            "included": [[one.kind, one.id, one.reason] for one in made.choices if one.included],
            "left_out": [[one.kind, one.id, one.reason] for one in made.choices if not one.included][:CHOICES_KEPT_MAX],
            "cards": list(work.cards),
            "tokens": made.tokens,
            "budget_tokens": made.budget_tokens,
            "version": made.version,
            "model_calls": made.model_calls,
            "outcome": made.outcome,
            "took_ms": made.took_ms,
            "notes": list(made.notes),
        }
        decision = Decision(made.id, work.now, work.scope.address, "before", without_secrets_in(body))

        def record(tx: Tx) -> None:
            tx.oversight.put_decision(decision, keep=DECISIONS_KEPT)
            enter_echoes(tx, made.blocks, now=work.now)

        self.store.write(work.scope.owner, record)


@lru_cache(maxsize=64)
def _catalogue(keys: tuple[tuple[str, str], ...], series: tuple[tuple[str, str], ...], vectors: Vectors | None) -> Catalogue:
    from perdure.engine.oversight.relevance import Catalogue, SavedItem

    state = [SavedItem("state", key, "", preview) for key, preview in keys]
    return Catalogue([*state, *(SavedItem("series", name, description) for name, description in series)], vectors)


def _sources_in(lists: Sequence[ContextList]) -> set[str]:
    return {source for one in lists for line in one.lines for source in line.sources}


_LIST_KINDS: Mapping[str, ChoiceKind] = {
    "foundation": "memory",
    "instructions": "instruction",
    "lessons": "lesson",
    "profile": "memory",
    "limits": "memory",
}
ABOUT_SHARE = 0.5


def _about(goal: str, given: Sequence[Statement]) -> list[ContextList]:
    from perdure.engine.oversight.statements import asks_about_the_user

    if not given:
        return []
    lines = tuple(line_of(one) for one in given)
    kind, title = ("profile", "About the user") if asks_about_the_user(goal) else ("limits", "Constraints")
    return [ContextList(kind, title, "told about the user", lines, ABOUT_SHARE, volatile=True)]
