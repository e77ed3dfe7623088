"""A count that comes between a charge and its object."""

from lastcall.kube.api.resources import PODS, RESOURCEQUOTAS, SERVICEACCOUNTS
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.server import APIServer, APIServerConfig
from lastcall.kube.controllers.informers import Informers
from lastcall.kube.controllers.quota.controller import ResourceQuotaController
from lastcall.kube.store.memory import MemoryStore
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual


class Records:
    def record(self, *arguments, **more):
        return ""


class SlowStore(MemoryStore):
    """A Pod called `late` takes 20 ms to be kept."""

    def __init__(self, world):
        super().__init__()
        self._world = world

    async def create(self, key, encode):
        if key == "pods/default/late":
            await self._world.clock.sleep(0.02)
        return await super().create(key, encode)


def pod(name):
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "a", "image": "x"}]}}


def test_what_is_charged_and_not_stored_yet_is_not_counted_away():
    async def main(world):
        server = APIServer(world=world, store=SlowStore(world), recorder=Records(), config=APIServerConfig())
        await server.bootstrap()
        client = server.client(UserInfo("admin", ("system:masters",)))
        await client.create(SERVICEACCOUNTS, {"metadata": {"name": "default"}}, "default")
        informers = Informers(world, client)
        controller = ResourceQuotaController(world, client, informers)
        seen = []
        informers.get(RESOURCEQUOTAS).add_handler(None, lambda _, new: seen.append(new["status"]["used"]["pods"]))
        async with Tasks() as tasks:
            informers.spawn(tasks)
            running = tasks.spawn(controller.run(), name="controller")
            await client.create(RESOURCEQUOTAS, {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "3"}}}, "default")
            await world.clock.sleep(1)
            await client.create(PODS, pod("a"), "default")
            await client.create(PODS, pod("b"), "default")
            await world.clock.sleep(5)
            tasks.spawn(client.create(PODS, pod("late"), "default"), name="late")
            await world.clock.sleep(0.005)
            await client.delete(PODS, "a", "default")
            await world.clock.sleep(0.5)
            assert seen == ["0", "1", "2", "3", "2"]
            running.cancel()
            for resource in list(informers._informers):
                informers.drop(resource)

    run_virtual(main)
