"""Waits for the word, then appends a number of messages: url, schema, own name, how many."""

import sys

import perdure

url, schema, name, count = sys.argv[1:]
with perdure.open(settings=perdure.Settings(url=url, postgres_schema=schema)) as engine:
    memory = engine.memory("ana")
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(int(count)):
        memory.append("user", f"{name} {number}")
