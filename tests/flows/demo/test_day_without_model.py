"""T-55: everything that names no model works without one, and without a network: the whole day of T-53, by rules alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from offline import cut_off
from predicted_day import EXPLAINED, PREDICTED, live, told


@pytest.mark.parametrize(
    ("backend", "embedder"),
    [("sqlite", "none"), ("sqlite", "static"), pytest.param("postgres", "none", marks=pytest.mark.postgres)],
    indirect=["backend"],
)
def test_the_day_is_the_same_without_a_model_t_55(
    backend: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, embedder: str
) -> None:
    cut_off(monkeypatch)
    day = told(live(backend, tmp_path / "day", model="", embedder=embedder))
    explained = day.pop(EXPLAINED)
    predicted = json.loads(json.dumps(PREDICTED))
    if embedder == "none":
        # That `kudos_givers` is about the goal, too, is a matter of meaning; the series is named in it.
        predicted["A goal about a covered time needs no call at all"]["chosen"] = ["kudos_timeseries"]
    assert json.loads(json.dumps(day)) == predicted, "rules choose, learn and find the same, whatever compares meaning"
    assert ("meaning" in str(explained["shares"])) == (embedder == "static")
    doctor = day["The doctor proves a round trip"]
    assert (doctor["healthy"], doctor["degraded"], doctor["model"]) == (True, [], "none")
    assert day["The day in numbers"]["model_calls"] == 0


@pytest.mark.slow
def test_the_demo_asks_no_model_that_happens_to_be_set(tmp_path: Path) -> None:
    """A demo that reached for the user's model, store or files would be no demo."""
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "TMPDIR": str(tmp_path / "tmp"),
        "PERDURE_URL": "postgresql://127.0.0.1:9/nowhere",
        "PERDURE_MODEL": "openai:http://127.0.0.1:9/v1#none",
        "PERDURE_EMBEDDER": "openai:http://127.0.0.1:9/v1#none",
        "PERDURE_AGENTS_DIR": str(tmp_path / "agents"),
    }
    (tmp_path / "tmp").mkdir()
    script = Path(sys.executable).with_name("perdure")
    done = subprocess.run([str(script), "demo", "--json"], capture_output=True, text=True, timeout=120, env=env, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    steps = {step["step"]: step for step in json.loads(done.stdout)}
    assert steps["The day in numbers"]["model_calls"] == 0
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")] == ["tmp"]
