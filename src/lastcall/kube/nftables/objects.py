"""Describe what is in the table: sets and maps with their elements, chains with their rules; and what changes them.

Neutral: `text` writes it for libnftables, `encode` for the kernel.
"""

from dataclasses import field
from typing import Literal

from lastcall.kube.nftables.statements import Rule
from lastcall.world.dataclass import dataclass

Shape = Literal[
    "addresses",
    "address pairs",
    "address ranges",
    "services",
    "service verdicts",
    "service slots",
    "sources",
    "address verdicts",
]
"""
addresses: ip. address pairs: ip . ip. address ranges: from ip to ip; no two ranges touch. services: ip . protocol .
port, bare or with a verdict. service slots: the same and a number → ip . port. sources: ip, put there by packets, with
a timeout. address verdicts: ip → verdict.
"""

SetKey = tuple[str | int, ...]
"""(ip,) · (ip, ip) · ("ip-ip",) · (ip, "TCP", port) · (ip, "TCP", port, slot)."""
SetValue = tuple[str, int] | str | None
"""(ip, port) of a slot, a verdict, or None."""


@dataclass(frozen=True, slots=True)
class NftSet:
    """A set or map; `timeout` in seconds for the shape `sources`."""

    name: str
    shape: Shape
    timeout: int = 0

    def __hash__(self) -> int:
        return hash(self.name)


@dataclass(frozen=True, slots=True)
class Hook:
    """Where a base chain is called from."""

    type: Literal["nat", "filter"]
    hook: Literal["prerouting", "input", "forward", "output", "postrouting"]
    priority: int


@dataclass(frozen=True, slots=True)
class Chain:
    name: str
    rules: tuple[Rule, ...] = ()
    hook: Hook | None = None

    def __hash__(self) -> int:
        return hash(self.name)


# Commands, in the order of a transaction.


@dataclass(frozen=True, slots=True)
class AddSet:
    set: NftSet


@dataclass(frozen=True, slots=True)
class AddChain:
    """Without its rules."""

    chain: Chain


@dataclass(frozen=True, slots=True)
class DeleteElements:
    """`set` is its name."""

    set: str
    keys: tuple[SetKey, ...]


@dataclass(frozen=True, slots=True)
class FlushChain:
    name: str


@dataclass(frozen=True, slots=True)
class AddRule:
    chain: str
    rule: Rule


@dataclass(frozen=True, slots=True)
class AddElements:
    """`set` is its name."""

    set: str
    elements: tuple[tuple[SetKey, SetValue], ...]


@dataclass(frozen=True, slots=True)
class DeleteChain:
    name: str


@dataclass(frozen=True, slots=True)
class DeleteSet:
    name: str


Command = AddSet | AddChain | DeleteElements | FlushChain | AddRule | AddElements | DeleteChain | DeleteSet


@dataclass(frozen=True, slots=True)
class Transaction:
    """Apply all of it or nothing. `replace`: what the table held before is gone, no matter who wrote it."""

    commands: tuple[Command, ...] = field(default=())
    replace: bool = False

    def __bool__(self) -> bool:
        return bool(self.commands) or self.replace
