"""The proof: faults, load and attacks against perdure, each tied to one promise, each run replayable from its seed.

`python -m proof run` tries the promises and writes the report; `python -m proof defects` breaks perdure on purpose, one
small patch at a time, and counts how many of the broken builds the promises catch. `proof/README.md` is the manual.
"""
