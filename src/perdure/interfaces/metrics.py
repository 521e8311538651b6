"""What the server tells Prometheus. Labels have few values: templates of paths, never ids of users or what they wrote."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from perdure.app import Engine
from perdure.domain.errors import PerdureError

MEDIA_TYPE = CONTENT_TYPE_LATEST
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class Metrics:
    """Of one server: its own registry, so that those of the host program stay its own."""

    def __init__(self, engine: Engine) -> None:
        self._registry = here = CollectorRegistry()
        self._requests = Counter("perdure_http_requests", "Requests answered.", ["route", "method", "status"], registry=here)
        self._seconds = Histogram("perdure_http_request_seconds", "Time to answer.", ["route"], buckets=SECONDS, registry=here)
        self._running = Gauge("perdure_http_requests_running", "Requests being answered now.", registry=here)
        self._refusals = Counter(
            "perdure_guard_refusals", "Requests that the guard let go no further.", ["reason"], registry=here
        )
        # Looking one up checks its labels, for each request anew.
        self._counted = cache(self._requests.labels)
        self._timed = cache(self._seconds.labels)
        self._registry.register(_Store(engine))

    def begun(self) -> None:
        self._running.inc()

    def ended(self, route: str, method: str, status: int, took_s: float) -> None:
        """`route` is the template of the path; a status of 0 means that the caller went away."""
        self._running.dec()
        known = method if method in METHODS else "OTHER"
        self._counted(route, known, str(status)).inc()
        self._timed(route).observe(took_s)

    def refused(self, reason: str) -> None:
        self._refusals.labels(reason).inc()

    def text(self) -> bytes:
        """Everything, as Prometheus reads it. What the store holds is looked up now."""
        return generate_latest(self._registry)


class _Store(Collector):
    """What is only known to the store is asked for when somebody looks."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def describe(self) -> Iterator[Metric]:
        return iter(())  # or the registry would ask the store now

    def collect(self) -> Iterator[Metric]:
        up = GaugeMetricFamily("perdure_store_up", "Whether the store answers.")
        try:
            found = self._engine.health()
        except PerdureError:
            up.add_metric([], 0)
            yield up
            return
        up.add_metric([], 1)
        yield up
        yield GaugeMetricFamily("perdure_store_bytes", "Size of the store.", value=found.store.bytes)
        yield GaugeMetricFamily("perdure_users", "Users of whom something is kept.", value=found.users)
        jobs = GaugeMetricFamily("perdure_jobs", "Jobs by state; dead ones failed for good.", labels=["state"])
        for state in ("ready", "running", "done", "dead"):
            jobs.add_metric([state], getattr(found.queue, state))
        yield jobs
        yield GaugeMetricFamily("perdure_jobs_late_seconds", "How late the oldest due job is.", value=found.queue.late_s)
        if found.indexes is not None:
            yield GaugeMetricFamily("perdure_index_cache_bytes", "Search indexes held in memory.", value=found.indexes.bytes)
            yield GaugeMetricFamily("perdure_index_cache_bytes_max", "What they may take.", value=found.indexes.bytes_max)
            asked = CounterMetricFamily(
                "perdure_index_cache_questions", "Questions, by whether their index was held.", labels=["held"]
            )
            asked.add_metric(["yes"], found.indexes.hits)
            asked.add_metric(["no"], found.indexes.misses)
            yield asked
            yield CounterMetricFamily("perdure_index_cache_evictions", "Indexes dropped for room.", value=found.indexes.evicted)
        trouble = 0 if found.worker_trouble is None else 1
        yield GaugeMetricFamily("perdure_worker_trouble", "1 if the background worker could not work.", value=trouble)
        yield GaugeMetricFamily("perdure_degraded", "How many things are degraded.", value=len(found.degraded))
        calls = CounterMetricFamily("perdure_model_calls", "Questions to models.", labels=["purpose", "outcome"])
        tokens = CounterMetricFamily("perdure_model_tokens", "Tokens of models.", labels=["purpose", "direction"])
        spent: dict[tuple[str, str], int] = {}
        for one in found.models:
            calls.add_metric([one.purpose, one.outcome], one.calls)
            for direction, count in (("in", one.tokens_in), ("out", one.tokens_out)):
                spent[one.purpose, direction] = spent.get((one.purpose, direction), 0) + count
        for (purpose, direction), count in spent.items():
            tokens.add_metric([purpose, direction], count)
        yield calls
        yield tokens
