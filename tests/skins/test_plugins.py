"""Parts of other distributions: installed, and then used by their names in settings, whichever way perdure is asked."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

import perdure
from perdure.interfaces.server import Options, build

HERE = Path(__file__).parent
PARTS = {
    "embedders": "ToyEmbedder",
    "rerankers": "ToyReranker",
    "extractors": "ToyExtractor",
    "summarisers": "ToySummariser",
    "importers": "read_toy",
    "stores": "open_store",
}
NAMED = {"embedder": "toy:8", "reranker": "toy", "extractor": "toy", "summariser": "toy"}
USED = {"embedder of 8", "reranker", "extractor", "summariser", "importer", "store"}
SAID = [{"role": role, "content": f"{role} says xx number {number}"} for number in range(6) for role in ("user", "assistant")]
STORY = "we walked along the river, and it was late when we came home. " * 5
EXPORT = "toy> Collects stamps\ntoy> Plays the cello\n"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the distribution, put there by pip from a wheel."""
    folder = tmp_path_factory.mktemp("toy")
    wheel, about = folder / "toy_memory-1.0-py3-none-any.whl", "toy_memory-1.0.dist-info"
    points = [f"[perdure.{group}]\ntoy = toy_memory:{part}\nbroken = toy_memory:broken\n" for group, part in PARTS.items()]
    files = {
        "toy_memory.py": (HERE / "toy_plugins.py").read_text(),
        f"{about}/METADATA": "Metadata-Version: 2.1\nName: toy-memory\nVersion: 1.0\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: by hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/entry_points.txt": "\n".join(points),
    }
    with zipfile.ZipFile(wheel, "w") as packed:
        for name, text in files.items():
            packed.writestr(name, text)
        packed.writestr(f"{about}/RECORD", "".join(f"{name},,\n" for name in [*files, f"{about}/RECORD"]))
    target = folder / "site"
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--target",
        str(target),
        str(wheel),
    ]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    return target


@pytest.fixture
def toys(installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The log in which the parts say that they were used."""
    log = tmp_path / "used.txt"
    monkeypatch.syspath_prepend(str(installed))
    monkeypatch.setenv("TOY_LOG", str(log))
    importlib.invalidate_caches()
    yield log
    sys.modules.pop("toy_memory", None)


def used(log: Path) -> set[str]:
    return set(log.read_text().split("\n")) - {""}


def test_python_uses_each_by_its_name(toys: Path, tmp_path: Path) -> None:
    (tmp_path / "export.txt").write_text(EXPORT)
    settings = perdure.Settings(url=f"toy:{tmp_path}/store.db", **NAMED)
    with perdure.open(settings=settings) as engine:
        ana = engine.memory("ana")
        ana.append_many(SAID)
        engine.process(60)
        assert "Spoke 5 words" in [one.content for one in ana.memories.list()]
        assert any("reranked by toy" in why for hit in ana.recall("number").hits for why in hit.trace.why)
        ana.append_many([{**one, "content": f"{one['content']}: {STORY}"} for one in SAID])  # what is short is not folded
        assert "A toy has summed this up." in ana.conversation.fold()[0].text
        report = ana.import_(tmp_path / "export.txt", "toy")
        assert (report.format, report.counts) == ("toy", {"added": 2})
        assert ana.import_(tmp_path / "export.txt", "toy").counts == {"unchanged": 2}
        assert engine.verify().clean
    assert used(toys) == USED


def test_the_command_line_uses_each_by_its_name(toys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (NAMED | {"url": f"toy:{tmp_path}/store.db", "user": "ana"}).items():
        monkeypatch.setenv(f"PERDURE_{name.upper()}", value)
    monkeypatch.setenv("PYTHONPATH", str(sys.path[0]))
    said, export = tmp_path / "said.jsonl", tmp_path / "export.txt"
    said.write_text("".join(f"{json.dumps(one)}\n" for one in SAID))
    export.write_text(EXPORT)
    told = [
        command(*words)
        for words in (
            ("append", "--file", str(said)),
            ("admin", "import", str(export), "--format", "toy"),
            ("worker", "--once"),
            ("memory", "list"),
            ("recall", "number", "--explain"),
            ("session", "fold"),
        )
    ]
    assert "Spoke 5 words" in told[3]
    assert "Plays the cello" in told[3]
    assert "reranked by toy" in told[4]
    assert used(toys) == USED


def command(*words: str, code: int = 0) -> str:
    start = "from perdure.interfaces.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", start, *words], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def test_http_uses_each_by_its_name(toys: Path, tmp_path: Path) -> None:
    settings = perdure.Settings(url=f"toy:{tmp_path}/store.db", **NAMED)
    with perdure.open(settings=settings) as engine:
        client = TestClient(build(engine, Options(no_auth=True)), base_url="http://127.0.0.1")
        home = "/v1/users/ana"
        messages = [{**one, "session": "s"} for one in SAID]
        assert client.post(f"{home}/messages/batch", json={"messages": messages}).status_code == 201
        engine.process(60)
        assert "Spoke 5 words" in client.get(f"{home}/memories").text
        assert "reranked by toy" in client.post(f"{home}/recall", json={"query": "number"}).text
        assert "A toy has summed" in client.post(f"{home}/sessions/s/compact", json={"force": True}).text
        done = client.post(
            f"{home}/import?format=toy", content=EXPORT.encode(), headers={"Content-Type": "application/octet-stream"}
        )
        assert done.status_code == 200, done.text
        assert "Plays the cello" in client.get(f"{home}/memories").text
        wrong = client.post(
            f"{home}/import?format=toi", content=EXPORT.encode(), headers={"Content-Type": "application/octet-stream"}
        )
        assert wrong.status_code == 422
        assert "auto, jsonl, vault, mem0, mcp, broken, toy" in wrong.text
    assert used(toys) == USED


@pytest.mark.parametrize("name", NAMED)
def test_an_unknown_name_gets_one_line_that_lists_what_there_is(toys: Path, name: str) -> None:
    with pytest.raises(perdure.InvalidInput) as told:
        perdure.open(settings=perdure.Settings(url="memory:", **{name: "toi"}))
    line = str(told.value)
    assert line.startswith(f"setting `{name}` = 'toi' is unknown; use one of ")
    assert "broken, toy, or install a plugin" in line
    assert "\n" not in line


def test_an_unknown_store_and_format_are_told_on_the_command_line(
    toys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(sys.path[0]))
    assert "toy:…" in command("--url", "toi:somewhere", "--user", "ana", "messages", code=2)
    (tmp_path / "export.txt").write_text(EXPORT)
    words = ("--url", "memory:", "--user", "ana", "admin", "import", str(tmp_path / "export.txt"), "--format", "toi")
    assert "auto, jsonl, vault, mem0, mcp, broken, toy" in command(*words, code=2)


def test_without_plugins_the_line_says_that_none_is_installed() -> None:
    with pytest.raises(perdure.InvalidInput, match="`reranker` = 'toy' is unknown; there is none yet: install a plugin"):
        perdure.open(settings=perdure.Settings(url="memory:", reranker="toy"))


@pytest.mark.parametrize("name", NAMED)
def test_a_plugin_that_fails_is_named_without_its_words(toys: Path, name: str) -> None:
    with pytest.raises(perdure.InvalidInput) as told:
        perdure.open(settings=perdure.Settings(url="memory:", **{name: "broken"}))
    assert "plugin 'broken' of `perdure." in str(told.value)
    assert "RuntimeError" in str(told.value)
    assert "secret" not in str(told.value)


def test_a_store_that_fails_or_is_none_is_refused(toys: Path) -> None:
    with pytest.raises(perdure.InvalidInput, match=r"plugin 'broken' of `perdure\.stores`"):
        perdure.open("broken:here")


def test_what_the_host_gives_comes_before_what_a_setting_names(toys: Path) -> None:
    class Own:
        name = "own"

        def rerank(self, question: str, texts: list[str]) -> list[float]:
            return [0.0 for _ in texts]

    with perdure.open(settings=perdure.Settings(url="memory:", reranker="toy"), reranker=Own()) as engine:
        ana = engine.memory("ana")
        ana.append("user", "I keep bees.")
        assert any("reranked by own" in why for hit in ana.recall("bees").hits for why in hit.trace.why)
