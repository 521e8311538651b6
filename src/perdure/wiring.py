"""Groups of services, built from settings: what talks, what teaches, what carries data out and in. `app` puts them together."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from pathlib import Path

from perdure.engine.extractive import ExtractiveSummariser
from perdure.engine.upkeep import LESSONS, SWEEP, TALLY, TRANSCRIPT
from perdure.handles.conversation import ConversationServices
from perdure.handles.lessons import LessonServices
from perdure.handles.portable import PortableServices
from perdure.parts import (
    agent_files,
    lesson_files,
    scratch_store,
    token_count,
)
from perdure.ports.clock import Clock
from perdure.ports.store import Store
from perdure.ports.summarise import Summariser
from perdure.services.agents import Agents
from perdure.services.assembly import Assembly
from perdure.services.digesting import Digesting
from perdure.services.exporting import Exporting
from perdure.services.folding import Folding
from perdure.services.foreign import ForeignImporting
from perdure.services.importing import Importing
from perdure.services.ingest import Ingest
from perdure.services.knowing import Knowing
from perdure.services.knowledge import Knowledge
from perdure.services.lessons import Lessons
from perdure.services.mirrors import Mirrors
from perdure.services.prompting import Prompting
from perdure.services.sessions import Sessions
from perdure.services.summarising import Writer
from perdure.services.sweeping import Sweeping
from perdure.services.tallying import tally_handler
from perdure.services.todos import Todos
from perdure.services.transcripts import Transcripts, transcript_handler
from perdure.services.turns import Turns
from perdure.services.vault_reading import VaultImporting
from perdure.services.vaults import VaultExporting
from perdure.services.work import Handler
from perdure.settings import Settings


class Talk:
    """The conversation part of an engine: its services, and the handlers of the jobs it causes."""

    def __init__(self, store: Store, clock: Clock, settings: Settings, summariser: Summariser | None, knowing: Knowing) -> None:
        layers, limits = settings.layers, settings.limits
        idle = timedelta(seconds=settings.session_idle_s)
        offline = ExtractiveSummariser()
        count = token_count(settings.tokenizer)
        writer = Writer(store, offline if summariser is None else summariser, offline, count, layers.window_messages)
        has_files = bool(settings.files_dir)
        folding = Folding(store, clock, writer, layers, knowing.lessons)
        sweeping = Sweeping(store, clock, layers, idle, settings.profile, folding, transcripts=has_files)
        digesting = Digesting(store, clock, writer, layers)
        resume_within = timedelta(seconds=settings.session_resume_s)
        self.services = ConversationServices(
            Ingest(store, clock, limits, idle, count, settings.zone),
            Sessions(store, clock, limits, resume_within, transcripts=has_files),
            folding,
            Assembly(store, clock, layers, idle, folding, sweeping, count, knowing),
            Turns(store, clock),
        )
        self.handlers: dict[str, Handler] = {
            TALLY: tally_handler(store, clock, sweeping.after_messages),
            SWEEP: sweeping.sweep,
            "bounded_history": sweeping.bound,
            "request_fold": sweeping.fold_request,
            "periodic_flush": sweeping.flush,
            "rolling_digest": digesting.rolling,
            "session_digest": digesting.session,
            "spine": digesting.spine,
            LESSONS: knowing.lessons.handle,
        }
        self.transcripts: Transcripts | None = None
        if has_files:
            from perdure.adapters.transcripts import TranscriptFolder

            root = Path(settings.files_dir)
            self.transcripts = Transcripts(TranscriptFolder(root))
            minimum = settings.transcript_messages_min
            self.handlers[TRANSCRIPT] = transcript_handler(store, self.transcripts, messages_min=minimum)


def taught_in(store: Store, clock: Clock, settings: Settings) -> LessonServices:
    """Lessons and agents, and the files that people keep them in."""
    mirrors = Mirrors(store, clock, lesson_files(settings))
    lessons = Lessons(store, clock, settings.limits, mirrors, settings.lessons_scope, settings.user)
    agents = Agents(store, clock, settings.limits, agent_files(settings), settings.space)
    return LessonServices(lessons, Prompting(store, clock, agents, lessons, token_count(settings.tokenizer), settings.zone))


def portable(
    store: Store, clock: Clock, settings: Settings, known: Knowledge, books: tuple[Lessons, Todos]
) -> PortableServices:
    """What takes data out and in."""
    return PortableServices(
        Exporting(store),
        Importing(store, settings.limits, partial(scratch_store, key=settings.encryption_key)),
        ForeignImporting(store, clock, settings.limits),
        VaultExporting(store),
        VaultImporting(known, *books),
    )
