"""All services of an engine, each built once and handed what it needs by name. `app.Engine` holds the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from perdure.adapters.embedding.static import near_words, word_vectors
from perdure.compose.models import (
    HostModels,
    InstalledImporters,
    LazyRuleExtractor,
    check_reranker,
    embedder_of,
    helpers_of,
    token_count,
    with_plugins,
)
from perdure.compose.store import scratch_store
from perdure.domain.context.recall import parse_blend
from perdure.domain.values import dataclass, replace
from perdure.engine.conversation.jobs import CURATE, EXTRACT, LESSONS, SWEEP, TALLY, TRANSCRIPT
from perdure.engine.knowledge.outcomes import Habits
from perdure.engine.search.lexicon import load_stemmers
from perdure.engine.summary.extractive import ExtractiveSummariser
from perdure.engine.words import load_readers
from perdure.handles.admin import AdminServices
from perdure.handles.conversation import ConversationServices
from perdure.handles.knowledge import KnowledgeServices
from perdure.handles.lessons import LessonServices
from perdure.handles.oversight import OversightServices
from perdure.handles.registry.services import MemoryServices
from perdure.handles.series import SeriesServices
from perdure.ports.clock import Clock
from perdure.ports.files import AgentFiles, LessonFiles
from perdure.ports.models import Summariser
from perdure.ports.store import Store
from perdure.ports.tables.index import INDEX_JOB
from perdure.services.access.log import AccessLog
from perdure.services.context.assembly import ContextAssembly, PromptService
from perdure.services.context.knowledge import KnowledgeReader
from perdure.services.context.recall import RecallService
from perdure.services.context.state_search import StateSearch
from perdure.services.conversation.append import Appender, Turns
from perdure.services.conversation.digests import Digests
from perdure.services.conversation.folds import Folds
from perdure.services.conversation.history import LogReader, OverviewService
from perdure.services.conversation.intake import PAGE, Intake
from perdure.services.conversation.sessions import Sessions
from perdure.services.conversation.transcripts import Transcripts, transcript_handler
from perdure.services.conversation.upkeep import Sweeper, tally_handler
from perdure.services.documents.documents import Documents
from perdure.services.documents.stored import ScopeView, StoredContexts
from perdure.services.forget.forget import ForgetService
from perdure.services.index.cache import IndexCache
from perdure.services.index.job import Indexer
from perdure.services.jobs.catch_up import CatchUp, fresh
from perdure.services.jobs.erasure import ERASE, Erasures
from perdure.services.jobs.worker import TIDY, Handler, tidy_handler
from perdure.services.knowledge.curation import Auditor, Curator, ProposalReview
from perdure.services.knowledge.entities import Entities
from perdure.services.knowledge.extraction import ExtractionService
from perdure.services.knowledge.instructions import Instructions
from perdure.services.knowledge.memories import Knowledge
from perdure.services.knowledge.todos import Todos
from perdure.services.knowledge.undo import UndoService
from perdure.services.lessons.agents import Agents
from perdure.services.lessons.lessons import Lessons
from perdure.services.lessons.mirror import Mirrors
from perdure.services.models.consultant import Consultant
from perdure.services.models.embedders import BUILT_IN, Embedders
from perdure.services.models.writer import DigestWriter
from perdure.services.oversight.after import ResultKeeper
from perdure.services.oversight.before import Overseer
from perdure.services.oversight.gate import GatedOverseer
from perdure.services.series.aggregates import Aggregates
from perdure.services.series.cleanup import CLEANUP, cleanup_handler
from perdure.services.series.fetch import ReadThrough
from perdure.services.series.series import SeriesService
from perdure.services.series.state import StateService
from perdure.settings import Settings

if TYPE_CHECKING:
    from perdure.services.portability.transfer import Portability


MESSAGES_PER_READING = 10
"""A call that reads looks at the time after so many messages."""


class ConversationPart:
    """The conversation part of an engine: its services, and the handlers of the jobs it causes."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: Settings,
        summariser: Summariser | None,
        reader: KnowledgeReader,
        intake: Intake,
        shown: ScopeView,
    ) -> None:
        load_readers()
        load_stemmers()
        layers, limits = settings.layers, settings.limits
        idle = timedelta(seconds=settings.session_idle_s)
        offline = ExtractiveSummariser()
        count = token_count(settings.tokenizer)
        writer = DigestWriter(store, offline if summariser is None else summariser, offline, count, layers.window_messages)
        transcripts = _transcripts(settings)
        has_files = transcripts is not None
        switches = settings.switches
        counted = 2 if switches.spine_unit == "messages" else 1
        folds = Folds(store, clock, writer, layers, reader.lessons, clear_small=switches.clear_small)
        sweeper = Sweeper(
            store=store,
            clock=clock,
            layers=layers,
            idle=idle,
            profile=settings.profile,
            folds=folds,
            transcripts=has_files,
            counted=counted,
        )
        digests = Digests(store, clock, writer, layers, counted)
        resume_within = timedelta(seconds=settings.session_resume_s)
        ingest = Appender(store=store, clock=clock, limits=limits, session_idle=idle, count=count)
        sessions = Sessions(store, clock, limits, resume_within, transcripts=has_files)
        stored = StoredContexts(
            store=store, clock=clock, ingest=ingest, folds=folds, sessions=sessions, around=shown, space=settings.space
        )
        self.services = ConversationServices(
            ingest=ingest,
            history=LogReader(store, limits),
            sessions=sessions,
            folds=folds,
            assembly=ContextAssembly(
                store=reader.store,
                clock=clock,
                layers=layers,
                idle=idle,
                folds=folds,
                sweeper=sweeper,
                count=count,
                knowledge=reader,
                rolls_on=switches.rolling_scope == "persona",
            ),
            turns=Turns(store, clock),
            transcripts=transcripts,
            documents=Documents(stored, clock, limits, summariser),
        )
        tally = partial(tally_handler, store, clock, intake.read_up_to, sweeper.after_messages)
        self.quick_tally = tally(messages_per_run=PAGE)
        self.handlers: dict[str, Handler] = {
            TALLY: tally(),
            SWEEP: sweeper.sweep,
            "bounded_history": sweeper.bound,
            "request_fold": sweeper.fold_request,
            "periodic_flush": sweeper.flush,
            "rolling_digest": digests.rolling,
            "session_digest": digests.session,
            "spine": digests.spine,
            LESSONS: reader.lessons.handle,
        }
        if transcripts is not None:
            minimum = settings.transcript_messages_min
            self.handlers[TRANSCRIPT] = transcript_handler(store, transcripts, messages_min=minimum)


def _transcripts(settings: Settings) -> Transcripts | None:
    if not settings.files_dir:
        return None
    from perdure.adapters.files.transcripts import TranscriptFolder

    each = settings.switches.transcript == "new_each_time"
    return Transcripts(TranscriptFolder(Path(settings.files_dir), new_each_time=each))


def lesson_files(settings: Settings) -> LessonFiles | None:
    """Where lesson books are kept as files; None if nowhere."""
    if not settings.files_dir and not settings.agents_dir:
        return None
    from perdure.adapters.files.lessons import LessonFolders

    folders = [Path(one) if one else None for one in (settings.files_dir, settings.agents_dir)]
    return LessonFolders(folders[0], folders[1], settings.space)


def agent_files(settings: Settings) -> AgentFiles | None:
    """Where agents are kept as folders; None if nowhere."""
    if not settings.agents_dir:
        return None
    from perdure.adapters.files.lessons import AgentFolders

    return AgentFolders(Path(settings.agents_dir))


def taught_in(store: Store, clock: Clock, settings: Settings) -> LessonServices:
    """Lessons and agents, and the files that people keep them in."""
    mirrors = Mirrors(store, clock, lesson_files(settings))
    lessons = Lessons(
        store=store,
        clock=clock,
        limits=settings.limits,
        mirrors=mirrors,
        configured=settings.lessons_scope,
        sole_user=settings.user,
    )
    agents = Agents(store, clock, settings.limits, agent_files(settings), settings.space)
    prompts = PromptService(
        store=store,
        clock=clock,
        agents=agents,
        lessons=lessons,
        count=token_count(settings.tokenizer),
        zone=settings.zone,
        all_lessons=settings.switches.lessons == "all",
    )
    return LessonServices(lessons, prompts)


@dataclass(frozen=True, slots=True)
class Composition:
    """An engine's services, and what runs its jobs."""

    services: MemoryServices
    handlers: Mapping[str, Handler]
    consultant: Consultant
    close: Callable[[], None]
    """Releases what models and embedders hold."""


def compose(store: Store, clock: Clock, settings: Settings, given: HostModels) -> Composition:
    """Everything that an engine does, over one store."""
    limits = settings.limits
    seen = fresh(store)
    given = with_plugins(settings, given)
    check_reranker(given.get("reranker"))
    asked = BUILT_IN if given.get("embedder") is not None else settings.embedder
    embedders = Embedders(asked, given.get("embedder"), partial(embedder_of, key=settings.embedder_key))
    helpers = helpers_of(store, clock, settings, given)
    switches = settings.switches
    habits = Habits(switches.statements == "replace", switches.importance_growth, switches.attributes)
    known, todos = Knowledge(seen, clock, limits, settings.zone, habits=habits), Todos(seen, clock, limits)
    orders = Instructions(seen, clock, limits)
    series = SeriesService(store, clock, limits, settings.series_max_entries or None, switches.coverage)
    state = StateService(store, clock, limits)
    recall = RecallService(
        store=seen,
        clock=clock,
        limits=limits,
        zone=settings.zone,
        shelves=IndexCache(settings.zone, settings.index_cache_bytes),
        embedders=embedders,
        near=near_words,
        count=token_count(settings.tokenizer),
        blend=parse_blend(settings.recall_blend),
        series=series,
        reranker=given.get("reranker"),
    )
    intake = Intake(store, clock, settings.zone)
    indexer = Indexer(store, clock, embedders.current, settings.zone, intake.read_up_to)
    taught = taught_in(store, clock, settings)
    reader = KnowledgeReader(
        store=seen,
        clock=clock,
        knowledge=known,
        recall=recall,
        lessons=taught.lessons,
    )
    shown = ScopeView(store, replace(known, writer="agent"), replace(todos, writer="agent"))
    talk = ConversationPart(
        store=store, clock=clock, settings=settings, summariser=helpers.summariser, reader=reader, intake=intake, shown=shown
    )
    erasures = Erasures(store, clock)
    knowledge = KnowledgeServices(
        knowledge=known,
        undo=UndoService(store, clock),
        entities=Entities(seen, clock, limits),
        todos=todos,
        instructions=orders,
        extraction=ExtractionService(store, clock, helpers.extractor, settings.zone, rules=helpers.rules, habits=habits),
        curator=Curator(store, clock),
        forgetter=ForgetService(
            store=store,
            read_up=seen,
            clock=clock,
            transcripts=talk.services.transcripts,
            lessons=taught.lessons,
            erasures=erasures,
            zone=settings.zone,
        ),
        auditor=Auditor(seen, clock),
        review=ProposalReview(seen, clock, limits),
    )
    quick = _quick(knowledge, talk.quick_tally, indexer if embedders.built_in else None)
    services = MemoryServices(
        conversation=talk.services,
        state=state,
        state_search=StateSearch(recall, state),
        series=SeriesServices(series, Aggregates(store, clock), ReadThrough(store, series)),
        knowledge=knowledge,
        recall=recall,
        oversight=_oversight(seen, clock, settings, helpers.consultant, state, reader),
        lessons=taught,
        admin=AdminServices(
            clock=clock,
            history=talk.services.history,
            overview=OverviewService(seen, clock, settings.zone),
            indexer=indexer,
            knowledge=known,
            erasures=erasures,
        ),
        portability=_portability(store, clock, settings, known, taught.lessons, todos),
        log=AccessLog(store, clock, limits, settings.access_log),
        catch_up=CatchUp(
            store=store,
            clock=clock,
            handlers=quick,
            seconds=settings.catch_up_ms / 1_000,
            read_some=intake.read_some,
            indexes=indexer.lacks_little,
        ),
    )
    handlers: dict[str, Handler] = {
        TIDY: tidy_handler(store, clock),
        CLEANUP: cleanup_handler(store, series),
        ERASE: erasures.handle,
        **talk.handlers,
        EXTRACT: knowledge.extraction.handle,
        CURATE: knowledge.curator.handle,
        INDEX_JOB: indexer.handle,
    }

    def close() -> None:
        helpers.close()
        embedders.close()

    return Composition(services=services, handlers=handlers, consultant=helpers.consultant, close=close)


def _quick(knowledge: KnowledgeServices, tally: Handler, indexer: Indexer | None) -> dict[str, Handler]:
    """The jobs that a call which reads may do itself: a model, or what a host brought along, is asked by a worker alone."""
    if not isinstance(knowledge.extraction.extractor, LazyRuleExtractor):
        return {}
    learned = replace(knowledge.extraction, messages_per_run=MESSAGES_PER_READING)
    jobs = {TALLY: tally, EXTRACT: learned.handle, CURATE: knowledge.curator.handle}
    return jobs if indexer is None else {**jobs, INDEX_JOB: indexer.handle}


def _oversight(
    store: Store, clock: Clock, settings: Settings, model: Consultant, state: StateService, reader: KnowledgeReader
) -> OversightServices:
    recall = reader.recall
    consultant = model if model.available else None
    kind = GatedOverseer if settings.switches.relevance == "keyword_gate" else Overseer
    overseer = kind(
        store=store,
        clock=clock,
        state=state,
        series=recall.series,
        recall=recall,
        knowledge=reader,
        consultant=consultant,
        count=recall.count,
        zone=settings.zone,
        week_start=settings.week_start,
        idle=timedelta(seconds=settings.session_idle_s),
        vectors=None if settings.embedder == "none" else word_vectors,
    )
    keeper = ResultKeeper(
        store=store,
        clock=clock,
        state=state,
        series=recall.series,
        consultant=consultant,
        mode=settings.save_results,
        zone=settings.zone,
        week_start=settings.week_start,
    )
    return OversightServices(overseer, keeper)


def _portability(
    store: Store, clock: Clock, settings: Settings, known: Knowledge, lessons: Lessons, todos: Todos
) -> Callable[[], Portability]:
    """What exports and imports, loaded when it is first called for: few programs do either."""

    @cache
    def load() -> Portability:
        from perdure.services.portability.export import Exporter, SeedExporter
        from perdure.services.portability.import_ import ForeignImporter, Importer
        from perdure.services.portability.transfer import Portability
        from perdure.services.portability.vault_export import VaultExporter
        from perdure.services.portability.vault_import import VaultImporter

        return Portability(
            exporter=Exporter(store),
            importer=Importer(store, settings.limits, partial(scratch_store, key=settings.encryption_key)),
            foreign=ForeignImporter(store, clock, settings.limits, InstalledImporters()),
            vaults=VaultExporter(store),
            notes=VaultImporter(known, lessons, todos),
            seeds=SeedExporter(known),
        )

    return load
