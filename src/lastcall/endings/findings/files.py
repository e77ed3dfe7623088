"""Which volume of a Pod a path of a container lies in, and what a mount hides. Pure."""

# check: pure

import posixpath
import re
from collections.abc import Iterable

from lastcall.endings.story import ContainerFacts, MountedFiles, PodFacts

_UNLIKE = re.compile(r"(?i:is a directory|not a directory)|EISDIR|ENOTDIR")
"""What strerror(3) says of a directory that is read as a file, or of a file that is taken for a directory."""


def container_of(pod: PodFacts, name: str) -> ContainerFacts | None:
    """Return what the Pod's object says of a container; None where nobody saw it."""
    return next((each for each in pod.containers if each.name == name), None)


def key_of(pod: PodFacts, container: str, path: str) -> tuple[MountedFiles, str] | None:
    """Return the mount that a file of a container comes from, and its key; None for a file of the image."""
    facts, path = container_of(pod, container), posixpath.normpath(path)
    mounts = [each for each in facts.files if facts and (path == each.path or path.startswith(f"{each.path}/"))]  # type: ignore[union-attr]
    if not mounts:
        return None
    mount = max(mounts, key=lambda each: len(each.path))
    inside = posixpath.relpath(path, mount.path)
    name = mount.sub_path if inside == "." else inside
    return (mount, next((key for key, at in mount.items if at == name), name)) if name else None


def hidden_file(pod: PodFacts, container: str, lines: Iterable[str]) -> tuple[MountedFiles, str] | None:
    """Return the mount of a whole volume at a path that the container reads as a file, and the file of the volume that
    is meant, where its last lines name that path; None for any other."""
    facts = container_of(pod, container)
    said = [line for line in lines if _UNLIKE.search(line)]
    for mount in facts.files if facts else ():
        named = re.compile(rf"(?<![\w/.-]){re.escape(mount.path)}(?![\w/-]|\.\w)")
        if not mount.sub_path and mount.path != "/" and any(named.search(line) for line in said):
            return mount, _file_meant(mount)
    return None


def no_file(pod: PodFacts, container: str, lines: Iterable[str]) -> MountedFiles | None:
    """Return the mount of a subPath that is a directory although the container reads it as a file; None for any other.

    The kubelet makes a directory of a subPath that its volume does not have (kubelet_pods.go:makeMounts).
    """
    facts = container_of(pod, container)
    said = [line for line in lines if _UNLIKE.search(line)]
    for mount in facts.files if facts else ():
        named = re.compile(rf"(?<![\w/.-]){re.escape(mount.path)}(?![\w/-]|\.\w)")
        if mount.sub_path and any(named.search(line) for line in said):
            return mount
    return None


def _file_meant(mount: MountedFiles) -> str:
    """Return the file of the name of the path, or the only one that the volume picks."""
    name, paths = posixpath.basename(mount.path), [path for _, path in mount.items]
    return paths[0] if len(paths) == 1 and name not in paths else name
