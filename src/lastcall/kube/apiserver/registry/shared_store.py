"""Use a store that others use too, and that can be out of reach: every failure of it is a StatusError."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager

from lastcall.kube.api.errors import StatusError, insufficient_storage, internal
from lastcall.kube.store.api import Changes, Encode, Entry, Reads, Store, StoreError, StoreFull, Trigger, Unreadable
from lastcall.kube.store.value import Value


def status_of(error: StoreError) -> StatusError:
    """Return 507 for a full store, else 500, as kube-apiserver answers when etcd has failed."""
    return insufficient_storage(str(error)) if isinstance(error, StoreFull) else internal(str(error))


class Answering:
    """`lastcall.kube.store.api.Store`, whose methods raise StatusError where `store` raises StoreError."""

    shared = True

    def __init__(self, store: Store) -> None:
        self._store = store
        self.cached: Reads = store.cached

    def watch(
        self, prefix: str, after: int, *, trigger: str | None = None, remote: bool = False
    ) -> AbstractAsyncContextManager[Changes]:
        return self._store.watch(prefix, after, trigger=trigger, remote=remote)

    def set_trigger(self, prefix: str, trigger: Trigger) -> None:
        self._store.set_trigger(prefix, trigger)

    def set_ttl(self, prefix: str, seconds: int) -> bool:
        return self._store.set_ttl(prefix, seconds)

    def set_aside(self, key: str, why: str) -> None:
        self._store.set_aside(key, why)

    def restate(self, key: str, value: Value) -> None:
        self._store.restate(key, value)

    def unreadable(self, prefix: str) -> Sequence[Unreadable]:
        return self._store.unreadable(prefix)

    async def get(self, key: str) -> Entry | None:
        try:
            return await self._store.get(key)
        except StoreError as error:
            raise status_of(error) from error

    async def list(
        self, prefix: str, *, start: str = "", limit: int = 0, revision: int = 0
    ) -> tuple[list[Entry], int, int]:
        try:
            return await self._store.list(prefix, start=start, limit=limit, revision=revision)
        except StoreError as error:
            raise status_of(error) from error

    async def create(self, key: str, encode: Encode) -> Entry:
        try:
            return await self._store.create(key, encode)
        except StoreError as error:
            raise status_of(error) from error

    async def update(self, key: str, expected_revision: int, encode: Encode) -> Entry:
        try:
            return await self._store.update(key, expected_revision, encode)
        except StoreError as error:
            raise status_of(error) from error

    async def delete(self, key: str, expected_revision: int, encode: Encode) -> Entry:
        try:
            return await self._store.delete(key, expected_revision, encode)
        except StoreError as error:
            raise status_of(error) from error

    async def revision(self) -> int:
        return await self._store.revision()

    async def check(self) -> None:
        await self._store.check()

    async def compact(self, revision: int, *, watches: bool = False) -> None:
        await self._store.compact(revision, watches=watches)

    async def close(self) -> None:
        await self._store.close()
