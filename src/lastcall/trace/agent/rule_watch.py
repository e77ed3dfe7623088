"""Watch when this node's rules cease to send new connections to a Pod that ends: wait for the kernel, then look.

The kernel announces every change of its rules (NFNLGRP_NFTABLES), so nothing is looked at while nothing changes, and
nothing at all while no Pod ends. A look reads the rules once; however long that takes, the next one waits twenty times
as long: at most a twentieth of a processor.
"""

# check: reaches inside because the node agent turns the loop of the shim

from __future__ import annotations

import select
import socket
import struct

from lastcall.trace.agent.service_rules import RuleSet, TooMany
from lastcall.world.netlink import NETLINK_NETFILTER, NetlinkError, NetlinkSocket, attribute

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from lastcall.kube.cri.sandbox.shim.loop import Loop
    from lastcall.world.clock import Clock

REST = 20
"""Times as long as a look took until the next one."""
_SOL_NETLINK, _ADD_MEMBERSHIP, _DROP_MEMBERSHIP = 270, 1, 2
_NFNLGRP_NFTABLES = 7
_GET_CHAIN, _GET_RULE, _GET_SET, _GET_ELEMENTS, _NEW_GENERATION = ((10 << 8) | each for each in (4, 7, 10, 13, 15))
_ANY = struct.pack(">BBH", 0, 0, 0)
_AGAIN = 3
_HEADER = struct.Struct("=IHHII")


class RuleWatch:
    """`on_change(address, service, received, receives, at_ns)` hears of each address that is followed: once with what
    was found first if nothing led to it ("" as the service), later of each Service that sends to it, or no longer."""

    def __init__(self, loop: Loop, clock: Clock, on_change: Callable[[str, str, bool, bool, int], None]) -> None:
        """Raises OSError where rules may not be read (CAP_NET_ADMIN), or the kernel has no nf_tables."""
        self._loop, self._clock, self._on_change = loop, clock, on_change
        self._followed: dict[bytes, frozenset[str] | None] = {}
        self._names: dict[bytes, str] = {}
        self._events = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, NETLINK_NETFILTER)
        self._dumps = NetlinkSocket(NETLINK_NETFILTER)
        self._listens = self._planned = False
        self._changed_at = self._not_before = 0
        try:
            self._events.bind((0, 0))
            self._events.setblocking(False)
            self._listen(True)
            self._listen(False)
            for _ in self._dumps.dump("look at chains", _GET_CHAIN, _ANY):
                pass
        except OSError:
            self.close()
            raise

    def follow(self, addresses: Iterable[str]) -> None:
        """Look at these addresses from now on."""
        new = {_packed(each): each for each in addresses}
        new = {packed: each for packed, each in new.items() if packed not in self._followed}
        if not new:
            return
        self._names.update(new)
        self._followed.update(dict.fromkeys(new))
        self._listen(True)
        self._changed_at = self._clock.monotonic_ns()
        self._plan()

    def forget(self, addresses: Iterable[str]) -> None:
        """Forget these addresses. Without any address nothing is listened to."""
        for each in addresses:
            self._followed.pop(_packed(each), None)
            self._names.pop(_packed(each), None)
        if not self._followed:
            self._listen(False)

    def close(self) -> None:
        if self._listens:
            self._loop.unwatch(self._events.fileno())
        self._events.close()
        self._dumps.close()

    # -- inside -------------------------------------------------------------------------------------------------------

    def _listen(self, on: bool) -> None:
        if on == self._listens:
            return
        self._events.setsockopt(_SOL_NETLINK, _ADD_MEMBERSHIP if on else _DROP_MEMBERSHIP, _NFNLGRP_NFTABLES)
        self._listens = on
        if on:
            self._loop.watch(self._events.fileno(), lambda events: self._on_notification())
        else:
            self._loop.unwatch(self._events.fileno())

    def _on_notification(self) -> None:
        if self._drain():
            self._changed_at = self._clock.monotonic_ns()
            self._plan()

    def _drain(self) -> bool:
        """Return whether any change is announced. What is not read in time the kernel drops, and says so."""
        changed = False
        for _ in range(4096):
            try:
                data = self._events.recv(1 << 16)
            except BlockingIOError:
                break
            except OSError:  # ENOBUFS: more was announced than was kept
                changed = True
                continue
            offset = 0
            while offset + _HEADER.size <= len(data):
                length, kind, _, _, _ = _HEADER.unpack_from(data, offset)
                changed = changed or kind == _NEW_GENERATION
                offset += max((length + 3) & ~3, _HEADER.size)
        return changed

    def _plan(self) -> None:
        if not self._planned:
            self._planned = True
            self._loop.call_at(max(self._not_before, self._clock.monotonic_ns()), self._look)

    def _look(self) -> None:
        self._planned = False
        if not self._followed:
            return
        begun = self._clock.monotonic_ns()
        for _ in range(_AGAIN):
            at, found = self._changed_at, self._read()
            if found is None or not select.select([self._events], [], [], 0)[0] or not self._drain():
                break
            self._changed_at, found = self._clock.monotonic_ns(), None  # it changed while it was read
        now = self._clock.monotonic_ns()
        self._not_before = now + REST * (now - begun)
        if found is None:
            self._plan()
        else:
            self._compare(found, at)

    def _read(self) -> RuleSet | None:
        """The rules of now; None when they changed meanwhile. Raises TooMany."""
        found, dump = RuleSet(frozenset(self._followed)), self._dumps.dump
        try:
            for body in dump("look at chains", _GET_CHAIN, _ANY):
                found.chain(body)
            for body in dump("look at rules", _GET_RULE, _ANY):
                found.rule(body)
            for body in dump("look at sets", _GET_SET, _ANY):
                found.set(body)
            for family, table, name in found.sets:
                which = attribute(1, table.encode() + b"\0") + attribute(2, name.encode() + b"\0")
                for body in dump("look at elements", _GET_ELEMENTS, struct.pack(">BBH", family, 0, 0) + which):
                    found.elements(body)
        except NetlinkError:
            return None
        except TooMany:
            self._followed.clear()
            self._listen(False)
            raise
        return found

    def _compare(self, found: RuleSet, at_ns: int) -> None:
        receives = found.receives()
        for packed, before in list(self._followed.items()):
            now, address = receives.get(packed, frozenset()), self._names[packed]
            self._followed[packed] = now
            if before is None:
                if not now and found.services:
                    self._on_change(address, "", False, False, at_ns)
                continue
            for service in sorted(before - now):
                self._on_change(address, service, True, False, at_ns)
            for service in sorted(now - before):
                self._on_change(address, service, False, True, at_ns)


def _packed(address: str) -> bytes:
    return socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)
