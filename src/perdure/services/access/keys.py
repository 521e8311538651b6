"""API keys of a space: made, listed, revoked, and recognised. They are kept as state of an owner that no caller can name."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from perdure.domain.access import KEY_NAME_CHARS_MAX, KEY_USERS_MAX, ApiKey, NewApiKey, permissions_of
from perdure.domain.errors import Corrupt, InvalidInput, NotFound
from perdure.domain.scope import ID_BYTES_MAX, RESERVED, Owner, Scope
from perdure.domain.state import Revision
from perdure.domain.text.rules import brief, check_flag, check_id, check_no_secret, compact_json, utf8_size
from perdure.domain.values import dataclass, replace
from perdure.ports.clock import Clock
from perdure.ports.store import Store, Tx, View

MARK = "pdr"
"""How every key begins, so that it is recognised where it should not be."""
ID_BYTES, SECRET_BYTES = 6, 32
SECRET_CHARS_MAX = 200
KEY_ID = re.compile(f"[0-9a-f]{{{2 * ID_BYTES}}}")
KEYS_MAX = 10_000
DAYS_MAX = 36_500
KEPT_REVISIONS = 10


@dataclass(frozen=True, slots=True)
class ApiKeys:
    store: Store
    clock: Clock
    space: str

    def create(
        self,
        name: str,
        *,
        users: Iterable[str] | None = None,
        permission: str = "write",
        days: float | None = None,
        agent: bool = False,
    ) -> NewApiKey:
        """Make a key, for a person or program, or for an agent. Its secret is in the answer and nowhere else."""
        if check_flag(agent, "agent") and permission == "admin":
            raise InvalidInput("`permission` = 'admin' is not for an agent's key; give it `read` or `write`")
        bound = None if users is None else self._users(users)
        now = self.clock.now()
        key = ApiKey(
            id=secrets.token_hex(ID_BYTES),
            name=_checked_name(name),
            users=bound,
            permissions=permissions_of(permission),
            made_at=now,
            expires_at=_expiry(now, days),
            agent=agent,
        )
        secret = f"{MARK}_{key.id}_{secrets.token_urlsafe(SECRET_BYTES)}"
        self._put(key, _digest(secret))
        return NewApiKey(key, secret)

    def list_(self) -> list[ApiKey]:
        """Every key there is or was, the newest first."""
        now = self.clock.now()

        def work(view: View) -> list[Revision | None]:
            return [view.state.find(one.key) for one in view.state.list_keys(now=now, prefix="", after=None, limit=KEYS_MAX)]

        rows = self.store.read(self._owner, work)
        found = [_read(row)[0] for row in rows if row is not None and row.body is not None]
        return sorted(found, key=lambda key: (key.made_at, key.id), reverse=True)

    def revoke(self, key_id: str) -> ApiKey:
        """Take a key out of use, for good; who made it and when stays known."""
        utf8_size(key_id, "`key_id`")
        held = self._find(key_id)
        if held is None:
            raise NotFound(f"there is no API key {brief(key_id)}; `perdure admin key list` shows those there are")
        key, digest = held
        if key.revoked_at is None:
            key = replace(key, revoked_at=self.clock.now())
            self._put(key, digest)
        return key

    def recognise(self, secret: str) -> ApiKey | None:
        """The key with this secret, if it is in use."""
        utf8_size(secret, "`secret`")
        mark, _, rest = secret.partition("_")
        key_id, _, _ = rest.partition("_")
        if mark != MARK or len(secret) > SECRET_CHARS_MAX or not KEY_ID.fullmatch(key_id) or not secret.isascii():
            return None
        held = self._find(key_id)
        if held is None or not hmac.compare_digest(held[1], _digest(secret)):
            return None
        return held[0] if held[0].alive(self.clock.now()) else None

    def find(self, key_id: str) -> ApiKey | None:
        """The key with that id, if it is in use."""
        utf8_size(key_id, "`key_id`")
        held = self._find(key_id) if KEY_ID.fullmatch(key_id) else None
        return held[0] if held is not None and held[0].alive(self.clock.now()) else None

    def any_alive(self) -> bool:
        now = self.clock.now()
        return any(key.alive(now) for key in self.list_())

    @property
    def _owner(self) -> Owner:
        return Owner(self.space, f"{RESERVED}keys")

    def _users(self, users: Iterable[str]) -> tuple[str, ...]:
        if isinstance(users, str) or not isinstance(users, Iterable):
            raise InvalidInput(f"`users` is a `{type(users).__name__}`; pass a list of names, or leave it out for all users")
        found = tuple(dict.fromkeys(check_id(user, "user", bytes_max=ID_BYTES_MAX) for user in users))
        if not found:
            raise InvalidInput("`users` is empty; name at least one user, or leave it out for all of them")
        if len(found) > KEY_USERS_MAX:
            raise InvalidInput(f"`users` names {len(found)} users, more than the {KEY_USERS_MAX} of one key; make several keys")
        for user in found:
            Scope.of(user, space=self.space)  # which checks it
        return found

    def _find(self, key_id: str) -> tuple[ApiKey, str] | None:
        row = self.store.read(self._owner, lambda view: view.state.find(key_id))
        return None if row is None or row.body is None else _read(row)

    def _put(self, key: ApiKey, digest: str) -> None:
        body = compact_json(
            {
                "name": key.name,
                "users": None if key.users is None else list(key.users),
                "permissions": list(key.permissions),
                "made_at": key.made_at.isoformat(),
                "expires_at": None if key.expires_at is None else key.expires_at.isoformat(),
                "revoked_at": None if key.revoked_at is None else key.revoked_at.isoformat(),
                "digest": digest,
                **({"agent": True} if key.agent else {}),
            }
        )
        now, request = self.clock.now(), self.clock.new_id()

        def work(tx: Tx) -> None:
            held = tx.state.find(key.id)
            if held is not None and held.request == request:
                return  # done before; only the answer was lost
            number = 1 if held is None else held.number + 1
            tx.state.put(Revision(key.id, number, body, now, request=request), keep=KEPT_REVISIONS)

        self.store.write(self._owner, work)


def _digest(secret: str) -> str:
    # A secret of 256 random bits cannot be guessed however fast the digest is: a slow one would protect nothing more.
    return hashlib.sha256(secret.encode()).hexdigest()


def _read(row: Revision) -> tuple[ApiKey, str]:
    try:
        told: dict[str, Any] = json.loads(row.body or "")
        moments = [None if told[name] is None else datetime.fromisoformat(told[name]) for name in MOMENTS]
        users = None if told["users"] is None else tuple(told["users"])
        made, expires, revoked = moments
        if made is None:
            raise ValueError
        return ApiKey(
            id=row.key,
            name=told["name"],
            users=users,
            permissions=tuple(told["permissions"]),
            made_at=made,
            expires_at=expires,
            revoked_at=revoked,
            agent=told.get("agent", False),
        ), told["digest"]
    except (KeyError, TypeError, ValueError):
        raise Corrupt(f"API key {brief(row.key)} cannot be read; run `perdure admin verify`") from None


MOMENTS = ("made_at", "expires_at", "revoked_at")


def _checked_name(name: str) -> str:
    utf8_size(name, "`name`")
    if not 0 < len(name) <= KEY_NAME_CHARS_MAX or not name.isprintable():
        raise InvalidInput(f"`name` = {brief(name, 60)} must be a printable text of 1 to {KEY_NAME_CHARS_MAX} characters")
    return check_no_secret(name, "name")


def _expiry(now: datetime, days: float | None) -> datetime | None:
    if days is None:
        return None
    if isinstance(days, bool) or not isinstance(days, int | float) or not 0 < days <= DAYS_MAX:
        raise InvalidInput(f"`days` = {brief(days)} must be more than 0 and at most {DAYS_MAX}")
    return now + timedelta(days=days)
