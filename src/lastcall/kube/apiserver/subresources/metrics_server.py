"""Answer metrics.k8s.io in the API server itself: a request asks the kubelets, and nothing else does.

The rate of CPU needs two samples: the first request waits a second for the other; a request within the next minute gets
the rate since the last sample but one. Nothing runs in between.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

import orjson

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import Object, name_of
from lastcall.kube.api.resources import NODES, PODS, Resource
from lastcall.kube.apiserver.subresources.metrics import (
    LONGEST_WINDOW,
    Sample,
    metrics_list,
    node_metrics,
    not_found,
    pod_metrics,
    read_summary,
)
from lastcall.kube.client.api import ConnectionLost
from lastcall.world import crash_guard
from lastcall.world.clock import now
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

FRESH_SECONDS = 5.0
"""For how long a sample is not taken anew: many may ask at once."""
FIRST_SECONDS = 1.0

Ask = Callable[[Object, str], Awaitable[bytes]]
"""(node, path) → what its kubelet answers. Raises StatusError."""


class MetricsServer:
    """`find` and `list_` read what is stored; `ask` reaches kubelets."""

    def __init__(
        self,
        world: World,
        find: Callable[[Resource, str, str], Awaitable[Object | None]],
        list_: Callable[[Resource, str], Awaitable[list[Object]]],
        ask: Ask,
    ) -> None:
        self._world, self._find, self._list, self._ask = world, find, list_, ask
        self._samples: list[tuple[datetime, Sample]] = []
        self._taking = asyncio.Lock()

    async def get(self, resource: Resource, namespace: str, name: str) -> Object:
        """Return the metrics of one object. Raises StatusError."""
        of = PODS if resource.namespaced else NODES
        found = await self._find(of, namespace, name)
        made = [] if found is None else await self._made(resource, [found])
        if not made:
            raise not_found(resource, namespace, name)
        return made[0]

    async def all_of(self, resource: Resource, namespace: str, matches: Callable[[Object], bool]) -> Object:
        """Return the metrics of all Pods of a namespace ("" for all), or all nodes, that match."""
        of = PODS if resource.namespaced else NODES
        objects = [each for each in await self._list(of, namespace) if matches(each)]
        objects.sort(key=lambda each: (each["metadata"].get("namespace", ""), name_of(each)))
        return metrics_list(resource, await self._made(resource, objects))

    async def _made(self, resource: Resource, objects: list[Object]) -> list[Object]:
        before, after = await self._two_samples()
        make = pod_metrics if resource.namespaced else node_metrics
        return [made for each in objects if (made := make(resource, each, before, after)) is not None]

    async def _two_samples(self) -> tuple[Sample, Sample]:
        async with self._taking:
            moment = now(self._world.clock)
            self._samples = [each for each in self._samples if moment - each[0] <= LONGEST_WINDOW]
            newest = self._samples[-1][0] if self._samples else None
            if newest is None or (moment - newest).total_seconds() >= FRESH_SECONDS:
                await self._take()
            if len(self._samples) < 2:
                await self._world.clock.sleep(FIRST_SECONDS)
                await self._take()
            self._samples = self._samples[-2:]
            return self._samples[0][1], self._samples[1][1]

    async def _take(self) -> None:
        sample = Sample()
        async with Tasks() as tasks:
            for node in await self._list(NODES, ""):
                asked = crash_guard.guarded("API server", f"metrics {name_of(node)}", self._read(sample, node))
                tasks.spawn(asked, name="metrics of a node")
        self._samples.append((now(self._world.clock), sample))

    async def _read(self, sample: Sample, node: Object) -> None:
        try:
            summary = orjson.loads(await self._ask(node, "/stats/summary"))
        except (StatusError, ConnectionLost, orjson.JSONDecodeError):
            return  # it has no metrics then
        read_summary(sample, name_of(node), summary)
