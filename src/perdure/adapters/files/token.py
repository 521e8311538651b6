"""The machine token: a secret in a file that only its account can read. Anyone who can read it could open the store as well."""

from __future__ import annotations

import os
import re
import secrets
import stat
from pathlib import Path

from perdure.adapters.files.atomic import TEMP_SUFFIX, make_folder, reading, sync_folder, writing
from perdure.domain.errors import InvalidInput

SECRET_BYTES = 32
FORM = re.compile(r"pdr_machine_[A-Za-z0-9_-]{43}")
PRIVATE_FILE = 0o600
FILE_BYTES_MAX = 200


def new_token() -> str:
    return f"pdr_machine_{secrets.token_urlsafe(SECRET_BYTES)}"


def kept_token(path: Path, *, renew: bool = False) -> str:
    """The token in the file, which is made if it is not there. Two processes that make it at once get the same one."""
    make_folder(path.parent)
    if renew or not path.exists():
        _make(path, replace=renew)
    with reading(path), path.open("rb") as file:
        _check_private(path, os.fstat(file.fileno()))
        text = file.read(FILE_BYTES_MAX).decode("ascii", "replace").strip()
    if not FORM.fullmatch(text):
        raise InvalidInput(f"{path} holds no token; remove it, and a new one is made")
    return text


def _make(path: Path, *, replace: bool) -> None:
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}{TEMP_SUFFIX}")
    with writing(path):
        try:
            with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE_FILE), "w") as file:
                file.write(f"{new_token()}\n")
                file.flush()
                os.fsync(file.fileno())
            if replace:
                draft.replace(path)
            else:
                _put_once(draft, path)
        finally:
            draft.unlink(missing_ok=True)
        sync_folder(path.parent)


def _put_once(draft: Path, path: Path) -> None:
    try:
        os.link(draft, path)
    except FileExistsError:
        pass  # another process was faster: its token stands
    except OSError:  # a file system without links
        if not path.exists():
            draft.replace(path)


def _check_private(path: Path, found: os.stat_result) -> None:
    """What others could read is no longer a secret."""
    if os.name == "nt":
        return
    if stat.S_IMODE(found.st_mode) & 0o077 or found.st_uid != os.getuid():
        raise InvalidInput(
            f"{path} can be read by other accounts (mode {stat.S_IMODE(found.st_mode):o}); remove it, and a new token is made"
        )
