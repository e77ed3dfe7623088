"""Wait until a node has something to enforce: until then nothing else of it is imported, and there is no rule."""

import asyncio

from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import NETWORKPOLICIES
from lastcall.kube.client.api import Client
from lastcall.kube.client.informer import Informer
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks
from lastcall.world.world import World


@dataclass(frozen=True, slots=True)
class AttachedPod:
    """A sandbox of this node that has an address. `pod` is (namespace, name)."""

    pod: tuple[str, str]
    uid: str
    address: str
    labels: dict[str, str]


async def first_policy(world: World, client: Client) -> None:
    """Wait until there is a NetworkPolicy."""
    found = asyncio.Event()

    def added(policy: Object) -> None:
        found.set()

    policies: Informer[Object] = Informer(client, NETWORKPOLICIES, world=world)
    policies.add_handler(added)
    async with Tasks() as tasks:
        tasks.spawn(policies.run(), name="first NetworkPolicy")
        await found.wait()
        tasks.cancel()
