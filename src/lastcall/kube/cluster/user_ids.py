"""The user ids of Pods that have a range of their own: which part of the machine's is this cluster's.

As root Pods get ids from `REGION`, of which https://systemd.io/UIDS-GIDS says that nobody has them: above those of
systemd-nspawn, below the foreign ones and everything that is negative somewhere. A cluster claims whole blocks of it,
so that two clusters of one machine have different ones: it locks a byte for each in a file that only root can open. The
kernel gives them back whatever becomes of the cluster. Blocks that /etc/subuid or /etc/subgid gives to a user are
left alone. Where all are claimed one is shared: to be root there is as good as to be nobody on the machine, still.

An ordinary user's cluster has what /etc/subuid gave beyond the first 65536, mostly nothing.
"""

import fcntl
import os
import struct
from contextlib import suppress
from dataclasses import field
from math import ceil

from lastcall.kube.cluster.directory import own_directory
from lastcall.kube.cluster.errors import DirectoryError
from lastcall.kube.cri.sandbox.shim.procfs import id_map
from lastcall.kube.node.pods.user_ids import IDS_PER_POD, UserIDs
from lastcall.world.dataclass import dataclass

REGION = range(0x7000_0000, 0x7FFE_0000)
PODS_PER_BLOCK = 128
_BLOCK = PODS_PER_BLOCK * IDS_PER_POD
BLOCKS = len(REGION) // _BLOCK
LOCK_DIRECTORY = "/run/lastcall"
"""Root's, mode 0700. It goes with the last cluster that gives its claim back."""
_LOCK_FILE = "user-ids"
_GATE = BLOCKS
"""The byte after those of the blocks: every cluster shares its lock, and who removes the file has it alone."""
_TRIES = 10
"""A file or directory that is just being removed is made anew."""
_MORE_PODS = 18
"""For Pods that have not ended when the next ones begin."""


_SHARED = (
    "the nodes with which this cluster was started have all user ids; start it with as many nodes as it is to have"
)


@dataclass(frozen=True, slots=True)
class UserIDBlocks:
    """`pods` ranges for each node from `first` on; none where `pods` is 0. `locks` hold the claim."""

    first: int = 0
    pods: int = 0
    locks: list[int] = field(default_factory=list)
    """File descriptors."""

    def of_node(self, number: int, nodes: int) -> UserIDs:
        """Return the ids of the node `number` (from 1); its own process asks for them."""
        if not self.pods:
            return own_ids(number, nodes)
        return UserIDs(self.first + (number - 1) * self.pods * IDS_PER_POD, self.pods, by_default=True)

    def of_joined(self) -> UserIDs:
        """Return the ids of a node that joined a running cluster, which claimed these for it alone."""
        if not self.pods:
            return UserIDs(pods=0, why=_SHARED)
        return self.of_node(1, 1)

    def release(self) -> None:
        """Release the claim, when all processes of the cluster have ended. Idempotent."""
        for fd in self.locks:
            _give_back(fd)
        self.locks.clear()


def claim_blocks(nodes: int, max_pods: int) -> UserIDBlocks:
    """Claim blocks for Pods of so many nodes, as root of the whole machine; claim none for others. Raises OSError."""
    if os.getuid() != 0 or not all(_has_region(f"/proc/self/{name}") for name in ("uid_map", "gid_map")):
        return UserIDBlocks()
    wanted = min(ceil(nodes * (max_pods + _MORE_PODS) / PODS_PER_BLOCK), BLOCKS)
    taken = subordinate_blocks("/etc/subuid") | subordinate_blocks("/etc/subgid")
    free = [blocks for blocks in _runs_of(wanted) if taken.isdisjoint(blocks)]
    if free and (fd := _open_locks()) is not None:
        for blocks in free:
            if _lock(fd, fcntl.F_WRLCK, blocks):
                return _blocks(blocks, nodes, [fd])
        _give_back(fd)
    return _blocks(free[os.getpid() % len(free)], nodes, []) if free else UserIDBlocks()


def _runs_of(count: int) -> list[range]:
    return [range(first, first + count) for first in range(BLOCKS - count + 1)]


def _blocks(blocks: range, nodes: int, locks: list[int]) -> UserIDBlocks:
    return UserIDBlocks(REGION.start + blocks.start * _BLOCK, len(blocks) * PODS_PER_BLOCK // nodes, locks)


def _has_region(path: str) -> bool:
    return any(first <= REGION.start and REGION.stop <= first + count for first, count in id_map(path))


def _open_locks() -> int | None:
    """Return a new descriptor of the file of locks, None where no directory is root's alone."""
    for _ in range(_TRIES):
        try:
            with suppress(FileExistsError):
                os.mkdir(LOCK_DIRECTORY, 0o700)
            flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
            directory = own_directory(os.open(LOCK_DIRECTORY, flags), LOCK_DIRECTORY)
            try:
                flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
                fd = os.open(_LOCK_FILE, flags, 0o600, dir_fd=directory)
            finally:
                os.close(directory)
        except FileNotFoundError:
            continue
        except (OSError, DirectoryError):
            return None
        if _lock(fd, fcntl.F_RDLCK, range(_GATE, _GATE + 1), wait=True) and os.fstat(fd).st_nlink:
            return fd
        os.close(fd)
    return None


def _lock(fd: int, kind: int, places: range, *, wait: bool = False) -> bool:
    """Lock bytes for all holders of this open file, forks included. Return False where another one has any of them."""
    wanted = struct.pack("hhqqi", kind, os.SEEK_SET, places.start, len(places), 0)
    try:
        fcntl.fcntl(fd, fcntl.F_OFD_SETLKW if wait else fcntl.F_OFD_SETLK, wanted)
    except OSError:
        return False
    return True


def _give_back(fd: int) -> None:
    """Close a descriptor of the file of locks. The last one removes the file."""
    if os.fstat(fd).st_nlink and _lock(fd, fcntl.F_WRLCK, range(_GATE, _GATE + 1)):
        with suppress(OSError):
            os.unlink(f"{LOCK_DIRECTORY}/{_LOCK_FILE}")
            os.rmdir(LOCK_DIRECTORY)
    os.close(fd)


def subordinate_blocks(path: str) -> set[int]:
    """Return the blocks of which /etc/subuid or /etc/subgid gives any id to a user."""
    found: set[int] = set()
    with suppress(OSError), open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            _, first, count = [*line.strip().split(":"), "", ""][:3]
            if first.isdecimal() and count.isdecimal():
                start, stop = max(int(first), REGION.start), min(int(first) + int(count), REGION.stop)
                if start < stop:
                    found.update(range((start - REGION.start) // _BLOCK, (stop - 1 - REGION.start) // _BLOCK + 1))
    return found


def own_ids(number: int, nodes: int) -> UserIDs:
    """Return the ids that this process has beyond the first 65536, which Pods share; only for Pods that ask for it."""
    most = min(_beyond("/proc/self/uid_map"), _beyond("/proc/self/gid_map")) // IDS_PER_POD
    pods = most // nodes
    why = ""
    if not pods:
        why = (
            "this cluster has no range of user ids for it; "
            "/etc/subuid and /etc/subgid have to give an ordinary user "
            f"{2 * IDS_PER_POD} ids for the first such Pod, {IDS_PER_POD} for each more"
        )
    return UserIDs(IDS_PER_POD * (1 + (number - 1) * pods), pods, why=why)


def _beyond(path: str) -> int:
    """How many ids there are from 65536 on, without a gap."""
    return max(
        (first + count - IDS_PER_POD for first, count in id_map(path) if first <= IDS_PER_POD < first + count),
        default=0,
    )
