"""Whether the chat model, the embedder and the reranker answer: each is asked one small thing, and nothing is stored."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from perdure.domain.models import ChatMessage, ChatRequest
from perdure.domain.reports import ModelPart, PartReport
from perdure.ports.models import Reranker
from perdure.services.models.consultant import Consultant, failure_of
from perdure.services.models.embedders import Embedders, embedded

CHECK_S = 15.0
QUESTION = "Is anybody there?"
REMEDIES: dict[ModelPart, str] = {
    "model": "Check the setting `model` and `model_key`, and that its server runs. Meanwhile rules do its work.",
    "embedder": "Check the setting `embedder` and `embedder_key`, and that its server runs. Meanwhile words are searched.",
    "reranker": "Check the reranker that was given to `perdure.open`. Meanwhile hits keep their order.",
}


@dataclass(frozen=True, slots=True)
class ModelChecks:
    consultant: Consultant
    embedders: Embedders
    embedder_setting: str
    reranker: Reranker | None

    def reports(self, *, ask: bool) -> tuple[PartReport, ...]:
        """One for each part; `ask`: with an answer from each that is in use."""
        return (
            _report("model", self.consultant.name if self.consultant.available else "", self._chat if ask else None),
            _report("embedder", self.embedder_setting if self.embedders.in_use else "", self._embed if ask else None),
            _report("reranker", "" if self.reranker is None else str(self.reranker.name), self._rerank if ask else None),
        )

    def _chat(self) -> object:
        model = self.consultant.model
        request = ChatRequest((ChatMessage("user", QUESTION),), tokens_max=16, deadline_s=CHECK_S)
        return None if model is None else model.chat(request)

    def _embed(self) -> object:
        current = self.embedders.current()
        return None if current is None else embedded(current, [QUESTION], "query")

    def _rerank(self) -> object:
        return None if self.reranker is None else [float(one) for one in self.reranker.rerank(QUESTION, [QUESTION])]


def _report(part: ModelPart, name: str, ask: Callable[[], object] | None) -> PartReport:
    if not name or ask is None:
        return PartReport(part, name, "configured" if name else "off")
    started = time.monotonic()  # real time: it is a server that is waited for
    why = failure_of(ask, CHECK_S)
    took_ms = (time.monotonic() - started) * 1000
    if why:
        return PartReport(part, name, "failed", problem=why, remedy=REMEDIES[part], took_ms=took_ms)
    return PartReport(part, name, "answers", took_ms=took_ms)
