"""Forks with an open engine while threads write; parent and children go on appending: url, schema, ledger, manner.

Every id is noted in the ledger once `append` returned. The program ends with 0 if nobody met an error.
"""

import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable

import perdure

FORKS = 8
BY_CHILD = 15
CHILD_S = 60.0
WRITES_MAX = 2_500
"""Of one thread: all of them together are read at the end."""

url, schema, ledger_path, manner = sys.argv[1:]
ledger = os.open(ledger_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
stop = threading.Event()
troubles: list[str] = []


def append(name: str, number: int) -> None:
    message = engine.memory("ana").append("user", "hello", id=f"{name}-{number}")
    assert not message.repeated
    os.write(ledger, f"{message.id}\n".encode())


def append_until_stopped(name: str) -> None:
    number = 0
    try:
        while not stop.is_set() and number < WRITES_MAX:
            append(name, number)
            engine.memory("ana").messages(5)
            number += 1
    except BaseException as error:
        troubles.append(f"{name}: {error!r}")
        raise


def append_some(name: str) -> None:
    for number in range(BY_CHILD):
        append(name, number)


def wait_for(pid: int) -> None:
    until = time.monotonic() + CHILD_S
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            break
        if time.monotonic() > until:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
            status = -1
            break
        time.sleep(0.005)
    if status != 0:
        troubles.append(f"a child ended with {os.waitstatus_to_exitcode(status) if status > 0 else 'nothing but a kill'}")


def fork_one_after_the_other() -> None:
    for number in range(FORKS):
        pid = os.fork()
        if pid == 0:
            append_some(f"child{number}")
            # The normal way out: leaves the `with` block, closes the engine, ends the interpreter.
            sys.exit(0)
        append("parent", number)
        wait_for(pid)


def fork_a_family() -> None:
    """Children that fork in turn, all alive at once."""
    pids = []
    for number in range(FORKS // 2):
        pid = os.fork()
        if pid == 0:
            append(f"child{number}", 0)
            grandchild = os.fork()
            if grandchild == 0:
                append_some(f"grandchild{number}")
                sys.exit(0)
            append(f"child{number}", 1)
            wait_for(grandchild)
            sys.exit(1 if troubles else 0)
        pids.append(pid)
    for pid in pids:
        wait_for(pid)


def fork_in_threads() -> None:
    """Several threads that fork at the same moment."""
    together = threading.Barrier(4)

    def fork(number: int) -> None:
        for turn in range(FORKS // 2):
            together.wait(CHILD_S)
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    append_some(f"child{number}.{turn}")
                    code = 0
                finally:
                    os._exit(code)
            wait_for(pid)

    threads = [threading.Thread(target=fork, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def start_processes() -> None:
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=append_some, args=(f"process{number}",)) for number in range(FORKS)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(CHILD_S)
        if process.exitcode != 0:
            process.kill()
            troubles.append(f"a process ended with {process.exitcode}")


manners: dict[str, Callable[[], None]] = {
    "fork": fork_one_after_the_other,
    "background": fork_one_after_the_other,
    "family": fork_a_family,
    "threads": fork_in_threads,
    "multiprocessing": start_processes,
}
settings = perdure.Settings(url=url, postgres_schema=schema)
with perdure.open(settings=settings, background=manner == "background") as engine:
    threads = [threading.Thread(target=append_until_stopped, args=(f"thread{number}",)) for number in range(3)]
    for thread in threads:
        thread.start()
    try:
        manners[manner]()
    finally:
        # In a child there are no such threads any more, and joining them returns at once.
        stop.set()
        for thread in threads:
            thread.join()
    append("parent", 1_000)
if troubles:
    sys.exit("\n".join(troubles))
