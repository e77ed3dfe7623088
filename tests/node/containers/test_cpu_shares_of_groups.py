"""CPU shares (version 1) and weights (version 2) on the kernel: at every level, and what two busy Pods get."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from shim_world import ShimWorld, inside

from lastcall.kube.cri.api import LinuxContainerResources, PodSandboxMetadata
from lastcall.kube.cri.cpu_shares import BEST_EFFORT, BURSTABLE, KUBEPODS, cpu_shares, cpu_weight

pytestmark = pytest.mark.real_kernel

BUSY = ("sh", "-c", "while :; do :; done")
ENOUGH_NS = 2_000_000_000
"""CPU time of both Pods together, after which their parts are compared."""


def has_cpu() -> bool:
    """Return True if something here shares out CPU time."""
    place = json.loads(os.environ["LASTCALL_TEST_CGROUPS"])
    if place["mode"] == "v2":
        return "cpu" in Path(place["directories"][""], "cgroup.controllers").read_text().split()
    return "cpu" in place["directories"]


def read(path: str) -> int:
    """Return a group's shares on version 1, its weight on version 2."""
    place = json.loads(os.environ["LASTCALL_TEST_CGROUPS"])
    if place["mode"] == "v2":
        return int(Path(place["directories"][""], path, "cpu.weight").read_text())
    return int(Path(place["directories"]["cpu"], path, "cpu.shares").read_text())


def shown(milli: int) -> int:
    """Return what `read` finds for a request."""
    shares = cpu_shares(milli)
    return cpu_weight(shares) if json.loads(os.environ["LASTCALL_TEST_CGROUPS"])["mode"] == "v2" else shares


async def pod(world: ShimWorld, name: str, milli: int, level: str) -> str:
    """Make a Pod that asks for so much CPU; return its sandbox."""
    world.sandbox_config = replace(
        world.sandbox_config,
        metadata=PodSandboxMetadata(name, name, "default"),
        cgroup_parent=f"/{level}/pod{name}",
        resources=LinuxContainerResources(cpu_shares=cpu_shares(milli)),
    )
    return await world.sandbox()


@inside
async def test_every_group_has_the_shares_that_the_kubelet_gives_it(world: ShimWorld) -> None:
    if not has_cpu():
        return
    small = await pod(world, "small", 250, BURSTABLE)
    own = LinuxContainerResources(cpu_shares=cpu_shares(100))
    container = await world.start(small, "sleep", "100", resources=own)
    await pod(world, "large", 1000, BURSTABLE)
    await pod(world, "guaranteed", 500, KUBEPODS)
    await pod(world, "none", 0, BEST_EFFORT)
    cpus = len(os.sched_getaffinity(0))
    found = {path: read(path) for path in (KUBEPODS, BURSTABLE, BEST_EFFORT)}
    assert found == {KUBEPODS: shown(cpus * 1000), BURSTABLE: shown(1250), BEST_EFFORT: shown(0)}
    assert read(f"{BURSTABLE}/podsmall") == shown(250)
    assert read(f"{BURSTABLE}/podsmall/{container}") == shown(100)
    assert read(f"{KUBEPODS}/podguaranteed") == shown(500)
    assert read(f"{BEST_EFFORT}/podnone") == shown(0)
    await world.runtime.update_pod_sandbox_resources(small, LinuxContainerResources(cpu_shares=cpu_shares(500)))
    assert read(BURSTABLE) == shown(1500)
    await world.runtime.stop_pod_sandbox(small)
    await world.runtime.remove_pod_sandbox(small)
    await world.until(lambda: read(BURSTABLE) == shown(1000))


@inside
async def test_two_busy_pods_on_one_cpu_get_time_by_their_requests(world: ShimWorld) -> None:
    if not has_cpu():
        return
    containers = {}
    for name, milli in (("one", 250), ("four", 1000)):
        sandbox = await pod(world, name, milli, BURSTABLE)
        containers[name] = await world.start(sandbox, *BUSY, name=name)
    cpu = min(os.sched_getaffinity(0))
    for record in world.find("ProcessStarted"):
        os.sched_setaffinity(record.facts["pid"], {cpu})

    async def used() -> dict[str, int]:
        found = {}
        for name, container in containers.items():
            stats = await world.runtime.container_stats(container)
            assert stats is not None
            found[name] = stats.cpu_usage_core_nano_seconds
        return found

    before = now = await used()
    while sum(now.values()) - sum(before.values()) < ENOUGH_NS:
        now = await used()
    part = {name: now[name] - before[name] for name in now}
    assert 2.5 < part["four"] / part["one"] < 6, part
