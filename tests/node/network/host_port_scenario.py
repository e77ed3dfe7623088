"""Pods with hostPorts in namespaces of their own; prints what was seen as JSON. Started by test_host_ports.py.

Usage: host_port_scenario.py <scenario>
"""

import asyncio
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # network_scenario

from network_scenario import NODE_IP, SERVICE_IP, enter_namespaces, in_netns, listener, new_netns, sandbox

from lastcall.kube.cri.api import PodSandboxConfig, PodSandboxMetadata, PortMapping
from lastcall.kube.cri.sandbox.network import HOST_PORTS, PodNetwork
from lastcall.world import netlink

OTHER_NODE = "172.18.0.3"
KEPT = (("10.96.0.0/16",), ((NODE_IP, 10250),))
SECONDS = 2.0
"""After which a packet counts as swallowed. What is awaited comes in less than a millisecond."""


def config(*ports: PortMapping) -> PodSandboxConfig:
    return PodSandboxConfig(PodSandboxMetadata("pod", "uid", "default"), port_mappings=ports)


def ask(address: tuple[str, int], name: bytes = b"") -> str:
    """Who answers a TCP connection, and from where the answerer sees it; or how it failed."""
    try:
        with socket.create_connection(address, timeout=SECONDS) as client:
            client.sendall(name + b"\n")
            return client.recv(64).decode()
    except OSError as error:
        return type(error).__name__


def ask_udp(address: tuple[str, int], client: socket.socket | None = None) -> str:
    client = client or socket.socket(type=socket.SOCK_DGRAM)
    client.settimeout(SECONDS)
    try:
        client.sendto(b"?", address)
        return client.recv(64).decode()
    except OSError as error:
        return type(error).__name__


def serve(netns: int | None, name: str, port: int, udp: bool = False, address: str = "") -> None:
    """Answer with a name and the client's address, in a task of the loop's own threads, until the process ends."""

    def opened() -> socket.socket:
        if not udp:
            return listener(address, port)
        server = socket.socket(type=socket.SOCK_DGRAM)
        server.bind((address, port))
        return server

    server = opened() if netns is None else in_netns(netns, opened)

    def answer() -> None:
        while True:
            if udp:
                _, peer = server.recvfrom(64)
                server.sendto(f"{name} to {peer[0]}".encode(), peer)
            else:
                accepted, peer = server.accept()
                accepted.recv(64)
                accepted.sendall(f"{name} to {peer[0]}".encode())
                accepted.close()

    import threading

    threading.Thread(target=answer, daemon=True).start()


def other_node() -> int:
    """A namespace with another node's address, one link away."""
    netns = new_netns()
    ends = ("to-other", 700, bytes([2, 0, 0, 0, 0, 1]), "eth0", 701, bytes([2, 0, 0, 0, 0, 2]), netns)
    with netlink.NetlinkSocket() as route:
        route.transact([netlink.new_veth(*ends), netlink.new_link_route(OTHER_NODE, 700, NODE_IP)])
        route.transact([netlink.new_neighbour(OTHER_NODE, 700, bytes([2, 0, 0, 0, 0, 2]))])

    def inside() -> None:
        with netlink.NetlinkSocket() as route:
            route.transact(
                [
                    netlink.link_up(701),
                    netlink.new_address(701, OTHER_NODE),
                    netlink.new_link_route(NODE_IP, 701),
                    netlink.new_neighbour(NODE_IP, 701, bytes([2, 0, 0, 0, 0, 1])),
                    netlink.new_gateway_route("10.244.0.0/24", NODE_IP, 701),
                ]
            )

    in_netns(netns, inside)
    return netns


async def traffic(network: PodNetwork) -> dict[str, Any]:
    one, two, other = new_netns(), new_netns(), other_node()
    first = await network.attach("a" * 64, one, "u1", config(PortMapping(8080, 80), PortMapping(8053, 53, "UDP")))
    second = await network.attach("b" * 64, two, "u2", config())
    serve(one, "first", 80)
    serve(one, "first", 53, udp=True)
    serve(None, "api", 8080, address=SERVICE_IP)
    return {
        "ips": [first, second],
        "node": ask((NODE_IP, 8080)),
        "loopback": ask(("127.0.0.1", 8080)),
        "pod": in_netns(two, lambda: ask((NODE_IP, 8080))),
        "itself": in_netns(one, lambda: ask((NODE_IP, 8080))),
        "otherNode": in_netns(other, lambda: ask((NODE_IP, 8080))),
        "podDirectly": ask((first, 80)),
        "service": ask((SERVICE_IP, 8080)),
        "udp": {
            "node": ask_udp((NODE_IP, 8053)),
            "loopback": ask_udp(("127.0.0.1", 8053)),
            "pod": in_netns(two, lambda: ask_udp((NODE_IP, 8053))),
            "itself": in_netns(one, lambda: ask_udp((NODE_IP, 8053))),
            "otherNode": in_netns(other, lambda: ask_udp((NODE_IP, 8053))),
        },
        "otherPort": ask((NODE_IP, 8081)),
        "podOnLoopback": in_netns(two, lambda: ask(("127.0.0.1", 8080))),
    }


async def one_port(network: PodNetwork) -> dict[str, Any]:
    """As the conformance test: one hostPort, three Pods that differ in hostIP or protocol."""
    spaces = [new_netns() for _ in range(3)]
    wanted = [
        PortMapping(54323, 8080, "TCP", "127.0.0.1"),
        PortMapping(54323, 8080, "TCP", NODE_IP),
        PortMapping(54323, 8080, "UDP", NODE_IP),
    ]
    for number, (netns, mapping) in enumerate(zip(spaces, wanted, strict=True)):
        await network.attach(sandbox(number), netns, "u", config(mapping))
        serve(netns, f"pod-{number}", 8080, udp=mapping.protocol == "UDP")

    def from_node_address() -> str:
        with socket.create_connection(("127.0.0.1", 54323), SECONDS, (NODE_IP, 0)) as client:
            client.sendall(b"\n")
            return client.recv(64).decode()

    return {
        "loopback": ask(("127.0.0.1", 54323)),
        "loopbackFromNodeAddress": from_node_address(),
        "node": ask((NODE_IP, 54323)),
        "udp": ask_udp((NODE_IP, 54323)),
        "udpLoopback": ask_udp(("127.0.0.1", 54323)),
    }


async def end(network: PodNetwork) -> dict[str, Any]:
    one, two = new_netns(), new_netns()
    mappings = config(PortMapping(8080, 80), PortMapping(8053, 53, "UDP"))
    stood_before = netlink.has_nftables_table(HOST_PORTS)
    first = await network.attach("a" * 64, one, "u1", mappings)
    serve(one, "first", 53, udp=True)
    client = socket.socket(type=socket.SOCK_DGRAM)
    served = ask_udp((NODE_IP, 8053), client)
    await network.detach("a" * 64, first)
    detached = {"tcp": ask((NODE_IP, 8080)), "table": netlink.has_nftables_table(HOST_PORTS)}
    await network.attach("b" * 64, two, "u2", mappings)
    serve(two, "second", 53, udp=True)
    return {
        "stoodBefore": stood_before,
        "served": served.split()[0],
        "detached": detached,
        "sameClient": ask_udp((NODE_IP, 8053), client).split()[0],
    }


async def killed(network: PodNetwork) -> dict[str, Any]:
    """Another process of the node follows one that was killed."""
    one, two = new_netns(), new_netns()
    first_config, second_config = config(PortMapping(8080, 80)), config(PortMapping(8081, 80))
    first = await network.attach("a" * 64, one, "u1", first_config)
    second = await network.attach("b" * 64, two, "u2", second_config)
    serve(one, "first", 80)
    serve(two, "second", 80)
    follower = PodNetwork("10.244.0.0/24", KEPT)
    await follower.prepare_node([NODE_IP, SERVICE_IP])
    await follower.adopt("b" * 64, second, second_config)
    await follower.adopted()
    seen = {"gone": ask((NODE_IP, 8080)), "kept": ask((NODE_IP, 8081)), "first": first}
    await follower.detach("b" * 64, second)
    last = PodNetwork("10.244.0.0/24", KEPT)
    await network.attach("c" * 64, new_netns(), "u3", first_config)
    await last.prepare_node([NODE_IP, SERVICE_IP])
    await last.adopted()
    seen["table"] = netlink.has_nftables_table(HOST_PORTS)
    await follower.close()
    await last.close()
    return seen


async def main(scenario: str) -> dict[str, Any]:
    network = PodNetwork("10.244.0.0/24", KEPT)
    await network.prepare_node([NODE_IP, SERVICE_IP])
    await network.adopted()
    try:
        return await globals()[scenario](network)
    finally:
        await network.close()


if __name__ == "__main__":
    enter_namespaces()
    print(json.dumps({**asyncio.run(main(sys.argv[1])), "uid": os.getuid()}))
