"""What keeps containers from the machine and from each other here, layer by layer. Pure, as the rules of `needs.py`."""

import errno

from lastcall.world.need import Need
from lastcall.world.probes import NOT_TRIED, Machine

_IDS_OF_A_POD = 65_536


def ids_of_pods(machine: Machine) -> Need:
    """Judge what keeps a container's root from being root of the machine, and whether `hostUsers: false` works."""
    name = "user ids of Pods"
    probe = machine.probes.get("id-mapped mount", NOT_TRIED)
    if not probe.ok:
        tried = "could not be tried, because of the above"
        found = tried if probe is NOT_TRIED else f"mounts of tmpfs cannot be idmapped ({probe.detail})"
        lose = "Pods with hostUsers: false"
        if machine.uid == 0:
            lose = f"a container's root is root of the machine, in namespaces; {lose}"
        # EINVAL: this kernel's tmpfs cannot (mount_setattr(2)). Whatever else refused it is not known.
        return Need(name, "degraded", found, lose, "boot Linux 6.3 or newer" if probe.errno == errno.EINVAL else "")
    if machine.uid == 0:
        exceptions = "privileged ones, and those with hostPath volumes or the machine's namespaces"
        return Need(name, "ok", f"every Pod has its own, but for {exceptions}, whose root is the machine's")
    ids = machine.probes["user namespace"].detail.partition(" ")[0]
    pods = max(0, (int(ids) if ids.isdecimal() else 0) - _IDS_OF_A_POD) // _IDS_OF_A_POD
    if pods:
        return Need(name, "ok", f"enough for {pods} with hostUsers: false; the others share this user's")
    return Need(name, "ok", f"Pods share this user's; hostUsers: false needs {2 * _IDS_OF_A_POD} subordinate ids")


def hierarchies(machine: Machine) -> Need:
    """Judge the cgroup hierarchies. Without a group of its own a container is in this program's, and can mount it."""
    name = "cgroups of containers"
    probe = machine.probes.get("cgroup hierarchies", NOT_TRIED)
    if probe.ok:
        return Need(name, "ok", f"of their own, as the root that they see, in {probe.detail or 'no hierarchy'}")
    if probe is NOT_TRIED:
        return Need(name, "degraded", probe.detail, "unknown")
    lose = "a container without a seccomp filter can mount these hierarchies and see all of their groups"
    if machine.uid == 0:
        lose += ", and write those that belong to root"
    fix = "mount them below /sys/fs/cgroup" if machine.uid == 0 and probe.errno == errno.ENOENT else ""
    return Need(name, "degraded", f"shared with this program in {probe.detail}", lose, fix)


def filters(machine: Machine) -> Need:
    name = "seccomp filters"
    probe = machine.probes.get("seccomp filter", NOT_TRIED)
    if probe.ok:
        return Need(name, "ok", "RuntimeDefault, where a container asks for no other and is not privileged")
    lose = (
        "containers have no filter; seccompProfile RuntimeDefault and Localhost, and images that drop privileges with "
        "a single user id"
    )
    if probe is NOT_TRIED:
        return Need(name, "degraded", "could not be tried, because of the above", lose)
    fix = "boot a kernel built with CONFIG_SECCOMP_FILTER=y" if probe.errno == errno.EINVAL else ""
    return Need(name, "degraded", f"cannot be installed ({probe.detail})", lose, fix)


def privileges(machine: Machine) -> Need:
    """Judge capabilities, no_new_privs and the machine's settings: the same everywhere, except that root differs."""
    kept = "14 capabilities by default, of the cluster's user namespace; no_new_privs as asked for"
    settings = "read-only in containers"
    if machine.uid == 0:
        settings += " but for privileged ones, which write them as root of the machine"
    else:
        settings += ", and root's for privileged ones too"
    return Need("privileges", "ok", f"{kept}; /proc/sys and /sys {settings}")


def app_armor(machine: Machine) -> Need:
    name = "AppArmor profiles"
    if not machine.app_armor:
        return Need(name, "ok", "this kernel has none; a Pod that demands one is rejected, as anywhere")
    lose = "Pods that demand a profile are rejected, the others run without one (Kubernetes gives RuntimeDefault)"
    return Need(name, "degraded", "this kernel has AppArmor, but lastcall loads no profiles", lose)
