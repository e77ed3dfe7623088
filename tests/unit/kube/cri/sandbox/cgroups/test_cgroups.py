"""Control groups on trees of plain files: what is written where, what is read, where a cluster's place is found."""

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from lastcall.kube.cri.sandbox.cgroups import files, place, systemd, v1, v2
from lastcall.kube.cri.sandbox.cgroups.others import NoCgroups, OtherHierarchies
from lastcall.kube.cri.sandbox.cgroups.place import make_place, open_cgroups, parse_groups, parse_mounts, sweep
from lastcall.kube.cri.sandbox.shim.limits import Limits

LIMITED = {
    "cpu_shares": 512,
    "cpu_quota": 20_000,
    "cpu_period": 100_000,
    "memory_limit_in_bytes": 64 << 20,
    "unified": {"pids.max": "100", "memory.oom.group": "1"},
}
POD = "kubepods/burstable/poduid-1"
V2_FILES = (
    "cgroup.controllers cgroup.subtree_control cgroup.procs cgroup.type memory.max memory.swap.max memory.events "
    "memory.current memory.stat memory.oom.group cpu.max cpu.weight cpu.stat pids.max pids.current"
)
V1_FILES = {
    "cpu": "cgroup.procs cpu.shares cpu.cfs_quota_us cpu.cfs_period_us",
    "cpuacct": "cgroup.procs cpuacct.usage",
    "memory": "cgroup.procs memory.limit_in_bytes memory.memsw.limit_in_bytes memory.oom_control "
    "memory.usage_in_bytes memory.stat",
    "pids": "cgroup.procs pids.max pids.current",
    "freezer": "cgroup.procs tasks freezer.state",
    "cpuset": "cgroup.procs tasks cgroup.clone_children cpuset.cpus cpuset.mems",
    "name=systemd": "cgroup.procs tasks",
}
LIMITING = ("cpu", "cpuacct", "memory", "pids")
NO_OTHERS = OtherHierarchies({})


@pytest.fixture(autouse=True)
def groups_have_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A directory made below a tree gets its files, as the kernel does it; its removal takes them away."""
    mkdir, rmdir = os.mkdir, os.rmdir

    def kernel_mkdir(path: Any, *arguments: Any, **more: Any) -> None:
        mkdir(path, *arguments, **more)
        if str(path).startswith(f"{tmp_path}/v2/"):
            names = V2_FILES.split()
        else:
            tree = next((c for c in V1_FILES if str(path).startswith(f"{tmp_path}/v1/{c}/")), "")
            names = V1_FILES.get(tree, "").split()
        for name in names:
            Path(path, name).write_text("")
        parent = Path(path).parent / "cgroup.subtree_control"
        if "cgroup.controllers" in names and parent.exists():
            Path(path, "cgroup.controllers").write_text(parent.read_text())

    def kernel_rmdir(path: Any, *arguments: Any, **more: Any) -> None:
        if str(path).startswith(str(tmp_path)):
            for each in Path(path).iterdir():
                if each.is_file():
                    each.unlink()
        rmdir(path, *arguments, **more)

    monkeypatch.setattr(os, "mkdir", kernel_mkdir)
    monkeypatch.setattr(os, "rmdir", kernel_rmdir)


@pytest.fixture(autouse=True)
def no_systemd(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever runs on the machine of the test."""
    monkeypatch.setattr(systemd, "runs", lambda: False)


@pytest.fixture
def unified(tmp_path: Path) -> Path:
    tree = tmp_path / "v2"
    tree.mkdir()
    for name in V2_FILES.split():
        if name != "cgroup.type":  # the root has none
            (tree / name).write_text("")
    (tree / "cgroup.controllers").write_text("cpuset cpu io memory pids\n")
    return tree


@pytest.fixture
def separate(tmp_path: Path) -> dict[str, str]:
    for controller in V1_FILES:
        (tmp_path / "v1" / controller).mkdir(parents=True)
    return {controller: str(tmp_path / "v1" / controller) for controller in V1_FILES}


@pytest.fixture
def limiting(separate: dict[str, str]) -> dict[str, str]:
    return {controller: separate[controller] for controller in LIMITING}


@pytest.fixture
def others(separate: dict[str, str]) -> OtherHierarchies:
    return OtherHierarchies({name: tree for name, tree in separate.items() if name not in LIMITING})


# -- version 2 ---------------------------------------------------------------------------------------------------------


def test_version_2_writes_every_limit_into_the_container_s_group(unified: Path) -> None:
    groups = v2.CgroupsV2(str(unified), NO_OTHERS)
    groups.create_container(f"{POD}/c1", LIMITED)
    here = unified / POD / "c1"
    assert (here / "memory.max").read_text() == str(64 << 20)
    assert (here / "memory.swap.max").read_text() == "0", "a limit without swap is a limit"
    assert (here / "cpu.max").read_text() == "20000 100000"
    assert (here / "cpu.weight").read_text() == "20"
    assert (here / "pids.max").read_text() == "100"
    assert (here / "memory.oom.group").read_text() == "1"
    entrance = groups.entrance(f"{POD}/c1")
    assert (entrance.files, entrance.directory) == ([], f"{here}/init")


def test_version_2_shows_the_limits_where_the_processes_are_and_has_them_above(unified: Path) -> None:
    groups = v2.CgroupsV2(str(unified), NO_OTHERS)
    groups.create_container(f"{POD}/c1", LIMITED)
    here, leaf = unified / POD / "c1", unified / POD / "c1/init"
    for name in ("memory.max", "cpu.max", "memory.oom.group"):
        assert (here / name).read_text() == (leaf / name).read_text() != ""
    assert groups.remove_container(f"{POD}/c1")
    assert not here.exists()


def test_version_2_hands_the_controllers_down_at_every_level(unified: Path) -> None:
    v2.CgroupsV2(str(unified), NO_OTHERS).create(f"{POD}/c1", {})
    assert (unified / "cgroup.subtree_control").read_text() == "+cpu +memory +pids"


def test_a_group_without_limits_is_unlimited_also_after_an_update(unified: Path) -> None:
    groups = v2.CgroupsV2(str(unified), NO_OTHERS)
    groups.create(POD, LIMITED)
    groups.create(POD, {})
    read = {name: (unified / POD / name).read_text() for name in ("memory.max", "cpu.max", "pids.max")}
    assert read == {"memory.max": "max", "cpu.max": "max 100000", "pids.max": "max"}


def test_version_2_reads_the_counter_of_out_of_memory_kills_and_the_usage(unified: Path) -> None:
    groups = v2.CgroupsV2(str(unified), NO_OTHERS)
    groups.create_container(POD, {})
    here = unified / POD
    (here / "init/memory.events").write_text("low 0\nhigh 0\nmax 12\noom 1\noom_kill 3\noom_group_kill 1\n")
    (here / "memory.current").write_text("5000\n")
    (here / "memory.stat").write_text("anon 10\ninactive_file 2000\nactive_file 1\n")
    (here / "cpu.stat").write_text("usage_usec 1500\nuser_usec 1\n")
    (here / "pids.current").write_text("7\n")
    assert groups.oom_kills(POD) == 3
    usage = groups.usage(POD)
    assert usage is not None
    assert (usage.memory_bytes, usage.working_set_bytes, usage.cpu_ns, usage.pids) == (5000, 3000, 1_500_000, 7)
    assert groups.oom_kills("kubepods/none") is None
    assert groups.usage("kubepods/none") is None


def test_a_missing_controller_does_not_keep_the_others_from_counting(unified: Path) -> None:
    groups = v2.CgroupsV2(str(unified), NO_OTHERS)
    groups.create(POD, {})
    (unified / POD / "memory.swap.max").unlink()
    groups.create(POD, LIMITED)
    assert (unified / POD / "memory.max").read_text() == str(64 << 20)
    assert not (unified / POD / "memory.swap.max").exists()


def test_the_end_of_a_whole_container_for_lack_of_memory_is_counted_above_its_processes(unified: Path) -> None:
    groups = v2.CgroupsV2(str(unified), NO_OTHERS)
    limits = Limits(groups, {"id": "c1", "cgroupParent": f"/{POD}", "resources": LIMITED})
    limits.start()
    assert limits.ended_together() is None, "a kernel before 5.17 does not say it"
    events = unified / POD / "c1/memory.events"
    events.write_text("oom_kill 1\noom_group_kill 1\n")
    limits.start()
    assert limits.ended_together() is False
    events.write_text("oom_kill 3\noom_group_kill 2\n")
    assert limits.ended_together() is True


def test_version_2_says_whose_limit_was_reached(unified: Path) -> None:
    groups = v2.CgroupsV2(str(unified), NO_OTHERS)
    limits = Limits(groups, {"id": "c1", "cgroupParent": f"/{POD}", "resources": LIMITED})
    limits.start()
    events = unified / POD / "c1/memory.events"
    assert limits.reached() is None
    (unified / POD / "c1/memory.peak").write_text(f"{40 << 20}\n")
    events.write_text("low 0\nhigh 0\nmax 0\noom 0\noom_kill 1\n")
    assert limits.reached() is False, "a group above it had no more"
    events.write_text("low 0\nhigh 0\nmax 3\noom 1\noom_kill 1\n")
    assert limits.reached() is True


@pytest.mark.parametrize(
    ("peak", "pod_ooms", "reached"),
    [
        ((64 << 20) - 8192 - 4096, 1, True),
        (64 << 20, 0, False),
        (40 << 20, 1, False),
        (None, 1, None),
    ],
    ids=["full", "full of files, when its node ran out", "half", "old"],
)
def test_a_container_that_its_pod_s_equal_limit_stopped_first_has_reached_its_own(
    unified: Path, peak: int | None, pod_ooms: int, reached: bool | None
) -> None:
    """The kernel charges the Pod's group for the groups in it, so it is full a few pages before its only container."""
    groups = v2.CgroupsV2(str(unified), NO_OTHERS)
    limits = Limits(groups, {"id": "c1", "cgroupParent": f"/{POD}", "resources": LIMITED})
    limits.start()
    (unified / POD / "memory.current").write_text("86016\n")
    (unified / POD / "c1/memory.current").write_text("77824\n")
    (unified / POD / "memory.events").write_text("low 0\nhigh 0\nmax 9\noom 2\noom_kill 3\n")  # of all below
    (unified / POD / "memory.events.local").write_text(f"low 0\nhigh 0\nmax 9\noom {pod_ooms}\noom_kill 0\n")
    (unified / POD / "c1/memory.events").write_text("low 0\nhigh 0\nmax 0\noom 0\noom_kill 3\n")
    if peak is not None:
        (unified / POD / "c1/memory.peak").write_text(f"{peak}\n")
    assert limits.reached() is reached


def test_each_of_several_nodes_has_groups_of_its_own(unified: Path, limiting: dict[str, str]) -> None:
    for node in ("node", "node2"):
        open_cgroups({"mode": "v2", "directories": {"": str(unified)}, "node": node}).create(POD, LIMITED)
        assert (unified / node / POD / "memory.max").read_text() == str(64 << 20)
        open_cgroups({"mode": "v1", "directories": limiting, "node": node}).create(POD, LIMITED)
        assert Path(limiting["memory"], node, POD, "memory.limit_in_bytes").read_text() == str(64 << 20)
    open_cgroups({"mode": "v1", "directories": limiting, "node": ""}).create(POD, LIMITED)
    assert Path(limiting["memory"], POD).exists()


def test_groups_are_removed_from_the_bottom(unified: Path) -> None:
    groups = v2.CgroupsV2(str(unified), NO_OTHERS)
    groups.create(f"{POD}/c1", LIMITED)
    assert groups.remove("kubepods")
    assert not (unified / "kubepods").exists()
    assert groups.remove("kubepods"), "what is gone is removed"


# -- version 1 ---------------------------------------------------------------------------------------------------------


def test_version_1_writes_each_limit_into_its_controller_s_tree(limiting: dict[str, str]) -> None:
    groups = v1.CgroupsV1(limiting, NO_OTHERS)
    groups.create_container(f"{POD}/c1", LIMITED)

    def read(controller: str, name: str) -> str:
        return Path(limiting[controller], POD, "c1", name).read_text()

    assert read("memory", "memory.limit_in_bytes") == read("memory", "memory.memsw.limit_in_bytes") == str(64 << 20)
    assert (read("cpu", "cpu.cfs_quota_us"), read("cpu", "cpu.cfs_period_us")) == ("20000", "100000")
    assert (read("cpu", "cpu.shares"), read("pids", "pids.max")) == ("512", "100")
    assert groups.entrance(f"{POD}/c1").files == [f"{limiting[each]}/{POD}/c1/init/tasks" for each in LIMITING]


@pytest.mark.parametrize(
    ("above", "node", "taken"),
    [("100000", "-1", "-1"), ("-1", "150000", "-1"), ("-1", "-1", "refused"), ("-1", "250000", "refused")],
)
def test_more_cpu_than_a_group_above_has_is_as_much_as_that_one_has(
    limiting: dict[str, str], monkeypatch: pytest.MonkeyPatch, above: str, node: str, taken: str
) -> None:
    """Version 1 refuses such a quota, version 2 does not. What it refuses for another reason is an error."""
    groups = v1.CgroupsV1(limiting, NO_OTHERS)
    groups.create(POD, {})
    for path, quota in (("kubepods", node), (POD, above)):
        Path(limiting["cpu"], path, "cpu.cfs_quota_us").write_text(quota)
        Path(limiting["cpu"], path, "cpu.cfs_period_us").write_text("100000")
    written: list[str] = []

    def kernel(path: str, text: str) -> None:
        if path.endswith("cpu.cfs_quota_us"):
            if int(text) > 0:
                raise OSError(errno.EINVAL, "Invalid argument")
            written.append(text)
        Path(path).write_text(text)

    monkeypatch.setattr(v1.files, "write", kernel)
    asked = {"cpu_quota": 200_000, "cpu_period": 100_000}
    if taken == "refused":
        with pytest.raises(OSError, match="Invalid"):
            groups.create(f"{POD}/c1", asked)
    else:
        groups.create(f"{POD}/c1", asked)
        assert written == [taken]


def test_version_1_says_whose_limit_was_reached(limiting: dict[str, str]) -> None:
    groups = v1.CgroupsV1(limiting, NO_OTHERS)
    groups.create_container(f"{POD}/c1", LIMITED)
    here = Path(limiting["memory"], POD, "c1")
    assert groups.limit_reached(f"{POD}/c1") is None
    (here / "memory.max_usage_in_bytes").write_text(f"{60 << 20}\n")
    assert groups.limit_reached(f"{POD}/c1") is False
    (here / "memory.memsw.max_usage_in_bytes").write_text(f"{(64 << 20) - 4096}\n")
    assert groups.limit_reached(f"{POD}/c1") is True, "with swap accounting that one is charged first"


def test_version_1_says_that_a_container_was_full_although_its_pod_was_so_first(limiting: dict[str, str]) -> None:
    """The figures of a container's second run: 60 KiB of the first one's memory still count for the Pod."""
    groups = v1.CgroupsV1(limiting, NO_OTHERS)
    groups.create(POD, LIMITED)
    groups.create_container(f"{POD}/c2", LIMITED)
    pod, here = Path(limiting["memory"], POD), Path(limiting["memory"], POD, "c2")
    (here / "memory.max_usage_in_bytes").write_text("67047424\n")
    assert groups.limit_reached(f"{POD}/c2") is False
    (pod / "memory.max_usage_in_bytes").write_text(f"{64 << 20}\n")
    (pod / "memory.usage_in_bytes").write_text("516096\n")
    (here / "memory.usage_in_bytes").write_text("454656\n")
    assert groups.limit_reached(f"{POD}/c2") is True
    (here / "memory.max_usage_in_bytes").write_text(f"{60 << 20}\n")
    assert groups.limit_reached(f"{POD}/c2") is False, "another container filled the Pod"


def test_controllers_that_share_a_tree_are_joined_once(limiting: dict[str, str]) -> None:
    groups = v1.CgroupsV1({**limiting, "cpuacct": limiting["cpu"]}, NO_OTHERS)
    assert len(groups.entrance(POD).files) == 3


def test_a_container_has_a_group_of_its_own_in_every_hierarchy_that_limits_nothing(
    limiting: dict[str, str], others: OtherHierarchies, separate: dict[str, str]
) -> None:
    groups = v1.CgroupsV1(limiting, others)
    groups.create_container(f"{POD}/c1", LIMITED)
    for name in ("freezer", "cpuset", "name=systemd"):
        assert f"{separate[name]}/c1/tasks" in groups.entrance(f"{POD}/c1").files
        assert Path(separate[name], "c1").is_dir()
    assert groups.remove_container(f"{POD}/c1")
    assert not any(Path(tree, "c1").exists() for tree in separate.values())
    assert not any(Path(tree, POD, "c1").exists() for tree in limiting.values())


def test_beside_version_1_a_container_is_cloned_into_its_group_of_version_2(unified: Path) -> None:
    groups = NoCgroups("none here", OtherHierarchies({"": str(unified)}))
    groups.create_container(f"{POD}/c1", {})
    assert groups.entrance(f"{POD}/c1").directory == f"{unified}/c1"
    assert groups.remove_container(f"{POD}/c1")
    assert not (unified / "c1").exists()


def test_frozen_groups_go_on_wherever_they_are_below(others: OtherHierarchies, separate: dict[str, str]) -> None:
    others.create("c1")
    frozen = Path(separate["freezer"], "c1")
    (frozen / "below/more").mkdir(parents=True)
    for each in (frozen, frozen / "below/more"):
        (each / "freezer.state").write_text("FROZEN\n")
    others.thaw("c1")
    assert (frozen / "freezer.state").read_text() == (frozen / "below/more/freezer.state").read_text() == "THAWED"


def test_version_1_reads_the_counter_of_out_of_memory_kills_and_the_usage(limiting: dict[str, str]) -> None:
    groups, separate = v1.CgroupsV1(limiting, NO_OTHERS), limiting
    groups.create_container(POD, {})
    Path(separate["memory"], POD, "init/memory.oom_control").write_text("oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")
    Path(separate["memory"], POD, "memory.usage_in_bytes").write_text("100\n")
    Path(separate["memory"], POD, "memory.stat").write_text("inactive_file 1\ntotal_inactive_file 150\n")
    Path(separate["cpuacct"], POD, "cpuacct.usage").write_text("42\n")
    Path(separate["pids"], POD, "pids.current").write_text("3\n")
    usage = groups.usage(POD)
    assert groups.oom_kills(POD) == 2
    assert usage is not None
    assert (usage.memory_bytes, usage.working_set_bytes, usage.cpu_ns, usage.pids) == (100, 0, 42, 3)
    assert groups.remove("kubepods")
    assert not list(Path(separate["memory"]).iterdir())


def test_without_groups_nothing_is_limited_and_nobody_counts() -> None:
    groups = open_cgroups({"mode": "none", "why": "not here"})
    assert isinstance(groups, NoCgroups)
    groups.create(POD, LIMITED)
    assert (groups.entrance(POD).files, groups.oom_kills(POD), groups.usage(POD)) == ([], None, None)
    assert groups.remove(POD)


# -- the place ---------------------------------------------------------------------------------------------------------

HYBRID = """\
23 27 0:22 / /sys rw,relatime - sysfs sysfs rw
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 /docker/a\\040b /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw,nsdelegate
"""


def test_mounts_and_groups_are_read_as_the_kernel_writes_them() -> None:
    mounts = parse_mounts(HYBRID)
    assert mounts["memory"] == ("/sys/fs/cgroup/memory", "/docker/a b")
    assert mounts["cpu"] == mounts["cpuacct"] == ("/sys/fs/cgroup/cpu,cpuacct", "/")
    assert mounts[""] == ("/sys/fs/cgroup/unified", "/")
    groups = parse_groups("9:name=systemd:/\n3:cpu,cpuacct:/a:b\n0::/user.slice\n")
    assert groups == {"name=systemd": "/", "cpu": "/a:b", "cpuacct": "/a:b", "": "/user.slice"}


def mounted(tree: Path) -> str:
    return f"41 31 0:38 / {tree} rw - cgroup2 cgroup2 rw\n"


def group(tree: Path, path: str, *, enabled: str = "", members: str = "", controllers: str = "cpu memory pids") -> Path:
    here = tree / path
    here.mkdir(parents=True)
    (here / "cgroup.controllers").write_text(controllers)
    (here / "cgroup.subtree_control").write_text(enabled)
    (here / "cgroup.procs").write_text(members)
    return here


def test_the_nearest_group_that_hands_its_controllers_down_is_the_place(unified: Path) -> None:
    group(unified, "containers", enabled="memory pids")
    group(unified, "containers/mine", members="1\n2\n")
    found = make_place("demo", mounted(unified), "0::/containers/mine\n")
    assert not Path(found.directories[""]).exists(), "front only finds it"
    found.create()
    assert found.mode == "v2"
    directory = Path(found.directories[""])
    assert directory.parent == unified / "containers"
    assert directory.name.startswith("lastcall-demo-ns") and directory.is_dir()
    assert found.remove() and not directory.exists()


@pytest.fixture
def enabled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel lists a controller after "+memory" was written."""
    write = v2.enable_controllers

    def enable(directory: str) -> None:
        write(directory)
        Path(directory, "cgroup.subtree_control").write_text("cpu memory pids")

    monkeypatch.setattr(v2, "enable_controllers", enable)


@pytest.mark.usefixtures("enabled")
def test_a_delegated_scope_of_our_own_is_emptied_into_a_leaf(unified: Path) -> None:
    scope = group(unified, "run-1.scope", members=f"{os.getpid()}\n")
    found = make_place("demo", mounted(unified), "0::/run-1.scope\n")
    found.create()
    assert (found.mode, found.emptied) == ("v2", str(scope))
    assert (scope / "lastcall/cgroup.procs").read_text() == str(os.getpid()), "this process moved"
    assert found.remove()
    assert (scope / "cgroup.procs").read_text() == str(os.getpid()), "and came back"
    assert sorted(path.name for path in scope.iterdir() if path.is_dir()) == []


@pytest.mark.usefixtures("enabled")
def test_the_process_that_waits_for_one_in_the_background_moves_with_it(
    unified: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    group(unified, "run-1.scope", members=f"{os.getpid()}\n{os.getppid()}\n")
    assert make_place("demo", mounted(unified), "0::/run-1.scope\n").mode == "none", "another program"
    read = files.read
    monkeypatch.setattr(files, "read", lambda path: "lastcall up -d" if path.endswith("/cmdline") else read(path))
    assert make_place("demo", mounted(unified), "0::/run-1.scope\n").mode == "v2"


CANNOT: dict[str, tuple[dict[str, str], str]] = {
    "a scope shared with others": ({"members": "1\n2\n"}, "other processes share this process's cgroup"),
    "no memory controller": ({"controllers": "cpu pids"}, "has no memory controller"),
}


@pytest.mark.parametrize("case", CANNOT)
def test_where_there_is_no_place_it_is_said_why(unified: Path, case: str) -> None:
    fields, why = CANNOT[case]
    group(unified, "run-1.scope", **fields)
    found = make_place("demo", mounted(unified), "0::/run-1.scope\n")
    assert (found.mode, found.directories) == ("none", {})
    assert why in found.why


class AskedSystemd:
    """In place of systemd: it puts the process into a scope of `user.slice`, or says why not."""

    def __init__(self, tree: Path, refuses: str = "", controllers: str = "cpu memory pids") -> None:
        self._tree, self._refuses, self._controllers = tree, refuses, controllers
        self.asked: list[tuple[str, int, str]] = []

    def start_scope(self, unit: str, pid: int, slice_: str) -> tuple[str, str]:
        self.asked.append((unit, pid, slice_))
        if self._refuses:
            return "", self._refuses
        group(self._tree, f"user.slice/{unit}", members=f"{pid}\n", controllers=self._controllers)
        return f"/user.slice/{unit}", ""

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(systemd, "runs", lambda: True)
        monkeypatch.setattr(systemd, "start_scope", self.start_scope)
        monkeypatch.setattr(os, "getuid", lambda: 0)


@pytest.mark.usefixtures("enabled")
def test_the_first_process_moves_into_a_scope_of_systemd_and_nothing_else_does(
    unified: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = group(unified, "user.slice/session-1.scope", members=f"1\n{os.getpid()}\n")
    asked = AskedSystemd(unified)
    asked.install(monkeypatch)
    front = make_place("demo", mounted(unified), "0::/user.slice/session-1.scope\n")
    assert (front.exists, asked.asked) == (False, []), "there is no process yet"
    front.settle(4711)
    [(unit, pid, slice_)] = asked.asked
    assert (pid, slice_, unit.startswith("lastcall-demo-ns"), unit.endswith(".scope")) == (
        4711,
        "user.slice",
        True,
        True,
    )
    scope = unified / "user.slice" / unit
    assert (scope / "lastcall/cgroup.procs").read_text() == "4711"
    init = make_place("demo", mounted(unified), "0::/user.slice/session-1.scope\n")
    init.take(front.facts())
    init.create()
    assert Path(init.directories[""]).parent == scope
    assert init.controllers() == ["cpu", "memory", "pids"]
    assert front.remove()
    assert not Path(init.directories[""]).exists()
    assert sorted(each.name for each in session.iterdir() if each.is_dir()) == []
    assert (session / "cgroup.procs").read_text() == f"1\n{os.getpid()}\n"


REFUSALS = {
    "systemd says no": (
        {"refuses": "systemd cannot be asked: Access denied"},
        "systemd cannot be asked: Access denied",
    ),
    "it hands too little down": ({"controllers": "cpu pids"}, "cannot be handed down from here"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_where_systemd_gives_no_scope_the_reason_is_what_it_said(
    unified: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    fields, why = REFUSALS[case]
    group(unified, "user.slice/session-1.scope", members=f"1\n{os.getpid()}\n")
    AskedSystemd(unified, **fields).install(monkeypatch)
    found = make_place("demo", mounted(unified), "0::/user.slice/session-1.scope\n")
    found.settle(4711)
    assert found.mode == "none" and found.why.endswith(why)
    assert "" in found.others, "containers have groups of their own all the same"


@pytest.mark.usefixtures("enabled")
def test_without_systemd_s_answer_the_group_that_only_this_cluster_is_in_serves(
    unified: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """systemd 252 marks no delegated scope of an ordinary user, and the first process is in it, too."""
    scope = group(unified, "user.slice/run-1.scope", members=f"{os.getpid()}\n")
    AskedSystemd(unified, refuses="systemd cannot be asked: Connection refused").install(monkeypatch)
    found = make_place("demo", mounted(unified), "0::/user.slice/run-1.scope\n")
    (scope / "cgroup.procs").write_text(f"{os.getpid()}\n4711\n")
    found.settle(4711)
    assert (found.mode, found.where, found.why) == ("v2", "own", "")
    assert (scope / "lastcall/cgroup.procs").read_text() == "4711", "both moved, it last"


def test_a_place_that_waits_for_nothing_is_settled_already(unified: Path) -> None:
    group(unified, "mine", enabled="memory pids")
    found = make_place("demo", mounted(unified), "0::/mine\n")
    before = found.facts()
    found.settle(4711)
    assert found.facts() == before


def test_no_hierarchy_at_all_is_said_too() -> None:
    assert make_place("demo", "1 1 0:1 / / rw - ext4 /dev/vda rw\n", "0::/\n").why == "no cgroup hierarchy is mounted"


def all_mounted(unified: Path, separate: dict[str, str]) -> tuple[str, str]:
    """The texts of mountinfo and cgroup of a process that is in `/outer` everywhere."""
    mounts = mounted(unified) + "".join(
        f"1 1 0:1 / {path} rw - cgroup cgroup rw,{controller}\n" for controller, path in separate.items()
    )
    for path in (*separate.values(), str(unified)):
        Path(path, "outer").mkdir()
    return mounts, "0::/outer\n" + "".join(f"1:{controller}:/outer\n" for controller in separate)


def test_version_1_is_taken_where_version_2_has_no_controllers(unified: Path, separate: dict[str, str]) -> None:
    (unified / "cgroup.controllers").write_text("hugetlb\n")
    found = make_place("demo", *all_mounted(unified, separate))
    found.create()
    assert found.mode == "v1"
    assert {Path(path).parent.name for path in found.directories.values()} == {"outer"}, "outer limits still count"
    assert found.remove()
    assert not [each for path in separate.values() for each in Path(path, "outer").iterdir() if each.is_dir()]


def test_there_is_a_place_in_every_hierarchy_and_cpusets_begin_with_what_is_above(
    unified: Path, separate: dict[str, str]
) -> None:
    (unified / "cgroup.controllers").write_text("hugetlb\n")
    texts = all_mounted(unified, separate)
    Path(separate["cpuset"], "outer/cpuset.cpus").write_text("0-1\n")
    Path(separate["cpuset"], "outer/cpuset.mems").write_text("0\n")
    found = make_place("demo", *texts)
    found.create()
    assert (set(found.directories), set(found.others)) == (set(LIMITING), {"", "freezer", "cpuset", "name=systemd"})
    assert found.shared == {}
    cpuset = Path(found.others["cpuset"])
    read = [(cpuset / name).read_text() for name in ("cpuset.cpus", "cpuset.mems", "cgroup.clone_children")]
    assert read == ["0-1", "0", "1"]
    assert found.remove()
    assert not [each for path in found.others.values() for each in Path(path).parent.iterdir() if each.is_dir()]


def test_where_a_hierarchy_cannot_be_had_it_is_said_and_the_others_are(unified: Path, separate: dict[str, str]) -> None:
    (unified / "cgroup.controllers").write_text("hugetlb\n")
    mounts, groups = all_mounted(unified, separate)
    found = make_place("demo", mounts, groups + "12:net_cls,net_prio:/outer\n")
    Path(separate["freezer"], "outer", Path(found.others["freezer"]).name).write_text("in the way")
    found.create()
    assert found.shared == {
        "net_cls": "not mounted here",
        "net_prio": "not mounted here",
        "freezer": "File exists",
    }
    assert set(found.others) == {"", "cpuset", "name=systemd"}


def test_beside_version_2_hierarchies_of_version_1_have_a_place_too(unified: Path, separate: dict[str, str]) -> None:
    mounts, groups = all_mounted(unified, {"name=systemd": separate["name=systemd"]})
    group(unified, "mine", enabled="memory pids")
    found = make_place("demo", mounts, groups.replace("0::/outer", "0::/mine"))
    assert (found.mode, set(found.others)) == ("v2", {"name=systemd"})


def test_only_what_a_dead_cluster_of_this_pid_namespace_left_is_swept(unified: Path) -> None:
    own = os.stat("/proc/self/ns/pid").st_ino
    alive = f"lastcall-a-ns{own}-{os.getpid()}-{place._start_time(os.getpid())}"
    same_pid_other_time = f"lastcall-b-ns{own}-{os.getpid()}-1"
    elsewhere = f"lastcall-c-ns{own + 1}-4194305-1"
    dead = f"lastcall-d-ns{own}-4194305-77"
    for name in (alive, same_pid_other_time, elsewhere, f"{dead}/kubepods/podx", "lastcall-like", "kubepods"):
        (unified / name).mkdir(parents=True)
    sweep(str(unified))
    left = sorted(path.name for path in unified.iterdir() if path.is_dir())
    assert left == sorted([alive, elsewhere, "lastcall-like", "kubepods"])


def test_a_place_that_cannot_be_made_is_none_and_says_why(unified: Path) -> None:
    group(unified, "mine", enabled="memory pids")
    found = make_place("demo", mounted(unified), "0::/mine\n")
    (unified / "mine" / Path(found.directories[""]).name).write_text("in the way")
    found.create()
    assert (found.mode, found.directories) == ("none", {})
    assert found.why.endswith("File exists")


# -- other limits for what is there, and what a container sees ---------------------------------------------------------

LESS = {"cpu_shares": 102, "cpu_quota": 10_000, "cpu_period": 100_000, "memory_limit_in_bytes": 32 << 20}


def test_version_1_changes_the_limits_of_groups_that_are_there(limiting: dict[str, str]) -> None:
    groups = v1.CgroupsV1(limiting, NO_OTHERS)
    groups.create(POD, LIMITED)
    groups.create_container(f"{POD}/c1", LIMITED)
    groups.update(POD, LESS)
    groups.update_container(f"{POD}/c1", LESS)
    for path in (POD, f"{POD}/c1"):
        assert Path(limiting["memory"], path, "memory.limit_in_bytes").read_text() == str(32 << 20)
        assert Path(limiting["cpu"], path, "cpu.cfs_quota_us").read_text() == "10000"
        assert Path(limiting["cpu"], path, "cpu.shares").read_text() == "102"
    groups.update(POD, {})
    assert Path(limiting["memory"], POD, "memory.limit_in_bytes").read_text() == "-1"


def test_version_2_changes_the_limits_of_a_container_and_of_the_group_that_it_sees(unified: Path) -> None:
    groups = v2.CgroupsV2(str(unified), NO_OTHERS)
    groups.create_container(f"{POD}/c1", LIMITED)
    groups.update(POD, LESS)
    groups.update_container(f"{POD}/c1", LESS)
    for path in (unified / POD, unified / POD / "c1", unified / POD / "c1/init"):
        assert (path / "memory.max").read_text() == str(32 << 20)
        assert (path / "cpu.max").read_text() == "10000 100000"
    assert groups.view(f"{POD}/c1", privileged=False) == []


def test_version_1_shows_a_container_its_limits_and_a_privileged_one_what_it_may_divide(
    limiting: dict[str, str], others: OtherHierarchies, monkeypatch: pytest.MonkeyPatch
) -> None:
    trees = [*limiting.values(), *others._separate]
    monkeypatch.setattr(os.path, "ismount", lambda path: path in trees)
    groups = v1.CgroupsV1(limiting, others)
    view = dict(groups.view(f"{POD}/c1", privileged=False))
    assert view["memory"] == f"{limiting['memory']}/{POD}/c1"
    assert view["freezer"].endswith("/c1") and POD not in view["freezer"]
    assert dict(groups.view(f"{POD}/c1", privileged=True))["memory"] == f"{limiting['memory']}/{POD}/c1/init"


def test_without_groups_nothing_changes_and_nothing_is_seen() -> None:
    groups = NoCgroups("no cgroup hierarchy is mounted", NO_OTHERS)
    groups.update(POD, LESS)
    groups.update_container(f"{POD}/c1", LESS)
    assert groups.view(POD, privileged=False) == []
