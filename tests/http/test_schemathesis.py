"""The whole API, tried out by schemathesis: examples, coverage, fuzzing and stateful, with all its checks.

`HTTP_EXAMPLES=100` tries it out at length.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import uvicorn

import perdure
from perdure import settings
from perdure.interfaces.http.description import SAID
from perdure.interfaces.server import Options, build, listen

CONFIG = Path(__file__).parent / "schemathesis.toml"
HOOKS = Path(__file__).parent / "schemathesis_hooks.py"
WHOLE = "HTTP_EXAMPLES" in os.environ
EXAMPLES = os.environ.get("HTTP_EXAMPLES", "2")
"""Requests for each operation; more of them find more."""
OPERATIONS = sorted(SAID)
SEED = os.environ.get("HTTP_SEED", "8")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The URL of a server on loopback, and the secret of a key that may do everything."""
    chosen = replace(settings.load(url="memory:"), files_dir=str(tmp_path))
    with perdure.open(settings=chosen) as engine:
        key = engine.api_keys.create("schemathesis", permission="admin")
        place = listen("127.0.0.1", 0)
        app = build(engine, Options(rate=1_000_000.0))
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="on"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [place.socket]}, name="served")
        thread.start()
        try:
            yield place.url, key.secret
        finally:
            server.should_exit = True
            thread.join(30)
            place.socket.close()


def tried(served: tuple[str, str], folder: Path, *options: str) -> None:
    """Have schemathesis try the API out; what it finds fails the test."""
    url, secret = served
    program = Path(sys.executable).with_name("schemathesis")
    found = subprocess.run(
        [
            program,
            "--config-file",
            CONFIG,
            "run",
            f"{url}/openapi.json",
            "--header",
            f"Authorization: Bearer {secret}",
            "--max-examples",
            EXAMPLES,
            "--seed",
            SEED,
            "--no-shrink",
            "--wait-for-schema",
            "30",
            "--suppress-health-check",
            "all",
            "--warnings",
            "off",
            *options,
        ],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=3_000,
        check=False,
        env={**os.environ, "SCHEMATHESIS_HOOKS": str(HOOKS)},
    )
    assert found.returncode == 0, found.stdout[-8_000:] + found.stderr[-2_000:]
    assert "Tested: " in found.stdout


@pytest.mark.slow
def test_schemathesis_finds_nothing_with_examples_fuzzing_and_sequences(served: tuple[str, str], tmp_path: Path) -> None:
    tried(served, tmp_path, "--phases", "examples,fuzzing,stateful")


@pytest.mark.slow
def test_schemathesis_finds_nothing_at_the_edges_of_the_schemas(served: tuple[str, str], tmp_path: Path) -> None:
    # Thousands of requests: some of the operations at a time, unless all are asked for.
    chosen = OPERATIONS[:: 1 if WHOLE else 4]
    tried(served, tmp_path, "--phases", "coverage", *(part for name in chosen for part in ("--include-operation-id", name)))
