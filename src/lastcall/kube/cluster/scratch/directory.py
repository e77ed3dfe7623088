"""The directory of one cluster: `$XDG_DATA_HOME/lastcall/scratch/<boot id>/` (0700), beside the images.

What containers write is no memory of theirs on a node, so it cannot be in a tmpfs here: the kernel would count it with
their limits, and kill them. `files` is what the cluster has mounted. `lock` is held (flock(2)) by front and inherited
by init and the roles: where it is free all of them have ended, and the next start or `lastcall doctor` removes what is
left. Whoever looks at `scratch`, makes a directory there or removes one holds a lock on it.

Containers filled these directories: no link is followed, no mount entered (`world/remove_tree.py`). Where their files
belong to other users than ours, a child in a user namespace with those ids removes them.
"""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from lastcall.kube.cluster.directory import own_directory
from lastcall.kube.cluster.errors import DirectoryError
from lastcall.kube.cluster.scratch.suitable import Disk, look, why_not
from lastcall.kube.cri.sandbox.images.place import data_home
from lastcall.world import linux
from lastcall.world.dataclass import dataclass
from lastcall.world.id_maps import why_not_id_mapped, write_id_maps
from lastcall.world.remove_tree import remove_tree

FILES, _LOCK = "files", "lock"
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_TRIES = 100
"""A directory that other processes are just removing is made anew."""
_WAY_OUT = "remove it, or set XDG_DATA_HOME to another place"


@dataclass(slots=True)
class Scratch:
    """`path` is the directory of the host. It may have `bytes`, and `free` bytes and inodes were there when it was made
    (0 inodes: the file system does not count them).

    `maps_owners`: front, as root of the machine, can mount parts of it for the ids of a Pod (`owners.py`).
    """

    path: str
    bytes: int
    free: tuple[int, int]
    maps_owners: bool
    _place: int
    _fd: int
    _lock: int

    def mount(self, old_root: str, target: str) -> str:
        """Mount the files on a directory, in init. Return why containers cannot write there, "" if they can."""
        try:
            linux.mount(f"{old_root}{self.path}/{FILES}", target, None, linux.MS_BIND)
        except OSError as error:
            return str(error)
        try:
            here = os.stat(FILES, dir_fd=self._fd, follow_symlinks=False)
            if os.path.samestat(os.stat(target), here):
                try_overlay(target)
                return ""
            why = f"{self.path} was replaced"
        except OSError as error:
            why = str(error)
        linux.umount2(target, linux.MNT_DETACH)
        return why

    def empty(self) -> None:
        """Remove the directory, in init, whose ids are those of the containers. Never raises.

        Front may have been killed. The host's directories have no path here, so those above are found by `..`.
        """
        _remove(self._place, os.path.basename(self.path))
        with suppress(OSError), _opened(".", self._place) as scratch:
            fcntl.flock(scratch, fcntl.LOCK_EX)
            with _opened("..", scratch) as home, _opened("..", home) as above:
                os.rmdir(os.path.basename(os.path.dirname(self.path)), dir_fd=home)
                os.rmdir(os.path.basename(os.path.dirname(os.path.dirname(self.path))), dir_fd=above)

    def remove(self) -> None:
        """Remove the directory with what is still in it, in front, at the end. Idempotent, never raises."""
        if self._fd < 0:
            return
        _remove(self._place, os.path.basename(self.path))
        for fd in (self._fd, self._lock, self._place):
            os.close(fd)
        self._fd = -1
        with suppress(OSError, DirectoryError), _locked(make=False):
            pass  # the last one removes what held them


def claim(name: str, size: int, *, mapped: bool) -> tuple[Scratch | None, str]:
    """Remove what clusters left that have ended, and make the directory `name` for at most `size` bytes.

    `mapped`: only where parts of it can be mounted for the ids of a Pod. Return None and the reason where no directory
    on disk can hold what containers write. Never raises.
    """
    try:
        with _locked(make=True) as place:
            left = _leftovers(place)
            if not left:
                return _make(place, name, size, mapped)
        for each, lock in left:  # no other process waits meanwhile: it may take long
            _remove(lock.place, each)
            lock.close()
        with _locked(make=True) as place:
            return _make(place, name, size, mapped)
    except (OSError, DirectoryError) as error:
        return None, str(error)


def _make(place: int, name: str, size: int, mapped: bool) -> tuple[Scratch | None, str]:
    disk = look(place)
    path = os.readlink(f"/proc/self/fd/{place}")
    if why := why_not(disk, size):
        return None, f"{path}: {why}"
    os.mkdir(name, 0o700, dir_fd=place)
    fds: list[int] = []
    try:
        fds.append(os.open(".", _DIRECTORY, dir_fd=place))  # of its own: the lock on the other one is to end
        fds.append(os.open(name, _DIRECTORY, dir_fd=place))
        fds.append(os.open(_LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600, dir_fd=fds[1]))
        fcntl.flock(fds[2], fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.mkdir(FILES, 0o755, dir_fd=fds[1])
        unmapped = why_not_id_mapped(f"{path}/{name}/{FILES}") if os.getuid() == 0 else "not root"
        if mapped and unmapped:
            raise OSError(errno.EOPNOTSUPP, f"owners of files cannot be mapped there ({unmapped})", path)
    except BaseException:
        _remove(place, name)
        for fd in fds:
            os.close(fd)
        raise
    return _scratch(f"{path}/{name}", disk, size, not unmapped, *fds), ""


def _scratch(path: str, disk: Disk, size: int, maps_owners: bool, place: int, fd: int, lock: int) -> Scratch:
    return Scratch(path, min(size, disk.free), (disk.free, disk.inodes), maps_owners, place, fd, lock)


@dataclass(frozen=True, slots=True)
class _Left:
    """A leftover's lock, held meanwhile so that no other process removes it too, and the directory it is in."""

    place: int
    lock: int

    def close(self) -> None:
        for fd in (self.place, self.lock):
            if fd >= 0:
                os.close(fd)


def _leftovers(place: int) -> list[tuple[str, _Left]]:
    """Return those of clusters that have ended, by name. The caller holds the lock on `place`. Raises OSError."""
    found = []
    for name in sorted(os.listdir(place)):
        own = lock = -1
        try:
            own = os.open(".", _DIRECTORY, dir_fd=place)
            lock = os.open(f"{name}/{_LOCK}", os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=place)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            pass  # its maker, or who removed it, was killed
        except OSError:
            _Left(own, lock).close()
            continue
        found.append((name, _Left(own, lock)))
    return found


@contextmanager
def _locked(*, make: bool) -> Iterator[int]:
    """Open `scratch` and lock it; remove it afterwards if it is empty. Raises OSError, DirectoryError."""
    home = os.path.realpath(data_home())
    path = f"{home}/scratch"
    for left in reversed(range(_TRIES)):
        try:
            place = own_directory(_opened_or_made(home, path, make=make), path, _WAY_OUT)
        except (FileNotFoundError, FileExistsError):
            if not make or not left:
                raise
            continue
        fcntl.flock(place, fcntl.LOCK_EX)
        if os.fstat(place).st_nlink:
            break
        os.close(place)
    else:
        raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    try:
        yield place
    finally:
        with suppress(OSError):
            os.rmdir(path)
            os.rmdir(home)
        os.close(place)


def _opened_or_made(home: str, path: str, *, make: bool) -> int:
    """Raises FileNotFoundError and FileExistsError where another process removes what is being made, and OSError."""
    if make:
        os.makedirs(home, exist_ok=True)
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)
    return os.open(path, _DIRECTORY)


@contextmanager
def _opened(name: str, above: int) -> Iterator[int]:
    fd = os.open(name, _DIRECTORY, dir_fd=above)
    try:
        yield fd
    finally:
        os.close(fd)


def _remove(place: int, name: str) -> None:
    """Remove a directory below `place`. What cannot be removed stays, for the next who looks. Never raises."""
    path = f"/proc/self/fd/{place}/{name}"
    try:
        remove_tree(path)
    except PermissionError:
        with suppress(OSError):
            _in_user_namespace(path)
    except OSError:
        pass


def _in_user_namespace(path: str) -> None:
    """Remove a tree in a child that is root of all ids that this user has. Raises OSError where there is no such."""
    go_read, go_write = os.pipe2(os.O_CLOEXEC)
    pid = linux.clone3(linux.CLONE_NEWUSER)
    if pid == 0:
        try:
            os.close(go_write)
            if os.read(go_read, 1):
                remove_tree(path)
        finally:
            os._exit(0)
    os.close(go_read)
    try:
        write_id_maps(pid, os.getuid(), os.getgid())
        os.write(go_write, b"g")
    finally:
        os.close(go_write)
        os.waitpid(pid, 0)


def try_overlay(directory: str) -> None:
    """Mount an overlay whose upper layer is below `directory`, and use it as a container does. Raises OSError."""
    place = f"{directory}/.probe"
    names = ("lower", "upper", "work", "merged")
    os.mkdir(place, 0o700)
    try:
        for name in names:
            os.mkdir(f"{place}/{name}")
        os.mkdir(f"{place}/lower/removed")
        layers = ",".join(f"{name}dir={place}/{name}" for name in names[:3])
        linux.mount("overlay", f"{place}/merged", "overlay", linux.MS_NODEV, f"{layers},userxattr,volatile")
        try:
            os.rmdir(f"{place}/merged/removed")
            os.mkdir(f"{place}/merged/removed")  # opaque: needs extended attributes
        finally:
            linux.umount2(f"{place}/merged", linux.MNT_DETACH)
    finally:
        remove_tree(place)
