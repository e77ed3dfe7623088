"""Waits until a node has something to route: until then the proxy itself is not even imported (30 ms, 2 MB)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import name_of, namespace_of
from lastcall.kube.api.resources import SERVICES
from lastcall.kube.client.api import Client
from lastcall.kube.client.informer import Informer
from lastcall.kube.proxy.names import API_SERVER
from lastcall.world.netlink import has_nftables_table
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.service import Service


async def first_service(world: World, client: Client) -> None:
    """Wait until there is a Service besides the API server's."""
    found = asyncio.Event()

    def added(service: Service) -> None:
        if (namespace_of(service), name_of(service)) != API_SERVER:
            found.set()

    services: Informer[Service] = Informer(client, SERVICES, world=world)
    services.add_handler(added)
    async with Tasks() as tasks:
        tasks.spawn(services.run(), name="first Service")
        await found.wait()
        tasks.cancel()


def table_exists(table: str) -> bool:
    """Return whether an earlier process of this node left rules; they have to be looked after at once."""
    with suppress(OSError):  # a kernel that cannot be asked has none
        return has_nftables_table(table)
    return False
