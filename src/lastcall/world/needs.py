"""What a cluster needs of the machine, whether it is there, and what to do where it is not.

`check` looks and judges; the judging (`decide`) is a pure function of what `probes.look` saw, so that every machine can
be had in a test. `lastcall doctor` shows all needs. `lastcall run` asks `first_missing` after a start has failed, never
before.
"""

import errno
from collections.abc import Callable, Mapping
from dataclasses import replace

from lastcall.world import cgroup_need, isolation
from lastcall.world.need import Need
from lastcall.world.probes import NAMESPACES, NOT_TRIED, Machine, Probe, look

MINIMUM_KERNEL = (5, 11)
"""The first Linux with overlayfs in unprivileged user namespaces."""

_TELLS_ENDS = (6, 15)
"""The first Linux that says how a process ended that another one started."""

_APPARMOR = "kernel.apparmor_restrict_unprivileged_userns"
_APPARMOR_PROFILE = (
    "printf 'abi <abi/4.0>,\\ninclude <tunables/global>\\nprofile lastcall %s flags=(unconfined) {\\n  userns,\\n}\\n' "
    '"$(realpath "$(command -v lastcall)")" | sudo tee /etc/apparmor.d/lastcall && '
    "sudo apparmor_parser -r /etc/apparmor.d/lastcall"
)
"""The form that Ubuntu gives programs which need user namespaces
(ubuntu.com/blog/ubuntu-23-10-restricted-unprivileged-user-namespaces). What the program starts keeps the profile."""
_CLONE = "kernel.unprivileged_userns_clone"
_MAX = "user.max_user_namespaces"


def check(more: Mapping[str, Probe] | None = None) -> list[Need]:
    """Judge all needs on this machine now. Takes about 0.1 s.

    `more` is what others tried, the runtime its control groups: `cgroups` with `v2: cpu memory pids`, or why not,
    `cgroup place` and `logout` (`cgroup_need`), and `cgroup hierarchies` with their names, or those in which there is
    no place and why. `files on disk` has the directory for what containers write, or why there is none.
    """
    machine = look()
    return decide(replace(machine, probes={**machine.probes, **(more or {})}))


def first_missing() -> Need | None:
    """Return the need that keeps a cluster from starting; None if nothing that we know of is missing."""
    return next((need for need in check() if need.status == "missing"), None)


def decide(machine: Machine) -> list[Need]:
    """Judge what was seen. The order is the order of causes: the first missing need explains those after it."""
    return [rule(machine) for rule in _RULES]


# -- rules -------------------------------------------------------------------------------------------------------------


def _kernel(machine: Machine) -> Need:
    name = "Linux kernel"
    version = kernel_version(machine.release)
    if version >= MINIMUM_KERNEL:
        return Need(name, "ok", machine.release)
    found = f"{machine.release} is older than {MINIMUM_KERNEL[0]}.{MINIMUM_KERNEL[1]}"
    if "microsoft" in machine.release.lower():
        return Need(name, "missing", f"{found} (WSL 1?)", fix="in Windows: wsl --set-version <distribution> 2")
    return Need(name, "missing", found, fix="install a newer kernel (Debian 12 and Ubuntu 22.04 have one)")


def _seccomp(machine: Machine) -> Need:
    name = "system calls"
    probe = machine.probes.get("clone3", NOT_TRIED)
    if probe.ok:
        return Need(name, "ok", "clone3 works" + (" behind a seccomp filter" if machine.seccomp == 2 else ""))
    if probe.errno in (errno.ENOSYS, errno.EPERM) and machine.seccomp == 2:
        found = f"a seccomp filter forbids clone3 ({probe.detail})"
        return Need(name, "missing", found, fix=_container_fix(machine))
    return Need(name, "missing", f"clone3 fails: {probe.detail}")


def _apparmor(machine: Machine) -> Need:
    name = "AppArmor"
    restricted = machine.sysctls.get(_APPARMOR, 0) != 0
    if not restricted:
        return Need(name, "ok", "does not restrict user namespaces")
    denied = [probe for key, probe in machine.probes.items() if key in _DENIED_BY_APPARMOR and _denied(probe)]
    if machine.uid == 0 or not denied:
        return Need(name, "ok", f"{_APPARMOR}=1, but this program may use user namespaces")
    return Need(
        name,
        "missing",
        f"{_APPARMOR}=1 keeps ordinary users' user namespaces from having any rights",
        fix=f"for lastcall alone (Ubuntu's form, untried): {_APPARMOR_PROFILE}; "
        f"or for every program: {_sysctl_fix(_APPARMOR, 0)}",
    )


def _user_namespaces(machine: Machine) -> Need:
    name = "user namespaces"
    probe = machine.probes.get("user namespace", NOT_TRIED)
    if probe.ok:
        return Need(name, "ok", "can be made" + ("" if machine.uid == 0 else " by an ordinary user"))
    if machine.sysctls.get(_CLONE) == 0 and machine.uid != 0:
        return Need(name, "missing", f"{_CLONE}=0 forbids them to ordinary users", fix=_sysctl_fix(_CLONE, 1))
    if machine.sysctls.get(_MAX) == 0:
        return Need(name, "missing", f"{_MAX}=0 forbids them", fix=_sysctl_fix(_MAX, 15000))
    if probe.errno == errno.ENOSPC:
        found = (
            f"no more of them may be made here ({_MAX}={machine.sysctls.get(_MAX, '?')}, or they are nested too deep)"
        )
        return Need(name, "missing", found, fix=_sysctl_fix(_MAX, 15000))
    if probe.errno == errno.EINVAL:
        found = f"this kernel has none ({probe.detail})"
        return Need(name, "missing", found, fix="boot a kernel built with CONFIG_USER_NS=y")
    if _denied(probe) and machine.seccomp == 2:
        found = f"a seccomp filter forbids them ({probe.detail})"
        return Need(name, "missing", found, fix=_container_fix(machine))
    if probe.errno == errno.EACCES:  # create_user_ns() itself answers EPERM (Linux kernel/user_namespace.c)
        return _forbidden_by_a_module(machine, name, probe)
    if probe is NOT_TRIED:
        return Need(name, "missing", "could not be tried, because of the above")
    return Need(name, "missing", f"cannot be made ({probe.detail}); in a chroot the kernel forbids them")


def _forbidden_by_a_module(machine: Machine, name: str, probe: Probe) -> Need:
    found = f"a security module forbids them to this program ({probe.detail})"
    if not (machine.app_armor and machine.label.endswith(" (enforce)")):
        return Need(name, "missing", found)
    profile = machine.label.removesuffix(" (enforce)")
    fix = "start lastcall from a program that this profile does not confine, or add to it the rule `userns,`"
    return Need(name, "missing", f"{found}, which AppArmor's profile {profile} confines", fix=fix)


def _other_namespaces(machine: Machine) -> Need:
    name = "namespaces"
    failed = {key: machine.probes.get(f"{key} namespace", NOT_TRIED) for key in NAMESPACES}
    failed = {key: probe for key, probe in failed.items() if not probe.ok}
    if not failed:
        return Need(name, "ok", ", ".join(NAMESPACES) + " can be made")
    if all(probe is NOT_TRIED for probe in failed.values()):
        return Need(name, "missing", "could not be tried, because of the above")
    zero = [f"user.max_{key}_namespaces" for key in failed if machine.sysctls.get(f"user.max_{key}_namespaces") == 0]
    if zero:
        settings = " ".join(f"{key}=15000" for key in zero)
        return Need(name, "missing", f"{', '.join(zero)} set to 0", fix=f"sudo sysctl -w {settings}")
    details = ", ".join(f"{key}: {probe.detail}" for key, probe in failed.items())
    fix = _container_fix(machine) if machine.seccomp == 2 else ""
    return Need(name, "missing", f"cannot be made ({details})", fix=fix)


def _host_name(machine: Machine) -> Need:
    return _simple(machine, "host name", "host name", "can be set in the cluster's namespace", "")


def _tmpfs(machine: Machine) -> Need:
    return _simple(machine, "tmpfs", "tmpfs mounts", "can be mounted", "")


def _overlay(machine: Machine) -> Need:
    return _simple(machine, "overlay", "overlayfs", "can be mounted, and written to", "sudo modprobe overlay")


def _proc(machine: Machine) -> Need:
    name = "mounting /proc"
    probe = machine.probes.get("proc", NOT_TRIED)
    if probe.ok or probe is NOT_TRIED or not (_denied(probe) and machine.proc_masks):
        return _simple(machine, "proc", name, "a new /proc can be mounted", "")
    masks = list(machine.proc_masks)
    shown = ", ".join(masks[:3]) + (f" and {len(masks) - 3} more" if len(masks) > 3 else "")
    fix = {
        "docker": "start the container with: docker run --security-opt systempaths=unconfined …",
        "podman": "start the container with: podman run --security-opt unmask=ALL …",
        "kubernetes": "securityContext.procMount: Unmasked in the Pod's container",
    }.get(machine.container, f"sudo umount {' '.join(masks)}")
    return Need(name, "missing", f"parts of /proc are hidden by mounts ({shown})", fix=fix)


def _veth(machine: Machine) -> Need:
    return _simple(machine, "veth", "veth links", "can be made", "sudo modprobe veth")


def _forwarding(machine: Machine) -> Need:
    return _simple(machine, "forwarding", "IP forwarding", "can be switched on in the cluster's network", "")


def _nftables(machine: Machine) -> Need:
    name = "nftables"
    probe = machine.probes.get("nftables", NOT_TRIED)
    if probe.ok:
        return Need(name, "ok", "tables can be made")
    lose = (
        "Services have no working cluster IP; Pods are reached by their own addresses only, NetworkPolicies are not "
        "enforced, and a Pod with NET_RAW can send from the address of another"
    )
    return Need(name, "degraded", probe.detail, lose, "sudo modprobe nf_tables")


def _subordinate_ids(machine: Machine) -> Need:
    name = "subordinate user ids"
    probe = machine.probes.get("user namespace", NOT_TRIED)
    ids, _, why = probe.detail.partition(" ")
    count = int(ids) if probe.ok and ids.isdecimal() else 0
    if count > 1:
        return Need(name, "ok", f"{count} ids" + ("" if machine.uid == 0 else " by newuidmap"))
    found = "only one user id" + (f": {why}" if why else "") if count else "could not be tried, because of the above"
    lose = (
        "files of containers have one owner; a change of owner or user is answered with success, but only a program "
        "started after it is the new user"
    )
    return Need(name, "degraded", found, lose, _subordinate_fix(why, machine.container))


def _subordinate_fix(why: str, container: str) -> str:
    install = "sudo apt-get install uidmap"
    ranges = "sudo usermod --add-subuids 100000-165535 --add-subgids 100000-165535 $USER"
    if "not installed" in why:
        return install
    if container and "_map failed: Operation not permitted" in why:
        # As root of a container without CAP_SYS_ADMIN a setuid newuidmap has no rights over the namespace; tried.
        return (
            "in the container's image: chmod u-s /usr/bin/newuidmap /usr/bin/newgidmap; setcap cap_setuid=ep "
            "/usr/bin/newuidmap; setcap cap_setgid=ep /usr/bin/newgidmap"
        )
    return ranges if "no range" in why else f"{install} && {ranges}"


def _files(machine: Machine) -> Need:
    name = "files of containers"
    probe = machine.probes.get("files on disk", NOT_TRIED)
    if probe.ok:
        return Need(name, "ok", f"on disk, below {probe.detail}")
    lose = (
        "what containers write counts as their memory: one with a memory limit can be OOMKilled where a node would "
        "write to its disk"
    )
    fix = "set XDG_DATA_HOME to a directory on a local disk (ext4, xfs or btrfs, 2 GiB free)"
    return Need(name, "degraded", f"in memory: {probe.detail}", lose, "" if probe is NOT_TRIED else fix)


def _ends(machine: Machine) -> Need:
    name = "ends of other containers"
    if kernel_version(machine.release) >= _TELLS_ENDS:
        return Need(name, "ok", "this kernel says how they ended (PIDFD_GET_INFO)")
    found = "unknown to this kernel (Linux 6.15 says it): lastcall trace takes exit codes from the Pod's status"
    return Need(name, "ok", found)


_RULES: tuple[Callable[[Machine], Need], ...] = (
    _kernel,
    _seccomp,
    _apparmor,
    _user_namespaces,
    _other_namespaces,
    _host_name,
    _tmpfs,
    _proc,
    _overlay,
    _veth,
    _forwarding,
    _nftables,
    _subordinate_ids,
    cgroup_need.limits,
    cgroup_need.node_sizes,
    _files,
    _ends,
    isolation.ids_of_pods,
    isolation.hierarchies,
    isolation.filters,
    isolation.privileges,
    isolation.app_armor,
)

# -- helpers -----------------------------------------------------------------------------------------------------------

_DENIED_BY_APPARMOR = ("user namespace", *(f"{name} namespace" for name in NAMESPACES), "tmpfs", "veth")


def _denied(probe: Probe) -> bool:
    return probe.errno in (errno.EPERM, errno.EACCES)


def _simple(machine: Machine, key: str, name: str, ok: str, module: str) -> Need:
    """A need without more to say than whether it works; `module` loads the kernel module for it."""
    probe = machine.probes.get(key, NOT_TRIED)
    if probe.ok:
        return Need(name, "ok", ok)
    if probe is NOT_TRIED:
        return Need(name, "missing", "could not be tried, because of the above")
    if module and probe.errno in (errno.ENODEV, errno.EOPNOTSUPP, errno.ENOENT):
        return Need(name, "missing", f"this kernel has not loaded it ({probe.detail})", fix=module)
    fix = _container_fix(machine) if _denied(probe) and (machine.container or machine.seccomp == 2) else ""
    return Need(name, "missing", probe.detail, fix=fix)


def _sysctl_fix(name: str, value: int) -> str:
    return f"sudo sysctl -w {name}={value}  (to keep it: echo {name}={value} | sudo tee /etc/sysctl.d/60-lastcall.conf)"


def _container_fix(machine: Machine) -> str:
    """How to start the container around us, so that it lets us work."""
    return {
        "docker": "start the container with: docker run --security-opt seccomp=unconfined "
        "--security-opt apparmor=unconfined --security-opt systempaths=unconfined …",
        "podman": "start the container with: podman run --security-opt seccomp=unconfined --security-opt unmask=ALL …",
        "kubernetes": "securityContext.seccompProfile.type: Unconfined in the Pod",
    }.get(machine.container, "run lastcall outside of the sandbox that set the filter")


def kernel_version(release: str) -> tuple[int, int]:
    """Parse a kernel's release: `6.1.0-18-amd64` → (6, 1); (0, 0) for what is not a version."""
    major, _, rest = release.partition(".")
    digits = ""
    for character in rest:
        if not character.isdigit():
            break
        digits += character
    return (int(major), int(digits)) if major.isdigit() and digits else (0, 0)
