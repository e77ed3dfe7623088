"""The cluster's own view of the file system.

The mount namespace gets a new root: a small tmpfs with every entry of the host's root bind-mounted, a fresh `/proc` for
the new PID namespace, and `/lastcall`, a size-capped tmpfs for everything the cluster writes. Making a new root is what
lets an ordinary user have a directory of its own there without one on the host.
"""

import os
import stat

from lastcall.cluster.options import STATE_DIR
from lastcall.world import linux

_CANDIDATES = ("/tmp", "/mnt", "/var/tmp", "/opt", "/srv")  # noqa: S108 (only a place to mount on)


def make_root(state_size: str) -> None:
    """Give this process's (already private) mount namespace its new root. Raises OSError."""
    linux.mount("none", "/", None, linux.MS_REC | linux.MS_PRIVATE)
    place = next(path for path in _CANDIDATES if os.path.isdir(path))
    # Opened before the new root hides one of them.
    entries = [(name, os.open(f"/{name}", os.O_PATH | os.O_NOFOLLOW)) for name in sorted(os.listdir("/"))]
    linux.mount("lastcall", place, "tmpfs", linux.MS_NOSUID | linux.MS_NODEV, "mode=755,size=1m")
    for name, fd in entries:
        _bind_entry(name, fd, f"{place}/{name}")
        os.close(fd)
    state = f"{place}{STATE_DIR}"
    os.mkdir(state, 0o755)
    linux.mount("lastcall", state, "tmpfs", 0, f"mode=755,size={state_size}")
    os.chdir(place)
    linux.pivot_root(".", ".")
    linux.umount2(".", linux.MNT_DETACH)
    os.chdir("/")


def _bind_entry(name: str, fd: int, target: str) -> None:
    mode = os.fstat(fd).st_mode
    source = f"/proc/self/fd/{fd}"
    if stat.S_ISLNK(mode):
        os.symlink(os.readlink("", dir_fd=fd), target)
    elif name == "proc":
        os.mkdir(target)
        linux.mount("proc", target, "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
    elif stat.S_ISDIR(mode):
        os.mkdir(target)
        linux.mount(source, target, None, linux.MS_BIND | linux.MS_REC)
    elif stat.S_ISREG(mode):
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY, 0o600))
        linux.mount(source, target, None, linux.MS_BIND)
