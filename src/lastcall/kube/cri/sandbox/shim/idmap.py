"""A Pod's own range of user and group ids: its user namespace, and mounts that show files as if they were its own.

Nothing on a file system changes its owner. An idmapped mount shows the owner N as N of the Pod, and what N of the Pod
makes there is written as N; only what has no other user (a container's upper directory, /dev/shm) is the range's.
"""

from __future__ import annotations

import errno
import os
import socket

from lastcall.world import linux

_FRONT_SECONDS = 20.0
"""How long front may take to answer: it does so within a millisecond, on a machine that is not busy."""


class Users:
    """`fd` is the user namespace; the ids 0 to `count` in it are those from `first` on outside, users and groups."""

    def __init__(self, fd: int, first: int, count: int) -> None:
        self.fd, self.first, self.count = fd, first, count

    @property
    def maps(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Return the ids that exist in it, as `procfs.id_map` has them."""
        return [(0, self.count)], [(0, self.count)]

    def outside(self, number: int) -> int:
        """Return what an id of the Pod is for the shim; root's if the Pod has no such id."""
        return self.first + (number if 0 <= number < self.count else 0)


def map_owners(tree: int, users: Users, owners_fd: int = -1) -> None:
    """Map the owners in every mount of a detached tree. `owners_fd` is the way to front, -1 for none.

    Raises OSError: EINVAL where a file system cannot, EPERM for one of the host's without front.
    """
    flags = linux.AT_EMPTY_PATH | linux.AT_RECURSIVE
    try:
        linux.mount_setattr(tree, "", flags, linux.MOUNT_ATTR_IDMAP, userns_fd=users.fd)
    except PermissionError:
        if owners_fd < 0:
            raise
        _ask_front(tree, users, owners_fd)


def _ask_front(tree: int, users: Users, owners_fd: int) -> None:
    """Let front, which is root of the machine, do the same (`kube/cluster/scratch/owners.py`). Raises OSError."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs, socket.socket(fileno=os.dup(owners_fd)) as front:
        socket.send_fds(front, [b"map"], [tree, users.fd, theirs.fileno()])
        theirs.close()
        ours.settimeout(_FRONT_SECONDS)
        number = int(ours.recv(16) or errno.ECONNRESET)
    if number:
        raise OSError(number, os.strerror(number))


def cover(directory: str, users: Users) -> None:
    """Cover a directory with its own content, with the Pod's owners: every lookup of a path finds these.

    Raises OSError.
    """
    tree = linux.open_tree(linux.AT_FDCWD, directory, linux.OPEN_TREE_CLONE | linux.OPEN_TREE_CLOEXEC)
    try:
        map_owners(tree, users)
        place = os.open(directory, os.O_PATH | os.O_CLOEXEC)
        try:
            linux.move_mount(tree, place)
        finally:
            os.close(place)
    finally:
        os.close(tree)


def enter(users: Users) -> None:
    """Become root of the Pod's user namespace, with every capability there and none outside. Raises OSError."""
    linux.setns(users.fd, linux.CLONE_NEWUSER)
    os.setgroups([])
    os.setresgid(0, 0, 0)
    os.setresuid(0, 0, 0)
