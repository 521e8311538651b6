"""A quick round of every promise of `proof/`; `make proof` runs the full ones."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))
from proof import needs  # noqa: E402
from proof.catalogue import all_promises  # noqa: E402
from proof.servers import RUNNING  # noqa: E402

ROUND_S = 280
# Where a change is judged, the same round is run each time; everywhere else, a new one, and its seed is in the report.
SEED = ("--seed", "1") if os.environ.get("CI") else ()


@pytest.mark.slow
@pytest.mark.parametrize("promise", all_promises())
def test_a_quick_round_finds_the_promise_kept_and_its_fault_met(promise, tmp_path, postgres_url):
    if (missing := needs.etcd(promise)) and not os.environ.get("CI"):
        pytest.skip(f"left out: {missing}")
    ended = subprocess.run(
        [sys.executable, "-m", "proof", "run", promise, "--quick", "--json", "--report", str(tmp_path), *SEED],
        cwd=ROOT,
        env={**os.environ, RUNNING: postgres_url},
        capture_output=True,
        text=True,
        timeout=ROUND_S,
        check=False,
    )
    assert (tmp_path / "report.json").exists(), ended.stderr[-4_000:]
    [outcome] = json.loads((tmp_path / "report.json").read_text())["outcomes"]
    assert outcome["verdict"] == "kept", (tmp_path / "report.md").read_text()
    if promise == "P6":
        # Its figure counts the answers that were lost, not the cases in which one might have been.
        lost = all_promises()["P6"].evidence[:3]
        assert outcome["counts"]["answers lost"] == sum(outcome["evidence"][name] for name in lost)
