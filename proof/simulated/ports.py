"""What a simulated engine is connected to: a store, a model, an embedder and a source that fail as the weather has it."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import numpy as np

from perdure import Page, Unavailable, Window
from perdure.domain.errors import PerdureError
from perdure.domain.jobs import Claim, Job
from perdure.domain.models import ChatReply, ChatRequest
from perdure.domain.scope import Owner
from perdure.ports.models import ModelRefused, ModelTimeout
from perdure.ports.store import Store, Tx, View
from perdure.testing import FailingStore
from perdure.testing.model_server import POISON, fitting

T = TypeVar("T")
DIMS = 8
PORTS = ("store", "model", "embedder", "files", "source")
SOURCE_START = datetime(2025, 12, 1, tzinfo=UTC)
SOURCE_MINUTES = 600


class Killed(BaseException):
    """The process of a worker ends here, as far as the worker can tell."""


@dataclass(slots=True)
class Weather:
    """Which ports fail at present. Nothing fails while `held` is more than 0."""

    failing: set[str] = field(default_factory=set)
    held: int = 0

    def at(self, port: str) -> bool:
        return not self.held and port in self.failing


class FaultyStore(FailingStore):
    """Refuses, or loses the answer of a write, by chance; kills whoever works while `mortal`."""

    def __init__(self, inner: Store, weather: Weather, chance: random.Random) -> None:
        super().__init__(inner)
        # A store in memory has nothing to overwrite. Here it queues the same jobs as the others, so that their traces can be compared.
        self.features = replace(inner.features, durable=True)
        self.weather = weather
        self.mortal = False
        self.faults = 0
        self._chance = chance

    def read(self, owner: Owner, work: Callable[[View], T], *, deadline_s: float | None = None) -> T:
        if self._struck(0.04):
            self.fail_next(self._error())
        return super().read(owner, work, deadline_s=deadline_s)

    def write(self, owner: Owner, work: Callable[[Tx], T], *, deadline_s: float | None = None) -> T:
        if self.mortal and self._struck(0.06):
            if self._chance.random() < 0.5:
                super().write(owner, work, deadline_s=deadline_s)
            raise Killed
        if self._struck(0.06):
            self.fail_next(self._error())
        elif self._struck(0.08):
            # Without the list of `FailingStore`: a write that fails by itself must leave no lost answer to the next one.
            super().write(owner, work, deadline_s=deadline_s)
            raise Unavailable("the answer was lost; try again")
        return super().write(owner, work, deadline_s=deadline_s)

    def claim(self, claim: Claim) -> list[Job]:
        if self._struck(0.1):
            raise self._error()
        jobs: list[Job] = self._inner.claim(claim)
        if self._struck(0.05):
            raise Unavailable("the answer was lost; try again")
        return jobs

    def _struck(self, share: float) -> bool:
        struck = self.weather.at("store") and self._chance.random() < share
        self.faults += struck
        return struck

    def _error(self) -> PerdureError:
        words = self._chance.choice(["the store is busy", "the disk is full", "input/output error", "the connection is lost"])
        return Unavailable(words, retry_after_s=1.0)


@dataclass(slots=True)
class ScriptedModel:
    """Answers what was asked, or as badly as models do. Notes whose words it was shown."""

    weather: Weather
    chance: random.Random
    shown: Callable[[str], None]
    meanwhile: Callable[[], None]
    """Called now and then while the model is being asked."""
    name: str = "scripted"
    faults: int = 0

    def chat(self, request: ChatRequest) -> ChatReply:
        text = "\n".join(message.content for message in request.messages)
        self.shown(text)
        self.meanwhile()
        if self.weather.at("model") and self.chance.random() < 0.6:
            self.faults += 1
            return self._badly(request)
        # What it writes of a summary may quote what it was shown: whoever keeps that knows of which messages it is made.
        words = text.split()[-12:] if request.purpose in ("fold", "rolling", "session", "spine") else ["Noted", "so", "far."]
        quoted = " ".join(words)[:200]
        if request.schema is None:
            return ChatReply(quoted, 7, 3)
        return ChatReply(json.dumps(fitting(request.schema, quoted, entries=self.chance.randint(0, 2))), 7, 3)

    def _badly(self, request: ChatRequest) -> ChatReply:
        kind = self.chance.randrange(14)
        if kind < 4:
            raise (ModelTimeout("too slow"), ModelRefused("no"), Unavailable("down"), RuntimeError("out of order"))[kind]
        fits = json.dumps(fitting(request.schema or {"type": "object"}, POISON, entries=2))
        answers: list[object] = [
            "",
            "null",
            "I would rather talk about the weather.",
            fits[: len(fits) // 2],
            '{"a": 1} or rather {"a": 2}',
            '{"unexpected": [NaN, 1e999]}',
            "x" * 300_000,
            fits,
            "\ud800 \x00",
            None,
        ]
        answer = answers[kind - 4]
        if answer is None:
            return "no reply at all"  # type: ignore[return-value] # the point of it
        return ChatReply(str(answer), cut=kind == 7)


@dataclass(slots=True)
class ScriptedEmbedder:
    """A vector from the bytes of the text; or an error, or something that is no vector."""

    weather: Weather
    chance: random.Random
    meanwhile: Callable[[], None]
    name: str = "scripted"
    version: str = "1"
    dims: int = DIMS
    faults: int = 0

    def embed(self, texts: Sequence[str], *, kind: str = "passage") -> Any:
        self.meanwhile()
        if self.weather.at("embedder") and self.chance.random() < 0.6:
            self.faults += 1
            which = self.chance.randrange(4)
            if which == 0:
                raise Unavailable("the embedder is down")
            if which == 1:
                raise OSError("connection reset")
            return np.full((len(texts), DIMS + (which == 2)), np.nan, np.float32)
        rows = [np.frombuffer(hashlib.sha256(text.encode("utf-8", "replace")).digest()[:DIMS], np.uint8) for text in texts]
        found = np.array(rows, np.float32).reshape(len(texts), DIMS) + 1
        return found / np.linalg.norm(found, axis=1, keepdims=True)


@dataclass(slots=True)
class Source:
    """An API that knows one entry in some minutes, always the same; it fails, cuts answers off, and answers by pages."""

    weather: Weather
    chance: random.Random
    word: str
    """Stands in every entry, and tells whose it is."""
    faults: int = 0

    def entries(self, start: datetime, end: datetime) -> list[dict[str, Any]]:
        """What it has from `start` up to, not including, `end`, the newest first."""
        first = max(0, -((SOURCE_START - start) // timedelta(minutes=1)))
        found = []
        for minute in range(first, SOURCE_MINUTES):
            at = SOURCE_START + timedelta(minutes=minute)
            if at >= end:
                break
            if minute % 3 == 0:
                found.append({"id": f"e{minute}", "timestamp": at.isoformat(), "of": self.word, "n": minute})
        return found[::-1]

    def fetch(self, window: Window, cursor: object = None) -> Page | list[dict[str, Any]]:
        """As a fetcher: sometimes in two pages."""
        found = self.entries(window.start, window.end)
        if cursor is not None:
            self._fail(0.5)
            return Page(found[int(str(cursor)) :])
        self._fail(0.5)
        if len(found) > 3 and self.chance.random() < 0.4:
            return Page(found[:3], next_cursor="3")
        return found

    def _fail(self, share: float) -> None:
        if self.weather.at("source") and self.chance.random() < share:
            self.faults += 1
            raise self.chance.choice([OSError("no route"), ValueError("bad answer"), Unavailable("busy")])
