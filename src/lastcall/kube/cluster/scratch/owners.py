"""Mounts of the disk for the ids of a Pod: front makes them, as root of the machine. The shim cannot.

An idmapped mount needs root of the user namespace that mounted the file system (mount_setattr(2)). Of a tmpfs of the
cluster that is the cluster's root, of the host's disk only the host's. A child of a shim sends a detached mount, the
Pod's user namespace and a socket for the answer (`kube/cri/sandbox/shim/idmap.py`). That gives the cluster nothing it
has not got: as root its ids are the machine's, and so is its right to every file that it sees.
"""

import asyncio
import os
import socket
from contextlib import suppress

from lastcall.world import linux

_FDS = 3
_MOST_BYTES = 16


def owners_pair() -> tuple[socket.socket, socket.socket]:
    """Return front's and the shims' ends. Raises OSError."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


class OwnersServer:
    """Front's side: `start` in the event loop, `close` at the end."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        self._socket.setblocking(False)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._socket, self._serve)

    def close(self) -> None:
        """Stop serving. Idempotent."""
        if self._socket.fileno() >= 0:
            if self._loop is not None and not self._loop.is_closed():
                self._loop.remove_reader(self._socket)
            self._socket.close()

    def _serve(self) -> None:
        try:
            data, fds, _, _ = socket.recv_fds(self._socket, _MOST_BYTES, _FDS)
        except BlockingIOError:
            return
        except OSError:
            data, fds = b"", []
        if not data:
            self.close()
        elif len(fds) == _FDS:
            _answer(*fds)
        for fd in fds:
            os.close(fd)


def _answer(tree: int, users: int, answer: int) -> None:
    """Map the owners of a detached mount; answer with the number of the error, 0 for none."""
    number = 0
    try:
        flags = linux.AT_EMPTY_PATH | linux.AT_RECURSIVE
        linux.mount_setattr(tree, "", flags, linux.MOUNT_ATTR_IDMAP, userns_fd=users)
    except OSError as error:
        number = error.errno or 1
    with suppress(OSError):
        os.write(answer, str(number).encode())
