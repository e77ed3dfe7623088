"""Writes transactions through libnftables in process, where a distribution has installed it.

The same rules by another hand: what the netlink writer makes is tested against it.
"""

import ctypes
from collections.abc import Mapping

from lastcall.kube.nftables import conntrack
from lastcall.kube.nftables.objects import AddElements, Command, DeleteElements, Transaction
from lastcall.kube.nftables.statements import FAMILY
from lastcall.kube.nftables.text import text_of_transaction
from lastcall.kube.proxy.names import TABLE
from lastcall.kube.proxy.sink import RuleError

LIBRARY = "libnftables.so.1"
_MOST_ELEMENTS = 2500
"""Of one run: a user namespace may send some 400 kB at once."""


class LibnftablesSink:
    """A RuleSink for the network namespace of the calling thread. Raises OSError where there is no such library."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(LIBRARY)
        self._library.nft_ctx_new.restype = ctypes.c_void_p
        self._library.nft_ctx_new.argtypes = [ctypes.c_uint32]
        self._library.nft_run_cmd_from_buffer.argtypes = [ctypes.c_void_p, ctypes.c_char_p]
        self._library.nft_ctx_get_error_buffer.restype = ctypes.c_char_p
        self._library.nft_ctx_get_output_buffer.restype = ctypes.c_char_p
        for name in ("nft_ctx_get_error_buffer", "nft_ctx_get_output_buffer", "nft_ctx_buffer_error"):
            getattr(self._library, name).argtypes = [ctypes.c_void_p]
        for name in ("nft_ctx_buffer_output", "nft_ctx_free"):
            getattr(self._library, name).argtypes = [ctypes.c_void_p]
        self._context = self._library.nft_ctx_new(0)
        self._library.nft_ctx_buffer_error(self._context)
        self._library.nft_ctx_buffer_output(self._context)

    async def apply(self, transaction: Transaction) -> None:
        for piece in pieces(transaction):
            self.run(text_of_transaction(piece, TABLE))

    async def exists(self) -> bool:
        try:
            self.run(f"list table {FAMILY} {TABLE}")
        except RuleError:
            return False
        return True

    async def forget_udp_flows(self, frontends: Mapping[conntrack.UDPFrontend, frozenset[str]]) -> int:
        try:
            return conntrack.clean(frontends)
        except OSError as error:
            raise RuleError(f"conntrack: {error.strerror}") from error

    async def close(self) -> None:
        self._library.nft_ctx_free(self._context)

    def run(self, commands: str) -> str:
        """Run commands; return what they print. Raises RuleError with libnftables' own words."""
        if self._library.nft_run_cmd_from_buffer(self._context, commands.encode()) != 0:
            raise RuleError(self._library.nft_ctx_get_error_buffer(self._context).decode(errors="replace").strip())
        output: bytes = self._library.nft_ctx_get_output_buffer(self._context)
        return output.decode()


def pieces(transaction: Transaction, most: int = _MOST_ELEMENTS) -> list[Transaction]:
    """Split into transactions of at most so many elements, in order; one, if that is enough."""
    found: list[list[Command]] = [[]]
    room = most
    for command in transaction.commands:
        if not isinstance(command, AddElements | DeleteElements):
            found[-1].append(command)
            continue
        all_of_it = command.elements if isinstance(command, AddElements) else command.keys
        start = 0
        while start < len(all_of_it):
            if room == 0:
                found.append([])
                room = most
            end = start + min(room, len(all_of_it) - start)
            if isinstance(command, AddElements):
                found[-1].append(AddElements(command.set, command.elements[start:end]))
            else:
                found[-1].append(DeleteElements(command.set, command.keys[start:end]))
            room -= end - start
            start = end
    return [Transaction(tuple(each), transaction.replace and number == 0) for number, each in enumerate(found)]
