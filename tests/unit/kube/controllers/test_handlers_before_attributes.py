"""Controllers that start late find caches that are full: their handlers are called while they are being made."""

from collections.abc import Awaitable, Callable

import pytest

from lastcall.kube.api.features.gates import FeatureGates
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import CUSTOMRESOURCEDEFINITIONS, NAMESPACES, RESOURCEQUOTAS, SERVICEACCOUNTS
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.server import APIServer, APIServerConfig
from lastcall.kube.client.api import Client
from lastcall.kube.controllers.manager import run_controllers
from lastcall.kube.store.memory import MemoryStore
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World


class Records:
    def record(self, *arguments: object, **more: object) -> str:
        return ""

    def for_actor(self, actor: str) -> "Records":
        return self


DEFINITION: Object = {
    "metadata": {"name": "widgets.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}},
        ],
    },
}
QUOTA: Object = {"metadata": {"name": "q"}, "spec": {"hard": {"count/widgets.example.com": "3", "pods": "2"}}}


async def definition(client: Client) -> None:
    await client.create(CUSTOMRESOURCEDEFINITIONS, DEFINITION)


async def quota(client: Client) -> None:
    await client.create(RESOURCEQUOTAS, QUOTA, "default")


ORDERS = {"definition first": (definition, quota), "quota first": (quota, definition)}


def controllers(world: World, client: Client) -> Awaitable[None]:
    return run_controllers(
        gates=FeatureGates(), world=world, client=client, recorder_for=Records().for_actor, root_ca_pem=b"CA"
    )


async def is_counted(world: World, client: Client) -> None:
    await world.clock.sleep(30)
    used = (await client.get(RESOURCEQUOTAS, "q", "default"))["status"]["used"]
    assert used == {"count/widgets.example.com": "0", "pods": "0"}


@pytest.mark.parametrize("order", ORDERS)
def test_a_cluster_with_a_definition_and_a_quota_goes_on(order: str) -> None:
    steps: tuple[Callable[[Client], Awaitable[None]], ...] = ORDERS[order]

    async def main(world: World) -> None:
        server = APIServer(world=world, store=MemoryStore(), recorder=Records(), config=APIServerConfig())
        await server.bootstrap()
        client = server.client(UserInfo("admin", ("system:masters",)))
        if not any(each["metadata"]["name"] == "default" for each in (await client.list(NAMESPACES)).items):
            await client.create(NAMESPACES, {"metadata": {"name": "default"}})
        async with Tasks() as tasks:
            running = tasks.spawn(controllers(world, client), name="controllers")
            await world.clock.sleep(1)
            for step in steps:
                await step(client)
                await world.clock.sleep(1)
            await is_counted(world, client)
            running.cancel()
        # And a control plane that is started again on them.
        async with Tasks() as tasks:
            running = tasks.spawn(controllers(world, client), name="controllers")
            await client.delete(SERVICEACCOUNTS, "default", "default")
            await is_counted(world, client)
            running.cancel()

    run_virtual(main)
