"""Messages between a node and its shim: JSON with raw attachments and file descriptors over a Unix stream socket.

A frame is two 32-bit lengths (JSON, attachments), the JSON object, and the attachments one after the other; their
lengths are the message's `blobs`. `fds` says how many descriptors came with it (SCM_RIGHTS, on the frame's first byte).

Calls are `{"call": n, "verb": …}`, answers `{"answer": n, …}` or `{"answer": n, "error": {"message": …, "reason": …}}`,
events `{"event": …}`. Standard library only.
"""

from __future__ import annotations

import array
import json
import os
import socket
from collections import deque
from struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Message = dict[str, Any]

_HEADER = Struct("=II")
_MAXIMUM = 64 << 20
_READ_SIZE, _ANCILLARY_SIZE = 1 << 16, socket.CMSG_SPACE(16 * 4)
_encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


class WireError(Exception):
    """The other side sent what is no frame."""


class Connection:
    """One end. The socket is non-blocking; the owner watches it and calls `receive` and `flush`."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self.socket = sock
        self._out: deque[tuple[bytes | memoryview, list[int], tuple[int, ...]]] = deque()
        self._in = bytearray()
        self._fds: deque[int] = deque()

    def send(
        self, message: Message, blobs: tuple[bytes, ...] = (), fds: tuple[int, ...] = (), given: tuple[int, ...] = ()
    ) -> bool:
        """Queue a frame and write what the socket takes; False when some is left for `flush`. Raises OSError.

        `fds` stay the caller's and must be open until `send` or the last `flush` has returned True. `given` come after
        them and belong to the connection, which closes them when they are on their way.
        """
        if blobs:
            message = {**message, "blobs": [len(blob) for blob in blobs]}
        if fds or given:
            message = {**message, "fds": len(fds) + len(given)}
        # A lone surrogate is how Python shows a byte that is no UTF-8 (in argv or a path): it travels as it is.
        text = _encode(message).encode("utf-8", "surrogatepass")
        frame = b"".join((_HEADER.pack(len(text), sum(map(len, blobs))), text, *blobs))
        self._out.append((frame, [*fds, *given], given))
        return self.flush()

    def flush(self) -> bool:
        """Write what the socket takes; True when nothing is left. Raises OSError."""
        while self._out:
            data, fds, given = self._out[0]
            ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
            try:
                sent = self.socket.sendmsg([data], ancillary, socket.MSG_NOSIGNAL)
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
        """Bytes that wait to be written."""
        return sum(len(data) for data, _, _ in self._out)

    def receive(self) -> list[tuple[Message, tuple[bytes, ...], tuple[int, ...]]] | None:
        """Every whole message that has arrived, with its attachments and fds; None when the other side has closed.

        Raises WireError for what is no frame, OSError.
        """
        closed = False
        while True:
            try:
                data, ancillary, _, _ = self.socket.recvmsg(_READ_SIZE, _ANCILLARY_SIZE, socket.MSG_CMSG_CLOEXEC)
            except BlockingIOError:
                break
            except ConnectionResetError:
                data, ancillary = b"", []
            for level, kind, payload in ancillary:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    numbers = array.array("i")
                    numbers.frombytes(payload[: len(payload) - len(payload) % numbers.itemsize])
                    self._fds.extend(numbers)
            if not data:
                closed = True
                break
            self._in += data
            if len(data) < _READ_SIZE:
                break  # the level-triggered watcher calls again if there is more
        messages = self._frames()
        return None if closed and not messages else messages

    def _frames(self) -> list[tuple[Message, tuple[bytes, ...], tuple[int, ...]]]:
        messages = []
        while len(self._in) >= _HEADER.size:
            length, attached = _HEADER.unpack_from(self._in)
            if length + attached > _MAXIMUM:
                raise WireError(f"a frame of {length + attached} bytes")
            start = _HEADER.size + length
            if len(self._in) < start + attached:
                break
            try:
                message = json.loads(self._in[_HEADER.size : start].decode("utf-8", "surrogatepass"))
            except (ValueError, RecursionError) as error:
                raise WireError(f"a frame that is no JSON: {error}") from error
            if not isinstance(message, dict):
                raise WireError("a frame that is no object")
            sizes, count = message.get("blobs", []), message.get("fds", 0)
            if not isinstance(sizes, list) or not all(map(_is_count, sizes)) or sum(sizes) != attached:
                raise WireError("a frame whose attachments are not as long as it says")
            if not _is_count(count):
                raise WireError("a frame whose number of descriptors is none")
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


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0
