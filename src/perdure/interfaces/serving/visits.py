"""Who is signed in on the page: a random id in a cookie, and here what it stands for. Gone when the process ends."""

from __future__ import annotations

import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

COOKIE = "perdure_session"
HOURS = 12
VISITS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Visit:
    key_id: str
    csrf: str
    ends_at: float


class Visits:
    """Bounded: the oldest ends when there are too many."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._held: OrderedDict[str, Visit] = OrderedDict()

    def begin(self, key_id: str) -> str:
        """The id of a new visit, which is the secret that the cookie carries."""
        name = secrets.token_urlsafe(32)
        self._held[name] = Visit(key_id, secrets.token_urlsafe(32), self._clock() + HOURS * 3600)
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
