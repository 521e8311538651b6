"""API keys, awaited."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from perdure.aio.threads import Threads
from perdure.domain.api_keys import ApiKey, NewApiKey
from perdure.handles.api_keys import ApiKeyHandle


class AsyncApiKeyHandle:
    """`Engine.api_keys`, awaited."""

    __slots__ = ("_keys", "_threads")

    def __init__(self, keys: ApiKeyHandle, threads: Threads) -> None:
        self._keys = keys
        self._threads = threads

    async def create(
        self, name: str, *, users: Iterable[str] | None = None, permission: str = "write", days: float | None = None
    ) -> NewApiKey:
        return await self._threads.run(self._keys.create, name, users=users, permission=permission, days=days)

    async def list(self) -> Sequence[ApiKey]:
        return await self._threads.run(self._keys.list)

    async def revoke(self, key_id: str) -> ApiKey:
        return await self._threads.run(self._keys.revoke, key_id)

    async def recognise(self, secret: str) -> ApiKey | None:
        return await self._threads.run(self._keys.recognise, secret)

    async def find(self, key_id: str) -> ApiKey | None:
        return await self._threads.run(self._keys.find, key_id)

    async def any_made(self) -> bool:
        return await self._threads.run(self._keys.any_made)

    async def in_use(self) -> bool:
        return await self._threads.run(self._keys.in_use)
