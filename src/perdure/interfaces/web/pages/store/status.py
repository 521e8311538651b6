"""`/u/{user}/status`: store, model, embedder, reranker and workers on one page, with the remedy beside what is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fastapi import APIRouter, Request, Response

from perdure.app import Engine, model_reports
from perdure.domain.jobs import QueueReport
from perdure.domain.reports import DoctorReport, PartReport, StoreDescription
from perdure.domain.values import dataclass
from perdure.interfaces.access import AccessDenied
from perdure.interfaces.web.filters import lasting, plural, size
from perdure.interfaces.web.page import door, memory_of, page

router = APIRouter()
ABOUT = {"jobs": "workers", "background worker": "workers", "model": "model", "embedder": "embedder"}
"""Which part a degradation is about, by its first words; anything else is about the store."""
OFF = {
    "model": "No model is configured. Rules do its work.",
    "embedder": "The embedder is off. Search uses words only.",
    "reranker": "No reranker is configured. Results keep the order of the search.",
}
STORES = {"sqlite": "SQLite", "postgresql": "PostgreSQL", "postgres": "PostgreSQL", "memory": "In memory, until it is closed"}
TITLES = {"store": "Store", "model": "Model", "embedder": "Embedder", "reranker": "Reranker", "workers": "Workers"}


@dataclass(frozen=True, slots=True)
class PartStatus:
    """A part as it is shown."""

    title: str
    name: str
    state: str
    """`ok`, `off`, `wrong` or `unchecked`."""
    facts: Mapping[str, str]
    problems: Sequence[tuple[str, str]]
    """What is wrong, and what helps."""


@router.get("/u/{user:id}/status")
def show(request: Request) -> Response:
    return _page(request, checked=False)


@router.post("/u/{user:id}/status")
def check(request: Request) -> Response:
    """Ask each part something, and send a message through the store; nothing of it stays."""
    door(request).whole("admin")
    return _page(request, checked=True)


def _page(request: Request, *, checked: bool) -> Response:
    memory_of(request)
    try:
        engine = door(request).whole("read")
    except AccessDenied:
        return page(request, "status.html", parts=None, checked=False)
    return page(request, "status.html", parts=list(_parts(engine, checked=checked)), checked=checked)


def _parts(engine: Engine, *, checked: bool) -> Iterator[PartStatus]:
    found = engine.doctor() if checked else engine.health()
    problems: dict[str, list[tuple[str, str]]] = {name: [] for name in TITLES}
    for line in found.degraded:
        about, _, words = line.partition(": ")
        wrong, _, remedy = (words or line).partition("; ")
        problems[ABOUT.get(about, "store")].append((_sentence(wrong), _sentence(remedy)))
    facts = _store_facts(found.store)
    if isinstance(found, DoctorReport):
        facts["Round trip"] = lasting(found.round_trip_ms / 1000)
    yield _part_status("store", STORES.get(found.store.backend, found.store.backend), facts, problems["store"])
    for one in model_reports(engine, ask=checked):
        yield _model_status(one, problems[one.part])
    yield _part_status("workers", "", _queue_facts(found.queue), problems["workers"])


def _part_status(part: str, name: str, facts: Mapping[str, str], problems: Sequence[tuple[str, str]]) -> PartStatus:
    return PartStatus(TITLES[part], name, "wrong" if problems else "ok", facts, problems)


def _model_status(one: PartReport, problems: Sequence[tuple[str, str]]) -> PartStatus:
    wrong = [*([(_sentence(one.problem), one.remedy)] if one.problem else []), *problems]
    state = "wrong" if wrong else {"off": "off", "answers": "ok"}.get(one.state, "unchecked")
    facts = {"Answered in": lasting(one.took_ms / 1000)} if one.state == "answers" else {}
    return PartStatus(TITLES[one.part], one.name or OFF[one.part], state, facts, wrong)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _store_facts(store: StoreDescription) -> dict[str, str]:
    return {
        "Location": store.location,
        "Size": size(store.bytes),
        "Schema": f"version {store.schema_version}",
        "Durability": store.durability,
        "Encryption": store.encryption,
    }


def _queue_facts(queue: QueueReport) -> dict[str, str]:
    facts = {"Queue": f"{plural(queue.ready, 'job')} waiting, {queue.running:,} running", "Failed": plural(queue.dead, "job")}
    return {**facts, "Oldest due": f"since {lasting(queue.late_s)}"} if queue.late_s >= 1 else facts
