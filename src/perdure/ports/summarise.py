"""The summariser: words for a stretch of conversation. What the words must contain is checked by others."""

from __future__ import annotations

from typing import Protocol

from perdure.domain.digests import Summary, SummaryRequest


class Summariser(Protocol):
    @property
    def name(self) -> str:
        """Name and version, such as `extractive/1`; kept with every digest it writes."""

    def summarise(self, request: SummaryRequest) -> Summary:
        """A text within `chars_max` (and `words_max`, if given) that carries `previous` on over `messages`.

        May be slow, may be called from several threads, and is never called inside a transaction. `Unavailable` means
        that a later try may succeed; whatever else it raises counts as a failure of this try, too.
        """
