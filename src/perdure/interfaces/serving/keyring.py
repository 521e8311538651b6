"""Which key a caller shows, and who is signed in on the page: a random id in a cookie, and here what it stands for.

What the store said of a key is believed for a few seconds, so that most requests read nothing. Logins are gone when the
process ends.
"""

from __future__ import annotations

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Callable

from anyio.to_thread import run_sync

from perdure.domain.access import ApiKey
from perdure.domain.values import dataclass
from perdure.handles.admin import ApiKeyHandle

BELIEVED_S = 5.0
"""A key that another process revokes is refused here after so long."""
KEYS_MAX = 1_000


class Keyring:
    def __init__(self, keys: ApiKeyHandle, clock: Callable[[], float]) -> None:
        self._keys = keys
        self._clock = clock
        # By the digest of the secret, or by the id: the secrets themselves are not kept.
        self._seen: OrderedDict[bytes | str, tuple[ApiKey, float]] = OrderedDict()

    def recent(self, secret: str) -> ApiKey | None:
        """The key that this is the secret of, if the store said so a moment ago."""
        return self._recent(_digest(secret))

    async def recognise(self, secret: str) -> ApiKey | None:
        """The key with this secret, if it is in use."""
        return self._keep(_digest(secret), await run_sync(self._keys.recognise, secret))

    async def find(self, key_id: str) -> ApiKey | None:
        """The key with that id, if it is in use."""
        return self._recent(key_id) or self._keep(key_id, await run_sync(self._keys.find, key_id))

    def clear(self) -> None:
        """Believe nothing: a key was made or revoked."""
        self._seen.clear()

    def _recent(self, name: bytes | str) -> ApiKey | None:
        key, until = self._seen.get(name, (None, 0.0))
        return key if self._clock() < until else None

    def _keep(self, name: bytes | str, key: ApiKey | None) -> ApiKey | None:
        if key is not None:
            self._seen[name] = (key, self._clock() + BELIEVED_S)
            self._seen.move_to_end(name)
            if len(self._seen) > KEYS_MAX:
                self._seen.popitem(last=False)
        return key


def _digest(secret: str) -> bytes:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).digest()


COOKIE = "perdure_session"
HOURS = 12
VISITS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Visit:
    name: str
    """The id of a key, or `local`."""
    csrf: str
    ends_at: float


class Visits:
    """Bounded: the oldest ends when there are too many."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._held: OrderedDict[str, Visit] = OrderedDict()

    def begin(self, caller: str) -> str:
        """The id of a new visit, which is the secret that the cookie carries."""
        name = secrets.token_urlsafe(32)
        self._held[name] = Visit(caller, secrets.token_urlsafe(32), self._clock() + HOURS * 3600)
        if len(self._held) > VISITS_MAX:
            self._held.popitem(last=False)
        return name

    def find(self, name: str) -> Visit | None:
        held = self._held.get(name)
        if held is not None and self._clock() >= held.ends_at:
            self.end(name)
            return None
        return held

    def end(self, name: str) -> None:
        self._held.pop(name, None)


def cookie_of(header: bytes) -> str | None:
    """The id in a `Cookie` header, if it has one."""
    for part in header.decode("latin-1").split(";"):
        name, _, value = part.strip().partition("=")
        if name == COOKIE:
            return value
    return None


def set_cookie(name: str, *, secure: bool) -> str:
    """A page elsewhere cannot send it, no script can read it. Without a name it takes the cookie back."""
    kept = f"Max-Age={HOURS * 3600}" if name else "Max-Age=0"
    return f"{COOKIE}={name}; {kept}; Path=/; HttpOnly; SameSite=Strict" + ("; Secure" if secure else "")
