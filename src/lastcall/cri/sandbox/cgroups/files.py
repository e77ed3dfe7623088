"""Reading and writing the files of a control group, and taking a tree of groups away."""

from __future__ import annotations

import contextlib
import os
import signal
import time

_KILL_ROUNDS = 20
_READ_SIZE = 1 << 16
"""More than the kernel hands out at once, and little enough not to be mapped anew for each reading."""


def read(path: str) -> str:
    """The text of a file; "" when it is not there, or its group is gone."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(fd, _READ_SIZE).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(fd)


def write(path: str, text: str) -> None:
    """Write the whole text at once, as the kernel wants it. Raises OSError whose text names file and value."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
        try:
            os.write(fd, text.encode())
        finally:
            os.close(fd)
    except OSError as error:
        raise OSError(error.errno, f"write {text} to {path}: {os.strerror(error.errno or 0)}") from error


def number(path: str, key: str = "") -> int | None:
    """A file's only number, or the one behind `key` on a line of its own; None when there is none."""
    text = read(path)
    if key:
        text = next((line[len(key) + 1 :] for line in text.splitlines() if line.startswith(f"{key} ")), "")
    text = text.strip()
    return int(text) if text.lstrip("-").isdecimal() else None


def processes(directory: str) -> list[int]:
    """Every process of the group and of those below; 0 stands for one that this PID namespace cannot name."""
    found: list[int] = []
    for below, _, _ in os.walk(directory):
        found += [int(word) for word in read(f"{below}/cgroup.procs").split() if word.isdecimal()]
    return found


def kill(directory: str) -> bool:
    """SIGKILL to all of them, again until none comes after; True when none is left.

    A group is left alone as soon as it names nobody; processes that the kernel has not ended yet may still be there.
    """
    for round_ in range(_KILL_ROUNDS):
        left = [pid for pid in processes(directory) if pid > 0]
        if not left:
            return True
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(min(0.001 * (round_ + 1), 0.01))
    return False


def remove(directory: str) -> bool:
    """Remove the group and all below it, from the bottom; False when one is busy."""
    with contextlib.suppress(OSError):
        os.rmdir(directory)  # mostly there is nothing below it, and nobody has to look
        return True
    for below, _, _ in os.walk(directory, topdown=False):
        try:
            os.rmdir(below)
        except FileNotFoundError:
            continue
        except OSError:
            return False
    return True
