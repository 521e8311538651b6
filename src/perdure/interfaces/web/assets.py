"""Style sheets, scripts and pictures: shipped with the package. The server serves the folder; here is how a page names them."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

STATIC = Path(__file__).parent / "static"


@cache
def asset_path(name: str) -> str:
    """Where an asset is. Another content has another address, so that a browser may keep what it has."""
    return f"/static/{name}?v={hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]}"
