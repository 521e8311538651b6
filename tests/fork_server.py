"""`perdure` for pages with hundreds of commands: the real entry in a process of its own, forked from one that has it loaded.

Starting Python and loading the commands takes ten times as long as most of them run. A small script called `perdure`
hands its arguments, folder, environment and streams to the server, waits, and ends with the same exit code.
"""

from __future__ import annotations

import array
import ast
import contextlib
import gc
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

CLIENT = """#!{python} -IS
import _socket, array, os, sys  # and nothing that takes long to load
server = _socket.socket(_socket.AF_UNIX)
server.connect({address!r})
told = repr([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
streams = array.array("i", [0, 1, 2])
server.sendmsg([len(told).to_bytes(4, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
server.sendall(told)
answer = server.recv(1)
sys.exit(answer[0] if answer else 99)
"""
WARM_UP = (
    "append user Hello --user ana",
    "recall Hello --user ana",
    "recall Hello --user ana --json",
    "--help",
    "no-such-command",
)


class ForkServer:
    """Started once; `bin` is a folder with a `perdure` that asks it."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        address = str(folder / "s")
        client = self.bin / "perdure"
        client.write_text(CLIENT.format(python=sys.executable, address=address))
        client.chmod(0o755)
        self._process = subprocess.Popen(
            [sys.executable, __file__, address], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def close(self) -> None:
        self._process.terminate()
        self._process.communicate(timeout=30)


def serve(address: str) -> None:
    import typer.main

    import perdure.aio
    import perdure.documents
    import perdure.interfaces.server
    import perdure.interfaces.stdio
    from perdure.interfaces.cli import commands

    # As in `tests/in_process.py`: building the commands takes longer than running most of them.
    commands.app = typer.main.get_command(commands.app)  # type: ignore[assignment]
    with perdure.open("memory:") as engine:  # loads what a store and a search need
        ana = engine.memory("ana")
        ana.append("user", "I live in Austin")
        engine.process()
        ana.recall("Where do I live?")
        ana.before("Plan a trip")
    _run_once()
    gc.freeze()
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen(50)
    ended, tell = socket.socketpair()
    tell.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(tell.fileno())
    print("ready", flush=True)
    callers: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([listening, ended], [], [])
        if ended in ready:
            ended.recv(100)
            _tell_ended(callers)
        if listening in ready:
            caller, _ = listening.accept()
            child = os.fork()
            if child == 0:
                signal.set_wakeup_fd(-1)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                for one in (listening, ended, tell, *callers.values()):
                    one.close()
                _become(caller)
            callers[child] = caller


def _tell_ended(callers: dict[int, socket.socket]) -> None:
    """To those whose commands have ended, how."""
    while callers and (found := os.waitpid(-1, os.WNOHANG))[0]:
        status = os.waitstatus_to_exitcode(found[1])
        with callers.pop(found[0]) as caller, contextlib.suppress(OSError):
            caller.sendall(bytes([status if status >= 0 else 128 - status]))


def _run_once() -> None:
    """Commands themselves load much that is only loaded when it is first used."""
    from perdure.interfaces.cli import main

    with tempfile.TemporaryDirectory() as folder, Path(os.devnull).open("w") as nowhere, contextlib.chdir(folder):
        with contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
            for line in WARM_UP:
                sys.argv = ["perdure", "--url", "sqlite:///warm.db", *line.split()]
                with contextlib.suppress(SystemExit):
                    main()


def _become(caller: socket.socket) -> None:
    """In the child: be the command that was asked for."""
    head, controls, _, _ = caller.recvmsg(4, socket.CMSG_SPACE(3 * array.array("i").itemsize))
    streams = array.array("i")
    streams.frombytes(controls[0][2])
    size, told = int.from_bytes(head, "big"), b""
    while len(told) < size:
        told += caller.recv(size - len(told))
    caller.close()
    arguments, folder, environment = ast.literal_eval(told.decode())
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    _run(arguments)


def _run(arguments: list[str]) -> None:
    from perdure.interfaces.cli import main

    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, mode, closefd=False) for number, mode in enumerate("rww"))
    sys.argv = ["perdure", *arguments]
    code = 1
    try:
        main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
        os._exit(code)


if __name__ == "__main__":
    serve(sys.argv[1])
