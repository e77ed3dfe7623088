"""A machine that belongs to an ordinary user, for as long as its input is open.

`machine_of_a_user.py UID`, as root: a process in namespaces of its own for mounts, users and the network, the last of
which its user owns. It says so with a line, waits for one (its ids have a map by then), and ends with its input.
"""

import os
import sys

import ordinary_user

from lastcall.world import linux


def main(uid: int) -> None:
    ordinary_user.open_the_way(ordinary_user.needed())
    linux.mount("run", "/run", "tmpfs", 0, f"mode=755,uid={uid},gid={uid}")  # each machine has its own
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    linux.unshare(linux.CLONE_NEWUSER | linux.CLONE_NEWNET)
    print("made", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main(int(sys.argv[1]))
