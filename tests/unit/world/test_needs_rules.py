"""Judging machines: each known way to forbid a cluster, and what the doctor says to it."""

import errno
import os
from dataclasses import replace

import pytest

from lastcall.world.need import Need
from lastcall.world.needs import decide, kernel_version
from lastcall.world.probes import NAMESPACES, Machine, Probe

_NAMES = [
    "cgroups",
    "files on disk",
    "cgroup hierarchies",
    "clone3",
    "seccomp filter",
    "user namespace",
    *(f"{name} namespace" for name in NAMESPACES),
    "host name",
    "tmpfs",
    "overlay",
    "id-mapped mount",
    "proc",
    "forwarding",
    "veth",
    "nftables",
]
_GOOD = {name: Probe() for name in _NAMES} | {
    "user namespace": Probe(0, "65537"),
    "cgroups": Probe(0, "v2: cpu memory pids"),
    "cgroup hierarchies": Probe(0, "freezer, version 2"),
}
GOOD = Machine(release="6.1.0-18-amd64", uid=1000, sysctls={"user.max_user_namespaces": 15000}, probes=_GOOD)
APPARMOR = "kernel.apparmor_restrict_unprivileged_userns"


def machine(*, without: tuple[str, ...] = (), probes: dict[str, int] | None = None, **fields: object) -> Machine:
    """The good machine, but for these fields, these refused probes (errno), and those that could not be tried."""
    seen = {name: probe for name, probe in _GOOD.items() if name not in without}
    seen |= {name: Probe(number, os.strerror(number)) for name, number in (probes or {}).items()}
    return replace(GOOD, probes=seen, **fields)  # type: ignore[arg-type]


def named(found: list[Need], name: str) -> Need:
    return next(need for need in found if need.name == name)


def test_a_good_machine_needs_nothing() -> None:
    assert {need.status for need in decide(GOOD)} == {"ok"}
    assert all(not need.fix and not need.lose for need in decide(GOOD))


@pytest.mark.parametrize(
    ("release", "found"),
    [("6.1.0-50-amd64", "unknown to this kernel"), ("6.14.0", "unknown to this kernel"), ("6.15.1", "PIDFD_GET_INFO")],
)
def test_a_kernel_that_does_not_say_how_others_ended_is_good_all_the_same(release: str, found: str) -> None:
    need = named(decide(machine(release=release)), "ends of other containers")
    assert (need.status, found in need.found) == ("ok", True)


def test_apparmor_s_rule_can_be_lifted_for_lastcall_alone() -> None:
    forbidden = machine(without=AFTER_USER, probes={"user namespace": EACCES}, sysctls={APPARMOR: 1})
    fix = named(decide(forbidden), "AppArmor").fix
    profile = "abi <abi/4.0>,\\ninclude <tunables/global>\\nprofile lastcall %s flags=(unconfined) {\\n  userns,\\n}\\n"
    assert f"printf '{profile}' \"$(realpath" in fix
    assert "sudo apparmor_parser -r /etc/apparmor.d/lastcall" in fix
    assert "untried" in fix, "no Ubuntu could be had"


AFTER_USER = tuple(
    name
    for name in _NAMES
    if name not in ("cgroups", "cgroup hierarchies", "clone3", "seccomp filter", "user namespace")
)
EPERM, EACCES, ENOSPC, ENOSYS = errno.EPERM, errno.EACCES, errno.ENOSPC, errno.ENOSYS

FORBIDDEN = {
    "an old kernel": (machine(release="4.18.0-477.el8.x86_64"), "Linux kernel", "older than 5.11", "newer kernel"),
    "WSL 1": (machine(release="4.4.0-19041-Microsoft"), "Linux kernel", "WSL 1", "wsl --set-version"),
    "Docker's seccomp filter": (
        machine(without=("user namespace", *AFTER_USER), probes={"clone3": ENOSYS}, seccomp=2, container="docker"),
        "system calls",
        "a seccomp filter forbids clone3",
        "--security-opt seccomp=unconfined",
    ),
    "a seccomp filter for user namespaces": (
        machine(without=AFTER_USER, probes={"user namespace": EPERM}, seccomp=2, container="podman"),
        "user namespaces",
        "a seccomp filter forbids them",
        "podman run --security-opt seccomp=unconfined",
    ),
    "Debian's switch": (
        machine(without=AFTER_USER, probes={"user namespace": EPERM}, sysctls={"kernel.unprivileged_userns_clone": 0}),
        "user namespaces",
        "kernel.unprivileged_userns_clone=0",
        "sudo sysctl -w kernel.unprivileged_userns_clone=1",
    ),
    "no user namespaces allowed": (
        machine(without=AFTER_USER, probes={"user namespace": ENOSPC}, sysctls={"user.max_user_namespaces": 0}),
        "user namespaces",
        "user.max_user_namespaces=0",
        "sudo sysctl -w user.max_user_namespaces=15000",
    ),
    "all user namespaces used up": (
        machine(without=AFTER_USER, probes={"user namespace": ENOSPC}, sysctls={"user.max_user_namespaces": 3}),
        "user namespaces",
        "user.max_user_namespaces=3",
        "sudo sysctl -w user.max_user_namespaces=15000",
    ),
    "a kernel without user namespaces": (
        machine(without=AFTER_USER, probes={"user namespace": errno.EINVAL}),
        "user namespaces",
        "this kernel has none",
        "CONFIG_USER_NS=y",
    ),
    "Ubuntu's AppArmor, denying at once": (
        machine(without=AFTER_USER, probes={"user namespace": EACCES}, sysctls={APPARMOR: 1}),
        "AppArmor",
        f"{APPARMOR}=1",
        f"sudo sysctl -w {APPARMOR}=0",
    ),
    "Ubuntu's AppArmor, denying what comes after": (
        machine(
            without=("overlay", "proc", "forwarding"),
            probes={"tmpfs": EACCES, "veth": EPERM, "nftables": EPERM},
            sysctls={APPARMOR: 1},
        ),
        "AppArmor",
        f"{APPARMOR}=1",
        f"sudo sysctl -w {APPARMOR}=0",
    ),
    "no network namespaces allowed": (
        machine(probes={"net namespace": ENOSPC}, sysctls={"user.max_net_namespaces": 0}),
        "namespaces",
        "user.max_net_namespaces set to 0",
        "sudo sysctl -w user.max_net_namespaces=15000",
    ),
    "a kernel without PID namespaces": (
        machine(without=("proc", "forwarding"), probes={"pid namespace": errno.EINVAL}),
        "namespaces",
        "pid: Invalid argument",
        "",
    ),
    "Docker's masked /proc": (
        machine(
            without=("forwarding",),
            probes={"proc": EPERM},
            proc_masks=("/proc/kcore", "/proc/keys"),
            container="docker",
        ),
        "mounting /proc",
        "hidden by mounts (/proc/kcore, /proc/keys)",
        "--security-opt systempaths=unconfined",
    ),
    "Podman's masked /proc": (
        machine(without=("forwarding",), probes={"proc": EPERM}, proc_masks=("/proc/kcore",), container="podman"),
        "mounting /proc",
        "hidden by mounts",
        "--security-opt unmask=ALL",
    ),
    "a masked /proc in a Pod": (
        machine(without=("forwarding",), probes={"proc": EPERM}, proc_masks=("/proc/kcore",), container="kubernetes"),
        "mounting /proc",
        "hidden by mounts",
        "procMount: Unmasked",
    ),
    "a masked /proc somewhere else": (
        machine(without=("forwarding",), probes={"proc": EPERM}, proc_masks=tuple(f"/proc/{n}" for n in "abcde")),
        "mounting /proc",
        "/proc/a, /proc/b, /proc/c and 2 more",
        "sudo umount /proc/a /proc/b /proc/c /proc/d /proc/e",
    ),
    "no overlayfs": (machine(probes={"overlay": errno.ENODEV}), "overlayfs", "not loaded", "sudo modprobe overlay"),
    "no veth": (machine(probes={"veth": errno.EOPNOTSUPP}), "veth links", "not loaded", "sudo modprobe veth"),
    "a sandbox that forbids mounts": (
        machine(without=("overlay", "proc", "forwarding"), probes={"tmpfs": EPERM}, seccomp=2),
        "tmpfs mounts",
        "Operation not permitted",
        "outside of the sandbox",
    ),
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_the_first_missing_need_names_the_cause_and_the_way_out(name: str) -> None:
    seen, need, found, fix = FORBIDDEN[name]
    first = next(one for one in decide(seen) if one.status == "missing")
    assert first.name == need
    assert found in first.found
    assert fix in first.fix
    assert bool(fix) == bool(first.fix)
    assert first.found in str(first) and first.fix in str(first)


@pytest.mark.parametrize("name", FORBIDDEN)
def test_what_could_not_be_tried_is_never_called_ok(name: str) -> None:
    seen, *_ = FORBIDDEN[name]
    tried = {"tmpfs mounts": "tmpfs", "overlayfs": "overlay", "mounting /proc": "proc", "veth links": "veth"}
    for need in decide(seen):
        if need.name in tried and tried[need.name] not in seen.probes:
            assert need.status == "missing"
            assert need.found == "could not be tried, because of the above"


def with_groups(found: str = "", place: str = "", why: str = "") -> Machine:
    probe = Probe(EACCES, why) if why else Probe(0, found)
    return replace(GOOD, probes=_GOOD | {"cgroups": probe, "cgroup place": Probe(0, place)})


DEGRADED = {
    "no nftables": (machine(probes={"nftables": EPERM}), "nftables", "Services", "modprobe nf_tables"),
    "one user id": (
        replace(GOOD, probes=_GOOD | {"user namespace": Probe(0, "1 /etc/subuid gives this user no range")}),
        "subordinate user ids",
        "one owner",
        "usermod --add-subuids",
    ),
    "one user id without the program": (
        replace(GOOD, probes=_GOOD | {"user namespace": Probe(0, "1 newuidmap is not installed")}),
        "subordinate user ids",
        "one owner",
        "apt-get install uidmap",
    ),
    "AppArmor that does not confine": (
        replace(GOOD, app_armor=True),
        "AppArmor profiles",
        "Pods that demand a profile are rejected",
        "",
    ),
    "hierarchies that are root's": (
        replace(GOOD, probes=_GOOD | {"cgroup hierarchies": Probe(EACCES, "freezer (root's)")}),
        "cgroups of containers",
        "mount these hierarchies and see all of their groups",
        "",
    ),
    "hierarchies that are not mounted": (
        replace(GOOD, uid=0, probes=_GOOD | {"cgroup hierarchies": Probe(errno.ENOENT, "freezer (not mounted here)")}),
        "cgroups of containers",
        "write those that belong to root",
        "mount them",
    ),
    "no disk for files": (
        replace(GOOD, probes=_GOOD | {"files on disk": Probe(errno.EOPNOTSUPP, "/d: its file system is NFS")}),
        "files of containers",
        "can be OOMKilled",
        "XDG_DATA_HOME",
    ),
    "no seccomp": (machine(probes={"seccomp filter": errno.EINVAL}), "seccomp filters", "RuntimeDefault", "CONFIG_"),
    "no id-mapped mounts, as root": (
        machine(uid=0, probes={"id-mapped mount": errno.EINVAL}),
        "user ids of Pods",
        "root is root of the machine, in namespaces; Pods with hostUsers: false",
        "Linux 6.3",
    ),
    "no id-mapped mounts": (
        machine(probes={"id-mapped mount": errno.EINVAL}),
        "user ids of Pods",
        "Pods with hostUsers: false",
        "Linux 6.3",
    ),
    "no systemd of the user": (
        with_groups(why="no systemd runs for this user"),
        "cgroups",
        "limits",
        "--uid=$USER -p Delegate=yes",
    ),
    "the same, and it helps for good": (
        with_groups(why="no systemd runs for this user"),
        "cgroups",
        "limits",
        "sudo loginctl enable-linger $USER",
    ),
    "the user's bus does not answer": (
        with_groups(why="systemd cannot be asked: no answer within 10 s"),
        "cgroups",
        "limits",
        "systemd-run --user --scope -p Delegate=yes lastcall …",
    ),
    "the machine's bus does not answer": (
        replace(with_groups(why="systemd cannot be asked: busctl is not installed"), uid=0),
        "cgroups",
        "limits",
        "systemd-run --scope -p Delegate=yes lastcall …",
    ),
    "the user's systemd has no cpu": (
        with_groups("v2: pids memory", "scope"),
        "cgroups",
        "no limits for cpu",
        "Delegate=cpu memory pids",
    ),
    "a service that asked for no cpu": (
        with_groups("v2: pids memory", "own"),
        "cgroups",
        "no limits for cpu",
        "-p Delegate=yes",
    ),
    "cgroup v1": (
        replace(GOOD, cgroup_v1=True, probes=_GOOD | {"cgroups": Probe(errno.ENOENT, "cgroup v1 belongs to root")}),
        "cgroups",
        "limits",
        "systemd.unified_cgroup_hierarchy=1",
    ),
}


@pytest.mark.parametrize("name", DEGRADED)
def test_a_degraded_need_says_what_is_lost_and_keeps_no_cluster_from_starting(name: str) -> None:
    seen, need, lose, fix = DEGRADED[name]
    found = decide(seen)
    assert all(one.status != "missing" for one in found)
    one = named(found, need)
    assert one.status == "degraded"
    assert lose in one.lose
    assert fix in one.fix


def test_apparmor_s_rule_does_not_matter_where_this_program_may_use_namespaces() -> None:
    assert named(decide(machine(sysctls={APPARMOR: 1})), "AppArmor").status == "ok"


@pytest.mark.parametrize(
    ("app_armor", "label", "found", "fix"),
    [
        (False, "", "(Permission denied)", ""),
        (True, "unconfined", "(Permission denied)", ""),
        (
            True,
            "terminal (enforce)",
            "(Permission denied), which AppArmor's profile terminal confines",
            "start lastcall from a program that this profile does not confine, or add to it the rule `userns,`",
        ),
    ],
)
def test_a_security_module_that_forbids_user_namespaces_is_named(
    app_armor: bool, label: str, found: str, fix: str
) -> None:
    seen = machine(without=AFTER_USER, probes={"user namespace": EACCES}, app_armor=app_armor, label=label)
    need = named(decide(seen), "user namespaces")
    assert (need.status, need.fix) == ("missing", fix)
    assert need.found == f"a security module forbids them to this program {found}"


@pytest.mark.parametrize("why", ["cgroup v2 is not delegated to this user", "other processes share this cgroup"])
def test_where_no_command_helps_none_is_proposed(why: str) -> None:
    assert named(decide(with_groups(why=why)), "cgroups").fix == ""


def test_a_scope_that_ends_at_logout_is_fine_and_says_how_it_stays() -> None:
    seen = with_groups("v2: cpu memory pids", "scope")
    assert named(decide(seen), "cgroups").found == "cgroup v2: cpu memory pids, in a scope of systemd"
    one = named(decide(replace(seen, probes=seen.probes | {"logout": Probe(errno.EPERM, "it ends")})), "cgroups")
    assert (one.status, one.fix) == ("ok", "sudo loginctl enable-linger $USER")
    assert "up --detach" in one.lose and one.found.endswith("; it ends")


@pytest.mark.parametrize(
    ("seen", "found"),
    [
        (with_groups("v2: cpu memory pids"), "control groups enforce cpu and memory of --node-capacity"),
        (with_groups("v1: memory pids"), "control groups enforce memory of --node-capacity; cpu is declared only"),
        (
            with_groups(why="cgroup v2: memory cannot be handed down"),
            "declared only: the scheduler counts with --node-capacity, no control group enforces it",
        ),
    ],
)
def test_whether_sizes_of_nodes_are_real_or_declared_only(seen: Machine, found: str) -> None:
    need = named(decide(seen), "sizes of nodes")
    assert (need.status, need.found) == ("ok", found)


def test_nothing_tried_at_all_is_missing_and_not_ok() -> None:
    found = decide(replace(GOOD, probes={}))
    assert named(found, "system calls").status == "missing"
    assert all(named(found, name).status != "ok" for name in ("user namespaces", "namespaces", "cgroups", "nftables"))


@pytest.mark.parametrize(
    ("release", "version"),
    [
        ("6.1.0-18-amd64", (6, 1)),
        ("5.11", (5, 11)),
        ("5.15-rc1", (5, 15)),
        ("6.18.44-fc", (6, 18)),
        ("?", (0, 0)),
        ("", (0, 0)),
    ],
)
def test_a_kernel_release_is_read_as_two_numbers(release: str, version: tuple[int, int]) -> None:
    assert kernel_version(release) == version


@pytest.mark.parametrize(
    ("uid", "ids", "found"),
    [
        (0, "4294967295", "every Pod has its own, but for privileged ones"),
        (1000, "65537", "hostUsers: false needs 131072 subordinate ids"),
        (1000, "1 newuidmap is not installed", "hostUsers: false needs 131072 subordinate ids"),
        (1000, "196609", "enough for 2 with hostUsers: false"),
    ],
)
def test_whose_ids_pods_have(uid: int, ids: str, found: str) -> None:
    seen = replace(GOOD, uid=uid, probes=_GOOD | {"user namespace": Probe(0, ids)})
    need = named(decide(seen), "user ids of Pods")
    assert need.status == "ok"
    assert found in need.found


def test_a_newuidmap_that_is_setuid_in_a_container_needs_file_capabilities() -> None:
    """Tried with podman: with them it stays the owner of the namespace, and may write the ids."""
    why = "newuidmap failed: newuidmap: write to uid_map failed: Operation not permitted"
    probes = {**_GOOD, "user namespace": Probe(0, f"1 {why}")}
    need = named(decide(replace(GOOD, container="podman", probes=probes)), "subordinate user ids")
    assert need.status == "degraded" and why in need.found
    assert "setcap cap_setuid=ep /usr/bin/newuidmap" in need.fix
    outside = named(decide(replace(GOOD, probes=probes)), "subordinate user ids")
    assert "setcap" not in outside.fix
