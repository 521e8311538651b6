"""Three PostgreSQL servers under Patroni, which agrees with the others through etcd; whoever holds the lock is the primary.

Every connection between members, to etcd and from clients goes over a wire of its own, so that a member can be cut off. Only
processes that were started here are ever signalled.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import yaml

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[1] / "tools"))
import etcd_server
import system_programs
from proof.network import Proxy, Weather
from proof.wires import Wire
from tests import pg

NAMES = ("one", "two", "three")
CLUSTER = "perdure"
TTL_S = 20
"""How long Patroni's lock lasts when its holder says nothing: Patroni takes no less."""
READY_S = 120.0
PAUSE_S = 0.05
IN_MEMORY = Path("/dev/shm")
PLACE_BYTES_MIN = 4 * 2**30
OPEN_TO_ALL = ["local all all trust", "host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"]

Account = tuple[int, int]
"""A user and a group, by number."""


class Member:
    """One server with its Patroni: what a machine of its own would have."""

    def __init__(self, name: str, folder: Path, etcd: int, account: Account | None) -> None:
        self.name = name
        self.data = folder / "data"
        self._folder = folder
        self._account = account
        self._patroni: subprocess.Popen[bytes] | None = None
        self._postgres_port, self._rest_port = system_programs.free_port(), system_programs.free_port()
        self.to_etcd, self.from_members, self.rest = Wire(etcd), Wire(self._postgres_port), Wire(self._rest_port)
        self.from_clients = Proxy(f"{folder}/.s.PGSQL.{self._postgres_port}", random.Random(name))
        (folder / "patroni.yml").write_text(yaml.safe_dump(self._settings()))

    @property
    def url(self) -> str:
        """A way in that no wire leads over: for whoever watches."""
        return f"postgresql://postgres@/postgres?host={self._folder}&port={self._postgres_port}&connect_timeout=5"

    def start(self) -> None:
        log = (self._folder / "patroni.log").open("ab")
        with log:
            self._patroni = subprocess.Popen(
                [*_as(self._account), sys.executable, "-m", "patroni", self._folder / "patroni.yml"],
                stdout=log,
                stderr=log,
                cwd=self._folder,
                env={**os.environ, "HOME": str(self._folder), "PYTHONPATH": ""},
            )

    # -- faults

    def kill_postgres(self) -> None:
        """kill -9 of PostgreSQL and all it started. Patroni lives, and gives the lock away."""
        _signal(self._postgres(), signal.SIGKILL)

    def kill(self) -> None:
        """The machine is gone: Patroni and PostgreSQL at once. The lock ends by itself."""
        assert self._patroni is not None
        _signal([self._patroni.pid, *self._postgres()], signal.SIGKILL)
        self._patroni.wait()

    def pause(self) -> None:
        """The machine stands still, and does not know it."""
        assert self._patroni is not None
        _signal([self._patroni.pid, *self._postgres()], signal.SIGSTOP)

    def resume(self) -> None:
        assert self._patroni is not None
        _signal([self._patroni.pid, *self._postgres()], signal.SIGCONT)

    def cut_off(self, *, from_clients: bool) -> None:
        """No byte passes between it and etcd, nor the other members; nor clients, if they are on the other side."""
        for wire in (self.to_etcd, self.from_members, self.rest):
            wire.cut()
        if from_clients:
            self.from_clients.set(Weather("cut off", swallow=True))

    def mend(self) -> None:
        """Reachable, started and running again, whatever became of it."""
        for wire in (self.to_etcd, self.from_members, self.rest):
            wire.mend()
        self.from_clients.calm()
        self.from_clients.cut()
        if self._patroni is not None and self._patroni.poll() is not None:
            self.start()

    def stop(self) -> None:
        if self._patroni is not None:
            _signal([*_family(self._patroni.pid), *self._postgres()], signal.SIGKILL)
            self._patroni.wait()
        for wire in (self.to_etcd, self.from_members, self.rest):
            wire.close()
        self.from_clients.close()

    def log(self) -> str:
        path = self._folder / "patroni.log"
        return path.read_text(errors="replace")[-3_000:] if path.exists() else ""

    def ask(self, path: str, method: str = "GET", body: object = None) -> tuple[int, Any]:
        """Ask its Patroni, over no wire."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._rest_port}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.status, _read(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, _read(error.read())

    def _postgres(self) -> list[int]:
        """Every process of its server, of those that is: a number may be somebody else's by now."""
        try:
            parent = int((self.data / "postmaster.pid").read_text().split()[0])
            ours = str(self.data).encode() in (Path("/proc") / str(parent) / "cmdline").read_bytes()
        except (OSError, ValueError, IndexError):
            return []
        return _family(parent) if ours else []

    def _settings(self) -> dict[str, Any]:
        shared = {
            "ttl": TTL_S,
            "loop_wait": 1,
            "retry_timeout": 3,
            # A server that dies is not waited for: another one takes over.
            "primary_start_timeout": 0,
            "synchronous_mode": True,
            "synchronous_mode_strict": True,
            "postgresql": {
                "use_pg_rewind": True,
                "parameters": {
                    "max_connections": 40,
                    "shared_buffers": "16MB",
                    "wal_keep_size": "128MB",
                    "max_wal_size": "256MB",
                    "wal_sender_timeout": "10s",
                    "wal_receiver_timeout": "10s",
                },
            },
        }
        return {
            "scope": CLUSTER,
            "name": self.name,
            "restapi": {"listen": f"127.0.0.1:{self._rest_port}", "connect_address": f"127.0.0.1:{self.rest.port}"},
            # As proxies: otherwise it asks etcd for its addresses, and goes around the wire.
            "etcd3": {"hosts": [f"127.0.0.1:{self.to_etcd.port}"], "use_proxies": True},
            "bootstrap": {"dcs": shared, "initdb": [{"encoding": "UTF8"}, {"locale": "C"}, {"auth": "trust"}, "no-sync"]},
            "postgresql": {
                "listen": f"127.0.0.1:{self._postgres_port}",
                "connect_address": f"127.0.0.1:{self.from_members.port}",
                "data_dir": str(self.data),
                "bin_dir": str(pg.programs()),
                "pgpass": str(self._folder / "pgpass"),
                "pg_hba": OPEN_TO_ALL,
                "parameters": {"unix_socket_directories": str(self._folder)},
                "authentication": {"superuser": {"username": "postgres"}, "replication": {"username": "postgres"}},
                "remove_data_directory_on_rewind_failure": True,
                "remove_data_directory_on_diverged_timelines": True,
                "basebackup": [{"checkpoint": "fast"}, "no-sync"],
            },
            "watchdog": {"mode": "off"},
        }


class Cluster:
    """The members, and who of them is what."""

    def __init__(self, members: list[Member]) -> None:
        self.members = members

    @property
    def url(self) -> str:
        """For clients: all members, of whom the primary is wanted."""
        hosts = ",".join(f"127.0.0.1:{one.from_clients.port}" for one in self.members)
        more = "target_session_attrs=read-write&sslmode=disable&gssencmode=disable"
        return f"postgresql://postgres@{hosts}/postgres?{more}"

    def primary(self) -> Member:
        """Who takes writes, as the members themselves say, once one of them does."""
        return self._until(self._primary, "no member takes writes")

    def another_primary(self, than: Member) -> Member:
        """Who takes writes once somebody else does."""
        return self._until(lambda: self._primary(other_than=than), f"nobody takes over from {than.name}")

    def await_whole(self) -> Member:
        """Wait until one member leads and the others follow it, one of them synchronously; the leader."""
        return self._until(self._leader_of_all, "the members do not come together")

    def await_synchronous(self, other_than: Member) -> None:
        """Wait until the new primary has somebody to wait for: before that it acknowledges nothing."""

        def followed() -> bool:
            with suppress(psycopg.Error):
                with psycopg.connect(self.another_primary(other_than).url, autocommit=True) as connection:
                    found = connection.execute("SELECT 1 FROM pg_stat_replication WHERE sync_state IN ('sync', 'quorum')")
                    return found.fetchone() is not None
            return False

        self._until(followed, "nobody follows the new primary")

    def switch_over(self, to: Member) -> None:
        leader = self.primary()

        def asked() -> bool:
            status, said = leader.ask("/switchover", "POST", {"leader": leader.name, "candidate": to.name})
            # It answers 503 while it is at it too long for its own patience; then it is done all the same.
            return status in (200, 503) or "no longer" in str(said)

        self._until(asked, "no switchover")

    def set_synchronous(self, on: bool) -> None:
        leader = self.primary()
        leader.ask("/config", "PATCH", {"synchronous_mode": on, "synchronous_mode_strict": on})

        def agreed() -> bool:
            with psycopg.connect(leader.url, autocommit=True) as connection:
                [(names,)] = connection.execute("SHOW synchronous_standby_names").fetchall()
                return bool(names) is on

        self._until(agreed, f"synchronous replication is not {'on' if on else 'off'}")

    def following(self, leader: Member) -> Member:
        """One who follows synchronously."""
        _, said = leader.ask("/cluster")
        roles = {one["name"]: one["role"] for one in said["members"]}
        return next(one for one in self.members if roles.get(one.name) == "sync_standby")

    def _primary(self, other_than: Member | None = None) -> Member | None:
        for member in self.members:
            if member is other_than:
                continue
            with suppress(psycopg.Error):
                with psycopg.connect(member.url, autocommit=True) as connection:
                    if connection.execute("SELECT pg_is_in_recovery()").fetchone() == (False,):
                        return member
        return None

    def _leader_of_all(self) -> Member | None:
        for member in self.members:
            with suppress(OSError, ValueError, KeyError):
                status, said = member.ask("/cluster")
                roles = {one["name"]: (one["role"], one["state"]) for one in said["members"]}
                leader = next((one for one in self.members if roles.get(one.name) == ("leader", "running")), None)
                followers = [held for held in roles.values() if held[1] == "streaming"]
                synchronous = [held for held in followers if held[0] == "sync_standby"]
                if status == 200 and leader is not None and len(followers) == len(self.members) - 1 and synchronous:
                    return leader
        return None

    def _until(self, found: Callable[[], Any], otherwise: str) -> Any:
        until = time.monotonic() + READY_S
        while not (answer := found()):
            if time.monotonic() > until:
                logs = "\n".join(f"-- {one.name}\n{one.log()}" for one in self.members)
                raise TimeoutError(f"{otherwise} within {READY_S:.0f} s\n{logs}")
            time.sleep(PAUSE_S)
        return answer


@contextmanager
def patroni_cluster() -> Iterator[Cluster]:
    """Three members that follow one of them, until the end of the block."""
    with ExitStack() as stack:
        place = IN_MEMORY if IN_MEMORY.is_dir() and shutil.disk_usage(IN_MEMORY).free >= PLACE_BYTES_MIN else Path("/tmp")
        root = place / f"ha-{os.getpid()}-{random.SystemRandom().randrange(10**6)}"
        root.mkdir()
        stack.callback(shutil.rmtree, root, ignore_errors=True)
        account = _account()
        port = stack.enter_context(etcd_server.running(root))
        members = []
        for name in NAMES:
            folder = root / name
            folder.mkdir(mode=0o750)
            members.append(Member(name, folder, port, account))
            stack.callback(members[-1].stop)
            for path in (folder, folder / "patroni.yml"):
                if account is not None:
                    os.chown(path, *account)
        cluster = Cluster(members)
        members[0].start()
        cluster.primary()
        for member in members[1:]:
            member.start()
        cluster.await_whole()
        yield cluster


def _account() -> Account | None:
    """PostgreSQL does not run as root; the tests' one brings an account for that."""
    if os.geteuid() != 0:
        return None
    entry = pg.account()
    return entry.pw_uid, entry.pw_gid


def _as(account: Account | None) -> list[str]:
    """What a command begins with that is to run under that account: it may still read a Python that lies in root's home."""
    if account is None:
        return []
    user, group = map(str, account)
    reading = ("--inh-caps=+dac_override", "--ambient-caps=+dac_override")
    return ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", *reading]


def _family(parent: int) -> list[int]:
    """A process and all that it started, itself first."""
    import psutil

    with suppress(psutil.NoSuchProcess):
        return [parent, *(child.pid for child in psutil.Process(parent).children(recursive=True))]
    return []


def _signal(processes: list[int], how: signal.Signals) -> None:
    for pid in processes:
        with suppress(ProcessLookupError):
            os.kill(pid, how)


def _read(said: bytes) -> Any:
    try:
        return json.loads(said)
    except ValueError:
        return said.decode(errors="replace")
