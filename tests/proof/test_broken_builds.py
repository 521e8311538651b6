"""The patches of `proof/defects/`: each still fits, and each promise has at least one broken build that it catches."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))
from proof import breaking  # noqa: E402
from proof.catalogue import all_promises  # noqa: E402


@pytest.mark.parametrize("name", breaking.known())
def test_a_patch_still_fits_the_source(name):
    defect = breaking.known()[name]
    subprocess.run(
        ["patch", "-p1", "--fuzz=0", "--dry-run", "--silent", "-i", str(defect.path)], cwd=ROOT, check=True, capture_output=True
    )
    assert defect.caught_by in {*all_promises(), breaking.SIMULATION}


def test_there_are_broken_builds_for_every_promise():
    """The issue: at least 30, and each promise is shown to catch at least one."""
    caught_by = {defect.caught_by for defect in breaking.known().values()}
    assert len(breaking.known()) >= 30
    assert caught_by == {*all_promises(), breaking.SIMULATION}
