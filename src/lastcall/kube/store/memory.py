"""The store in memory: the index alone.

What the history has forgotten and is still there lies at rest, and is kept as JSON, a quarter of the decoded object;
but what this process watches is in the watchers' cache anyhow.
Nothing here suspends except a watcher with nothing to read, so every call is atomic on its event loop.
"""

from lastcall.kube.store.api import Encode, Entry
from lastcall.kube.store.history import Past
from lastcall.kube.store.index import HISTORY, HISTORY_BYTES, Index


class MemoryStore(Index):
    """`lastcall.kube.store.api.Store` in memory; `history` and `history_bytes` as in `Index`."""

    def __init__(self, *, history: int = HISTORY, history_bytes: int = HISTORY_BYTES) -> None:
        super().__init__(history, history_bytes, self._forgotten)

    async def create(self, key: str, encode: Encode) -> Entry:
        self.expect_none(key)
        return self._write(key, encode)

    async def update(self, key: str, expected_revision: int, encode: Encode) -> Entry:
        self.expect(key, expected_revision)
        return self._write(key, encode)

    async def delete(self, key: str, expected_revision: int, encode: Encode) -> Entry:
        self.expect(key, expected_revision)
        return self._write(key, encode, deleted=True)

    def _write(self, key: str, encode: Encode, *, deleted: bool = False) -> Entry:
        revision = self._revision + 1
        return self.apply(key, encode(revision), revision, deleted=deleted)

    def _forgotten(self, past: Past) -> None:
        value, key = past.change.value, past.change.key
        if value.object is None:
            return
        entry = self._entries.get(key)
        if entry is not None and entry.value is value and not self._history.watchers.are_followed(key):
            value.encoded()

    async def compact(self, revision: int, *, watches: bool = False) -> None:
        self._history.compact(min(revision, self._revision), watches=watches)

    async def close(self) -> None:
        """End every watch after what it still has to read."""
        self._history.close()
