"""TCP connections of a node's Pods to addresses outside of the cluster (`up --egress`). In the node's process.

A table of its own sends them to a port of this process, which asks the kernel for the address that was meant, has front
dial it on the host, and joins the two. So the Pod's connection is there before the one outside is: a failure to connect
outside is a reset of the Pod's. Pods with the node's network (hostNetwork) do not pass here, nor do UDP and ICMP.
"""

import asyncio
import functools
import logging
import socket
import struct

from lastcall.kube.cluster.egress.outside import NOT_OUTSIDE, outside_address
from lastcall.kube.cluster.egress.pair import EgressClient
from lastcall.kube.cluster.layout import NodeLayout
from lastcall.kube.cluster.splice import reset, splice
from lastcall.kube.cri.sandbox.images.way_out import DialError
from lastcall.kube.nftables import encode as nft_encode
from lastcall.kube.nftables import statements as nft
from lastcall.kube.nftables.objects import AddChain, AddRule, Chain, Hook, Transaction
from lastcall.world import crash_guard, netlink
from lastcall.world.listeners import accept_each
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

TABLE = "lastcall-egress"
_CHAIN = "pods-to-outside"
_AFTER_SERVICES = -90
"""Behind the service proxy's dstnat (-100): external addresses of Services stay the Services'."""
_SO_ORIGINAL_DST = 80
_SOCKADDR_IN = struct.Struct(">2xH4s8x")

_logger = logging.getLogger(__name__)


def redirection(pod_cidr: str, address: str, port: int) -> Transaction:
    """Return the rules that send new TCP connections of Pods to `address`, unless they go to the cluster."""
    rules = [(nft.daddr_within(network), nft.verdict("return")) for network in NOT_OUTSIDE]
    rules.append((nft.saddr_within(pod_cidr), nft.dnat_to("TCP", address, port)))
    chain = Chain(_CHAIN, hook=Hook("nat", "prerouting", _AFTER_SERVICES))
    return Transaction((AddChain(chain), *(AddRule(_CHAIN, rule) for rule in rules)), replace=True)


def original_destination(sock: socket.socket) -> tuple[str, int]:
    """Return the destination of a connection before it was translated. Raises OSError."""
    port, address = _SOCKADDR_IN.unpack(sock.getsockopt(socket.IPPROTO_IP, _SO_ORIGINAL_DST, _SOCKADDR_IN.size))
    return socket.inet_ntoa(address), port


class PodEgress:
    """`run` until cancelled. A kernel without nftables is logged, and Pods stay inside."""

    def __init__(self, world: World, layout: NodeLayout, way_out: EgressClient) -> None:
        self._world = world
        self._layout = layout
        self._way_out = way_out

    async def run(self) -> None:
        with socket.create_server((self._layout.ip, 0), backlog=1024) as listening:
            transaction = redirection(self._layout.pod_cidr, *listening.getsockname())
            try:
                with netlink.NetlinkSocket(netlink.NETLINK_NETFILTER) as netfilter:
                    netfilter.batch(nft_encode.NF_TABLES, nft_encode.batch(transaction, TABLE))
            except OSError as error:
                _logger.error("Pods cannot connect to addresses outside: nftables: %s", error.strerror or error)
                return
            async with Tasks() as tasks:
                await accept_each(listening, self._world.clock, functools.partial(self._take, tasks))

    def _take(self, tasks: Tasks, accepted: socket.socket) -> None:
        carry = crash_guard.guarded("Pods' connections to outside", "", self._carry(accepted))
        tasks.spawn(carry, name="connection to outside")

    async def _carry(self, accepted: socket.socket) -> None:
        try:
            address, port = original_destination(accepted)
            # A Pod may connect to this port itself; front checks as well.
            outside = await self._way_out.dial_outside(outside_address(address), port)
        except (OSError, ValueError, DialError):
            reset(accepted)
            return
        except asyncio.CancelledError:
            accepted.close()
            raise
        await splice(accepted, outside)
