"""The scheduler: gives every waiting Pod a node, through the binding subresource.

Source: pkg/scheduler/schedule_one.go. A cycle decides on the cache without waiting for anything; the binding is written
beside the next cycles, with the Pod assumed to be on its node already.
"""

# check: observes because it bound the Pod to its node
# check: many attributes Scheduler because queue, cache and caches of volumes meet in one scheduling cycle

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lastcall.kube.api.errors import StatusError, is_not_found
from lastcall.kube.api.meta import Object, name_of, namespace_of, uid_of
from lastcall.kube.api.pods.spec import get_condition
from lastcall.kube.api.resources import BINDINGS, NAMESPACES, NODES, PODDISRUPTIONBUDGETS, PODS
from lastcall.kube.client.api import STRATEGIC_MERGE_PATCH, Client, ConnectionLost
from lastcall.kube.client.events import EventRecorder, tell_of_fault
from lastcall.kube.client.informer import Informer
from lastcall.kube.scheduler.cache import Cache
from lastcall.kube.scheduler.counts import SchedulerCounts
from lastcall.kube.scheduler.event_handlers import SCHEDULER_NAME, EventHandlers, nominated_of
from lastcall.kube.scheduler.filters import FILTERS, Diagnosis, failure_text
from lastcall.kube.scheduler.placement import place
from lastcall.kube.scheduler.pod_info import PodInfo, Requirements
from lastcall.kube.scheduler.preemption import Preemption, lower_nominations, preempt
from lastcall.kube.scheduler.queue import QueuedPod, SchedulingQueue
from lastcall.kube.scheduler.ranking import Rankings
from lastcall.kube.scheduler.victims import Victims
from lastcall.kube.scheduler.volume_binder import NotBound, VolumeBinder
from lastcall.records import rules
from lastcall.records.kinds import POD_SCHEDULED
from lastcall.records.record import Recorder
from lastcall.world import crash_guard
from lastcall.world.clock import now, rfc3339
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.cluster import Namespace
    from lastcall.kube.api.types.node import Node
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.pod_status import PodCondition
    from lastcall.kube.api.types.policy import PodDisruptionBudget
    from lastcall.kube.scheduler.volume_binding import PodVolumes
    from lastcall.records.definitions.controllers import PodScheduled

__all__ = ["SCHEDULER_NAME", "Scheduler", "run_scheduler"]


MAX_REMEMBERED_FAILURES = 1024


async def run_scheduler(*, world: World, client: Client, recorder: Recorder, minor: int) -> None:
    """Schedule Pods until cancelled. `recorder` writes as `scheduler`."""
    scheduler = Scheduler(world=world, client=client, recorder=recorder, minor=minor)
    await scheduler.run()


@dataclass(frozen=True, slots=True)
class _Failure:
    """Nowhere to go, as of one version of the cache."""

    version: int
    message: str
    plugins: tuple[str, ...]


class Scheduler:
    """One scheduling cycle after the other, as in Kubernetes 1.`minor`."""

    def __init__(self, *, world: World, client: Client, recorder: Recorder, minor: int) -> None:
        self._world, self._minor = world, minor
        self._client = client
        self._recorder = recorder
        self._events = EventRecorder(client, world, SCHEDULER_NAME)
        self._victims = Victims(world, client, self._events, recorder)
        self._cache = Cache()
        self._queue = SchedulingQueue(world.clock)
        self._counts = SchedulerCounts(world.clock, self._queue, self._cache)
        world.counted.add(self._counts.families)
        self._rankings = Rankings()
        self._failures: dict[Requirements, _Failure] = {}
        unfinished = "status.phase!=Succeeded,status.phase!=Failed"
        self._pods: Informer[Pod] = Informer(client, PODS, field_selector=unfinished, world=world)
        self._nodes: Informer[Node] = Informer(client, NODES, world=world)
        self._namespaces: Informer[Namespace] = Informer(client, NAMESPACES, world=world)
        self._budgets: Informer[PodDisruptionBudget] = Informer(client, PODDISRUPTIONBUDGETS, world=world)
        self._handlers = EventHandlers(
            self._cache, self._queue, pods=self._pods, nodes=self._nodes, namespaces=self._namespaces
        )
        self._tasks = Tasks()
        self._made_volumes: VolumeBinder | None = None

    @property
    def _volumes(self) -> VolumeBinder:
        """Made with the first Pod that names a claim."""
        if self._made_volumes is None:
            self._made_volumes = VolumeBinder(self._world, self._client, self._tasks, self._cache, self._queue)
        return self._made_volumes

    async def run(self) -> None:
        informers: dict[str, Informer[Any]] = {
            "nodes": self._nodes,
            "namespaces": self._namespaces,
            "poddisruptionbudgets": self._budgets,
            "pods": self._pods,
        }
        async with self._tasks as tasks:
            for name, informer in informers.items():
                tasks.spawn(informer.run(), name=f"informer {name}")
            tasks.spawn(self._events.run(), name="scheduler events")
            for informer in informers.values():
                await informer.synced()
            while True:
                entry = await self._queue.pop()
                if crash_guard.on_turn is not None:
                    crash_guard.on_turn("scheduler", f"{entry.pod.namespace}/{entry.pod.name}")
                try:
                    await self._schedule_one(entry)
                except Exception as error:
                    self._caught("scheduler", entry, error)
                await self._world.clock.sleep(0)  # others' turn: a decision waits for nothing by itself

    def _caught(self, component: str, entry: QueuedPod, error: Exception) -> None:
        """A turn failed as nobody expected: the Pod backs off, the others go on."""
        pod = entry.pod
        crash_guard.caught(component, f"{pod.namespace}/{pod.name}", error)
        self._handlers.forget(pod.uid)
        self._queue.failed(entry)
        tell_of_fault(self._events, pod.pod, error)

    async def _schedule_one(self, entry: QueuedPod) -> None:
        pod, began = entry.pod, self._world.clock.monotonic_ns()
        if pod.terminating:
            self._queue.delete(pod.uid)
            message = f"skip schedule deleting pod: {pod.namespace}/{pod.name}"
            self._events.event(pod.pod, "Warning", "FailedScheduling", message)
            return
        if pod.has_claims:
            pod.volumes = await self._volumes.look(pod.pod)
        known = self._known_failure(pod)
        if known is not None:
            self._counts.ended("unschedulable", began)
            await self._unschedulable(entry, known.plugins, known.message, Preemption(known.message))
            return
        found = place(pod, self._cache, self._rankings)
        self._counts.decided(began)
        if isinstance(found, Diagnosis):
            self._counts.ended("unschedulable", began)
            await self._no_node(entry, found)
            return
        self._handlers.assume(pod, found.name)
        if pod.volumes is not None:
            self._volumes.assume(pod.volumes, found.name)
        self._tasks.spawn(self._bind(entry, found.name, pod.volumes, began), name=f"bind {pod.namespace}/{pod.name}")

    # -- a node was found

    async def _bind(self, entry: QueuedPod, node: str, volumes: PodVolumes | None, began: int) -> None:
        """`volumes` are those of the decision: the entry may have become another by now. `began`: when its turn
        did."""
        pod = entry.pod
        binding: Object = {
            "kind": BINDINGS.kind,
            "apiVersion": BINDINGS.api_version,
            "metadata": {"name": pod.name, "namespace": pod.namespace, "uid": pod.uid},
            "target": {"kind": "Node", "name": node},
        }
        try:
            if volumes is not None and not await self._bind_volumes(entry, volumes, node):
                return
            await self._client.create(PODS, binding, pod.namespace, name=pod.name, subresource="binding")
        except (StatusError, ConnectionLost) as error:
            self._counts.ended("error", began)
            self._handlers.forget(pod.uid)
            if isinstance(error, StatusError) and is_not_found(error):
                self._queue.delete(pod.uid)
            else:
                self._queue.failed(entry)  # bound by another scheduler: its event takes it out
            return
        except Exception as error:
            self._caught("scheduler bind", entry, error)
            return
        self._counts.scheduled(entry, began)
        self._queue.delete(pod.uid)
        facts: PodScheduled = {"node": node}
        self._recorder.record(POD_SCHEDULED, pod_uid=pod.uid, rule=rules.BIND, facts=facts)
        message = f"Successfully assigned {pod.namespace}/{pod.name} to {node}"
        self._events.event(pod.pod, "Normal", "Scheduled", message)

    async def _bind_volumes(self, entry: QueuedPod, volumes: PodVolumes, node: str) -> bool:
        """Bind them before the Pod itself (PreBind). Report a failure and return False."""
        pod = entry.pod
        try:
            await self._volumes.bind(volumes, node, lambda: self._queue.get(pod.uid) is entry)
        except NotBound as error:
            self._handlers.forget(pod.uid)
            if self._queue.get(pod.uid) is entry:
                message = f'running PreBind plugin "VolumeBinding": binding volumes: {error}'
                self._events.event(pod.pod, "Warning", "FailedScheduling", message)
                self._queue.failed(entry)
            return False
        return True

    # -- no node was found

    def _known_failure(self, pod: PodInfo) -> _Failure | None:
        """The answer for a Pod that asks for the same, when nothing has changed since."""
        known = None if pod.has_claims else self._failures.get(pod.requirements)
        if known is None or known.version != self._cache.version or self._cache.nominated_node(pod.uid):
            return None
        return None if self._cache.anti_affinity else known

    async def _no_node(self, entry: QueuedPod, diagnosis: Diagnosis) -> None:
        pod = entry.pod
        nominated_before = self._cache.nominated_node(pod.uid)
        preemption = Preemption()
        if diagnosis.node_count:
            preemption = preempt(pod, self._cache, diagnosis, self._budgets.items())
            self._counts.preempted(len(preemption.chosen.victims) if preemption.chosen is not None else 0)
        message = failure_text(diagnosis, self._preempting(preemption), self._minor)
        plugins = diagnosis.plugins or tuple(FILTERS)
        if preemption.nominate is not None:
            self._cache.nominate(pod, preemption.nominate)
        if preemption.chosen is None and not nominated_before and not pod.has_claims:
            if len(self._failures) >= MAX_REMEMBERED_FAILURES:
                self._failures.clear()
            self._failures[pod.requirements] = _Failure(self._cache.version, message, plugins)
        await self._unschedulable(entry, plugins, message, preemption)

    def _preempting(self, preemption: Preemption) -> str:
        """Return what the message says of it."""
        if self._minor < 37 or preemption.chosen is None:
            return preemption.message
        node, victims = preemption.chosen.node.name, len(preemption.chosen.victims)
        return f"found a potential placement for pod on node {node}, preempting {victims} victims"

    async def _unschedulable(
        self, entry: QueuedPod, plugins: tuple[str, ...], message: str, preemption: Preemption
    ) -> None:
        """schedule_one.go:handleSchedulingFailure, then the victims."""
        pod = entry.pod
        preempts = preemption.chosen is not None and any(
            not (each.terminating or each.preempted) for each in preemption.chosen.victims
        )
        if not preempts:
            self._queue.unschedulable(entry, plugins)  # noted first: what may help can come while we write
        self._events.event(pod.pod, "Warning", "FailedScheduling", message)
        await self._set_condition(pod.pod, message, self._cache.nominated_node(pod.uid))
        if preempts:
            self._tasks.spawn(self._make_room(entry, preemption), name=f"preempt for {pod.namespace}/{pod.name}")

    async def _make_room(self, entry: QueuedPod, preemption: Preemption) -> None:
        """Put the Pod off until its victims are deleted; it is looked at then, and waits for them to be gone."""
        assert preemption.chosen is not None
        try:
            await self._end_victims(entry, preemption, preemption.chosen.node.name)
        except Exception as error:
            self._caught("scheduler preemption", entry, error)

    async def _end_victims(self, entry: QueuedPod, preemption: Preemption, node: str) -> None:
        pod = entry.pod
        for other in lower_nominations(pod, node, self._cache):
            self._cache.nominate(other, "")
            await self._write_status(other.pod, {"nominatedNodeName": None})
            self._queue.activate(other.uid)
        if await self._victims.end(pod, preemption):
            self._queue.activate(pod.uid)
        else:
            self._queue.failed(entry)

    async def _set_condition(self, pod: Pod, message: str, nominated: str) -> None:
        """PodScheduled False/Unschedulable, and where room is made (schedule_one.go:updatePod)."""
        old = get_condition(pod.get("status") or {}, "PodScheduled")
        new: PodCondition = {
            "type": "PodScheduled",
            "observedGeneration": pod["metadata"].get("generation", 0),
            "status": "False",
            "lastProbeTime": None,
            "lastTransitionTime": rfc3339(now(self._world.clock)),
            "reason": "Unschedulable",
            "message": message,
        }
        status: Object = {}
        if old is not None and old.get("status") == "False":
            new["lastTransitionTime"] = old.get("lastTransitionTime")
        compared = ("status", "reason", "message", "observedGeneration")
        if old is None or any(old.get(key) != new.get(key) for key in compared):
            status["conditions"] = [new]
        if nominated != nominated_of(pod):
            status["nominatedNodeName"] = nominated or None
        if status:
            await self._write_status(pod, status)

    async def _write_status(self, pod: Pod, status: Object) -> None:
        """What cannot be written now is written after the next look at the Pod."""
        try:
            await self._client.patch(
                PODS,
                name_of(pod),
                {"metadata": {"uid": uid_of(pod)}, "status": status},
                namespace_of(pod),
                content_type=STRATEGIC_MERGE_PATCH,
                subresource="status",
            )
        except (StatusError, ConnectionLost) as error:
            if isinstance(error, StatusError) and is_not_found(error):
                return
            entry = self._queue.get(uid_of(pod))
            if entry is not None and entry.place == "unschedulable":
                self._queue.failed(entry)
