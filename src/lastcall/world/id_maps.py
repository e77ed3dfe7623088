"""User and group ids of a new user namespace: all of root's, a subordinate range, or the one id a user has.

With more than one id a container's processes can be different users, as on any machine. With one, they are all the same
user whatever they ask for; `kube/cri/sandbox/shim/single_id/filter.py` says what then becomes of images that drop
privileges.
"""

# check: standard library
# check: starts processes because it runs newuidmap

from __future__ import annotations

import contextlib
import os
import pwd
import signal

from lastcall.world import linux, privileges

SECONDS = 10.0
"""How long newuidmap and newgidmap may take each: they ask for the user's name, perhaps over a network."""


class IdMaps:
    """What was mapped. `mode` is `all` (root), `subordinate` (newuidmap) or `single`; `uids` and `gids` are counts.

    `why` says why an ordinary user got no range; "" when there is one.
    """

    def __init__(self, mode: str, uids: int, gids: int, why: str = "") -> None:
        self.mode, self.uids, self.gids, self.why = mode, uids, gids, why


def write_id_maps(pid: int, uid: int, gid: int) -> IdMaps:
    """Map ids into the new user namespace of child `pid`, of which `uid` and `gid` become root.

    As root every id of its own user namespace maps to itself. An ordinary user gets the ranges of /etc/subuid and
    /etc/subgid by newuidmap and newgidmap where these exist and work, else only the own id (and setgroups is denied,
    as the kernel demands).
    Raises OSError when the kernel refuses even that.
    """
    why = ""
    if uid == 0 and _has_setuid():
        _write_map(pid, "uid_map", _identity("uid_map"))
        _write_map(pid, "gid_map", _identity("gid_map"))
    else:
        # Each is separate: what a failed program left unwritten can still be written here.
        failed_gids = _map_range(pid, "gid", uid, gid)
        if failed_gids:
            _write_map(pid, "setgroups", "deny")
            _write_map(pid, "gid_map", f"0 {gid} 1")
        why = _map_range(pid, "uid", uid, uid) or failed_gids
        if not count_ids(f"/proc/{pid}/uid_map"):
            _write_map(pid, "uid_map", f"0 {uid} 1")
    uids, gids = count_ids(f"/proc/{pid}/uid_map"), count_ids(f"/proc/{pid}/gid_map")
    mode = "single" if uids <= 1 else "all" if uid == 0 else "subordinate"
    return IdMaps(mode, uids, gids, why)


def write_range(pid: int, first: int, count: int, proc: str = "/proc") -> None:
    """Map `count` users and groups from 0 on into the new user namespace of child `pid`. Raises OSError."""
    for name in ("uid_map", "gid_map"):
        _write_map(pid, name, f"0 {first} {count}", proc)


def try_id_mapped(directory: str, proc: str = "/proc") -> None:
    """Make a mount of a directory that shows other owners, and drop it. Raises OSError if the kernel cannot.

    `proc` is where /proc of this process's own PID namespace is. tmpfs can since Linux 6.3, overlay on such layers
    since 5.19.
    """
    pid = linux.clone_paused(linux.CLONE_NEWUSER)
    fds: list[int] = []
    try:
        write_range(pid, 0, 1, proc)
        fds.append(os.open(f"{proc}/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC))
        fds.append(linux.open_tree(linux.AT_FDCWD, directory, linux.OPEN_TREE_CLONE | linux.OPEN_TREE_CLOEXEC))
        linux.mount_setattr(fds[1], "", linux.AT_EMPTY_PATH, linux.MOUNT_ATTR_IDMAP, userns_fd=fds[0])
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        for fd in fds:
            os.close(fd)


def why_not_id_mapped(directory: str) -> str:
    """Return why `try_id_mapped` fails, "" if it does not."""
    try:
        try_id_mapped(directory)
    except OSError as error:
        return error.strerror or str(error)
    return ""


def count_ids(path: str) -> int:
    """Count the ids in a map of /proc."""
    with open(path) as file:
        return sum(int(line.split()[2]) for line in file)


def _identity(name: str) -> str:
    """A map of every id this process's user namespace has to itself (in a container that is not all there are)."""
    with open(f"/proc/self/{name}") as file:
        ranges = [line.split() for line in file]
    return "\n".join(f"{first} {first} {count}" for first, _, count in ranges)


def _has_setuid() -> bool:
    wanted = privileges.capability_mask(("SETUID", "SETGID"))
    return privileges.capget()[0] & wanted == wanted


def _write_map(pid: int, name: str, text: str, proc: str = "/proc") -> None:
    path = f"{proc}/{pid}/{name}"
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(fd, text.encode())
        finally:
            os.close(fd)
    except OSError as error:
        text = text.replace("\n", ", ")
        raise OSError(error.errno, f"write: {os.strerror(error.errno or 0)} ({text!r} to {path})") from error


def _map_range(pid: int, kind: str, uid: int, own: int) -> str:
    """Map the own id and the subordinate range by newuidmap or newgidmap (`kind` uid or gid). Answers why not."""
    program, path = f"new{kind}map", f"/etc/sub{kind}"
    found = subordinate_range(path, uid)
    if found is None:
        return f"{path} gives this user no range"
    # late: the shim, of which every container starts as a copy, never comes here
    import subprocess

    command = [program, str(pid), "0", str(own), "1", "1", str(found[0]), str(found[1])]
    try:
        # A fixed program of the distribution with numbers only; when it fails the map is still unwritten.
        done = subprocess.run(command, capture_output=True, check=False, timeout=SECONDS)  # noqa: S603
    except subprocess.TimeoutExpired:
        return f"{program} did not answer within {SECONDS:g} s"
    except FileNotFoundError:
        return f"{program} is not installed"
    except OSError as error:
        return f"{program}: {error.strerror}"
    if done.returncode != 0:
        words = " ".join(done.stderr.decode(errors="replace").split())
        return f"{program} failed: {words or f'exit status {done.returncode}'}"
    return ""


def subordinate_range(path: str, uid: int) -> tuple[int, int] | None:
    """Return (first, count) of the first range that /etc/subuid or /etc/subgid gives to a user, by name or number."""
    names = [str(uid)]
    with contextlib.suppress(KeyError):
        names.append(pwd.getpwuid(uid).pw_name)
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                owner, _, rest = line.strip().partition(":")
                first, _, count = rest.partition(":")
                if owner in names and first.isdecimal() and count.isdecimal() and int(count) > 0:
                    return int(first), int(count)
    except OSError:
        return None
    return None
