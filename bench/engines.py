"""`python -m bench.engines [--rounds 5] [--writes 400]`: the store on each engine; API servers on one etcd, in turns.

The store by itself: durable creates of Pods by 16 writers, and how many changes a second one watcher reads, on memory
(nothing is durable there), SQLite and etcd. Then over HTTPS: creates of ConfigMaps by 16 clients and the events of one
watch, on lastcall's API server and on a real kube-apiserver of `$KUBERNETES_HOME`, both on the same etcd at once. Each
round asks all of them, so that what else runs on the machine disturbs them alike. etcd makes its writes durable.
"""

import argparse
import asyncio
import http.client
import json
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "support"))

import uvloop
from engines.etcd import Etcd, missing_etcd
from engines.servers import Keys, Server, etcd_arguments, missing_kubernetes, ours, real

from bench.api_server import pod, status
from bench.figures import machine
from lastcall.kube.store.api import Encode, Store
from lastcall.kube.store.etcd.open import open_etcd
from lastcall.kube.store.etcd.options import etcd_options
from lastcall.kube.store.memory import MemoryStore
from lastcall.kube.store.open import open_store
from lastcall.kube.store.value import Value
from lastcall.world.world import World

WRITERS = 16


def encoder(name: str) -> Encode:
    def encode(revision: int) -> Value:
        body = {"kind": "Pod", "apiVersion": "v1", **pod(name), "status": status("2026-01-01T00:00:00Z")}
        body["metadata"] = {**body["metadata"], "namespace": "default", "resourceVersion": str(revision)}
        value = Value(None, body)
        value.encoded()
        return value

    return encode


async def rounds_of(store: Store, number: int, writes: int) -> tuple[float, float]:
    """Return (creates a second, changes a second).

    The changes are those that a watcher decodes and reads, which begins when all are written.
    """
    start = await store.revision()
    each = writes // WRITERS

    async def write(writer: int) -> None:
        for turn in range(each):
            name = f"r{number}-{writer}-{turn}"
            await store.create(f"pods/default/{name}", encoder(name))

    began = time.perf_counter()
    await asyncio.gather(*map(write, range(WRITERS)))
    creates = each * WRITERS / (time.perf_counter() - began)
    began = time.perf_counter()
    async with store.watch("pods/", start) as changes:
        for _ in range(each * WRITERS):
            (await anext(changes)).value.encoded()
    return creates, each * WRITERS / (time.perf_counter() - began)


async def stores(directory: Path, etcd: Etcd, rounds: int, writes: int) -> dict[str, list[tuple[float, float]]]:
    opened: dict[str, Store] = {
        "memory": MemoryStore(),
        "SQLite": await open_store(directory / "store.sqlite", world=World()),
        "etcd": await open_etcd(etcd_options(etcd.servers, prefix="/bench"), world=World()),
    }
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in opened}
    try:
        for number in range(rounds):
            for name, store in opened.items():
                found[name].append(await rounds_of(store, number, writes))
    finally:
        for store in opened.values():
            await store.close()
    return found


def requests_of(server: Server, label: str, writes: int) -> tuple[float, float]:
    """Return (creates a second, from the first create until one watch had shown all)."""
    path = "/api/v1/namespaces/default/configmaps"
    each = writes // WRITERS
    revision = server.got(path + "?limit=1")["metadata"]["resourceVersion"]
    ready, seen = threading.Event(), [0.0]

    def watch() -> None:
        with server.watch(f"{path}?watch=1&timeoutSeconds=300&resourceVersion={revision}") as events:
            ready.set()
            count = 0
            for event in events:
                count += event["type"] == "ADDED" and event["object"]["metadata"]["name"].startswith(label)
                if count == each * WRITERS:
                    seen[0] = time.perf_counter()
                    return

    def write(writer: int) -> None:
        connection = http.client.HTTPSConnection("127.0.0.1", server.port, context=server.keys.trust)
        for turn in range(each):
            body: Any = {"metadata": {"name": f"{label}-{writer}-{turn}"}, "data": {"text": "x" * 1000}}
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 201, answer.status
        connection.close()

    watcher = threading.Thread(target=watch)
    watcher.start()
    ready.wait(60)
    writers = [threading.Thread(target=write, args=(number,)) for number in range(WRITERS)]
    began = time.perf_counter()
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    creates = each * WRITERS / (time.perf_counter() - began)
    watcher.join(300)
    return creates, each * WRITERS / (seen[0] - began)


def show(title: str, found: dict[str, list[tuple[float, float]]]) -> None:
    base = list(found)[-1]
    print(f"\n| {title} | creates/s, median (least to most) | watched/s | creates beside {base} |")
    print("|---|---|---|---|")
    for name, pairs in found.items():
        creates, watched = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        ratio = statistics.median(a[0] / b[0] for a, b in zip(pairs, found[base], strict=True))
        print(
            f"| {name} | {statistics.median(creates):.0f} ({min(creates):.0f} to {max(creates):.0f}) | "
            f"{statistics.median(watched):.0f} | {ratio:.2f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--writes", type=int, default=400)
    arguments = parser.parse_args()
    if why := missing_etcd():
        sys.exit(why)
    print(machine())
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        with Etcd(directory / "etcd") as etcd:
            show("the store", uvloop.run(stores(directory, etcd, arguments.rounds, arguments.writes)))
            if why := missing_kubernetes():
                print(f"\nThe API servers were not measured: {why}")
                return
            keys = Keys(directory / "keys")
            servers = {
                "lastcall": ours(directory, keys, etcd_arguments(etcd.servers)),
                "kube-apiserver": real(directory, keys, etcd_arguments(etcd.servers)),
            }
            found: dict[str, list[tuple[float, float]]] = {each: [] for each in servers}
            try:
                for server in servers.values():
                    server.start()
                for number in range(arguments.rounds):
                    for name, server in servers.items():
                        label = f"{name}{number}x"
                        found[name].append(requests_of(server, label, arguments.writes))
            finally:
                for server in servers.values():
                    server.stop()
            show("the API, on one etcd", found)


if __name__ == "__main__":
    main()
