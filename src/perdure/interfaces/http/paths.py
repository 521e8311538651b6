"""Ids in paths, as all faces of the server know them; see `perdure.interfaces.paths`."""

from __future__ import annotations

from perdure.interfaces.paths import IdConvertor, IdPaths

__all__ = ["IdConvertor", "IdPaths"]
