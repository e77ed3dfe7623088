"""A store that holds what nobody should ever have written: the cluster starts, serves, and lets it be deleted."""

import pytest
from poisoned_store import Stored, poisoned, put
from virtual_cluster import VirtualCluster

from lastcall.kube.api.errors import StatusError, is_not_found
from lastcall.kube.api.resources import EVENTS, NODES, PODS
from lastcall.kube.cri.simulated_program import Program
from lastcall.world import crash_guard
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

SLEEP = {"sleep": Program(drain_seconds=0), "busybox:1.36": Program()}


def pod(name: str) -> dict:
    container = {"name": "c", "image": "busybox:1.36"}
    spec = {"terminationGracePeriodSeconds": 1, "containers": [container]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


async def lives_and_ends(cluster: VirtualCluster, name: str) -> None:
    await cluster.create(pod(name))
    await cluster.wait_ready(name)
    await cluster.delete(f"pod/{name}")
    await cluster.wait_gone(name)


async def is_gone(cluster: VirtualCluster, each: Stored) -> bool:
    try:
        await cluster.client.get(each.resource, each.name, each.namespace)
    except StatusError as error:
        if is_not_found(error):
            return True
        raise
    return False


async def delete_all(cluster: VirtualCluster, objects: list[Stored]) -> None:
    for each in objects:
        try:
            await cluster.client.delete(each.resource, each.name, each.namespace, propagation_policy="Background")
        except StatusError as error:
            if not is_not_found(error):
                raise

    async def gone() -> bool:
        left = [each.key for each in objects if not await is_gone(cluster, each)]
        delete_all.left = left  # type: ignore[attr-defined]
        return not left

    try:
        await cluster.wait_until_async(gone, limit=300)
    except AssertionError:
        raise AssertionError(f"still there: {delete_all.left}") from None  # type: ignore[attr-defined]


@pytest.mark.parametrize("when", ["before the start", "while it runs"])
def test_a_store_with_poisoned_objects_starts_serves_and_lets_them_be_deleted(when: str) -> None:
    async def main(world: World) -> None:
        objects = await poisoned(world)
        with crash_guard.installed():
            cluster = VirtualCluster(world, {})
            if when == "before the start":
                await cluster.server.bootstrap()
                await put(cluster.server.storage.store, objects)
            async with cluster:
                if when == "while it runs":
                    await lives_and_ends(cluster, "first")
                    await put(cluster.server.storage.store, objects)
                await cluster.sleep(120)
                await lives_and_ends(cluster, "between")
                for resource in dict.fromkeys(each.resource for each in objects):
                    await cluster.client.list(resource)
                await delete_all(cluster, [each for each in objects if each.resource not in (EVENTS, NODES)])
                await delete_all(cluster, [each for each in objects if each.resource in (EVENTS, NODES)])
                await lives_and_ends(cluster, "last")
                assert (await cluster.client.list(PODS, "default")).items == []

    run_virtual(main)
