"""NetworkPolicies between Pods in namespaces of their own; prints what was seen as JSON. Started by
test_network_policies_on_the_kernel.py."""

import asyncio
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # network_scenario

from host_port_scenario import OTHER_NODE, ask, ask_udp, other_node, serve
from network_scenario import NODE_IP, SERVICE_IP, enter_namespaces, in_netns, new_netns

from lastcall.kube.cri.sandbox.network import PodNetwork
from lastcall.kube.nftables.names import POLICIES
from lastcall.kube.proxy.netlink_sink import NetlinkSink
from lastcall.kube.proxy.policies.decide import PodRules
from lastcall.kube.proxy.policies.pod_table import Surroundings, pod_table
from lastcall.kube.proxy.policies.policy import PolicyPod, parse_policy
from lastcall.kube.proxy.policies.table import Alias
from lastcall.kube.proxy.policies.writer import PolicyWriter
from lastcall.world.clock import RealClock

API = Alias((SERVICE_IP, 443), ("172.18.0.1", 6443))
NAMESPACES = {"default": {}, "other": {"team": "b"}}


def policy(**spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p", "namespace": "default"}, "spec": spec}


class Enforced:
    def __init__(self, pods: list[PolicyPod]) -> None:
        self.pods = pods
        self.sink = NetlinkSink(table=POLICIES)
        self.writer = PolicyWriter(self.sink, RealClock(), ["10.96.0.10", SERVICE_IP])

    async def go_by(self, *policies: dict[str, Any]) -> None:
        parsed = [parse_policy(each) for each in policies]
        around = Surroundings(parsed, self.pods, NAMESPACES, API)
        tables = {each.key: pod_table(each, around) for each in self.pods}
        errors = [table.error for table in tables.values() if table.error is not None]
        await self.writer.write({key: table for key, table in tables.items() if table.rules != PodRules()})
        assert not errors and not self.writer.refused, (errors, self.writer.refused)


async def main() -> dict[str, Any]:
    network = PodNetwork("10.244.0.0/24")
    await network.prepare_node([NODE_IP, SERVICE_IP])
    spaces = {name: new_netns() for name in ("server", "good", "bad")}
    pods = []
    for number, (name, netns) in enumerate(spaces.items()):
        address = await network.attach(f"{number}" * 64, netns, name)
        namespace = "other" if name == "good" else "default"
        pods.append(PolicyPod(namespace, name, address, {"app": name}, (("web", "TCP", 80),)))
        for port in (80, 81):
            serve(netns, name, port)
        serve(netns, name, 53, udp=True)
    serve(None, "api", 443, address=SERVICE_IP)
    outside = other_node()
    serve(outside, "outside", 80)
    server, bad = pods[0].address, pods[2].address
    enforced = Enforced(pods)
    good_peer = {"namespaceSelector": {"matchLabels": {"team": "b"}}, "podSelector": {"matchLabels": {"app": "good"}}}
    selected = {"podSelector": {"matchLabels": {"app": "server"}}}

    def to_server(name: str, port: int = 80) -> str:
        return in_netns(spaces[name], lambda: ask((server, port))).split(" ")[0]

    def from_server(address: str, port: int = 80) -> str:
        return in_netns(spaces["server"], lambda: ask((address, port))).split(" ")[0]

    seen: dict[str, Any] = {"free": [to_server("bad"), from_server(bad)]}
    await enforced.go_by()  # the kernel knows connections from here on, as with the first Service
    standing = in_netns(spaces["bad"], lambda: socket.create_connection((server, 80), timeout=5))
    await enforced.go_by(policy(**selected, ingress=[{"from": [good_peer], "ports": [{"port": "web"}]}]))
    standing.sendall(b"still here\n")
    seen["ingress"] = {
        "good": to_server("good"),
        "goodOtherPort": to_server("good", 81),
        "bad": to_server("bad"),
        "udp": in_netns(spaces["good"], lambda: ask_udp((server, 53))),
        "node": ask((server, 81)).split(" ")[0],
        "itself": to_server("server", 81),
        "outside": in_netns(outside, lambda: ask((server, 80))),
        "sends": from_server(bad),
        "standing": standing.recv(64).decode().split(" ")[0],
    }
    block = {"ipBlock": {"cidr": "172.18.0.0/24", "except": [f"{OTHER_NODE}/32"]}}
    await enforced.go_by(policy(**selected, policyTypes=["Egress"], egress=[{"to": [block]}]))
    seen["egress"] = {
        "excepted": from_server(OTHER_NODE),
        "pod": from_server(bad),
        "api": from_server(SERVICE_IP, 443),
        "ownNode": from_server(NODE_IP),
        "receives": to_server("bad"),
    }
    ports = [{"ports": [{"port": 80, "endPort": 81}]}]
    await enforced.go_by(policy(podSelector={}, policyTypes=["Ingress", "Egress"], egress=ports))
    seen["range"] = {"outside": from_server(OTHER_NODE), "api": from_server(SERVICE_IP, 443), "pod": from_server(bad)}
    many = [f"10.{number // 256}.{number % 256}.0/25" for number in range(5000)]
    for excepted in ([], [f"{bad}/32"]):
        block = {"cidr": "0.0.0.0/0", "except": [*many, *excepted, "255.255.255.255/32"]}
        await enforced.go_by(policy(**selected, ingress=[{"from": [{"ipBlock": block}]}]))
        seen[f"{len(excepted)} excepted"] = [to_server("bad"), to_server("good")]
    await enforced.go_by(policy(**selected, ingress=[{"from": [{"ipBlock": {**block, "except": many[2440:]}}]}]))
    seen["fewer excepts"] = to_server("bad")
    await enforced.go_by()
    seen["none"] = to_server("bad")
    await enforced.sink.remove()
    seen["stands"] = await enforced.sink.exists()
    await enforced.sink.close()
    await network.close()
    return seen


if __name__ == "__main__":
    enter_namespaces()
    print(json.dumps({**asyncio.run(main()), "uid": os.getuid()}), flush=True)
    os._exit(0)  # threads of servers wait for clients
