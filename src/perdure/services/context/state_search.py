"""Search in a user's state by meaning, through the index that recall uses."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from perdure.domain.errors import InvalidInput, LimitExceeded
from perdure.domain.scope import RESERVED, Scope
from perdure.domain.state import Revision, StateMatches, decoded_body, is_found
from perdure.domain.text.rules import brief, utf8_size
from perdure.domain.times.instants import to_us
from perdure.domain.values import dataclass
from perdure.engine.search.entries import agent_hash
from perdure.ports.store import View
from perdure.services.context.recall import QUERY_BYTES_MAX, RecallService
from perdure.services.series.state import StateService, check_pattern

if TYPE_CHECKING:
    from perdure.engine.search.allowed import Allowed
    from perdure.engine.search.index import SearchFilter, SegmentStack


@dataclass(frozen=True, slots=True)
class StateSearch:
    recall: RecallService
    state: StateService

    def search(self, scope: Scope, query: str, pattern: str, *, limit: int) -> StateMatches:
        """The values under keys that match the glob whose texts are nearest to the question, nearest first.

        The question is embedded outside any transaction. Without an embedder, words decide.
        """
        from perdure.engine.search.index import SearchFilter
        from perdure.engine.search.question import understand

        _check_question(query)
        check_pattern(pattern)
        most, now = self.state.limits.page(limit), self.state.clock.now()
        shelves, owner = self.recall.shelves, scope.owner
        head = self.recall.store.read(owner, lambda view: shelves.current(view, owner).head)
        vector, _ = self.recall.vector_of(query, head)
        asked = understand(query, now, self.recall.zone)
        wanted = SearchFilter(kinds=("state",), agent=agent_hash(scope.address.agent), now_us=to_us(now))

        def work(view: View) -> tuple[list[tuple[Revision, float]], bool]:
            from perdure.engine.search.ranking import nearest

            held = shelves.current(view, owner)
            mask = _matching(held.stack, wanted, pattern)
            same = vector if held.head.embedder == head.embedder else None
            best = nearest(held.stack.shelf, asked, mask, same, limit=most + 1)
            found = [(view.state.find(held.stack.ref_of(item)), score) for item, score in best[:most]]
            alive = [(one, score) for one, score in found if one is not None and one.alive(now) and is_found(one.body)]
            return alive, len(best) > most

        found, truncated = self.recall.store.read(owner, work)
        values = {one.key: decoded_body(one.body or "null") for one, _ in found}
        return StateMatches(pattern, tuple(values), values, truncated, {one.key: score for one, score in found})


def _check_question(query: object) -> None:
    if not isinstance(query, str) or not query.strip():
        raise InvalidInput(f"`query` = {brief(query, 60)} must be a question in words; to list keys, leave it out")
    if utf8_size(query, "`query`") > QUERY_BYTES_MAX:
        raise LimitExceeded(f"`query` has more than {QUERY_BYTES_MAX} bytes; ask in fewer words")


def _matching(stack: SegmentStack, wanted: SearchFilter, pattern: str) -> Allowed:
    """What may answer, under keys that match; what perdure itself keeps only if it is asked for."""
    import numpy as np

    from perdure.engine.search.allowed import Allowed
    from perdure.engine.search.index import allowed

    mask = allowed(stack, wanted).mask.copy()
    items = np.flatnonzero(mask).astype(np.int32)
    own = pattern.startswith(RESERVED)
    keys = stack.refs_of(items)
    fits = [fnmatchcase(key, pattern) and (own or not key.startswith(RESERVED)) for key in keys]
    mask[items] = np.array(fits, np.bool_)
    return Allowed(stack.shelf, mask)
