"""Workers killed with signal 9 in the middle of a job, and imports. What becomes of writers is tried by P1 of `proof/`."""

import io

import pytest

import perdure


def test_a_job_whose_worker_was_killed_is_run_by_another_one_after_the_lease(sqlite, tmp_path, start_host, eventually):
    with sqlite.open() as engine:
        memory = engine.memory("ana")
        memory.append_many([perdure.NewMessage("user", str(number)) for number in range(7)])
        host = start_host("work_until_killed", tmp_path / "perdure.db", 1.0, "hang")
        host.expect("in hand")
        [job] = memory.admin.jobs("running")
        assert (job.worker, job.attempts) == ("doomed", 1)
        engine.process(0.1)
        assert [one for one in memory.admin.jobs() if one.kind == job.kind] == [job], (
            "the lease is respected while its holder lives"
        )
        host.kill(0)

        def done() -> bool:
            engine.process(1)
            return any(job.kind == "tally" for job in memory.admin.jobs("done"))

        eventually(done)
        [job] = [job for job in memory.admin.jobs() if job.kind == "tally"]
        assert (job.state, job.attempts, job.fence, job.failures) == ("done", 2, 2, 0)
        assert memory.conversation.tally().up_to_seq == 7
        counted = [operation for operation in memory.journal.list() if operation.kind == "tally"]
        assert len(counted) == 1, "what a job writes is written once"
        assert engine.verify().findings == ()


@pytest.mark.slow
def test_workers_killed_at_any_moment_leave_no_job_undone_and_none_done_twice(sqlite, tmp_path, start_host, chance, eventually):
    users = [f"user-{number}" for number in range(60)]
    with sqlite.open() as engine:
        appended = 0
        for number in range(25):
            for user in users:
                engine.memory(user).append("user", f"round {number}")
            appended += 1
            host = start_host("work_until_killed", tmp_path / "perdure.db", 0.2, "work")
            host.expect("ready")
            host.kill(chance.uniform(0, 0.08))

        def idle() -> bool:
            engine.process(10)
            # The sweeper waits for a silence that does not come here.
            jobs = [job for user in users for job in engine.memory(user).admin.jobs() if job.kind != "sweep"]
            return all(job.state == "done" for job in jobs)

        eventually(idle)
        for user in users:
            assert engine.memory(user).conversation.tally().up_to_seq == appended
            journal = engine.memory(user).journal.list(1_000)
            counted = [operation.after for operation in journal if operation.kind == "tally"]
            assert len({str(body) for body in counted}) == len(counted), "no run wrote what another one had written"
        assert engine.verify().findings == ()


def test_an_import_killed_at_any_moment_leaves_the_old_or_the_new(sqlite, tmp_path, start_host, chance):
    with perdure.open(f"sqlite:///{tmp_path}/source.db") as source:
        ana = source.memory("ana")
        exports = []
        for number in range(2):
            ana.append_many(perdure.NewMessage("user", f"I live in town {place}. " * 20) for place in range(300))
            ana.state.save("round", number)
            ana.export(tmp_path / f"{number}.jsonl")
            exports.append((tmp_path / f"{number}.jsonl").read_bytes())
    with sqlite.open() as engine:
        engine.memory("ben").state.save("k", "untouched")
    for _ in range(4):
        host = start_host("import_until_killed", sqlite.url, tmp_path / "0.jsonl", tmp_path / "1.jsonl")
        host.expect("ready")
        host.kill(chance.uniform(0, 0.6))
        with sqlite.open() as engine:
            held = io.BytesIO()
            engine.memory("ana").export(held)
            assert held.getvalue() in exports
            assert engine.memory("ben").state.load("k") == "untouched"
            assert engine.verify().clean
