"""Control groups as a way out: what a container that may make namespaces finds when it mounts every hierarchy.

Without a seccomp filter, which forbids the namespaces. As an ordinary user on version 1 there are no groups of our own:
what is mounted then is the machine's, and can be read and not written.
"""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest
from escaping import attempts, build
from shim_world import ShimWorld, inside

from lastcall.kube.cri.api import LinuxContainerResources, LinuxContainerSecurityContext, SecurityProfile

pytestmark = [pytest.mark.real_kernel, pytest.mark.proof]

POD = "/kubepods/burstable/poduid-1"
UNCONFINED = LinuxContainerSecurityContext(seccomp=SecurityProfile("Unconfined"))
PRIVILEGED = LinuxContainerSecurityContext(privileged=True)
SMALL = LinuxContainerResources(memory_limit_in_bytes=24 << 20, cpu_quota=50_000, cpu_period=100_000)


def place() -> dict[str, dict[str, str]]:
    return json.loads(os.environ["LASTCALL_TEST_CGROUPS"])


def every_directory() -> list[str]:
    return list(dict.fromkeys([*place()["directories"].values(), *place()["others"].values()]))


def made_outside() -> set[str]:
    """Groups that an escape made where no container's are, now or before."""
    found = [f"{above}/{name}" for above, names, _ in os.walk("/sys/fs/cgroup") for name in names]
    return {path for path in found if path.endswith("/lastcall-escape") and "/lastcall-test-" not in path}


def is_delegation_boundary() -> bool:
    """Return True if nobody in a namespace changes the limits of its root (kernel/cgroup/cgroup.c:cgroup_file_write).

    systemd mounts version 2 so.
    """
    mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    return place()["mode"] == "v2" and any(
        kind == "cgroup2" and "nsdelegate" in options.split(",") for _, _, kind, options, *_ in mounts
    )


@inside
async def test_a_container_that_mounts_every_hierarchy_is_at_the_root_of_its_own_group(world: ShimWorld) -> None:
    world.sandbox_config = replace(world.sandbox_config, cgroup_parent=POD)
    before = made_outside()
    said = await attempts(world, "cgroups", security_context=UNCONFINED)
    mounted = [name for name, answer in said.items() if name.endswith(" mount") and answer == "OK"]
    assert mounted, said
    assert made_outside() <= before
    written = [
        name.removesuffix(" mkdir") for name, answer in said.items() if name.endswith(" mkdir") and answer == "OK"
    ]
    for hierarchy in written:
        assert said[f"{hierarchy} release_agent"] == "hidden"
        assert f"{hierarchy} sees" not in said
    if os.environ["LASTCALL_TEST_USER"] == "root":
        assert len(written) == len(mounted) == len(every_directory()), "its own groups are all there is"


@inside
async def test_a_privileged_container_too_is_at_the_root_of_its_own_group(world: ShimWorld) -> None:
    world.sandbox_config = replace(world.sandbox_config, cgroup_parent=POD)
    before = made_outside()
    said = await attempts(world, "cgroups", security_context=PRIVILEGED)
    assert made_outside() <= before
    if os.environ["LASTCALL_TEST_USER"] == "root":
        assert [name for name in said if name.endswith(" sees")] == []
        assert "there" not in said.values()


@inside
async def test_a_container_that_writes_into_its_own_group_has_its_limits_all_the_same(world: ShimWorld) -> None:
    if place()["mode"] == "none":
        return
    world.sandbox_config = replace(world.sandbox_config, cgroup_parent=POD)
    build(world)
    status, output = await world.run("escape", "raise", security_context=UNCONFINED, resources=SMALL)
    limit = "memory memory.limit_in_bytes" if place()["mode"] == "v1" else "unified memory.max"
    assert f"{limit}: {'EPERM' if is_delegation_boundary() else 'OK'}" in output
    assert "memory: OK" not in output
    assert (status.exit_code, status.reason) == (137, "OOMKilled")


@inside
async def test_a_container_that_froze_itself_can_be_killed(world: ShimWorld) -> None:
    build(world)
    container = await world.start(await world.sandbox(), "escape", "freeze", security_context=UNCONFINED)
    await world.printed(container, "freezer: ")
    if "freezer" in place()["others"]:
        group = Path(place()["others"]["freezer"], container, "below/freezer.state")
        await world.until(lambda: group.read_text() == "FROZEN\n")
    await world.runtime.stop_container(container, 0)
    assert (await world.ended(container)).exit_code in (0, 137)


@inside
async def test_a_command_in_a_container_is_in_all_of_its_groups(world: ShimWorld) -> None:
    world.sandbox_config = replace(world.sandbox_config, cgroup_parent=POD)
    container = await world.start(await world.sandbox(), "sleep", "100")
    answer = await world.runtime.exec_sync(container, ("cat", "/proc/self/cgroup"), 60)
    await world.until(lambda: world.find("ProcessStarted"))
    pid = world.find("ProcessStarted")[-1].facts["pid"]
    if os.environ["LASTCALL_TEST_USER"] != "root":
        return
    groups = [line.split(":", 2)[2] for line in answer.stdout.decode().splitlines()]
    assert set(groups) == {"/"}, "of its own namespace"
    theirs = Path(f"/proc/{pid}/cgroup").read_text().splitlines()  # noqa: ASYNC240
    assert len(theirs) == len(groups)
    assert all(container in line for line in theirs), theirs


@inside
async def test_nothing_of_a_container_is_left_in_any_hierarchy(world: ShimWorld) -> None:
    sandbox = await world.sandbox()
    container = await world.start(sandbox, "sleep", "100")
    if os.environ["LASTCALL_TEST_USER"] == "root":
        assert all(container in str(list(os.walk(tree))) for tree in every_directory())
    await world.runtime.stop_container(container, 0)
    await world.ended(container)
    await world.until(lambda: not any(container in str(list(os.walk(tree))) for tree in every_directory()))
