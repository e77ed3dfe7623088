"""Runs a Pod network in namespaces of its own and prints what it saw as JSON. Started by test_network_attach.py.

Usage: network_scenario.py <scenario>
"""

import asyncio
import json
import os
import socket
import statistics
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from waiting import until

from lastcall.kube.cri.api import RuntimeServiceError
from lastcall.kube.cri.sandbox.network import NOWHERE, PodNetwork
from lastcall.world import linux

NODE_IP, SERVICE_IP = "172.18.0.2", "10.96.0.1"


def enter_namespaces() -> None:
    uid, gid = os.getuid(), os.getgid()
    linux.unshare(linux.CLONE_NEWUSER | linux.CLONE_NEWNET | linux.CLONE_NEWNS)
    with open("/proc/self/setgroups", "w") as file:
        file.write("deny")
    with open("/proc/self/uid_map", "w") as file:
        file.write(f"0 {uid} 1")
    with open("/proc/self/gid_map", "w") as file:
        file.write(f"0 {gid} 1")


def in_netns(fd: int | None, function: Callable[[], Any]) -> Any:
    """Call `function` in a thread that is in the network namespace `fd`, or in a new one for None."""
    result: list[Any] = []

    def run() -> None:
        if fd is None:
            linux.unshare(linux.CLONE_NEWNET)
        else:
            linux.setns(fd, linux.CLONE_NEWNET)
        result.append(function())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return result[0]


def new_netns() -> int:
    return in_netns(None, lambda: os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC))


def listener(address: str, port: int) -> socket.socket:
    server = socket.socket()
    server.bind((address, port))
    server.listen(16)
    return server


def talk(client_netns: int | None, server: socket.socket, address: tuple[str, int]) -> dict[str, Any]:
    """Connect from a namespace (None: the node's) to a listener; who the server saw and how long it took."""
    started = time.monotonic()

    def connect() -> socket.socket:
        return socket.create_connection(address, timeout=60)

    client = connect() if client_netns is None else in_netns(client_netns, connect)
    server.settimeout(60)
    accepted, peer = server.accept()
    client.sendall(b"ping")
    accepted.sendall(accepted.recv(4))
    seconds = time.monotonic() - started
    echoed = client.recv(4).decode()
    client.close()
    accepted.close()
    return {"peer": peer[0], "echoed": echoed, "seconds": seconds}


def connect_to(address: tuple[str, int]) -> str:
    """How a connect of half a second ends."""
    try:
        socket.create_connection(address, timeout=0.5).close()
    except OSError as error:
        return type(error).__name__
    return "connected"


def interfaces() -> list[str]:
    """But for the link to which addresses without a Pod lead."""
    return sorted(name for _, name in socket.if_nameindex() if not name.startswith(NOWHERE))


def routes() -> list[str]:
    """Destinations of the IPv4 routes of the calling thread's namespace, but for those that lead nowhere."""
    with open("/proc/thread-self/net/route") as file:
        rows = [line.split() for line in file.readlines()[1:]]
    return [socket.inet_ntoa(bytes.fromhex(row[1])[::-1]) for row in rows if row[0] != NOWHERE]


def sandbox(number: int) -> str:
    return f"{number:08d}{0:056d}"


async def traffic(network: PodNetwork) -> dict[str, Any]:
    one, two = new_netns(), new_netns()
    before = os.readlink("/proc/self/ns/net")
    first = await network.attach("a" * 64, one, "uid-one")
    second = await network.attach("b" * 64, two, "uid-two")
    in_one = in_netns(one, lambda: listener("", 80))
    in_two = in_netns(two, lambda: listener("", 8080))
    service = listener(SERVICE_IP, 443)
    return {
        "ips": [first, second],
        "again": await network.attach("a" * 64, one, "uid-one"),
        "nodeToPod": talk(None, in_one, (first, 80)),
        "podToPod": talk(one, in_two, (second, 8080)),
        "podToSelf": talk(one, in_one, (first, 80)),
        "podToService": talk(two, service, (SERVICE_IP, 443)),
        "podInterfaces": in_netns(one, interfaces),
        "podRoutes": in_netns(one, routes),
        "sameNamespace": before == os.readlink("/proc/self/ns/net"),
    }


async def teardown(network: PodNetwork) -> dict[str, Any]:
    netns = new_netns()
    ip = await network.attach("a" * 64, netns, "uid-one")
    attached = routes()
    await network.detach("a" * 64, ip)
    detached = routes()
    await network.detach("a" * 64, ip)
    await network.detach("f" * 64, "10.244.0.200")
    await network.detach("f" * 64)
    os.close(netns)
    await until(lambda: len(interfaces()) <= 1, "the end of the Pod's interface", said=interfaces)
    other = new_netns()
    return {
        "gone": connect_to((ip, 80)),
        "ip": ip,
        "attached": attached,
        "detached": detached,
        "interfaces": interfaces(),
        "next": await network.attach("b" * 64, other, "uid-two"),
    }


async def refused(network: PodNetwork) -> dict[str, Any]:
    not_a_namespace = os.open("/dev/null", os.O_RDONLY)
    errors = []
    try:
        await network.attach("a" * 64, not_a_namespace, "uid-one")
    except RuntimeServiceError as error:
        errors.append(str(error))
    netns = new_netns()
    await network.attach("b" * 64, netns, "uid-two")
    # The name of the Pod's end is taken: created, then refused, so the node's end must go again.
    try:
        await network.attach("c" * 64, netns, "uid-three")
    except RuntimeServiceError as error:
        errors.append(str(error))
    return {
        "errors": errors,
        "interfaces": interfaces(),
        "used": len(network._pool),
    }


async def late(network: PodNetwork) -> dict[str, Any]:
    """Five addresses are all there are, so the sixth Pod gets the first one again."""
    ip = await network.attach("a" * 64, new_netns(), "uid")
    await network.detach("a" * 64, ip)
    for number in range(4):
        await network.attach(sandbox(number), new_netns(), "uid")
        await network.detach(sandbox(number), "")
    reused = await network.attach("b" * 64, new_netns(), "uid")
    await network.detach("a" * 64, ip)
    return {"ip": ip, "reused": reused, "routes": routes()}


async def recovery(network: PodNetwork) -> dict[str, Any]:
    netns = new_netns()
    call = asyncio.ensure_future(network.attach("a" * 64, netns, "uid"))
    await asyncio.sleep(0)  # handed to the worker, not answered yet
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    await network.detach("a" * 64, "")
    after_cancel = routes()
    await network.adopt("b" * 64, "10.244.0.9")
    following = await network.attach("c" * 64, new_netns(), "uid")
    await network.detach("b" * 64, "")
    return {"afterCancel": after_cancel, "adopted": "10.244.0.9", "next": following, "routes": routes()}


async def exhausted(network: PodNetwork) -> dict[str, Any]:
    spaces = [new_netns() for _ in range(6)]
    ips = []
    error = ""
    for number, netns in enumerate(spaces):
        try:
            ips.append(await network.attach(sandbox(number), netns, "uid"))
        except RuntimeServiceError as failure:
            error = str(failure)
    await network.detach(sandbox(1), ips[1])
    return {"ips": ips, "error": error, "reused": await network.attach("9" * 64, spaces[5], "uid")}


async def first_packets(network: PodNetwork) -> dict[str, Any]:
    """The very first datagram in each direction, while other namespaces come and go."""
    lost = {"toPod": 0, "toNode": 0}
    node = socket.socket(type=socket.SOCK_DGRAM)
    node.bind((NODE_IP, 9))
    for number in range(60):
        netns = new_netns()
        pod = in_netns(netns, lambda: socket.socket(type=socket.SOCK_DGRAM))
        pod.bind(("", 9))
        ip = await network.attach(sandbox(number), netns, "uid")
        node.sendto(b"to the Pod", (ip, 9))
        pod.sendto(b"to the node", (NODE_IP, 9))
        for direction, receiver in (("toPod", pod), ("toNode", node)):
            receiver.settimeout(10)  # what was dropped is never sent again
            try:
                receiver.recv(64)
            except TimeoutError:
                lost[direction] += 1
        pod.close()
        await network.detach(sandbox(number), ip)
        os.close(netns)
    node.close()
    return lost


async def speed(network: PodNetwork) -> dict[str, Any]:
    """Not a test: `network_scenario.py speed` prints medians in milliseconds."""
    attach, detach, first_packet = [], [], []
    for number in range(100):
        netns = new_netns()
        started = time.perf_counter()
        ip = await network.attach(sandbox(number), netns, "uid")
        attached = time.perf_counter()
        server = in_netns(netns, lambda: listener("", 80))
        begun = time.perf_counter()
        await asyncio.to_thread(talk, None, server, (ip, 80))
        first_packet.append(time.perf_counter() - begun)
        server.close()
        stop = time.perf_counter()
        await network.detach(sandbox(number), ip)
        detach.append(time.perf_counter() - stop)
        attach.append(attached - started)
        os.close(netns)

    def summary(values: list[float]) -> dict[str, float]:
        ordered = sorted(values)
        return {
            "median": round(statistics.median(ordered) * 1e3, 3),
            "p95": round(ordered[94] * 1e3, 3),
            "max": round(ordered[-1] * 1e3, 3),
        }

    return {"attach": summary(attach), "detach": summary(detach), "firstConnect": summary(first_packet)}


async def main(scenario: str) -> dict[str, Any]:
    cidr = "10.244.0.0/29" if scenario in ("exhausted", "late") else "10.244.0.0/24"
    network = PodNetwork(cidr)
    await network.prepare_node([NODE_IP, SERVICE_IP])
    await network.prepare_node([NODE_IP, SERVICE_IP])
    try:
        return await globals()[scenario](network)
    finally:
        await network.close()
        await network.close()


if __name__ == "__main__":
    with open("/proc/self/status") as status:
        capabilities = next(line.split()[1] for line in status if line.startswith("CapEff"))
    enter_namespaces()
    answer = asyncio.run(main(sys.argv[1]))
    print(json.dumps({**answer, "uid": os.getuid(), "capEff": capabilities}))
