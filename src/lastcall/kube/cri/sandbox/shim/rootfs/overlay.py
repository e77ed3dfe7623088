"""The layers of an image over each other, and what a container writes above them."""

from __future__ import annotations

import errno
import os

from lastcall.kube.cri.sandbox.shim.rootfs.confined import Root
from lastcall.world import linux

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_OPTIONS_LIMIT = 4000  # mount(2) takes one page of options


def directories_of_layers(rootfs: dict[str, Any]) -> list[str]:
    """Return what holds the layers and not the container's own files: one directory, if the image store made it."""
    holders = dict.fromkeys(map(os.path.dirname, rootfs["lowerdirs"]))
    if any(rootfs["upper"].startswith(f"{holder}/") for holder in holders):
        return list(dict.fromkeys(rootfs["lowerdirs"]))
    return list(holders)


def mount_rootfs(rootfs: dict[str, Any]) -> Root:
    """Mount the overlay on its mount point. What the container writes goes to `upper`."""
    for path in (rootfs["upper"], rootfs["work"], rootfs["mountpoint"]):
        os.makedirs(path, 0o755, exist_ok=True)
    links = os.path.join(os.path.dirname(rootfs["upper"]), "layers")
    writable = f",upperdir={_escape(rootfs['upper'])},workdir={_escape(rootfs['work'])}"
    if os.stat(rootfs["upper"]).st_dev != os.stat(rootfs["lowerdirs"][0]).st_dev:
        # On the host's disk: no sync of it when the container ends, and one st_dev, as on a node's disk.
        writable += ",volatile,xino=on"
    mount_overlay(rootfs["lowerdirs"], rootfs["mountpoint"], links, writable)
    return Root(os.open(rootfs["mountpoint"], os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC))


def mount_overlay(lowerdirs: list[str], mountpoint: str, links: str, writable: str = "") -> None:
    """Mount layers over each other.

    `writable` are the options of the one that takes writes, `links` is a directory that may be made.
    """
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
