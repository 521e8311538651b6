"""Recall: filter first, find in several ways at once, say why each hit is there and what the answer does not cover."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from perdure.domain.context.recall import (
    ENTRY_KINDS,
    LEXICON,
    Arm,
    Blend,
    Hit,
    LeftOut,
    Neighbour,
    Recall,
    RecallQuery,
    SeriesGap,
    Trace,
    Uncovered,
    Understood,
    series_asked_about,
)
from perdure.domain.conversation.messages import Cursor, Message, MessageQuery
from perdure.domain.errors import InvalidInput, LimitExceeded, NotFound
from perdure.domain.knowledge.entities import Suggestion, from_body
from perdure.domain.knowledge.keys import slug
from perdure.domain.knowledge.memories import UNTRUSTED, to_statement
from perdure.domain.knowledge.records import RecordQuery
from perdure.domain.limits import NUMBER_MAX, Limits
from perdure.domain.scope import Address, Scope, SessionId
from perdure.domain.text.rules import brief, utf8_size
from perdure.domain.times.instants import check_instant, from_us, to_us
from perdure.domain.times.spans import Span
from perdure.domain.values import dataclass, field, replace
from perdure.engine.context.blocks import UNTRUSTED_SHARE
from perdure.engine.search.entries import agent_hash, entity_hash, place_hash, session_hash, speaker_in
from perdure.ports.clock import Clock
from perdure.ports.models import Reranker
from perdure.ports.store import ReadOnly, Store, View
from perdure.ports.tables.index import INDEX_JOB, IndexHead, index_job
from perdure.services.index.cache import CachedIndex, IndexCache, ThreadGate
from perdure.services.index.reads import Name, Place, may_be_old, read_found, with_current
from perdure.services.jobs.worker import in_words
from perdure.services.knowledge.entities import NamedEntities, entity_names, names_in
from perdure.services.models.embedders import Embedders, embedded
from perdure.services.series.series import SeriesService

if TYPE_CHECKING:
    from perdure.engine.search.columns import Floats
    from perdure.engine.search.index import SearchFilter
    from perdure.engine.search.question import SearchQuestion
    from perdure.engine.search.ranking import Ranking

QUERY_BYTES_MAX = 100_000
CANDIDATES_MIN = 50
"""So many of the best are ordered anew by the blend or a reranker, whatever the limit."""
SPARE, FEW = 5, 3
TRUSTED_LOOK_MAX = 5_000
"""So many entries are looked through for what the user said, when others take up most of an answer."""
LAST_US = to_us(datetime.max.replace(tzinfo=UTC))
NEIGHBOURS_MAX = 10
SUGGESTIONS_MAX = 1_000
LOOK_BACK_MAX = 100_000
ALIAS_NEARNESS = 0.9
"""How near the other names of an entity are to the one in the question."""
SESSIONS_MAX = 10_000

SURROUNDINGS = frozenset({"session", "around", "telling"})
"""Arms that tell of what stands around a text, or of its form, and not of the question."""


@dataclass(frozen=True, slots=True)
class RecallService:
    store: Store
    clock: Clock
    limits: Limits
    zone: str
    shelves: IndexCache
    embedders: Embedders
    near: Callable[[str], Sequence[tuple[str, float]]] | None
    """Words of like meaning, with their cosine."""
    count: Callable[[str], int]
    blend: Blend | None
    series: SeriesService
    reranker: Reranker | None = None
    alone: ThreadGate = field(default_factory=ThreadGate)

    @property
    def asks_nobody(self) -> bool:
        """Whether it answers from the store and this process alone, and so cannot be held up by anybody's server."""
        return self.reranker is None and self.embedders.built_in

    def recall(self, scope: Scope, query: RecallQuery) -> Recall:
        """What is remembered that answers a question, best first."""
        wanted = self._checked(query)
        with self.alone() if self.asks_nobody else nullcontext():
            return self._recall(scope, wanted)

    def balanced(self, scope: Scope, query: RecallQuery) -> Recall:
        """As `recall`; and where tools and what came from elsewhere take up most of the answer, behind it what the user and
        the agent said, as if those were not there: a flood of their words does not keep it from being found."""
        answer = self.recall(scope, query)
        doubtful = sum(hit.trust in UNTRUSTED for hit in answer.hits)
        if len(answer.hits) < query.limit or doubtful <= len(answer.hits) * UNTRUSTED_SHARE:
            return answer
        told = {(hit.kind, hit.id) for hit in answer.hits}
        more = self.recall(scope, replace(query, trusted=True))
        found = [hit for hit in more.hits if (hit.kind, hit.id) not in told]
        return replace(answer, hits=(*answer.hits, *found), tokens=answer.tokens + sum(hit.tokens for hit in found))

    def _recall(self, scope: Scope, wanted: RecallQuery) -> Recall:
        now = self.clock.now()

        def both(view: View) -> tuple[_PreparedQuery, _SearchResult]:
            held, named = self._prepared(view, scope, wanted)
            given = self._ready(scope, wanted, held, named, now)
            return given, self._search(view, scope, given, held)

        if self.asks_nobody:
            given, found = self.store.read(scope.owner, both)
        else:
            # No transaction is open while somebody else's server is asked.
            held, named = self.store.read(scope.owner, lambda view: self._prepared(view, scope, wanted))
            given = self._ready(scope, wanted, held, named, now)
            found = self.store.read(
                scope.owner, lambda view: self._search(view, scope, given, self.shelves.current(view, scope.owner))
            )
        asked, degraded = given.asked, given.degraded
        if given.vector is not None and found.head.embedder != given.embedder:
            degraded = "meaning is not compared: the embedder has just changed; ask again"
        hits, trouble = self._reranked(wanted.text, found.hits)
        kept, cut = _within_budget(hits[: wanted.limit], wanted.budget_tokens)
        span = wanted.time_range or asked.time_range
        uncovered = Uncovered(
            waiting=found.waiting,
            unindexed=found.partial or (found.head.lexicon != LEXICON and found.holds),
            degraded="; ".join(filter(None, (degraded, found.trouble, trouble))) or None,
            gaps=self._gaps(scope, kept, span),
            cut=cut,
        )
        if (found.head.lexicon != LEXICON and found.holds) or self.embedders.is_another(found.head.embedder):
            with suppress(ReadOnly):
                self.store.write(
                    scope.owner, lambda tx: tx.enqueue(index_job(now), now=now, queue_max=self.limits.queue_jobs_max)
                )
        understood = Understood(asked.words, given.named.refs, asked.roles, span)
        left = _left_out(hits, kept, wanted) if wanted.misses else ()
        return Recall(wanted.text, tuple(kept), uncovered, understood, sum(hit.tokens for hit in kept), left_out=left)

    # -- the question

    def _checked(self, query: RecallQuery) -> RecallQuery:
        if utf8_size(query.text, "the question") > QUERY_BYTES_MAX:
            raise LimitExceeded(f"the question has more than {QUERY_BYTES_MAX} bytes; ask in fewer words")
        unknown = [kind for kind in query.kinds if kind not in ENTRY_KINDS]
        if unknown or not query.kinds:
            raise InvalidInput(f"`kinds` = {brief(list(query.kinds), 80)} must be some of {', '.join(ENTRY_KINDS)}")
        for name in ("as_of", "known_at"):
            if (moment := getattr(query, name)) is not None:
                check_instant(moment, name)
        if query.time_range is not None and not isinstance(query.time_range, Span):
            raise InvalidInput(f"`time_range` = {brief(query.time_range, 80)} must be a pair of moments, the earlier one first")
        budget = query.budget_tokens
        if budget is not None and (not isinstance(budget, int) or isinstance(budget, bool) or not 1 <= budget <= NUMBER_MAX):
            raise InvalidInput(f"`budget_tokens` = {brief(budget)} must be a whole number from 1 on")
        beside = query.neighbours
        if not isinstance(beside, int) or isinstance(beside, bool) or not 0 <= beside <= NEIGHBOURS_MAX:
            raise InvalidInput(f"`neighbours` = {brief(beside)} must be a whole number from 0 to {NEIGHBOURS_MAX}")
        if len(query.sessions) > SESSIONS_MAX:
            raise LimitExceeded(f"`sessions` names more than {SESSIONS_MAX}; ask without naming any")
        limit = self.limits.page(query.limit)
        return query if limit == query.limit else replace(query, limit=limit)

    def _prepared(self, view: View, scope: Scope, query: RecallQuery) -> tuple[CachedIndex, NamedEntities]:
        wanted = [f"{name.type}:{slug(name.label)}" for name in entity_names(query.entities)]
        agent = scope.address.agent
        held, named = view.together(
            lambda: self.shelves.current(view, scope.owner), lambda: names_in(view, agent, query.text, wanted)
        )
        return held, named

    def _ready(
        self, scope: Scope, query: RecallQuery, held: CachedIndex, named: NamedEntities, now: datetime
    ) -> _PreparedQuery:
        head, speakers = held.head, held.stack.speakers_to(agent_hash(scope.address.agent))
        asked = self._understood(query, named, speakers, now)
        vector, degraded = self.vector_of(asked.meaning, head)
        return _PreparedQuery(
            query=query, asked=asked, named=named, vector=vector, embedder=head.embedder, now=now, degraded=degraded
        )

    def vector_of(self, meaning: str, head: IndexHead) -> tuple[Floats | None, str | None]:
        """A question as the index's embedder sees it, or why there is none: then the words alone must do."""
        if not head.embedder:
            return None, None
        try:
            embedder = self.embedders.named(head.embedder)
            if embedder is None:
                name = head.embedder.partition("/")[0]
                return None, f"meaning is not compared: the vectors are of embedder {brief(name, 60)}, which is not in use here"
            return embedded(embedder, [meaning], "query")[0], None
        except Exception as error:  # noqa: BLE001 - the plugin edge: without its embedder, recall still answers by words
            return None, f"meaning is not compared: {in_words(error)}"

    def _understood(self, query: RecallQuery, named: NamedEntities, speakers: Sequence[str], now: datetime) -> SearchQuestion:
        """The question, with the other names of the entities it names, and the entities themselves as terms."""
        from perdure.engine.search.question import SoughtTerm, understand

        def kin(word: str) -> Sequence[tuple[str, float]]:
            return [(other, ALIAS_NEARNESS) for other in named.kin.get(word, ())]

        moment = query.as_of or now
        asked = understand(query.text, moment, self.zone, speakers=speakers, kin=kin if named.kin else None, near=self.near)
        entities = [SoughtTerm(ref, entity_hash(ref), 1.0) for ref in named.refs]
        return replace(asked, terms=(*asked.terms, *entities)) if entities else asked

    # -- finding

    def _search(self, view: View, scope: Scope, given: _PreparedQuery, held: CachedIndex) -> _SearchResult:
        from perdure.engine.search.index import allowed, without
        from perdure.engine.search.ranking import rank, reasons

        query, now = given.query, given.now
        wanted = query.limit + query.misses
        shelf = held.stack.shelf
        mask = without(held.stack, allowed(held.stack, _filter(view, scope, given)), "memory", _did_not_hold(view, given))
        # Vectors of two embedders are never compared.
        vector = given.vector if held.head.embedder == given.embedder else None
        ranking = rank(shelf, given.asked, mask, vector, limit=TRUSTED_LOOK_MAX if query.trusted else self._candidates(wanted))
        # Doubles collapse, so more may be needed than are wanted; mostly a few more are enough.
        enough = len(ranking.items) if self._looks_again or query.trusted else wanted + FEW
        while True:
            best = ranking.first(enough)
            kinds = shelf.kind[best.items].tolist()
            names = [(ENTRY_KINDS[kind - 1], ref) for kind, ref in zip(kinds, held.stack.refs_of(best.items), strict=True)]
            why = reasons(shelf, given.asked, best)
            places = _places(names, best, why)
            found = read_found(view, names, now=now, places=places)
            hits = (_collapsed if query.collapse else list)(
                [found[name] for name in names if name in found and not (query.trusted and found[name].trust in UNTRUSTED)]
            )
            if len(hits) >= wanted or enough >= len(ranking.items):
                break
            enough = len(ranking.items)
        if query.trusted:
            # The flood is all around: what says nothing of the question itself stands behind what does.
            hits.sort(key=lambda hit: hit.trace.arms.keys() <= SURROUNDINGS)
        waiting = held.stack.newer_than(held.head.vectored) if self.embedders.in_use else 0
        ordered, job, old = view.together(
            lambda: _newest_first(view, self._ordered(hits, now)),
            lambda: view.find_job(INDEX_JOB, INDEX_JOB) if waiting else None,
            lambda: may_be_old(view, query, hits),
        )
        if old:
            ordered = with_current(view, scope, query, ordered)
        ordered = ordered[: wanted if self.reranker is None else CANDIDATES_MIN]
        priced = [self._priced(hit) for hit in ordered]
        if query.neighbours:
            priced = [_with_neighbours(view, hit, query.neighbours, self.count) for hit in priced]
        failing = job is not None and job.last_error is not None and (job.state == "dead" or job.attempts > 0)
        trouble = f"vectors could not be made: {job.last_error}" if failing and job is not None else None
        # Before anything was taken in there is no index, and nothing that it lacks.
        holds = held.head.incarnation != "" or (not held.unread and bool(view.list_sessions(None, limit=1)))
        return _SearchResult(priced, held.head, waiting, trouble, holds, held.partial)

    def _priced(self, hit: Hit) -> Hit:
        """With what it costs to show, the current values that come with it included."""
        tokens = max(hit.tokens, self.count(hit.text))
        if hit.current:
            tokens += sum(self.count(one.text) for one in hit.current)
        return hit if tokens == hit.tokens else replace(hit, tokens=tokens)

    def _candidates(self, limit: int) -> int:
        """How many are read: more than are wanted, because doubles collapse; and all that the blend orders anew."""
        return max(CANDIDATES_MIN, limit) if self._looks_again else 2 * limit + SPARE

    @property
    def _looks_again(self) -> bool:
        return self.blend is not None or self.reranker is not None

    def _ordered(self, hits: list[Hit], now: datetime) -> list[Hit]:
        """By relevance; with the entity pipeline, by its blend with recency and frequency."""
        if self.blend is None:
            return hits
        from perdure.engine.search.ranking import frequencies

        often = frequencies([hit.entities for hit in hits])
        blended = []
        for hit, frequency in zip(hits, often, strict=True):
            age = (now - hit.at).total_seconds() / 86_400
            recency = self.blend.recency_of(age)
            score = self.blend.score(hit.trace.similarity, age, frequency)
            blended.append(replace(hit, score=score, trace=replace(hit.trace, recency=recency, frequency=frequency)))
        return sorted(blended, key=lambda hit: -hit.score)

    def _reranked(self, question: str, hits: list[Hit]) -> tuple[list[Hit], str | None]:
        """The hits in the order of the reranker; if it fails, as they were, and why."""
        if self.reranker is None or not hits:
            return hits, None
        try:
            scores = [float(score) for score in self.reranker.rerank(question, [hit.text for hit in hits])]
        except Exception as error:  # noqa: BLE001 - the plugin edge: a last look that fails leaves the order as it was
            return hits, f"not reranked: {in_words(error)}"
        if len(scores) != len(hits) or not all(map(math.isfinite, scores)):
            return hits, "not reranked: the reranker did not give one number for each text"
        from perdure.engine.search.ranking import current_first

        rescored = []
        for hit, score in zip(hits, scores, strict=True):
            why = (*hit.trace.why, f"reranked by {self.reranker.name}: {score:.3f}")
            rescored.append(replace(hit, score=score, trace=replace(hit.trace, why=why)))
        return current_first(sorted(rescored, key=lambda hit: -hit.score)), None

    def _gaps(self, scope: Scope, hits: Sequence[Hit], span: Span | None) -> tuple[SeriesGap, ...]:
        """What the series among the hits do not hold of the time that is asked about."""
        if span is None:
            return ()
        found = []
        for hit in series_asked_about(hits):
            # The last moment of all cannot be the end of a half-open stretch.
            end = span.end if span.end_us < LAST_US else from_us(LAST_US - 1)
            known = self.series.coverage(scope.owner, hit.id, span.start, end)
            if known.gaps or known.future:
                found.append(SeriesGap(hit.id, known.gaps, known.future))
        return tuple(found)


@dataclass(frozen=True, slots=True)
class _PreparedQuery:
    """A question, with all that was found out about it before the search."""

    query: RecallQuery
    asked: SearchQuestion
    named: NamedEntities
    vector: Floats | None
    embedder: str
    """Whose vector it is."""
    now: datetime
    degraded: str | None
    """Why meaning is not compared."""


@dataclass(frozen=True, slots=True)
class _SearchResult:
    hits: list[Hit]
    head: IndexHead
    waiting: int
    trouble: str | None
    """Why vectors are missing, if making them fails."""
    holds: bool
    """Whether there is anything that could be found."""
    partial: bool
    """Whether messages are missing that nobody has taken in yet."""


def _filter(view: View, scope: Scope, given: _PreparedQuery) -> SearchFilter:
    from perdure.engine.search.index import SearchFilter

    query = given.query
    return SearchFilter(
        kinds=query.kinds,
        agent=agent_hash(scope.address.agent),
        now_us=to_us(given.now),
        as_of_us=None if query.as_of is None else to_us(query.as_of),
        known_at_us=None if query.known_at is None else to_us(query.known_at),
        sessions=_session_hashes(view, scope.address, query.sessions),
        time_range=query.time_range,
        terms=given.named.required if query.entities else None,
        places=tuple(place_hash(agent, scope.address.channel) for agent in (None, scope.address.agent)),
        trusted=query.trusted,
    )


def _did_not_hold(view: View, given: _PreparedQuery) -> set[str]:
    """Looking back, the statements that only their rows tell about: ends that were moved since, and proposals."""
    query = given.query
    if query.as_of is None and query.known_at is None:
        return set()
    moment = query.as_of or query.known_at or given.now
    rows = view.records.list_(RecordQuery("statement", LOOK_BACK_MAX, ("look_back", "by_row")))
    found = [to_statement(record.body) for record in rows]
    return {one.id for one in found if not one.holds_at(moment, query.known_at)}


def _places(names: Sequence[Name], best: Ranking, why: Sequence[tuple[str, ...]]) -> dict[Name, Place]:
    """Where each stands, and how it got there."""
    arms = [(name, raw.tolist(), share.tolist()) for name, (raw, share) in best.arms.items()]
    scores = best.scores.tolist()
    top = scores[0] if scores else 0.0
    placed: dict[Name, Place] = {}
    for place, name in enumerate(names):
        spoke = {arm: Arm(raw[place], share[place]) for arm, raw, share in arms if share[place]}
        relevance = scores[place]
        placed[name] = (relevance, Trace(spoke, relevance, relevance / top if top > 0 else 0.0, why=why[place]))
    return placed


def _session_hashes(view: View, address: Address, sessions: Sequence[str]) -> tuple[int, ...] | None:
    if not sessions:
        return None
    hashes = []
    for name in sessions:
        session = view.find_session(address, SessionId(name))
        if session is None:
            raise NotFound(f"there is no session {brief(name, 80)} at this address; list them with `sessions()`")
        hashes.append(session_hash(address, session.number))
    return tuple(hashes)


def _collapsed(hits: Sequence[Hit]) -> list[Hit]:
    """What says the same because one came from the other becomes one hit: the better one, which names the other."""
    kept: list[Hit] = []
    by_message: dict[str, int] = {}
    for hit in hits:
        ids = (hit.id,) if hit.kind == "message" else hit.sources
        place = next((by_message[one] for one in ids if one in by_message), None)
        if place is not None and (hit.kind == "message") != (kept[place].kind == "message"):
            held = kept[place]
            why = (*held.trace.why, f"{hit.kind} {hit.id} says the same")
            sources = tuple(dict.fromkeys((*held.sources, *hit.sources)))
            kept[place] = replace(held, sources=sources, trace=replace(held.trace, why=why))
        else:
            kept.append(hit)
            place = len(kept) - 1
        for one in ids:
            by_message.setdefault(one, place)
    return kept


def _newest_first(view: View, hits: list[Hit]) -> list[Hit]:
    """Of statements that were flagged as clashing, the newer one stands before the older one (X-46)."""
    places = {hit.id: place for place, hit in enumerate(hits) if hit.kind == "memory"}
    if len(places) < 2:
        return hits
    ordered = list(hits)
    for record in view.records.list_(RecordQuery("suggestion", SUGGESTIONS_MAX, ("state", "open"))):
        clash = from_body(Suggestion, record.body)
        pair = sorted(places[one] for one in clash.subjects if one in places) if clash.what == "contradiction" else []
        if len(pair) == 2 and ordered[pair[0]].at < ordered[pair[1]].at:
            first, second = pair
            why = "newer than one that it clashes with"
            newer, older = ordered[second], ordered[first]
            ordered[first] = replace(newer, score=older.score, trace=replace(newer.trace, why=(*newer.trace.why, why)))
            ordered[second] = replace(older, score=newer.score)
            places[newer.id], places[older.id] = first, second
    return ordered


def _within_budget(hits: Sequence[Hit], budget: int | None) -> tuple[list[Hit], int]:
    if budget is None:
        return list(hits), 0
    kept: list[Hit] = []
    left = budget
    for hit in hits:
        if hit.tokens <= left:
            kept.append(hit)
            left -= hit.tokens
    return kept, len(hits) - len(kept)


def _left_out(hits: Sequence[Hit], kept: Sequence[Hit], query: RecallQuery) -> tuple[LeftOut, ...]:
    """What was found and is not told: for want of room, or because enough others fit better."""
    told = {(hit.kind, hit.id) for hit in kept}
    cut = [hit for hit in hits[: query.limit] if (hit.kind, hit.id) not in told]
    room = [LeftOut(hit, f"its {hit.tokens} tokens did not fit into the budget of {query.budget_tokens}") for hit in cut]
    least = f", the last of them with {hits[query.limit - 1].score:.3f}" if len(hits) >= query.limit else ""
    why = f"{query.limit} hits fit better{least}; a higher `limit` shows it"
    return (*room, *(LeftOut(hit, why) for hit in hits[query.limit : query.limit + query.misses]))


def _with_neighbours(view: View, hit: Hit, beside: int, count: Callable[[str], int]) -> Hit:
    if hit.kind != "message" or hit.address is None or hit.seq is None or hit.session is None:
        return hit
    session = view.find_session(hit.address, SessionId(hit.session))
    if session is None:
        return hit
    number, seq = session.number, hit.seq
    before = MessageQuery(hit.address, beside, number, before=Cursor(number, seq))
    after = MessageQuery(hit.address, beside, number, after=Cursor(number, seq))
    found = [*view.list_messages(before), *view.list_messages(after)]
    tokens = hit.tokens + sum(max(message.tokens, count(message.content)) for message in found)
    return replace(hit, neighbours=tuple(_neighbour(message) for message in found), tokens=tokens)


def _neighbour(message: Message) -> Neighbour:
    speaker = speaker_in(message.metadata) or message.role
    return Neighbour(id=message.id, role=message.role, speaker=speaker, text=message.content, at=message.at, seq=message.seq)
