"""Save a context document that grows and is compacted, until killed: folder, ledger, moment.

`anywhere` saves on and on, noting each message once its save returned. The other moments stop in the third save, at that
point, and wait: `writing` with half of the temporary file on the disk, `between` with all of it, but before the rename.
"""

import os
import sys
import time
from pathlib import Path

from perdure.adapters.files import atomic
from perdure.documents import ContextCompactor, ContextManager, HistoryEntry

base, ledger_path, moment = sys.argv[1:]
ledger = os.open(ledger_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
write_synced = atomic._write_synced
replace = Path.replace


def stop() -> None:
    print("there", flush=True)
    time.sleep(3_600)


def half(file, content):
    if "recent_history" in str(content[:2_000]) and file.name.endswith(atomic.TEMP_SUFFIX):
        file.write(content[: len(content) // 2])
        file.flush()
        stop()
    write_synced(file, content)


def never(path, target):
    if path.name.endswith(atomic.TEMP_SUFFIX):
        stop()
    return replace(path, target)


manager = ContextManager(base)
manager.initialize()
compactor = ContextCompactor(max_history=10)
context = manager.load("user:agent:1")
number = len(manager.history("user:agent:1"))
print("ready", flush=True)
saves = 0
while True:
    saves += 1
    more = [f"m{number + one}" for one in range(4)]
    number += 4
    context.recent_history += [HistoryEntry(1, "user", one) for one in more]
    compactor.compact(context)
    if saves == 3 and moment == "writing":
        atomic._write_synced = half
    if saves == 3 and moment == "between":
        Path.replace = never
    manager.save(context)
    os.write(ledger, "".join(f"{one}\n" for one in more).encode())
