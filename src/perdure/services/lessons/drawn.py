"""Lessons that folds drew: which of them may be kept, the job that settles them, and what becomes of them with their folds."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime

from perdure.domain.conversation.digests import Digest
from perdure.domain.jobs import NewJob
from perdure.domain.knowledge.journal import Attribution
from perdure.domain.lessons import Lesson
from perdure.domain.text.rules import compact_json
from perdure.engine.conversation.jobs import LESSONS
from perdure.engine.lessons.book import LESSON_LINE_CHARS_MAX, why_no_lesson
from perdure.ports.store import Tx
from perdure.services.lessons.rows import LessonDraft, fold_origin, lesson_drafts, unlearn

QUEUE_MAX = 2**31
"""Work that other work causes is not turned away."""


def leave_lessons(tx: Tx, digests: Iterable[Digest], by: Attribution) -> list[Lesson]:
    """As part of the transaction that removes folds for good: what they alone have taught goes with them; what that was.

    Jobs see to what they have taught to others than this user.
    """
    folds = [digest for digest in digests if digest.kind == "fold" and digest.lessons]
    gone = unlearn(tx, [fold_origin(digest) for digest in folds], by) if folds else []
    for digest in folds:
        tx.enqueue(fold_job(digest, by.at), now=by.at, queue_max=QUEUE_MAX)
    return gone


def keepable(drafts: Iterable[LessonDraft]) -> list[LessonDraft]:
    """Those that may be kept."""
    return [draft for draft in drafts if why_no_lesson(draft.text, chars_max=LESSON_LINE_CHARS_MAX) is None]


def why_drawn(digest: Digest, note: str | None) -> str:
    refused = len(digest.lessons) - len(keepable(lesson_drafts(digest)))
    told = [f"session {digest.session_number}, fold {digest.version}", *([] if note is None else [note])]
    return "; ".join([*told, *([f"{refused} lines were no lessons"] if refused else [])])


def former_ref(agent: str, text: str) -> str:
    """By what the index knew a lesson when it was a part of its fold."""
    return compact_json([agent, hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()])


def fold_job(digest: Digest, due_at: datetime) -> NewJob:
    """Settles what a fold has taught, by what has become of it until then. It carries no words."""
    address, number = digest.address, digest.session_number
    name = f"{address.agent}\x1f{address.channel}\x1f{number}\x1f{digest.version}"
    payload = {"agent": address.agent, "channel": address.channel, "session_number": number, "version": digest.version}
    return NewJob(LESSONS, hashlib.sha256(name.encode()).hexdigest()[:32], due_at, payload)
