"""`perdure` for pages with hundreds of commands: the real entry in a process of its own, forked from one that has it loaded.

Starting Python and loading the commands takes ten times as long as most of them run. A small script called `perdure`
hands its arguments, folder, environment and streams to the server, waits, and ends with the same exit code.
"""

from __future__ import annotations

import array
import contextlib
import json
import os
import socket
import subprocess
import sys
from pathlib import Path

CLIENT = """#!{python} -IS
import array, json, os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
told = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
server.sendmsg([len(told).to_bytes(4, "big")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))])
server.sendall(told)
answer = server.recv(1)
sys.exit(answer[0] if answer else 99)
"""


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
    import perdure.contexts
    from perdure.interfaces.cli import commands

    # As in `tests/in_process.py`: building the commands takes longer than running most of them.
    commands.app = typer.main.get_command(commands.app)  # type: ignore[assignment]
    with perdure.open("memory:") as engine:  # loads what a store and a search need
        ana = engine.memory("ana")
        ana.append("user", "I live in Austin")
        engine.process()
        ana.recall("Where do I live?")
        ana.before("Plan a trip")
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(address)
    listening.listen(50)
    print("ready", flush=True)
    while True:
        caller, _ = listening.accept()
        with caller:
            if os.fork() == 0:
                listening.close()
                _answer(caller)
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _answer(caller: socket.socket) -> None:
    """In the child: become the command, in a child of its own, so that its exit code is known however it ends."""
    head, controls, _, _ = caller.recvmsg(4, socket.CMSG_SPACE(3 * array.array("i").itemsize))
    streams = array.array("i")
    streams.frombytes(controls[0][2])
    size, told = int.from_bytes(head, "big"), b""
    while len(told) < size:
        told += caller.recv(size - len(told))
    arguments, folder, environment = json.loads(told)
    child = os.fork()
    if child == 0:
        caller.close()
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
            os.close(stream)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        _run(arguments)
    for stream in streams:
        os.close(stream)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    caller.sendall(bytes([status if status >= 0 else 128 - status]))
    os._exit(0)


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
