"""What the kernel provides: /proc, /sys with the control groups, and /dev."""

from __future__ import annotations

import contextlib
import os

from lastcall.kube.cri.sandbox.shim.rootfs.confined import Root, create_file
from lastcall.kube.cri.sandbox.shim.rootfs.protect import attach_readonly
from lastcall.kube.cri.sandbox.shim.rootfs.trees import attach, clone_tree
from lastcall.world import linux

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NO_EXTRAS = linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_LINKS = (
    ("/proc/self/fd", "fd"),
    ("/proc/self/fd/0", "stdin"),
    ("/proc/self/fd/1", "stdout"),
    ("/proc/self/fd/2", "stderr"),
    ("pts/ptmx", "ptmx"),
)


def mount_kernel(root: Root, spec: dict[str, Any]) -> None:
    _mount_at(root, "/proc", "proc", _NO_EXTRAS)
    flags = _NO_EXTRAS | (0 if spec["privileged"] else linux.MS_RDONLY)
    try:
        _mount_at(root, "/sys", "sysfs", flags)
    except PermissionError:
        # Forbidden where something lies over the machine's own /sys: the read-only view of that, or none.
        with contextlib.suppress(OSError):
            attach_readonly(root, "/sys", clone_tree("/sys"), root.directory("/sys"))
        return
    view = spec.get("cgroupView")
    if view:
        _mount_groups(root, view, readonly=not spec["privileged"])
        return
    with contextlib.suppress(OSError):
        _mount_at(root, "/sys/fs/cgroup", "cgroup2", flags)


def _mount_groups(root: Root, view: list[tuple[str, str]], *, readonly: bool) -> None:
    """Version 1 as runc shows it: the container's group of each hierarchy, side by side.

    Source: runc libcontainer/rootfs_linux.go:mountCgroupV1. Without mount_setattr (Linux < 5.12) there is nothing.
    """
    place = "/sys/fs/cgroup"
    try:
        _mount_at(root, place, "tmpfs", _NO_EXTRAS, "mode=755,size=64k")
        groups = root.open(place, os.O_PATH | os.O_DIRECTORY)
        try:
            for name, group in view:
                _show_group(groups, name, group, readonly=readonly)
            if readonly:
                again = linux.MS_REMOUNT | linux.MS_BIND | linux.MS_RDONLY | _NO_EXTRAS
                linux.mount("none", f"/proc/self/fd/{groups}", None, again)
        finally:
            os.close(groups)
    except OSError:
        # A container runs without the sight of its limits, too; nothing that is half done stays.
        _unmount_groups(root, place)


def _show_group(groups: int, name: str, group: str, *, readonly: bool) -> None:
    attributes = linux.MOUNT_ATTR_NOSUID | linux.MOUNT_ATTR_NODEV | linux.MOUNT_ATTR_NOEXEC
    if readonly:
        attributes |= linux.MOUNT_ATTR_RDONLY
    tree = clone_tree(group, recursive=False)
    try:
        linux.mount_setattr(tree, "", linux.AT_EMPTY_PATH, attributes)
        os.mkdir(name, 0o755, dir_fd=groups)
        target = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=groups)
    except OSError:
        os.close(tree)
        raise
    attach(tree, target)
    for part in name.split(",") if "," in name else ():
        os.symlink(name, part, dir_fd=groups)


def _unmount_groups(root: Root, place: str) -> None:
    with contextlib.suppress(OSError):
        fd = root.directory(place)
        try:
            linux.umount2(f"/proc/self/fd/{fd}", linux.MNT_DETACH)
        finally:
            os.close(fd)


def _mount_at(root: Root, path: str, fstype: str, flags: int, options: str | None = None) -> None:
    fd = root.directory(path)
    try:
        linux.mount(fstype, f"/proc/self/fd/{fd}", fstype, flags, options)
    except OSError as error:
        raise OSError(error.errno, f"mount {fstype} on {path}: {os.strerror(error.errno or 0)}") from error
    finally:
        os.close(fd)


def mount_dev(root: Root, spec: dict[str, Any]) -> None:
    """Mount a fresh /dev. User namespaces can make no device nodes: they are the machine's own, bound one by one."""
    _mount_at(root, "/dev", "tmpfs", linux.MS_NOSUID, "mode=755,size=65536k")
    dev = root.open("/dev", os.O_PATH | os.O_DIRECTORY)
    for name in _DEVICES:
        attach(clone_tree(f"/dev/{name}", recursive=False), create_file(name, dev))
    for destination, name in _LINKS:
        os.symlink(destination, name, dir_fd=dev)
    if spec.get("helper"):
        fd = os.open(spec["helper"][0], os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o555, dir_fd=dev)
        os.write(fd, spec["helper"][1])
        os.close(fd)
    for name in ("pts", "shm", "mqueue"):
        os.mkdir(name, 0o755, dir_fd=dev)
    # gid=5 is what others mount it with; that group need not exist in the user namespace.
    _mount_at(root, "/dev/pts", "devpts", linux.MS_NOSUID | linux.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620")
    with contextlib.suppress(PermissionError):
        _mount_at(root, "/dev/mqueue", "mqueue", _NO_EXTRAS)
    if spec["shm"]:
        attach(clone_tree(spec["shm"]), root.open("/dev/shm", os.O_PATH | os.O_DIRECTORY))  # noqa: S108
    os.close(dev)
