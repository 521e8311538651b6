"""etcd for the tests: what Patroni keeps its agreement in.

python tools/etcd_server.py          prints where it is, fetching it if need be
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import system_programs
from system_programs import NotToBeHad

NAME = "etcd"
PACKAGES = ("etcd-server",)


def find() -> Path:
    return system_programs.find(NAME, PACKAGES)


@contextmanager
def running(folder: Path) -> Iterator[int]:
    """The port of an etcd of one member, which keeps its data in the folder."""
    program = find()
    port, among_members = system_programs.free_port(), system_programs.free_port()
    clients, members = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{among_members}"
    options = {
        "name": "one",
        "data-dir": folder / "etcd",
        "listen-client-urls": clients,
        "advertise-client-urls": clients,
        "listen-peer-urls": members,
        "initial-advertise-peer-urls": members,
        "initial-cluster": f"one={members}",
        "logger": "zap",
    }
    words = [f"--{name}={value}" for name, value in options.items()]
    with system_programs.running([program, *words], port, folder / "etcd.log", {}):
        yield port


if __name__ == "__main__":
    try:
        print(find())
    except NotToBeHad as error:
        sys.exit(str(error))
