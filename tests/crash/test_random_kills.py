"""Many Pods, and processes killed at random moments: whatever was acknowledged happens, and nothing is left."""

import asyncio
import random

import pytest
from pods import container, pod
from staying_cluster import StayingCluster, staying

from lastcall.kube.api.resources import CONFIGMAPS
from lastcall.kube.client.api import ConnectionLost

APP = "trap 'exit 0' TERM; touch /tmp/up; while true; do sleep 0.02; done"
READY = {"exec": {"command": ["test", "-e", "/tmp/up"]}, "periodSeconds": 1}
PODS = 8


def runs(cluster: StayingCluster, name: str) -> bool:
    """Ready, and that is no old news: a shim that died takes a moment to be noticed."""
    ended = {f"lastcall://{record.facts['containerId']}" for record in cluster.find("ProcessExited")}
    return cluster.is_ready(name) and cluster.container(name)["containerID"] not in ended


@staying
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_pods_live_and_end_while_processes_are_killed(cluster: StayingCluster, seed: int) -> None:
    generator = random.Random(seed)
    names = [f"p{number}" for number in range(PODS)]
    app = container("app", APP, pre_stop="sleep 0.2; true # the hook", readinessProbe=READY)

    async def kill() -> None:
        for _ in range(8):
            await asyncio.sleep(generator.uniform(0.05, 0.5))  # a random moment, from the seed
            await cluster.kill_and_wait(generator.choice(["node-1", "node-1", "control-plane", "shim-1"]))

    killing = asyncio.create_task(kill())
    for name in names:
        await cluster.create_once(pod(name, app, grace=8))
        await asyncio.sleep(generator.uniform(0, 0.2))  # a random moment, from the seed
    for name in names[: PODS // 2]:
        await cluster.delete(name)
        await asyncio.sleep(generator.uniform(0, 0.3))  # a random moment, from the seed
    await killing
    for name in names[: PODS // 2]:
        await cluster.gone(name, 60)
    for name in names[PODS // 2 :]:
        await cluster.until(lambda name=name: runs(cluster, name), f"{name} is Ready again", 60)
        await cluster.delete(name)
    for name in names[PODS // 2 :]:
        await cluster.gone(name, 60)
        assert cluster.container(name)["state"]["terminated"]["exitCode"] == 0
    assert not cluster.overlapping_execs_of_each_pod("the hook")
    await cluster.nothing_left()


@staying
async def test_every_acknowledged_write_outlives_the_control_plane(cluster: StayingCluster) -> None:
    acknowledged: dict[str, int] = {}
    stopped = asyncio.Event()

    async def write(writer: int) -> None:
        number = 0
        while not stopped.is_set():
            name = f"w{writer}-{number}"
            try:
                made = await cluster.client.create(CONFIGMAPS, {"metadata": {"name": name}}, "default")
                acknowledged[name] = int(made["metadata"]["resourceVersion"])
            except ConnectionLost:
                await asyncio.sleep(0.01)  # pause of a retry
            number += 1

    writers = [asyncio.create_task(write(writer)) for writer in range(8)]
    for _ in range(5):
        await asyncio.sleep(0.4)  # writes between two kills
        await cluster.kill_and_wait("control-plane")
    before = len(acknowledged)
    await cluster.until(lambda: len(acknowledged) > before + 20, "writes go on")
    stopped.set()
    await asyncio.gather(*writers)
    there = (await cluster.client.list(CONFIGMAPS, "default")).items
    found = {each["metadata"]["name"]: int(each["metadata"]["resourceVersion"]) for each in there}
    assert {name: found.get(name) for name in acknowledged} == acknowledged
    assert len(set(acknowledged.values())) == len(acknowledged), "no version was given twice"
