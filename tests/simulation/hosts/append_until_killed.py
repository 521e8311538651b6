"""Two threads append until the process is killed, noting each id once `append` returned: url, ledger, when to be ready."""

import os
import sys
import threading

import perdure

url, ledger_path, ready = sys.argv[1:]
ledger = os.open(ledger_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)


def write(engine: perdure.Engine) -> None:
    memory = engine.memory("ana")
    number = 0
    while True:
        number += 1
        message = memory.append("user", "x" * (number * 37 % 3_000))
        os.write(ledger, f"{message.id}\n".encode())


if ready == "before":
    print("ready", flush=True)
engine = perdure.open(settings=perdure.Settings(url=url))
if ready == "after":
    print("ready", flush=True)
threading.Thread(target=write, args=(engine,)).start()
write(engine)
