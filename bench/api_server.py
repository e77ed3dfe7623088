"""An API server for measurements, in a process of its own: TLS, token authentication, on loopback.

    python -m bench.api_server memory|sqlite|plain DIRECTORY

`plain` is no API server: aiohttp answers every request with bytes that are ready, and does not look at it.

The first line of its output is JSON: `port`, `token`, `ca` (PEM). Then it obeys lines of its input and answers each
with one line of JSON: `pods N` (create N more Pods, with the status of running ones), `lag` (milliseconds by which a
timer of 5 ms came late, since the last `lag`), `revision` (of the store), `memory` (RSS and PSS in bytes),
`profile PATH` and then `profile` (start cProfile; stop and write), `quit`. `plain` only obeys `quit`.
"""

import asyncio
import json
import socket
import sys
import time
from typing import Any

import uvloop
from aiohttp import web

from lastcall.kube.api.resources import PODS, SERVICEACCOUNTS
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.auth.pki import ClusterCA
from lastcall.kube.apiserver.auth.tls import server_context
from lastcall.kube.apiserver.server import APIServer, APIServerConfig
from lastcall.kube.client.api import Client
from lastcall.kube.store.api import Store
from lastcall.kube.store.memory import MemoryStore
from lastcall.kube.store.open import open_store
from lastcall.records.ring import Ring, RingRecorder
from lastcall.world.world import World

TOKEN = "bench"
LAG_STEP = 0.005


def pod(name: str) -> dict[str, Any]:
    """Return a Pod as people write them: two containers, probes, resources, environment."""
    probe = {"httpGet": {"path": "/healthz", "port": 8080}, "periodSeconds": 10}
    container = {
        "image": "registry.example/app/web:1.2.3",
        "env": [{"name": f"VARIABLE_{n}", "value": f"value of {n}"} for n in range(4)],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "livenessProbe": probe,
        "readinessProbe": probe,
        "lifecycle": {"preStop": {"exec": {"command": ["sh", "-c", "sleep 5"]}}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "web", "tier": "front"}, "annotations": {"note": "measured"}},
        "spec": {"containers": [{**container, "name": "web"}, {**container, "name": "log"}]},
    }


def status(now: str) -> dict[str, Any]:
    """Return what a kubelet writes of a running Pod."""
    conditions = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    return {
        "phase": "Running",
        "podIP": "10.244.0.7",
        "podIPs": [{"ip": "10.244.0.7"}],
        "hostIP": "172.18.0.2",
        "startTime": now,
        "conditions": [{"type": name, "status": "True", "lastTransitionTime": now} for name in conditions],
        "containerStatuses": [
            {
                "name": name,
                "ready": True,
                "started": True,
                "restartCount": 0,
                "image": "registry.example/app/web:1.2.3",
                "imageID": "registry.example/app/web@sha256:" + "0" * 64,
                "containerID": "containerd://" + "1" * 64,
                "state": {"running": {"startedAt": now}},
            }
            for name in ("web", "log")
        ],
    }


async def create_pods(client: Client, count: int) -> None:
    there = len((await client.list(PODS)).items)
    for index in range(there, there + count):
        created = await client.create(PODS, pod(f"pod-{index:05}"), "default")
        body = {"status": status(created["metadata"]["creationTimestamp"])}
        await client.patch(PODS, created["metadata"]["name"], body, "default", subresource="status")
        if index % 50 == 0:
            await asyncio.sleep(0)


async def watch_lag(late: list[float]) -> None:
    while True:
        due = time.perf_counter() + LAG_STEP
        await asyncio.sleep(LAG_STEP)
        late.append(max(0.0, time.perf_counter() - due) * 1e3)


def memory() -> dict[str, int]:
    with open("/proc/self/smaps_rollup") as file:
        sizes = {line.split(":")[0]: int(line.split()[1]) << 10 for line in file if line.endswith("kB\n")}
    return {"rss": sizes["Rss"], "pss": sizes["Pss"]}


async def obey(client: Client, store: Store, late: list[float]) -> None:
    loop = asyncio.get_running_loop()
    profiler: Any = None
    profile_path = ""
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        verb, *words = line.split()
        answer: Any = {}
        if verb == "quit":
            return
        if verb == "pods":
            await create_pods(client, int(words[0]))
        elif verb == "lag":
            answer = late[:]
            late.clear()
        elif verb == "revision":
            answer = await store.revision()
        elif verb == "memory":
            answer = memory()
        elif verb == "profile" and profiler is None:
            import cProfile

            profile_path = words[0]
            profiler = cProfile.Profile()
            profiler.enable()
        elif verb == "profile":
            profiler.disable()
            profiler.dump_stats(profile_path)
            profiler = None
        with open(1, "w", closefd=False) as output:  # noqa: ASYNC230 (buffered, also under PYTHONUNBUFFERED)
            output.write(json.dumps(answer) + "\n")


async def serve_plain(ca: ClusterCA) -> None:
    """Answer everything with the same bytes until `quit`: what a server in Python costs that does nothing."""
    body = json.dumps(pod("pod")).encode()

    async def answer(request: web.BaseRequest) -> web.Response:
        return web.Response(body=body, content_type="application/json")

    certificate, key = ca.issue_server(["127.0.0.1", "localhost"])
    context = server_context(certificate, key, client_ca=ca.certificate_pem)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(web.Server(answer), "127.0.0.1", 0, ssl=context, backlog=2048)
    port = server.sockets[0].getsockname()[1]
    print(json.dumps({"port": port, "token": TOKEN, "ca": ca.certificate_pem.decode()}), flush=True)
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        if line.strip() == "quit":
            return


async def main(kind: str, directory: str) -> None:
    if kind == "plain":
        await serve_plain(ClusterCA.create())
        return
    world = World()
    store: Store = MemoryStore() if kind == "memory" else await open_store(f"{directory}/store.sqlite", world=world)
    admin = UserInfo("kubernetes-admin", ("system:masters",))
    ca = ClusterCA.create()
    server = APIServer(
        world=world,
        store=store,
        recorder=RingRecorder(Ring.create("bench"), "apiserver", world.clock),
        config=APIServerConfig(tokens={TOKEN: admin}, root_ca_pem=ca.certificate_pem),
    )
    await server.bootstrap()
    client = server.client(admin)
    await client.create(SERVICEACCOUNTS, {"metadata": {"name": "default"}}, "default")
    sock = socket.create_server(("127.0.0.1", 0), backlog=2048)
    certificate, key = ca.issue_server(["127.0.0.1", "localhost"])
    context = server_context(certificate, key, client_ca=ca.certificate_pem)
    port = sock.getsockname()[1]
    late: list[float] = []
    async with asyncio.TaskGroup() as tasks:
        running = [
            tasks.create_task(server.serve([sock], context)),
            tasks.create_task(watch_lag(late)),
        ]
        print(json.dumps({"port": port, "token": TOKEN, "ca": ca.certificate_pem.decode()}), flush=True)
        await obey(client, store, late)
        for task in running:
            task.cancel()
    await store.close()


if __name__ == "__main__":
    uvloop.run(main(*sys.argv[1:]))
