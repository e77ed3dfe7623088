"""A transaction as the netlink messages of nf_tables.

Source: the kernel's include/uapi/linux/netfilter/nf_tables.h. All sizes in bytes.
"""

import struct
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from socket import inet_aton

from lastcall.kube.nftables.objects import (
    AddChain,
    AddElements,
    AddRule,
    AddSet,
    Command,
    DeleteChain,
    DeleteElements,
    DeleteSet,
    FlushChain,
    NftSet,
    SetKey,
    SetValue,
    Transaction,
)
from lastcall.kube.nftables.statements import FAMILY_NUMBER, PROTOCOLS, verdict_data
from lastcall.world.netlink import Message, attribute

NF_TABLES = 10
"""The number of the subsystem, for `NetlinkSocket.batch`."""
_SUBSYSTEM = NF_TABLES << 8
_NEWTABLE, _DELTABLE = 0, 2
_NEWCHAIN, _DELCHAIN, _NEWRULE, _DELRULE = 3, 5, 6, 8
_NEWSET, _DELSET, _NEWSETELEM, _DELSETELEM = 9, 11, 12, 14
_CREATE, _APPEND = 0x400, 0x800
_HEADER = struct.pack(">BBH", FAMILY_NUMBER, 0, 0)
_HOOKS = {"prerouting": 0, "input": 1, "forward": 2, "output": 3, "postrouting": 4}
_MOST_ELEMENTS = 32_000
"""Of one message: the length of an attribute has 16 bits."""

_ADDRESS, _PROTOCOL, _PORT = 7, 12, 13
"""nft's numbers of the types, so that `nft list` prints elements in words; the kernel does not look at them."""
_SERVICE_TYPE = (_ADDRESS << 12) | (_PROTOCOL << 6) | _PORT
_SLOT_TYPE = (_SERVICE_TYPE << 6) | 4
_BACKEND_TYPE = (_ADDRESS << 6) | _PORT
_VERDICT_TYPE = 0xFFFFFF00
_FLAG_INTERVAL, _FLAG_MAP, _FLAG_TIMEOUT, _FLAG_EVAL = 0x4, 0x8, 0x10, 0x20
_INTERVAL_END = 1
_LAST_ADDRESS = 0xFFFFFFFF
_SHAPES = {
    "addresses": (_ADDRESS, 4, 0, 0),
    "address pairs": ((_ADDRESS << 6) | _ADDRESS, 8, 0, 0),
    "address ranges": (_ADDRESS, 4, 0, 0),
    "services": (_SERVICE_TYPE, 12, 0, 0),
    "service verdicts": (_SERVICE_TYPE, 12, _VERDICT_TYPE, 0),
    "service slots": (_SLOT_TYPE, 16, _BACKEND_TYPE, 8),
    "sources": (_ADDRESS, 4, 0, 0),
    "address verdicts": (_ADDRESS, 4, _VERDICT_TYPE, 0),
}
"""Type and size of the key, type and size of the data."""
_SLOTS_IN_WORDS = bytes.fromhex(
    "000400000000010400000000036000040d00000001580014000407000000010c00040c00000001040c000000010e00040900"
    "000001060004100000000214000407000000010c00040b000000010402000000031a00041700000001120004010000000104"
    "02000000020400000000043400040d000000012c0014000407000000010c00040c00000001040c0000000114000407000000"
    "010c00040b000000010402000000060400000000"
)
"""`typeof ip daddr . meta l4proto . th dport . numgen random mod 2 : ip daddr . th dport`, for `nft list` too."""


def batch(transaction: Transaction, table: str, family: int = FAMILY_NUMBER) -> list[Message]:
    """Return the messages between the begin and the end of a batch. `family` is that of the table."""
    messages = [_table("add", table, _NEWTABLE, _CREATE)]
    if transaction.replace:
        messages += [_table("delete", table, _DELTABLE), messages[0]]
    for command in transaction.commands:
        messages.extend(_messages(command, table))
    if family != FAMILY_NUMBER:
        messages = [replace(each, body=bytes([family]) + each.body[1:]) for each in messages]
    return messages


def removal(table: str) -> list[Message]:
    """Return the messages that remove a table, which need not exist."""
    return [_table("add", table, _NEWTABLE, _CREATE), _table("delete", table, _DELTABLE)]


def _table(what: str, table: str, kind: int, flags: int = 0) -> Message:
    return Message(f"{what} table {table}", _SUBSYSTEM | kind, _HEADER + _name(1, table), flags)


def _message(what: str, table: str, kind: int, body: bytes, flags: int = 0) -> Message:
    return Message(what, _SUBSYSTEM | kind, _HEADER + _name(1, table) + body, flags)


@lru_cache(4096)
def _name(kind: int, name: str) -> bytes:
    return attribute(kind, name.encode() + b"\0")


def _be32(kind: int, value: int) -> bytes:
    return attribute(kind, struct.pack(">I", value & 0xFFFFFFFF))


def _messages(command: Command, table: str) -> Iterator[Message]:
    match command:
        case AddSet(set_):
            yield _add_set(set_, table)
        case AddChain(chain):
            body = _name(3, chain.name)
            if chain.hook is not None:
                place = _be32(1, _HOOKS[chain.hook.hook]) + _be32(2, chain.hook.priority)
                body += attribute(4, place) + _be32(5, 1) + _name(7, chain.hook.type)
            yield _message(f"add chain {chain.name}", table, _NEWCHAIN, body, _CREATE)
        case DeleteElements(set_name, keys):
            for some in _in_pieces(_element(key, None) for key in keys):
                yield _elements(f"delete elements of {set_name}", table, _DELSETELEM, set_name, some)
        case FlushChain(name):
            yield _message(f"flush chain {name}", table, _DELRULE, _name(2, name))
        case AddRule(chain_name, rule):
            expressions = attribute(4, b"".join(statement.expressions for statement in rule))
            yield _message(
                f"add rule to {chain_name}", table, _NEWRULE, _name(2, chain_name) + expressions, _CREATE | _APPEND
            )
        case AddElements(set_name, pairs):
            for some in _in_pieces(_element(key, value) for key, value in pairs):
                yield _elements(f"add elements to {set_name}", table, _NEWSETELEM, set_name, some, _CREATE)
        case DeleteChain(name):
            yield _message(f"delete chain {name}", table, _DELCHAIN, _name(3, name))
        case DeleteSet(name):
            yield _message(f"delete set {name}", table, _DELSET, _name(2, name))


def _add_set(set_: NftSet, table: str) -> Message:
    key_type, key_size, data_type, data_size = _SHAPES[set_.shape]
    flags = 0
    data = b""
    if data_type:
        flags |= _FLAG_MAP
        data = _be32(6, data_type) + _be32(7, data_size)
    extra = b""
    if set_.shape == "address ranges":
        flags |= _FLAG_INTERVAL
    if set_.shape == "sources":
        flags |= _FLAG_TIMEOUT | _FLAG_EVAL
        extra = attribute(9, _be32(1, 65535)) + attribute(11, struct.pack(">Q", set_.timeout * 1000))
    if set_.shape == "service slots":
        extra = attribute(13, _SLOTS_IN_WORDS)
    body = _name(2, set_.name) + _be32(3, flags) + _be32(4, key_type) + _be32(5, key_size) + data
    return _message(f"add set {set_.name}", table, _NEWSET, body + _be32(10, 1) + extra, _CREATE)


def _elements(what: str, table: str, kind: int, set_name: str, elements: bytes, flags: int = 0) -> Message:
    return _message(what, table, kind, _name(2, set_name) + attribute(3, elements), flags)


def _in_pieces(elements: Iterable[bytes]) -> Iterator[bytes]:
    piece: list[bytes] = []
    size = 0
    for element in elements:
        piece.append(element)
        size += len(element)
        if size > _MOST_ELEMENTS:
            yield b"".join(piece)
            piece, size = [], 0
    if piece:
        yield b"".join(piece)


def _element(key: SetKey, value: SetValue) -> bytes:
    first, _, last = str(key[0]).partition("-")
    if last:
        return _range(first, last)
    body = attribute(1, attribute(1, _key(key)))
    if isinstance(value, str):
        body += attribute(2, verdict_data(value))
    elif value is not None:
        body += attribute(2, attribute(1, inet_aton(value[0]) + struct.pack(">HH", value[1], 0)))
    return attribute(1, body)


def _range(first: str, last: str) -> bytes:
    """Return the two elements of a range: its first address, and the one behind its last, if there is one."""
    start = attribute(1, attribute(1, attribute(1, inet_aton(first))))
    behind = int.from_bytes(inet_aton(last), "big") + 1
    if behind > _LAST_ADDRESS:
        return start
    return start + attribute(1, attribute(1, attribute(1, behind.to_bytes(4, "big"))) + _be32(3, _INTERVAL_END))


def _key(key: SetKey) -> bytes:
    """Each part fills words of four bytes; a slot is a number of this machine's byte order."""
    if len(key) < 3:
        return b"".join(inet_aton(str(part)) for part in key)
    address, protocol, port, *slot = key
    head = inet_aton(str(address)) + struct.pack(">BxxxHxx", PROTOCOLS[str(protocol)], int(port))
    return head + (struct.pack("=I", int(slot[0])) if slot else b"")
