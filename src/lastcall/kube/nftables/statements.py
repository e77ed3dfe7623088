"""The few nftables statements that the rules are made of, each as text for `nft` and as expressions for the kernel.

Both say the same: a test loads both and compares what `nft list ruleset` prints. Only IPv4 knows its place in the
packet here (`FAMILY`, `_SOURCE`, `_DESTINATION`); another family is another set of these numbers.
"""

import socket
import struct
from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network

from lastcall.world.dataclass import dataclass
from lastcall.world.netlink import attribute

FAMILY = "ip"
FAMILY_NUMBER = socket.AF_INET
_SOURCE, _DESTINATION = 12, 16
"""Offsets of the addresses in the network header."""

MASQUERADE_MARK = 0x4000
"""The bit of the packet mark that kube-proxy uses (masqueradeBit 14)."""

_DROP, _JUMP, _GOTO, _RETURN = 0, -3, -4, -5
_VERDICT_CODES = {"drop": _DROP, "return": _RETURN, "jump": _JUMP, "goto": _GOTO}
_FIRST, _SECOND, _THIRD, _FOURTH = 1, 9, 10, 11
"""Registers as nft chooses them: a key of several parts is in neighbouring words."""


@dataclass(frozen=True, slots=True)
class Statement:
    """`text` as nft reads it; `expressions` as NFTA_LIST_ELEM attributes."""

    text: str
    expressions: bytes


Rule = tuple[Statement, ...]


def text_of(rule: Rule) -> str:
    return " ".join(statement.text for statement in rule)


def _be32(kind: int, value: int) -> bytes:
    return attribute(kind, struct.pack(">I", value & 0xFFFFFFFF))


def _expression(name: str, *data: bytes) -> bytes:
    return attribute(1, attribute(1, name.encode() + b"\0") + attribute(2, b"".join(data)))


def _payload(register: int, base: int, offset: int, length: int) -> bytes:
    return _expression("payload", _be32(1, register), _be32(2, base), _be32(3, offset), _be32(4, length))


def _meta_load(register: int, key: int) -> bytes:
    return _expression("meta", _be32(1, register), _be32(2, key))


def _compare(different: bool, value: bytes) -> bytes:
    return _expression("cmp", _be32(1, _FIRST), _be32(2, int(different)), attribute(3, attribute(1, value)))


def _bitwise(mask: bytes, xor: bytes) -> bytes:
    both = (attribute(4, attribute(1, mask)), attribute(5, attribute(1, xor)))
    return _expression("bitwise", _be32(1, _FIRST), _be32(2, _FIRST), _be32(3, 4), *both)


def _lookup(name: str, data_register: int | None = None) -> bytes:
    into = () if data_register is None else (_be32(3, data_register),)
    return _expression("lookup", attribute(1, name.encode() + b"\0"), _be32(2, _FIRST), *into)


def verdict_data(verdict: str) -> bytes:
    """Encode the inside of an NFTA_DATA_VERDICT: `drop`, `return`, `jump <chain>`, `goto <chain>`."""
    action, _, chain = verdict.partition(" ")
    code = _be32(1, _VERDICT_CODES[action])
    return attribute(2, code + (attribute(2, chain.encode() + b"\0") if chain else b""))


_META_MARK, _META_IIF, _META_L4PROTO, _META_IIFGROUP = 3, 4, 16, 21
_NETWORK, _TRANSPORT = 1, 2
_AT_MOST, _AT_LEAST = 3, 5
_SERVICE_KEY_TEXT = "ip daddr . meta l4proto . th dport"
_SERVICE_KEY = (
    _payload(_FIRST, _NETWORK, _DESTINATION, 4)
    + _meta_load(_SECOND, _META_L4PROTO)
    + _payload(_THIRD, _TRANSPORT, 2, 2)
)


def verdict(text: str) -> Statement:
    """Return the statement `drop`, `return`, `jump <chain>` or `goto <chain>`."""
    return Statement(text, _expression("immediate", _be32(1, 0), attribute(2, verdict_data(text))))


def reject() -> Statement:
    """Answer with ICMP port unreachable: a TCP client reports `connection refused`."""
    return Statement("reject", _expression("reject", _be32(1, 0), attribute(2, b"\3")))


def new_connection() -> Statement:
    state_new = struct.pack("=I", 8)
    load = _expression("ct", _be32(1, _FIRST), _be32(2, 0))
    return Statement("ct state new", load + _bitwise(state_new, bytes(4)) + _compare(True, bytes(4)))


def known_connection() -> Statement:
    """Match an answer, a later packet of a connection, or an error about one."""
    known = struct.pack("=I", 2 | 4)
    load = _expression("ct", _be32(1, _FIRST), _be32(2, 0))
    return Statement("ct state established,related", load + _bitwise(known, bytes(4)) + _compare(True, bytes(4)))


def saddr_verdict(name: str) -> Statement:
    return Statement(f"ip saddr vmap @{name}", _payload(_FIRST, _NETWORK, _SOURCE, 4) + _lookup(name, 0))


def daddr_verdict(name: str) -> Statement:
    return Statement(f"ip daddr vmap @{name}", _payload(_FIRST, _NETWORK, _DESTINATION, 4) + _lookup(name, 0))


def daddr_in(name: str) -> Statement:
    return Statement(f"ip daddr @{name}", _payload(_FIRST, _NETWORK, _DESTINATION, 4) + _lookup(name))


def saddr_in(name: str) -> Statement:
    return Statement(f"ip saddr @{name}", _payload(_FIRST, _NETWORK, _SOURCE, 4) + _lookup(name))


def service_in(name: str) -> Statement:
    return Statement(f"{_SERVICE_KEY_TEXT} @{name}", _SERVICE_KEY + _lookup(name))


def service_verdict(name: str) -> Statement:
    return Statement(f"{_SERVICE_KEY_TEXT} vmap @{name}", _SERVICE_KEY + _lookup(name, 0))


def both_addresses_in(name: str) -> Statement:
    load = _payload(_FIRST, _NETWORK, _SOURCE, 4) + _payload(_SECOND, _NETWORK, _DESTINATION, 4)
    return Statement(f"ip saddr . ip daddr @{name}", load + _lookup(name))


def saddr_within(network: str, *, outside: bool = False) -> Statement:
    return _within("saddr", _SOURCE, network, outside)


def daddr_within(network: str, *, outside: bool = False) -> Statement:
    return _within("daddr", _DESTINATION, network, outside)


@lru_cache(1024)
def _within(field: str, offset: int, network: str, outside: bool) -> Statement:
    net = IPv4Network(network)
    text = f"ip {field} {'!= ' if outside else ''}{net if net.prefixlen < 32 else net.network_address}"
    whole = net.prefixlen // 8
    if net.prefixlen and net.prefixlen % 8 == 0:
        # nft loads no more of an address than the prefix needs.
        load = _payload(_FIRST, _NETWORK, offset, whole)
        return Statement(text, load + _compare(outside, net.network_address.packed[:whole]))
    load = _payload(_FIRST, _NETWORK, offset, 4) + _bitwise(net.netmask.packed, bytes(4))
    return Statement(text, load + _compare(outside, net.network_address.packed))


def saddr_not_local() -> Statement:
    """Match packets whose source is not an address of this network namespace."""
    load = _expression("fib", _be32(1, _FIRST), _be32(2, 3), _be32(3, 1))
    return Statement("fib saddr type != local", load + _compare(True, struct.pack("=I", 2)))


def daddr_local() -> Statement:
    """Match packets whose destination is an address of this network namespace."""
    load = _expression("fib", _be32(1, _FIRST), _be32(2, 3), _be32(3, 2))
    return Statement("fib daddr type local", load + _compare(False, struct.pack("=I", 2)))


def not_from_loopback() -> Statement:
    """Match packets that came in by another link than `lo`, which is the first one of every network namespace."""
    return Statement('iif != "lo"', _meta_load(_FIRST, _META_IIF) + _compare(True, struct.pack("=I", 1)))


def from_group(group: int) -> Statement:
    """Match packets that came in by a link of this group (`ip link set … group`). For every family."""
    return Statement(
        f"iifgroup {group}", _meta_load(_FIRST, _META_IIFGROUP) + _compare(False, struct.pack("=I", group))
    )


def no_way_back() -> Statement:
    """Match packets to whose source no route leads by the link that they came in by."""
    source_link_present = 0x1 | 0x8 | 0x20
    load = _expression("fib", _be32(1, _FIRST), _be32(2, 1), _be32(3, source_link_present))
    return Statement("fib saddr . iif oif missing", load + _compare(False, b"\0"))


def of_protocol(protocol: str) -> Statement:
    return Statement(f"meta l4proto {protocol.lower()}", _of_protocol(protocol))


@lru_cache(1024)
def to_port(protocol: str, port: int) -> Statement:
    load = _payload(_FIRST, _TRANSPORT, 2, 2) + _compare(False, struct.pack(">H", port))
    return Statement(f"{protocol.lower()} dport {port}", _of_protocol(protocol) + load)


@lru_cache(1024)
def to_ports(protocol: str, first: int, last: int) -> Statement:
    """Match a range of ports, both ends included."""
    edges = b"".join(
        _expression("cmp", _be32(1, _FIRST), _be32(2, operation), attribute(3, attribute(1, struct.pack(">H", port))))
        for operation, port in ((_AT_LEAST, first), (_AT_MOST, last))
    )
    code = _of_protocol(protocol) + _payload(_FIRST, _TRANSPORT, 2, 2) + edges
    return Statement(f"{protocol.lower()} dport {first}-{last}", code)


def _of_protocol(protocol: str) -> bytes:
    return _meta_load(_FIRST, _META_L4PROTO) + _compare(False, bytes([PROTOCOLS[protocol]]))


def mark_for_masquerade() -> Statement:
    keep = struct.pack("=I", ~MASQUERADE_MARK & 0xFFFFFFFF)
    code = _meta_load(_FIRST, _META_MARK) + _bitwise(keep, struct.pack("=I", MASQUERADE_MARK)) + _store_mark()
    return Statement(f"meta mark set meta mark | {MASQUERADE_MARK:#010x}", code)


def marked_for_masquerade() -> Statement:
    mark = struct.pack("=I", MASQUERADE_MARK)
    code = _meta_load(_FIRST, _META_MARK) + _bitwise(mark, bytes(4)) + _compare(True, bytes(4))
    return Statement(f"meta mark & {MASQUERADE_MARK:#010x} != 0x00000000", code)


def unmark() -> Statement:
    flip = struct.pack("=I", MASQUERADE_MARK)
    code = _meta_load(_FIRST, _META_MARK) + _bitwise(b"\xff" * 4, flip) + _store_mark()
    return Statement(f"meta mark set meta mark ^ {MASQUERADE_MARK:#010x}", code)


def _store_mark() -> bytes:
    return _expression("meta", _be32(3, _FIRST), _be32(2, _META_MARK))


def masquerade() -> Statement:
    return Statement("masquerade fully-random", _expression("masq", _be32(1, 0x10)))


def _numgen(register: int, modulus: int) -> bytes:
    return _expression("numgen", _be32(1, register), _be32(2, modulus), _be32(3, 1), _be32(4, 0))


def one_in(chances: int) -> Statement:
    """Match once in so many times, at random."""
    return Statement(f"numgen random mod {chances} 0", _numgen(_FIRST, chances) + _compare(False, bytes(4)))


def dnat_by_slot(name: str, slots: int) -> Statement:
    """Send packets to what map `name` holds for this Service and a random slot; do nothing if it holds nothing."""
    text = f"dnat ip to {_SERVICE_KEY_TEXT} . numgen random mod {slots} map @{name}"
    load = _SERVICE_KEY + _numgen(_FOURTH, slots) + _lookup(name, _FIRST)
    return Statement(text, load + _nat(_FIRST, _SECOND))


def dnat_to(protocol: str, address: str, port: int) -> Statement:
    number = PROTOCOLS[protocol]
    only = _meta_load(_FIRST, _META_L4PROTO) + _compare(False, bytes([number]))
    data = (
        attribute(2, attribute(1, IPv4Address(address).packed)),
        attribute(2, attribute(1, struct.pack(">H", port))),
    )
    load = _expression("immediate", _be32(1, 1), data[0]) + _expression("immediate", _be32(1, 2), data[1])
    return Statement(f"meta l4proto {protocol.lower()} dnat to {address}:{port}", only + load + _nat(1, 2))


def _nat(address: int, port: int) -> bytes:
    registers: Sequence[int] = (address, address, port, port)
    places = b"".join(_be32(3 + place, register) for place, register in enumerate(registers))
    return _expression("nat", _be32(1, 1), _be32(2, FAMILY_NUMBER), places, _be32(7, 0x3))


def remember_source(name: str) -> Statement:
    """Put the source into a set with a timeout, or begin its timeout anew."""
    load = _payload(_FIRST, _NETWORK, _SOURCE, 4)
    update = _expression("dynset", attribute(1, name.encode() + b"\0"), _be32(3, 1), _be32(4, _FIRST))
    return Statement(f"update @{name} {{ ip saddr }}", load + update)


PROTOCOLS = {"TCP": socket.IPPROTO_TCP, "UDP": socket.IPPROTO_UDP, "SCTP": socket.IPPROTO_SCTP}
"""IP protocol numbers by Kubernetes's names."""
