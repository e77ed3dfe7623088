"""Limits on the real kernel: out of memory and what only looks like it, a fork bomb, CPU, and what is left afterwards.

With control groups everything is counted. Without (an ordinary user on a machine that delegates none) RLIMIT_NPROC
bounds the processes and nobody counts out-of-memory kills.
"""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from shim_world import ShimWorld, inside

from lastcall.kube.cri.api import LIMITS_ENFORCED, LinuxContainerResources

pytestmark = [pytest.mark.real_kernel, pytest.mark.core]

POD = "/kubepods/burstable/poduid-1"
SMALL = LinuxContainerResources(memory_limit_in_bytes=24 << 20)


def mode() -> str:
    return json.loads(os.environ["LASTCALL_TEST_CGROUPS"])["mode"]


def directories() -> dict[str, str]:
    return json.loads(os.environ["LASTCALL_TEST_CGROUPS"])["directories"]


def limited(world: ShimWorld, pids: int = 0) -> None:
    """Give the Pod its group."""
    unified = {"pids.max": str(pids)} if pids else {}
    resources = LinuxContainerResources(unified=unified)
    world.sandbox_config = replace(world.sandbox_config, cgroup_parent=POD, resources=resources)
    for applet in ("tail", "wc", "dd", "nproc"):
        path = world.images.layer / "bin" / applet
        if not path.is_symlink():
            path.symlink_to("busybox")


def exited(world: ShimWorld) -> dict[str, object]:
    return world.find("ProcessExited")[-1].facts


@pytest.mark.rule("node-semantics 12.4/3")
@inside
async def test_out_of_memory_is_known_by_the_counter_of_the_container_s_group(world: ShimWorld) -> None:
    if mode() == "none":
        return  # the machine's memory would be the limit
    limited(world)
    status, _ = await world.run("tail", "/dev/zero", resources=SMALL)
    assert (status.exit_code, status.reason) == (137, "OOMKilled")
    facts = exited(world)
    assert (facts["signal"], facts["oomKilled"], facts["limitReached"]) == ("SIGKILL", True, True)


@inside
async def test_a_container_alone_in_a_pod_with_the_same_limit_reaches_its_own(world: ShimWorld) -> None:
    if mode() == "none":
        return
    limited(world)
    world.sandbox_config = replace(world.sandbox_config, resources=SMALL)
    status, _ = await world.run("tail", "/dev/zero", resources=SMALL)
    assert (status.exit_code, status.reason) == (137, "OOMKilled")
    assert exited(world)["limitReached"] is True


@pytest.mark.rule("node-semantics 12.4/3")
@inside
async def test_a_container_that_outlives_its_killed_child_is_out_of_memory_all_the_same(world: ShimWorld) -> None:
    if mode() != "v1":
        return  # version 2 ends the whole group
    limited(world)
    status, _ = await world.run("sh", "-c", "tail /dev/zero; exit 0", resources=SMALL)
    assert (status.exit_code, status.reason) == (0, "OOMKilled")
    assert exited(world)["endedTogether"] is None


@pytest.mark.rule("node-semantics 12.4/3")
@inside
async def test_on_version_2_a_child_that_runs_out_of_memory_ends_its_container(world: ShimWorld) -> None:
    if mode() != "v2":
        return
    limited(world)
    resources = LinuxContainerResources(memory_limit_in_bytes=96 << 20, unified={"memory.oom.group": "1"})
    status, _ = await world.run("sh", "-c", "tail /dev/zero; exit 0", resources=resources)
    assert (status.exit_code, status.reason) == (137, "OOMKilled")
    facts = exited(world)
    assert facts["endedTogether"] in (True, None), "a kernel before 5.17 does not say it"
    peak = facts["peakRss"]
    assert isinstance(peak, int)
    assert peak < 48 << 20, "the shell itself had little"


@pytest.mark.rule("node-semantics 12.4/sigkill")
@inside
async def test_a_sigkill_of_ours_is_no_lack_of_memory(world: ShimWorld) -> None:
    limited(world)
    container = await world.start(await world.sandbox(), "sleep", "100", resources=SMALL)
    await world.runtime.stop_container(container, 0)
    status = await world.ended(container)
    assert (status.exit_code, status.reason) == (137, "Error")
    assert exited(world)["oomKilled"] is (None if mode() == "none" else False)


@inside
async def test_an_exit_code_of_137_is_no_lack_of_memory(world: ShimWorld) -> None:
    limited(world)
    status, _ = await world.run("sh", "-c", "exit 137", resources=SMALL)
    assert (status.exit_code, status.reason) == (137, "Error")
    assert exited(world)["signal"] is None
    assert exited(world)["oomKilled"] is (None if mode() == "none" else False)


@inside
async def test_a_fork_bomb_is_bounded_and_the_runtime_goes_on(world: ShimWorld) -> None:
    limited(world, pids=60)
    bomb = "i=0; while [ $i -lt 300 ]; do sleep 100 & i=$((i+1)); done"
    sandbox = await world.sandbox()
    container = await world.start(sandbox, "sh", "-c", bomb)
    if os.environ["LASTCALL_TEST_USER"] == "root" and mode() == "none":
        return  # root is bound by nothing but control groups
    await world.until(lambda: "can't fork" in "".join(_log(world, container)))
    assert len(world.processes()) <= 60
    other = await world.start(sandbox, "echo", "alive", name="other")
    assert world.output(await world.ended(other)) == "alive"
    await world.runtime.stop_container(container, 0)
    await world.ended(container)
    assert not world.processes()


def _log(world: ShimWorld, container: str) -> list[str]:
    path = Path("/mnt/logs/c/0.log")
    return path.read_text().splitlines() if path.exists() else []


@inside
async def test_limits_are_in_the_kernel_s_files_and_an_exec_is_bound_by_them(world: ShimWorld) -> None:
    limited(world, pids=50)
    resources = LinuxContainerResources(
        cpu_quota=25_000, cpu_period=100_000, cpu_shares=256, memory_limit_in_bytes=32 << 20
    )
    container = await world.start(await world.sandbox(), "sleep", "100", resources=resources)
    status = await world.runtime.status()
    condition = status.find(LIMITS_ENFORCED)
    assert condition is not None
    stats = await world.runtime.container_stats(container)
    if mode() == "none":
        assert not condition.status
        assert condition.message
        assert stats is None
        return
    assert condition.status
    here = f"{POD}/{container}"
    found = directories()
    if mode() == "v1":
        quota = Path(found["cpu"] + here, "cpu.cfs_quota_us").read_text()  # noqa: ASYNC240
        memory = Path(found["memory"] + here, "memory.limit_in_bytes").read_text()  # noqa: ASYNC240
        pids = Path(found["pids"] + POD, "pids.max").read_text()  # noqa: ASYNC240
        assert (quota, memory, pids) == ("25000\n", f"{32 << 20}\n", "50\n")
    else:
        # A group that was delegated without `cpu` lacks the file. So does one right in a slice of systemd, which hands
        # `cpu` down only while some unit in it asks for it. Commit 26e7a211 used slices: on Debian 12 and 13 it failed
        # in 6 of 6 services, and in none of 6 beside a unit with CPUWeight=. A scope asks for it: 40 of 40 pass on 13.
        if "cpu" in Path(found[""] + here, "cgroup.controllers").read_text().split():  # noqa: ASYNC240
            assert Path(found[""] + here, "cpu.max").read_text() == "25000 100000\n"  # noqa: ASYNC240
        assert Path(found[""] + here, "memory.max").read_text() == f"{32 << 20}\n"  # noqa: ASYNC240
    assert stats is not None
    assert stats.process_count == 1
    assert stats.memory_usage_bytes > 0
    answer = await world.runtime.exec_sync(container, ("sh", "-c", "tail /dev/zero"), 60)
    assert answer.exit_code == 137, "killed in the container's group"
    if mode() == "v1":
        await world.runtime.stop_container(container, 0)
        assert (await world.ended(container)).reason == "OOMKilled"


@inside
async def test_the_container_sees_its_own_group_as_the_root(world: ShimWorld) -> None:
    limited(world)
    _, output = await world.run("cat", "/proc/self/cgroup")
    assert "lastcall" not in output
    assert "kubepods" not in output


@inside
async def test_nothing_of_a_pod_is_left_after_it(world: ShimWorld) -> None:
    limited(world, pids=30)
    sandbox = await world.sandbox()
    container = await world.start(sandbox, "sleep", "100", resources=SMALL)
    trees = list(dict.fromkeys(directories().values()))
    for tree in trees:
        assert os.path.isdir(f"{tree}{POD}/{container}")  # noqa: ASYNC240
    await world.runtime.stop_pod_sandbox(sandbox)
    await world.runtime.remove_pod_sandbox(sandbox)
    await world.until(lambda: not any(os.path.exists(f"{tree}{POD}") for tree in trees))


@inside
async def test_what_lives_in_a_shared_pid_namespace_ends_with_its_container(world: ShimWorld) -> None:
    limited(world)
    sandbox = await world.sandbox(pid="POD")
    script = "setsid sleep 100 & sleep 0.2"
    (world.images.layer / "bin/setsid").symlink_to("busybox")
    container = await world.start(sandbox, "sh", "-c", script)
    await world.ended(container)
    await world.until(lambda: not any("sleep 100" in command for command in world.processes().values()))
