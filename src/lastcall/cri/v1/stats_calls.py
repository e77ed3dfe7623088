"""The calls of CRI's RuntimeService about what containers use: stats, and metrics."""

from typing import Any

from lastcall.cri import api
from lastcall.cri.api import ContainerStats, ContainerStatus, PodSandboxStatus, RuntimeService, RuntimeServiceError
from lastcall.cri.v1 import metrics, stats
from lastcall.cri.v1.filters import containers_that_match, running, sandboxes_that_match
from lastcall.cri.v1.messages import new
from lastcall.cri.v1.needs import Counting, Disk
from lastcall.cri.v1.requests import Ids
from lastcall.cri.v1.translate.sandboxes import sandbox_attributes
from lastcall.world.clock import Clock


class StatsCalls:
    """Without `disk` there are no sizes of writable layers, without `counting` no metrics."""

    def __init__(self, runtime: RuntimeService, clock: Clock, disk: Disk | None, counting: Counting | None) -> None:
        self._runtime, self._clock, self._disk, self._counting = runtime, clock, disk, counting
        self._ids = Ids(runtime)

    async def container_stats(self, request: Any) -> Any:
        status = await self._runtime.container_status(await self._ids.container(request.container_id))
        return new("ContainerStatsResponse", stats=(await self._stats_of(status))[0])

    async def list_container_stats(self, request: Any) -> Any:
        found = containers_that_match(await self._runtime.list_containers(), request.filter)
        return new("ListContainerStatsResponse", stats=[(await self._stats_of(each))[0] for each in running(found)])

    async def pod_sandbox_stats(self, request: Any) -> Any:
        status = await self._runtime.pod_sandbox_status(await self._ids.sandbox(request.pod_sandbox_id))
        return new("PodSandboxStatsResponse", stats=await self._sandbox_stats(status))

    async def list_pod_sandbox_stats(self, request: Any) -> Any:
        found = sandboxes_that_match(await self._runtime.list_pod_sandbox(), request.filter)
        ready = [each for each in found if each.state == api.PodSandboxState.SANDBOX_READY]
        return new("ListPodSandboxStatsResponse", stats=[await self._sandbox_stats(each) for each in ready])

    async def _stats_of(
        self, status: ContainerStatus
    ) -> tuple[Any, ContainerStats | None, api.ContainerCounters | None]:
        counted = await self._runtime.container_stats(status.id)
        counters = None if counted is None else await self._counters_of(status.id)
        now = self._clock.wall_ns()
        message = stats.container_message(status, counted, now)
        if counters is not None:
            stats.add_counts(message, counters.counts, status.resources.memory_limit_in_bytes, now)
        written = await self._disk.writable_layer(status.id) if self._disk is not None else None
        if written is not None:
            message.writable_layer.CopyFrom(stats.filesystem_message(written, now))
        return message, counted, counters

    async def _counters_of(self, container_id: str, *, processes: bool = False) -> api.ContainerCounters | None:
        """None when the container has ended meanwhile, and when nobody counts."""
        if self._counting is None:
            return None
        try:
            return await self._counting.container_counters(container_id, processes=processes)
        except RuntimeServiceError:
            return None

    async def _sandbox_stats(self, sandbox: PodSandboxStatus) -> Any:
        """CPU time and memory are the sums of the containers that run, with no process of the sandbox's own.

        The network is that of the Pod's own namespace, in which all of them are.
        """
        found = [each for each in await self._runtime.list_containers() if each.pod_sandbox_id == sandbox.id]
        each_stats = [await self._stats_of(each) for each in running(found)]
        counted = [used for _, used, _ in each_stats if used is not None]
        links = next((counters.network for _, _, counters in each_stats if counters is not None), {})
        now = self._clock.wall_ns()
        processes = new("UInt64Value", value=sum(each.process_count for each in counted))
        linux = new(
            "LinuxPodSandboxStats",
            cpu=stats.cpu_usage(sum(each.cpu_usage_core_nano_seconds for each in counted), now),
            memory=stats.memory_usage(
                sum(each.memory_usage_bytes for each in counted),
                sum(each.memory_working_set_bytes for each in counted),
                now,
            ),
            process=new("ProcessUsage", timestamp=now, process_count=processes),
            containers=[message for message, _, _ in each_stats],
            network=stats.network_usage(links, now) if links else None,
        )
        for message, _, _ in each_stats:
            stats.sum_memory_counts(linux.memory, message.memory)
        return new("PodSandboxStats", attributes=sandbox_attributes(sandbox), linux=linux)

    async def list_metric_descriptors(self, request: Any) -> Any:
        found = metrics.descriptors() if self._counting is not None else []
        return new("ListMetricDescriptorsResponse", descriptors=found)

    async def list_pod_sandbox_metrics(self, request: Any) -> Any:
        containers, found = running(await self._runtime.list_containers()), []
        for sandbox in await self._runtime.list_pod_sandbox():
            samples = [await self._sample(each) for each in containers if each.pod_sandbox_id == sandbox.id]
            counted = [sample for sample in samples if sample is not None]
            whose = (sandbox.metadata.namespace, sandbox.metadata.name)
            of_containers = []
            for each in counted:
                status = each.status
                labels = (status.metadata.name, each.counters.group, status.image, status.id, *whose)
                told = metrics.metrics_of(each, metrics.CONTAINER_METRICS, labels)
                of_containers.append(new("ContainerMetrics", container_id=status.id, metrics=told))
            labels = ("", "", "", sandbox.id, *whose)
            of_pod = metrics.metrics_of(counted[0], metrics.POD_METRICS, labels) if counted else []
            found.append(
                new("PodSandboxMetrics", pod_sandbox_id=sandbox.id, metrics=of_pod, container_metrics=of_containers)
            )
        return new("ListPodSandboxMetricsResponse", pod_metrics=found)

    async def _sample(self, status: ContainerStatus) -> metrics.Sample | None:
        """None when the container has ended meanwhile."""
        counters = await self._counters_of(status.id, processes=True)
        if counters is None:
            return None
        try:
            used = await self._runtime.container_stats(status.id)
        except RuntimeServiceError:
            return None
        written = await self._disk.writable_layer(status.id) if self._disk is not None else None
        return metrics.Sample(status, used or ContainerStats(), counters, self._clock.wall_ns(), written)
