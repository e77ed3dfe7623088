"""How often the garbage collector looks, and asks: what was looked at when an owner went is not looked at again."""

from fake_api import ListRecorder

from lastcall.kube.api.resources import CONFIGMAPS, PODS, REPLICASETS, SECRETS
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.server import APIServer, APIServerConfig
from lastcall.kube.controllers.garbagecollector.controller import GarbageCollector
from lastcall.kube.controllers.garbagecollector.graph import Graph
from lastcall.kube.controllers.informers import Informers
from lastcall.kube.store.memory import MemoryStore
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

OWNER = {"metadata": {"name": "web", "namespace": "default", "uid": "u1"}}


def dependent(version: int, owner: str = "u1", name: str = "web") -> dict:
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": owner}
    meta = {"name": "a", "namespace": "default", "uid": "a", "resourceVersion": str(version)}
    return {"metadata": {**meta, "ownerReferences": [reference]}}


def graph() -> Graph:
    return Graph({("apps/v1", "ReplicaSet"): REPLICASETS, ("v1", "Pod"): PODS})


def test_a_dependent_that_changes_after_its_owner_went_is_not_looked_at_again() -> None:
    made = graph()
    made.observe(REPLICASETS, OWNER)
    made.observe(PODS, dependent(1))
    assert made.remove("u1").delete == ("a",)
    assert made.observe(PODS, dependent(2)).delete == ()
    assert len(made) == 1


def test_an_owner_that_nobody_has_seen_is_asked_for() -> None:
    made = graph()
    assert made.observe(PODS, dependent(1)).delete == ("u1",)
    assert made.remove("u1").delete == ("a",), "there is none"
    assert made.observe(PODS, dependent(2)).delete == ("u1",), "it may have come meanwhile"


def test_another_owner_is_another_question() -> None:
    made = graph()
    made.observe(REPLICASETS, OWNER)
    made.observe(PODS, dependent(1))
    made.remove("u1")
    assert made.observe(PODS, dependent(2, "u2")).delete == ("u2",)
    assert made.observe(PODS, dependent(3)).delete == ("u1",), "a reference that is written anew"


def test_an_owner_that_is_seen_late_gets_the_dependents_that_change_afterwards() -> None:
    made = graph()
    made.observe(PODS, dependent(1, name="wrong"))
    made.remove("u1")
    made.observe(REPLICASETS, OWNER)
    made.observe(PODS, dependent(2))
    owner = made.get("u1")
    assert owner is not None
    assert list(owner.dependents) == ["a"]


def test_an_owner_that_is_gone_is_not_asked_for_again_by_each_dependent() -> None:
    async def main(world: World) -> None:
        server = APIServer(world=world, store=MemoryStore(), recorder=ListRecorder(world), config=APIServerConfig())
        await server.bootstrap()
        admin = server.client(UserInfo("admin", ("system:masters",)))
        client = server.client(UserInfo("gc", ("system:masters",)))
        asked: list[str] = []
        get = client.get

        async def counted(resource, name, namespace=""):  # type: ignore[no-untyped-def]
            asked.append(resource.plural)
            return await get(resource, name, namespace)

        client.get = counted  # type: ignore[method-assign]
        owner = await admin.create(CONFIGMAPS, {"metadata": {"name": "owner"}}, "default")
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": owner["metadata"]["uid"]}
        for number in range(30):
            meta = {"name": f"s{number}", "ownerReferences": [reference]}
            await admin.create(SECRETS, {"metadata": meta}, "default")
        async with Tasks() as tasks:
            informers = Informers(world, client)
            collector = GarbageCollector(world, client, informers, ListRecorder(world))
            informers.spawn(tasks)
            tasks.spawn(collector.run(), name="collector")
            await world.clock.sleep(1)
            assert asked == []
            await admin.delete(CONFIGMAPS, "owner", "default", propagation_policy="Background")
            await world.clock.sleep(1)
            assert not (await admin.list(SECRETS, "default")).items
            tasks.cancel()
        assert asked.count("secrets") == 30
        assert asked.count("configmaps") == 0, "it was seen to go"

    run_virtual(main)
