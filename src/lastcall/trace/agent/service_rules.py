"""To which addresses a node's rules send new connections of Services, read out of nf_tables. Pure.

kube-proxy writes them in its modes nftables and iptables (where that is iptables-nft): a rule with DNAT to the address
of a Pod, in a chain that other chains jump to. An address receives new connections while such a rule can be reached
from a chain with a hook, whatever the chains are called; the names tell only of which Service it is.

Sources: linux/netfilter/nf_tables.h, nf_tables_compat.h, nf_nat.h, xt_comment.h; pkg/proxy/nftables/proxier.go
(endpointChainName), pkg/proxy/iptables/proxier.go (writeServiceToEndpointRules).
"""

from __future__ import annotations

import re
import struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_RULES = 200_000
"""Rules and elements that are looked at; any more are not looked at."""
_LIST_ELEMENT = 1
_VERDICT_REGISTER = 0
_JUMPS = (-3, -4)  # NFT_JUMP, NFT_GOTO
_DNAT = 1
_IPV4 = 2  # NFPROTO_IPV4
_CHAIN_OF_ENDPOINT = re.compile(r"endpoint-[A-Z0-9]+-[^/]+/(?P<service>[^/]+)/")
_COMMENT = re.compile(r"[a-z0-9.-]+/(?P<service>[a-z0-9.-]+)(?::.*)?", re.S)
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_RANGE_OFFSETS = {0: 8, 1: 4, 2: 4}
"""Revision of the target DNAT → where the first address is in its data."""

Chain = tuple[int, str, str]
"""(family, table, name)."""
_Set = tuple[int, str, str]


class TooMany(Exception):
    """More rules than are looked at."""


class RuleSet:
    """Made of the bodies of messages (from struct nfgenmsg on), one after the other. `wanted` are packed addresses."""

    def __init__(self, wanted: frozenset[bytes]) -> None:
        self.sets: list[tuple[int, str, str]] = []
        """Maps of verdicts, whose elements have to be asked for one by one."""
        self.services = False
        """Whether any rule is a service proxy's."""
        self._wanted = wanted
        self._hooks: set[Chain] = set()
        self._jumps: dict[Chain, set[Chain]] = {}
        self._lookups: dict[Chain, set[_Set]] = {}
        self._elements: dict[_Set, set[Chain]] = {}
        self._targets: dict[Chain, set[tuple[bytes, str]]] = {}
        self._seen = 0

    def chain(self, body: bytes) -> None:
        fields = dict(_attributes(body, 4))
        if 4 in fields:  # NFTA_CHAIN_HOOK
            self._hooks.add((body[0], _text(fields.get(1)), _text(fields.get(3))))

    def set(self, body: bytes) -> None:
        fields = dict(_attributes(body, 4))
        if _number(fields.get(6)) == 0xFFFFFF00:  # NFTA_SET_DATA_TYPE: NFT_DATA_VERDICT
            self.sets.append((body[0], _text(fields.get(1)), _text(fields.get(2))))

    def elements(self, body: bytes) -> None:
        fields = dict(_attributes(body, 4))
        name = (body[0], _text(fields.get(1)), _text(fields.get(2)))
        for kind, element in _attributes(fields.get(3, b"")):
            if kind == _LIST_ELEMENT:
                self._count()
                data = dict(_attributes(dict(_attributes(element)).get(2, b"")))
                if (chain := _jump(data.get(2))) is not None:
                    self._elements.setdefault(name, set()).add((*name[:2], chain))

    def rule(self, body: bytes) -> None:
        self._count()
        family, fields = body[0], dict(_attributes(body, 4))
        chain = (family, _text(fields.get(1)), _text(fields.get(2)))
        registers: dict[int, bytes] = {}
        comment, addresses = "", []
        for kind, expression in _attributes(fields.get(4, b"")):
            parts = dict(_attributes(expression)) if kind == _LIST_ELEMENT else {}
            name, data = _text(parts.get(1)), dict(_attributes(parts.get(2, b"")))
            if name == "immediate":
                value = dict(_attributes(data.get(2, b"")))
                if _number(data.get(1)) == _VERDICT_REGISTER:
                    if (to := _jump(value.get(2))) is not None:
                        self._jumps.setdefault(chain, set()).add((*chain[:2], to))
                else:
                    registers[_number(data.get(1))] = value.get(1, b"")
            elif name == "lookup" and 3 in data and _number(data[3]) == _VERDICT_REGISTER:
                self._lookups.setdefault(chain, set()).add((*chain[:2], _text(data.get(1))))
            elif name == "nat" and _number(data.get(1)) == _DNAT:
                addresses.append(registers.get(_number(data.get(3)), b""))
            elif name == "target" and _text(data.get(1)) == "DNAT":
                start = _RANGE_OFFSETS.get(_number(data.get(2)))
                if start is not None:
                    addresses.append(data.get(3, b"")[start : start + (4 if family == _IPV4 else 16)])
            elif name == "match" and _text(data.get(1)) == "comment":
                comment = _text(data.get(3))
        if addresses:
            service = _service_of(chain[2], comment)
            self.services = self.services or bool(service)
            found = {(address, service) for address in addresses if address in self._wanted}
            if found:
                self._targets.setdefault(chain, set()).update(found)

    def receives(self) -> dict[bytes, frozenset[str]]:
        """Map each packed address to the Services that send new connections there now ("": of unknown name)."""
        ahead, reached = list(self._hooks), set(self._hooks)
        found: dict[bytes, set[str]] = {}
        while ahead:
            chain = ahead.pop()
            for address, service in self._targets.get(chain, ()):
                found.setdefault(address, set()).add(service)
            beyond = set(self._jumps.get(chain, ()))
            for each in self._lookups.get(chain, ()):
                beyond |= self._elements.get(each, set())
            ahead += beyond - reached
            reached |= beyond
        return {address: frozenset(services) for address, services in found.items()}

    def _count(self) -> None:
        self._seen += 1
        if self._seen > MOST_RULES:
            raise TooMany


def _service_of(chain: str, comment: str) -> str:
    match = _CHAIN_OF_ENDPOINT.match(chain) or _COMMENT.fullmatch(comment)
    return match["service"] if match and _NAME.fullmatch(match["service"]) else ""


def _jump(verdict: bytes | None) -> str | None:
    """The chain that a verdict goes to; None for any other verdict."""
    fields = dict(_attributes(verdict or b""))
    code = struct.unpack(">i", fields[1])[0] if len(fields.get(1, b"")) == 4 else 0
    return _text(fields.get(2)) if code in _JUMPS else None


def _attributes(data: bytes, offset: int = 0) -> Iterator[tuple[int, bytes]]:
    """(type, payload) of each attribute, in order: lists have many of one type."""
    while offset + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, offset)
        if length < 4:
            return
        yield kind & 0x3FFF, data[offset + 4 : offset + length]
        offset += (length + 3) & ~3


def _text(value: bytes | None) -> str:
    return (value or b"").partition(b"\0")[0].decode("utf-8", "replace")


def _number(value: bytes | None) -> int:
    return int.from_bytes(value or b"", "big")
