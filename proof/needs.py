"""What a machine must have for the proof, each told in one line. An empty line: it is there."""

from __future__ import annotations

import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

SHIM = Path(__file__).parent / "shim" / "shim.c"
COMPILED = ("P2", "P3", "P5", "P14")
"""Promises whose faults are met, or whose files are watched, in a small C library under the process. P4 repeats those faults in its full round."""

CLUSTERED = "P20"
"""The promise about several servers, which agree by means of etcd."""


def linux() -> str:
    return (
        "" if sys.platform == "linux" else f"the proof runs on Linux only: its faults are Linux's, and this is {sys.platform}"
    )


def compiler(promise: str, size: str) -> str:
    """Whether that promise can be tried here as far as C is concerned."""
    wanted = promise in COMPILED or (promise == "P4" and size == "full")
    return _no_compiler() if wanted else ""


@cache
def _no_compiler() -> str:
    found = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    line = f"a C compiler (cc, gcc or clang) is needed for {', '.join(COMPILED)} and the full round of P4: "
    if found is None:
        return line + "none is there; install gcc"
    # A compiler without the headers of the C library is as good as none.
    ended = subprocess.run([found, "-fsyntax-only", str(SHIM)], capture_output=True, text=True, check=False)
    if not ended.returncode:
        return ""
    said = next((one for one in ended.stderr.splitlines() if "error" in one), "it does not say why")
    return f"{line}{found} cannot build {SHIM.name} ({said.strip()[:200]}); install libc6-dev if a header is missing"


def etcd(promise: str) -> str:
    """Whether that promise can be tried here as far as etcd is concerned, which is fetched if need be."""
    if promise != CLUSTERED:
        return ""
    sys.path.append(str(Path(__file__).parents[1] / "tools"))
    import etcd_server

    try:
        etcd_server.find()
    except etcd_server.NotToBeHad as error:
        return f"{CLUSTERED} needs etcd: {error}"
    return ""


def patch() -> str:
    return "" if shutil.which("patch") else "`patch` is needed to break perdure on purpose: none is there; install patch"


def installed(error: ModuleNotFoundError) -> str:
    """What to do about a module that this Python does not have. One of the proof's or perdure's own is a defect: raised again."""
    if (error.name or "").startswith(("proof.", "perdure.", "tests.")):
        raise error
    return (
        f"this Python has no {error.name}, which the test extra installs: use `make proof`, "
        "or `.venv/bin/python -m proof` once `make test` has made that environment"
    )
