"""Leases of keys that live for a time: what is written within a minute has one in common.

Source: apiserver pkg/storage/etcd3/lease_manager.go.
"""

from typing import NamedTuple

from lastcall.kube.store.etcd import messages
from lastcall.kube.store.etcd.connection import Connection
from lastcall.world.clock import monotonic
from lastcall.world.world import World

REUSE_SECONDS = 60
REUSE_SHARE = 0.05
"""Of the time to live, which a key may live longer because it has its lease in common with later ones."""
MOST_KEYS = 1000


class _Lease(NamedTuple):
    id: int
    until: float
    seconds: int


def reuse_seconds(ttl: int) -> int:
    """Return for how long a lease is given to further keys."""
    return min(REUSE_SECONDS, int(REUSE_SHARE * ttl))


class Leases:
    def __init__(self, world: World, connection: Connection) -> None:
        self._clock, self._connection = world.clock, connection
        self._lease: _Lease | None = None
        self._keys = 0

    async def take(self, ttl: int) -> int:
        """Return the id of a lease that lasts for at least `ttl` seconds. Raises StoreError."""
        lease, self._keys = self._lease, self._keys + 1
        if lease is None or lease.seconds != ttl or self._keys > MOST_KEYS or monotonic(self._clock) >= lease.until:
            until = monotonic(self._clock) + reuse_seconds(ttl)
            answer = await self._connection.write(
                messages.GRANT, messages.LeaseGrantRequest(TTL=ttl + reuse_seconds(ttl))
            )
            lease = self._lease = _Lease(answer.ID, until, ttl)
            self._keys = 1
        return lease.id

    def forget(self) -> None:
        """Forget the lease, which no longer exists."""
        self._lease = None
