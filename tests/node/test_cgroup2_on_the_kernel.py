"""Version 2 on the kernel's own tree, with whatever controllers it has here: membership, `cgroup.kill`, removal."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from waiting import eventually

from lastcall.kube.cri.sandbox.cgroups import files, v2
from lastcall.kube.cri.sandbox.cgroups.others import OtherHierarchies
from lastcall.kube.cri.sandbox.cgroups.place import parse_mounts
from lastcall.kube.cri.sandbox.shim.limits import Limits

pytestmark = [
    pytest.mark.real_kernel,
    pytest.mark.skipif(os.getuid() != 0, reason="the tree belongs to root"),
]


@pytest.fixture
def tree() -> str:
    mounted = parse_mounts(Path("/proc/self/mountinfo").read_text())
    if "" not in mounted:
        pytest.skip("no cgroup v2 is mounted")
    directory = f"{mounted[''][0]}/lastcall-test-{os.getpid()}"
    os.mkdir(directory)
    yield directory
    files.kill(directory)
    assert files.remove(directory)


def test_all_of_a_group_is_killed_at_once_and_the_group_goes(tree: str) -> None:
    groups = v2.CgroupsV2(tree, OtherHierarchies({}))
    spec = {"id": "c1", "cgroupParent": "/kubepods/podx", "resources": {"unified": {"pids.max": "10"}}}
    limits = Limits(groups, spec)
    limits.start()
    member = f"{limits.entrance().directory}/cgroup.procs"
    script = f"echo 0 > {member}; sleep 100 & sleep 100 & echo in; wait"
    with subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "in\n"
        assert len(files.processes(f"{tree}/kubepods")) == 3
        assert not groups.remove("kubepods"), "it is busy"
        limits.kill()
        assert process.wait(60) == -signal.SIGKILL
    eventually(lambda: groups.remove("kubepods"), "empty cgroups")
    assert not os.path.exists(f"{tree}/kubepods")


def test_without_the_memory_controller_nobody_counts(tree: str) -> None:
    groups, path = v2.CgroupsV2(tree, OtherHierarchies({})), "kubepods/podx/c1"
    groups.create_container(path, {"memory_limit_in_bytes": 1 << 20, "cpu_quota": 1000, "cpu_period": 100_000})
    has_memory = "memory" in files.read(f"{tree}/{path}/init/cgroup.controllers").split()
    assert groups.oom_kills(path) == (0 if has_memory else None)
    if has_memory:
        assert groups.group_kills(path) == (
            0 if "oom_group_kill" in files.read(f"{tree}/{path}/memory.events") else None
        )
        assert files.read(f"{tree}/{path}/memory.max") == f"{1 << 20}\n"
