"""Storing key-value state of one owner; part of a `View` and a `Tx`."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from perdure.domain.state import KeyInfo, Revision


class StateView(Protocol):
    def find(self, key: str) -> Revision | None:
        """The latest revision, be it a value, a deletion, or expired. In `write`, the key is locked."""

    def find_revision(self, key: str, number: int) -> Revision | None:
        """One revision by its number."""

    def find_request(self, key: str, request: str) -> Revision | None:
        """The revision that a request made, if it is still kept."""

    def list_keys(self, *, now: datetime, prefix: str, after: str | None, limit: int) -> list[KeyInfo]:
        """Keys that hold a live value and start with `prefix`, in code-point order, behind `after`; no value is read.

        `preview` holds the first characters of the JSON, at most `PREVIEW_KEPT`.
        """

    def list_revisions(self, key: str, *, limit: int, before: int | None = None) -> list[Revision]:
        """Newest first."""


class StateTx(StateView, Protocol):
    def put(self, revision: Revision, *, keep: int) -> None:
        """Store the next revision of its key, and forget those more than `keep` behind it.

        A number that is not one more than the latest is a `Conflict`.
        """

    def remove(self, key: str) -> int:
        """Forget a key with all its revisions; how many there were."""


PREVIEW_KEPT = 101
