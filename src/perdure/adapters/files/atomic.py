"""Files that are whole or absent: names made safe, replacement and appending that survive a crash, and a lock.

Folders of owners are private to the account that runs perdure, and named so that no id leads out of them.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from perdure.domain.errors import Corrupt, InvalidInput, Unavailable
from perdure.domain.scope import Owner

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-.")
_DEVICES = {"con", "prn", "aux", "nul", *(f"{kind}{number}" for kind in ("com", "lpt") for number in range(1, 10))}
NAME_BYTES_MAX = 150
TEMP_SUFFIX = ".tmp"
# A file name may have 255 bytes; the temporary one adds 22.
TEMP_NAME_MAX = 230
LOCK_DEADLINE_S = 30.0
LOCK_WAIT_S = 0.0005
LOCK_WAIT_S_MAX = 0.02
EXCHANGES_MAX = 100
# Of renameat2(2) on Linux, and of renamex_np(2) on macOS, which has the same number for it.
_HERE = -100
_EXCHANGE = 2


def safe_name(text: str) -> str:
    """A plain file name for any id, different for different ids, also where case or colons do not count.

    `original_name` turns it back, unless it is so long that a digest stands for its end.
    """
    if not text:
        raise InvalidInput("a name for a file is empty; give the id at least one character")
    name = "".join(char if char in _PLAIN else "".join(f"%{byte:02X}" for byte in char.encode()) for char in text)
    if name.startswith(".") or name.split(".")[0] in _DEVICES:
        name = f"%{ord(name[0]):02X}{name[1:]}"
    if name.endswith("."):
        name = f"{name[:-1]}%2E"
    if len(name) <= NAME_BYTES_MAX:
        return name
    return f"{name[:100]}~{hashlib.sha256(text.encode()).hexdigest()[:40]}"


def original_name(name: str) -> str | None:
    """The id behind a file name; None if `safe_name` did not make it, or cut it short."""
    parts = name.split("%")
    try:
        raw = parts[0].encode() + b"".join(bytes([int(part[:2], 16)]) + part[2:].encode() for part in parts[1:])
        text = raw.decode()
        return text if text and safe_name(text) == name else None
    except ValueError:
        return None


def replace_file(path: Path, content: bytes) -> None:
    """Put `content` under `path`: afterwards it is there for good; after a crash before that, the old one is."""
    temp = path.with_name(f".{path.name[:TEMP_NAME_MAX]}.{secrets.token_hex(8)}{TEMP_SUFFIX}")
    with writing(path):
        try:
            with temp.open("xb") as file:
                _write_synced(file, content)
            temp.replace(path)
        except BaseException:
            with suppress(OSError):
                temp.unlink(missing_ok=True)
            raise
        sync_folder(path.parent)


def swap_file(path: Path, held: bytes, content: bytes) -> bool:
    """As `replace_file`, if `held` is what is under `path`; False, and nothing changes, if it is not.

    Where the system can exchange two names, somebody who replaces the file at the very same moment loses nothing: what was
    there is looked at once it is out of the way, and put back if it is not what was expected. Elsewhere it is looked at just
    before.
    """
    temp = path.with_name(f".{path.name[:TEMP_NAME_MAX]}.{secrets.token_hex(8)}{TEMP_SUFFIX}")
    with writing(path):
        try:
            with temp.open("xb") as file:
                _write_synced(file, content)
            if path.read_bytes() != held:
                return False
            if not _exchange(temp, path):
                temp.replace(path)
            elif temp.read_bytes() != held:
                _put_back(temp, path, content)
                return False
        except FileNotFoundError:
            return False
        finally:
            with suppress(OSError):
                temp.unlink(missing_ok=True)
        sync_folder(path.parent)
    return True


def _put_back(temp: Path, path: Path, shown: bytes) -> None:
    """Undo an exchange: what was displaced is under `temp`, and `shown` under `path`, unless somebody was faster again."""
    for _ in range(EXCHANGES_MAX):
        displaced = temp.read_bytes()
        if not _exchange(temp, path) or temp.read_bytes() == shown:
            return
        shown = displaced  # somebody has replaced the file once more: theirs is the newest


def _exchange(one: Path, other: Path) -> bool:
    """Let two files change their names in one step; False if this system or file system cannot."""
    import ctypes

    if os.name != "posix":
        return False
    libc = ctypes.CDLL(None, use_errno=True)
    names = (os.fsencode(one), os.fsencode(other))
    if hasattr(libc, "renameat2"):
        done = libc.renameat2(_HERE, names[0], _HERE, names[1], _EXCHANGE)
    elif hasattr(libc, "renamex_np"):
        done = libc.renamex_np(*names, _EXCHANGE)
    else:
        return False
    if done == 0:
        return True
    error = ctypes.get_errno()
    if error in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP, errno.EPERM):
        return False
    raise OSError(error, os.strerror(error), str(other))


def append_file(path: Path, content: bytes) -> None:
    """Add `content` to the end. What a crash left half-written must be recognisable to the reader by its form."""
    with writing(path):
        is_new = not path.exists()
        with path.open("ab") as file:
            _write_synced(file, content)
        if is_new:
            sync_folder(path.parent)


def remove_temps(folder: Path) -> int:
    """Remove what interrupted replacements left behind; how many. Call it while no other process writes there."""
    stale = list(folder.glob(f".*{TEMP_SUFFIX}"))
    for path in stale:
        path.unlink(missing_ok=True)
    return len(stale)


@contextmanager
def locked(path: Path, *, shared: bool = False, deadline_s: float = LOCK_DEADLINE_S) -> Iterator[None]:
    """Hold the lock file `path`, against other threads and processes; it goes with its holder.

    Several may share it, or one holds it alone. `Unavailable` if others do not let go of it within `deadline_s`.
    """
    with writing(path):
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        with writing(path):
            _lock(file, path, shared=shared, deadline_s=deadline_s)
        yield
    finally:
        # Nothing was written to it; whatever the disk says, the lock is let go.
        with suppress(OSError):
            os.close(file)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """What the operating system refuses, as our own error."""
    try:
        yield
    except OSError as error:
        raise Unavailable(f"{path} cannot be written ({error.strerror or error}); free space or correct its rights") from error


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """What the operating system refuses, as our own error; that there is no such file is for the caller to say."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Unavailable(f"{path} cannot be read ({error.strerror or error}); correct its rights, or move it away") from error


def sync_folder(folder: Path) -> None:
    """Make names in `folder` durable. Windows has no such call and needs none."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_file(path: Path) -> None:
    """Make durable what was done to a file through another handle; that there is none is fine."""
    with writing(path), suppress(FileNotFoundError):
        handle = os.open(path, os.O_RDWR)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _write_synced(file: IO[bytes], content: bytes) -> None:
    file.write(content)
    file.flush()
    os.fsync(file.fileno())


def _lock(file: int, path: Path, *, shared: bool, deadline_s: float) -> None:
    until = time.monotonic() + deadline_s
    wait_s = LOCK_WAIT_S
    while not _try_lock(file, shared=shared):
        if time.monotonic() > until:
            raise Unavailable(f"{path} has been locked for {deadline_s:g} s; see which process holds it")
        time.sleep(wait_s)
        wait_s = min(2 * wait_s, LOCK_WAIT_S_MAX)


def _try_lock(file: int, *, shared: bool) -> bool:
    if os.name == "nt":
        import msvcrt

        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore]
        except PermissionError:
            return False
        return True
    import fcntl

    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


PRIVATE = 0o700
LOCKS = ".locks"
LOCKS_PER_PURPOSE = 64


def owner_folder(root: Path, owner: Owner) -> Path:
    """`ROOT/SPACE/USER`. It need not exist."""
    return root / safe_name(owner.space) / safe_name(owner.user)


def check_root(root: Path) -> None:
    """`Unavailable` if something else than a folder stands at `root`: nobody may say then that a file is not there."""
    if root.exists() and not root.is_dir():
        raise Unavailable(f"{root} is not a folder; restore the folder, then try again")


def make_folder(folder: Path) -> None:
    """Make the folder and those above it, as far as they are missing; others may not look into them."""
    if folder.is_dir():
        return
    with writing(folder):
        for one in (*reversed(folder.parents), folder):
            if not one.is_dir():
                one.mkdir(mode=PRIVATE, exist_ok=True)
                sync_folder(one.parent)


def remove_empty(folder: Path, *, up_to: Path) -> None:
    """Remove the folder and those above it below `up_to`, until one is not empty. What was removed in it stays removed."""
    with suppress(OSError):
        while folder != up_to:
            folder.rmdir()
            folder = folder.parent
    while True:
        try:
            sync_folder(folder)
        except FileNotFoundError:
            folder = folder.parent  # that of another owner has just taken it away
        else:
            return


@contextmanager
def owner_lock(root: Path, owner: Owner, purpose: str, *, shared: bool = False) -> Iterator[None]:
    """Keep other threads and processes from working on the same files of this owner.

    Lock files must outlive what they guard, or two could hold "the same" one. Owners share a few, so that these do not
    tell who was here once an owner is erased, and do not grow in number.
    """
    folder = root / LOCKS
    make_folder(folder)
    number = hashlib.sha256(f"{owner.space}\0{owner.user}".encode()).digest()[0] % LOCKS_PER_PURPOSE
    with locked(folder / f"{purpose}-{number:02}", shared=shared):
        yield


def followed(path: Path) -> Path:
    """Where a link leads: what people linked is written where they keep it, and stays a link."""
    return Path(os.path.realpath(path)) if path.is_symlink() else path


def check_regular(path: Path) -> None:
    """`Corrupt` if something else than a file stands there: reading a pipe would wait for ever."""
    if path.exists() and not path.is_file():
        raise Corrupt(f"{path} is not a file; move it away")


@contextmanager
def reading_present(path: Path) -> Iterator[None]:
    """As `reading`, of what must be there."""
    try:
        yield
    except OSError as error:
        raise Unavailable(f"{path} cannot be read ({error.strerror or error}); see that it is there and may be read") from error
