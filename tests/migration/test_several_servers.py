"""Several servers of perdure on one PostgreSQL: each sees at once what another one did, and each job is run by one of them."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import ExitStack

import perdure
import pg

SERVERS = 3
USERS = 12


def test_what_one_server_writes_another_one_recalls_at_once(pgbouncer_url: str, postgres_schema: str) -> None:
    settings = pg.settings(pgbouncer_url, postgres_schema)
    with perdure.open(settings=settings) as here, perdure.open(settings=settings) as there:
        ana, same = here.memory("ana"), there.memory("ana")
        # Both have answered before, so that both hold an index in memory.
        for one in (ana, same):
            assert one.recall("where does Ana live?").hits == ()
        for number, city in enumerate(("Lisbon", "Porto", "Faro")):
            (ana, same)[number % 2].remember(f"Owns a house in {city}")
            found = (same, ana)[number % 2].recall(f"a house in {city}").hits
            assert any(city in hit.text for hit in found)
        ana.append("user", "I moved to Coimbra yesterday")
        assert "Coimbra" in same.recall("Coimbra").hits[0].text
        assert same.messages()[-1].content == "I moved to Coimbra yesterday"


def test_what_one_server_forgets_is_gone_from_the_others_at_once(pgbouncer_url: str, postgres_schema: str) -> None:
    settings = pg.settings(pgbouncer_url, postgres_schema)
    with perdure.open(settings=settings) as here, perdure.open(settings=settings) as there:
        ana, same = here.memory("ana"), there.memory("ana")
        ana.append("user", "My locker is number zqxjv")
        ana.remember("Locker is number zqxjv")
        here.process(60)
        assert "zqxjv" in str(same.recall("locker")), "the other one holds it in memory"
        assert "zqxjv" in same.context("locker").text
        ana.forget(user=True)
        for text in (
            str(same.recall("locker").hits),
            same.context("locker").text,
            str(same.messages()),
            str(same.memories.list()),
        ):
            assert "zqxjv" not in text


def test_each_job_is_run_by_one_of_the_servers(pgbouncer_url: str, postgres_schema: str) -> None:
    """Workers of three servers at once: together they run what there is, and nothing is learned or counted twice."""
    settings = pg.settings(pgbouncer_url, postgres_schema)
    with ExitStack() as stack:
        servers = [stack.enter_context(perdure.open(settings=settings)) for _ in range(SERVERS)]
        users = [f"user-{number}" for number in range(USERS)]
        for number, user in enumerate(users):
            for text in ("I live in Lisbon.", "I work at Acme."):
                servers[number % SERVERS].memory(user).append("user", text)
        waiting = sum(len(servers[0].memory(user).admin.jobs("ready")) for user in users)
        ran: Counter[int] = Counter()

        def work(number: int) -> None:
            while (report := servers[number].process(30)).ran:
                ran[number] += report.ran
                assert report.failed == 0

        threads = [threading.Thread(target=work, args=(number,)) for number in range(SERVERS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(ran.values()) >= waiting > 0
        for user in users:
            memory = servers[-1].memory(user)
            assert memory.conversation.tally().messages == 2
            statements = [one.content for held in memory.memories.list() for one in held.statements]
            assert len(statements) == len(set(statements)), "nothing was learned twice"
        assert servers[0].verify().findings == ()
