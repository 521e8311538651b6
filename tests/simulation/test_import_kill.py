"""Imports that are killed with signal 9."""

import io

import perdure

ROUNDS = 4


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
    for _ in range(ROUNDS):
        host = start_host("import_until_killed", sqlite.url, tmp_path / "0.jsonl", tmp_path / "1.jsonl")
        host.expect("ready")
        host.kill(chance.uniform(0, 0.6))
        with sqlite.open() as engine:
            held = io.BytesIO()
            engine.memory("ana").export(held)
            assert held.getvalue() in exports
            assert engine.memory("ben").state.load("k") == "untouched"
            assert engine.verify().clean
