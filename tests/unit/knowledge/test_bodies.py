"""The stored form of a record's body is short, and says all of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import hypothesis.strategies as st
from hypothesis import given

from perdure.domain.knowledge.entities import Entity
from perdure.domain.knowledge.memories import MemoryRecord, Statement
from perdure.ports.tables.knowledge import restored, stored

AT = datetime(2026, 1, 5, 10, 0, tzinfo=UTC)
STATEMENT = Statement(
    "s1", "profile||0|fact", "Has a dog", "user", (), AT, AT, AT, confidence=1.0, source="user", mention_days=("2026-01-05",)
)
MEMORY = MemoryRecord("people|person|ana|fact", "PEOPLE", "person", "fact", ("person:ana",), "Ana", AT, AT)
ENTITY = Entity("person:ana", "person", "Ana", AT)
BODIES = [(one.kind, one.record_key, one.body()) for one in (STATEMENT, MEMORY, ENTITY)]

values = st.one_of(
    st.none(), st.booleans(), st.integers(-1, 2), st.just(1.0), st.sampled_from(["", "user", "ACTIVE"]), st.just([])
)


@given(st.sampled_from(BODIES), st.data())
def test_what_is_read_is_what_was_stored_in_the_same_order(
    held: tuple[str, str, dict[str, object]], data: st.DataObject
) -> None:
    kind, key, body = held
    free = [name for name in body if name not in ("valid_from", "last_mentioned", "created_at")]
    changed = {**body, **data.draw(st.dictionaries(st.sampled_from(free), values, max_size=6))}
    again = restored(kind, key, stored(kind, key, changed))  # type: ignore[arg-type]
    assert (again, [*again]) == (changed, [*changed])


@given(st.sampled_from(BODIES), st.data())
def test_a_body_that_lacks_a_field_is_stored_as_it_is(held: tuple[str, str, dict[str, object]], data: st.DataObject) -> None:
    kind, key, body = held
    lacking = data.draw(st.sets(st.sampled_from(sorted(body)), min_size=1))
    part = {name: value for name, value in body.items() if name not in lacking}
    assert restored(kind, key, stored(kind, key, part)) == part  # type: ignore[arg-type]


def test_what_a_plain_statement_says_of_nothing_is_left_out() -> None:
    kept = json.loads(stored("statement", "s1", STATEMENT.body()))
    assert kept == {"": 1, "memory": "profile||0|fact", "content": "Has a dog", "valid_from": 1767607200000000}


def test_a_body_of_an_earlier_version_is_read_as_it_is() -> None:
    text = json.dumps(STATEMENT.body())
    assert restored("statement", "another", text) == STATEMENT.body()
