"""What is odd at the edge of a process: a terminal without the letters, and Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_an_id_with_markup_is_shown_as_it_is(tmp_path: Path) -> None:
    script = Path(sys.executable).with_name("perdure")
    env = {**os.environ, "PERDURE_URL": f"sqlite:///{tmp_path}/a.db", "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [str(script), "append", "--user", "ana", "user", "ü", "--id", "[/red]ü"],
        capture_output=True,
        text=True,
        env=env,
        timeout=60,
    )
    assert done.returncode == 0
    assert done.stdout.startswith("[/red]\\xfc  session")


@pytest.mark.slow
def test_a_worker_told_to_stop_by_ctrl_c_stops(tmp_path: Path) -> None:
    script = Path(sys.executable).with_name("perdure")
    env = {**os.environ, "PERDURE_URL": f"sqlite:///{tmp_path}/a.db"}
    with subprocess.Popen([str(script), "worker"], stderr=subprocess.PIPE, text=True, env=env) as process:
        try:
            assert process.stderr is not None
            assert "is running" in process.stderr.readline()
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=30)
        finally:
            process.kill()
    assert (process.returncode, err) == (0, "worker stopped\n")
