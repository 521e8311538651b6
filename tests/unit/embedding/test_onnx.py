"""A model in a folder: made small and at random here by the tool that makes the real one, and checked before it is run."""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from perdure.adapters.embedding import onnx
from perdure.adapters.embedding.onnx import OnnxEmbedder
from perdure.domain.errors import InvalidInput, Unsupported
from perdure.ports.models import Embedder

onnxruntime = pytest.importorskip("onnxruntime", reason="the extra `local` is not installed: no onnxruntime")

TOOLS = Path(__file__).parents[3] / "tools"
WIDTH, INNER, HEADS, LAYERS = 32, 64, 4, 2
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *"abcdefgh", "dog", "cat", "house", "##s", "."]
TEXTS = ["dog", "cats. dog", "a b c d e f g h", "houses house dog cat ."]


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    monkeypatch.syspath_prepend(str(TOOLS))
    return importlib.import_module


def small_weights() -> dict[str, Any]:
    chance = np.random.default_rng(7)

    def some(*shape: int) -> Any:
        return chance.normal(0, 0.3, shape).astype(np.float32)

    weights = {
        "embeddings.word_embeddings.weight": some(len(VOCABULARY), WIDTH),
        "embeddings.position_embeddings.weight": some(16, WIDTH),
        "embeddings.token_type_embeddings.weight": some(2, WIDTH),
        "embeddings.LayerNorm.weight": some(WIDTH) + 1,
        "embeddings.LayerNorm.bias": some(WIDTH),
    }
    shapes = {f"attention.self.{part}": (WIDTH, WIDTH) for part in ("query", "key", "value")}
    shapes |= {"attention.output.dense": (WIDTH, WIDTH), "intermediate.dense": (INNER, WIDTH), "output.dense": (WIDTH, INNER)}
    for number in range(LAYERS):
        prefix = f"encoder.layer.{number}."
        for name, shape in shapes.items():
            weights |= {f"{prefix}{name}.weight": some(*shape), f"{prefix}{name}.bias": some(shape[0])}
        for name in ("attention.output", "output"):
            weights |= {f"{prefix}{name}.LayerNorm.weight": some(WIDTH) + 1, f"{prefix}{name}.LayerNorm.bias": some(WIDTH)}
    return weights


@pytest.fixture
def folder(tmp_path: Path, tool: Callable[[str], ModuleType]) -> Path:
    builder = tool("build_onnx")
    reach = {
        f"{number}.{place}": np.ones(WIDTH, np.float32)
        for number in range(LAYERS)
        for place in ("attention.self", "intermediate")
    }
    content = builder.model(small_weights(), heads=HEADS, reach=reach)
    builder.write(tmp_path / "model", content, VOCABULARY, name="small", tokens_max=16)
    return tmp_path / "model"


def test_rows_are_near_those_of_the_unrounded_model(folder: Path, tool: Callable[[str], ModuleType]) -> None:
    embedder: Embedder = OnnxEmbedder(folder)
    found = embedder.embed(TEXTS)
    model = tool("minilm").MiniLM(small_weights(), heads=HEADS)
    at = {piece: place for place, piece in enumerate(VOCABULARY)}
    pieces = [
        "[CLS] dog [SEP]",
        "[CLS] cat ##s . dog [SEP]",
        "[CLS] a b c d e f g h [SEP]",
        "[CLS] house ##s house dog cat . [SEP]",
    ]
    for row, line in zip(found, pieces, strict=True):
        exact = model.tokens(np.array([[at[piece] for piece in line.split()]]))[0].mean(axis=0)
        assert row @ exact / np.linalg.norm(exact) > 0.99
    assert (embedder.name, embedder.dims, found.dtype) == ("small", WIDTH, np.float32)
    assert np.linalg.norm(found, axis=1) == pytest.approx(1, abs=1e-5)


def test_a_text_has_the_same_row_whatever_stands_beside_it(folder: Path) -> None:
    embedder = OnnxEmbedder(folder)
    together = embedder.embed(TEXTS)
    assert all((embedder.embed([text], kind="query")[0] == row).all() for text, row in zip(TEXTS, together, strict=True))


def test_a_text_without_a_known_word_is_near_nothing(folder: Path) -> None:
    assert not OnnxEmbedder(folder).embed(["", "😀 😀", "zzz"]).any()
    assert OnnxEmbedder(folder).embed([]).shape == (0, WIDTH)


def test_a_long_text_is_read_up_to_the_bound_of_the_manifest(folder: Path) -> None:
    embedder = OnnxEmbedder(folder)
    assert (embedder.embed(["dog " * 14])[0] == embedder.embed(["dog " * 250_000])[0]).all()


def test_the_same_weights_give_the_same_file(tool: Callable[[str], ModuleType]) -> None:
    builder = tool("build_onnx")
    assert builder.model(small_weights(), heads=HEADS, reach={}) == builder.model(small_weights(), heads=HEADS, reach={})


def test_another_model_has_another_version(folder: Path, tmp_path: Path, tool: Callable[[str], ModuleType]) -> None:
    content = tool("build_onnx").model(small_weights(), heads=2, reach={})
    tool("build_onnx").write(tmp_path / "other", content, VOCABULARY, name="small", tokens_max=16)
    assert OnnxEmbedder(tmp_path / "other").version != OnnxEmbedder(folder).version == OnnxEmbedder(folder).version


def test_threads_load_the_model_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[int] = []
    load = onnx._load
    monkeypatch.setattr(onnx, "_load", lambda *args: (loads.append(1), load(*args))[1])
    embedder = OnnxEmbedder(folder)
    threads = [threading.Thread(target=embedder.embed, args=(TEXTS,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert loads == [1]


def test_no_folder_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"manifest\.json cannot be read"):
        OnnxEmbedder(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "content",
    [
        "",
        "[]",
        "{}",
        "null",
        '{"format": 1, "name": "x", "tokens_max": 9, "sha256": {}}',
        '{"format": 1, "name": "x", "tokens_max": "many", "sha256": {}}',
    ],
)
def test_a_manifest_that_is_none_is_refused(folder: Path, content: str) -> None:
    (folder / "manifest.json").write_text(content)
    with pytest.raises(InvalidInput, match="no embedder's"):
        OnnxEmbedder(folder)


@pytest.mark.parametrize("change", [{"format": 2}, {"name": ""}, {"tokens_max": 1}])
def test_a_manifest_of_another_format_is_refused(folder: Path, change: dict[str, object]) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(manifest | change))
    with pytest.raises(InvalidInput, match="another format"):
        OnnxEmbedder(folder)


@pytest.mark.parametrize("name", ["model.onnx", "vocab.txt"])
def test_an_altered_file_is_not_used(folder: Path, name: str) -> None:
    (folder / name).write_bytes((folder / name).read_bytes() + b"\n")
    with pytest.raises(InvalidInput, match=f"{name} is not the file"):
        OnnxEmbedder(folder).embed(["dog"])
    (folder / name).unlink()
    with pytest.raises(InvalidInput, match=f"{name} cannot be read"):
        OnnxEmbedder(folder).embed(["dog"])


def with_file(folder: Path, name: str, content: bytes) -> OnnxEmbedder:
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["sha256"][name] = hashlib.sha256(content).hexdigest()
    (folder / name).write_bytes(content)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return OnnxEmbedder(folder)


def test_what_onnxruntime_cannot_run_is_refused(folder: Path) -> None:
    with pytest.raises(InvalidInput, match="onnxruntime cannot run"):
        with_file(folder, "model.onnx", b"no model").embed(["dog"])


def test_a_vocabulary_larger_than_the_model_is_refused(folder: Path) -> None:
    embedder = with_file(folder, "vocab.txt", "\n".join([*VOCABULARY, "zebra"]).encode())
    with pytest.raises(InvalidInput, match="onnxruntime cannot run"):
        embedder.embed(["zebra"])


def test_a_vocabulary_without_the_special_pieces_is_refused(folder: Path) -> None:
    with pytest.raises(InvalidInput, match=r"has no \[CLS\]"):
        with_file(folder, "vocab.txt", b"[UNK]\n[SEP]\ndog").embed(["dog"])


def test_without_the_extra_the_remedy_is_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(Unsupported, match=r"perdure\[local\]"):
        OnnxEmbedder(folder).embed(["dog"])
