"""What happens to open connections when the process forks.

Drivers keep locks and sockets that a child must neither use nor close: SQLite's lock table is per process and would lie
to the child, and closing an inherited PostgreSQL connection ends it for the parent. Stores therefore take part in the
fork: they may quiesce before it, and they start afresh in the child.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from typing import Protocol


class Forkable(Protocol):
    def before_fork(self) -> None: ...
    def after_fork_in_parent(self) -> None: ...
    def after_fork_in_child(self) -> None: ...


_watched: weakref.WeakSet[Forkable] = weakref.WeakSet()
_state = {"hooked": False}


def watch_forks(store: Forkable) -> None:
    """Call the store's hooks around every fork of this process, for as long as it lives."""
    if not _state["hooked"] and hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
        _state["hooked"] = True
    _watched.add(store)


def immortalise(inherited: object) -> None:
    """Keep an inherited driver object for ever: its destructor would disturb the parent."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(inherited))


def _before() -> None:
    for store in list(_watched):
        store.before_fork()


def _in_parent() -> None:
    for store in list(_watched):
        store.after_fork_in_parent()


def _in_child() -> None:
    for store in list(_watched):
        store.after_fork_in_child()
