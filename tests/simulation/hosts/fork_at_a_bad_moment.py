"""Forks at a moment that is hard to meet, by arrangement: url, ledger, moment. The child then appends before and after its
parent closes the engine, and notes what was acknowledged; it stops when it is refused as `Unavailable`.

`fork`: another thread forks too, and is done, after our preparations for this fork and before the fork itself.
`purge`: another thread purges, and is made to wait for a lock by somebody else.
"""

import os
import signal
import sys
import threading

import perdure
from perdure.adapters.sqlite.connections import BusyHandler

WAIT_S = 30.0
url, ledger_path, moment = sys.argv[1:]
ledger = os.open(ledger_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
prepared, go_on, waiting = threading.Event(), threading.Event(), threading.Event()


def hold_back_the_late_one() -> None:
    if threading.current_thread().name == "late":
        prepared.set()
        assert go_on.wait(WAIT_S)


# Run in reverse order: this is the last thing before the fork, because it is registered first.
os.register_at_fork(before=hold_back_the_late_one)
settings = perdure.Settings(url=url)
engine = perdure.open(settings=settings)
memory = engine.memory("ana")
memory.append("user", "the file is there", id="first")
parent_appended, tell_parent = os.pipe()
parent_closed, tell_child = os.pipe()
children: list[int] = []


def fork() -> None:
    pid = os.fork()
    if pid:
        children.append(pid)
        return
    signal.alarm(2 * int(WAIT_S))
    try:
        append("before")
        os.write(tell_parent, b".")
        os.read(parent_closed, 1)
        for number in range(5):
            append(f"after-{number}")
    except perdure.Unavailable:
        os.write(tell_parent, b".")
    finally:
        os._exit(0)


def append(name: str) -> None:
    memory.append("user", "hello", id=name)
    os.write(ledger, f"{name}\n".encode())


def fork_while_another_thread_forks() -> None:
    late = threading.Thread(target=fork, name="late")
    late.start()
    assert prepared.wait(WAIT_S)
    if (pid := os.fork()) == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    # A writer that the first fork held back goes on; if the second one holds it back too, it goes on after that.
    writer = threading.Thread(target=append, args=("between",))
    writer.start()
    writer.join(0.2)
    go_on.set()
    late.join()
    writer.join()


def fork_while_another_thread_purges() -> None:
    patience = BusyHandler.__call__

    def noticed(self: BusyHandler, tries: int) -> bool:
        waiting.set()
        return patience(self, tries)

    BusyHandler.__call__ = noticed
    purge = threading.Thread(target=engine._store.purge)
    print("open", flush=True)
    sys.stdin.readline()
    purge.start()
    assert waiting.wait(WAIT_S)
    fork()
    print("forked", flush=True)
    purge.join()


{"fork": fork_while_another_thread_forks, "purge": fork_while_another_thread_purges}[moment]()
os.read(parent_appended, 1)
engine.close()
os.write(tell_child, b".")
for child in children:
    _, status = os.waitpid(child, 0)
    if status:
        sys.exit(f"the child ended with {os.waitstatus_to_exitcode(status)}")
