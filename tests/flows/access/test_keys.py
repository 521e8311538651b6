"""API keys and requests that are carried out once, on SQLite and PostgreSQL."""

from __future__ import annotations

import json
from typing import Any

import pytest

import perdure
from perdure.app import requests_of
from perdure.domain.scope import Owner
from perdure.testing import FailingStore, StoppedClock

ANA = Owner("default", "ana")


def test_a_key_is_recognised_by_its_secret_until_it_is_revoked(backend: Any) -> None:
    keys = backend.open().api_keys
    assert not keys.in_use()
    made = keys.create("phone", users=["ana", "ben"], permission="read")
    assert keys.recognise(made.secret) == made.key
    assert (made.key.users, made.key.permissions) == (("ana", "ben"), ("read",))
    assert keys.in_use()
    assert keys.list() == [made.key]
    assert keys.revoke(made.key.id).revoked_at is not None
    assert keys.recognise(made.secret) is None
    assert not keys.in_use()
    assert [one.id for one in keys.list()] == [made.key.id]


@pytest.mark.parametrize(
    "change", [str.upper, lambda text: text[:-1], lambda text: text + "a", lambda text: "", lambda text: "pdr_"]
)
def test_what_is_not_exactly_the_secret_is_not_recognised(change: Any) -> None:
    with perdure.open("memory:") as engine:
        made = engine.api_keys.create("k")
        assert engine.api_keys.recognise(change(made.secret)) is None
        assert engine.api_keys.recognise(made.secret) is not None


def test_a_key_ends_by_itself() -> None:
    clock = StoppedClock()
    with perdure.open("memory:", clock=clock) as engine:
        made = engine.api_keys.create("k", days=1)
        clock.move(hours=23)
        assert engine.api_keys.recognise(made.secret) is not None
        clock.move(hours=1)
        assert engine.api_keys.recognise(made.secret) is None


def test_the_store_holds_no_secret_and_no_user_reaches_the_keys(tmp_path: Any) -> None:
    file = tmp_path / "p.db"
    with perdure.open(f"sqlite:///{file}") as engine:
        made = engine.api_keys.create("laptop")
        assert engine.verify().clean
        engine.backup(tmp_path / "b.gz")
        assert engine.users() == []
        with pytest.raises(perdure.InvalidInput, match="reserved"):
            engine.memory("perdure:keys")
    secret = made.secret.rpartition("_")[2].encode()
    assert all(secret not in path.read_bytes() for path in tmp_path.iterdir())


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"name": ""}, "printable"),
        ({"name": "a\nb"}, "printable"),
        ({"name": "k", "users": []}, "at least one user"),
        ({"name": "k", "users": ["perdure:x"]}, "reserved"),
        ({"name": "k", "permission": "root"}, "read, write, admin"),
        ({"name": "k", "days": 0}, "more than 0"),
        ({"name": "k", "days": float("nan")}, "more than 0"),
    ],
)
def test_a_wrong_wish_for_a_key_is_named(wrong: dict[str, Any], words: str) -> None:
    with perdure.open("memory:") as engine, pytest.raises(perdure.InvalidInput, match=words):
        engine.api_keys.create(**wrong)


def test_a_request_is_claimed_once_and_its_status_is_kept(backend: Any) -> None:
    once = requests_of(backend.open())
    claim = once.claim(ANA, "r1", "what")
    assert claim.state == "new"
    assert once.claim(ANA, "r1", "what").state == "begun"
    once.finish(ANA, claim, 201)
    again = requests_of(backend.open()).claim(ANA, "r1", "what")
    assert (again.state, again.status) == ("done", 201)
    with pytest.raises(perdure.Conflict, match="another request"):
        once.claim(ANA, "r1", "something else")
    assert once.claim(Owner("default", "ben"), "r1", "something else").state == "new"


def test_a_released_request_can_be_made_again(backend: Any) -> None:
    once = requests_of(backend.open())
    once.release(ANA, once.claim(ANA, "r1", "what"))
    assert once.claim(ANA, "r1", "what").state == "new"


def test_a_claim_whose_answer_was_lost_is_still_the_callers() -> None:
    with perdure.open("memory:") as plain:
        store = FailingStore(plain._store)
        engine = perdure.Engine(store, StoppedClock(), perdure.Settings(url="memory:"))  # type: ignore[arg-type]
        store.lose_next_answer()
        with pytest.raises(perdure.Unavailable):
            requests_of(engine).claim(ANA, "r1", "what")
        # Whether it was carried out is not known, so it is not carried out again.
        assert requests_of(engine).claim(ANA, "r1", "what").state == "begun"


def test_requests_are_known_for_a_day_and_old_ones_are_swept_away(backend: Any) -> None:
    clock = StoppedClock()
    engine = backend.open(clock=clock)
    once = requests_of(engine)
    for number in range(5):
        once.finish(ANA, once.claim(ANA, f"r{number}", "what"), 200)
    clock.move(hours=23)
    assert once.claim(ANA, "r0", "what").state == "done"
    clock.move(days=2)
    assert once.claim(ANA, "r0", "what").state == "new"
    held = engine._store.read(
        ANA, lambda view: view.state.list_keys(now=clock.now(), prefix="perdure:once/", after=None, limit=100)
    )
    assert len(held) == 1
    assert engine.memory("ana").state.keys() == []


def test_what_is_kept_of_a_request_holds_no_words(backend: Any) -> None:
    engine = backend.open()
    once = requests_of(engine)
    claim = once.claim(ANA, "r1", "f" * 64)
    once.finish(ANA, claim, 200)
    row = engine._store.read(ANA, lambda view: view.state.find(claim.key))
    assert json.loads(row.body) == {"fingerprint": "f" * 64, "status": 200}
    engine.memory("ana").forget(user=True)
    assert once.claim(ANA, "r1", "other").state == "new"
    assert engine.verify().clean
