"""`lastcall up --state DIR`: what outlives a cluster.

DIR (0700) holds `version.json`, `credentials.json` (0600: the authority, the ServiceAccount key, the admin's token,
the API's port), `nodes.json` (nodes that came and went), `durable/` (the cluster's `DURABLE_DIR`: the store) and
`lock`, held by flock(2) while a cluster runs on it. A newer version is refused and an older one migrated, one version
at a time.
"""

import fcntl
import json
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self
from zlib import crc32

from lastcall._version import __version__
from lastcall.kube.cluster.directory import naming, own_directory, read_file, write_file
from lastcall.kube.cluster.errors import ClusterUsageError, DirectoryError, NewerVersion
from lastcall.kube.cluster.staying.credentials import Identity
from lastcall.kube.cluster.staying.kept_nodes import NODES_FILE, KeptNodes
from lastcall.world.blocking import monotonic, sleep, wall

VERSION = 1
MIGRATIONS: dict[int, Callable[[int], None]] = {}
"""Version → what makes the next one of it, given the directory's fd. It may be killed and then runs again."""

VERSION_FILE = "version.json"
CREDENTIALS_FILE = "credentials.json"
DURABLE = "durable"
LOCK = "lock"

_LOCK_SECONDS = 2.0
"""How long the last processes of a cluster that was just killed may still hold the lock."""


class StateDirectory:
    """An opened and locked state directory of this version. `notes` are sentences for the user."""

    def __init__(self, path: str, fd: int, lock_fd: int) -> None:
        self.path = path
        self.notes: list[str] = []
        self._fd = fd
        self._lock_fd = lock_fd

    @classmethod
    def open(cls, path: str) -> Self:
        """Open DIR, which is made if it is missing (in a directory that exists), and bring it to this version.

        Raises ClusterUsageError (not ours, another use, in use), NewerVersion, OSError (a full disk).
        """
        path = os.path.realpath(path)
        try:
            with suppress(FileExistsError):
                os.mkdir(path, 0o700)
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
            fd = own_directory(fd, path, "name a directory of your own (--state)")
        except DirectoryError as error:
            raise ClusterUsageError(str(error)) from error
        except (PermissionError, FileNotFoundError, NotADirectoryError) as error:
            raise ClusterUsageError(
                f"--state {path}: {error.strerror}: name a directory that you may write to, in one that exists"
            ) from error
        try:
            _refuse_what_is_somebody_elses(fd, path)  # before anything is left in it
            state = cls(path, fd, _lock(fd, path))
        except BaseException:
            os.close(fd)
            raise
        try:
            state._bring_up_to_date()
            with naming(fd, DURABLE), suppress(FileExistsError):
                os.mkdir(DURABLE, 0o700, dir_fd=fd)
        except BaseException:
            state.close()
            raise
        return state

    @property
    def durable(self) -> str:
        """Return the host's path for `ClusterOptions.state`."""
        return f"{self.path}/{DURABLE}"

    def close(self) -> None:
        """Release the lock; forks of this process that hold it too keep it until they end."""
        os.close(self._fd)
        os.close(self._lock_fd)

    # -- version -----------------------------------------------------------------------------------------------------

    def _bring_up_to_date(self) -> None:
        file = f"{self.path}/{VERSION_FILE}"
        try:
            found = json.loads(read_file(self._fd, VERSION_FILE))
            version = found["version"]
            if not isinstance(version, int) or isinstance(version, bool) or version < 0:
                raise ValueError(f"version is {version!r}")
        except FileNotFoundError:
            self._begin()
            return
        except (ValueError, KeyError, TypeError) as error:
            raise ClusterUsageError(
                f"{file} cannot be understood ({error}): restore it from a copy, or name another directory (--state)"
            ) from error
        if version > VERSION:
            raise NewerVersion(
                f"{file} has version {version}, written by lastcall {found.get('lastcall')}; this lastcall "
                f"{__version__} knows versions up to {VERSION}: use the newer lastcall, or name another directory "
                "(--state)"
            )
        while version < VERSION:
            if version not in MIGRATIONS:
                raise ClusterUsageError(
                    f"{file} has version {version}, which lastcall {__version__} no longer reads: "
                    "name another directory (--state)"
                )
            MIGRATIONS[version](self._fd)
            version += 1
            self._write_version({**found, "version": version, "lastcall": __version__})
            self.notes.append(f"{self.path} was migrated to version {version}")

    def _begin(self) -> None:
        """The first use."""
        _refuse_what_is_somebody_elses(self._fd, self.path)
        self._write_version({"version": VERSION, "lastcall": __version__, "created": wall()})

    def _write_version(self, content: dict[str, Any]) -> None:
        write_file(self._fd, VERSION_FILE, json.dumps(content) + "\n")

    # -- nodes -------------------------------------------------------------------------------------------------------

    def nodes(self) -> KeptNodes:
        """Return which nodes came and went, which keeps what will. Raises ClusterUsageError."""

        def write(text: str) -> None:
            write_file(self._fd, NODES_FILE, text)

        try:
            return KeptNodes.read(read_file(self._fd, NODES_FILE), write)
        except FileNotFoundError:
            return KeptNodes(write=write)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ClusterUsageError(
                f"{self.path}/{NODES_FILE} cannot be understood ({error!r}): restore it from a copy, or remove it (the "
                "cluster starts with the nodes of --nodes then)"
            ) from error

    # -- credentials -------------------------------------------------------------------------------------------------

    def credentials(self) -> "tuple[Identity, int]":
        """Return the kept identity and API port; a new identity and port 0 the first time. Raises ClusterUsageError."""
        try:
            found = json.loads(read_file(self._fd, CREDENTIALS_FILE))
            checksum = found.pop("checksum", None)  # an older version wrote none
            if checksum is not None and checksum != _checksum(found):
                raise ValueError("it is not what was written")
            identity = Identity(
                found["caCertificate"].encode(),
                found["caKey"].encode(),
                found["serviceAccountKey"].encode(),
                str(found["adminToken"]),
            )
            port = int(found["apiPort"])
        except FileNotFoundError:
            return Identity.new(), 0
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ClusterUsageError(
                f"{self.path}/{CREDENTIALS_FILE} cannot be understood ({error!r}): restore it from a copy, or remove "
                "it (kubeconfigs made before then stop working)"
            ) from error
        return identity, port

    def keep_credentials(self, identity: "Identity", api_port: int) -> None:
        """Write them for the next time, unless they are there: a full disk needs no more room. Raises OSError."""
        content = {
            "caCertificate": identity.ca_certificate.decode(),
            "caKey": identity.ca_key.decode(),
            "serviceAccountKey": identity.service_account_key.decode(),
            "adminToken": identity.admin_token,
            "apiPort": api_port,
        }
        text = json.dumps({**content, "checksum": _checksum(content)}) + "\n"
        with suppress(FileNotFoundError):
            if read_file(self._fd, CREDENTIALS_FILE) == text:
                return
        write_file(self._fd, CREDENTIALS_FILE, text)


def _checksum(content: dict[str, Any]) -> int:
    return crc32(json.dumps(content, sort_keys=True).encode())


def _refuse_what_is_somebody_elses(fd: int, path: str) -> None:
    """Raises ClusterUsageError for a directory with files in it that is not one of ours."""
    names = sorted(os.listdir(fd))
    others = [name for name in names if name != LOCK and not name.startswith(f".{VERSION_FILE}")]
    if others and VERSION_FILE not in names:
        raise ClusterUsageError(
            f"{path} is not empty ({others[0]}) and has no {VERSION_FILE}: it is not a state directory of "
            "lastcall; name an empty or a new one (--state)"
        )


def _lock(directory: int, path: str) -> int:
    with naming(directory, LOCK):
        fd = os.open(LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=directory)
    deadline = monotonic() + _LOCK_SECONDS
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return fd
        except BlockingIOError:
            if monotonic() < deadline:
                sleep(0.02)
                continue
            os.close(fd)
            raise ClusterUsageError(
                f"{path} is in use by another cluster (lastcall status shows it): end that one, or name another "
                "directory (--state)"
            ) from None
        except BaseException:
            os.close(fd)
            raise
