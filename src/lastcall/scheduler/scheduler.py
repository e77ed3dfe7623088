"""The scheduler: gives every waiting Pod a Node, through the binding subresource.

Source: pkg/scheduler (schedule_one.go, eventhandlers.go). Of the Nodes that fit, the one with the fewest Pods is taken.
A Pod that fits nowhere waits until a Node changes in a way that may matter.
"""

from lastcall.api.errors import StatusError, is_conflict, is_not_found
from lastcall.api.meta import (
    Object,
    is_terminating,
    labels_of,
    name_of,
    namespace_of,
    resource_version_of,
    uid_of,
)
from lastcall.api.resources import BINDINGS, NODES, PODS
from lastcall.client.api import Client, ConnectionLost
from lastcall.client.events import EventRecorder
from lastcall.client.informer import Informer
from lastcall.client.workqueue import RateLimit, WorkQueue
from lastcall.scheduler.filters import find_nodes, taints_of
from lastcall.timeline.kinds import POD_SCHEDULED
from lastcall.timeline.record import Recorder
from lastcall.world.clock import now, rfc3339
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

SCHEDULER_NAME = "default-scheduler"
BACKOFF = RateLimit(base_delay=1.0, max_delay=10.0, per_second=0.0)
"""podInitialBackoffSeconds and podMaxBackoffSeconds."""

RULE_BIND = "pkg/scheduler/schedule_one.go:bind"
RULE_FAILED = "pkg/scheduler/schedule_one.go:handleSchedulingFailure"

Key = tuple[str, str]


async def run_scheduler(*, world: World, client: Client, recorder: Recorder) -> None:
    """Schedule Pods until cancelled. `recorder` writes as `scheduler`."""
    scheduler = Scheduler(world=world, client=client, recorder=recorder)
    await scheduler.run()


class Scheduler:
    """One scheduling cycle after the other, as in the original; binding is part of the cycle here."""

    def __init__(self, *, world: World, client: Client, recorder: Recorder) -> None:
        self._world = world
        self._client = client
        self._recorder = recorder
        self._events = EventRecorder(client, world, SCHEDULER_NAME)
        self._queue: WorkQueue[Key] = WorkQueue(world, BACKOFF)
        self._unschedulable: dict[Key, None] = {}
        self._assumed: dict[str, str] = {}
        self._pods = Informer(
            client,
            PODS,
            field_selector="status.phase!=Succeeded,status.phase!=Failed",
            indexes={"node": _index_by_node},
            world=world,
        )
        self._nodes = Informer(client, NODES, world=world)
        self._pods.add_handler(self._pod_changed, self._pod_updated, self._pod_gone)
        self._nodes.add_handler(lambda _: self._try_all_again(), self._node_updated)

    async def run(self) -> None:
        async with Tasks() as tasks:
            tasks.spawn(self._nodes.run(), name="informer nodes")
            tasks.spawn(self._pods.run(), name="informer pods")
            tasks.spawn(self._events.run(), name="scheduler events")
            await self._nodes.synced()
            await self._pods.synced()
            while True:
                key = await self._queue.get()
                try:
                    await self._schedule_one(key)
                except (StatusError, ConnectionLost):
                    self._queue.add_rate_limited(key)
                else:
                    self._queue.forget(key)
                finally:
                    self._queue.done(key)

    def _pod_changed(self, pod: Object) -> None:
        if pod.get("spec", {}).get("nodeName"):
            self._assumed.pop(uid_of(pod), None)
            self._unschedulable.pop(_key(pod), None)
        elif _is_ours(pod) and uid_of(pod) not in self._assumed and _key(pod) not in self._unschedulable:
            self._queue.add(_key(pod))

    def _pod_updated(self, old: Object, new: Object) -> None:
        if old.get("spec") != new.get("spec"):
            self._unschedulable.pop(_key(new), None)  # a toleration, a lifted gate: worth another look
        self._pod_changed(new)

    def _pod_gone(self, pod: Object) -> None:
        self._assumed.pop(uid_of(pod), None)
        self._unschedulable.pop(_key(pod), None)

    def _node_updated(self, old: Object, new: Object) -> None:
        """Only what a filter looks at (eventhandlers.go:nodeSchedulingPropertiesChange)."""
        if _scheduling_properties(old) != _scheduling_properties(new):
            self._try_all_again()

    def _try_all_again(self) -> None:
        waiting, self._unschedulable = self._unschedulable, {}
        for key in waiting:
            self._queue.add(key)

    async def _schedule_one(self, key: Key) -> None:
        pod = self._pods.get(*key)
        if pod is None or not _is_ours(pod) or pod["spec"].get("nodeName") or uid_of(pod) in self._assumed:
            return
        if is_terminating(pod):
            message = f"skip schedule deleting pod: {key[0]}/{key[1]}"
            self._events.event(pod, "Warning", "FailedScheduling", message)
            return
        nodes, failure = find_nodes(pod, self._nodes.items())
        if failure:
            # Noted first: a Node may come while we write.
            self._unschedulable[key] = None
            self._events.event(pod, "Warning", "FailedScheduling", failure)
            await self._set_unschedulable(pod, failure)
            return
        node = min(nodes, key=lambda candidate: (self._load(name_of(candidate)), name_of(candidate)))
        await self._bind(pod, name_of(node))

    def _load(self, node: str) -> int:
        return len(self._pods.by_index("node", node)) + sum(1 for chosen in self._assumed.values() if chosen == node)

    async def _bind(self, pod: Object, node: str) -> None:
        namespace, name = _key(pod)
        binding: Object = {
            "kind": BINDINGS.kind,
            "apiVersion": BINDINGS.api_version,
            "metadata": {"name": name, "namespace": namespace, "uid": uid_of(pod)},
            "target": {"kind": "Node", "name": node},
        }
        # Assumed before the write: its watch event may overtake the answer, and would find nothing to confirm.
        self._assumed[uid_of(pod)] = node
        try:
            await self._client.create(PODS, binding, namespace, name=name, subresource="binding")
        except StatusError as error:
            self._assumed.pop(uid_of(pod), None)
            if is_not_found(error) or is_conflict(error):
                return  # gone, another one of that name, or bound by somebody else: its next event tells
            raise
        except ConnectionLost:
            self._assumed.pop(uid_of(pod), None)
            raise
        self._recorder.record(POD_SCHEDULED, pod_uid=uid_of(pod), rule=RULE_BIND, facts={"node": node})
        self._events.event(pod, "Normal", "Scheduled", f"Successfully assigned {namespace}/{name} to {node}")
        latest = self._pods.get(namespace, name)
        if latest is None or uid_of(latest) != uid_of(pod) or latest["spec"].get("nodeName"):
            self._assumed.pop(uid_of(pod), None)

    async def _set_unschedulable(self, pod: Object, message: str) -> None:
        """PodScheduled False/Unschedulable. Source: schedule_one.go:updatePodCondition (podutil.UpdatePodCondition)."""
        conditions: list[Object] = pod.get("status", {}).get("conditions") or []
        old = next((c for c in conditions if c.get("type") == "PodScheduled"), None)
        new: Object = {
            "type": "PodScheduled",
            "observedGeneration": pod["metadata"].get("generation", 0),
            "status": "False",
            "lastProbeTime": None,
            "lastTransitionTime": rfc3339(now(self._world.clock)),
            "reason": "Unschedulable",
            "message": message,
        }
        if old is not None and old.get("status") == "False":
            new["lastTransitionTime"] = old.get("lastTransitionTime")
            if all(old.get(field) == new[field] for field in ("reason", "message", "observedGeneration")):
                return
        # A JSON merge patch replaces the list whole, so it must not pass over somebody else's write.
        patch = {
            "metadata": {"uid": uid_of(pod), "resourceVersion": resource_version_of(pod)},
            "status": {"conditions": [new if c is old else c for c in conditions] + ([] if old else [new])},
        }
        try:
            await self._client.patch(PODS, name_of(pod), patch, namespace_of(pod), subresource="status")
        except StatusError as error:
            if is_not_found(error):
                return
            if is_conflict(error):
                # The Pod has changed; look at it again as it is now.
                self._unschedulable.pop(_key(pod), None)
                self._queue.add_rate_limited(_key(pod))
                return
            raise


def _key(pod: Object) -> Key:
    return namespace_of(pod), name_of(pod)


def _index_by_node(pod: Object) -> tuple[str, ...]:
    node = pod.get("spec", {}).get("nodeName")
    return (node,) if node else ()


def _is_ours(pod: Object) -> bool:
    spec = pod.get("spec", {})
    return (
        spec.get("schedulerName", SCHEDULER_NAME) == SCHEDULER_NAME
        and not spec.get("schedulingGates")
        and pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")
    )


def _scheduling_properties(node: Object) -> tuple[object, ...]:
    return labels_of(node), taints_of(node), bool(node.get("spec", {}).get("unschedulable"))
