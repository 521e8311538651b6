"""How another process reaches the same store: the command that starts this program, and how it is told of the store."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from perdure.settings import default_store_path


def store_words(url: str) -> list[str]:
    """How another process is told of the same store. The URL of a server may hold a password: that is left to the settings."""
    # Always: anyone who starts a process for an agent passes on little of its environment, which may name another store.
    start, scheme, file = (url or f"sqlite:///{default_store_path()}").partition("sqlite:///")
    return ["--url", scheme + str(Path(file).resolve())] if not start and scheme and file else []


def program() -> str:
    """What starts this program elsewhere: its name, if that finds it or it was not started by itself; or else where it lies."""
    here, found = Path(sys.argv[0]).resolve(), shutil.which("perdure")
    elsewhere = here.stem == "perdure" and here.is_file() and (found is None or Path(found).resolve() != here)
    return str(here) if elsewhere else "perdure"


def program_path() -> str:
    """Where this program lies, for a client that looks in no other folders; its name if nobody knows."""
    here, found = Path(sys.argv[0]).resolve(), shutil.which("perdure")
    beside = Path(sys.executable).with_name("perdure")
    places = [here] if here.stem == "perdure" else []
    return next((str(one) for one in (*places, beside, *([Path(found)] if found else [])) if one.is_file()), "perdure")
