"""The file system of a container, built by the child in its own mount namespace.

Nothing that comes from an image or a manifest is ever looked up by a plain path: every target is opened with openat2
inside the new root (symbolic links resolve against it, magic links not at all), and detached mounts are moved onto the
opened descriptors. Source of the mount list: containerd pkg/oci/mounts.go, runc libcontainer/rootfs_linux.go.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat

from lastcall.cri.sandbox.shim import idmap
from lastcall.world import linux

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_CONFINED = linux.RESOLVE_IN_ROOT | linux.RESOLVE_NO_MAGICLINKS
_MOST_LINKS = 40
_OPTIONS_LIMIT = 4000  # mount(2) takes one page of options
_NO_EXTRAS = linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC
_OCTAL = re.compile(r"\\([0-7]{3})")  # how mountinfo writes a blank
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_LINKS = (
    ("/proc/self/fd", "fd"),
    ("/proc/self/fd/0", "stdin"),
    ("/proc/self/fd/1", "stdout"),
    ("/proc/self/fd/2", "stderr"),
    ("pts/ptmx", "ptmx"),
)


class SetupError(Exception):
    """The container cannot be set up; the text is for the user."""


class Root:
    """A directory that is the root of every lookup made through it."""

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def open(self, path: str, flags: int = os.O_PATH) -> int:
        """Open what is there. Raises OSError."""
        return linux.openat2(self.fd, path.lstrip("/") or ".", flags, _CONFINED)

    def directory(self, path: str, links: int = 0) -> int:
        """Open a directory and make what is missing of it. Raises OSError."""
        try:
            return self.open(path, os.O_PATH | os.O_DIRECTORY)
        except FileNotFoundError:
            link = self._make(path, links, lambda name, parent: os.mkdir(name, 0o755, dir_fd=parent))
            return self.directory(link, links + 1) if link else self.open(path, os.O_PATH | os.O_DIRECTORY)

    def file(self, path: str, links: int = 0) -> int:
        """Open a file; an empty one is made where there is nothing. Raises OSError."""
        try:
            return self.open(path)
        except FileNotFoundError:
            link = self._make(path, links, _create_file)
            return self.file(link, links + 1) if link else self.open(path)

    def _make(self, path: str, links: int, make: Any) -> str:
        """Make the last component; where a dangling symbolic link is in its place, answer what that points to."""
        parent, name = os.path.split(path.rstrip("/"))
        if links > _MOST_LINKS or name in ("", ".", ".."):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        directory = self.directory(parent or "/", links)
        try:
            make(name, directory)
        except FileExistsError:
            with contextlib.suppress(OSError):
                return os.path.join(parent or "/", os.readlink(name, dir_fd=directory))
        finally:
            os.close(directory)
        return ""


def _create_file(name: str, directory: int) -> None:
    os.close(
        os.open(name, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644, dir_fd=directory)
    )


def build(spec: dict[str, Any]) -> None:
    """Build the file system that `spec` describes and make it this process's root. Raises OSError, SetupError.

    With `users` it is that of a Pod with a range of ids of its own: what is made here is its root's.
    """
    linux.mount("none", "/", None, linux.MS_REC | linux.MS_SLAVE)
    users: idmap.Users | None = spec.get("users")
    if users is not None:
        linux.set_file_owner(users.first, users.first)
        layers = [*spec["rootfs"]["lowerdirs"], *(path for each in spec["mounts"] for path in each.get("image") or ())]
        for directory in _directories_of_layers({**spec["rootfs"], "lowerdirs": layers}):
            idmap.cover(directory, users)
    root = _mount_rootfs(spec["rootfs"])
    _mount_kernel(root, spec)
    _mount_dev(root, spec)
    proc_device = os.stat(root.open("/proc")).st_dev
    for mount in sorted(spec["mounts"], key=lambda mount: _depth(mount["target"])):
        if mount.get("image"):
            _mount_image(root, mount, os.path.dirname(spec["rootfs"]["upper"]))
        else:
            _bind_mount(root, mount, proc_device, users)
    if not spec["privileged"]:
        for path in spec["readonlyPaths"]:
            _make_readonly(root, path)
        for path in spec["maskedPaths"]:
            _mask(root, path)
    os.fchdir(root.fd)
    linux.pivot_root(".", ".")
    linux.umount2(".", linux.MNT_DETACH)
    os.chdir("/")
    if spec["rootfs"]["readonly"]:
        _remount_readonly("/")


def _depth(path: str) -> int:
    return len([part for part in path.split("/") if part])


# -- the layers --------------------------------------------------------------------------------------------------------


def _directories_of_layers(rootfs: dict[str, Any]) -> list[str]:
    """What holds the layers and not the container's own files: one directory, where the image store laid them out."""
    holders = dict.fromkeys(map(os.path.dirname, rootfs["lowerdirs"]))
    if any(rootfs["upper"].startswith(f"{holder}/") for holder in holders):
        return list(dict.fromkeys(rootfs["lowerdirs"]))
    return list(holders)


def _mount_rootfs(rootfs: dict[str, Any]) -> Root:
    """Mount the overlay on its mount point. What the container writes goes to `upper`."""
    for path in (rootfs["upper"], rootfs["work"], rootfs["mountpoint"]):
        os.makedirs(path, 0o755, exist_ok=True)
    links = os.path.join(os.path.dirname(rootfs["upper"]), "layers")
    writable = f",upperdir={_escape(rootfs['upper'])},workdir={_escape(rootfs['work'])}"
    _mount_overlay(rootfs["lowerdirs"], rootfs["mountpoint"], links, writable)
    return Root(os.open(rootfs["mountpoint"], os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC))


def _mount_overlay(lowerdirs: list[str], mountpoint: str, links: str, writable: str = "") -> None:
    """Mount layers over each other; `writable` are the options of the one that takes writes, `links` a directory that
    may be made."""
    here = os.getcwd()
    lower = ":".join(map(_escape, lowerdirs))
    if len(lower) > _OPTIONS_LIMIT - len(writable) - 64:
        # Many layers: by short links in the container's own directory, so that one page of options is enough.
        os.mkdir(links, 0o700)
        os.chdir(links)
        for number, path in enumerate(lowerdirs):
            os.symlink(path, str(number))
        lower = ":".join(str(number) for number in range(len(lowerdirs)))
    options = f"lowerdir={lower}{writable}"
    try:
        # user.* attributes keep opaque directories; trusted.* ones are for the initial user namespace alone.
        linux.mount("overlay", mountpoint, "overlay", linux.MS_NODEV, f"{options},userxattr")
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        linux.mount("overlay", mountpoint, "overlay", linux.MS_NODEV, options)
    os.chdir(here)


def _escape(path: str) -> str:
    """`:` separates overlay's layers and `,` its options."""
    return path.replace("\\", "\\\\").replace(":", "\\:").replace(",", "\\,")


# -- what the kernel provides ------------------------------------------------------------------------------------------


def _mount_kernel(root: Root, spec: dict[str, Any]) -> None:
    _mount_at(root, "/proc", "proc", _NO_EXTRAS)
    flags = _NO_EXTRAS | (0 if spec["privileged"] else linux.MS_RDONLY)
    try:
        _mount_at(root, "/sys", "sysfs", flags)
    except PermissionError:
        # Forbidden where something lies over the machine's own /sys: the read-only view of that, or none.
        with contextlib.suppress(OSError):
            _attach(_clone_tree("/sys", readonly=True), root.directory("/sys"))
        return
    view = spec.get("cgroupView")
    if view:
        _mount_groups(root, view, readonly=not spec["privileged"])
        return
    with contextlib.suppress(OSError):
        _mount_at(root, "/sys/fs/cgroup", "cgroup2", _NO_EXTRAS | linux.MS_RDONLY)


def _mount_groups(root: Root, view: list[tuple[str, str]], *, readonly: bool) -> None:
    """Version 1 as runc shows it: the container's group of each hierarchy, side by side.

    Source: runc libcontainer/rootfs_linux.go:mountCgroupV1. Without mount_setattr (Linux < 5.12) there is nothing.
    """
    place = "/sys/fs/cgroup"
    try:
        _mount_at(root, place, "tmpfs", _NO_EXTRAS, "mode=755,size=64k")
        attributes = linux.MOUNT_ATTR_NOSUID | linux.MOUNT_ATTR_NODEV | linux.MOUNT_ATTR_NOEXEC
        if readonly:
            attributes |= linux.MOUNT_ATTR_RDONLY
        for name, group in view:
            tree = _clone_tree(group, recursive=False)
            try:
                linux.mount_setattr(tree, "", linux.AT_EMPTY_PATH, attributes)
                target = root.directory(f"{place}/{name}")
            except OSError:
                os.close(tree)
                raise
            _attach(tree, target)
            for part in name.split(",") if "," in name else ():
                fd = root.directory(place)
                try:
                    os.symlink(name, part, dir_fd=fd)
                finally:
                    os.close(fd)
        if readonly:
            fd = root.directory(place)
            try:
                again = linux.MS_REMOUNT | linux.MS_BIND | linux.MS_RDONLY | _NO_EXTRAS
                linux.mount("none", f"/proc/self/fd/{fd}", None, again)
            finally:
                os.close(fd)
    except OSError:
        # A container runs without the sight of its limits, too; nothing that is half done stays.
        _unmount_groups(root, place)


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


def _mount_dev(root: Root, spec: dict[str, Any]) -> None:
    """A fresh /dev. Device nodes cannot be made in a user namespace: they are the machine's own, bound one by one."""
    _mount_at(root, "/dev", "tmpfs", linux.MS_NOSUID, "mode=755,size=65536k")
    dev = root.open("/dev", os.O_PATH | os.O_DIRECTORY)
    for name in _DEVICES:
        _create_file(name, dev)
        target = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dev)
        _attach(_clone_tree(f"/dev/{name}", recursive=False), target)
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
        _attach(_clone_tree(spec["shm"]), root.open("/dev/shm", os.O_PATH | os.O_DIRECTORY))  # noqa: S108
    os.close(dev)


# -- binds, masks ------------------------------------------------------------------------------------------------------


def _clone_tree(source: str, *, readonly: bool = False, recursive: bool = True) -> int:
    """A detached bind mount of `source`. Without mount_setattr (Linux < 5.12) `readonly` is left to the caller."""
    flags = linux.OPEN_TREE_CLONE | linux.OPEN_TREE_CLOEXEC | (linux.AT_RECURSIVE if recursive else 0)
    tree = linux.open_tree(linux.AT_FDCWD, source, flags)
    if readonly:
        with contextlib.suppress(NotImplementedError):
            _set_readonly(tree)
    return tree


def _set_readonly(tree: int) -> None:
    try:
        linux.mount_setattr(tree, "", linux.AT_EMPTY_PATH | linux.AT_RECURSIVE, linux.MOUNT_ATTR_RDONLY)
    except OSError as error:
        if error.errno == errno.ENOSYS:
            raise NotImplementedError from error
        raise


def _attach(tree: int, target: int) -> None:
    """Move a detached mount onto an opened place; closes both."""
    try:
        linux.move_mount(tree, target)
    finally:
        os.close(tree)
        os.close(target)


def _bind_mount(root: Root, mount: dict[str, Any], proc_device: int, users: idmap.Users | None = None) -> None:
    source, target = mount["source"], os.path.normpath("/" + mount["target"].lstrip("/"))
    try:
        try:
            is_directory = stat.S_ISDIR(os.stat(source).st_mode)
        except OSError as error:
            raise SetupError(f"stat {source}: {_words(error)}") from error
        tree = _clone_tree(source, readonly=mount["readonly"])
        if users is not None and mount.get("ownersMapped"):
            _map_owners(tree, source, users)
        place = root.directory(target) if is_directory else root.file(target)
        if target == "/" or os.stat(place).st_dev == proc_device:
            raise SetupError(f"{target!r} cannot be mounted because it is inside /proc or the root itself")
        _attach(tree, place)
        if mount["readonly"]:
            _remount_readonly_below(root, target)
    except _NotMapped:
        raise
    except (OSError, SetupError) as error:
        reason = _words(error) if isinstance(error, OSError) else str(error)
        raise SetupError(
            f'error during container init: error mounting "{source}" to rootfs at "{target}": {reason}'
        ) from error


def _mount_image(root: Root, mount: dict[str, Any], directory: str) -> None:
    """Mount what an image holds, read-only; of more than one layer with a mount point below `directory`.

    `sub` is a path in the image; a link in it leads to somewhere else in the image.
    """
    target = os.path.normpath("/" + mount["target"].lstrip("/"))
    try:
        source = mount["image"][0]
        if len(mount["image"]) > 1:
            source = os.path.join(directory, "image", str(_depth(target)) + target.replace("/", "_"))
            os.makedirs(source, 0o700, exist_ok=True)
            _mount_overlay(mount["image"], source, os.path.join(directory, "links" + target.replace("/", "_")))
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
        with contextlib.suppress(NotImplementedError):
            _set_readonly(tree)
        _attach(tree, root.directory(target) if is_directory else root.file(target))
        _remount_readonly_below(root, target)
    except OSError as error:
        what = f"{mount['source']}/{mount['sub']}" if mount["sub"] else mount["source"]
        raise SetupError(
            f'error during container init: error mounting image "{what}" to rootfs at "{target}": {_words(error)}'
        ) from error


class _NotMapped(SetupError):
    """A volume of a Pod with user ids of its own, on a file system whose owners cannot be mapped."""


def _map_owners(tree: int, source: str, users: idmap.Users) -> None:
    """Raises _NotMapped in the words of runc libcontainer/mount_linux.go:mountFd."""
    try:
        idmap.map_owners(tree, users)
    except OSError as error:
        os.close(tree)
        hint = ""
        if error.errno == errno.EINVAL:
            hint = " (maybe the filesystem used doesn't support idmap mounts on this kernel?)"
        elif error.errno == errno.EPERM:
            hint = " (the host's own file systems cannot be mapped from within a cluster: use a volume of the cluster)"
        raise _NotMapped(
            "error during container init: failed to fulfil mount request: "
            f"failed to set MOUNT_ATTR_IDMAP on {source}: {_words(error)}{hint}"
        ) from error


def _words(error: OSError) -> str:
    """The kernel's reason as Go writes it."""
    return os.strerror(error.errno or 0).lower() if error.errno else str(error)


def _remount_readonly_below(root: Root, target: str) -> None:
    """Linux before 5.12: every mount at or below `target` one by one. Nothing to do where the tree is read-only."""
    fd = root.open(target)
    try:
        if os.fstatvfs(fd).f_flag & os.ST_RDONLY:
            return
        top = os.readlink(f"/proc/self/fd/{fd}")
    finally:
        os.close(fd)
    with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        points = [_OCTAL.sub(lambda found: chr(int(found[1], 8)), line.split(" ")[4]) for line in file]
    for point in points:
        if point == top or point.startswith(f"{top}/"):
            _remount_readonly(point)


def _remount_readonly(path: str) -> None:
    """One mount. In a user namespace the flags it was mounted with may not be dropped."""
    have = os.statvfs(path).f_flag
    keep = have & (linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)  # ST_* and MS_* agree on these
    keep |= linux.MS_NOATIME if have & os.ST_NOATIME else 0
    keep |= linux.MS_RELATIME if have & os.ST_RELATIME else 0
    linux.mount("none", path, None, linux.MS_REMOUNT | linux.MS_BIND | linux.MS_RDONLY | keep)


def _make_readonly(root: Root, path: str) -> None:
    """Bind a path onto itself, read-only. What is not there needs no protection."""
    try:
        place = root.open(path)
    except OSError:
        return
    flags = linux.OPEN_TREE_CLONE | linux.OPEN_TREE_CLOEXEC | linux.AT_RECURSIVE | linux.AT_EMPTY_PATH
    tree = linux.open_tree(place, "", flags)
    with contextlib.suppress(NotImplementedError):
        _set_readonly(tree)
    _attach(tree, place)
    _remount_readonly_below(root, path)


def _mask(root: Root, path: str) -> None:
    """Hide a path: /dev/null over a file, an empty read-only tmpfs over a directory."""
    try:
        place = root.open(path)
    except OSError:
        return
    if stat.S_ISDIR(os.stat(place).st_mode):
        linux.mount("tmpfs", f"/proc/self/fd/{place}", "tmpfs", linux.MS_RDONLY | _NO_EXTRAS, "size=0k,nr_inodes=2")
        os.close(place)
    else:
        _attach(_clone_tree("/dev/null", recursive=False), place)
