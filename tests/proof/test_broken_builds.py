"""The patches of `proof/defects/`: each still fits, and each promise has at least one broken build that it catches."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))
from proof.catalogue import all_promises  # noqa: E402

from proof import breaking  # noqa: E402


@pytest.mark.parametrize("name", breaking.known())
def test_a_patch_still_fits_the_source(name):
    defect = breaking.known()[name]
    subprocess.run(
        ["patch", "-p1", "--fuzz=0", "--dry-run", "--silent", "-i", str(defect.path)], cwd=ROOT, check=True, capture_output=True
    )
    assert defect.caught_by in all_promises()
