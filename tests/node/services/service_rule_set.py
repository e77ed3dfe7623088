"""Writes one rule set with each writer in namespaces of its own; prints what `nft list` says as JSON.

Started by test_service_rule_set.py. Also says the whole set as text, for the golden files.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # network_scenario
sys.path.insert(0, str(Path(__file__).parents[2] / "support"))

from network_scenario import enter_namespaces
from services import endpoint, endpoint_slice, service

from lastcall.kube.nftables.objects import NftSet, Transaction
from lastcall.kube.nftables.state import Fragment, TableState
from lastcall.kube.nftables.text import text_of_transaction
from lastcall.kube.proxy.endpoints import endpoints_of
from lastcall.kube.proxy.libnftables_sink import LibnftablesSink
from lastcall.kube.proxy.names import TABLE
from lastcall.kube.proxy.netlink_sink import NetlinkSink
from lastcall.kube.proxy.rules import rules_of
from lastcall.kube.proxy.services import parse_service
from lastcall.kube.proxy.sink import RuleSink
from lastcall.kube.proxy.table import fragment_of, service_chains, skeleton
from lastcall.kube.proxy.topology import Node

NODE = Node("node-1", addresses=("172.18.0.2",))


def fragment(obj: dict[str, Any], *endpoints: dict[str, Any]) -> Fragment:
    parsed = parse_service(obj)
    assert parsed is not None
    protocol = obj["spec"]["ports"][0]["protocol"]
    slices = [endpoint_slice(*endpoints, ports=[{"name": "http", "protocol": protocol, "port": 8080}])]
    return fragment_of(rules_of(parsed, endpoints_of(slices, NODE.name), NODE))


def pods(count: int, node: str = "node-1") -> list[dict[str, Any]]:
    return [endpoint(f"10.244.0.{number + 2}", node=node) for number in range(count)]


def whole() -> dict[str, Fragment]:
    """One Service for every kind of rule there is."""
    node_port = [{"name": "http", "protocol": "TCP", "port": 80, "nodePort": 30080}]
    local_port = [{"name": "http", "protocol": "TCP", "port": 80, "nodePort": 30081}]
    balanced = {"type": "LoadBalancer", "loadBalancerSourceRanges": ["10.0.0.0/9", "192.0.2.1/32", "10.1.0.0/16"]}
    return {
        "plain": fragment(service("plain", "10.96.0.10"), *pods(3)),
        "large": fragment(service("large", "10.96.0.11", type="NodePort", ports=node_port), *pods(12)),
        "empty": fragment(service("empty", "10.96.0.12")),
        "sticky": fragment(service("sticky", "10.96.0.13", sessionAffinity="ClientIP"), *pods(2)),
        "balanced": fragment(service("balanced", "10.96.0.14", ingress=[{"ip": "172.18.255.1"}], **balanced), *pods(1)),
        "local": fragment(
            service("local", "10.96.0.15", type="NodePort", ports=local_port, externalTrafficPolicy="Local"),
            *pods(2),
            endpoint("10.244.1.2", node="node-2"),
        ),
        "elsewhere": fragment(
            service("elsewhere", "10.96.0.16", externalIPs=["192.0.2.7"], externalTrafficPolicy="Local"),
            *pods(2, "node-2"),
        ),
        "nowhere": fragment(service("nowhere", "10.96.0.17", internalTrafficPolicy="Local"), *pods(2, "node-2")),
        "udp": fragment(
            service("udp", "10.96.0.18", ports=[{"name": "http", "protocol": "UDP", "port": 53}]), *pods(2)
        ),
        "sctp": fragment(
            service("sctp", "10.96.0.19", ports=[{"name": "http", "protocol": "SCTP", "port": 9}]), *pods(1)
        ),
    }


def changed() -> dict[str, Fragment]:
    return {
        "plain": fragment(service("plain", "10.96.0.10"), *pods(9)),
        "large": {},
        "empty": fragment(service("empty", "10.96.0.12"), *pods(1)),
        "sticky": fragment(service("sticky", "10.96.0.13", sessionAffinity="ClientIP"), *pods(3)[1:]),
        "balanced": {},
        "local": {},
    }


def ranges() -> list[Transaction]:
    """A set of ranges, and a change of it: with the first address, with the last one, and one of a single address."""
    name, elements = (
        "ranges",
        ["0.0.0.0-0.0.0.0", "10.0.0.0-10.0.0.255", "10.0.1.7-10.0.2.1", "224.0.0.0-255.255.255.255"],
    )
    state = TableState({NftSet(name, "address ranges"): None})
    state.change({"a": {(name, (each,)): None for each in elements}})
    return [state.everything(), state.change({"a": {(name, (each,)): None for each in elements[1:3]}})]


async def main() -> dict[str, Any]:
    listing = LibnftablesSink()
    seen: dict[str, Any] = {"missing": await NetlinkSink().exists()}
    sinks: dict[str, RuleSink] = {"netlink": NetlinkSink(), "libnftables": listing}
    for name, sink in sinks.items():
        state = TableState(skeleton("10.244.0.0/16", "10.96.0.0/16"), service_chains)
        state.change(whole())
        transaction = state.everything()
        seen["text"] = text_of_transaction(transaction, TABLE)
        await sink.apply(transaction)
        step = state.change(changed())
        seen["step text"] = text_of_transaction(step, TABLE)
        listed = [listing.run("list ruleset")]
        await sink.apply(step)
        seen[name] = [*listed, listing.run("list ruleset")]
        seen[f"{name} exists"] = await sink.exists()
        errors = []
        for again in (step, state.everything()):
            try:
                await sink.apply(again)
            except Exception as error:
                errors.append(f"{type(error).__name__}: {error}")
        seen[f"{name} errors"] = errors
        seen[f"{name} replaced"] = listing.run("list ruleset")
        seen[f"{name} ranges"] = []
        for change in ranges():
            await sink.apply(change)
            seen[f"{name} ranges"].append(listing.run(f"list table ip {TABLE}"))
    return seen


if __name__ == "__main__":
    enter_namespaces()
    print(json.dumps(asyncio.run(main())))
