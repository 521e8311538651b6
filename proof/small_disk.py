"""A small file system of this process's own, which can really be full. Needs Linux, and the right to have name spaces."""

from __future__ import annotations

import ctypes
import os
import shutil
from pathlib import Path

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
MS_REC, MS_PRIVATE = 0x4000, 0x40000
SIZE = "16m"
BALLAST = ".ballast"


def mount(folder: Path) -> bool:
    """Put an empty file system over `folder`, for this process alone; it goes with it. False if that is not permitted."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "unshare"):
        return False
    user, group = os.getuid(), os.getgid()
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0:
        try:
            Path("/proc/self/setgroups").write_text("deny")
            Path("/proc/self/uid_map").write_text(f"0 {user} 1")
            Path("/proc/self/gid_map").write_text(f"0 {group} 1")
        except OSError:
            return False
    elif libc.unshare(CLONE_NEWNS) != 0:
        return False
    if libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) != 0:
        return False
    return bool(libc.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", 0, f"size={SIZE}".encode()) == 0)


def leave(folder: Path, room: int) -> None:
    """Fill the file system up to so many bytes."""
    with (folder / BALLAST).open("wb", buffering=0) as file:
        fill = shutil.disk_usage(folder).free - room
        while fill > 0:
            fill -= file.write(b"x" * min(fill, 1 << 20))


def make_room(folder: Path) -> None:
    (folder / BALLAST).unlink(missing_ok=True)
