"""Imports two exports in turn, each in place of the other, until the process is killed: url, the two files."""

import sys
import tempfile
from itertools import cycle
from pathlib import Path

import perdure

url, *files = sys.argv[1:]
tempfile.tempdir = str(Path(files[0]).parent)  # where what is left of a killed import is thrown away with the test
with perdure.open(settings=perdure.Settings(url=url)) as engine:
    ana = engine.memory("ana")
    ana.import_(files[0], replace=True)
    print("ready", flush=True)
    for file in cycle(files[::-1]):
        ana.import_(file, replace=True)
