"""The directory of a staying cluster on the host: `$XDG_STATE_HOME/lastcall/<name>/` (0700).

It holds `lock`, `front.json`, `front.sock`, `front.log` and `kubeconfig` (0600), and is gone when the cluster is.
A cluster lives as long as its lock is held, which front and what it forked hold by flock(2), never by a pid: a
directory whose lock is free is what a killed front left, and the next process that finds it clears it.

Everything is reached through directory file descriptors: no name in a path can be swapped for a link meanwhile.
"""

import errno
import json
import os
import re
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Self, cast

from lastcall.kube.cluster.errors import ClusterUsageError, DirectoryError
from lastcall.kube.cri.sandbox.images.place import own_home
from lastcall.world.files import replace_file

if sys.platform == "linux":  # `import lastcall` works elsewhere
    import fcntl

    _DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

LOCK = "lock"
FACTS = "front.json"
SOCKET = "front.sock"
LOG = "front.log"
KUBECONFIG = "kubeconfig"

DEFAULT_NAME = "lastcall"

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_TRY_THE_NEXT = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT, errno.ENOTDIR)


def check_name(name: str) -> str:
    """Return the name itself. Raises ClusterUsageError: it becomes a directory, a host name and a kubeconfig's
    context."""
    if not _NAME.fullmatch(name):
        raise ClusterUsageError(
            f"{name!r} is not a valid cluster name: at most 63 lower-case letters, digits and '-', no '-' at its ends"
        )
    return name


def places(environ: Mapping[str, str] | None = None) -> list[str]:
    """Return where the clusters' directories may be, the preferred place first.

    `XDG_STATE_HOME` alone when it is set; else below the home directory, in `XDG_RUNTIME_DIR`, or in /tmp. Under sudo
    HOME may be another user's: root then takes its own. (XDG Base Directory Specification; a relative path is ignored.)
    """
    env = os.environ if environ is None else environ
    state = env.get("XDG_STATE_HOME", "")
    if os.path.isabs(state):
        return [f"{state}/lastcall"]
    found = []
    if home := own_home(env):
        found.append(f"{home}/.local/state/lastcall")
    runtime = env.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(runtime):
        found.append(f"{runtime}/lastcall")
    return [*found, f"/tmp/lastcall-{os.geteuid()}"]  # noqa: S108 (its owner and mode are checked, links are not followed)


class ClusterDirectory:
    """One cluster's directory, opened. `fd` is the directory's. Close it, or use it as a context manager."""

    def __init__(self, name: str, place: str, place_fd: int, fd: int) -> None:
        self.name = name
        self.path = f"{place}/{name}"
        self.fd = fd
        self._place = place
        self._place_fd = place_fd
        self._lock_fd = -1

    # -- finding and making ------------------------------------------------------------------------------------------

    @classmethod
    def find(cls, name: str) -> Self | None:
        """Return the existing directory of that name, None when there is none. Raises DirectoryError for a foreign
        one."""
        check_name(name)
        for place in places():
            with suppress(FileNotFoundError, NotADirectoryError):
                place_fd = _open_own(place)
                if place_fd is None:
                    continue
                try:
                    return cls(name, place, place_fd, _open_below(place_fd, name, place))
                except BaseException:
                    os.close(place_fd)
                    raise
        return None

    @classmethod
    def make(cls, name: str) -> Self:
        """Return the directory of that name, made where it is missing. Raises DirectoryError, or OSError (a full
        disk)."""
        check_name(name)
        found = cls.find(name)
        if found is not None:
            return found
        refused = []
        for place in places():
            try:
                place_fd = _make_own(place)
            except DirectoryError as error:
                refused.append(str(error))
                continue
            try:
                with suppress(FileExistsError):
                    os.mkdir(name, 0o700, dir_fd=place_fd)
                return cls(name, place, place_fd, _open_below(place_fd, name, place))
            except OSError as error:
                os.close(place_fd)
                if error.errno not in _TRY_THE_NEXT or isinstance(error, FileNotFoundError):
                    raise
                refused.append(f"{place}: {error.strerror}")
        raise DirectoryError(
            f"no directory for the cluster's kubeconfig and socket ({'; '.join(refused)}): "
            "set XDG_STATE_HOME to a directory that you may write to"
        )

    def close(self) -> None:
        """Close the directory, and release the lock unless a fork of this process holds it too."""
        for fd in (self.fd, self._place_fd, self._lock_fd):
            if fd >= 0:
                os.close(fd)
        self.fd = self._place_fd = self._lock_fd = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- the lock ----------------------------------------------------------------------------------------------------

    def lock(self, *, make: bool = True) -> bool:
        """Take the lock; return False if another process has it, or if the directory was removed meanwhile.

        With `make` False a missing lock file is not made, and the answer is False. Roles forked afterwards hold the
        lock as well: it is free only when all of them have ended.
        """
        flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | (os.O_CREAT if make else 0)
        try:
            fd = os.open(LOCK, flags, 0o600, dir_fd=self.fd)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(fd), os.stat(LOCK, dir_fd=self.fd, follow_symlinks=False)):
                self._lock_fd, fd = fd, -1
                return True
        except (BlockingIOError, FileNotFoundError):
            pass
        finally:
            if fd >= 0:
                os.close(fd)
        return False

    # -- files -------------------------------------------------------------------------------------------------------

    def write(self, name: str, text: str) -> None:
        """Write a file (0600) in one step: a reader sees the old one or the new one. Raises OSError."""
        write_file(self.fd, name, text)

    def read(self, name: str) -> str:
        """Return a file's text. Raises OSError."""
        return read_file(self.fd, name)

    def facts(self) -> dict[str, Any]:
        """Return `front.json`; {} when there is none (yet)."""
        try:
            found = json.loads(self.read(FACTS))
        except (OSError, ValueError):
            return {}
        return cast(dict[str, Any], found) if isinstance(found, dict) else {}

    def clear(self) -> None:
        """Remove every file but the lock; for its holder."""
        for name in os.listdir(self.fd):
            if name != LOCK:
                with suppress(OSError):
                    os.unlink(name, dir_fd=self.fd)

    def remove(self) -> None:
        """Remove the directory and what is in it; for the lock's holder. Never raises."""
        with suppress(OSError):
            self.clear()
            os.unlink(LOCK, dir_fd=self.fd)
        with suppress(OSError):
            os.rmdir(self.name, dir_fd=self._place_fd)
        with suppress(OSError):
            os.rmdir(self._place)


def names() -> list[str]:
    """Return every name that has a directory, sorted. Raises DirectoryError for a place that is another user's."""
    found: dict[str, None] = {}
    for place in places():
        with suppress(FileNotFoundError, NotADirectoryError):
            fd = _open_own(place)
            if fd is None:
                continue
            try:
                found |= {name: None for name in os.listdir(fd) if _NAME.fullmatch(name)}
            finally:
                os.close(fd)
    return sorted(found)


def name_in_kubeconfig(environ: Mapping[str, str] | None = None) -> str:
    """Return the cluster whose own kubeconfig $KUBECONFIG names; "" for any other one."""
    env = os.environ if environ is None else environ
    directory, file = os.path.split(env.get("KUBECONFIG", ""))
    place, name = os.path.split(directory)
    return name if file == KUBECONFIG and place in places(env) else ""


@contextmanager
def naming(dir_fd: int, name: str) -> Iterator[None]:
    """Give an OSError of the block the whole path of a file of the directory, which the kernel knows."""
    try:
        yield
    except OSError as error:
        with suppress(OSError):
            error.filename = os.path.join(os.readlink(f"/proc/self/fd/{dir_fd}"), name)
        raise


def write_file(dir_fd: int, name: str, text: str) -> None:
    """Write a file (0600) of a directory in one step. Raises OSError with its path."""
    with naming(dir_fd, name):
        replace_file(name, text.encode(), temporary=f".{name}.{os.getpid()}", durable=True, dir_fd=dir_fd)


def read_file(dir_fd: int, name: str) -> str:
    """Read the text of a file of a directory. Raises OSError."""
    with open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd), "rb") as file:
        return file.read().decode(errors="replace")


def _make_own(path: str) -> int:
    """An fd of our directory `path` (0700), made where it is missing. Raises DirectoryError."""
    try:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)
        fd = _open_own(path)
    except OSError as error:
        raise DirectoryError(f"{path}: {error.strerror}") from error
    if fd is None:
        raise DirectoryError(f"{path}: {os.strerror(errno.EACCES)}")
    return fd


def _open_own(path: str) -> int | None:
    """An fd of our directory; None where we may not look. Raises FileNotFoundError, or DirectoryError if not ours."""
    try:
        return own_directory(os.open(path, _DIRECTORY), path)
    except FileNotFoundError:
        raise
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR) and os.path.islink(path):
            raise DirectoryError(_no_directory(path)) from error
        if error.errno in (errno.EACCES, errno.EPERM):
            return None
        raise


def _open_below(place_fd: int, name: str, place: str) -> int:
    try:
        return own_directory(os.open(name, _DIRECTORY, dir_fd=place_fd), f"{place}/{name}")
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR):
            raise DirectoryError(_no_directory(f"{place}/{name}")) from error
        raise


def _no_directory(path: str) -> str:
    return f"{path} is not a directory but a file or a symbolic link: remove it, or set XDG_STATE_HOME to another place"


def own_directory(fd: int, path: str, way_out: str = "remove it, or set XDG_STATE_HOME to another place") -> int:
    """Return `fd` if the directory is ours, and set its mode to 0700. Else close it and raise DirectoryError."""
    found = os.fstat(fd)
    try:
        if found.st_uid != os.geteuid():
            raise DirectoryError(f"{path} belongs to uid {found.st_uid} and this is uid {os.geteuid()}: {way_out}")
        if stat.S_IMODE(found.st_mode) != 0o700:
            os.fchmod(fd, 0o700)
    except BaseException:
        os.close(fd)
        raise
    return fd
