"""Pages do no more work when more is known: they count and sort in the database, and read only what they show."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import perdure
from perdure.adapters.sqlite.store import SqliteStatements
from perdure.interfaces.server import Options, build
from perdure.types import NewStatement

PAGES = (
    "",
    "/memories",
    "/memories?view=list",
    "/memories?kind=habit",
    "/memories?q=tea",
    "/timeline",
    "/entities",
    "/entities/graph",
    "/data",
)
FEW, MANY = 60, 600


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[perdure.Engine]:
    with perdure.open(f"sqlite:///{tmp_path}/work.db") as engine:
        yield engine


def fill(memory: perdure.Memory, count: int) -> None:
    notes = [NewStatement(f"Keeps note {number} on tea", fact_type="habit") for number in range(count)]
    told = [
        NewStatement(f"Person {number} plays chess", "PEOPLE", entities=[f"person:Person {number}"])
        for number in range(FEW // 2)
    ]
    memory.remember_many([*notes, *told])


@pytest.mark.parametrize("path", PAGES)
def test_ten_times_the_memories_take_no_more_statements(
    engine: perdure.Engine, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    fill(engine.memory("few"), FEW)
    fill(engine.memory("many"), MANY)
    names: list[str] = []
    plain = SqliteStatements.all

    def noted(self: SqliteStatements, name: str, /, **values: object) -> list[tuple[object, ...]]:
        names.append(name)
        return plain(self, name, **values)

    monkeypatch.setattr(SqliteStatements, "all", noted)
    run: dict[str, int] = {}
    with TestClient(build(engine, Options(no_auth=True)), base_url="http://localhost", client=("127.0.0.1", 1)) as client:
        for user in ("few", "many"):
            names.clear()
            assert client.get(f"/u/{user}{path}").status_code == 200
            run[user] = len(names)
    assert run["many"] <= run["few"] + 8, "a few more pages of the journal may be read"
