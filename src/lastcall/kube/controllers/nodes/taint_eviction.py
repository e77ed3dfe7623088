"""The taint eviction controller: Pods leave a node with a NoExecute taint that they do not, or no longer, tolerate.

Source: pkg/controller/tainteviction/{taint_eviction,timed_workers}.go. A deletion that was decided stays known
until the Pod is gone or the taints change, so that it is not decided twice.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, cast

from lastcall.kube.api.errors import StatusError, is_not_found
from lastcall.kube.api.meta import name_of, namespace_of, uid_of
from lastcall.kube.api.pods.spec import get_condition
from lastcall.kube.api.resources import NODES, PODS
from lastcall.kube.api.taints import no_execute_taints, seconds_tolerated, why_evicted
from lastcall.kube.client.api import STRATEGIC_MERGE_PATCH, Client, ConnectionLost
from lastcall.kube.client.events import EventRecorder, tell_of_fault
from lastcall.kube.client.informer import Informer
from lastcall.kube.client.workqueue import WorkQueue
from lastcall.kube.controllers.informers import NODE, Informers
from lastcall.kube.controllers.pods.control import delete_pod
from lastcall.kube.controllers.worker import split_key
from lastcall.records import rules
from lastcall.records.record import Recorder
from lastcall.world import crash_guard
from lastcall.world.clock import monotonic, now, rfc3339
from lastcall.world.dataclass import dataclass
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.node import Node
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.pod_status import PodCondition
    from lastcall.kube.api.types.scheduling import Taint

log = logging.getLogger(__name__)

COMPONENT = "taint-eviction-controller"
TRIES = 5
SECONDS_BETWEEN_TRIES = 0.01
WORKERS = 8


@dataclass(slots=True)
class _Eviction:
    """`due` and `created_at` are monotonic seconds; `fired` when the deletion has been asked for."""

    uid: str
    created_at: float
    due: float
    fired: bool = False


class TaintEvictionController:
    """One eviction per Pod, by `namespace/name`."""

    def __init__(self, world: World, client: Client, informers: Informers, recorder: Recorder) -> None:
        self._world = world
        self._client = client
        self._recorder = recorder
        self._events = EventRecorder(client, world, COMPONENT)
        self._nodes: Informer[Node] = informers.get(NODES)
        self._pods: Informer[Pod] = informers.get(PODS)
        self._evictions: dict[str, _Eviction] = {}
        self._queue: WorkQueue[str] = WorkQueue(world, name="noexec_taint_pod")
        self._nodes.add_handler(self._node_changed, self._node_updated)
        self._pods.add_handler(self._pod_changed, self._pod_updated, self._pod_deleted)

    async def run(self) -> None:
        """Work until cancelled."""
        await self._nodes.synced()
        await self._pods.synced()
        async with Tasks() as tasks:
            tasks.spawn(self._events.run(), name=f"{COMPONENT} events")
            # What was seen before the other cache was filled is looked at again.
            for node in self._nodes.items():
                with crash_guard.Turn(COMPONENT, name_of(node)):
                    if no_execute_taints(node):
                        self._node_changed(node)
            for number in range(WORKERS):
                tasks.spawn(self._work(), name=f"{COMPONENT} {number}")

    # -- what happened

    def _node_changed(self, node: Node) -> None:
        taints = no_execute_taints(node)
        for pod in self._pods.by_index(NODE, name_of(node)):
            with crash_guard.Turn(COMPONENT, _key(pod)):
                self._process(pod, taints)

    def _node_updated(self, old: Node, new: Node) -> None:
        if no_execute_taints(old) != no_execute_taints(new):
            self._node_changed(new)

    def _pod_changed(self, pod: Pod) -> None:
        node = (pod.get("spec") or {}).get("nodeName")
        taints = no_execute_taints(self._nodes.get("", node)) if node else []
        if taints:
            self._process(pod, taints)

    def _pod_updated(self, old: Pod, new: Pod) -> None:
        before, after = old.get("spec") or {}, new.get("spec") or {}
        if before.get("nodeName") != after.get("nodeName") or before.get("tolerations") != after.get("tolerations"):
            self._pod_changed(new)

    def _pod_deleted(self, pod: Pod) -> None:
        self._cancel(_key(pod))

    # -- what it means

    def _process(self, pod: Pod, taints: list[Taint]) -> None:
        """`processPodOnNode`."""
        key = _key(pod)
        tolerations = pod["spec"].get("tolerations") or []
        seconds = seconds_tolerated(tolerations, taints) if taints else None
        if seconds is None:
            self._cancel(key)
            return
        moment = monotonic(self._world.clock)
        created_at = moment
        known = self._evictions.get(key)
        if known is not None and known.uid == uid_of(pod) and seconds > 0:
            if known.fired or known.created_at < moment:
                return  # it is reported already, or its time runs
            created_at = known.created_at
        self._cancel(key)
        due = created_at + seconds
        self._evictions[key] = _Eviction(uid_of(pod), created_at, due)
        self._queue.add_after(key, due - moment)

    def _cancel(self, key: str) -> None:
        eviction = self._evictions.pop(key, None)
        if eviction is not None and not eviction.fired and eviction.due > eviction.created_at:
            self._say(key, f"Cancelling deletion of Pod {key}")

    def _say(self, key: str, message: str) -> None:
        namespace, _, name = key.partition("/")
        reference = {"kind": "Pod", "apiVersion": "v1", "metadata": {"namespace": namespace, "name": name}}
        self._events.event(reference, "Normal", "TaintManagerEviction", message)

    # -- when its time has come

    async def _work(self) -> None:
        while True:
            key = await self._queue.get()
            if crash_guard.on_turn is not None:
                crash_guard.on_turn(COMPONENT, key)
            eviction = None
            try:
                eviction = self._evictions.get(key)
                if eviction is None or eviction.fired:
                    continue
                left = eviction.due - monotonic(self._world.clock)
                if left > 0:
                    self._queue.add_after(key, left)  # woken for an earlier eviction that was cancelled
                    continue
                eviction.fired = True
                await self._evict(key, eviction)
            except Exception as error:
                crash_guard.caught(COMPONENT, key, error)
                if eviction is not None:
                    eviction.fired = False
                self._queue.add_rate_limited(key)
                if (pod := self._pods.get(*split_key(key))) is not None:
                    tell_of_fault(self._events, pod, error)
            else:
                self._queue.forget(key)
            finally:
                self._queue.done(key)

    async def _evict(self, key: str, eviction: _Eviction) -> None:
        self._say(key, f"Marking for deletion Pod {key}")
        namespace, _, name = key.partition("/")
        for attempt in range(TRIES):
            if attempt:
                await self._world.clock.sleep(SECONDS_BETWEEN_TRIES)
            try:
                pod = cast("Pod", await self._client.get(PODS, name, namespace))
                if uid_of(pod) == eviction.uid:
                    await self._mark_and_delete(pod)
                return
            except StatusError as error:
                if is_not_found(error):
                    return
                log.warning("%s: %s: %s", COMPONENT, key, error)
            except ConnectionLost as error:
                log.warning("%s: %s: %s", COMPONENT, key, error)
        if self._evictions.get(key) is eviction:
            eviction.fired = False  # the original forgets it here, and nothing would ask again
            eviction.due = monotonic(self._world.clock) + 1.0
            self._queue.add_after(key, 1.0)

    async def _mark_and_delete(self, pod: Pod) -> None:
        """The condition DisruptionTarget, then DELETE with the Pod's own grace (`addConditionAndDeletePod`)."""
        condition: PodCondition = {
            "type": "DisruptionTarget",
            "observedGeneration": pod["metadata"].get("generation", 0),
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": rfc3339(now(self._world.clock)),
            "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
        }
        old = get_condition(pod.get("status") or {}, "DisruptionTarget")
        if old is None or any(old.get(key) != condition[key] for key in ("status", "reason", "message")):
            answer = await self._client.patch(
                PODS,
                name_of(pod),
                {"metadata": {"uid": uid_of(pod)}, "status": {"conditions": [condition]}},
                namespace_of(pod),
                content_type=STRATEGIC_MERGE_PATCH,
                subresource="status",
            )
            pod = cast("Pod", answer)
        node = pod["spec"].get("nodeName", "")
        taints = no_execute_taints(self._nodes.get("", node))
        why, facts = why_evicted(node, pod["spec"].get("tolerations") or [], taints)
        await delete_pod(self._client, self._recorder, pod, None, rule=rules.PROCESS_POD_ON_NODE, why=why, facts=facts)


def _key(pod: Pod) -> str:
    return f"{namespace_of(pod)}/{name_of(pod)}"
