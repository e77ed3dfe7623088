"""What other machines need of this one, for `lastcall doctor --listen`: judged from what the kernel says of itself.

Of firewalls the kernel tells each chain's policy; whether a rule lets our packets through is only guessed from what it
names, and said so. What the older iptables keeps for itself is not read.
"""

import errno
import os
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import IPv4Network
from typing import Literal

from lastcall.cluster.machines import messages
from lastcall.cluster.machines.kernel import FORWARD, mtu_for
from lastcall.cluster.machines.rules import NODE_NETWORK
from lastcall.cluster.machines.settings import PORT, Mode
from lastcall.cluster.options import CLUSTER_CIDR, KUBELET_PORT
from lastcall.world import netlink
from lastcall.world.need import Need

_GET_CHAIN, _GET_RULE = (10 << 8) | 4, (10 << 8) | 7
_HOOKS = {1: "input", 2: "forward"}
_FAMILIES = {1: "inet", 2: "ip"}
_DROP = 0
_LEGACY = "/proc/net/ip_tables_names"
_PROBE = "lastcall-doctor"


@dataclass(frozen=True, slots=True)
class Guard:
    """A base chain of a firewall whose policy is to drop; `names` are the parts of our packets that its table names."""

    family: str
    table: str
    chain: str
    hook: Literal["input", "forward"]
    names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Seen:
    """What `look` saw. `address_error` is "" when the address is this machine's, `vxlan_error` when VXLAN works."""

    mode: Mode
    address: str
    uid: int
    forwards: bool
    address_error: str = ""
    mtu: int = 1500
    vxlan_error: str = ""
    guards: tuple[Guard, ...] = ()
    unread: str = ""
    """Why firewalls could not be looked at, "" when they could."""


PARTS = {
    CLUSTER_CIDR: IPv4Network(CLUSTER_CIDR).network_address.packed[:2],
    f"UDP {PORT}": struct.pack(">H", PORT),
    f"TCP {KUBELET_PORT}": struct.pack(">H", KUBELET_PORT),
}
"""What a rule may name → the bytes that packets are compared with then."""
_COMPARE = ("cmp", "range", "match")
"""Expressions of rules that compare packets; others have numbers, too (counters)."""


def look(address: str, mode: Mode) -> Seen:
    """Of this machine, now. Never raises."""
    forwards, address_error, mtu, unread, vxlan_error = False, "", 0, "", ""
    guards: tuple[Guard, ...] = ()
    with suppress(OSError), open(FORWARD) as file:
        forwards = file.read().strip() == "1"
    try:
        mtu = mtu_for(mode, address)
    except OSError as error:
        address_error = str(error.strerror or error)
    try:
        guards = tuple(_guards())
    except OSError as error:
        unread = str(error.strerror or error)
    with suppress(OSError), open(_LEGACY) as file:
        if "filter" in file.read().split():
            unread = "the older iptables has rules here, which nobody else can read"
    if mode == "vxlan" and os.getuid() == 0:
        vxlan_error = _try_vxlan(address)
    return Seen(mode, address, os.getuid(), forwards, address_error, mtu, vxlan_error, guards, unread)


def judge(seen: Seen) -> list[Need]:
    """In the order of causes. Pure."""
    return [_root(seen), _address(seen), _forwarding(seen), *_carrier(seen), *_firewalls(seen)]


def _root(seen: Seen) -> Need:
    name = "rights on the network"
    if seen.uid == 0:
        return Need(name, "ok", "root")
    return Need(name, "missing", "routes on this machine need root", fix="sudo lastcall up …")


def _address(seen: Seen) -> Need:
    if seen.address_error:
        found, _, fix = seen.address_error.partition("; fix: ")
        return Need("address", "missing", found, fix=fix)
    return Need("address", "ok", f"{seen.address}; Pods' packets have {seen.mtu} bytes at most")


def _forwarding(seen: Seen) -> Need:
    name = "forwarding"
    if seen.forwards:
        return Need(name, "ok", "net.ipv4.ip_forward=1")
    fix = "sudo sysctl -w net.ipv4.ip_forward=1  (to keep it: a file in /etc/sysctl.d)"
    return Need(name, "missing", "this machine does not forward packets", fix=fix)


def _carrier(seen: Seen) -> list[Need]:
    if seen.mode == "host-gw":
        return [Need("host-gw", "ok", "all machines have to be in one network, without a router between them")]
    if seen.vxlan_error:
        return [Need("VXLAN", "missing", seen.vxlan_error, fix="sudo modprobe vxlan")]
    return [Need("VXLAN", "ok", "links can be made" if seen.uid == 0 else "not tried, without root")]


def _firewalls(seen: Seen) -> list[Need]:
    if seen.unread:
        lose = "they may drop what goes between Pods of several machines"
        fix = f"allow {', '.join(_allowed(seen))}, and forwarding from and to {CLUSTER_CIDR} and {NODE_NETWORK}"
        return [Need("firewall", "degraded", f"not looked at: {seen.unread}", lose, fix)]
    return [_guard(seen, each) for each in seen.guards] or [Need("firewall", "ok", "drops nothing by its policy")]


def _guard(seen: Seen, guard: Guard) -> Need:
    name = f"firewall {guard.table} {guard.chain}"
    drops = f"drops what no rule of it accepts ({guard.hook})"
    if guard.hook == "forward":
        if CLUSTER_CIDR in guard.names:
            return Need(name, "ok", f"{drops}; a rule names {CLUSTER_CIDR}")
        rules = [(side, network) for network in (CLUSTER_CIDR, NODE_NETWORK) for side in ("saddr", "daddr")]
        fix = "; ".join(_accept(guard, f"ip {side} {network}") for side, network in rules)
        return Need(name, "degraded", drops, "Pods of several machines do not reach each other", fix)
    missing = [each for each in _allowed(seen) if each not in guard.names]
    if not missing:
        return Need(name, "ok", f"{drops}; rules name {', '.join(_allowed(seen))}")
    lose = f"other machines do not reach this one at {', '.join(missing)}, if it is what they need"
    fix = "; ".join(_accept(guard, each.lower().replace(" ", " dport ")) for each in missing)
    return Need(name, "degraded", drops, lose, f"{fix}; and the same for the port of the API server")


def _accept(guard: Guard, match: str) -> str:
    """The command that inserts a rule: iptables's for a table that looks like its own."""
    if (guard.family, guard.table) != ("ip", "filter"):
        return f"sudo nft insert rule {guard.family} {guard.table} {guard.chain} {match} accept"
    first, second, value = match.split()
    options = f"-{second[0]} {value}" if first == "ip" else f"-p {first} --dport {value}"
    return f"sudo iptables -I {guard.chain} {options} -j ACCEPT"


def _allowed(seen: Seen) -> list[str]:
    return [*([f"UDP {PORT}"] if seen.mode == "vxlan" else []), f"TCP {KUBELET_PORT}"]


def _guards() -> list[Guard]:
    """Raises OSError."""
    with netlink.NetlinkSocket(netlink.NETLINK_NETFILTER) as netfilter:
        found: list[Guard] = []
        rules = list(netfilter.dump("list rules", _GET_RULE, struct.pack(">BBH", 0, 0, 0)))
        for body in netfilter.dump("list chains", _GET_CHAIN, struct.pack(">BBH", 0, 0, 0)):
            told = netlink.attributes(body, 4)
            hook = netlink.attributes(told[4]).get(1, b"") if 4 in told else b""
            where = _HOOKS.get(struct.unpack(">I", hook)[0]) if hook else None
            policy = struct.unpack(">I", told[5])[0] if 5 in told else None
            if where is None or policy != _DROP or body[0] not in _FAMILIES:
                continue
            table = _text(told[1])
            named = _named(rules, body[0], table)
            guard = Guard(_FAMILIES[body[0]], table, _text(told[3]), "input" if where == "input" else "forward", named)
            found.append(guard)
        return found


def _named(rules: Sequence[bytes], family: int, table: str) -> frozenset[str]:
    found: set[str] = set()
    for body in rules:
        told = netlink.attributes(body, 4)
        if body[0] == family and _text(told.get(1, b"")) == table:
            compared = [data for name, data in _expressions(told.get(4, b"")) if name in _COMPARE]
            found |= {name for name, part in PARTS.items() if any(part in data for data in compared)}
    return frozenset(found)


def _expressions(packed: bytes) -> Iterator[tuple[str, bytes]]:
    """(name, data) of a rule's."""
    for element in netlink.elements(packed):
        told = netlink.attributes(element)
        yield _text(told.get(1, b"")), told.get(2, b"")


def _text(packed: bytes) -> str:
    return packed.rstrip(b"\0").decode(errors="replace")


def _try_vxlan(address: str) -> str:
    """Why such a link cannot be made, "" when it can; it is removed again."""
    try:
        with netlink.NetlinkSocket() as kernel:
            hardware = bytes([2, 3, 0, 0, 0, 1])
            kernel.transact([messages.new_vxlan(_PROBE, hardware, 1400, vni=(1 << 24) - 1, port=PORT, local=address)])
            kernel.transact([netlink.delete_link(messages.link_named(kernel, _PROBE))])
    except OSError as error:
        return "" if error.errno == errno.EEXIST else f"such links cannot be made: {error.strerror}"
    return ""
