"""New names among many known ones: few are compared, whatever their number, and the right ones are found."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import perdure
from perdure.domain.knowledge.entities import Entity, from_body
from perdure.domain.knowledge.records import RecordQuery
from perdure.domain.scope import Owner
from perdure.engine.knowledge.terms import UNKEYED
from perdure.engine.names import compare
from perdure.services.knowledge.ledger import CANDIDATES_MAX, COMPLETED_AT_ONCE
from perdure.settings import Settings

ANA = Owner("default", "ana")
SURNAMES = ("Ivanov", "Becker", "Okafor", "Tanaka", "Moreau", "Silva", "Nowak", "Larsen", "Haddad", "Kowalski")
GIVEN = ("Ines", "Viktor", "Amara", "Kenji", "Colette", "Bruno", "Zofia", "Henrik", "Layla", "Piotr")


@pytest.fixture
def engine() -> Iterator[perdure.Engine]:
    with perdure.open(settings=Settings(url="memory:", embedder="none")) as engine:
        yield engine


def told(ana: perdure.Memory, *names: str) -> None:
    for name in names:
        ana.remember(f"{name} likes tea", "PEOPLE", entities=[f"person:{name}"])


def judged(monkeypatch: pytest.MonkeyPatch, call: object) -> int:
    """How many pairs of names were compared meanwhile."""
    count = [0]
    real = compare.compare

    def counting(*names: object, **more: object) -> object:
        count[0] += 1
        return real(*names, **more)  # type: ignore[arg-type]

    compare._judged.cache_clear()
    with monkeypatch.context() as patched:
        patched.setattr(compare, "compare", counting)
        call()  # type: ignore[operator]
    return count[0]


def test_a_new_name_is_compared_with_few_however_many_are_known(
    engine: perdure.Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana = engine.memory("ana")
    told(ana, *(f"{given} {surname}" for given in GIVEN for surname in SURNAMES))
    assert judged(monkeypatch, lambda: told(ana, "Viktor Bekker")) <= CANDIDATES_MAX + 20
    assert judged(monkeypatch, lambda: told(ana, "Qwerty Zxcvbnm")) <= 2
    assert ("person:viktor_becker", "person:viktor_bekker") in {one.subjects for one in ana.entities.suggestions()}


def test_a_spelling_that_is_certainly_the_same_becomes_an_alias(engine: perdure.Engine) -> None:
    ana = engine.memory("ana")
    told(ana, "José García", "Jose Garcia")
    assert [one.ref for one in ana.entities.list()] == ["person:josé_garcía"]


def test_the_transaction_finds_the_verdicts_made_before_it(engine: perdure.Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are compared before it begins; it looks for known names again, and judges only those that are new since."""
    ana = engine.memory("ana")
    told(ana, "Viktor Becker", "Viktor Nowak")
    inside: list[int] = []
    write = type(engine._store).write

    def counted(store: object, owner: Owner, work: object, **more: object) -> object:
        before = compare._judged.cache_info().misses
        found = write(store, owner, work, **more)  # type: ignore[arg-type]
        inside.append(compare._judged.cache_info().misses - before)
        return found

    monkeypatch.setattr(type(engine._store), "write", counted)
    compare._judged.cache_clear()
    told(ana, "Viktor Bekker")
    assert compare._judged.cache_info().misses > 0
    assert inside == [0]


def test_entities_from_before_there_were_keys_get_theirs_and_are_found(engine: perdure.Engine) -> None:
    ana = engine.memory("ana")
    told(ana, "Viktor Becker", "Ines Okafor")

    def age(tx: object) -> None:
        for record in tx.records.list_(RecordQuery("entity", 10)):  # type: ignore[attr-defined]
            terms = from_body(Entity, record.body).terms()
            tx.records.retag("entity", {record.key: (*terms, UNKEYED)})  # type: ignore[attr-defined]

    engine._store.write(ANA, age)
    assert engine.verify().clean, "an old store is sound"
    told(ana, "Kenji Tanaka")
    left = engine._store.read(ANA, lambda view: view.records.list_(RecordQuery("entity", COMPLETED_AT_ONCE, UNKEYED)))
    assert left == []
    told(ana, "Viktor Bekker")
    assert ("person:viktor_becker", "person:viktor_bekker") in {one.subjects for one in ana.entities.suggestions()}
    assert engine.verify().clean
