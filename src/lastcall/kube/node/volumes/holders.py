"""Who keeps a mount busy: processes with a file, a directory or a mount of theirs on it.

umount(2) answers EBUSY and no names. A file that is open through another copy of the mount, as in a container, does not
make it busy, so only processes that share this process's mount namespace are looked at; and every mount that lies under
the place, no matter which process made it.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from lastcall.world.dataclass import dataclass

MOST_HOLDERS = 16
MOST_FILES = 4096
"""Open files of one process that are looked at."""

_LINKS = (("cwd", "working directory"), ("root", "root directory"), ("exe", "program"))


@dataclass(frozen=True, slots=True)
class Holder:
    """`how`: open file, working directory, root directory, program, or mount (then `pid` is 0: no process owns it)."""

    pid: int
    name: str
    how: str
    path: str


def holders_of(place: str, proc: Path = Path("/proc")) -> list[Holder]:
    """Return what holds the mount at `place`, by pid, mounts under it first; at most one for each process."""
    found = [Holder(0, "", "mount", point) for point in mounts_under(place, _text(proc / "self/mountinfo"))]
    own = _link(proc / "self/ns/mnt")
    for pid in sorted(int(name) for name in os.listdir(proc) if name.isdecimal()):
        directory = proc / str(pid)
        if _link(directory / "ns/mnt") != own:
            continue
        for how, path in _used_by(directory):
            if path == place or path.startswith(f"{place}/"):
                found.append(Holder(pid, _text(directory / "comm").strip(), how, path))
                break
    return found


def mounts_under(place: str, mountinfo: str) -> list[str]:
    """Return the mount points below `place` (not itself), as proc_pid_mountinfo(5) has them."""
    points = (line.split(" ")[4] for line in mountinfo.splitlines() if line.count(" ") > 4)
    paths = (point.encode("utf-8", "surrogateescape").decode("unicode_escape") for point in points)
    return sorted(path for path in paths if path.startswith(f"{place}/"))


def _used_by(directory: Path) -> Iterator[tuple[str, str]]:
    for name, how in _LINKS:
        yield how, _link(directory / name)
    with suppress(OSError):
        for fd in os.listdir(directory / "fd")[:MOST_FILES]:
            yield "open file", _link(directory / "fd" / fd)


def _link(path: Path) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "surrogateescape")
    except OSError:
        return ""
