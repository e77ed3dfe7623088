"""The node lifecycle controller: notices nodes that give no sign of life, marks them and their Pods, taints them.

Source: pkg/controller/nodelifecycle/node_lifecycle_controller.go. The Pods of a tainted node are evicted by the taint
eviction controller.
"""

# check: many attributes NodeLifecycleController because it joins four caches and keeps the health of each node

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from lastcall.kube.api.errors import StatusError, is_conflict, is_not_found
from lastcall.kube.api.meta import labels_of, name_of, namespace_of, resource_version_of, uid_of
from lastcall.kube.api.pods.spec import get_condition
from lastcall.kube.api.resources import LEASES, NODES, PODS
from lastcall.kube.api.scheduling import NO_EXECUTE, NO_SCHEDULE, taints_of
from lastcall.kube.client.api import STRATEGIC_MERGE_PATCH, Client, ConnectionLost
from lastcall.kube.client.events import EventRecorder, tell_of_fault
from lastcall.kube.client.informer import Informer
from lastcall.kube.controllers.informers import NODE, Informers
from lastcall.kube.controllers.nodes.health import (
    MONITOR_PERIOD_SECONDS,
    NO_EXECUTE_OF_READY,
    Effect,
    NodeHealth,
    examine,
    has_taint,
    no_schedule_taints,
    swapped,
    zone_of,
)
from lastcall.kube.controllers.nodes.zones import Zones
from lastcall.kube.controllers.worker import Retry, Synced, Worker, split_key
from lastcall.records.record import Recorder
from lastcall.world import crash_guard
from lastcall.world.clock import now, rfc3339
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.node import Lease, Node
    from lastcall.kube.api.types.pod import Pod

log = logging.getLogger(__name__)

LEASE_NAMESPACE = "kube-node-lease"
EXCLUDED_FROM_DISRUPTION = "node.kubernetes.io/exclude-disruption"
TRIES = 5


class NodeLifecycleController:
    """Nodes that changed get their NoSchedule taints at once; every 5 s all are examined."""

    def __init__(self, world: World, client: Client, informers: Informers, recorder: Recorder) -> None:
        self._world = world
        self._client = client
        self._events = EventRecorder(client, world, "node-controller")
        self._nodes: Informer[Node] = informers.get(NODES)
        self._pods: Informer[Pod] = informers.get(PODS)
        self._leases: Informer[Lease] = informers.of(LEASES, LEASE_NAMESPACE)
        self._zones = Zones()
        self._health: dict[str, NodeHealth] = {}
        self._known: dict[str, Node] = {}
        self._retry_marking: dict[str, None] = {}
        self._unknown: dict[str, None] = {}
        self._turns: dict[str, float] = {}  # when a node was last taken out of its queue, to be tainted
        self._to_taint = asyncio.Event()
        self._taints = Worker(world, "node-lifecycle taints", self._sync_no_schedule, events=self._events)
        self._assigned = Worker(world, "node-lifecycle pods", self._sync_assigned, events=self._events)
        self._nodes.add_handler(
            lambda node: self._taints.queue.add(name_of(node)),
            lambda _, node: self._taints.queue.add(name_of(node)),
        )
        self._pods.add_handler(self._pod_added, self._pod_updated)

    async def run(self) -> None:
        """Work until cancelled."""
        async with Tasks() as tasks:
            tasks.spawn(self._leases.run(), name="informer leases")
            tasks.spawn(self._events.run(), name="node-lifecycle events")
            synced: list[Synced] = [self._nodes, self._pods, self._leases]
            tasks.spawn(self._taints.run(synced), name="node-lifecycle taints")
            tasks.spawn(self._assigned.run([self._pods, self._nodes, self._leases]), name="node-lifecycle pods")
            for informer in synced:
                await informer.synced()
            tasks.spawn(
                crash_guard.keep_running("node-lifecycle evictions", self._taint_no_execute, self._world.clock),
                name="node-lifecycle evictions",
            )
            while True:
                with crash_guard.Turn("node-lifecycle health", ""):
                    await self._monitor()
                await self._world.clock.sleep(MONITOR_PERIOD_SECONDS)

    # -- NoSchedule taints follow conditions

    async def _sync_no_schedule(self, name: str) -> None:
        node = self._nodes.get("", name)
        if node is None:
            return
        add, remove = no_schedule_taints(node)
        if add or remove:
            await self._swap(node, NO_SCHEDULE, add, remove)

    async def _swap(self, node: Node, effect: Effect, add: Sequence[str], remove: Sequence[str]) -> None:
        """Send one PATCH that may not pass over another client's change of the taints (`SwapNodeControllerTaint`)."""
        name = name_of(node)
        for _ in range(TRIES):
            taints = swapped(taints_of(node), effect, add, remove, self._moment())
            if taints == taints_of(node):
                return
            patch = {
                "metadata": {"resourceVersion": resource_version_of(node)},
                "spec": {"taints": taints or None},
            }
            try:
                await self._client.patch(NODES, name, patch)
                return
            except StatusError as error:
                if is_not_found(error):
                    return
                if not is_conflict(error):
                    raise
            node = cast("Node", await self._client.get(NODES, name))
        raise Retry(f"taints of node {name} change all the time")

    # -- every 5 s

    async def _monitor(self) -> None:
        """`monitorNodeHealth`."""
        nodes = self._nodes.items()
        self._notice(nodes)
        ready: dict[str, list[bool]] = {}
        for node in nodes:
            try:
                current = await self._monitor_one(node)
            except (StatusError, ConnectionLost, Retry) as error:
                log.warning("health of node %s not updated: %s", name_of(node), error)
                continue
            except Exception as error:
                self._caught("health", node, error)
                continue
            if EXCLUDED_FROM_DISRUPTION not in labels_of(node):
                ready.setdefault(zone_of(node), []).append(current == "True")
        change = self._zones.handle_disruption(ready, self._seconds())
        if change == "entered":
            for node in nodes:
                await self._try_reachable(node)
        elif change == "left":
            # While no node was seen, no node's time has run.
            for name, health in self._health.items():
                self._health[name] = NodeHealth(self._seconds(), health.heartbeat, health.renewed)
        self._to_taint.set()

    def _notice(self, nodes: Sequence[Node]) -> None:
        """Nodes that came and went (`classifyNodes`)."""
        present = {name_of(node): node for node in nodes}
        for name, node in present.items():
            if name not in self._known:
                self._known[name] = node
                self._say(node, "RegisteredNode", f"Registered Node {name} in Controller")
                self._zones.queue(zone_of(node))
        for name in [name for name in self._known if name not in present]:
            node = self._known.pop(name)
            self._health.pop(name, None)
            self._retry_marking.pop(name, None)
            self._unknown.pop(name, None)
            self._turns.pop(name, None)
            self._zones.queue(zone_of(node)).remove(name)
            self._say(node, "RemovingNode", f"Removing Node {name} from Controller")

    async def _monitor_one(self, node: Node) -> str | None:
        """The status of the condition Ready; None without one."""
        name = name_of(node)
        lease = self._leases.get(LEASE_NAMESPACE, name)
        found = examine(node, lease, self._health.get(name), self._seconds(), self._moment())
        if found.status is not None:
            try:
                await self._client.update(NODES, {**node, "status": found.status}, subresource="status")
            except StatusError as error:
                if is_conflict(error) or is_not_found(error):
                    return found.observed  # it has changed: the next look decides
                raise
        self._health[name] = found.health
        if found.current is None:
            return None
        if found.observed == "Unknown" and name not in self._unknown:
            # The process that wrote that, before us, may have died between the node's status and that of its Pods.
            self._unknown[name] = self._retry_marking[name] = None
        elif found.observed != "Unknown":
            self._unknown.pop(name, None)
        await self._taint_base_eviction(node, found.observed)
        lost = found.current != "True" and found.observed == "True"
        if lost:
            self._say(node, "NodeNotReady", f"Node {name} status is now: NodeNotReady")
        marked = True
        if lost or (name in self._retry_marking and found.observed != "True"):
            marked = await self._mark_not_ready(self._pods.by_index(NODE, name))
        if marked:
            self._retry_marking.pop(name, None)
        else:
            self._retry_marking[name] = None
        return found.current

    async def _taint_base_eviction(self, node: Node, ready: str) -> None:
        """`processTaintBaseEviction`: a node evicted from for one reason continues for the other."""
        if ready == "True":
            await self._reachable(node)
            return
        key = NO_EXECUTE_OF_READY[ready]
        (other,) = (each for each in NO_EXECUTE_OF_READY.values() if each != key)
        if has_taint(node, other):
            await self._swap(node, NO_EXECUTE, [key], [other])
            return
        queue = self._zones.queue(zone_of(node))
        turn = self._turns.get(name_of(node), -math.inf)
        # What a turn of this very pass writes need not have come back; to queue the node again would cost another turn.
        if not has_taint(node, key) and self._seconds() - turn >= MONITOR_PERIOD_SECONDS:
            queue.remove(name_of(node))
        queue.add(name_of(node))  # `_monitor` wakes the tainting when it has seen all nodes

    async def _reachable(self, node: Node) -> None:
        """No NoExecute taint of ours (`markNodeAsReachable`)."""
        self._turns.pop(name_of(node), None)
        self._zones.queue(zone_of(node)).remove(name_of(node))
        ours = tuple(NO_EXECUTE_OF_READY.values())
        if any(has_taint(node, key) for key in ours):
            await self._swap(node, NO_EXECUTE, [], ours)

    async def _try_reachable(self, node: Node) -> None:
        try:
            await self._reachable(node)
        except (StatusError, ConnectionLost, Retry) as error:
            log.warning("node %s keeps its taints for now: %s", name_of(node), error)
        except Exception as error:
            self._caught("taints", node, error)

    # -- NoExecute taints, at the rate of the zone

    async def _taint_no_execute(self) -> None:
        while True:
            self._to_taint.clear()
            waits = []
            for queue in self._zones.queues.values():
                while (name := queue.take(self._seconds())) is not None:
                    await self._taint_one(name)
                wait = queue.seconds_to_wait(self._seconds())
                if wait is not None:
                    waits.append(wait)
            try:
                async with asyncio.timeout(min(waits) if waits else None):
                    await self._to_taint.wait()
            except TimeoutError:
                continue

    async def _taint_one(self, name: str) -> None:
        node = self._nodes.get("", name)
        condition = get_condition((node or {}).get("status") or {}, "Ready")
        if node is None or condition is None:
            return
        key = NO_EXECUTE_OF_READY.get(str(condition.get("status")))
        if key is None:
            return  # Ready again
        others = [each for each in NO_EXECUTE_OF_READY.values() if each != key]
        self._turns[name] = self._seconds()
        try:
            await self._swap(node, NO_EXECUTE, [key], others)
        except (StatusError, ConnectionLost, Retry) as error:
            log.warning("node %s not tainted: %s", name, error)
            self._untainted(node)
        except Exception as error:
            self._caught("taints", node, error)
            self._untainted(node)

    def _untainted(self, node: Node) -> None:
        self._turns.pop(name_of(node), None)
        self._zones.queue(zone_of(node)).remove(name_of(node))  # the next pass finds it without its taint

    def _caught(self, part: str, node: Node, error: Exception) -> None:
        crash_guard.caught(f"node-lifecycle {part}", name_of(node), error)
        tell_of_fault(self._events, node, error)

    # -- Pods of nodes that are not Ready

    def _pod_added(self, pod: Pod) -> None:
        if (pod.get("spec") or {}).get("nodeName"):
            self._look_at_assigned(pod)

    def _pod_updated(self, old: Pod, new: Pod) -> None:
        node = (new.get("spec") or {}).get("nodeName")
        if node and node != (old.get("spec") or {}).get("nodeName"):
            self._look_at_assigned(new)

    def _look_at_assigned(self, pod: Pod) -> None:
        """A Pod that gets a node which is not Ready."""
        node = self._nodes.get("", pod["spec"]["nodeName"])
        condition = get_condition((node or {}).get("status") or {}, "Ready")
        if condition is not None and condition.get("status") != "True":
            self._assigned.queue.add(f"{namespace_of(pod)}/{name_of(pod)}")

    async def _sync_assigned(self, key: str) -> None:
        pod = self._pods.get(*split_key(key))
        if pod is None or pod["spec"]["nodeName"] not in self._health:
            return
        node = self._nodes.get("", pod["spec"]["nodeName"])
        condition = get_condition((node or {}).get("status") or {}, "Ready")
        if condition is not None and condition.get("status") != "True" and not await self._mark_not_ready([pod]):
            raise Retry(f"{key} not marked")

    async def _mark_not_ready(self, pods: Sequence[Pod]) -> bool:
        """The Pods' condition Ready turns False, nothing else; False when one could not be written."""
        done = True
        for pod in pods:
            condition = get_condition(pod.get("status") or {}, "Ready")
            if condition is None or condition.get("status") == "False":
                continue
            new = {
                **condition,
                "status": "False",
                "observedGeneration": pod["metadata"].get("generation", 0),
                "lastTransitionTime": self._moment(),
            }
            patch = {"metadata": {"uid": uid_of(pod)}, "status": {"conditions": [new]}}
            try:
                await self._client.patch(
                    PODS,
                    name_of(pod),
                    patch,
                    namespace_of(pod),
                    content_type=STRATEGIC_MERGE_PATCH,
                    subresource="status",
                )
            except (StatusError, ConnectionLost) as error:
                if isinstance(error, StatusError) and is_not_found(error):
                    continue
                log.warning("Pod %s/%s not marked not ready: %s", namespace_of(pod), name_of(pod), error)
                done = False
                continue
            except Exception as error:
                crash_guard.caught("node-lifecycle pods", f"{namespace_of(pod)}/{name_of(pod)}", error)
                tell_of_fault(self._events, pod, error)
                done = False
                continue
            self._events.event(pod, "Warning", "NodeNotReady", "Node is not ready")
        return done

    # -- small things

    def _say(self, node: Node, reason: str, message: str) -> None:
        reference = {"kind": "Node", "apiVersion": "v1", "metadata": {"name": name_of(node), "uid": uid_of(node)}}
        self._events.event(reference, "Normal", reason, message)

    def _seconds(self) -> float:
        return now(self._world.clock).timestamp()

    def _moment(self) -> str:
        return rfc3339(now(self._world.clock))
