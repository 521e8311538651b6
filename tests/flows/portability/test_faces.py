"""Export and import by command and over HTTP."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

import perdure
from perdure.interfaces.cli.commands import app
from perdure.interfaces.server import Options, build
from perdure.services.portability import import_

NDJSON = {"Content-Type": "application/x-ndjson"}
MEM0 = {"results": [{"id": "1", "memory": "Plays chess on Sundays", "user_id": "alice", "created_at": "2024-05-01T10:00:00Z"}]}
Run = Callable[..., str]


def fill(engine: perdure.Engine, user: str = "ana") -> None:
    memory = engine.memory(user)
    memory.append("user", f"I live in Oslo, says {user}.")
    memory.state.save("k", {"a": 1})
    memory.remember("Likes tea")
    engine.process()


def exported(engine: perdure.Engine, user: str) -> bytes:
    file = io.BytesIO()
    engine.memory(user).export(file)
    return file.getvalue()


class TestHttp:
    @pytest.fixture
    def engine(self) -> Iterator[perdure.Engine]:
        with perdure.open("memory:") as opened:
            fill(opened)
            yield opened

    @pytest.fixture
    def client(self, engine: Any) -> TestClient:
        return TestClient(build(engine, Options(no_auth=True)), base_url="http://localhost")

    def test_what_is_exported_is_what_python_exports_and_comes_back(self, engine: Any, client: TestClient) -> None:
        found = client.get("/v1/users/ana/export")
        assert found.headers["content-type"].startswith("application/x-ndjson")
        assert found.headers["content-length"] == str(len(found.content))
        assert found.content == exported(engine, "ana")
        done = client.post("/v1/users/b%2Fen/import", content=found.content, headers=NDJSON)
        assert done.status_code == 200
        assert done.json()["users"] == ["b/en"]
        assert exported(engine, "b/en").splitlines()[1:-1] == found.content.splitlines()[1:-1]

    def test_an_import_can_tell_how_far_it_is(self, engine: Any, client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(import_, "PROGRESS_EVERY", 2)
        engine.memory("big").append_many(perdure.NewMessage("user", str(number)) for number in range(3))
        data = gzip.compress(exported(engine, "big"))
        headers = {"Content-Type": "application/octet-stream", "Accept": "application/x-ndjson"}
        lines = [json.loads(line) for line in client.post("/v1/users/b/import", content=data, headers=headers).iter_lines()]
        assert lines[0] == {"progress": {"table": "messages", "rows": 2}}
        assert lines[-1]["done"]["rows"]["messages"] == 3
        again = client.post("/v1/users/b/import", content=data, headers=headers).iter_lines()
        assert json.loads(list(again)[-1])["error"]["code"] == "conflict"

    def test_what_is_wrong_is_told_as_a_problem(self, engine: Any, client: TestClient) -> None:
        data = exported(engine, "ana")
        for path, body, status in (
            ("ana/import", data, 409),
            ("new/import", data[:-30], 422),
            ("new/import", b"", 422),
            ("new/import", b"[[[[", 422),
            ("new/import?format=vault", data, 422),
            ("new/import?format=jsonl", json.dumps(MEM0).encode(), 422),
        ):
            answer = client.post(f"/v1/users/{path}", content=body, headers=NDJSON)
            assert answer.status_code == status, path
            assert answer.headers["content-type"] == "application/problem+json"
        assert engine.users() == ["ana"]

    def test_more_than_may_come_is_not_even_read(self) -> None:
        limits = perdure.Limits(import_bytes_max=1_000)
        with perdure.open(settings=perdure.Settings(url="memory:", limits=limits)) as engine:
            answer = TestClient(build(engine, Options(no_auth=True)), base_url="http://localhost").post(
                "/v1/users/ana/import", content=b" " * 2_000, headers=NDJSON
            )
        assert answer.status_code == 413

    def test_other_engines_memories_are_taken_in(self, engine: Any, client: TestClient) -> None:
        answer = client.post("/v1/users/ana/import?format=mem0&dry_run=true", json=MEM0).json()
        assert (answer["counts"], [one["fault"] for one in answer["doubts"]]) == ({"added": 1}, ["stale"])
        assert client.post("/v1/users/ana/import", json=MEM0).json()["counts"] == {"added": 1}
        assert "Plays chess on Sundays" in [one.content for one in engine.memory("ana").memories.list()]

    def test_keys_reach_their_users_only_and_replacing_needs_admin(self, engine: Any, client: TestClient) -> None:
        def key(permission: str, *users: str) -> dict[str, str]:
            made = engine.api_keys.create(permission, users=users or None, permission=permission)
            return {**NDJSON, "Authorization": f"Bearer {made.secret}"}

        data = exported(engine, "ana")
        reader, writer, admin = key("read", "ana"), key("write", "ana"), key("admin", "ana")
        assert client.get("/v1/users/ana/export", headers=reader).status_code == 200
        assert client.get("/v1/users/ben/export", headers=reader).status_code == 403
        assert client.post("/v1/users/ana/import", content=data, headers=reader).status_code == 403
        assert client.post("/v1/users/ben/import", content=data, headers=writer).status_code == 403
        assert client.post("/v1/users/ana/import?replace=true", content=data, headers=writer).status_code == 403
        assert client.post("/v1/users/ana/import?replace=true", content=data, headers=admin).status_code == 200
        assert exported(engine, "ana") == data


class TestCommands:
    @pytest.fixture
    def run(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("PERDURE_URL", f"sqlite:///{tmp_path}/p.db")
        runner = CliRunner()

        def run(*args: str, stdin: bytes = b"", raises: type[perdure.PerdureError] | None = None) -> str:
            done = runner.invoke(app, args, input=stdin)
            if raises is None:
                assert done.exit_code == 0, done.exception
                return done.stdout
            assert isinstance(done.exception, raises)
            return str(done.exception)

        return run

    def test_out_and_in_by_file_and_by_pipe(self, run: Run, tmp_path: Path) -> None:
        with perdure.open() as engine:
            fill(engine)
            data = exported(engine, "ana")
        assert run("admin", "export", "--user", "ana").encode() == data
        assert "rows" in run("admin", "export", "ana.jsonl.gz", "--user", "ana")
        assert gzip.decompress((tmp_path / "ana.jsonl.gz").read_bytes()) == data
        assert "holds data" in run("admin", "import", "ana.jsonl.gz", raises=perdure.Conflict)
        assert "rows as ben" in run("admin", "import", "-", "--as", "ben", stdin=data)
        report = json.loads(run("admin", "import", "ana.jsonl.gz", "--replace", "--dry-run", "--json"))
        assert (report["users"], report["dry_run"]) == (["ana"], True)
        assert "of 2 users" in run("admin", "export", "all.jsonl", "--all")
        assert "rows as ana, ben" in run("admin", "import", "all.jsonl", "--replace")

    def test_notes_and_other_engines_memories(self, run: Run, tmp_path: Path) -> None:
        with perdure.open() as engine:
            fill(engine)
        assert "0 removed" in run("admin", "export", "vault", "--format", "vault", "--user", "ana")
        assert "unchanged" in run("admin", "import", "vault", "--user", "ana")
        (tmp_path / "mem0.json").write_text(json.dumps(MEM0))
        shown = run("admin", "import", "mem0.json", "--user", "ana", "--dry-run")
        assert "added     memory   1" in shown
        assert "stale" in shown
        assert "nothing was stored" in shown
        assert run("admin", "import", "mem0.json", "--user", "ana").endswith("mem0: 1 added\n")

    def test_what_cannot_be_meant_is_refused(self, run: Run, tmp_path: Path) -> None:
        assert "--all" in run("admin", "export", "x", "--all", "--user", "ana", raises=perdure.InvalidInput)
        assert "--format" in run("admin", "import", "x", "--format", "xml", "--user", "ana", raises=perdure.InvalidInput)
        assert "no user" in run("admin", "import", str(tmp_path), raises=perdure.InvalidInput)
        run("admin", "import", "nothing.jsonl", "--user", "ana", raises=perdure.NotFound)
        assert list(tmp_path.glob("x*")) == []
