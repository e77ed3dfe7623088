"""A directory of manifests on the node's file system. What is in it is hostile."""

# check: allow asyncio.to_thread because blocking work on files of the host runs off the event loop

import asyncio
import os
import stat
from pathlib import Path

from lastcall.kube.node.static_pods.decide import MAX_BYTES

MAX_FILES = 256


class HostManifestDirectory:
    """Regular files of `path` itself; hidden ones are left out, links and devices are refused."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._known: dict[str, tuple[tuple[int, ...], bytes | str]] = {}

    async def read(self) -> dict[str, bytes | str]:
        return await asyncio.to_thread(self._read)

    def _read(self) -> dict[str, bytes | str]:
        try:
            names = sorted(name for name in os.listdir(self._path) if not name.startswith("."))
        except FileNotFoundError:
            names = []
        too_many = dict.fromkeys(names[MAX_FILES : 2 * MAX_FILES], f"a node reads {MAX_FILES} files")
        self._known = {name: self._look(name) for name in names[:MAX_FILES]}
        return {name: content for name, (_, content) in self._known.items()} | too_many

    def _look(self, name: str) -> tuple[tuple[int, ...], bytes | str]:
        path = Path(self._path, name)
        try:
            found = path.lstat()
            version = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_mode)
            if name in self._known and self._known[name][0] == version:
                return self._known[name]
            if not stat.S_ISREG(found.st_mode):
                return version, "it is not a regular file"
            # A pipe put in its place must not hold the node up, a link must not lead it elsewhere.
            fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with open(fd, "rb") as file:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    return version, "it is not a regular file"
                return version, file.read(MAX_BYTES + 1)
        except OSError as error:
            return (), f"it cannot be read: {error.strerror}"
