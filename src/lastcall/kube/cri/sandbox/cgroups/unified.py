"""The group of version 2 that this process is in: what is known of it, and how it hands its controllers down.

Standard library only.
"""

from __future__ import annotations

import contextlib
import os

from lastcall.kube.cri.sandbox.cgroups import files, v2
from lastcall.kube.cri.sandbox.cgroups.choice import Group, Seen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_LEAF = "lastcall"
_NEEDED = ("memory", "pids")


def look(point: str, own: str, ours: Sequence[int], *, systemd: bool, refused: str = "") -> Seen:
    """Return what `choice.choose` asks. `point` is the mount of version 2, `own` this process's group, "" if not seen.

    `ours` are the processes that may be in that group, and would move.
    """
    have = files.read(f"{own}/cgroup.controllers").split() if own else []
    is_root = not os.path.exists(f"{own}/cgroup.type")
    members = {int(word) for word in files.read(f"{own}/cgroup.procs").split() if word.isdecimal()}
    return Seen(
        [_group(path) for path in _upwards(point, own)],
        missing=[controller for controller in _NEEDED if controller not in have],
        alone=is_root or members <= {*ours},
        limits_here=all(each in files.read(f"{point}/cgroup.controllers").split() for each in _NEEDED),
        systemd=systemd,
        refused=refused,
    )


def own_processes() -> list[int]:
    """Return this process, and the one that forked it into the background (`lastcall up --detach`) and waits for it."""
    own, parent = os.getpid(), os.getppid()
    command = files.read(f"/proc/{own}/cmdline")
    return [own, parent] if command and command == files.read(f"/proc/{parent}/cmdline") else [own]


def move_to_leaf(own: str, pids: Sequence[int]) -> str:
    """Make a group hand its controllers down, whose only processes are `pids`: they go one level below.

    Return why not.
    """
    try:
        if os.path.exists(f"{own}/cgroup.type"):  # the root may have processes
            with contextlib.suppress(FileExistsError):
                os.mkdir(f"{own}/{_LEAF}", 0o755)
            for pid in pids:
                files.write(f"{own}/{_LEAF}/cgroup.procs", str(pid))
        v2.enable_controllers(own)
    except OSError as error:
        come_back(own, pids)
        return f"cgroup v2: {error.strerror or error}"
    enabled = files.read(f"{own}/cgroup.subtree_control").split()
    missing = [controller for controller in _NEEDED if controller not in enabled]
    if missing:
        come_back(own, pids)
        return f"cgroup v2: {' and '.join(missing)} cannot be handed down from here"
    return ""


def come_back(own: str, pids: Sequence[int]) -> None:
    """Undo `move_to_leaf`, where the kernel lets us: first no group below may want the controllers."""
    if not os.path.exists(f"{own}/{_LEAF}"):
        return
    for controller in files.read(f"{own}/cgroup.subtree_control").split():
        with contextlib.suppress(OSError):
            files.write(f"{own}/cgroup.subtree_control", f"-{controller}")
    for pid in pids:
        with contextlib.suppress(OSError):
            files.write(f"{own}/cgroup.procs", str(pid))
    with contextlib.suppress(OSError):
        os.rmdir(f"{own}/{_LEAF}")


def _upwards(point: str, own: str) -> list[str]:
    if not own:
        return []
    found = [own]
    while found[-1] not in (point, "/", ""):
        found.append(os.path.dirname(found[-1]))
    return found


def _group(path: str) -> Group:
    enabled = files.read(f"{path}/cgroup.subtree_control").split()
    return Group(
        path,
        delegated=any(_attribute(path, name) == b"1" for name in ("user.delegate", "trusted.delegate")),
        hands_down=all(controller in enabled for controller in _NEEDED),
        writable=is_writable(path),
    )


def is_writable(directory: str) -> bool:
    """Return whether this process may make groups there, and put processes into them."""
    return os.access(directory, os.W_OK) and os.access(f"{directory}/cgroup.procs", os.W_OK)


def _attribute(path: str, name: str) -> bytes:
    try:
        return os.getxattr(path, name)
    except OSError:
        return b""
