"""/sys/fs/cgroup in a container: read-only, but for a privileged one, which may divide its own group."""

import json
import os
from dataclasses import replace
from pathlib import Path

from shim_world import ShimWorld, inside

from lastcall.kube.cri.api import LinuxContainerResources, LinuxContainerSecurityContext

POD = "/kubepods/burstable/poduid-1"
PRIVILEGED = LinuxContainerSecurityContext(privileged=True)
SMALL = LinuxContainerResources(memory_limit_in_bytes=64 << 20)
# On version 2 a group hands its controllers down only once no process is in it.
DIVIDE = {
    "v2": """cd /sys/fs/cgroup && mkdir below && echo $$ > below/cgroup.procs && echo +memory > cgroup.subtree_control
        echo 8388608 > below/memory.max && cat below/memory.max""",
    "v1": """cd /sys/fs/cgroup/memory && mkdir below && echo $$ > below/cgroup.procs
        echo 8388608 > below/memory.limit_in_bytes && cat below/memory.limit_in_bytes""",
}


def place() -> dict[str, str]:
    return json.loads(os.environ["LASTCALL_TEST_CGROUPS"])


@inside
async def test_a_privileged_container_divides_its_own_group(world: ShimWorld) -> None:
    if place()["mode"] == "none":
        return
    world.sandbox_config = replace(world.sandbox_config, cgroup_parent=POD)
    status, output = await world.run("sh", "-c", DIVIDE[place()["mode"]], security_context=PRIVILEGED, resources=SMALL)
    assert (status.exit_code, output) == (0, "8388608")
    trees = set(place()["directories"].values())
    await world.until(lambda: not any(list(Path(tree).rglob("below")) for tree in trees))


@inside
async def test_another_container_only_reads_its_group(world: ShimWorld) -> None:
    if place()["mode"] == "none":
        return
    world.sandbox_config = replace(world.sandbox_config, cgroup_parent=POD)
    hierarchy = "/sys/fs/cgroup" if place()["mode"] == "v2" else "/sys/fs/cgroup/memory"
    script = f"cd {hierarchy}; mkdir below; echo $$ > cgroup.procs || echo refused"
    script += "; cat cgroup.procs > /dev/null && echo read"
    status, output = await world.run("sh", "-c", script, resources=SMALL)
    assert "Read-only file system" in output
    assert world.output(status, "stdout") == "refused\nread"
