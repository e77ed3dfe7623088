"""Which connections that were open at an exit were a kubelet's, and not a client's. Pure."""

# check: pure

from collections.abc import Container
from dataclasses import replace
from ipaddress import ip_address

from lastcall.endings.node_facts import AtExit, Peer


def without_probes(end: AtExit, probed: Container[int], pods: Container[str]) -> AtExit:
    """Return the sockets of a container without the connections of its own tcpSocket probes.

    `probed` are the ports to which those connect, `pods` the addresses of Pods. The kubelet closes such a connection as
    soon as it is open (pkg/probe/tcp/tcp.go:DoTCPProbe) and waits for nothing. What the program had not read of it is
    its end (FIN), which the kernel counts as a byte (tcp_diag_get_info). One that had not been accepted is reset with
    its listener.
    """
    probes = [each for each in end.peers if _is_of_probe(each, probed, pods)]
    if not probes:
        return end
    waiting = sum(not each.accepted for each in probes)
    return replace(
        end,
        connections=max(0, end.connections - len(probes)),
        unread=max(0, end.unread - len(probes)),
        unread_bytes=max(0, end.unread_bytes - sum(each.unread_bytes for each in probes)),
        backlog=max(0, end.backlog - waiting),
        resets=max(0, end.resets - waiting),
        peers=tuple(each for each in end.peers if each not in probes),
    )


def _is_of_probe(peer: Peer, probed: Container[int], pods: Container[str]) -> bool:
    """Return whether a tcpSocket probe of the container may have opened and closed a connection, and no Pod did."""
    if peer.unread_bytes != 1 or peer.own_port not in probed or peer.address in pods:
        return False
    return not ip_address(peer.address).is_loopback
