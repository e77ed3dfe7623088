"""What is mounted into a container from outside: volumes, images as volumes."""

from __future__ import annotations

import contextlib
import errno
import os
import stat

from lastcall.kube.cri.sandbox.shim import idmap
from lastcall.kube.cri.sandbox.shim.rootfs.confined import Root, SetupError, words
from lastcall.kube.cri.sandbox.shim.rootfs.overlay import mount_overlay
from lastcall.kube.cri.sandbox.shim.rootfs.protect import attach_readonly
from lastcall.kube.cri.sandbox.shim.rootfs.trees import attach, clone_tree
from lastcall.world import linux

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _NotMapped(SetupError):
    """A volume of a Pod with user ids of its own, on a file system whose owners cannot be mapped."""


def bind_mount(
    root: Root, mount: dict[str, Any], proc_device: int, users: idmap.Users | None = None, owners_fd: int = -1
) -> None:
    """Mount a volume or a file of the node. `owners_fd` as in `idmap.map_owners`. Raises SetupError."""
    source, target = mount["source"], os.path.normpath("/" + mount["target"].lstrip("/"))
    try:
        try:
            is_directory = stat.S_ISDIR(os.stat(source).st_mode)
        except OSError as error:
            raise SetupError(f"stat {source}: {words(error)}") from error
        tree = clone_tree(source)
        if users is not None and mount.get("ownersMapped"):
            _map_owners(tree, source, users, owners_fd)
        place = _mount_point(root, source, target, is_directory=is_directory)
        if target == "/" or os.stat(place).st_dev == proc_device:
            raise SetupError(f"{target!r} cannot be mounted because it is inside /proc or the root itself")
        if mount["readonly"]:
            attach_readonly(root, target, tree, place)
        else:
            attach(tree, place)
    except _NotMapped:
        raise
    except (OSError, SetupError) as error:
        reason = words(error) if isinstance(error, OSError) else str(error)
        raise SetupError(
            f'error during container init: error mounting "{source}" to rootfs at "{target}": {reason}'
        ) from error


def _mount_point(root: Root, source: str, target: str, *, is_directory: bool) -> int:
    """Open the place for a mount and make it where it is missing. Raises SetupError in the words of runc.

    Source: runc libcontainer/rootfs_linux.go:createMountpoint, utils.go:mountViaFD.
    """
    try:
        place = root.directory(target) if is_directory else root.file(target)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.close(root.open(target))
            raise SetupError(f"mount {source}:{target}: {words(error)}") from error  # it is there, and is a file
        raise SetupError(f"{'mkdir' if is_directory else 'open'} {target}: {words(error)}") from error
    if not is_directory and stat.S_ISDIR(os.fstat(place).st_mode):
        os.close(place)
        raise SetupError(f"mount {source}:{target}: {os.strerror(errno.ENOTDIR).lower()}")
    return place


def _map_owners(tree: int, source: str, users: idmap.Users, owners_fd: int) -> None:
    """Raises _NotMapped in the words of runc libcontainer/mount_linux.go:mountFd."""
    try:
        idmap.map_owners(tree, users, owners_fd)
    except OSError as error:
        os.close(tree)
        hint = ""
        if error.errno == errno.EINVAL:
            hint = " (maybe the filesystem used doesn't support idmap mounts on this kernel?)"
        elif error.errno == errno.EPERM:
            hint = " (the host's own file systems cannot be mapped from within a cluster: use a volume of the cluster)"
        raise _NotMapped(
            "error during container init: failed to fulfil mount request: "
            f"failed to set MOUNT_ATTR_IDMAP on {source}: {words(error)}{hint}"
        ) from error


def mount_image(root: Root, mount: dict[str, Any], directory: str) -> None:
    """Mount what an image holds, read-only; of more than one layer with a mount point below `directory`.

    `sub` is a path in the image; a link in it leads to somewhere else in the image.
    """
    target = os.path.normpath("/" + mount["target"].lstrip("/"))
    try:
        source = mount["image"][0]
        if len(mount["image"]) > 1:
            source = os.path.join(directory, "image", str(depth(target)) + target.replace("/", "_"))
            os.makedirs(source, 0o700, exist_ok=True)
            mount_overlay(mount["image"], source, os.path.join(directory, "links" + target.replace("/", "_")))
        held = Root(os.open(source, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC))
        try:
            place = held.open(mount["sub"] or ".")
            try:
                flags = linux.OPEN_TREE_CLONE | linux.OPEN_TREE_CLOEXEC | linux.AT_RECURSIVE | linux.AT_EMPTY_PATH
                tree = linux.open_tree(place, "", flags)
                is_directory = stat.S_ISDIR(os.fstat(place).st_mode)
            finally:
                os.close(place)
        finally:
            os.close(held.fd)
        attach_readonly(root, target, tree, root.directory(target) if is_directory else root.file(target))
    except OSError as error:
        what = f"{mount['source']}/{mount['sub']}" if mount["sub"] else mount["source"]
        raise SetupError(
            f'error during container init: error mounting image "{what}" to rootfs at "{target}": {words(error)}'
        ) from error


def depth(path: str) -> int:
    return len([part for part in path.split("/") if part])
