"""The machine's part of the Pod network of a cluster of `up`, from before its processes to behind their end."""

import errno
from dataclasses import dataclass

from lastcall.cluster.layout import layouts
from lastcall.cluster.machines.hold import TAKEN, Hold
from lastcall.cluster.machines.kernel import Kernel, mtu_for, why_not
from lastcall.cluster.machines.link import Link
from lastcall.cluster.machines.rules import NODE_NETWORK
from lastcall.cluster.machines.settings import PodNetwork, vni_of
from lastcall.cluster.options import CLUSTER_CIDR, ClusterOptions


@dataclass(slots=True)
class Here:
    """`make` before the cluster's processes, `connect` when init is there, `end` after them."""

    settings: PodNetwork
    address: str
    hold: Hold
    ranges: tuple[str, ...] = ()
    """Of the cluster of `up`; empty for a node that joins one, which makes its link itself."""
    _link: Link | None = None

    @classmethod
    def make(cls, options: ClusterOptions, ca_certificate: bytes) -> "Here":
        """Raises OSError, which says the fix. The caller must have one thread only."""
        assert options.pod_network
        ranges = tuple(each.pod_cidr for each in layouts(options.nodes))
        hold = Hold.take()
        if hold is None:
            raise OSError(errno.EADDRINUSE, TAKEN)
        try:
            if why := why_not(options.listen, (*ranges, NODE_NETWORK)):
                raise OSError(f"--pod-network {options.pod_network}: {why}")
            mtu = mtu_for(options.pod_network, options.listen)
        except BaseException:
            hold.end()
            raise
        settings = PodNetwork(options.pod_network, CLUSTER_CIDR, mtu, vni_of(ca_certificate))
        return cls(settings, options.listen, hold, ranges)

    @classmethod
    def of_joined(cls, settings: PodNetwork, address: str, seconds: float = 1.0) -> "Here | None":
        """For a node that joins; None when another process of this machine has routed for all of its nodes for so long.

        Raises OSError.
        """
        hold = Hold.take(seconds)
        return None if hold is None else cls(settings, address, hold)

    def connect(self, init_pid: int) -> None:
        """Raises OSError."""
        if self.ranges:
            self._link = Link.connect(init_pid, self.address, self.ranges)

    def kernel(self) -> Kernel:
        return Kernel(self.settings, self.address, self._link)

    def end(self) -> None:
        """Idempotent, never raises."""
        if self._link is not None:
            self._link.close()
        self.hold.end()
