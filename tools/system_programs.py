"""Servers that tests start beside PostgreSQL: found where they are installed, else fetched from the system's packages.

The packages are unpacked into a folder of `.venv`, named by the program. Nothing needs root; once unpacked nothing is fetched.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

FETCH_S, START_S, STOP_S = 120.0, 20.0, 10.0


class NotToBeHad(Exception):
    """A program is not there and cannot be fetched, or does not start; the words say what would help."""


def find(name: str, packages: Sequence[str]) -> Path:
    """Where the program is. Of the packages, the first has the program, the others what it needs."""
    installed = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
    return Path(installed) if installed is not None else _unpacked(name, packages)


def libraries(name: str) -> str:
    """Where the libraries lie that were fetched with it: for `LD_LIBRARY_PATH`."""
    return os.pathsep.join(str(path) for path in sorted(_folder(name).glob("usr/lib/*-linux-gnu")))


def free_port() -> int:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        port: int = listener.getsockname()[1]
        return port


@contextmanager
def running(command: Sequence[str | Path], port: int, log: Path, environment: Mapping[str, str]) -> Iterator[None]:
    """The program of that command line, from the moment it listens at the port until the end of the block."""
    with log.open("ab") as output:
        process = subprocess.Popen(  # noqa: S603 - our own words
            command, env={**os.environ, **environment}, stdout=output, stderr=output
        )
    try:
        _wait_until_it_listens(process, port, Path(command[0]).name, log)
        yield
    finally:
        process.terminate()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(STOP_S)


def _wait_until_it_listens(process: subprocess.Popen[bytes], port: int, name: str, log: Path) -> None:
    until = time.monotonic() + START_S
    while True:
        if process.poll() is not None or time.monotonic() > until:
            raise NotToBeHad(f"{name} did not start; its log says: {log.read_text(errors='replace')[-2_000:] or 'nothing'}")
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)


def _folder(name: str) -> Path:
    return Path(sys.prefix) / name


def _unpacked(name: str, packages: Sequence[str]) -> Path:
    if (program := _program(name)) is not None:
        return program
    missing = [tool for tool in ("apt-get", "dpkg-deb") if shutil.which(tool) is None]
    if missing:
        raise NotToBeHad(f"{name} is not installed, and there is no {missing[0]} to fetch it with; install {name}")
    folder = _folder(name)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _program(name) is None:
            _fetch(name, packages, folder)
    program = _program(name)
    if program is None:
        raise NotToBeHad(f"{name} is not in the packages {', '.join(packages)} of this system; install {name}")
    return program


def _program(name: str) -> Path | None:
    return next((path for path in _folder(name).glob(f"usr/*bin/{name}") if path.exists()), None)


def _fetch(name: str, packages: Sequence[str], folder: Path) -> None:
    fetched = folder / "packages"
    fetched.mkdir(exist_ok=True)
    for command in (
        ["apt-get", "download", "-q", *packages],
        ["apt-get", "update", "-q"],
        ["apt-get", "download", "-q", *packages],
    ):
        done = subprocess.run(command, cwd=fetched, capture_output=True, text=True, timeout=FETCH_S, check=False)  # noqa: S603
        if done.returncode == 0 and command[1] == "download":
            break
    found = sorted(fetched.glob("*.deb"))
    if len(found) < len(packages):
        raise NotToBeHad(f"{name} is not installed and could not be fetched; install it. apt-get said: {done.stderr[-500:]}")
    # The program comes last: whoever sees it has the libraries, too.
    for package in sorted(found, key=lambda path: path.name.startswith(f"{packages[0]}_")):
        subprocess.run(["dpkg-deb", "-x", str(package), str(folder)], check=True, timeout=FETCH_S)  # noqa: S603, S607
