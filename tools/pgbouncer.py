"""pgbouncer for the tests, in transaction mode.

python tools/pgbouncer.py            prints where it is, fetching it if need be
"""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import system_programs
from system_programs import NotToBeHad

NAME = "pgbouncer"
PACKAGES = ("pgbouncer", "libevent-2.1-7", "libc-ares2")
SERVER_CONNECTIONS = 3
"""Fewer than clients have, so that transactions meet sessions that others have used."""


def find() -> Path:
    return system_programs.find(NAME, PACKAGES)


@contextmanager
def running(folder: Path, server: Path) -> Iterator[str]:
    """The URL of a pgbouncer in transaction mode, before the PostgreSQL whose socket lies in the folder `server`."""
    program = find()
    port = system_programs.free_port()
    settings = folder / "pgbouncer.ini"
    log = folder / "pgbouncer.log"
    lines = {
        "listen_addr": "127.0.0.1",
        "listen_port": str(port),
        "unix_socket_dir": "",
        "auth_type": "any",
        "pool_mode": "transaction",
        "default_pool_size": str(SERVER_CONNECTIONS),
        "max_client_conn": "500",
        "logfile": str(log),
        "pidfile": "",
    }
    if os.geteuid() == 0:
        # It does not run as root; whoever owns the server's folder can reach its socket.
        lines["user"] = pwd.getpwuid(server.stat().st_uid).pw_name
        os.chown(folder, server.stat().st_uid, -1)
        folder.chmod(0o755)
    said = "\n".join(f"{name} = {value}" for name, value in lines.items())
    settings.write_text(f"[databases]\n* = host={server} port=5432 user=postgres\n\n[pgbouncer]\n{said}\n")
    environment = {"LD_LIBRARY_PATH": system_programs.libraries(NAME)}
    with system_programs.running([program, "-q", settings], port, folder / "pgbouncer.out", environment):
        yield f"postgresql://postgres@127.0.0.1:{port}/postgres"


if __name__ == "__main__":
    try:
        print(find())
    except NotToBeHad as error:
        sys.exit(str(error))
