"""What the simulations share: processes of ours that may be killed, and chance with a seed that is printed."""

from __future__ import annotations

import os
import random
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

HOSTS = Path(__file__).parent / "hosts"
SEED = "SIMULATION_SEED"
START_S = 60.0


class Host:
    """A program of `hosts/` that uses perdure in a process of its own, and talks in lines over its standard streams."""

    def __init__(self, script: str, *args: object) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `clean_up`
        self.process = subprocess.Popen(
            [sys.executable, str(HOSTS / f"{script}.py"), *map(str, args)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            bufsize=0,
            start_new_session=True,
        )

    def expect(self, line: str, *, seconds: float = START_S) -> None:
        """Wait until the program says exactly this."""
        assert self.process.stdout is not None
        heard = ""
        if select.select([self.process.stdout], [], [], seconds)[0]:
            heard = self.process.stdout.readline().decode().rstrip("\n")
        assert heard == line, f"the host said {heard!r} instead of {line!r}\n{self.errors()}"

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())

    def finish(self, *, seconds: float) -> str:
        """Wait for a good end; everything it said since the last `expect`."""
        said, _ = self.process.communicate(timeout=seconds)
        assert self.process.returncode == 0, f"the host ended with {self.process.returncode}\n{self.errors()}"
        return said.decode()

    def kill(self, after_s: float) -> None:
        """End it as `kill -9` does, that much later. It must still be at work then."""
        try:
            self.process.wait(after_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
        assert self.process.wait() == -9, f"the host ended before it was killed\n{self.errors()}"
        self._release()

    def clean_up(self) -> None:
        if self.process.poll() is None:
            # With all it forked: it leads a group of its own, whose number is not given away while it lives.
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self._release()
        self._errors.close()

    def errors(self) -> str:
        """What it wrote to standard error so far."""
        if self._errors.closed:
            return ""
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace")

    def _release(self) -> None:
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()


StartHost = Callable[..., Host]


@pytest.fixture
def start_host() -> Iterator[StartHost]:
    """Start a program of `hosts/`; none outlives its test."""
    started: list[Host] = []

    def start(script: str, *args: object) -> Host:
        started.append(Host(script, *args))
        return started[-1]

    yield start
    for host in started:
        host.clean_up()


@pytest.fixture
def chance() -> random.Random:
    seed = int(os.environ.get(SEED) or random.SystemRandom().randrange(2**32))
    print(f"seed {seed}; to repeat this run: {SEED}={seed}")
    return random.Random(seed)


@pytest.fixture
def eventually() -> Callable[..., None]:
    """Wait until something holds, up to a deadline."""

    def wait(holds: Callable[[], bool], *, seconds: float = 20.0) -> None:
        until = time.monotonic() + seconds
        while not holds():
            assert time.monotonic() < until, f"it did not happen within {seconds} s"
            time.sleep(0.005)

    return wait
