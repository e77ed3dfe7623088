"""The directory of the machine that cluster and runtime share: volumes, logs, Pods' files.

Below `ROOT`, named by the cluster's boot id. The lock in it is held by front and inherited by the roles: where it is
free all of them have ended, and what is left is a leftover.
"""

import fcntl
import os
import shutil
from contextlib import suppress

ROOT = "/var/lib/lastcall"
LOCK = "lock"


class Place:
    """`make` one, `remove` it at the end."""

    def __init__(self, instance: str, fd: int) -> None:
        self.instance, self._fd = instance, fd

    @property
    def directory(self) -> str:
        return f"{ROOT}/{self.instance}"

    @classmethod
    def make(cls, instance: str) -> "Place":
        """Create and lock the directory of a cluster. Raises OSError."""
        directory = f"{ROOT}/{instance}"
        os.makedirs(directory, 0o711)
        fd = os.open(f"{directory}/{LOCK}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return cls(instance, fd)

    def remove(self) -> None:
        """Remove the directory with all that is in it. Idempotent."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        remove(self.instance)


def remove(instance: str) -> None:
    """Remove the directory of a cluster that has ended, and `ROOT` with the last one."""
    shutil.rmtree(f"{ROOT}/{instance}", ignore_errors=True)
    with suppress(OSError):
        os.rmdir(ROOT)


def lives(instance: str) -> bool:
    """Return whether a process of that cluster is left."""
    try:
        fd = os.open(f"{ROOT}/{instance}/{LOCK}", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


def instances() -> list[str]:
    """Return the instances that have a directory."""
    try:
        return sorted(os.listdir(ROOT))
    except OSError:
        return []
