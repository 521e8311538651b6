"""Appends with jobs running in the background, then ends without closing: url, schema, how to end."""

import sys
import threading

import perdure

url, schema, manner = sys.argv[1:]
engine = perdure.open(settings=perdure.Settings(url=url, postgres_schema=schema), background=True)


def append_for_ever() -> None:
    while True:
        engine.memory("ben").append("user", "still at it")


if manner == "busy":
    threading.Thread(target=append_for_ever, daemon=True).start()
for number in range(200):
    print(engine.memory(f"user-{number % 20}").append("user", str(number)).id)
sys.stdout.flush()
if manner == "error":
    raise SystemExit("the host gives up")
if manner == "sys.exit":
    sys.exit(0)
