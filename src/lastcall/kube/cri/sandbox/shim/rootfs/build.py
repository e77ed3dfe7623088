"""The file system of a container, built by the child in its own mount namespace.

Nothing that comes from an image or a manifest is ever looked up by a plain path: every target is opened inside the new
root (`confined.py`), and detached mounts are moved onto the opened descriptors (`trees.py`). Source of the mount list:
containerd pkg/oci/mounts.go, runc libcontainer/rootfs_linux.go.
"""

from __future__ import annotations

import errno
import os

from lastcall.kube.cri.sandbox.shim import idmap
from lastcall.kube.cri.sandbox.shim.rootfs.confined import SetupError, words
from lastcall.kube.cri.sandbox.shim.rootfs.kernel import mount_dev, mount_kernel
from lastcall.kube.cri.sandbox.shim.rootfs.overlay import directories_of_layers, mount_rootfs
from lastcall.kube.cri.sandbox.shim.rootfs.protect import make_readonly, mask, remount_readonly
from lastcall.kube.cri.sandbox.shim.rootfs.volumes import bind_mount, depth, mount_image
from lastcall.world import linux, privileges

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def build(spec: dict[str, Any]) -> None:
    """Build the file system that `spec` describes and make it this process's root. Raises OSError, SetupError.

    With `users` it is that of a Pod with a range of ids of its own: what is made here is its root's.
    """
    linux.mount("none", "/", None, linux.MS_REC | linux.MS_SLAVE)
    users: idmap.Users | None = spec.get("users")
    if users is not None:
        privileges.set_file_owner(users.first, users.first)
        layers = [*spec["rootfs"]["lowerdirs"], *(path for each in spec["mounts"] for path in each.get("image") or ())]
        for directory in directories_of_layers({**spec["rootfs"], "lowerdirs": layers}):
            idmap.cover(directory, users)
    root = mount_rootfs(spec["rootfs"])
    mount_kernel(root, spec)
    mount_dev(root, spec)
    proc_device = os.stat(root.open("/proc")).st_dev
    for mount in sorted(spec["mounts"], key=lambda mount: depth(mount["target"])):
        if mount.get("image"):
            mount_image(root, mount, os.path.dirname(spec["rootfs"]["upper"]))
        else:
            bind_mount(root, mount, proc_device, users, spec.get("ownersFd", -1))
    if not spec["privileged"]:
        for path in spec["readonlyPaths"]:
            make_readonly(root, path)
        for path in spec["maskedPaths"]:
            mask(root, path)
    os.fchdir(root.fd)
    linux.pivot_root(".", ".")
    linux.umount2(".", linux.MNT_DETACH)
    os.chdir("/")
    _make_working_directory(spec["cwd"] or "/")
    if spec["rootfs"]["readonly"]:
        remount_readonly("/")


def _make_working_directory(path: str) -> None:
    """Make what is missing of it, also in a root that is read-only afterwards. Raises SetupError.

    Source: runc libcontainer/rootfs_linux.go:prepareRootfs, whose words these are.
    """
    try:
        os.makedirs(path, 0o755, exist_ok=True)
    except OSError as error:
        code = errno.ENOTDIR if error.errno == errno.EEXIST else error.errno
        reason = words(OSError(code, ""))
        raise SetupError(f"error during container init: mkdir {path}: {reason}") from error
