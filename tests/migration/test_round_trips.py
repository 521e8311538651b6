"""What a call costs where the server is far away: the network is waited for a bounded number of times, whatever is known."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import perdure
import pg
import round_trips
from perdure.adapters.postgres.store import PostgresStore
from perdure.domain.scope import Address
from perdure.testing import StoppedClock
from perdure.testing.contract.samples import ANA, HERE, a_message, fill
from round_trips import Traffic

BEGIN, COMMIT = 1, 1
CALLS: dict[str, Callable[[perdure.Memory], object]] = {
    "messages": lambda ana: ana.messages(),
    "append": lambda ana: ana.append("user", "I ran again"),
    "recall": lambda ana: ana.recall("Where does Anna work?").hits,
    "context": lambda ana: ana.context().text,
    "context for a goal": lambda ana: ana.context("Where does Anna work?").text,
    "before": lambda ana: ana.before("Where does Anna work?").text,
    "state.load": lambda ana: ana.state.load("home"),
    "series.query": lambda ana: ana.series("runs").query("2026-01-01", "2026-01-02").entries,
}
BUDGETS = {
    "messages": Traffic(3, 8),
    "append": Traffic(6, 14),
    "recall": Traffic(9, 26),
    "context": Traffic(12, 42),
    "context for a goal": Traffic(20, 67),
    "before": Traffic(31, 81),
    "state.load": Traffic(4, 10),
    "series.query": Traffic(8, 13),
}
"""Round trips and statements, of a user who has some of everything. They may fall, never rise; they rose by a
statement and up to two round trips, when an old value began to carry the current one, and by a statement that travels with
another one, when calls that read began to look for what is still to be learned. `before` also looks, with another read, whether
the goal was said in the session that goes on. Appends fell by two round trips and four statements when they began to derive
nothing; calls that search rose by up to five statements and `before` by up to four round trips, because they look for what
nobody has taken in yet."""


@pytest.fixture
def counted(
    postgres_url: str, postgres_schema: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[round_trips.Counter, perdure.Memory, Callable[[], object]]]:
    with round_trips.counted(monkeypatch) as counter:
        settings = pg.settings(postgres_url, postgres_schema, postgres_pool_max=1)
        with perdure.open(settings=settings, clock=StoppedClock()) as engine:
            ana = engine.memory("ana")
            for number in range(3):
                ana.append("user", f"I ran {number} km in Lisbon")
                ana.append("assistant", "Well done")
            for number in range(6):
                ana.remember(f"Rule number {number} is to run", entities=["person:Anna"], pinned=number < 4)
            ana.remember("Anna Schmidt works at Acme", "PEOPLE", entities=["person:Anna Schmidt"])
            ana.todos.add("walk the dog")
            ana.lessons.add("Be brief", "user")
            ana.instructions.add("Always answer in French")
            ana.state.save("home", {"city": "Lisbon"})
            ana.series("runs").merge([{"id": "1", "timestamp": "2026-01-01", "km": 5}], window=("2026-01-01", "2026-01-02"))
            engine.process(60)
            # Statements are prepared, and what is told is noted, when a call is made for the first times.
            for _ in range(6):
                for call in CALLS.values():
                    call(ana)
                engine.process(60)
            yield counter, ana, lambda: engine.process(60)


def test_calls_wait_for_the_network_as_often_as_they_may(
    counted: tuple[round_trips.Counter, perdure.Memory, Callable[[], object]],
) -> None:
    counter, ana, learn = counted
    seen: dict[str, Traffic] = {}
    for name, call in CALLS.items():
        learn()  # a call that reads would do so itself
        seen[name] = counter.of(lambda call=call: call(ana))  # type: ignore[misc]
    print(seen)
    too_many = {
        name: (one, BUDGETS[name])
        for name, one in seen.items()
        if one.round_trips > BUDGETS[name].round_trips or one.statements > BUDGETS[name].statements
    }
    assert too_many == {}
    assert all(one.round_trips >= 3 for one in seen.values()), "it counts"


def test_what_is_read_together_is_fetched_in_as_many_steps_as_the_deepest_needs(
    postgres_url: str, postgres_schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with round_trips.counted(monkeypatch) as counter:
        store = PostgresStore(postgres_url, schema=postgres_schema, pool_max=1)
        fill(store, ANA, 1, 2, 3)
        ran: list[str] = []

        def deep(view):  # type: ignore[no-untyped-def]
            ran.append("deep")
            session = view.latest_session(HERE)
            return view.find_session(HERE, session.number).messages

        def work(view):  # type: ignore[no-untyped-def]
            return view.together(
                lambda: deep(view),
                lambda: view.latest_session(Address("nobody", "nowhere")),
                lambda: view.together(lambda: view.find_job("a", "b"), lambda: len(view.list_jobs(None, limit=5))),
            )

        answers: list[object] = []
        traffic = counter.of(lambda: answers.append(store.read(ANA, work)))
        assert answers == [[3, None, [None, 0]]]
        assert traffic.round_trips == BEGIN + 2 + COMMIT
        assert ran == ["deep"] * 3, "until its first question, until its second, to its end"
        store.close()


def test_what_fails_in_one_of_several_works_leaves_the_next_call_as_if_nothing_had_happened(
    postgres_url: str, postgres_schema: str
) -> None:
    store = PostgresStore(postgres_url, schema=postgres_schema, pool_max=1)
    fill(store, ANA, 1)

    def failing(view):  # type: ignore[no-untyped-def]
        def refuse() -> None:
            if view.latest_session(HERE) is not None:
                raise perdure.NotFound("there is no such thing")

        return view.together(refuse, lambda: view.list_jobs(None, limit=5))

    with pytest.raises(perdure.NotFound, match="no such thing"):
        store.read(ANA, failing)
    assert store.read(ANA, lambda view: view.latest_session(HERE)) is not None
    store.close()


def test_a_row_that_is_refused_while_it_travels_with_others_undoes_them_all(postgres_url: str, postgres_schema: str) -> None:
    """Nobody waits for an insert by itself: its refusal comes with a later statement, or at the end."""
    store = PostgresStore(postgres_url, schema=postgres_schema, pool_max=1)
    fill(store, ANA, 1)

    def taken(tx, *, look: bool) -> None:  # type: ignore[no-untyped-def]
        tx.append([a_message(1)])
        tx.append([a_message(7)])
        if look:
            tx.find_messages([a_message(7).id])

    for look in (True, False):
        with pytest.raises(perdure.Conflict):
            store.write(ANA, lambda tx: taken(tx, look=look))  # noqa: B023 - run at once
        assert store.read(ANA, lambda view: view.find_messages([a_message(7).id])) == {}
    store.close()


def test_a_long_list_of_rows_is_sent_at_once(postgres_url: str, postgres_schema: str) -> None:
    store = PostgresStore(postgres_url, schema=postgres_schema, pool_max=1)
    fill(store, ANA, 1)
    store.write(ANA, lambda tx: tx.append([a_message(number) for number in range(2, 300)]))
    ids = [a_message(number).id for number in range(2, 300)]
    assert len(store.read(ANA, lambda view: view.find_messages(ids))) == len(ids)
    store.close()


def test_together_means_one_after_the_other_where_rows_are_locked(postgres_url: str, postgres_schema: str) -> None:
    """A transaction that writes takes its locks in the order of its statements."""
    store = PostgresStore(postgres_url, schema=postgres_schema, pool_max=1)
    fill(store, ANA, 1)
    ran: list[int] = []

    def work(tx):  # type: ignore[no-untyped-def]
        return tx.together(lambda: ran.append(1) or tx.latest_session(HERE), lambda: ran.append(2))

    store.write(ANA, work)
    assert ran == [1, 2]
    store.close()
