"""The kubelet: hands its parts what happens (kubelet.go:syncLoopIteration). `assembly.py` puts them together.

Nothing here waits: every handler notifies a worker and returns. The parts that take time are tasks of their own.
"""

# check: observes because it admitted or rejected the Pod

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import is_terminating, resource_version_of, uid_of
from lastcall.kube.api.pods.spec import StatusField, pod_key
from lastcall.kube.client.events import tell_of_fault
from lastcall.kube.cri.api import RuntimeServiceError
from lastcall.kube.node.admission.decide import (
    Rejection,
)
from lastcall.kube.node.assembly import assemble
from lastcall.kube.node.config import Operation, PodUpdates
from lastcall.kube.node.garbage.decide import instances_to_prune
from lastcall.kube.node.interfaces import ProbeResult, ProbeType
from lastcall.kube.node.kubelet_config import KubeletConfig as KubeletConfig
from lastcall.kube.node.metrics.kubelet import CountedParts
from lastcall.kube.node.parts.common import Given
from lastcall.kube.node.pods.runtime_pod import is_terminal
from lastcall.kube.node.pods.spec import (
    all_containers_of,
    image_volumes_of,
    is_mirror_pod,
    is_terminal_phase,
)
from lastcall.kube.node.runtime.pleg import PodLifecycleEvent, PodLifecycleEventType
from lastcall.kube.node.shutdown.decide import NOT_READY
from lastcall.kube.node.shutdown.manager import NodeShutdown
from lastcall.kube.node.workers.transitions import State, UpdatePodOptions, UpdateType
from lastcall.records import kinds, rules
from lastcall.world import crash_guard

if TYPE_CHECKING:
    from lastcall.kube.api.types.node import Node
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.pod_status import PodStatus as APIPodStatus
    from lastcall.records.definitions.controllers import DeletionDecided
    from lastcall.records.definitions.kubelet_start import PodAdmitted, PodRejected

RUNTIME_RETRY_SECONDS = 1.0

log = logging.getLogger(__name__)


class Kubelet:
    """One node. `run` until cancelled; `ready` once it takes Pods.

    It also answers what the kubelet's server asks: `get_pods`, `get_pod_by_name`, `get_pod_status`, `counted`; what the
    node's process asks: `not_ready`, `pressures`, `shutdown`; and what its own parts call (`parts.common.Callbacks`).
    """

    def __init__(self, given: Given) -> None:
        self._given = given
        self._takes_pods = asyncio.Event()
        parts = assemble(given, self)
        self._common, self._sources, self._work = parts.common, parts.sources, parts.work
        self._reports, self._containers, self._garbage = parts.reports, parts.containers, parts.garbage
        self._protection, self._housekeeping = parts.protection, parts.housekeeping

    async def run(self) -> None:
        """Run the node until cancelled. Node registration, lease and server are started beside it."""
        async with self._common.tasks as tasks:

            def keep(part: str, run: Callable[[], Awaitable[None]]) -> None:
                name = f"kubelet {part}"
                tasks.spawn(crash_guard.keep_running(name, run, self._given.world.clock), name=name)

            if self._common.own_events is not None:
                keep("events", self._common.own_events.run)
            keep("PLEG", self._work.pleg.run)
            await self._first_relist()
            await self._containers.state.update()
            keep("runtime state", self._containers.state.run)
            keep("services", self._containers.configs.run)
            if self._given.config.node_labels:
                keep("node", self._sources.own_node.run)
            keep("status manager", self._reports.statuses.run)
            keep("work queue", self._work.queue.run)
            keep("deadlines", self._work.deadlines.run)
            keep("resizes", self._reports.resizes.queue.run)
            if self._sources.file_config is not None:
                keep("static pods", self._sources.file_config.run)
                await self._sources.file_config.first_set()  # they need no API server
            keep("pod config", self._sources.pod_config.run)
            await self._sources.pod_config.first_set()
            self._takes_pods.set()
            keep("housekeeping", self._housekeeping.run)
            keep("container garbage collection", self._garbage.containers.run)
            keep("image garbage collection", self._garbage.images.run)
            keep("container logs", self._garbage.logs.run)
            keep("eviction", self._protection.eviction.run)

    def forget_except(self, uids: set[str]) -> None:
        self._reports.generator.forget_except(uids)
        self._containers.users.keep(uids)
        self._reports.resizes.forget_except(uids)

    async def _first_relist(self) -> None:
        """What runs already must be known before the first Pod is looked at."""
        await self._given.world.clock.sleep(
            0
        )  # lets the PLEG subscribe first: nothing falls between listing and events
        while True:
            try:
                await self._work.pleg.relist()
                self._containers.users.adopt(await self._common.runtime.list_pod_sandbox())
                return
            except RuntimeServiceError as error:
                log.warning("the container runtime does not answer yet: %s", error)
                await self._given.world.clock.sleep(RUNTIME_RETRY_SECONDS)

    async def wait_ready(self) -> None:
        """Wait until the node takes Pods."""
        await self._takes_pods.wait()

    @property
    def ready(self) -> bool:
        """Return whether the runtime was read and the first set of Pods is known."""
        return self._sources.pod_config.ready

    def not_ready(self) -> str:
        """Return why the node is not Ready, "" if it is."""
        if self._protection.shutdown.shutting_down:
            return NOT_READY
        return self._containers.state.error if self.ready else "the sync loop is not running yet"

    def pressures(self) -> tuple[str, ...]:
        """Return the conditions of the node for resources that run out."""
        return self._protection.eviction.conditions

    @property
    def shutdown(self) -> NodeShutdown:
        """Return the graceful shutdown of the node."""
        return self._protection.shutdown

    def on_conditions(self, callback: Callable[[], None]) -> None:
        """Call `callback` when what `not_ready` or `pressures` return may have changed."""
        self._protection.shutdown.on_change = self._protection.eviction.on_change = callback

    def rotate_log(self, container_id: str) -> None:
        """Rotate the log of a container now, because it is full."""
        self._garbage.logs.full(container_id)

    # -- what the server asks ---------------------------------------------------------------------------------------

    def get_pods(self) -> list[Pod]:
        return self._sources.pods.get_pods()

    def get_pod_by_name(self, namespace: str, name: str) -> Pod | None:
        return self._sources.pods.get_pod_by_name(namespace, name)

    def get_pod_status(self, uid: str) -> APIPodStatus | None:
        return self._reports.statuses.get_pod_status(uid)

    @property
    def counted(self) -> CountedParts:
        """Return the parts that have something for the metrics."""
        return CountedParts(
            pods=self._sources.pods,
            workers=self._work.workers,
            pleg=self._work.pleg,
            runtime=self._common.runtime,
            starter=self._containers.starter,
            probes=self._reports.probes,
        )

    def handle_file_updates(self, updates: PodUpdates) -> None:
        """Apply a change of the manifest directory. Pods that are gone from it end; a record says who decided so."""
        for pod in updates.pods[Operation.REMOVE]:
            facts: DeletionDecided = {
                "why": "its manifest was removed from the node's directory, or says something else now",
                "ownerKind": "Node",
                "owner": self._given.config.node_name,
                "observedResourceVersion": "",
            }
            rule = rules.LIST_CONFIG
            self._given.recorder.record(kinds.DELETION_DECIDED, pod_uid=uid_of(pod), rule=rule, facts=facts)
        self.handle_updates(updates)

    # -- the sync loop's handlers -------------------------------------------------------------------------------------

    def handle_updates(self, updates: PodUpdates) -> None:
        handlers: dict[Operation, Callable[[list[Pod]], None]] = {
            Operation.REMOVE: self.handle_pod_removes,
            Operation.ADD: self.handle_pod_additions,
            Operation.UPDATE: self.handle_pod_updates,
            Operation.DELETE: self.handle_pod_updates,
            Operation.RECONCILE: self.handle_pod_reconcile,
        }
        for operation, pods in updates.pods.items():
            if pods:
                handlers[operation](pods)

    def handle_pod_additions(self, pods: list[Pod]) -> None:
        """Handle new Pods (kubelet.go:HandlePodAdditions). A rejected Pod never gets a worker."""
        in_order = sorted(pods, key=lambda pod: pod["metadata"].get("creationTimestamp") or "")
        self._each(in_order, self._handle_pod_addition)
        waits = [pod for pod in in_order if self._reports.resizes.changed(pod)]
        for pod in in_order:
            self._reports.resizes.backfill(pod)
        if waits:
            self._reports.resizes.retry()

    def _each(self, pods: Iterable[Pod], handle: Callable[[Pod], None]) -> None:
        """A turn for each: one that fails is tried again by housekeeping, and keeps no other from its own."""
        for pod in pods:
            with crash_guard.Turn("kubelet pod", pod_key(pod)) as turn:
                handle(pod)
            if turn.error is not None:
                tell_of_fault(self._common.events, pod, turn.error)

    def _handle_pod_addition(self, pod: Pod) -> None:
        if is_mirror_pod(pod):
            self._handle_mirror(pod)
            return
        uid = uid_of(pod)
        resizes = self._reports.resizes
        others = [resizes.allocated(other) for other in self.active_pods()]
        self._sources.pods.add_pod(pod)
        if not self._work.workers.is_pod_termination_requested(uid) and not is_terminal(pod):
            rejection = self._protection.admission.decide(resizes.allocated(pod), others)
            if rejection is not None:
                self._reject_pod(pod, rejection)
                return
            if self._protection.admission.is_held(uid):
                return  # until the victims have ended
            self._admitted(pod)
        self._start(pod)

    def _admitted(self, pod: Pod) -> None:
        facts: PodAdmitted = {"observedResourceVersion": resource_version_of(pod)}
        rule = rules.HANDLE_POD_ADDITIONS
        self._given.recorder.record(kinds.POD_ADMITTED, pod_uid=uid_of(pod), rule=rule, facts=facts)
        self._reports.resizes.admitted(pod)
        if not is_terminating(pod):
            self._given.volumes.prepare(pod)

    def _start(self, pod: Pod) -> None:
        self._work.workers.update_pod(UpdatePodOptions(UpdateType.CREATE, pod))
        self._watch_deadline(pod)

    def handle_pod_updates(self, pods: list[Pod]) -> None:
        """Handle changed Pods, both UPDATE and DELETE (kubelet.go:HandlePodUpdates)."""
        self._each(pods, self._handle_pod_update)

    def _handle_pod_update(self, pod: Pod) -> None:
        if is_mirror_pod(pod):
            self._handle_mirror(pod)
            return
        self._sources.pods.add_pod(pod)
        if self._protection.admission.is_held(uid_of(pod)) and not is_terminating(pod):
            return
        if self._reports.resizes.changed(pod):
            self._reports.resizes.retry(but_not=uid_of(pod))
        self._work.workers.update_pod(UpdatePodOptions(UpdateType.UPDATE, pod))
        self._watch_deadline(pod)

    def handle_pod_removes(self, pods: list[Pod]) -> None:
        """Handle removed Pods: the object is gone, so is its right to run (kubelet.go:HandlePodRemoves)."""
        self._each(pods, self._handle_pod_remove)

    def _handle_pod_remove(self, pod: Pod) -> None:
        self._sources.pods.remove_pod(pod)
        if is_mirror_pod(pod):
            self._sync_static_pod_of(pod)
            return
        self._work.queue.forget(uid_of(pod))
        self._work.deadlines.forget(uid_of(pod))
        self._reports.resizes.retry()
        self._work.workers.update_pod(UpdatePodOptions(UpdateType.KILL, pod))

    def handle_pod_reconcile(self, pods: list[Pod]) -> None:
        """Handle changed statuses; readiness gates need another look. Never kills (kubelet.go:HandlePodReconcile)."""
        self._each(pods, self._handle_pod_reconcile)

    def _handle_pod_reconcile(self, pod: Pod) -> None:
        self._sources.pods.add_pod(pod)
        if not is_mirror_pod(pod) and pod["spec"].get("readinessGates"):
            self._work.workers.update_pod(UpdatePodOptions(UpdateType.SYNC, pod))

    def _handle_mirror(self, mirror: Pod) -> None:
        """A mirror is not a Pod of its own: its static Pod has another look at it, and its status is written to it."""
        self._sources.pods.add_pod(mirror)
        pod = self._sync_static_pod_of(mirror)
        if pod is not None:
            self._reports.statuses.mirror_changed(uid_of(pod))

    def _sync_static_pod_of(self, mirror: Pod) -> Pod | None:
        pod = self._sources.pods.static_pod_of(mirror)
        if pod is not None and self._work.workers.state_of(uid_of(pod)) is not State.UNKNOWN:  # it was not rejected
            self._work.workers.update_pod(UpdatePodOptions(UpdateType.UPDATE, pod))
        return pod

    def handle_pod_sync(self, uid: str) -> None:
        """Sync a Pod that may have changed, or whose time has come (kubelet.go:HandlePodSyncs)."""
        pod = self._sources.pods.get_pod(uid)
        if pod is not None:
            self._work.workers.update_pod(UpdatePodOptions(UpdateType.SYNC, pod))
            self._watch_deadline(pod)

    def handle_pleg_events(self, events: list[PodLifecycleEvent]) -> None:
        for uid in dict.fromkeys(event.uid for event in events):
            own = [event for event in events if event.uid == uid]
            pod, status = self._sources.pods.get_pod(uid), self._work.pleg.get(uid)
            if pod is not None and status is not None:
                with crash_guard.Turn("kubelet notices", uid):
                    self._containers.notices.look(pod, status)
            if any(event.type in _EVENTS_THAT_SYNC for event in own):
                self.handle_pod_sync(uid)
            for event in own:
                if event.type is PodLifecycleEventType.CONTAINER_DIED:
                    self._prune_dead_instances(uid, event.id)

    def handle_probe_result(self, kind: ProbeType, uid: str, container_id: str, result: ProbeResult) -> None:
        if kind == "readiness":
            self._reports.statuses.set_container_readiness(uid, container_id, result == "success")
        elif kind == "startup":
            self._reports.statuses.set_container_startup(uid, container_id, result == "success")
        elif result != "failure":
            return
        self.handle_pod_sync(uid)

    # -- admission ----------------------------------------------------------------------------------------------------

    def active_pods(self) -> list[Pod]:
        """Return Pods that hold resources (kubelet_pods.go:filterOutInactivePods)."""
        return [
            pod
            for pod in self._sources.pods.get_pods()
            if not is_terminal(pod)
            and not is_terminal_phase((self._reports.statuses.get_pod_status(uid_of(pod)) or {}).get("phase"))
            and not self._work.workers.is_pod_known_terminated(uid_of(pod))
        ]

    def names_of_images(self) -> list[str]:
        """Return the images of Pods that run or are about to: they are needed, even if no container of them exists."""
        pods = self.active_pods()
        volumes = [reference for pod in pods for reference in image_volumes_of(pod).values()]
        return [*volumes, *(container.get("image", "") for pod in pods for container in all_containers_of(pod))]

    def own_node(self) -> Node:
        """Return the Node as the API has it; before it is seen, with its labels to register (kubelet_getters.go)."""
        config = self._given.config
        registered: Node = {"metadata": {"name": config.node_name, "labels": config.node_labels}}
        return self._sources.own_node.get("", config.node_name) or registered

    def made_room(self, uid: str) -> None:
        """Start a critical Pod whose victims have ended."""
        current = self._sources.pods.get_pod(uid)
        if current is not None and not self._work.workers.is_pod_termination_requested(uid):
            self._admitted(current)
            self._start(current)

    def _reject_pod(self, pod: Pod, rejection: Rejection) -> None:
        """kubelet.go:rejectPod."""
        self._common.events.event(pod, "Warning", rejection.reason, rejection.message)
        message = f"Pod was rejected: {rejection.message}"
        facts: PodRejected = {"reason": rejection.reason, "message": message}
        self._given.recorder.record(kinds.POD_REJECTED, pod_uid=uid_of(pod), rule=rules.REJECT_POD, facts=facts)
        self._reports.statuses.set_pod_status(pod, {"phase": "Failed", "reason": rejection.reason, "message": message})

    # -- what the parts need from one another

    def reported_restarts(self, pod_uid: str, name: str) -> int:
        """Return how often the status says that a container was restarted."""
        status = self._reports.statuses.get_pod_status(pod_uid) or {}
        field_name: StatusField
        for field_name in ("initContainerStatuses", "containerStatuses"):
            for container in status.get(field_name) or []:
                if container["name"] == name:
                    return int(container.get("restartCount") or 0)
        return 0

    def _watch_deadline(self, pod: Pod) -> None:
        left = self._reports.deadline.seconds_left(pod)
        if left is not None and left > 0:
            self._work.deadlines.enqueue(uid_of(pod), left)

    def _prune_dead_instances(self, uid: str, container_id: str) -> None:
        """Keep one ended instance of a container beside the one that just ended."""
        status = self._work.pleg.get(uid)
        died = next((c for c in status.container_statuses if c.id == container_id), None) if status else None
        if status is None or died is None:
            return
        old = instances_to_prune(status, died, remove_all=False)
        if old:
            prune = self._garbage.containers.remove_containers(old)
            self._common.tasks.spawn(
                crash_guard.guarded("kubelet container garbage collection", uid, prune), name=f"prune {uid}"
            )

    async def reclaim(self, uid: str) -> None:
        status = self._work.pleg.get(uid)
        if status is not None:
            await self._garbage.containers.remove_containers(status.container_statuses)
            await self._work.pleg.refresh(uid, status.name, status.namespace)

    def resources_reclaimed(self, uid: str) -> bool:
        status = self._work.pleg.get(uid)
        return self._work.workers.should_pod_runtime_be_removed(uid) and (
            status is None or not status.container_statuses
        )


_EVENTS_THAT_SYNC = (PodLifecycleEventType.CONTAINER_STARTED, PodLifecycleEventType.CONTAINER_DIED)
"""CONTAINER_REMOVED and CONTAINER_CHANGED bring nothing a sync could act on."""
