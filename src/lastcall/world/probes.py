"""Tries, in short-lived children, what a cluster will need of this machine. Nothing is guessed from version numbers.

Each probe is the very call that the process tree makes later. A child does the trying, so that this process keeps its
namespaces, and everything tried ends with that child.
"""

# check: starts processes because a child tries what the machine allows

import errno
import json
import os
import select
import signal
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import field
from typing import NoReturn

from lastcall.world import linux, netlink, privileges
from lastcall.world.dataclass import dataclass
from lastcall.world.id_maps import try_id_mapped, write_id_maps

SECONDS = 30.0
"""How long one probe may take before it and those after it are given up: the kernel may have to load a module first."""

NAMESPACES = {
    "mnt": linux.CLONE_NEWNS,
    "pid": linux.CLONE_NEWPID,
    "net": linux.CLONE_NEWNET,
    "ipc": linux.CLONE_NEWIPC,
    "uts": linux.CLONE_NEWUTS,
    "cgroup": linux.CLONE_NEWCGROUP,
}
_PLACES = ("/tmp", "/mnt", "/var/tmp", "/opt", "/srv")  # noqa: S108 (only a place to mount on, in a namespace of its own)


@dataclass(frozen=True, slots=True)
class Probe:
    """What became of one try: `errno` 0 is success; `detail` is the kernel's words, or what was seen."""

    errno: int = 0
    detail: str = ""

    @property
    def ok(self) -> bool:
        return self.errno == 0


NOT_TRIED = Probe(errno.ECANCELED, "could not be tried")


@dataclass(frozen=True, slots=True)
class Machine:
    """What this machine says of itself, and what it let us do.

    `sysctls` holds only those that exist. `seccomp` is the mode in /proc/self/status (2: a filter). `container` is
    docker, podman, kubernetes or "". `cgroup_v1` says that version 1 hierarchies are mounted, `app_armor` that the
    kernel enforces it, `label` what a security module calls this process. `proc_masks` are mounts over parts of /proc.
    `probes` are by name; one that could not be tried, because something before it failed, is not there.
    """

    release: str
    uid: int
    sysctls: dict[str, int] = field(default_factory=dict)
    seccomp: int = 0
    container: str = ""
    proc_masks: tuple[str, ...] = ()
    cgroup_v1: bool = False
    app_armor: bool = False
    label: str = ""
    probes: dict[str, Probe] = field(default_factory=dict)


def look() -> Machine:
    """Read the settings and try everything. Takes about 0.1 s; raises nothing if the machine refuses something."""
    return Machine(
        release=os.uname().release,
        uid=os.getuid(),
        sysctls=_sysctls(),
        seccomp=_seccomp(),
        container=_container(),
        proc_masks=_proc_masks(),
        cgroup_v1=bool(_mounts_of("cgroup")),
        app_armor=_app_armor(),
        label=_label(),
        probes=_in_child(_try_everything),
    )


# -- settings ----------------------------------------------------------------------------------------------------------

_SYSCTLS = (
    "kernel.unprivileged_userns_clone",
    "kernel.apparmor_restrict_unprivileged_userns",
    "user.max_user_namespaces",
    *(f"user.max_{name}_namespaces" for name in NAMESPACES),
)


def _sysctls() -> dict[str, int]:
    found = {}
    for name in _SYSCTLS:
        with suppress(OSError, ValueError), open("/proc/sys/" + name.replace(".", "/")) as file:
            found[name] = int(file.read())
    return found


def _seccomp() -> int:
    with suppress(OSError, ValueError), open("/proc/self/status") as file:
        for line in file:
            if line.startswith("Seccomp:"):
                return int(line.split()[1])
    return 0


def _container() -> str:
    if os.path.exists("/run/.containerenv"):
        return "podman"
    if os.environ.get("KUBERNETES_SERVICE_HOST"):
        return "kubernetes"
    return "docker" if os.path.exists("/.dockerenv") else ""


def _app_armor() -> bool:
    """Source: kubelet pkg/security/apparmor/helpers.go, opencontainers/runc apparmor_linux.go."""
    with suppress(OSError), open("/sys/module/apparmor/parameters/enabled") as file:
        return file.read(1) == "Y"
    return False


def _label() -> str:
    """Return what AppArmor or SELinux calls this process: `firefox (enforce)`; "" without such a module."""
    with suppress(OSError), open("/proc/self/attr/current") as file:
        return file.read().strip("\0\n")
    return ""


def _proc_masks() -> tuple[str, ...]:
    masks = []
    with suppress(OSError), open("/proc/self/mountinfo") as file:
        for line in file:
            where = line.split()[4]
            # binfmt_misc is mounted on an empty directory made for it and hides nothing.
            if where.startswith("/proc/") and where != "/proc/sys/fs/binfmt_misc":
                masks.append(where)
    return tuple(dict.fromkeys(masks))


# -- running probes ----------------------------------------------------------------------------------------------------

_Report = Callable[[str, Probe], None]


def _in_child(work: Callable[[_Report], None]) -> dict[str, Probe]:
    """Run `work` in a forked child and collect what it reports; one that hangs or dies reports less."""
    read, write = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        os.close(read)
        _child(lambda: work(_reporter(write)))
    os.close(write)
    deadline = time.monotonic() + SECONDS
    data = b""
    while (left := deadline - time.monotonic()) > 0:
        if select.select([read], [], [], left)[0]:
            chunk = os.read(read, 65536)
            if not chunk:
                break
            data += chunk
            deadline = time.monotonic() + SECONDS
    os.close(read)
    os.kill(pid, signal.SIGKILL)  # it has closed the pipe and is ending, or it hangs
    os.waitpid(pid, 0)
    found = {}
    for line in data.splitlines():
        with suppress(ValueError):
            name, number, detail = json.loads(line)
            found[name] = Probe(number, detail)
    return found


def in_namespaces(work: Callable[[], str | None]) -> Probe:
    """Return what became of `work` in a child that is root of a user namespace and has a mount namespace of its own."""

    def report_on(report: _Report) -> None:
        _attempt(report, "work", work)

    def life(report: _Report) -> None:
        flags = linux.CLONE_NEWUSER | linux.CLONE_NEWNS
        with suppress(OSError):
            _in_namespaces(flags, lambda: report_on(report))

    return _in_child(life).get("work", NOT_TRIED)


def _reporter(write: int) -> _Report:
    def report(name: str, probe: Probe) -> None:
        os.write(write, json.dumps([name, probe.errno, probe.detail]).encode() + b"\n")

    return report


def _child(work: Callable[[], None]) -> NoReturn:
    """The life of a forked child: it dies with its parent, prints nothing, runs none of the parent's exit code."""
    code = 1
    try:
        linux.set_parent_death_signal(signal.SIGKILL)
        work()
        code = 0
    finally:
        os._exit(code)


def _attempt(report: _Report, name: str, action: Callable[[], str | None]) -> bool:
    report(name, Probe(errno.ETIMEDOUT, f"no answer within {SECONDS:g} s"))  # until there is one
    try:
        detail = action()
    except OSError as error:
        report(name, Probe(error.errno or errno.EIO, error.strerror or str(error)))
        return False
    report(name, Probe(0, detail or ""))
    return True


# -- the probes --------------------------------------------------------------------------------------------------------


def _try_everything(report: _Report) -> None:
    if not _attempt(report, "clone3", lambda: _in_namespaces(0)):
        return
    _attempt(report, "seccomp filter", _install_filter)
    if not _attempt(report, "user namespace", lambda: _in_namespaces(linux.CLONE_NEWUSER)):
        return
    flags = linux.CLONE_NEWUSER
    for name, flag in NAMESPACES.items():
        if _attempt(report, f"{name} namespace", lambda flag=flag: _in_namespaces(linux.CLONE_NEWUSER | flag)):  # type: ignore[misc]
            flags |= flag
    with suppress(OSError):
        _in_namespaces(flags, lambda: _try_inside(report, flags))


def _install_filter() -> None:
    """In a child, because it stays: a filter that allows everything."""
    pid = os.fork()
    if pid == 0:
        code = errno.EIO
        try:
            privileges.set_no_new_privs()
            privileges.install_seccomp_filter(_ALLOW_EVERYTHING)
            code = 0
        except OSError as error:
            code = error.errno or code
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    if code := os.waitstatus_to_exitcode(status):
        raise OSError(code, os.strerror(code))


_ALLOW_EVERYTHING = struct.pack("=HBBI", 0x06, 0, 0, 0x7FFF_0000)  # BPF_RET SECCOMP_RET_ALLOW


def _in_namespaces(flags: int, work: Callable[[], None] | None = None) -> str:
    """Clone a child into new namespaces with its ids mapped, as front does.

    Answers the number of mapped ids and, after a blank, why there are no more.
    """
    go_read, go_write = os.pipe2(os.O_CLOEXEC)
    pid = linux.clone3(flags)
    if pid == 0:
        os.close(go_write)

        def life() -> None:
            if os.read(go_read, 1) and work is not None:
                work()

        _child(life)
    os.close(go_read)
    try:
        ids = "0"
        if flags & linux.CLONE_NEWUSER:
            maps = write_id_maps(pid, os.getuid(), os.getgid())
            ids = f"{maps.uids} {maps.why}".strip()
        os.write(go_write, b"g")
    finally:
        os.close(go_write)
        os.waitpid(pid, 0)
    return ids


def _try_inside(report: _Report, flags: int) -> None:
    """In the cluster's namespaces: the name, mounts and links it needs."""
    if flags & linux.CLONE_NEWUTS:
        _attempt(report, "host name", lambda: linux.sethostname("probe"))
    if flags & linux.CLONE_NEWNET:
        _attempt(report, "veth", _make_veth)
        _attempt(report, "nftables", _make_table)
    if not flags & linux.CLONE_NEWNS:
        return
    place = next((path for path in _PLACES if os.path.isdir(path)), "/")
    if not _attempt(report, "tmpfs", lambda: _mount_tmpfs(place)):
        return
    _attempt(report, "overlay", lambda: _mount_overlay(place))
    proc = "/proc"
    if flags & linux.CLONE_NEWPID:
        proc = f"{place}/proc"
        if not _attempt(report, "proc", lambda: _mount_proc(proc)):
            return
        _attempt(report, "forwarding", lambda: _set_forwarding(proc))
    _attempt(report, "id-mapped mount", lambda: try_id_mapped(place, proc))


def _make_veth() -> None:
    linux.bring_up_loopback()
    other = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        linux.unshare(linux.CLONE_NEWNET)
        with netlink.NetlinkSocket() as kernel:
            ours, theirs = bytes([2, 0, 0, 0, 0, 1]), bytes([2, 0, 0, 0, 0, 2])
            kernel.transact([netlink.new_veth("probe", 1000, ours, "eth0", 500, theirs, other)])
    finally:
        os.close(other)


def _make_table() -> None:
    with netlink.NetlinkSocket(netlink.NETLINK_NETFILTER) as kernel:
        kernel.transact(netlink.nftables_table("lastcall_probe"), acknowledged=1)


def _mount_tmpfs(place: str) -> None:
    linux.mount("none", "/", None, linux.MS_REC | linux.MS_PRIVATE)
    linux.mount("probe", place, "tmpfs", 0, "mode=755,size=1m")
    for name in ("lower", "upper", "work", "merged", "proc"):
        os.mkdir(f"{place}/{name}")


def _mount_overlay(place: str) -> None:
    directories = f"lowerdir={place}/lower,upperdir={place}/upper,workdir={place}/work"
    linux.mount("probe", f"{place}/merged", "overlay", 0, directories)
    os.mkdir(f"{place}/merged/written")


def _mount_proc(place: str) -> None:
    linux.mount("proc", place, "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)


def _set_forwarding(proc: str) -> None:
    with open(f"{proc}/sys/net/ipv4/ip_forward", "w") as file:
        file.write("1")


def _mounts_of(kind: str) -> list[str]:
    """Where file systems of a kind are mounted."""
    found = []
    with suppress(OSError), open("/proc/self/mountinfo") as file:
        for line in file:
            before, _, after = line.partition(" - ")
            if after.startswith(f"{kind} "):
                found.append(before.split()[4])
    return found
