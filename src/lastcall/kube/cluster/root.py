"""The cluster's own view of the file system.

The mount namespace gets a new root: a small tmpfs with every entry of the host's root bind-mounted, a fresh `/proc` for
the new PID namespace, and `/lastcall`, a size-capped tmpfs for what the cluster writes. Making a new root is what
lets an ordinary user have a directory of its own there without one on the host. What containers write is in a
directory of the host's disk, mounted below it, where there is one that can hold it (`scratch/`): in a tmpfs it would
count as their memory.

What a Pod can fill is not where the cluster keeps its books: the store and the runtime's records have a tmpfs of their
own, beside that of `state_size`, or a directory of the host. The directories of claims are Pods' again.
"""

import os
import stat

from lastcall.kube.cluster.layout import DISK_DIR, STATE_DIR, NodeLayout
from lastcall.kube.cluster.options import DURABLE_DIR, LOCAL_PATH_DIR, STATIC_PODS_DIR, STORE_BYTES
from lastcall.kube.cluster.scratch.directory import Scratch
from lastcall.world import linux

_CANDIDATES = ("/tmp", "/mnt", "/var/tmp", "/opt", "/srv")  # noqa: S108 (only a place to mount on)
_OLD = ".host"
_SHM = "/dev/shm"  # noqa: S108 (where it is)

_SHIM_STATE_SIZE = "16m"
_RECORDS_BYTES = 64 << 20
"""For the runtime's records, some 12 kB a container, beside the store."""


_PLUGIN_STATE = "/var/lib/cni"
"""Where CNI plugins keep what they know of networks, host-local its addresses."""


def make_root(
    state_size: str, durable: str = "", static_pods: str = "", *,
    private_plugins: bool = False, shared: str = "", scratch: Scratch | None = None, claims_in_memory: bool = False,
) -> str:  # fmt: skip
    """Give this process's (already private) mount namespace its new root. Return why nothing is on disk, "" if it is.

    Raises OSError.

    `durable` is the host's directory that becomes `DURABLE_DIR`; without one that is a tmpfs of its own.
    `static_pods` is the host's directory that is to be seen read-only on `STATIC_PODS_DIR`. With `private_plugins` what
    CNI plugins write is the cluster's own and not the host's. `shared` is the host's directory that becomes
    `STATE_DIR`, where a container runtime outside is to see what is in it; "" is a tmpfs. `scratch` is what becomes
    `DISK_DIR`, where the directories of claims are too, unless they are to be in memory.
    """
    linux.mount("none", "/", None, linux.MS_REC | linux.MS_PRIVATE)
    place = next(path for path in _CANDIDATES if os.path.isdir(path))
    linux.mount("lastcall", place, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=755,size=1m")
    os.mkdir(f"{place}/{_OLD}")
    linux.pivot_root(place, f"{place}/{_OLD}")
    os.chdir("/")
    for entry in sorted(os.listdir(f"/{_OLD}")):
        _bring_in(f"/{_OLD}/{entry}", f"/{entry}")
    os.mkdir(STATE_DIR, 0o755)
    if shared:
        linux.mount(f"/{_OLD}{shared}", STATE_DIR, None, linux.MS_BIND)
    else:
        linux.mount("lastcall", STATE_DIR, "tmpfs", 0, f"mode=755,size={state_size}")
    os.mkdir(DISK_DIR, 0o755)
    why = scratch.mount(f"/{_OLD}", DISK_DIR) if scratch is not None else "there is no directory for it"
    os.mkdir(DURABLE_DIR, 0o700)
    if durable:
        linux.mount(f"/{_OLD}{durable}", DURABLE_DIR, None, linux.MS_BIND | linux.MS_REC)
    else:
        size = STORE_BYTES + STORE_BYTES // 4 + _RECORDS_BYTES
        flags = linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC
        linux.mount("lastcall-durable", DURABLE_DIR, "tmpfs", flags, f"mode=700,size={size}")
        _make_claims(STATE_DIR if why or claims_in_memory else DISK_DIR)
    if static_pods:
        _bind_readonly(f"/{_OLD}{static_pods}", STATIC_PODS_DIR)
    if os.path.isdir(_SHM):
        # A node's /dev/shm goes with its IPC namespace, which is the cluster's own; Pods with hostIPC get it.
        linux.mount("shm", _SHM, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=1777")
    if private_plugins:
        _make_private(_PLUGIN_STATE)
    linux.umount2(f"/{_OLD}", linux.MNT_DETACH)
    os.rmdir(f"/{_OLD}")
    return why


def make_directories(layout: NodeLayout) -> None:
    """Make the directories that a node and its shim begin with. Raises OSError."""
    os.makedirs(layout.directory, 0o755, exist_ok=True)
    if has_disk():
        for directory, place in layout.on_disk:
            os.makedirs(directory, 0o755)
            os.mkdir(place, 0o755)
            linux.mount(directory, place, None, linux.MS_BIND)
    # Its own file system: a Pod that fills the other one must not keep the shim from recording how it ended.
    os.mkdir(layout.shim_state, 0o700)
    flags = linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC
    linux.mount("lastcall-shim", layout.shim_state, "tmpfs", flags, f"mode=700,size={_SHIM_STATE_SIZE}")


def has_disk() -> bool:
    """Return True if what containers write is on the host's disk. Asked inside of the cluster."""
    return os.stat(DISK_DIR).st_dev != os.stat(STATE_DIR).st_dev


def _make_claims(parent: str) -> None:
    own = f"{parent}/claims"
    for path in (own, LOCAL_PATH_DIR):
        os.mkdir(path, 0o700)
    linux.mount(own, LOCAL_PATH_DIR, None, linux.MS_BIND)


def _make_private(path: str) -> None:
    """An empty directory of the cluster's own, also where the host has none and lets nobody make one."""
    if not os.path.isdir(path):
        _replace(os.path.dirname(path))
        os.mkdir(path, 0o755)
    own = f"{STATE_DIR}/cni-state"
    os.mkdir(own, 0o755)
    linux.mount(own, path, None, linux.MS_BIND)


def _replace(directory: str) -> None:
    """Mount a tmpfs in the place of a directory of the host, with all that is in it now."""
    directory = os.path.realpath(directory)
    old = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        names = sorted(os.listdir(directory))
        linux.mount("lastcall", directory, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=755,size=1m")
        for name in names:
            _bring_in(f"/proc/self/fd/{old}/{name}", f"{directory}/{name}")
    finally:
        os.close(old)


def _bind_readonly(source: str, target: str) -> None:
    """In a user namespace the flags that the source is mounted with may not be dropped."""
    os.mkdir(target, 0o700)
    linux.mount(source, target, None, linux.MS_BIND | linux.MS_REC)
    have = os.statvfs(target).f_flag
    keep = linux.MS_NOATIME if have & os.ST_NOATIME else 0
    keep |= linux.MS_RELATIME if have & os.ST_RELATIME else 0
    flags = linux.MS_RDONLY | linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC
    linux.mount("none", target, None, linux.MS_REMOUNT | linux.MS_BIND | flags | keep)


def _bring_in(source: str, target: str) -> None:
    mode = os.lstat(source).st_mode
    if stat.S_ISLNK(mode):
        os.symlink(os.readlink(source), target)
    elif target == "/proc":
        os.mkdir(target)
        linux.mount("proc", target, "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
    elif stat.S_ISDIR(mode):
        os.mkdir(target)
        linux.mount(source, target, None, linux.MS_BIND | linux.MS_REC)
    elif stat.S_ISREG(mode):
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o600))
        linux.mount(source, target, None, linux.MS_BIND)
