"""Services in network namespaces of its own; prints what clients saw as JSON. Started by test_service_packets.py.

A node with seven Pods and two machines outside the cluster. Usage: service_scenario.py
"""

import asyncio
import json
import os
import socket
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # network_scenario
sys.path.insert(0, str(Path(__file__).parents[2] / "support"))

from network_scenario import enter_namespaces, in_netns, new_netns, sandbox
from services import endpoint, endpoint_slice, service

from lastcall.kube.cri.sandbox.network import PodNetwork
from lastcall.kube.nftables.state import TableState
from lastcall.kube.proxy.conntrack import frontends_to_clean
from lastcall.kube.proxy.endpoints import endpoints_of
from lastcall.kube.proxy.health import HTTPHealthServers, ServiceHealth
from lastcall.kube.proxy.netlink_sink import NetlinkSink
from lastcall.kube.proxy.rules import PortRules, rules_of
from lastcall.kube.proxy.services import parse_service
from lastcall.kube.proxy.table import fragment_of, service_chains, skeleton
from lastcall.kube.proxy.topology import Node
from lastcall.world.conntrack import Connections
from lastcall.world.netlink import new_local_network

NODE_IP = "172.18.0.2"
VIP, LB_IP, NODE_PORT = "10.96.0.10", "172.18.255.1", 30080
NODE = Node("node-1", addresses=(NODE_IP,))
ONE_PORT = 45678
PATIENCE = 30.0
DROPPED = 0.7
"""Seconds of patience where nothing is to come."""


class Host:
    """A network namespace with a TCP and a UDP server on port 8080 that say who they are and whom they see."""

    def __init__(self, netns: int, ip: str) -> None:
        self.netns, self.ip = netns, ip
        self._tcp: socket.socket = in_netns(netns, socket.socket)
        self._tcp.bind(("", 8080))
        self._tcp.listen(512)
        self._udp = self.udp()
        self._udp.bind(("", 8080))
        for serve in (self._serve_tcp, self._serve_udp):
            threading.Thread(target=serve, daemon=True).start()

    def udp(self) -> socket.socket:
        client: socket.socket = in_netns(self.netns, lambda: socket.socket(type=socket.SOCK_DGRAM))
        client.settimeout(PATIENCE)
        return client

    def _serve_tcp(self) -> None:
        while True:
            client, peer = self._tcp.accept()
            threading.Thread(target=self._serve, args=(client, peer[0]), daemon=True).start()

    def _serve(self, client: socket.socket, peer: str) -> None:
        with client:
            while client.recv(64):
                client.sendall(f"{self.ip} {peer}".encode())

    def _serve_udp(self) -> None:
        while True:
            _, peer = self._udp.recvfrom(64)
            self._udp.sendto(f"{self.ip} {peer[0]}".encode(), peer)

    def connect(self, address: str, port: int = 80, timeout: float = PATIENCE) -> socket.socket:
        """From here."""
        client: socket.socket = in_netns(self.netns, socket.socket)
        client.settimeout(timeout)
        try:
            client.connect((address, port))
        except OSError:
            client.close()
            raise
        return client


def ask(client: socket.socket) -> list[str]:
    """Who answers, and whom it sees."""
    client.sendall(b"?")
    return client.recv(64).decode().split()


def try_once(
    connect: Callable[..., socket.socket], address: str = VIP, port: int = 80, patience: float = PATIENCE
) -> Any:
    """[who answers, whom it sees], `refused` or `dropped`."""
    try:
        with connect(address, port, patience) as client:
            return ask(client)
    except ConnectionRefusedError:
        return "refused"
    except TimeoutError:
        return "dropped"


def answered_by(
    connect: Callable[..., socket.socket], times: int, address: str = VIP, port: int = 80
) -> dict[str, int]:
    found: Counter[str] = Counter()
    for _ in range(times):
        with connect(address, port) as client:
            found[ask(client)[0]] += 1
    return dict(sorted(found.items()))


def from_node(address: str, port: int = 80, timeout: float = PATIENCE) -> socket.socket:
    return socket.create_connection((address, port), timeout)


def from_one_port(address: str, port: int = 80, timeout: float = PATIENCE) -> socket.socket:
    return socket.create_connection((address, port), timeout, source_address=(NODE_IP, ONE_PORT))


class Rules:
    """One Service's rules in the kernel."""

    def __init__(self) -> None:
        self.sink = NetlinkSink([new_local_network(cidr, NODE_IP) for cidr in ("10.96.0.0/16", "172.18.255.0/24")])
        self.state = TableState(skeleton("10.244.0.0/16", "10.96.0.0/16"), service_chains)
        self.rules: tuple[PortRules, ...] = ()
        self._first = True

    async def set(self, obj: dict[str, Any], *endpoints: dict[str, Any], protocol: str = "TCP") -> None:
        parsed = parse_service(obj)
        assert parsed is not None
        slices = [endpoint_slice(*endpoints, ports=[{"name": "http", "protocol": protocol, "port": 8080}])]
        self.rules = rules_of(parsed, endpoints_of(slices, NODE.name), NODE)
        transaction = self.state.change({parsed.key: fragment_of(self.rules)})
        await self.sink.apply(self.state.everything() if self._first else transaction)
        self._first = False


async def scenario() -> dict[str, Any]:
    network, outside_network = PodNetwork("10.244.0.0/24"), PodNetwork("192.0.2.0/29")
    await network.prepare_node([NODE_IP, "10.96.0.1"])
    pods = []
    for number in range(7):
        netns = new_netns()
        pods.append(Host(netns, await network.attach(sandbox(number), netns, f"uid-{number}")))
    outside = []
    for number in range(8, 10):
        netns = new_netns()
        outside.append(Host(netns, await outside_network.attach(sandbox(number), netns, f"uid-{number}")))
    a, b, c, d, *_ = pods
    stranger, other_stranger = outside
    rules = Rules()
    seen: dict[str, Any] = {"pods": [pod.ip for pod in pods], "outside": [host.ip for host in outside]}

    # ClusterIP
    await rules.set(service(), *(endpoint(pod.ip) for pod in (a, b, c)))
    seen["three from a Pod"] = answered_by(d.connect, 600)
    seen["three from the node"] = answered_by(from_node, 60)
    seen["Pod sees"] = try_once(d.connect)[1]
    await rules.set(service(), *(endpoint(pod.ip) for pod in pods))
    seen["seven from a Pod"] = answered_by(d.connect, 700)
    seen["another port"] = [try_once(d.connect, port=81), try_once(from_node, port=81)]
    seen["another address"] = [try_once(connect, "10.96.9.9", patience=DROPPED) for connect in (d.connect, from_node)]
    seen["outside to the ClusterIP"] = try_once(stranger.connect)[1]

    # Changes
    await rules.set(service(), endpoint(a.ip))
    seen["one"] = answered_by(d.connect, 5)
    kept = d.connect(VIP)
    seen["kept before"] = ask(kept)
    await rules.set(service(), endpoint(b.ip))
    seen["kept after"] = ask(kept)

    # A connect that nobody answers
    await rules.set(service(), endpoint("10.244.0.200"))
    seen["one port"] = [try_once(from_one_port, patience=DROPPED)]
    await rules.set(service(), endpoint(b.ip))
    seen["one port"].append(try_once(from_one_port, patience=DROPPED))
    tracking = Connections()
    seen["led to"] = tracking.endpoint((NODE_IP, ONE_PORT), (VIP, 80))
    tracking.forget((NODE_IP, ONE_PORT), (VIP, 80))
    seen["one port"].append(try_once(from_one_port)[0])
    tracking.forget((NODE_IP, ONE_PORT), ("10.96.9.9", 80))  # none is as good as forgotten
    tracking.close()
    seen["new after"] = answered_by(d.connect, 5)
    await rules.set(service(), endpoint(b.ip, False, True, True))
    seen["terminating"] = answered_by(d.connect, 5)
    await rules.set(service(), endpoint(b.ip, False, True, True), endpoint(c.ip))
    seen["terminating beside a ready one"] = answered_by(d.connect, 5)
    await rules.set(service(), endpoint(b.ip, False, False, True))
    started = time.monotonic()
    seen["none"] = [try_once(d.connect), try_once(from_node)]
    seen["refused after"] = time.monotonic() - started
    seen["kept when refused"] = ask(kept)
    await rules.sink.apply(rules.state.everything())
    seen["kept over a new table"] = ask(kept)

    # Hairpin
    await rules.set(service(), endpoint(a.ip))
    seen["hairpin"] = try_once(a.connect)

    # NodePort and LoadBalancer
    ports = [{"name": "http", "protocol": "TCP", "port": 80, "nodePort": NODE_PORT}]
    balanced = {
        "type": "LoadBalancer",
        "ports": ports,
        "ingress": [{"ip": LB_IP, "ipMode": "VIP"}],
        "externalIPs": ["192.0.2.200"],
    }
    everywhere = (endpoint(a.ip), endpoint(b.ip, node="node-2"))
    await rules.set(service(**balanced), *everywhere)
    seen["NodePort"] = [
        try_once(connect, NODE_IP, NODE_PORT)[1] for connect in (stranger.connect, d.connect, from_node)
    ]
    seen["LoadBalancer"] = [try_once(connect, LB_IP)[1] for connect in (stranger.connect, d.connect, from_node)]
    seen["externalIP"] = try_once(d.connect, "192.0.2.200")[1]
    local = {**balanced, "externalTrafficPolicy": "Local"}
    await rules.set(service(**local), *everywhere)
    seen["Local from outside"] = answered_by(stranger.connect, 20, NODE_IP, NODE_PORT)
    seen["Local sees"] = try_once(stranger.connect, NODE_IP, NODE_PORT)[1]
    seen["Local from inside"] = sorted(answered_by(d.connect, 40, NODE_IP, NODE_PORT))
    await rules.set(service(**local), endpoint(b.ip, node="node-2"))
    seen["Local without endpoints"] = [
        try_once(stranger.connect, NODE_IP, NODE_PORT, DROPPED),
        try_once(d.connect, NODE_IP, NODE_PORT)[0],
    ]
    await rules.set(service(**balanced, loadBalancerSourceRanges=[f"{stranger.ip}/32", "10.244.0.0/16"]), *everywhere)
    seen["source ranges"] = [
        isinstance(try_once(stranger.connect, LB_IP), list),
        try_once(other_stranger.connect, LB_IP, patience=DROPPED),
        isinstance(try_once(d.connect, LB_IP), list),
        isinstance(try_once(other_stranger.connect, NODE_IP, NODE_PORT), list),
    ]
    await rules.set(service(internalTrafficPolicy="Local"), endpoint(b.ip, node="node-2"))
    seen["internal Local without endpoints"] = try_once(d.connect, patience=DROPPED)

    # sessionAffinity
    sticky = service(sessionAffinity="ClientIP")
    await rules.set(sticky, *(endpoint(pod.ip) for pod in (a, b, c)))
    first = answered_by(d.connect, 20)
    by_others = {ip for host in [*pods[:4], stranger] for ip in answered_by(host.connect, 5)}
    (mine,) = first
    stays = [pod for pod in (a, b, c) if pod.ip == mine]
    others = [pod for pod in (a, b, c) if pod.ip != mine]
    await rules.set(sticky, *(endpoint(pod.ip) for pod in (*stays, others[0])))
    seen["sticky"] = {"first": first, "others": sorted(by_others), "when others go": answered_by(d.connect, 20)}
    await rules.set(sticky, *(endpoint(pod.ip) for pod in others))
    seen["sticky"]["when it goes"] = answered_by(d.connect, 20)
    seen["sticky"]["mine"], seen["sticky"]["left"] = mine, [pod.ip for pod in others]

    # UDP
    dns = service(ports=[{"name": "http", "protocol": "UDP", "port": 53}])
    await rules.set(dns, endpoint(a.ip), protocol="UDP")
    client = d.udp()
    seen["UDP"] = [_datagram(client)]
    await rules.set(dns, endpoint(b.ip), protocol="UDP")
    seen["UDP"].append(_datagram(client))
    seen["UDP forgotten"] = await rules.sink.forget_udp_flows(frontends_to_clean(rules.rules))
    seen["UDP"].append(_datagram(client))
    seen["UDP kept"] = await rules.sink.forget_udp_flows(frontends_to_clean(rules.rules))

    # healthCheckNodePort
    health = HTTPHealthServers((NODE_IP,))
    for endpoints in (2, 0):
        await health.update({("default", "web"): ServiceHealth(31000, endpoints)})
        seen.setdefault("health", []).append(await asyncio.to_thread(_get, f"http://{NODE_IP}:31000/any/path"))
    await health.close()
    seen["health"].append(try_once(from_node, NODE_IP, 31000))

    kept.close()
    await rules.sink.close()
    await network.close()
    await outside_network.close()
    return seen


def _datagram(client: socket.socket) -> str:
    client.sendto(b"?", (VIP, 53))
    return client.recv(64).decode().split()[0]


def _get(url: str) -> list[Any]:
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            return [answer.status, json.loads(answer.read()), answer.headers["X-Load-Balancing-Endpoint-Weight"]]
    except urllib.error.HTTPError as error:
        return [error.code, json.loads(error.read()), error.headers["X-Load-Balancing-Endpoint-Weight"]]


if __name__ == "__main__":
    with open("/proc/self/status") as status:
        capabilities = next(line.split()[1] for line in status if line.startswith("CapEff"))
    enter_namespaces()
    print(json.dumps({**asyncio.run(scenario()), "capEff": capabilities}))
    sys.stdout.flush()
    os._exit(0)  # the servers' threads have nothing to wait for
