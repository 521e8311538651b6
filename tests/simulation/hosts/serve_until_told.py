"""A server of another build: `FOLDER URL SCHEMA`. It writes, recalls and works until it is told to stop, then says what it did."""

import json
import sys
import threading

sys.path.insert(0, sys.argv[1])

import perdure

assert perdure.__file__.startswith(sys.argv[1]), perdure.__file__
stop = threading.Event()
threading.Thread(target=lambda: (sys.stdin.readline(), stop.set()), daemon=True).start()
acknowledged: dict[str, list[str]] = {}
with perdure.open(settings=perdure.Settings(url=sys.argv[2], postgres_schema=sys.argv[3])) as engine:
    version = engine.health().store.schema_version
    number = 0
    while not stop.is_set():
        user, name = f"user-{number % 4}", f"old-{number}"
        memory = engine.memory(user)
        memory.append("user", f"Message {number} of the old build", id=name)
        acknowledged.setdefault(user, []).append(name)
        assert any(message.id == name for message in memory.messages(50))
        memory.recall("message of the old build")
        memory.context("message")
        memory.remember(f"Owns {number} boats")
        memory.state.save("count", number)
        engine.process(0.05)
        number += 1
        if number == 3:
            print("ready", flush=True)
print(json.dumps({"version": version, "acknowledged": acknowledged}), flush=True)
