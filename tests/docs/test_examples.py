"""The programs in examples/ run as a reader would run them, and print the numbers that the documentation shows."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "series-from-an-api.md"


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What `examples/kudos.py` prints, started in an empty directory and with no setting of the person who runs the tests."""
    home = str(tmp_path_factory.mktemp("home"))
    env = {name: value for name, value in os.environ.items() if not name.startswith("PERDURE_")}
    done = subprocess.run(
        [sys.executable, "-W", "error", str(ROOT / "examples" / "kudos.py")],
        cwd=home,
        env=env | {"HOME": home, "XDG_CONFIG_HOME": home, "XDG_DATA_HOME": home},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    assert not list(Path(home).iterdir())
    return done.stdout.splitlines()


def test_fewer_calls_with_perdure_than_without(printed: list[str]) -> None:
    heading, *rows, total = printed
    assert heading.split() == ["kudos", "from", "found", "calls", "without", "perdure", "calls", "with", "perdure"]
    told = [(line.split()[0], [int(word) for word in line.split()[-3:]]) for line in rows]
    assert told == [
        ("10:00", [15, 2, 2]),  # nothing is held yet
        ("11:00", [15, 2, 1]),  # the last hour
        ("11:00", [62, 7, 5]),  # days 2 to 7
        ("11:00", [24, 3, 0]),  # held
        ("12:00", [62, 7, 1]),  # the last hour
    ]
    assert total.split() == ["in", "all", "21", "9"]


def test_the_page_shows_what_the_program_prints(printed: list[str]) -> None:
    assert "```text\n" + "\n".join(printed) + "\n```" in PAGE.read_text(encoding="utf-8")
