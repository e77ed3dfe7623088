"""Services in a store that other API servers use, too: an address and a port are taken in the store, not in memory.

A cluster IP is taken by creating its IPAddress, which only one can; node ports by a compare-and-swap of the bitmap in
`ranges/servicenodeports`. Both as kube-apiserver does it, before the Service is written.

Sources: pkg/registry/core/service/ipallocator/ipallocator.go, pkg/registry/core/service/portallocator,
pkg/registry/core/service/allocator/{bitmap.go,storage}.
"""

import base64
from collections.abc import Callable, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network
from random import Random
from typing import NoReturn

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.errors import invalid as invalid_object
from lastcall.kube.api.field import invalid
from lastcall.kube.api.meta import Object, name_of
from lastcall.kube.api.resources import IPADDRESSES, SERVICES, Resource
from lastcall.kube.apiserver.admission.attributes import Attributes
from lastcall.kube.apiserver.allocators import (
    NODE_PORT_FIRST,
    NODE_PORT_LAST,
    AllocationError,
    out_of_range,
    static_band,
)
from lastcall.kube.apiserver.bootstrap.service_cidrs import address_object, addresses_of
from lastcall.kube.apiserver.registry.generic import GenericStore, Shared
from lastcall.kube.apiserver.registry.reading import Answer
from lastcall.kube.apiserver.strategies.base import Strategy
from lastcall.kube.apiserver.strategies.service import (
    HEADLESS,
    needs_cluster_ip,
    needs_health_check_node_port,
    needs_node_ports,
    ports_of,
)
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.kube.client.api import Client
from lastcall.kube.store.api import Entry, StoreConflict
from lastcall.kube.store.value import Value

PORTS = "ranges/servicenodeports"
RANGE = f"{NODE_PORT_FIRST}-{NODE_PORT_LAST}"
_PORT_COUNT = NODE_PORT_LAST - NODE_PORT_FIRST + 1
_PORT_BAND = min(128, max(16, _PORT_COUNT // 32))
"""Of the ports how many are for those who choose (portallocator/allocator.go:calculateRangeOffset)."""


class TakenElsewhere:
    """In place of the allocators in memory: whatever is in the spec has been taken in the store."""

    def take(self, value: object, *, dry_run: bool = False) -> None:
        pass

    def take_any(self) -> NoReturn:
        raise AllocationError("nothing was allocated")

    def give_back(self, value: object) -> None:
        pass


def decoded_bits(obj: Object) -> int:
    """Return the bitmap of a RangeAllocation, whose lowest bit is the first port."""
    return int.from_bytes(base64.b64decode(obj.get("data") or ""), "big")


def range_allocation(bits: int) -> Object:
    data = base64.b64encode(bits.to_bytes((bits.bit_length() + 7) // 8, "big")).decode()
    return {"kind": "RangeAllocation", "apiVersion": "v1", "metadata": {}, "range": RANGE, "data": data}


def free_port(bits: int, random: Random) -> int | None:
    """Return the number, from 0, of a free port: of the upper band while it lasts."""
    for first, size in ((_PORT_BAND, _PORT_COUNT - _PORT_BAND), (0, _PORT_BAND)):
        offset = random.randrange(size)
        for step in range(size):
            number = first + (offset + step) % size
            if not bits >> number & 1:
                return number
    return None


class SharedServices(GenericStore):
    """`client` acts as the server."""

    def __init__(
        self,
        shared: Shared,
        strategy: Strategy,
        kinds: Mapping[Resource, GenericStore],
        client: Client,
        cidr: str,
    ) -> None:
        super().__init__(shared, strategy)
        self._kinds, self._client = kinds, client
        self._network = IPv4Network(cidr)

    async def create_prepared(self, attributes: Attributes, like: Value | None = None) -> Answer:
        taken = await self._take(attributes.context, attributes.new, {})
        try:
            return await super().create_prepared(attributes, like)
        except BaseException:
            await self._give_back(*taken)
            raise

    async def _store_update(
        self, context: RequestContext, entry: Entry, new: Object, old: Object, subresource: str
    ) -> Answer:
        if subresource or self.strategy.should_delete_during_update(new, old):
            return await super()._store_update(context, entry, new, old, subresource)
        taken = await self._take(context, new, old)
        try:
            answer = await super()._store_update(context, entry, new, old, subresource)
        except BaseException:
            await self._give_back(*taken)
            raise
        if not context.dry_run:
            kept_addresses, kept_ports = addresses_of(new), ports_of(new)
            await self._give_back(
                [each for each in addresses_of(old) if each not in kept_addresses],
                [each for each in ports_of(old) if each not in kept_ports],
            )
        return answer

    async def _remove(self, context: RequestContext, entry: Entry) -> Answer:
        answer = await super()._remove(context, entry)
        await self._give_back(addresses_of(answer.object), ports_of(answer.object))
        return answer

    async def _take(self, context: RequestContext, service: Object, old: Object) -> tuple[list[str], list[int]]:
        """What was taken for `service`, whose spec names it then. Raises the 422 StatusError."""
        spec = service["spec"]
        addresses: list[str] = []
        ports: list[int] = []
        try:
            if needs_cluster_ip(spec):
                await self._take_address(context, service, addresses_of(old), addresses)
            await self._take_ports(context, service, ports_of(old), ports)
        except BaseException:
            await self._give_back(addresses, ports)
            raise
        return addresses, ports

    # -- addresses ---------------------------------------------------------------------------------------------------

    async def _take_address(
        self, context: RequestContext, service: Object, held: Sequence[str], taken: list[str]
    ) -> None:
        spec = service["spec"]
        address = spec.get("clusterIP") or next(iter(spec.get("clusterIPs") or []), "")
        if address == HEADLESS or address in held:
            return
        if address:
            try:
                if not self._usable(IPv4Address(address)):
                    raise ValueError
            except ValueError:
                raise self._refused(
                    service,
                    "spec.clusterIPs",
                    [address],
                    out_of_range(address, self._network, context.dry_run),
                ) from None
            if not await self._claim(context, address, service):
                text = f"failed to allocate IP {address}: provided IP is already allocated"
                raise self._refused(service, "spec.clusterIPs", [address], text)
            if not context.dry_run:
                taken.append(address)
            return
        for candidate in self._candidates():
            if await self._is_free(candidate) and await self._claim(context, candidate, service):
                if not context.dry_run:
                    taken.append(candidate)
                spec["clusterIP"], spec["clusterIPs"] = candidate, [candidate]
                return
        text = "failed to allocate a serviceIP: range is full"
        raise self._refused(service, "spec.clusterIPs", [""], text)

    def _usable(self, address: IPv4Address) -> bool:
        ends = (self._network.network_address, self._network.broadcast_address)
        return address in self._network and address not in ends

    def _candidates(self) -> "Sequence[str]":
        """The upper band first, from a random place on; then the lower one."""
        first, count = int(self._network.network_address) + 1, self._network.num_addresses - 2
        band = static_band(self._network.num_addresses)
        found: list[str] = []
        for start, size in ((band, count - band), (0, band)):
            if size > 0:
                offset = self.shared.world.random.randrange(size)
                found += [str(IPv4Address(first + start + (offset + step) % size)) for step in range(size)]
        return found

    async def _is_free(self, address: str) -> bool:
        return await self.shared.store.cached.get(self._kinds[IPADDRESSES].key("", address)) is None

    async def _claim(self, context: RequestContext, address: str, service: Object) -> bool:
        """Whether the address is ours now; in a dry run whether it could be."""
        if context.dry_run:
            return await self._is_free(address)
        try:
            await self._client.create(IPADDRESSES, address_object(address, service))
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise
            return False
        return True

    # -- ports -------------------------------------------------------------------------------------------------------

    async def _take_ports(
        self, context: RequestContext, service: Object, held: Sequence[int], taken: list[int]
    ) -> None:
        spec = service["spec"]
        wanted: list[tuple[Object, str, str]] = []
        if needs_node_ports(spec):
            wanted += [
                (port, "nodePort", f"spec.ports[{at}].nodePort") for at, port in enumerate(spec.get("ports") or [])
            ]
        if needs_health_check_node_port(spec):
            wanted.append((spec, "healthCheckNodePort", "spec.healthCheckNodePort"))
        for place, field, path in wanted:
            number = place.get(field) or 0
            if number in held or number in taken:
                continue
            if number and not NODE_PORT_FIRST <= number <= NODE_PORT_LAST:
                text = f"provided port is not in the valid range. The range of valid ports is {RANGE}"
                raise self._refused(service, path, number, text)
            got = await self._take_port(context, number)
            if got is None:
                text = (
                    "provided port is already allocated" if number else "failed to allocate a nodePort: range is full"
                )
                raise self._refused(service, path, number, text)
            place[field] = got
            if not context.dry_run:
                taken.append(got)

    async def _take_port(self, context: RequestContext, number: int) -> int | None:
        got: int | None = None

        def take(bits: int) -> int | None:
            nonlocal got
            at = number - NODE_PORT_FIRST if number else free_port(bits, self.shared.world.random)
            got = None if at is None or bits >> at & 1 else at + NODE_PORT_FIRST
            return None if got is None or context.dry_run else bits | 1 << (got - NODE_PORT_FIRST)

        await self._change_bits(take)
        return got

    async def _change_bits(self, change: Callable[[int], int | None]) -> None:
        """Replace the bitmap by what `change` makes of it; None: leave it."""
        store = self.shared.store
        entry = await store.get(PORTS)
        while True:
            bits = 0 if entry is None else decoded_bits(self.shared.cache.decode(entry.value))
            new = change(bits)
            if new is None or new == bits:
                return
            value = Value(None, range_allocation(new))
            try:
                if entry is None:
                    await store.create(PORTS, lambda revision, value=value: value)  # type: ignore[misc]
                else:
                    await store.update(PORTS, entry.revision, lambda revision, value=value: value)  # type: ignore[misc]
                return
            except StoreConflict as conflict:
                entry = conflict.current

    async def _give_back(self, addresses: Sequence[str], ports: Sequence[int]) -> None:
        for address in addresses:
            try:
                await self._client.delete(IPADDRESSES, address)
            except StatusError as error:
                if error.reason != "NotFound":
                    raise
        if ports:
            mask = sum(1 << (port - NODE_PORT_FIRST) for port in set(ports))
            await self._change_bits(lambda bits: bits & ~mask)

    @staticmethod
    def _refused(service: Object, path: str, value: object, text: str) -> StatusError:
        return invalid_object(SERVICES, name_of(service), [invalid(path, value, text)])
