"""What is outside of a cluster: the addresses to which Pods may connect through front (`up --egress`). Pure."""

# check: pure

from ipaddress import IPv4Address, IPv4Network

from lastcall.kube.cluster.options import CLUSTER_CIDR, NODE_CIDR, SERVICE_CIDR

NOT_OUTSIDE = (
    "0.0.0.0/8",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "224.0.0.0/4",
    "240.0.0.0/4",
    CLUSTER_CIDR,
    SERVICE_CIDR,
    NODE_CIDR,
)
"""Unspecified, loopback, link-local (where clouds have their metadata), multicast, reserved; and the cluster's own."""
_NETWORKS = tuple(map(IPv4Network, NOT_OUTSIDE))


def outside_address(text: str) -> str:
    """Return the address to dial. Raises ValueError for one that is not outside, and for an invalid one.

    Names are refused: callers look them up and pass the address.
    """
    try:
        address = IPv4Address(text)
    except ValueError:
        raise ValueError(f"{text!r} is not an IPv4 address") from None
    for network in _NETWORKS:
        if address in network:
            raise ValueError(f"{address} is not outside of the cluster ({network})")
    return str(address)
