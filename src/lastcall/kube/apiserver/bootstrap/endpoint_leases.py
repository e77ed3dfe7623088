"""Which API servers there are: each keeps a key `masterleases/<its address>` alive in the store that all of them use,
and the Service `kubernetes` leads to those whose key is there.

Source: pkg/controlplane/reconcilers/lease.go.
"""

from ipaddress import ip_address

from lastcall.kube.api.meta import Object
from lastcall.kube.store.api import Store, StoreConflict
from lastcall.kube.store.value import Decoded, Value

PREFIX = "masterleases/"
TTL_SECONDS = 15
"""(DefaultEndpointReconcilerTTL); renewed every `contents.KEEP_SECONDS`."""


class EndpointLeases:
    def __init__(self, store: Store, address: str) -> None:
        store.set_ttl(PREFIX, TTL_SECONDS)
        self._store, self._address = store, address
        self._generation = 0

    async def renew(self) -> list[str]:
        """Renew the lease and return all addresses, with this one's. Raises StatusError."""
        key = PREFIX + self._address
        entry = await self._store.get(key)
        while True:
            self._generation += 1  # so that the write is one
            value = self._value(self._generation)
            try:
                if entry is None:
                    await self._store.create(key, lambda revision, value=value: value)  # type: ignore[misc]
                else:
                    await self._store.update(key, entry.revision, lambda revision, value=value: value)  # type: ignore[misc]
                break
            except StoreConflict as conflict:
                entry = conflict.current
        entries, _, _ = await self._store.list(PREFIX)
        return sorted((each.key.removeprefix(PREFIX) for each in entries), key=lambda text: int(ip_address(text)))

    def _value(self, generation: int) -> Value:
        obj: Object = {
            "kind": "Endpoints",
            "apiVersion": "v1",
            "metadata": {"generation": generation},
            "subsets": [{"addresses": [{"ip": self._address}]}],
        }
        return Value(None, Decoded(obj))
