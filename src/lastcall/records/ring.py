"""A ring of records in shared memory: one process writes, others read, and a killed writer loses nothing.

Layout: one page of 64-bit counters, then `capacity` bytes of frames. Positions count bytes since the ring was made and
never wrap; the byte of position p is at `p % capacity`. A frame is `length, CRC-32, sequence` and then the record as
JSON. The order of the writer's stores is the whole protocol:

1. `OLDEST` moves past the frames that the new one will overwrite,
2. the frame is written,
3. `HEAD` moves past it. Until then the record does not exist; from then on SIGKILL cannot take it back.

A reader copies the bytes and then looks at `OLDEST` again: if that has passed them, the copy may be torn and is thrown
away. The CRC makes the same protocol hold on processors that reorder stores.

Standard library only, and the writing half imports almost nothing: the shim uses it.
"""

# check: standard library

from __future__ import annotations

import _thread
import contextlib
import json
import mmap
import os
import zlib
from struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Literal, Protocol

    from lastcall.records.record import Evidence, Facts, Kind, Record
    from lastcall.records.rules import Rule

    class Stamps(Protocol):
        """The part of `lastcall.world.clock.Clock` that a record needs."""

        def monotonic_ns(self) -> int: ...
        def wall_ns(self) -> int: ...


CAPACITY = 4 << 20
"""Bytes; about 12 000 records. Memory is taken only as it is written to."""

_HEADER = 4096
_MAGIC = 0x6C63_7269_6E67_0001  # "lcring", layout 1
_MAGIC_AT, _CAPACITY_AT, _HEAD, _OLDEST, _SEQUENCE = range(5)
_FRAME = Struct("=IIQ")


def _encoder() -> Callable[[Any], str]:
    """`JSONEncoder.encode`, where possible without an encoder in C that is made anew for each record."""
    make = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return json.JSONEncoder(separators=(",", ":"), default=str, check_circular=False).encode
    chunks = make(None, str, json.encoder.encode_basestring_ascii, None, ":", ",", False, False, True)
    return lambda value: "".join(chunks(value, 0))


_encoded = _encoder()


def _encode(value: Any) -> bytes:
    return _encoded(value).encode("utf-8", "replace")


class Ring:
    """The shared memory. Inherited over fork as it is, over exec as `fd` (then `Ring(fd, wake_fd)`)."""

    def __init__(self, fd: int, wake_fd: int = -1) -> None:
        """Map an existing ring. Raises ValueError when `fd` is not a ring, OSError when it cannot be mapped."""
        size = os.fstat(fd).st_size
        self.fd = fd
        self.wake_fd = wake_fd
        self._map = mmap.mmap(fd, size)
        # A cast view stores and loads whole 64-bit words; a counter is never seen or left half-written.
        self._counters = memoryview(self._map)[:_HEADER].cast("Q")
        self.capacity = self._counters[_CAPACITY_AT]
        if self._counters[_MAGIC_AT] != _MAGIC or self.capacity != size - _HEADER:
            raise ValueError(f"fd {fd} is not a record ring")

    @classmethod
    def create(cls, name: str, wake_fd: int = -1, capacity: int = CAPACITY) -> Ring:
        """Create a ring in anonymous memory. `wake_fd`: an eventfd or pipe to signal after each record; -1 is none."""
        fd = os.memfd_create(name, os.MFD_CLOEXEC)
        os.ftruncate(fd, _HEADER + capacity)
        with mmap.mmap(fd, _HEADER) as header, memoryview(header) as view, view.cast("Q") as counters:
            counters[_CAPACITY_AT] = capacity
            counters[_MAGIC_AT] = _MAGIC
        return cls(fd, wake_fd)

    @property
    def head(self) -> int:
        """Return the position after the last committed frame."""
        return self._counters[_HEAD]

    @property
    def oldest(self) -> int:
        """Return the position of the oldest frame that is still whole."""
        return self._counters[_OLDEST]

    @property
    def next_sequence(self) -> int:
        """Return the number of records ever committed."""
        return self._counters[_SEQUENCE]

    @property
    def largest(self) -> int:
        """Return the longest payload in bytes that the ring takes."""
        return self.capacity // 4

    def append(self, payload: bytes) -> None:
        """Commit one frame (`len(payload) <= largest`) and wake the reader. One writer at a time."""
        counters = self._counters
        head, sequence = counters[_HEAD], counters[_SEQUENCE]
        end = head + _FRAME.size + len(payload)
        oldest = counters[_OLDEST]
        if end - oldest > self.capacity:
            while end - oldest > self.capacity:
                oldest += _FRAME.size + _FRAME.unpack(self._read(oldest, _FRAME.size))[0]
            counters[_OLDEST] = oldest
        self._write(head, _FRAME.pack(len(payload), zlib.crc32(payload), sequence) + payload)
        counters[_HEAD] = end
        # Killed right here, the next writer uses this number again; its ids differ by the boot id.
        counters[_SEQUENCE] = sequence + 1
        if self.wake_fd >= 0:
            with contextlib.suppress(OSError):  # full means that the reader has yet to look
                os.write(self.wake_fd, b"\1\0\0\0\0\0\0\0")

    def read(self, position: int) -> tuple[int, int, bytes] | None:
        """Return (sequence, next position, payload) of the frame at `position`; None if it is gone or to come."""
        if not self._counters[_OLDEST] <= position < self._counters[_HEAD]:
            return None
        length, checksum, sequence = _FRAME.unpack(self._read(position, _FRAME.size))
        if length > self.largest:
            return None
        payload = self._read(position + _FRAME.size, length)
        if self._counters[_OLDEST] > position or zlib.crc32(payload) != checksum:
            return None
        return sequence, position + _FRAME.size + length, payload

    def close(self) -> None:
        """Unmap; the fd stays the caller's."""
        self._counters.release()
        self._map.close()

    def _read(self, position: int, length: int) -> bytes:
        start = _HEADER + position % self.capacity
        end = min(start + length, _HEADER + self.capacity)
        data = self._map[start:end]
        return data if len(data) == length else data + self._map[_HEADER : _HEADER + length - len(data)]

    def _write(self, position: int, data: bytes) -> None:
        start = _HEADER + position % self.capacity
        room = _HEADER + self.capacity - start
        if len(data) <= room:
            self._map[start : start + len(data)] = data
        else:
            self._map[start : start + room] = data[:room]
            self._map[_HEADER : _HEADER + len(data) - room] = data[room:]


class RingRecorder:
    """`lastcall.records.record.Recorder` into a ring. Ids are `<actor>-<boot>-<sequence>`."""

    def __init__(self, ring: Ring, actor: str, clock: Stamps, encode: Callable[[Any], bytes] | None = None) -> None:
        """A process makes its recorder after it was forked: the boot id is drawn here.

        `encode` answers the JSON of what this module's own encoder would take, or raises TypeError: then that is asked.
        """
        self._ring = ring
        self._actor = actor
        self._clock = clock
        self._boot = os.urandom(4).hex()
        self._lock = _thread.allocate_lock()
        self._encode = encode or _encode

    def for_actor(self, actor: str) -> RingRecorder:
        """Return a recorder for another actor of this process, into the same ring."""
        other = RingRecorder.__new__(RingRecorder)
        other._ring, other._actor, other._clock = self._ring, actor, self._clock
        other._boot, other._lock, other._encode = self._boot, self._lock, self._encode
        return other

    def record(
        self,
        kind: Kind[Facts],
        *,
        pod_uid: str = "",
        container: str = "",
        rule: Rule | Literal[""] = "",
        facts: Facts | None = None,
        cause_id: str = "",
        evidence: Evidence = "observed",
    ) -> str:
        """Write one record stamped with now; answers its id."""
        at_ns, wall_ns = self._clock.monotonic_ns(), self._clock.wall_ns()
        with self._lock:
            identity = f"{self._actor}-{self._boot}-{self._ring.next_sequence}"
            fields = [identity, at_ns, wall_ns, self._actor, kind, pod_uid, container, rule, facts, cause_id, evidence]
            self._ring.append(self._payload(fields))
        return identity

    def _payload(self, fields: list[Any]) -> bytes:
        try:
            try:
                payload = self._encode(fields)
            except TypeError:
                payload = _encode(fields)
            reason = f"{len(payload)} bytes are too long for a record"
        except (TypeError, ValueError, RecursionError) as error:
            payload, reason = b"", f"the facts are not JSON: {error}"
        if payload and len(payload) <= self._ring.largest:
            return payload
        fields[8] = {"omitted": reason}
        return _encode(fields)


class RingReader:
    """Reads one ring from its oldest record on. Any number of readers, in any process."""

    def __init__(self, ring: Ring) -> None:
        self._ring = ring
        self._position = ring.oldest
        first = ring.read(self._position)
        self._expected = first[0] if first else ring.next_sequence
        self.overwritten = 0
        """Records that were overwritten before this reader came to them."""

    def read_new(self) -> list[Record]:
        """Return every record committed between the last call and this one, oldest first."""
        # late: 22 ms of the shim's start
        from lastcall.records.record import Record

        records = []
        head = self._ring.head  # read once: a busy writer must not keep its reader here
        while self._position < head:
            frame = self._ring.read(self._position)
            if frame is None:
                if self._position >= self._ring.oldest:
                    break  # committed, but its bytes have not arrived here: the next call will see them
                self._position = self._ring.oldest
                continue
            sequence, self._position, payload = frame
            self.overwritten += max(0, sequence - self._expected)
            self._expected = sequence + 1
            identity, at_ns, wall_ns, actor, kind, pod_uid, container, rule, facts, cause_id, evidence = json.loads(
                payload
            )
            records.append(
                Record(identity, at_ns, wall_ns, actor, kind, pod_uid, container, rule, facts or {}, cause_id, evidence)
            )
        return records
