"""`Engine.api_keys`: the keys that let callers in over the network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from perdure.domain.api_keys import ApiKey, NewApiKey
from perdure.services.api_keys import ApiKeys


class ApiKeyHandle:
    """API keys of the space that the settings name. Only digests of them are kept."""

    __slots__ = ("_keys",)

    def __init__(self, keys: ApiKeys) -> None:
        self._keys = keys

    def create(
        self, name: str, *, users: Iterable[str] | None = None, permission: str = "write", days: float | None = None
    ) -> NewApiKey:
        """Make a key for some users, or for all (None). Its secret is in the answer and nowhere else.

        `permission` is `read`, `write` (with `read`) or `admin` (with both). With `days`, it ends by itself.
        """
        return self._keys.create(name, users=users, permission=permission, days=days)

    def list(self) -> Sequence[ApiKey]:
        """Every key there is or was, the newest first."""
        return self._keys.list_()

    def revoke(self, key_id: str) -> ApiKey:
        """Take a key out of use, for good."""
        return self._keys.revoke(key_id)

    def recognise(self, secret: str) -> ApiKey | None:
        """The key that this is the secret of, if it is in use."""
        return self._keys.recognise(secret)

    def find(self, key_id: str) -> ApiKey | None:
        """The key with that id, if it is in use."""
        return self._keys.find(key_id)

    def any_made(self) -> bool:
        """Whether a key was ever made, be it in use or not."""
        return self._keys.any_made()

    def in_use(self) -> bool:
        """Whether any key lets somebody in."""
        return self._keys.any_alive()
