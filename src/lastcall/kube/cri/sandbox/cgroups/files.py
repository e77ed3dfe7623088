"""Reading and writing the files of a control group, and taking a tree of groups away."""

# check: allow time.sleep because it waits for a killed process after the event loops have ended

from __future__ import annotations

import contextlib
import os
import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_KILL_ROUNDS = 20
_READ_SIZE = 1 << 16
"""More than the kernel hands out at once, and little enough not to be mapped anew for each reading."""


def read(path: str) -> str:
    """Read the text of a file; "" if it does not exist, or its group is gone."""
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
    """Return a file's only number, or the one behind `key` on a line of its own; None if there is none."""
    text = read(path)
    if key:
        text = next((line[len(key) + 1 :] for line in text.splitlines() if line.startswith(f"{key} ")), "")
    text = text.strip()
    return int(text) if text.lstrip("-").isdecimal() else None


def not_below(directory: str, name: str) -> int:
    """Return the part of a sum that a group has for itself, and not for those in it, such as `memory.current`."""
    below = 0
    with contextlib.suppress(FileNotFoundError), os.scandir(directory) as entries:
        below = sum(number(f"{each.path}/{name}") or 0 for each in entries if each.is_dir())
    return max(0, (number(f"{directory}/{name}") or 0) - below)


def processes(directory: str) -> list[int]:
    """Return every process of the group and of those below; 0 is one that this PID namespace cannot name."""
    found: list[int] = []
    for below, _, _ in os.walk(directory):
        found += [int(word) for word in read(f"{below}/cgroup.procs").split() if word.isdecimal()]
    return found


def thaw(directory: str) -> None:
    """Let frozen processes of version 1's freezer go on, in the group and in those below."""
    with contextlib.suppress(OSError):
        alone = os.stat(directory).st_nlink == 2  # no group below it, as nearly always
        for below in [directory] if alone else [path for path, _, _ in os.walk(directory)]:
            if read(f"{below}/freezer.state").strip() not in ("", "THAWED"):
                write(f"{below}/freezer.state", "THAWED")


def kill(directory: str, thaw: Callable[[], None] = lambda: None) -> bool:
    """Send SIGKILL to all, until no process is left to kill; True if none is left. `thaw` lets frozen ones end.

    A group is left alone as soon as it names nobody; processes that the kernel has not ended yet may still be there.
    """
    for round_ in range(_KILL_ROUNDS):
        left = [pid for pid in processes(directory) if pid > 0]
        if not left:
            return True
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        thaw()
        time.sleep(min(0.001 * (round_ + 1), 0.01))
    return False


def remove(directory: str) -> bool:
    """Remove the group and all below it, from the bottom; return False if one is busy."""
    try:
        os.rmdir(directory)  # mostly there is nothing below it, and nobody has to look
        return True
    except FileNotFoundError:
        return True
    except OSError:
        pass
    for below, _, _ in os.walk(directory, topdown=False):
        try:
            os.rmdir(below)
        except FileNotFoundError:
            continue
        except OSError:
            return False
    return True
