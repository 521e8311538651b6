"""Which key a caller shows. What the store said is believed for a few seconds, so that most requests read nothing."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable

from anyio.to_thread import run_sync

from perdure.domain.api_keys import ApiKey
from perdure.handles.api_keys import ApiKeyHandle

BELIEVED_S = 5.0
"""A key that another process revokes is refused here after so long."""
KEYS_MAX = 1_000


class Keyring:
    def __init__(self, keys: ApiKeyHandle, clock: Callable[[], float]) -> None:
        self._keys = keys
        self._clock = clock
        # By the digest of the secret, or by the id: the secrets themselves are not kept.
        self._seen: OrderedDict[bytes | str, tuple[ApiKey, float]] = OrderedDict()
        self._asked_for = keys.any_made()
        self._asked_for_until = clock() + BELIEVED_S

    async def asked_for(self) -> bool:
        """Whether the store has a key, or had one: when the last one ends, nobody is let in, rather than everybody."""
        now = self._clock()
        if not self._asked_for and now >= self._asked_for_until:
            self._asked_for_until = now + BELIEVED_S  # first, so that one request asks and the others go on
            self._asked_for = await run_sync(self._keys.any_made)
        return self._asked_for

    async def recognise(self, secret: str) -> ApiKey | None:
        """The key that this is the secret of, if it is in use."""
        name = _digest(secret)
        return self._recent(name) or self._keep(name, await run_sync(self._keys.recognise, secret))

    async def find(self, key_id: str) -> ApiKey | None:
        """The key with that id, if it is in use."""
        return self._recent(key_id) or self._keep(key_id, await run_sync(self._keys.find, key_id))

    def clear(self) -> None:
        """Believe nothing: a key was made or revoked."""
        self._seen.clear()
        self._asked_for_until = 0.0

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
