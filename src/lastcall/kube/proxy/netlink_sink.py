"""Writes transactions to the kernel's nf_tables over netlink, without a library: nothing has to be installed."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from lastcall.kube.nftables import conntrack
from lastcall.kube.nftables import encode as nft_encode
from lastcall.kube.nftables.objects import Transaction
from lastcall.kube.proxy.names import TABLE
from lastcall.kube.proxy.sink import RuleError
from lastcall.world import netlink
from lastcall.world.netlink import Message

T = TypeVar("T")

_LARGEST = 64 << 20
"""Bytes; 5 000 Services are 3 MB."""


class NetlinkSink:
    """A RuleSink for the network namespace of the process.

    A user namespace may send some 400 kB at once. A longer transaction (thousands of Services at the start) becomes
    several, each of which is whole; only then the change is not atomic.

    `routes` are made before the first transaction: networks without a way would be refused on this node before any
    rule sees their packets.
    """

    def __init__(self, routes: Sequence[Message] = (), table: str = TABLE) -> None:
        self._table = table
        self._worker = ThreadPoolExecutor(max_workers=1, thread_name_prefix=table.removeprefix("lastcall-"))
        # What follows belongs to the worker thread.
        self._socket: netlink.NetlinkSocket | None = None
        self._largest = 0
        self._routes = list(routes)

    async def apply(self, transaction: Transaction) -> None:
        await self._run(lambda: self.apply_now(transaction))

    async def exists(self) -> bool:
        return await self._run(lambda: netlink.has_nftables_table(self._table))

    async def remove(self) -> None:
        """Remove the table. Raises RuleError."""
        messages = nft_encode.removal(self._table)
        await self._run(lambda: self._opened().batch(nft_encode.NF_TABLES, messages))

    async def forget_udp_flows(self, frontends: Mapping[conntrack.UDPFrontend, frozenset[str]]) -> int:
        return await self._run(lambda: conntrack.clean(frontends))

    async def close(self) -> None:
        await self._run(self._close)
        self._worker.shutdown(wait=False)

    def apply_now(self, transaction: Transaction) -> None:
        """Apply the transaction in the calling thread. Raises OSError."""
        if self._routes:
            with netlink.NetlinkSocket() as route:
                route.transact(self._routes)
            self._routes = []
        opened = self._opened()
        for messages in in_batches(nft_encode.batch(transaction, self._table), self._largest):
            opened.batch(nft_encode.NF_TABLES, messages)

    async def _run(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._worker, work)
        except OSError as error:
            raise RuleError(f"nftables: {error.strerror or error}") from error

    def _opened(self) -> netlink.NetlinkSocket:
        if self._socket is None:
            self._socket = netlink.NetlinkSocket(netlink.NETLINK_NETFILTER)
            self._largest = self._socket.widen(_LARGEST)
        return self._socket

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def in_batches(messages: Sequence[Message], largest: int) -> list[list[Message]]:
    """Split messages into as few batches as their sizes in bytes allow, in their order."""
    batches: list[list[Message]] = [[]]
    size = 0
    for message in messages:
        length = 16 + len(message.body)
        if size + length + 64 > largest and batches[-1]:
            batches.append([])
            size = 0
        batches[-1].append(message)
        size += length
    return batches
