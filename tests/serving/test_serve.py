"""`perdure serve` as people start it: a process with a port, jobs in the background, and an end when it is told to."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

import perdure
import perdure.interfaces
from perdure.interfaces.cli import commands
from perdure.interfaces.serving.runner import listen, listen_at

PERDURE = Path(sys.executable).parent / "perdure"


def environment(folder: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PERDURE")}
    return {
        **kept,
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
        "XDG_DATA_HOME": str(folder),
        "PERDURE_EMBEDDER": "none",
    }


@contextmanager
def serving(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """The process, and what it said when it was ready."""
    words = [str(PERDURE), "serve", "--json", "--port", "0", "--url", f"sqlite:///{folder}/store.db", *options]
    with (folder / "log").open("a") as log:
        process = subprocess.Popen(
            words, env=environment(folder), cwd=folder, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log
        )
    watch = threading.Timer(60, process.kill)
    watch.start()
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, (folder / "log").read_text()
        yield process, json.loads(line)
    finally:
        watch.cancel()
        if process.poll() is None:
            process.kill()
        process.communicate()


def ask(port: int, method: str, path: str, body: object = None, headers: dict[str, str] | None = None) -> tuple[int, Any]:
    link = HTTPConnection("127.0.0.1", port, timeout=30)
    sent = None if body is None else json.dumps(body)
    link.request(method, path, sent, {"Content-Type": "application/json", **(headers or {})})
    answer = link.getresponse()
    text = answer.read()
    link.close()
    assert answer.getheader("server") is None
    return answer.status, json.loads(text) if text.startswith(b"{") else text


def bearer(said: dict[str, Any]) -> dict[str, str]:
    """The token as whoever may read its file sends it."""
    return {"Authorization": f"Bearer {Path(said['token_file']).read_text().strip()}"}


def until(found: Callable[[], bool]) -> None:
    """Ask again until it is so; a minute is more than enough."""
    last = time.monotonic() + 60
    while not found():
        assert time.monotonic() < last


def test_it_serves_runs_jobs_and_ends_when_it_is_told_to(tmp_path: Path) -> None:
    with serving(tmp_path, "--verbose") as (process, said):
        port = said["port"]
        assert said["pid"] == process.pid
        assert said["url"] == f"http://127.0.0.1:{port}"
        assert ask(port, "GET", "/healthz") == (200, {"status": "alive"})
        assert ask(port, "GET", "/readyz")[1]["status"] == "ready"
        mine = bearer(said)
        status, _ = ask(port, "PUT", "/v1/users/ana/state/private-key", {"value": "kept for good"}, mine)
        assert status == 200
        said_so = ask(port, "POST", "/v1/users/ana/messages", {"role": "user", "content": "hello there"}, mine)
        assert said_so[0] in (200, 201)
        until(lambda: b'perdure_jobs{state="done"} 0.0' not in ask(port, "GET", "/metrics", headers=mine)[1])
        assert ask(port, "GET", "/v1/users/ana/state", headers={"Host": "evil.example"})[0] == 421
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    with perdure.open(f"sqlite:///{tmp_path}/store.db") as engine:
        assert engine.memory("ana").state.load("private-key") == "kept for good"
        assert engine.verify().clean
    log = (tmp_path / "log").read_text()
    assert "PUT /v1/users/{user:id}/state/{key:id} 200" in log
    for word in ("private-key", "kept for good", "hello there", "Traceback", "/ana/", "pdr_"):
        assert word not in log


def test_an_interrupt_ends_it_too_and_a_request_in_hand_is_finished(tmp_path: Path) -> None:
    with serving(tmp_path) as (process, said):
        link = socket.create_connection(("127.0.0.1", said["port"]), timeout=30)
        body = json.dumps({"value": "x"}).encode()
        head = (
            "PUT /v1/users/ana/state/k HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Authorization: {bearer(said)['Authorization']}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        link.sendall(head.encode() + body[:3])
        ask(said["port"], "GET", "/healthz")  # by now the server has read the head
        process.send_signal(signal.SIGINT)
        link.sendall(body[3:])
        assert link.recv(1_000).startswith(b"HTTP/1.1 200")
        link.close()
        assert process.wait(30) == 0
    assert (tmp_path / "log").read_text().splitlines() == ["stopped"]


CLOSED = (
    ("GET", "/v1/users"),
    ("GET", "/v1/users/ana/messages"),
    ("DELETE", "/v1/users/ana"),
    ("GET", "/v1/users/ana/export"),
    ("POST", "/v1/keys"),
    ("GET", "/metrics"),
    ("POST", "/mcp"),
)


def test_another_account_of_this_machine_is_told_nothing(tmp_path: Path) -> None:
    """It reaches the port, but not the file of the token, which is made once and stays the same."""
    with serving(tmp_path) as (_, said):
        file = Path(said["token_file"])
        assert file == tmp_path / "store.db.token"
        assert file.stat().st_mode & 0o777 == 0o600
        assert [ask(said["port"], method, path, {})[0] for method, path in CLOSED] == [401] * len(CLOSED)
        assert ask(said["port"], "GET", "/u/ana")[0] == 303
        link = said["page"].removeprefix(said["url"])
        assert ask(said["port"], "GET", link)[0] == 303
        assert ask(said["port"], "GET", "/v1/users", headers=bearer(said))[0] == 200
        rpc = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
        headers = {
            **said["connect"]["http"]["mcpServers"]["perdure"]["headers"],
            "Accept": "application/json, text/event-stream",
        }
        assert ask(said["port"], "POST", "/mcp?user=ana", rpc, headers)[1] == {"jsonrpc": "2.0", "id": 1, "result": {}}
        token = file.read_text()
    with serving(tmp_path) as (_, said):
        assert Path(said["token_file"]).read_text() == token
        assert ask(said["port"], "GET", "/v1/users", headers=bearer(said))[0] == 200


def test_with_no_auth_whoever_reaches_the_port_is_let_in(tmp_path: Path) -> None:
    with serving(tmp_path, "--no-auth") as (_, said):
        assert (said["access"], said["token_file"]) == ("none", None)
        assert "headers" not in said["connect"]["http"]["mcpServers"]["perdure"]
        assert ask(said["port"], "GET", "/v1/users")[0] == 200
    assert not (tmp_path / "store.db.token").exists()


def test_it_listens_at_a_unix_socket_that_only_this_account_may_use(tmp_path: Path) -> None:
    at = tmp_path / "perdure.sock"
    with serving(tmp_path, "--socket", str(at)) as (process, said):
        assert said["socket"] == str(at)
        assert at.stat().st_mode & 0o777 == 0o600
        assert over_socket(at, "GET /v1/users", {}) == 401, "whoever passes on what others send is asked, too"
        assert over_socket(at, "GET /v1/users", bearer(said)) == 200
        assert over_socket(at, "GET /healthz", {}) == 200
        with pytest.raises(perdure.Unavailable, match="taken by another program"):
            listen_at(at)
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert not at.exists()


def over_socket(at: Path, request: str, headers: dict[str, str]) -> int:
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(30)
        link.connect(str(at))
        more = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        link.sendall(f"{request} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{more}\r\n".encode())
        return int(link.recv(1_000).split(b" ")[1])


def test_a_socket_that_a_dead_server_left_is_replaced_and_anything_else_is_not(tmp_path: Path) -> None:
    at = tmp_path / "s"
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(at))
    left.close()
    made = listen_at(at)
    made.close()
    assert not at.exists()
    at.write_text("a file")
    with pytest.raises(perdure.InvalidInput, match="something else than a socket"):
        listen_at(at)
    with pytest.raises(perdure.InvalidInput, match="shorter path"):
        listen_at(tmp_path / ("x" * 200))
    with pytest.raises(perdure.InvalidInput, match="your own folder"):
        listen_at(tmp_path / "nowhere" / "s")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """The command in this process, on a store of its own."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("PERDURE_URL", f"sqlite:///{tmp_path}/store.db")

    def start(*options: str) -> None:
        commands.app(["serve", *options], standalone_mode=False)

    return start


def test_a_port_that_is_taken_is_named_with_a_remedy(run: Callable[..., None]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        taken = held.getsockname()[1]
        with pytest.raises(perdure.Unavailable, match=f"port {taken} on 127.0.0.1 is taken.*`--port 0`"):
            run("--port", str(taken))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--host", "0.0.0.0", "--port", "0"], "perdure admin key create"),
        (["--port", "70000"], "`port` = 70000"),
        (["--host", "203.0.113.9", "--port", "0"], "no address of this machine"),
        (["--host", "no such name", "--port", "0"], "no address of this machine"),
        (["--rate", "0", "--port", "0"], "`rate`"),
        (["--host", "0.0.0.0", "--port", "0", "--no-auth"], "`no_auth`"),
        (["--allow-host", "a b", "--port", "0"], "no host name"),
    ],
)
def test_what_keeps_it_from_starting_is_said(run: Callable[..., None], options: list[str], words: str) -> None:
    with pytest.raises(perdure.InvalidInput, match=words):
        run(*options)


def test_a_part_that_is_not_installed_is_named_with_what_installs_it(
    run: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    for name in ("perdure.interfaces.server", "perdure.interfaces.serving.runner"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.delattr(perdure.interfaces, "server", raising=False)
    with pytest.raises(perdure.InvalidInput, match=r"needs `uvicorn`; .*pip install 'perdure\[server\]'"):
        run("--port", "0")


def test_port_0_takes_a_free_one() -> None:
    one, other = listen("127.0.0.1", 0), listen("127.0.0.1", 0)
    assert one.port != other.port
    assert one.url == f"http://127.0.0.1:{one.port}"
    for held in (one, other):
        held.socket.close()
