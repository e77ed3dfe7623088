"""Framing of the private protocols: JSON objects, and file descriptors beside them (SCM_RIGHTS), over Unix sockets.

Three framings, for three kinds of ends; what is in a message is the same in all (`world/messages.py`).

- `Packets`, SEQPACKET: ends that outlive the process behind them. A message is one packet, so a process that is killed
  leaves whole ones, and threads may send beside one another.
- `Frames`, a stream: large messages with raw attachments. A frame is two 32-bit lengths (JSON, attachments), the JSON
  object, and the attachments one after the other; their lengths are the message's `blobs`. `fds` says how many
  descriptors came with it, on the frame's first byte.
- lines, a stream: an object a line, for what a newer or an older lastcall has to understand too, or `socat`.

Standard library only: the shim uses this.
"""

# check: standard library

from __future__ import annotations

import array
import contextlib
import json
import os
import socket
from collections import deque
from struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    Fields = dict[str, Any]

_HEADER = Struct("=II")
_MAXIMUM = 64 << 20
_READ_SIZE, _ANCILLARY_SIZE = 1 << 16, socket.CMSG_SPACE(16 * 4)
_PACKET_SIZE = 128 << 10
_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


class WireError(Exception):
    """The other side sent what is not a message."""


def encode(fields: Fields) -> bytes:
    """Encode as compact JSON. A lone surrogate, Python's form of a byte that is not UTF-8 (argv, paths), is kept."""
    return _encode(fields).encode("utf-8", "surrogatepass")


def decode(data: bytes | bytearray) -> Fields:
    """Decode the object of one message or line. Raises WireError."""
    try:
        fields = json.loads(data.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError) as error:
        raise WireError(f"not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise WireError("not a JSON object")
    return fields


def rights(fds: Iterable[int]) -> list[tuple[int, int, array.array[int]]]:
    """Return ancillary data that gives the other end these descriptors."""
    numbers = array.array("i", fds)
    return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers)] if numbers else []


def descriptors(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    """Return the descriptors that came; they belong to the caller."""
    numbers = array.array("i")
    for level, kind, payload in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            numbers.frombytes(payload[: len(payload) - len(payload) % numbers.itemsize])
    return list(numbers)


class Packets:
    """One end of a SEQPACKET pair. Blocking or not is the socket's setting; `close` closes it."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self.closed = False

    def send(self, fields: Fields, fds: tuple[int, ...] = (), *, at_once: bool = False) -> None:
        """Send one message; `at_once` does not wait on a blocking socket. Raises OSError. `fds` stay the caller's."""
        # Not socket.send_fds, which ignores its flags before Python 3.12.
        flags = socket.MSG_NOSIGNAL | (socket.MSG_DONTWAIT if at_once else 0)
        self.socket.sendmsg([encode(fields)], rights(fds), flags)

    def read(self) -> list[tuple[Fields, tuple[int, ...]]]:
        """Read every message that has come, without waiting; `closed` turns True when the other end has closed.

        The descriptors are the caller's. What is not a JSON object is `({}, ())`, an unknown verb to its reader; the
        descriptors beside it are closed.
        """
        found: list[tuple[Fields, tuple[int, ...]]] = []
        while not self.closed:
            try:
                # Not socket.recv_fds, which ignores its flags before Python 3.12.
                data, ancillary, _, _ = self.socket.recvmsg(
                    _PACKET_SIZE, _ANCILLARY_SIZE, socket.MSG_CMSG_CLOEXEC | socket.MSG_DONTWAIT
                )
            except (BlockingIOError, InterruptedError):
                break
            except OSError:
                data, ancillary = b"", []
            fds = tuple(descriptors(ancillary))
            if not data:
                self.closed = True
                break
            try:
                found.append((decode(data), fds))
            except WireError:
                for fd in fds:
                    os.close(fd)
                found.append(({}, ()))
        return found

    def close(self) -> None:
        self.socket.close()


def packets_pair() -> tuple[socket.socket, socket.socket]:
    """Create both ends of a `Packets` connection."""
    return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)


class Frames:
    """One end of a stream. The socket is non-blocking; the owner watches it and calls `receive` and `flush`."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.socket = sock
        self._out: deque[tuple[bytes | memoryview, list[int], tuple[int, ...]]] = deque()
        self._in = bytearray()
        self._fds: deque[int] = deque()

    def send(
        self, message: Fields, blobs: tuple[bytes, ...] = (), fds: tuple[int, ...] = (), given: tuple[int, ...] = ()
    ) -> bool:
        """Queue a frame and write what the socket takes; return False if some is left for `flush`. Raises OSError.

        `fds` stay the caller's and must be open until `send` or the last `flush` has returned True. `given` come after
        them and belong to the connection, which closes them when they are on their way.
        """
        if blobs:
            message = {**message, "blobs": [len(blob) for blob in blobs]}
        if fds or given:
            message = {**message, "fds": len(fds) + len(given)}
        text = encode(message)
        frame = b"".join((_HEADER.pack(len(text), sum(map(len, blobs))), text, *blobs))
        self._out.append((frame, [*fds, *given], given))
        return self.flush()

    def flush(self) -> bool:
        """Write what the socket takes; return True if nothing is left. Raises OSError."""
        while self._out:
            data, fds, given = self._out[0]
            try:
                sent = self.socket.sendmsg([data], rights(fds), socket.MSG_NOSIGNAL)
            except BlockingIOError:
                return False
            for fd in given:
                os.close(fd)
            if sent < len(data):
                self._out[0] = (memoryview(data)[sent:], [], ())
            else:
                self._out.popleft()
        return True

    @property
    def unsent(self) -> int:
        """Count the bytes that wait to be written."""
        return sum(len(data) for data, _, _ in self._out)

    def receive(self) -> list[tuple[Fields, tuple[bytes, ...], tuple[int, ...]]] | None:
        """Read every whole message that has arrived, with its attachments and fds; None when the other side has closed.

        Raises WireError for what is not a frame, OSError.
        """
        closed = False
        while True:
            try:
                data, ancillary, _, _ = self.socket.recvmsg(_READ_SIZE, _ANCILLARY_SIZE, socket.MSG_CMSG_CLOEXEC)
            except BlockingIOError:
                break
            except ConnectionResetError:
                data, ancillary = b"", []
            self._fds.extend(descriptors(ancillary))
            if not data:
                closed = True
                break
            self._in += data
            if len(data) < _READ_SIZE:
                break  # the level-triggered watcher calls again if there is more
        messages = self._frames()
        return None if closed and not messages else messages

    def _frames(self) -> list[tuple[Fields, tuple[bytes, ...], tuple[int, ...]]]:
        messages = []
        while len(self._in) >= _HEADER.size:
            length, attached = _HEADER.unpack_from(self._in)
            if length + attached > _MAXIMUM:
                raise WireError(f"a frame of {length + attached} bytes")
            start = _HEADER.size + length
            if len(self._in) < start + attached:
                break
            message = decode(self._in[_HEADER.size : start])
            sizes, count = message.get("blobs", []), message.get("fds", 0)
            if not isinstance(sizes, list) or not all(map(_is_count, sizes)) or sum(sizes) != attached:
                raise WireError("a frame whose attachments are not as long as it says")
            if not _is_count(count):
                raise WireError("a frame whose number of descriptors is not a number")
            blobs = []
            for size in sizes:
                blobs.append(bytes(self._in[start : start + size]))
                start += size
            del self._in[: _HEADER.size + length + attached]
            fds = tuple(self._fds.popleft() for _ in range(min(count, len(self._fds))))
            messages.append((message, tuple(blobs), fds))
        return messages

    def close(self) -> None:
        """Close the socket and every fd that no message claimed or that was still to be given."""
        while self._fds:
            os.close(self._fds.popleft())
        for _, _, given in self._out:
            for fd in given:
                os.close(fd)
        self._out.clear()
        self.socket.close()


def listen(path: str) -> socket.socket:
    """Return a socket that listens at `path`, for this user only, in place of one that a dead process left there.

    Raises OSError.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    mask = os.umask(0o177)
    try:
        sock.bind(path)
    finally:
        os.umask(mask)
    sock.listen(16)
    sock.setblocking(False)
    return sock


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0
