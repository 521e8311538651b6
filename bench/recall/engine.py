"""perdure behind the interface of the recall benchmark: the product through its public calls, with its defaults.

    python -m recall_bench locomo lme48 lme-all beam-100K --data DIR --engine engine:factory

`engine:minilm` embeds with the model of the extra `local`, `engine:words_only` with none; all else are the defaults, too.
Messages are appended with their session, time and speaker; all jobs run; a question is one call of `recall` at the moment
it was asked. Hits that are not messages count as the messages they come from.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import perdure
from perdure.settings import Settings
from perdure.testing import StoppedClock

ROLES = ("user", "assistant", "system", "tool")
BATCH = 500
FORMS = ("%I:%M %p on %d %B, %Y", "%Y/%m/%d (%a) %H:%M", "%B-%d-%Y", "%d.%m.%Y, %H:%M:%S", "%Y-%m-%d %H:%M:%S")
LATER = datetime(2100, 1, 1, tzinfo=UTC)


def factory() -> Engine:
    return Engine()


def minilm() -> Engine:
    """With the model in the folder `PERDURE_BENCH_MINILM`, which `tools/build_onnx.py` makes."""
    return Engine(embedder=f"onnx:{os.environ['PERDURE_BENCH_MINILM']}")


def words_only() -> Engine:
    return Engine(embedder="none")


class Engine:
    def __init__(self, **settings: Any) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._clock = StoppedClock(LATER)
        self.memory = perdure.open(
            settings=Settings(url=f"sqlite:////{self._folder.name.lstrip('/')}/bench.db", **settings), clock=self._clock
        )
        self._end: dict[str, datetime] = {}

    def ingest(self, haystack: str, units: Sequence[Any]) -> None:
        ana = self.memory.memory(haystack)
        self._stand_at(LATER)
        messages = list(_messages(units))
        for start in range(0, len(messages), BATCH):
            ana.append_many(messages[start : start + BATCH])
        self._end[haystack] = max((message.at for message in messages if message.at), default=LATER)
        while self.memory.process(600).ran:
            pass

    def _stand_at(self, when: datetime) -> None:
        self._clock.move(seconds=(when - self._clock.now()).total_seconds())

    def search(self, haystack: str, question: str, k: int, asked_at: str, sessions: Iterable[str] | None) -> list[str]:
        self._stand_at(moment(asked_at) or self._end[haystack])
        fields = {} if sessions is None else {"sessions": sorted(sessions)}
        found = self.memory.memory(haystack).recall(question, limit=k, **fields)
        return [one for hit in found.hits for one in hit.sources]

    def context(self, haystack: str, question: str, budget: int, asked_at: str) -> set[str]:
        """The messages that stand whole in the context for a question."""
        self._stand_at(moment(asked_at) or self._end[haystack])
        return set(self.memory.memory(haystack).context(question, budget_tokens=budget).sources)


def _messages(units: Sequence[Any]) -> Iterator[perdure.NewMessage]:
    at = datetime(2000, 1, 1, tzinfo=UTC)
    for unit in units:
        # Some data state one time for a session: its messages are a moment apart.
        stated = moment(unit.ts)
        following = at + timedelta(seconds=1)
        at = following if stated is None else max(following, stated) if unit.pos else stated
        named = unit.speaker.lower() not in ROLES
        yield perdure.NewMessage(
            role="user" if named else unit.speaker.lower(),
            content=unit.text or " ",
            id=unit.id,
            session=unit.session,
            at=at,
            metadata={"name": unit.speaker} if named else None,
        )


def moment(text: str) -> datetime | None:
    """The times of the data sets, each written in its own way; in UTC, since none names a zone."""
    for form in FORMS:
        try:
            return datetime.strptime(re.sub(r"\s+", " ", text.strip()), form).replace(tzinfo=UTC)
        except ValueError:
            continue
    return None
