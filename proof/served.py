"""`perdure serve` and `perdure mcp` as processes of their own, for probes: forked from one that has loaded them already."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

START_S = 120.0
STOP_S = 60.0


@dataclass
class Served:
    """A process that serves: its end of the pipes, and what it wrote as troubles."""

    process: Any
    reading: int
    writing: int
    log: Path
    said: dict[str, Any]

    @property
    def port(self) -> int:
        return int(self.said["port"])

    @property
    def pid(self) -> int:
        return int(self.process.pid)

    def troubles(self) -> str:
        """What it told of errors of its own; nothing, if all went well."""
        text = self.log.read_text(errors="replace")
        return text if "Traceback" in text or " ERROR " in text else ""

    def memory_bytes(self) -> int:
        """What the process takes of the machine's memory now."""
        for line in Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        return 0


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[Served]:
    """`perdure serve` on a free port of this machine, until the block ends."""
    import perdure.interfaces.server  # noqa: F401 - loaded here, so that the process need not

    words = ["perdure", "serve", "--json", "--port", "0", "--url", f"sqlite:///{folder / 'served.db'}", *options]
    with _forked(folder, words) as made:
        with os.fdopen(os.dup(made.reading), "rb") as out:
            made.said.update(json.loads(out.readline() or b"{}"))
        if not made.said:
            raise RuntimeError(f"the server did not start: {made.log.read_text()[-2_000:]}")
        yield made


@contextmanager
def speaking_mcp(folder: Path, *options: str) -> Iterator[Served]:
    """`perdure mcp` on two pipes, until the block ends."""
    import perdure.interfaces.mcp.server  # noqa: F401 - as above

    url = f"sqlite:///{folder / 'spoken.db'}"
    with _forked(folder, ["perdure", "mcp", "--user", "ana", "--url", url, *options]) as made:
        yield made


@contextmanager
def _forked(folder: Path, words: Sequence[str]) -> Iterator[Served]:
    log = folder / f"{words[1]}.log"
    from_us, to_us = os.pipe(), os.pipe()
    context = multiprocessing.get_context("fork")
    process = context.Process(target=_run, args=(words, from_us, to_us, log))
    process.start()
    os.close(from_us[0])
    os.close(to_us[1])
    made = Served(process, to_us[0], from_us[1], log, {})
    try:
        yield made
    finally:
        for end in (made.writing, made.reading):
            with suppress(OSError):
                os.close(end)
        process.terminate()
        process.join(STOP_S)
        if process.is_alive():
            process.kill()
            process.join()


def _run(words: Sequence[str], from_us: tuple[int, int], to_us: tuple[int, int], log: Path) -> None:
    """The command, with stdin, stdout and stderr of its own."""
    os.dup2(from_us[0], 0)
    os.dup2(to_us[1], 1)
    os.dup2(os.open(log, os.O_CREAT | os.O_WRONLY | os.O_APPEND), 2)
    for end in (*from_us, *to_us):
        os.close(end)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(os.dup(end), mode) for end, mode in ((0, "r"), (1, "w"), (2, "w")))
    sys.argv = [*words]
    from perdure.interfaces.cli import main

    code = 0
    try:
        main()
    except SystemExit as ended:
        code = int(ended.code or 0)
    except BaseException:
        import traceback

        traceback.print_exc()
        code = 70
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def wait_for(holds: Any, seconds: float) -> bool:
    """Whether it comes to hold in time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if holds():
            return True
        time.sleep(0.02)
    return bool(holds())
