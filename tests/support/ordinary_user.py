"""Runs a command as an ordinary user: uid and gid 65534, no groups, no capability, now or by any execve.

`ordinary_user.py COMMAND...`, as root.
 The interpreter and the sources may be below a directory that is root's alone
(/root/.pyenv): in a mount namespace of its own such a directory is replaced by one in which only the way to them is.
"""

import os
import shutil
import sys
from pathlib import Path

UID = 65534

USERS = ["root", "ordinary user"] if os.getuid() == 0 else ["the user of the tests"]
"""Parameters of a test that runs a command as each user it can."""


SUBORDINATE = "user with subordinate ids"
EVERY_USER = [*USERS, SUBORDINATE] if os.getuid() == 0 else USERS
"""And an ordinary user to whom /etc/subuid and /etc/subgid give a range (they say so in its mount namespace only)."""
MANY_IDS = "user with ids for Pods"
"""The same with a range that is enough for two Pods with ids of their own."""
_RANGES = {SUBORDINATE: 65_536, MANY_IDS: 3 * 65_536}


def skip_without_newuidmap(user: str) -> None:
    if user in _RANGES and shutil.which("newuidmap") is None:
        import pytest

        pytest.skip("newuidmap is not installed (Debian: uidmap)")


def command_prefix(user: str) -> list[str]:
    """What to put before a command."""
    if user in _RANGES:
        return [sys.executable, __file__, f"--subordinate-ids={_RANGES[user]}"]
    return [sys.executable, __file__] if user == "ordinary user" else []


def give_subordinate_ids(count: int) -> None:
    """In the mount namespace of this process."""
    from lastcall.world import linux

    linux.mount("etc", "/srv", "tmpfs", 0, "mode=755")
    Path("/srv/range").write_text(f"{UID}:200000:{count}\n")
    for name in ("/etc/subuid", "/etc/subgid"):
        linux.mount("/srv/range", name, None, linux.MS_BIND)
    linux.umount2("/srv", linux.MNT_DETACH)


def needed() -> list[Path]:
    """What Python reads."""
    project = Path(__file__).parents[2]
    places: list[str | Path] = [sys.base_prefix, sys.prefix, Path(sys.executable).resolve().parents[1], project]
    import lastcall

    places.append(Path(lastcall.__file__).parent)
    return sorted({Path(place).resolve() for place in places})


def open_the_way(paths: list[Path]) -> None:
    from lastcall.world import linux

    closed: dict[Path, list[Path]] = {}
    for path in paths:
        for parent in reversed(path.parents):
            if not parent.stat().st_mode & 0o001:
                closed.setdefault(parent, []).append(path)
                break
    linux.unshare(linux.CLONE_NEWNS)
    linux.mount("none", "/", None, linux.MS_REC | linux.MS_PRIVATE)
    for parent, hidden in closed.items():
        handles = [os.open(path, os.O_PATH) for path in hidden]
        linux.mount("way", str(parent), "tmpfs", 0, "mode=755")
        for path, handle in zip(hidden, handles, strict=True):
            path.mkdir(parents=True, exist_ok=True)
            linux.mount(f"/proc/self/fd/{handle}", str(path), None, linux.MS_BIND | linux.MS_REC)
            os.close(handle)


def main(command: list[str]) -> None:
    from lastcall.world import privileges

    open_the_way(needed())
    if command[0].startswith("--subordinate-ids="):
        give_subordinate_ids(int(command[0].partition("=")[2]))
        command = command[1:]
    else:
        privileges.drop_bounding_set(0)
    os.setgroups([])
    os.setresgid(UID, UID, UID)
    os.setresuid(UID, UID, UID)
    os.environ.pop("HOME", None)
    os.execv(shutil.which(command[0]) or command[0], command)


if __name__ == "__main__":
    main(sys.argv[1:])
