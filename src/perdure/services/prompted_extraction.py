"""An extractor over anything that completes text: renders the prompt, asks, and reads proposals out of the reply."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from perdure.domain.errors import Unavailable
from perdure.domain.knowledge import Extraction, ExtractionRequest
from perdure.engine.answers import Unreadable
from perdure.engine.extract_replies import PROPOSALS_MAX, TODOS_MAX, extraction_data, read_extraction
from perdure.engine.prompts import filled
from perdure.services.prompted import RETRY_AFTER_S, prompt_named


@dataclass(frozen=True, slots=True)
class PromptedExtractor:
    """Asks `complete` with a prompt of ours. It only proposes: what becomes of that, the committer decides."""

    complete: Callable[[str], str]
    name: str
    """Name and version of the model, kept with everything it proposes."""

    def extract(self, request: ExtractionRequest) -> Extraction:
        """`Unavailable` if the reply cannot be read; its words stay out of the message."""
        values = {"data": extraction_data(request), "proposals_max": str(PROPOSALS_MAX), "todos_max": str(TODOS_MAX)}
        reply = self.complete(filled(prompt_named("extract"), values))
        read = read_extraction(reply, request) if isinstance(reply, str) else Unreadable("the reply is no text")
        if isinstance(read, Unreadable):
            raise Unavailable(
                f"extractor `{self.name}` gave no usable answer ({read.why}); it is asked again later",
                retry_after_s=RETRY_AFTER_S,
            )
        return read
