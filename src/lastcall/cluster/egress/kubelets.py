"""The control plane's way to kubelets that are not lastcall's own (`up --join-token`): front dials them on the host.

lastcall's nodes are in the cluster's network and are dialed as they are. What front dials is an address outside
(`outside.py`): never the machine's loopback. TLS is the API server's, which trusts the cluster's authority alone.
"""

import socket
from ipaddress import AddressValueError, IPv4Address, IPv4Network

from lastcall.apiserver.proxying.upstream import dial
from lastcall.cluster.egress.pair import EgressClient
from lastcall.cluster.options import NODE_CIDR
from lastcall.cri.sandbox.images.way_out import DialError as NotDialed
from lastcall.streaming.dialing import DialError

_INSIDE = IPv4Network(NODE_CIDR)


class KubeletWay:
    """`way` is the control plane's end of an egress pair whose other end lets Pods out."""

    def __init__(self, way: socket.socket) -> None:
        self._way = way
        self._client: EgressClient | None = None

    async def dial(self, host: str, port: int) -> socket.socket:
        """As `lastcall.apiserver.proxying.upstream.Dial`."""
        if is_inside(host):
            return await dial(host, port)
        if self._client is None:
            self._client = EgressClient(self._way)
        try:
            return await self._client.dial_outside(host, port)
        except NotDialed as error:
            raise DialError(str(error)) from None

    def close(self) -> None:
        """No connection after this one."""
        if self._client is not None:
            self._client.close()
        self._way.close()


def is_inside(host: str) -> bool:
    """Whether an address is one of lastcall's nodes."""
    try:
        return IPv4Address(host) in _INSIDE
    except AddressValueError:
        return False
