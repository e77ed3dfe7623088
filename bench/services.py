"""`python -m bench.services`: the service proxy, in namespaces of its own.

An endpoint change at 10, 1 000 and 5 000 Services by each writer, from the objects of the API to the kernel's answer,
beside what a map of chains (verdicts) would cost; new connections per second through a ClusterIP and direct ones.
"""

import asyncio
import gc
import os
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from bench.figures import HEADER, machine, row
from lastcall.kube.cri.sandbox.network import PodNetwork
from lastcall.kube.nftables.objects import (
    AddChain,
    AddElements,
    AddRule,
    AddSet,
    Chain,
    DeleteElements,
    NftSet,
    Transaction,
)
from lastcall.kube.nftables.state import TableState
from lastcall.kube.nftables.statements import service_verdict, verdict
from lastcall.kube.proxy.libnftables_sink import LibnftablesSink
from lastcall.kube.proxy.netlink_sink import NetlinkSink
from lastcall.kube.proxy.sink import RuleSink
from lastcall.kube.proxy.table import fragment_of, service_chains, skeleton
from lastcall.kube.proxy.topology import Node
from lastcall.kube.proxy.view import View
from lastcall.world import linux
from lastcall.world.netlink import new_local_network

NODE_IP, SIZES, UPDATES, CONNECTIONS = "172.18.0.2", (10, 1000, 5000), 200, 4000


def service(number: int) -> dict[str, Any]:
    ip = f"10.96.{number // 250}.{number % 250 + 2}"
    ports = [{"name": "http", "protocol": "TCP", "port": 80}]
    return {
        "metadata": {"namespace": "default", "name": f"s{number}"},
        "spec": {"type": "ClusterIP", "clusterIP": ip, "clusterIPs": [ip], "ports": ports},
    }


def slice_of(number: int, addresses: list[str]) -> dict[str, Any]:
    name = f"s{number}"
    return {
        "metadata": {"namespace": "default", "name": name, "labels": {"kubernetes.io/service-name": name}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}} for address in addresses],
        "ports": [{"name": "http", "protocol": "TCP", "port": 8080}],
    }


class Proxy:
    """What the proxier does with news, without its clients."""

    def __init__(self, size: int, addresses: list[str]) -> None:
        self.view = View(Node("node-1", addresses=(NODE_IP,)))
        self.state = TableState(skeleton("10.244.0.0/16", "10.96.0.0/16"), service_chains)
        for number in range(size):
            self.view.put_service(("default", f"s{number}"), service(number))
            self.put(number, addresses)

    def put(self, number: int, addresses: list[str]) -> None:
        self.view.put_slice(("default", f"s{number}"), slice_of(number, addresses))

    def change(self) -> Transaction:
        return self.state.change({key: fragment_of(self.view.look(key).rules) for key in self.view.take_changed()})


async def updates(writer: Callable[[], RuleSink], name: str, times: int) -> None:
    three = ["10.244.0.2", "10.244.0.3", "10.244.0.4"]
    for size in SIZES:
        sink = writer()
        started = time.perf_counter()
        proxy = Proxy(size, three)
        proxy.change()
        await sink.apply(proxy.state.everything())
        whole = (time.perf_counter() - started) * 1e3
        gc.freeze()
        total, kernel = [], []
        for turn in range(times):
            # A rolling update: one endpoint goes, then another one comes.
            addresses = three[:2] if turn % 2 == 0 else three
            begun = time.perf_counter()
            proxy.put(turn % size, addresses)
            if turn % 2:
                proxy.put((turn - 1) % size, three)
            transaction = proxy.change()
            decided = time.perf_counter()
            await sink.apply(transaction)
            done = time.perf_counter()
            total.append((done - begun) * 1e3)
            kernel.append((done - decided) * 1e3)
        print(row(f"{name}: one endpoint changed, of {size} Services", total, "ms"))
        print(row(f"— of it writing and the kernel ({size})", kernel, "ms"))
        print(row(f"{name}: all {size} Services at the start", [whole], "ms"))
        await sink.close()


async def verdicts(times: int) -> None:
    """Measure the same change when a map leads to chains: one element is exchanged."""
    for size in SIZES:
        sink = NetlinkSink()
        table = NftSet("by-chain", "service verdicts")
        chains = [Chain(f"pick-{n}", ((verdict("return"),),)) for n in (2, 3)]
        base = TableState(skeleton("10.244.0.0/16", "10.96.0.0/16"), service_chains).everything().commands
        keys = [(f"10.96.{n // 250}.{n % 250 + 2}", "TCP", 80) for n in range(size)]
        await sink.apply(
            Transaction(
                (
                    *base,
                    AddSet(table),
                    *map(AddChain, chains),
                    *(AddRule(chain.name, rule) for chain in chains for rule in chain.rules),
                    AddRule("services", (service_verdict("by-chain"),)),
                    AddElements("by-chain", tuple((key, "goto pick-3") for key in keys)),
                ),
                replace=True,
            )
        )
        taken = []
        for turn in range(times):
            key = keys[turn // 2 % size]
            begun = time.perf_counter()
            to = "goto pick-2" if turn % 2 == 0 else "goto pick-3"
            await sink.apply(Transaction((DeleteElements("by-chain", (key,)), AddElements("by-chain", ((key, to),)))))
            taken.append((time.perf_counter() - begun) * 1e3)
        print(row(f"a map of chains instead, {size} Services (writing and the kernel)", taken, "ms"))
        await sink.close()


def in_new_netns(function: Callable[[], Any]) -> Any:
    found: list[Any] = []

    def run() -> None:
        linux.unshare(linux.CLONE_NEWNET)
        found.append(function())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return found[0]


def open_netns() -> int:
    return in_new_netns(lambda: os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC))


def connections(client: int, address: tuple[str, int], times: int) -> float:
    """Return the connections per second: each connected, accepted and reset before the next."""
    result: list[float] = []
    reset = struct.pack("ii", 1, 0)

    def run() -> None:
        linux.setns(client, linux.CLONE_NEWNET)
        started = time.perf_counter()
        for _ in range(times):
            with socket.socket() as one:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
                one.connect(address)
        result.append(times / (time.perf_counter() - started))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return result[0]


async def connects() -> None:
    network = PodNetwork("10.244.0.0/24")
    await network.prepare_node([NODE_IP])
    server, client = open_netns(), open_netns()
    ip = await network.attach("a" * 64, server, "server")
    await network.attach("b" * 64, client, "client")
    child = os.fork()
    if child == 0:
        linux.setns(server, linux.CLONE_NEWNET)
        listener = socket.create_server(("", 8080), backlog=4096)
        while True:
            listener.accept()[0].close()
    await asyncio.sleep(0.2)
    try:
        bare = [connections(client, (ip, 8080), CONNECTIONS) for _ in range(7)]
        print(row("new connections, Pod to Pod, without a table", bare, "/s"))
        for size in (10, 5000):
            sink = NetlinkSink([new_local_network("10.96.0.0/16", NODE_IP)])
            proxy = Proxy(size, [ip])
            proxy.change()
            await sink.apply(proxy.state.everything())
            rates: dict[str, list[float]] = {"direct": [], "by ClusterIP": []}
            for _ in range(7):  # in turns, so that other work on the machine meets both
                rates["direct"].append(connections(client, (ip, 8080), CONNECTIONS))
                rates["by ClusterIP"].append(connections(client, ("10.96.0.5", 80), CONNECTIONS))
            for name, values in rates.items():
                print(row(f"new connections, Pod to Pod {name}, {size} Services", values, "/s"))
            await sink.close()
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)  # noqa: ASYNC222 (it is dead)
        await network.close()


async def main() -> None:
    print(f"{machine()}, load {os.getloadavg()[0]:.1f}\n\n{HEADER}")
    await updates(NetlinkSink, "netlink", UPDATES)
    await verdicts(UPDATES)
    try:
        await updates(LibnftablesSink, "libnftables", UPDATES)
    except OSError as error:
        print(f"libnftables: {error}", file=sys.stderr)
    await connects()


if __name__ == "__main__":
    uid, gid = os.getuid(), os.getgid()
    linux.unshare(linux.CLONE_NEWUSER | linux.CLONE_NEWNET | linux.CLONE_NEWNS)
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    asyncio.run(main())
