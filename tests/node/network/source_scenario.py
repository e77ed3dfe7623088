"""Pods that forge their source, in namespaces of their own; prints what arrived as JSON. Started by test_sources.py."""

import asyncio
import json
import os
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # network_scenario

from network_scenario import NODE_IP, SERVICE_IP, enter_namespaces, in_netns, new_netns

from lastcall.kube.cri.sandbox.network import PodNetwork, host_link_name, pod_hardware_address
from lastcall.kube.nftables import encode
from lastcall.kube.nftables.names import SOURCES
from lastcall.world import netlink

PORT, END = 9, b"end"
HONEST_SECONDS = 60.0
"""For a packet that has to arrive; it comes in less than a millisecond."""
LINK_LOCAL, OTHERS_IPV6 = "fe80::bad", "fd00::2"
NODE_HARDWARE = bytes([0xEE] * 6)
ALL_NODES = bytes([0x33, 0x33, 0, 0, 0, 1])


def udp(payload: bytes, checksum: int = 0) -> bytes:
    return struct.pack(">HHHH", PORT, PORT, 8 + len(payload), checksum) + payload


def forged_ipv4(source: str, destination: str) -> bytes:
    body = udp(b"forged")
    ends = IPv4Address(source).packed, IPv4Address(destination).packed
    return struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(body), 0, 0, 64, 17, 0, *ends) + body


def forged_ipv6(source: str, destination: str) -> bytes:
    payload, ends = b"forged", IPv6Address(source).packed + IPv6Address(destination).packed
    summed = ends + struct.pack(">IxxxB", 8 + len(payload), 17) + udp(payload)
    total = sum(struct.unpack(f">{len(summed) // 2}H", summed))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return struct.pack(">IHBB", 0x60000000, 8 + len(payload), 17, 64) + ends + udp(payload, ~total & 0xFFFF)


def arp(operation: int, hardware: bytes, sender: str, target: str) -> bytes:
    """Operation 1 asks who has `target`, 2 answers."""
    ends = hardware + IPv4Address(sender).packed + bytes(6) + IPv4Address(target).packed
    return struct.pack(">HHBBH", 1, 0x0800, 6, 4, operation) + ends


class Sender:
    """A Pod with NET_RAW."""

    def __init__(self, netns: int, ip: str) -> None:
        self.ip, self.hardware = ip, pod_hardware_address(ip)
        self.raw, self.honest, self.frames = in_netns(netns, self._open)

    @staticmethod
    def _open() -> tuple[socket.socket, socket.socket, socket.socket]:
        raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        frames = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        frames.bind(("eth0", 0))
        return raw, socket.socket(type=socket.SOCK_DGRAM), frames

    def frame(self, protocol: int, data: bytes, to: bytes = NODE_HARDWARE) -> None:
        self.frames.send(to + self.hardware + struct.pack(">H", protocol) + data)


def receiver(address: str = "", family: int = socket.AF_INET) -> socket.socket:
    found = socket.socket(family, socket.SOCK_DGRAM)
    if family == socket.AF_INET6:
        found.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    found.bind((address, PORT))
    found.settimeout(HONEST_SECONDS)
    return found


def sources(receiving: socket.socket) -> list[str]:
    """Everything that came before the honest packet at the end, and its own source."""
    found = []
    while True:
        data, peer = receiving.recvfrom(64)
        found.append(peer[0])
        if data == END:
            return found


def neighbours(link: str) -> list[str]:
    """Addresses that the node has learned by ARP over a link; those that lastcall wrote are permanent."""
    with open("/proc/thread-self/net/arp") as file:
        rows = [line.split() for line in file.readlines()[1:]]
    return [row[0] for row in rows if row[5] == link and row[2] != "0x6"]


@contextmanager
def other_link() -> Iterator[tuple[socket.socket, bytes]]:
    """A link to the node that is not a Pod's: what a Pod's would be without the checks."""
    netns, hardware = new_netns(), bytes([2, 0, 0, 0, 0, 9])
    with netlink.NetlinkSocket() as route:
        route.transact([netlink.new_veth("other", 800, NODE_HARDWARE, "eth0", 801, hardware, netns)])

    def opened() -> socket.socket:
        with netlink.NetlinkSocket() as inside:
            inside.transact([netlink.link_up(801)])
        frames = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        frames.bind(("eth0", 0))
        return frames

    with in_netns(netns, opened) as frames:
        yield frames, hardware


async def main() -> dict[str, Any]:
    network = PodNetwork("10.244.0.0/24")
    await network.prepare_node([NODE_IP, SERVICE_IP])
    spaces = [new_netns() for _ in range(3)]
    other, _, receives = [await network.attach(f"{n}" * 64, netns, str(n)) for n, netns in enumerate(spaces)]
    sender = Sender(spaces[1], "10.244.0.3")
    in_pod, in_node = in_netns(spaces[2], receiver), receiver(NODE_IP)
    by_ipv6 = receiver("", socket.AF_INET6)
    forged = [other, "10.244.0.77", "10.244.7.7", "192.0.2.1", "169.254.1.1", "172.18.0.3"]

    def tried() -> dict[str, list[str]]:
        for receiving, address in ((in_pod, receives), (in_node, NODE_IP)):
            for source in forged:
                sender.raw.sendto(forged_ipv4(source, address), (address, 0))
            if receiving is in_node:
                for source in (LINK_LOCAL, OTHERS_IPV6):
                    sender.frame(0x86DD, forged_ipv6(source, "ff02::1"), ALL_NODES)
            sender.honest.sendto(END, (address, PORT))
        found = {"pod": sources(in_pod), "node": sources(in_node), "ipv6": []}
        by_ipv6.setblocking(False)
        try:
            while True:
                found["ipv6"].append(by_ipv6.recvfrom(64)[1][0].partition("%")[0])
        except BlockingIOError:
            return found

    seen: dict[str, Any] = {"honest": sender.ip, "forged": forged, "checked": tried()}

    requests = [arp(1, sender.hardware, other, NODE_IP), arp(2, sender.hardware, other, NODE_IP)]
    for each in requests:
        sender.frame(0x0806, each)
    sender.honest.sendto(END, (NODE_IP, PORT))
    sources(in_node)
    seen["arp"] = neighbours(host_link_name("1" * 64))
    with other_link() as (frames, hardware):
        while not neighbours("other"):  # until the link has its carrier
            frames.send(NODE_HARDWARE + hardware + struct.pack(">H", 0x0806) + arp(1, hardware, other, NODE_IP))
            await asyncio.sleep(0.01)  # pause of a poll
        seen["arp of another link"] = neighbours("other")

    tables = [*encode.removal(SOURCES)]
    tables += [netlink.Message(m.what, m.type, bytes([socket.AF_INET6]) + m.body[1:], m.flags) for m in tables]
    with netlink.NetlinkSocket(netlink.NETLINK_NETFILTER) as netfilter:
        netfilter.batch(encode.NF_TABLES, tables)
    seen["unchecked"] = tried()

    await network.close()
    again = PodNetwork("10.244.0.0/24")  # the next node process
    await again.prepare_node([NODE_IP, SERVICE_IP])
    for number, ip in enumerate((other, sender.ip, receives)):
        await again.adopt(f"{number}" * 64, ip)
    await again.adopted()
    seen["checked again"] = tried()
    await again.detach("1" * 64)
    newer = Sender(spaces[0], other)
    newer.honest.sendto(END, (receives, PORT))
    sender.honest.sendto(b"late", (receives, PORT))
    newer.honest.sendto(END, (receives, PORT))
    seen["detached"] = [sources(in_pod), sources(in_pod)]
    await again.close()
    return seen


if __name__ == "__main__":
    enter_namespaces()
    print(json.dumps({**asyncio.run(main()), "uid": os.getuid()}), flush=True)
