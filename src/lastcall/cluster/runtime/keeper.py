"""`python -I -m lastcall.cluster.runtime.keeper DIRECTORY [host]`: keeps a shim for a runtime.

The shim is PID 1 of its PID namespace and has a user namespace with all ids of this one: what a container may do as
root it may do there alone, and nothing of a shim that dies outlives it. From there nobody enters the machine's own
namespaces: with `host` the shim stays in those, as real root, for the Pods that ask for them; what it leaves when it
dies is ended here. Mounts that are made later are seen. This process outlives the runtime process, so that containers
do; with SIGTERM it ends all.
It holds a lock on `DIRECTORY/keeper`, which has its pid. Standard library only.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
import time
from contextlib import suppress

from lastcall.cri.sandbox.cgroups.anywhere import OfAnyParent
from lastcall.cri.sandbox.cgroups.place import Place, make_place, open_cgroups
from lastcall.cri.sandbox.shim.past import read_journals
from lastcall.world import linux
from lastcall.world.id_maps import write_id_maps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from lastcall.cri.sandbox.cgroups.api import Cgroups

HOST = "host"
AGAIN_SECONDS = 1.0
"""Between the end of a shim and the start of the next one."""
_KILL_ROUNDS, _KILL_PAUSE = 100, 0.02


def lock_path(directory: str) -> str:
    return os.path.join(directory, "keeper")


def socket_path(directory: str) -> str:
    """Where the shim listens."""
    return os.path.join(directory, "shim.sock")


def lock(directory: str) -> int:
    """The descriptor that holds the lock. Raises BlockingIOError when a keeper lives, OSError."""
    fd = os.open(lock_path(directory), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        raise
    return fd


def main(directory: str, kind: str = "") -> int:
    """Until SIGTERM."""
    host = kind == HOST
    try:
        held = lock(directory)
    except BlockingIOError:
        return 0  # another one keeps it
    os.ftruncate(held, 0)
    os.write(held, str(os.getpid()).encode())
    linux.set_process_name("lastcall-keeper")
    os.makedirs(os.path.join(directory, "shim"), 0o700, exist_ok=True)
    ended: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: ended.append(number))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    first = True
    while not ended:
        place = make_place(f"runtime-{kind}" if kind else "runtime")
        place.create()
        try:
            if first:
                _end_what_is_left(directory, place, host=host)  # of a keeper that was killed
            first = False
            _keep_one(directory, place, ended, host=host)
        finally:
            _end_what_is_left(directory, place, host=host)
            place.remove()
        if not ended:
            time.sleep(AGAIN_SECONDS)
    with suppress(FileNotFoundError):
        os.unlink(socket_path(directory))
    return 0


def _keep_one(directory: str, place: Place, ended: list[int], *, host: bool) -> None:
    """Start a shim, and wait for its end. Raises OSError."""
    read, write = os.pipe2(os.O_CLOEXEC)
    pid = os.fork() if host else linux.clone3(linux.OWN_NAMESPACES)
    if pid == 0:
        os.close(write)
        try:
            if os.read(read, 1):
                _become_shim(directory, place, host=host)
        except OSError as error:
            sys.stderr.write(f"the shim cannot start: {error}\n")
            sys.stderr.flush()
        finally:
            os._exit(70)
    os.close(read)
    try:
        if not host:
            write_id_maps(pid, os.getuid(), os.getgid())
        os.write(write, b"g")
    finally:
        os.close(write)
    pidfd = os.pidfd_open(pid)
    try:
        while not os.waitpid(pid, os.WNOHANG)[0]:
            if ended:
                with suppress(ProcessLookupError):
                    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                os.waitpid(pid, 0)
                return
            time.sleep(0.2)
    finally:
        os.close(pidfd)


def _end_what_is_left(directory: str, place: Place, *, host: bool) -> None:
    """End containers whose shim has died in the machine's PID namespace, and take away the groups that it had made.

    A shim that had a PID namespace of its own left no container: they ended with that namespace, and the pids in its
    journals are those of other processes here.
    """
    cgroups = open_cgroups(_groups(directory, place))
    if host:
        _end_containers(directory, cgroups)
    if isinstance(cgroups, OfAnyParent):
        with suppress(OSError):
            cgroups.sweep()


def _groups(directory: str, place: Place) -> dict[str, Any]:
    return place.facts(any_parent=os.path.join(directory, "shim", "groups.json"))


def _end_containers(directory: str, cgroups: Cgroups) -> None:
    for past in read_journals(os.path.join(directory, "shim", "processes")):
        for _ in range(_KILL_ROUNDS):
            if past.over or not past.lives():
                break
            with suppress(ProcessLookupError):
                os.kill(past.pid, signal.SIGKILL)
            time.sleep(_KILL_PAUSE)
        if not past.exec_id:
            cgroups.kill(past.group)  # what shared the machine's PID namespace


def _become_shim(directory: str, place: Place, *, host: bool) -> None:
    """Never returns. Raises OSError."""
    linux.set_parent_death_signal(signal.SIGKILL)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if not host:
        # What is mounted on the host later (a kubelet's volumes) is seen, nothing goes back.
        linux.mount("none", "/", None, linux.MS_REC | linux.MS_SLAVE)
        linux.mount("proc", "/proc", "proc", linux.MS_NOSUID | linux.MS_NODEV | linux.MS_NOEXEC)
        linux.bring_up_loopback()
    os.setsid()
    os.umask(0o022)
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    program = os.path.join(package, "cri", "sandbox", "shim", "__main__.py")
    arguments = [
        sys.executable, "-I", "-S", program,
        "--socket", socket_path(directory), "--state", os.path.join(directory, "shim"),
        "--cgroups", json.dumps(_groups(directory, place)), *(("--host", "1") if host else ()),
    ]  # fmt: skip
    with suppress(OSError):
        linux.execv_read_only(sys.executable, arguments)
    os.execv(sys.executable, arguments)  # noqa: S606 (no shell is the point)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
