"""Give containers that run, and their Pod, other limits: which, in which order, and when not.

A Pod's group must never be smaller than its containers' together: it grows before them and shrinks after them.
Source: kuberuntime/kuberuntime_manager.go (computePodResizeAction, doPodResizeAction, validatePodResizeAction).
"""

# check: observes because it gave the container its limits

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from lastcall.kube.api.meta import uid_of
from lastcall.kube.api.text.go_notation import go_quote
from lastcall.kube.cri.api import (
    ContainerState,
    ContainerStatus,
    LinuxContainerResources,
    RuntimeService,
    RuntimeServiceError,
)
from lastcall.kube.node.interfaces import PodStatus
from lastcall.kube.node.pods.cgroups import resource_config_for_pod
from lastcall.kube.node.pods.spec import containers_of, init_containers_of, is_restartable_init_container
from lastcall.kube.node.runtime.container_config import linux_resources
from lastcall.records import kinds, rules
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.container import Container
    from lastcall.kube.api.types.pod import Pod
    from lastcall.records.definitions.kubelet_start import ContainerResized
    from lastcall.records.definitions.parts import Limits
    from lastcall.records.record import Recorder

Resource = Literal["cpu", "memory"]
_RESOURCES: tuple[Resource, ...] = ("memory", "cpu")


_NOTHING = LinuxContainerResources()


class ResizeError(Exception):
    """Not all could be set; it is tried again with the next sync."""


@dataclass(frozen=True, slots=True)
class ContainerUpdate:
    """What a container that runs has, and what it is to have."""

    status: ContainerStatus
    wanted: LinuxContainerResources

    @property
    def name(self) -> str:
        return self.status.metadata.name


@dataclass(frozen=True, slots=True)
class ResizePlan:
    """`restarts`: containers that have to start anew to get theirs. `pod` is None when its group is as it should be."""

    updates: tuple[ContainerUpdate, ...] = ()
    restarts: frozenset[str] = frozenset()
    sandbox_id: str = ""
    pod_now: LinuxContainerResources = _NOTHING
    pod: LinuxContainerResources | None = None

    @property
    def empty(self) -> bool:
        return not self.updates and not self.restarts and self.pod is None


def plan_resize(pod: Pod, pod_status: PodStatus) -> ResizePlan:
    """Compare `pod`, as it was given the node's resources, with what the runtime has; return what differs. Pure."""
    updates: list[ContainerUpdate] = []
    restarts: set[str] = set()
    for container in (*init_containers_of(pod), *containers_of(pod)):
        status = pod_status.find(container["name"])
        if status is None or status.state != ContainerState.CONTAINER_RUNNING:
            continue
        asked = linux_resources(pod, container)
        wanted = merged(merged(status.resources, asked, "cpu"), asked, "memory")
        changed = [
            resource for resource in _RESOURCES if merged(status.resources, wanted, resource) != status.resources
        ]
        if not changed:
            continue
        if _must_restart(pod, container, changed):
            restarts.add(container["name"])
        else:
            updates.append(ContainerUpdate(status, wanted))
    sandbox = next(iter(pod_status.ready_sandboxes()), None)
    if sandbox is None:
        return ResizePlan(tuple(updates), frozenset(restarts))
    asked = resource_config_for_pod(pod)
    group = merged(merged(sandbox.resources, asked, "cpu"), asked, "memory")
    return ResizePlan(
        tuple(updates),
        frozenset(restarts),
        sandbox.id,
        sandbox.resources,
        None if group == sandbox.resources else group,
    )


def _must_restart(pod: Pod, container: Container, changed: list[Resource]) -> bool:
    policies = {each.get("resourceName"): each.get("restartPolicy") for each in container.get("resizePolicy") or ()}
    if container in init_containers_of(pod) and not is_restartable_init_container(container):
        return False
    return any(policies.get(resource) == "RestartContainer" for resource in changed)


def merged(
    now: LinuxContainerResources, wanted: LinuxContainerResources, resource: Resource
) -> LinuxContainerResources:
    """Return `now` with one resource of `wanted`."""
    if resource == "memory":
        return replace(now, memory_limit_in_bytes=wanted.memory_limit_in_bytes)
    return replace(now, cpu_period=wanted.cpu_period, cpu_quota=wanted.cpu_quota, cpu_shares=wanted.cpu_shares)


def larger(now: LinuxContainerResources, wanted: LinuxContainerResources) -> LinuxContainerResources:
    """Return of each limit the one that allows more; 0 means unlimited."""
    quota, memory = (
        _more(now.cpu_quota, wanted.cpu_quota),
        _more(now.memory_limit_in_bytes, wanted.memory_limit_in_bytes),
    )
    return replace(
        now,
        cpu_quota=quota,
        cpu_period=(now.cpu_period or wanted.cpu_period) if quota else 0,
        cpu_shares=max(now.cpu_shares, wanted.cpu_shares),
        memory_limit_in_bytes=memory,
    )


def _more(one: int, other: int) -> int:
    return 0 if not one or not other else max(one, other)


def shrinks(update: ContainerUpdate, resource: Resource) -> bool:
    """Return whether an update takes less. Those go first: the Pod's group then has room for those that take more."""
    now, wanted = update.status.resources, update.wanted
    if resource == "memory":
        return _more(now.memory_limit_in_bytes, wanted.memory_limit_in_bytes) != wanted.memory_limit_in_bytes
    return _more(now.cpu_quota, wanted.cpu_quota) != wanted.cpu_quota or wanted.cpu_shares < now.cpu_shares


def too_small(plan: ResizePlan, usage: dict[str, int]) -> list[str]:
    """Return why memory limits cannot be lowered: `usage` is each container's in bytes, by name. Pure."""
    found = []
    pod_limit = plan.pod.memory_limit_in_bytes if plan.pod is not None else 0
    if (
        pod_limit
        and _more(plan.pod_now.memory_limit_in_bytes, pod_limit) != pod_limit
        and sum(usage.values()) >= pod_limit
    ):
        found.append(f"attempting to set pod memory limit ({pod_limit}) below current usage ({sum(usage.values())})")
    for update in plan.updates:
        limit = update.wanted.memory_limit_in_bytes
        if shrinks(update, "memory") and usage.get(update.name, 0) >= limit:
            name = go_quote(update.name)
            found.append(
                f"attempting to set container {name} memory limit ({limit}) below current usage ({usage[update.name]})"
            )
    return found


class Resizer:
    """Performs a plan."""

    def __init__(self, runtime: RuntimeService, recorder: Recorder) -> None:
        self._runtime = runtime
        self._recorder = recorder

    async def resize(self, pod: Pod, pod_status: PodStatus, plan: ResizePlan) -> None:
        """Apply a plan. Raises ResizeError; what was set until then stays."""
        await self._check_memory(pod_status, plan)
        group, has = plan.pod_now, {update.name: update.status.resources for update in plan.updates}
        try:
            for resource in _RESOURCES:
                if plan.pod is not None:
                    group = await self._set_pod(plan, group, merged(group, larger(group, plan.pod), resource))
                for update in sorted(plan.updates, key=lambda each: not shrinks(each, resource)):
                    wanted = merged(has[update.name], update.wanted, resource)
                    if wanted != has[update.name]:
                        await self._runtime.update_container_resources(update.status.id, wanted)
                        has[update.name] = wanted
                if plan.pod is not None and not plan.restarts:
                    # With restarts the group shrinks in the sync after that: until then the old containers are in it.
                    group = await self._set_pod(plan, group, merged(group, plan.pod, resource))
        except RuntimeServiceError as error:
            raise ResizeError(str(error)) from error
        for update in plan.updates:
            facts: ContainerResized = {"before": _limits(update.status.resources), "after": _limits(update.wanted)}
            self._recorder.record(
                kinds.CONTAINER_RESIZED,
                pod_uid=uid_of(pod),
                container=update.name,
                rule=rules.DO_POD_RESIZE_ACTION,
                facts=facts,
            )

    async def _set_pod(
        self, plan: ResizePlan, now: LinuxContainerResources, wanted: LinuxContainerResources
    ) -> LinuxContainerResources:
        if wanted != now:
            await self._runtime.update_pod_sandbox_resources(plan.sandbox_id, wanted)
        return wanted

    async def _check_memory(self, pod_status: PodStatus, plan: ResizePlan) -> None:
        lower = [update for update in plan.updates if shrinks(update, "memory")]
        if not lower:
            return
        usage = {}
        for status in pod_status.running_containers():
            try:
                stats = await self._runtime.container_stats(status.id)
            except RuntimeServiceError as error:
                raise ResizeError(f"cannot decrease memory limits: {error}") from error
            usage[status.metadata.name] = 0 if stats is None else stats.memory_usage_bytes
        if found := too_small(plan, usage):
            text = found[0] if len(found) == 1 else f"[{', '.join(found)}]"
            raise ResizeError(f"cannot decrease memory limits: {text}")


def _limits(resources: LinuxContainerResources) -> Limits:
    period = resources.cpu_period or 1
    return {
        "cpuShares": resources.cpu_shares,
        "cpuLimit": resources.cpu_quota / period,
        "memoryLimit": resources.memory_limit_in_bytes,
    }
