"""Container logs as files: their rotated parts, and the links for log collectors.

`<log root>/<namespace>_<pod>_<uid>/<container>/<n>.log`, beside it `<n>.log.<timestamp>[.gz]`, and in one directory for
all Pods `<pod>_<namespace>_<container>-<container id>.log`, a link to the log. Nothing here follows a link.
Sources: kuberuntime/legacy.go, logs/container_log_manager.go:Clean.
"""

import os
from collections.abc import Awaitable, Callable
from contextlib import suppress

from lastcall.world.remove_tree import remove_tree

LONGEST_NAME = 255
SUFFIX = ".log"


def log_link_name(pod: str, namespace: str, container: str, container_id: str) -> str:
    """Return the link's name, cut to what a file system takes (kuberuntime/legacy.go:logSymlink)."""
    name = f"{pod}_{namespace}_{container}-{container_id}"
    return name[: LONGEST_NAME - len(SUFFIX)] + SUFFIX


def container_id_of_link(name: str) -> str:
    """Return what follows the last dash, "" if there is none (legacy.go:getContainerIDFromLegacyLogSymlink)."""
    _, dash, identity = name.removesuffix(SUFFIX).rpartition("-")
    return identity if dash else ""


def log_files(log_path: str) -> list[str]:
    """Return the paths of a log and of everything it was rotated to, in the order of their names."""
    directory, name = os.path.split(log_path)
    try:
        names = os.listdir(directory)
    except OSError:
        return []
    return [f"{directory}/{each}" for each in sorted(names) if each == name or each.startswith(f"{name}.")]


def remove_log(log_path: str) -> None:
    """Remove a container's log with all its rotated parts. A missing one is no error."""
    for path in log_files(log_path) if log_path else ():
        with suppress(OSError):
            os.unlink(path)


def remove_log_directory(path: str) -> None:
    """Remove a Pod's logs. A link in their place is removed itself."""
    with suppress(OSError):
        remove_tree(path)


class LogLinks:
    """The directory of links; "" keeps none. A link that fails concerns only the collector."""

    def __init__(self, directory: str) -> None:
        self._directory = directory

    def add(self, pod: str, namespace: str, container: str, container_id: str, log_path: str) -> None:
        """Link to a log, if it exists."""
        if not self._directory or not os.path.exists(log_path):
            return
        with suppress(OSError):
            os.makedirs(self._directory, 0o755, exist_ok=True)
            os.symlink(log_path, self._path(log_link_name(pod, namespace, container, container_id)))

    def remove(self, pod: str, namespace: str, container: str, container_id: str) -> None:
        """Remove the link of a container that is being removed."""
        if self._directory:
            with suppress(OSError):
                os.unlink(self._path(log_link_name(pod, namespace, container, container_id)))

    async def remove_dangling(self, may_come_back: Callable[[str], Awaitable[bool]]) -> None:
        """Remove links whose log is gone, but for containers of which `may_come_back(container id)` is true: between
        two files of a rotation there is none (kuberuntime_gc.go:evictPodLogsDirectories)."""
        try:
            names = sorted(os.listdir(self._directory)) if self._directory else []
        except OSError:
            return
        for name in names:
            link = self._path(name)
            if _is_dangling(link) and not await may_come_back(container_id_of_link(name)):
                with suppress(OSError):
                    os.unlink(link)

    def _path(self, name: str) -> str:
        return f"{self._directory}/{name}"


def _is_dangling(link: str) -> bool:
    return os.path.islink(link) and not os.path.exists(link)
