"""One virtual cluster in a fresh interpreter; prints its figures as JSON. See bench/virtual_cluster.py."""

import argparse
import asyncio
import gc
import json
import os
import resource
import sys
import time
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.virtual_cluster_nodes import ALLOCATABLE, StagesNode, VirtualNode
from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.features.gates import FeatureGates
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import CONFIGMAPS, DEPLOYMENTS, NODES, PODS, REPLICASETS, SERVICEACCOUNTS
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.server import APIServer, APIServerConfig
from lastcall.kube.apiserver.wire.options import ListOptions
from lastcall.kube.client.api import Client
from lastcall.kube.controllers.manager import run_controllers
from lastcall.kube.scheduler.scheduler import run_scheduler
from lastcall.kube.store.memory import MemoryStore
from lastcall.records.record_json import encode_record
from lastcall.records.ring import Ring, RingRecorder
from lastcall.world.huge_pages import keep_in_huge_pages
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

GROUPS = ("system:masters", "system:authenticated")
LOOK_SECONDS = 0.5
REQUEST_SECONDS = 0.005
"""Virtual seconds that a request takes, as those of a busy kube-apiserver do."""
LIMIT_SECONDS = 3600.0
NODES_ARE: dict[str, Callable[..., VirtualNode]] = {
    "kwok": partial(StagesNode, last_status=False),
    "stages": partial(StagesNode, last_status=True),
}


def deployment(number: int, replicas: int, image: str) -> Object:
    labels = {"app": f"app-{number}"}
    container = {"name": "app", "image": image, "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}
    return {
        "metadata": {"name": f"app-{number}", "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


class Distance:
    """Makes every request take `REQUEST_SECONDS`. Without it everything that a cluster does would be done in one
    instant, by one component after the other, and no queue would ever hold more than one item.

    All wait equally long, so the first to come goes first, and one timer serves all that wait since one instant.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._waiting: deque[tuple[int, list[asyncio.Future[None]]]] = deque()

    def client(self, client: Client) -> Client:
        """Return `client`, at this distance."""
        for verb in ("get", "list", "create", "update", "patch", "delete"):
            setattr(client, verb, self._away(getattr(client, verb)))
        return client

    def _away(self, call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def later(*arguments: Any, **options: Any) -> Any:
            await self._under_way()
            return await call(*arguments, **options)

        return later

    def _under_way(self) -> asyncio.Future[None]:
        loop = asyncio.get_running_loop()
        moment, future = self._world.clock.monotonic_ns(), loop.create_future()
        if self._waiting and self._waiting[-1][0] == moment:
            self._waiting[-1][1].append(future)
        else:
            self._waiting.append((moment, [future]))
            loop.call_later(REQUEST_SECONDS, self._arrive)
        return future

    def _arrive(self) -> None:
        for future in self._waiting.popleft()[1]:
            if not future.done():  # who asked was cancelled
                future.set_result(None)


class Run:
    """`phases` is what each phase took: seconds of wall, CPU and virtual time."""

    def __init__(self, world: World, arguments: argparse.Namespace) -> None:
        self._world = world
        self._arguments = arguments
        self._recorder = RingRecorder(Ring.create("records"), "apiserver", world.clock, encode_record)
        self.server = APIServer(
            world=world,
            store=MemoryStore(),
            recorder=self._recorder,
            config=APIServerConfig(root_ca_pem=b"CA"),
        )
        self._distance = Distance(world)
        self._admin = self._client_of("kubernetes-admin")
        self.phases: dict[str, dict[str, float]] = {}
        self.revisions = 0

    def _client_of(self, component: str) -> Client:
        groups = ("system:nodes", "system:authenticated") if component.startswith("node:") else GROUPS
        return self._distance.client(self.server.client(UserInfo(f"system:{component}", groups)))

    async def main(self) -> None:
        async with Tasks() as tasks:
            tasks.spawn(keep_in_huge_pages(self._world), name="huge pages")  # as a control plane does
            await self._phase("start", self._start(tasks))
            await self._phase("create", self._create())
            await self._phase("roll", self._roll())
            await self._phase("delete", self._delete())
            self.revisions = int((await self._admin.list(NODES)).resource_version)
            tasks.cancel()

    async def _phase(self, name: str, work: Awaitable[None]) -> None:
        wall, cpu, virtual = time.perf_counter(), time.process_time(), self._now()
        await work
        self.phases[name] = {
            "wall": time.perf_counter() - wall,
            "cpu": time.process_time() - cpu,
            "virtual": self._now() - virtual,
        }
        if self._arguments.progress:
            print(name, self.phases[name], peak_mib(), file=sys.stderr, flush=True)

    def _now(self) -> float:
        return self._world.clock.monotonic_ns() / 1e9

    async def _start(self, tasks: Tasks) -> None:
        await self.server.bootstrap()
        world, recorder = self._world, self._recorder
        controllers = self._client_of("kube-controller-manager")
        tasks.spawn(
            run_controllers(
                gates=FeatureGates(),
                world=world,
                client=controllers,
                recorder_for=recorder.for_actor,
                root_ca_pem=b"CA",
            ),
            name="controllers",
        )
        scheduler = self._client_of("kube-scheduler")
        tasks.spawn(
            run_scheduler(
                world=world, client=scheduler, recorder=recorder.for_actor("scheduler"), minor=FeatureGates().minor
            ),
            name="scheduler",
        )
        make = NODES_ARE.get(self._arguments.nodes_are, self._kubelet)
        for number in range(1, self._arguments.nodes + 1):
            node: VirtualNode = make(world, number, self._client_of)
            await node.start(tasks)
        await self._until(self._is_usable)

    def _kubelet(self, world: World, number: int, client_of: Callable[[str], Client]) -> VirtualNode:
        sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))
        from bench.virtual_cluster_kubelets import KubeletNode

        return KubeletNode(world, number, client_of, self._recorder, ALLOCATABLE)

    async def _until(self, ask: Callable[[], Awaitable[bool]]) -> None:
        """Ask each half virtual second until it is so. TimeoutError after an hour of virtual time."""
        deadline = self._now() + LIMIT_SECONDS
        while not await ask():
            if self._now() > deadline:
                raise TimeoutError(ask.__name__)
            await self._world.clock.sleep(LOOK_SECONDS)

    async def _is_usable(self) -> bool:
        try:
            await self._admin.get(SERVICEACCOUNTS, "default", "default")
            await self._admin.get(CONFIGMAPS, "kube-root-ca.crt", "default")
        except StatusError:
            return False
        nodes = (await self._admin.list(NODES)).items
        return len(nodes) == self._arguments.nodes and not any(node["spec"].get("taints") for node in nodes)

    @property
    def _numbers(self) -> range:
        return range(self._arguments.pods // self._arguments.replicas)

    async def _create(self) -> None:
        for number in self._numbers:
            await self._admin.create(DEPLOYMENTS, deployment(number, self._arguments.replicas, "app:1"), "default")
        await self._until(self._all_available)

    async def _roll(self) -> None:
        for number in self._numbers:
            body = deployment(number, self._arguments.replicas, "app:2")
            patch = {"spec": {"template": body["spec"]["template"]}}
            await self._admin.patch(DEPLOYMENTS, f"app-{number}", patch, "default")
        await self._until(self._all_available)

    async def _all_available(self) -> bool:
        """As `kubectl rollout status` looks at it."""
        replicas = self._arguments.replicas
        for found in (await self._admin.list(DEPLOYMENTS, "default")).items:
            status = found.get("status") or {}
            if status.get("observedGeneration", 0) < found["metadata"]["generation"]:
                return False
            if any(status.get(key, 0) != replicas for key in ("replicas", "updatedReplicas", "availableReplicas")):
                return False
        return True

    async def _delete(self) -> None:
        for number in self._numbers:
            await self._admin.delete(DEPLOYMENTS, f"app-{number}", "default", propagation_policy="Background")
        await self._until(self._nothing_left)

    async def _nothing_left(self) -> bool:
        """One object of each kind says it; to list all that is left again and again would be work of our own."""
        for resource_ in (DEPLOYMENTS, REPLICASETS, PODS):
            if (await self.server.operations.list(resource_, "default", ListOptions(limit=1))).entries:
                return False
        return True


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(arguments: argparse.Namespace) -> dict[str, Any]:
    runs: list[Run] = []

    async def main(world: World) -> None:
        runs.append(Run(world, arguments))
        await runs[0].main()

    started, cpu = time.perf_counter(), time.process_time()
    run_virtual(main)
    run = runs[0]
    return {
        "phases": run.phases,
        "wall": time.perf_counter() - started,
        "cpu": time.process_time() - cpu,
        "peak": peak_mib(),
        "revisions": run.revisions,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--pods", type=int, required=True)
    parser.add_argument("--replicas", type=int, default=100)
    parser.add_argument("--nodes-are", choices=(*NODES_ARE, "kubelets"), default="stages")
    parser.add_argument("--progress", action="store_true")
    parser.add_argument("--profile", default="")
    arguments = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})  # one core
    # Objects are trees and go by their counts; looking through 100 000 of them again and again for cycles is in vain.
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    if arguments.profile:
        import cProfile

        profile = cProfile.Profile()
        result = profile.runcall(measure, arguments)
        profile.dump_stats(arguments.profile)
    else:
        result = measure(arguments)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
