"""Writes until no file may grow any more, then again with room: url, bytes a file may grow once the store is made, how to write.

The limit of the process on the size of a file stands for a full disk: the writes fail, and Python ignores the signal.
Says as JSON what was acknowledged, which errors came, and what could be read while the disk was full.
"""

import json
import resource
import sys
import threading

import perdure

TRIES_MAX = 20_000
FULL = (perdure.Unavailable, perdure.LimitExceeded)

url, bytes_max, manner = sys.argv[1:]
_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
acknowledged: list[str] = []
errors: list[str] = []


def append(memory: perdure.Memory) -> None:
    acknowledged.append(memory.append("user", "x" * 400).id)


def append_many(memory: perdure.Memory) -> None:
    batch = [perdure.NewMessage("user", "x" * 400) for _ in range(50)]
    acknowledged.extend(message.id for message in memory.append_many(batch))


def write_until_full(memory: perdure.Memory) -> None:
    try:
        for _ in range(TRIES_MAX):
            write(memory)
    except FULL as error:
        errors.append(type(error).__name__)


def held(memory: perdure.Memory) -> list[str]:
    ids: list[str] = [acknowledged[0]]
    while page := memory.messages(10_000, after=ids[-1]):
        ids.extend(message.id for message in page)
    return ids


write = append_many if manner == "append_many" else append
with perdure.open(settings=perdure.Settings(url=url)) as engine:
    made = max(file.bytes for file in engine.files())
    resource.setrlimit(resource.RLIMIT_FSIZE, (made + int(bytes_max), hard))
    memory = engine.memory("ana")
    threads = [threading.Thread(target=write_until_full, args=(memory,)) for _ in range(4 if manner == "threads" else 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # After an error the log may be emptied into the file, which makes room for a while.
    stuck = 0
    while stuck < 3:
        before = len(acknowledged)
        write_until_full(memory)
        stuck = stuck + 1 if len(acknowledged) == before else 0
    sizes = {file.path.name: file.bytes for file in engine.files()}
    held_when_full = held(memory)
    acknowledged_when_full = len(acknowledged)

    resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    for _ in range(100):
        write(memory)
    findings = [str(finding) for finding in engine.verify().findings]
print(
    json.dumps(
        {
            "acknowledged": acknowledged,
            "acknowledged_when_full": acknowledged_when_full,
            "held_when_full": held_when_full,
            "errors": errors,
            "sizes": sizes,
            "findings": findings,
        }
    )
)
