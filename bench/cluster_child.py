"""Runs in a process of its own: starts a cluster, takes the asked figures, prints them as JSON.

Arguments: the figure (`start` or `pods`), for `pods` how many; or `serve`. SPAWNED_NS in the environment is the
monotonic time at which the parent started this process, so that interpreter start and imports count.
"""

import asyncio
import contextlib
import json
import os
import sys
import time
from typing import Any

from lastcall.kube.api.resources import PODS
from lastcall.kube.cluster import embedded
from lastcall.kube.cluster.embedded import Running
from lastcall.kube.cluster.options import ClusterOptions
from lastcall.world.start_code import AFTER_SECONDS

AT_REST_SECONDS = AFTER_SECONDS + 1
"""After a start: the processes have given back by then what only the start needed."""
SETTLE_SECONDS = 0.02
"""Between Running and DELETE: the shell sets its trap."""

QUICK = "trap 'exit 0' TERM; while :; do sleep 600 & wait $!; done"


def pod(name: str) -> dict[str, Any]:
    """Return a Pod whose app exits 0 on SIGTERM at once; network and token volume included."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [{"name": "app", "image": "busybox:1.36", "command": ["sh", "-c", QUICK]}]},
    }


async def until_running(cluster: Running, name: str) -> int:
    """Return the monotonic time at which a client saw phase Running."""
    async with cluster.client.watch(PODS, "default", field_selector=f"metadata.name={name}") as events:
        async for event in events:
            if event.object["status"].get("phase") == "Running":
                return time.monotonic_ns()
    raise RuntimeError("the watch ended")


async def until_gone(cluster: Running, name: str, version: str, watching: asyncio.Event) -> int:
    """Return the monotonic time at which a client saw DELETED; `watching` is set when its watch is open."""
    async with cluster.client.watch(
        PODS, "default", field_selector=f"metadata.name={name}", resource_version=version
    ) as events:
        watching.set()
        async for event in events:
            if event.type == "DELETED":
                return time.monotonic_ns()
    raise RuntimeError("the watch ended")


def tree_memory(cluster: Running) -> dict[str, float]:
    """Return the PSS in MB of every process of lastcall itself (front included, containers not)."""
    sizes = {}
    for role, pid in {"front": os.getpid(), **cluster.host_pids()}.items():
        with open(f"/proc/{pid}/smaps_rollup") as file:
            sizes[role] = next(int(line.split()[1]) for line in file if line.startswith("Pss:")) / 1024
    return sizes


def tree_cpu(cluster: Running) -> dict[str, float]:
    """Return the milliseconds of CPU that the processes of lastcall itself used (front included, containers not)."""
    used = {}
    for role, pid in {"front": os.getpid(), **cluster.host_pids()}.items():
        nanoseconds = 0
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/schedstat") as file:
                nanoseconds += int(file.read().split()[0])
        used[role] = nanoseconds / 1e6
    return used


async def start(cluster: Running, spawned: int) -> dict[str, Any]:
    await cluster.connect()
    await cluster.wait_node_ready()
    ready = time.monotonic_ns()
    await create(cluster, "first")
    running = await until_running(cluster, "first")
    await asyncio.sleep(AT_REST_SECONDS)
    result = {
        "nodeReady": (ready - spawned) / 1e6,
        "firstPodRunning": (running - spawned) / 1e6,
        "memory": tree_memory(cluster),
        "cpu": tree_cpu(cluster),
    }
    await cluster.client.close()
    return result


async def create(cluster: Running, name: str) -> None:
    """Create, waiting for the default ServiceAccount as clients of a new cluster do."""
    from lastcall.kube.api.errors import StatusError

    for _ in range(100):
        try:
            await cluster.client.create(PODS, pod(name), "default")
            return
        except StatusError as error:
            if error.code != 403:
                raise
            await asyncio.sleep(0.01)


async def life(cluster: Running, name: str) -> tuple[float, float]:
    """Return (create → Running, DELETE → gone) of one Pod, in ms."""
    begin = time.monotonic_ns()
    await cluster.client.create(PODS, pod(name), "default")
    created = (await until_running(cluster, name) - begin) / 1e6
    await asyncio.sleep(SETTLE_SECONDS)
    current = await cluster.client.get(PODS, name, "default")
    version = current["metadata"]["resourceVersion"]
    watching = asyncio.Event()
    gone = asyncio.ensure_future(until_gone(cluster, name, version, watching))
    # The client has its watch and a second connection open when it deletes: neither is what is measured.
    await watching.wait()
    await cluster.client.get(PODS, name, "default")
    begin = time.monotonic_ns()
    await cluster.client.delete(PODS, name, "default")
    return created, (await gone - begin) / 1e6


async def burst(cluster: Running, names: list[str]) -> tuple[float, float]:
    """Return the same of Pods that are created at once and deleted at once: until the last."""
    begin = time.monotonic_ns()
    await asyncio.gather(*(cluster.client.create(PODS, pod(name), "default") for name in names))
    running = await asyncio.gather(*(until_running(cluster, name) for name in names))
    created = (max(running) - begin) / 1e6
    await asyncio.sleep(SETTLE_SECONDS)
    opened = [asyncio.Event() for _ in names]
    version = (await cluster.client.list(PODS, "default")).resource_version
    gone = [
        asyncio.ensure_future(until_gone(cluster, name, version, each))
        for name, each in zip(names, opened, strict=True)
    ]
    for each in opened:
        await each.wait()
    begin = time.monotonic_ns()
    await asyncio.gather(*(cluster.client.delete(PODS, name, "default") for name in names))
    return created, (max(await asyncio.gather(*gone)) - begin) / 1e6


async def warm(cluster: Running) -> None:
    await cluster.connect()
    await cluster.wait_node_ready()
    await create(cluster, "warm")
    await until_running(cluster, "warm")


async def pods(cluster: Running, count: int) -> dict[str, Any]:
    await warm(cluster)
    lives = [await life(cluster, f"p{number}") for number in range(count)]
    created, deleted = zip(*lives, strict=True)
    result = {"createToRunning": created, "deleteToGone": deleted, "memory": tree_memory(cluster)}
    await cluster.client.close()
    return result


async def serve(cluster: Running) -> None:
    """Answer `pod` or `burst N` on a line of standard input with JSON of its times on a line, until the input ends."""
    await warm(cluster)
    print(json.dumps({}), flush=True)
    number = 0
    while line := await asyncio.to_thread(sys.stdin.readline):
        verb, *rest = line.split()
        number += 1
        before = tree_cpu(cluster)
        if verb == "burst":
            names = [f"b{number}-{each}" for each in range(int(rest[0]))]
            of, (created, deleted) = f"{rest[0]} at once: ", await burst(cluster, names)
        else:
            of, (created, deleted) = "", await life(cluster, f"p{number}")
        await asyncio.sleep(SETTLE_SECONDS)  # what comes after the end counts, too
        cpu = {role: used - before[role] for role, used in tree_cpu(cluster).items()}
        times = {
            f"{of}create → Running, ms": created,
            f"{of}DELETE → gone, ms": deleted,
            f"{of}CPU, ms": sum(cpu.values()),
            **{f"{of}CPU of {role}, ms": used for role, used in cpu.items()},
        }
        print(json.dumps(times), flush=True)
    await cluster.client.close()


def main() -> None:
    spawned = int(os.environ.get("SPAWNED_NS", time.monotonic_ns()))
    cluster = embedded.start(ClusterOptions())
    try:
        if sys.argv[1] == "start":
            result = asyncio.run(start(cluster, spawned))
        elif sys.argv[1] == "serve":
            asyncio.run(serve(cluster))
            return
        else:
            result = asyncio.run(pods(cluster, int(sys.argv[2])))
    finally:
        cluster.stop()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
