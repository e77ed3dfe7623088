"""A Pod sends from its own address only, also with NET_RAW: what comes by its link from another one is dropped.

The route to a Pod is the proof of its address: it leads to the Pod's link, from attach to detach, and nowhere else. So
one rule serves all Pods, and nothing has to be added for one, taken away, or found again by the next node process. The
rule runs before connections are tracked, so what is forged changes no connection, Service or NetworkPolicy. No Pod has
an IPv6 address, so no IPv6 is taken from its link. ARP is off there (`netlink.new_veth`): every neighbour is known.

Calico and Cilium drop such packets, too. CNI plugins make links of their own, which are not in the group.
"""

import socket
from pathlib import Path

from lastcall.kube.nftables import encode
from lastcall.kube.nftables import statements as nft
from lastcall.kube.nftables.names import SOURCES as TABLE
from lastcall.kube.nftables.objects import AddChain, AddRule, Chain, FlushChain, Hook, Transaction
from lastcall.kube.nftables.statements import Rule
from lastcall.world import netlink

_BEFORE_CONNTRACK = -300
_IPV6 = Path("/proc/sys/net/ipv6")


def transaction(rule: Rule) -> Transaction:
    """Return the whole table: `rule` for every packet that comes in.

    The chain of an earlier process stays and gets its rule anew. To replace the table, also one that is not there,
    takes the kernel 6 ms and more; this takes it 0.3 ms in a new network namespace.
    """
    chain = Chain("arriving", (rule,), Hook("filter", "prerouting", _BEFORE_CONNTRACK))
    return Transaction((AddChain(chain), FlushChain(chain.name), AddRule(chain.name, rule)))


def check_sources(group: int) -> None:
    """Drop what comes from links of the group with a source that is not theirs, from now on. Raises OSError."""
    from_pods, drop = nft.from_group(group), nft.verdict("drop")
    with netlink.NetlinkSocket(netlink.NETLINK_NETFILTER) as netfilter:
        ipv4 = transaction((from_pods, nft.no_way_back(), drop))
        netfilter.batch(encode.NF_TABLES, encode.batch(ipv4, TABLE))
        if _IPV6.exists():  # else the kernel has no IPv6
            ipv6 = transaction((from_pods, drop))
            netfilter.batch(encode.NF_TABLES, encode.batch(ipv6, TABLE, socket.AF_INET6))
