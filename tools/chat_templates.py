"""Fetches the chat templates that tests render: those in the source distribution of llama-cpp-python, at a fixed version.

python tools/chat_templates.py           fetches what is missing into .venv/chat-templates

Only the templates of the families below are kept. Once fetched, nothing is asked for again.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import sys
import tarfile
import time
import urllib.request
from pathlib import Path, PurePosixPath

VERSION = "0.3.36"
URL = (
    "https://files.pythonhosted.org/packages/ec/e9/e7de2b0463ea3ffbf0ede6cb21b58c1258a8f6521aae45ca773a59fe7cf3/"
    f"llama_cpp_python-{VERSION}.tar.gz"
)
SHA256 = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"
INSIDE = f"llama_cpp_python-{VERSION}/vendor/llama.cpp/models/templates"
TEMPLATES = {
    "gemma-2": "google-gemma-2-2b-it",
    "gemma-4": "google-gemma-4-31B-it",
    "llama-3.1": "meta-llama-Llama-3.1-8B-Instruct",
    "llama-3.2": "meta-llama-Llama-3.2-3B-Instruct",
    "llama-3.3": "meta-llama-Llama-3.3-70B-Instruct",
    "ministral-3": "mistralai-Ministral-3-14B-Reasoning-2512",
    "mistral-nemo": "mistralai-Mistral-Nemo-Instruct-2407",
    "mistral-small-3.2": "Mistral-Small-3.2-24B-Instruct-2506",
    "qwen-2.5": "Qwen-Qwen2.5-7B-Instruct",
    "qwen-3": "Qwen-Qwen3-0.6B",
    "qwen-3-coder": "Qwen3-Coder",
    "qwen-3.5": "Qwen3.5-4B",
    "qwq": "Qwen-QwQ-32B",
}
FOLDER = Path(sys.prefix) / "chat-templates" / VERSION
TRIES = 4
PAUSE_S = 5.0
TIMEOUT_S = 300.0


class Missing(Exception):
    """The templates are not there and could not be had."""


def template(name: str) -> str:
    """The text of a template."""
    return (FOLDER / f"{TEMPLATES[name]}.jinja").read_text(encoding="utf-8")


def is_there() -> bool:
    return all((FOLDER / f"{file}.jinja").is_file() for file in TEMPLATES.values())


def fetch() -> None:
    """Fetch the templates unless they are there. Several processes may ask at once; trouble on the way is tried again."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        said = ""
        for attempt in range(TRIES):
            if is_there():
                return
            if attempt:
                time.sleep(PAUSE_S * attempt)
            try:
                _unpack(_download())
            except (OSError, tarfile.TarError, ValueError) as error:
                said = f"{type(error).__name__}: {error}"
        if not is_there():
            raise Missing(f"the chat templates could not be fetched; run {sys.executable} {__file__} once they can. {said}")


def _download() -> bytes:
    with urllib.request.urlopen(URL, timeout=TIMEOUT_S) as answer:  # noqa: S310 - our own address
        packed: bytes = answer.read()
    if (found := hashlib.sha256(packed).hexdigest()) != SHA256:
        raise ValueError(f"{URL} has the sum {found}, not {SHA256}")
    return packed


def _unpack(packed: bytes) -> None:
    wanted = {f"{INSIDE}/{file}.jinja" for file in TEMPLATES.values()}
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in archive:
            if member.name in wanted and (held := archive.extractfile(member)) is not None:
                (FOLDER / PurePosixPath(member.name).name).write_bytes(held.read())


if __name__ == "__main__":
    fetch()
    print(f"the chat templates are in {FOLDER}")
