"""Node-pressure eviction, performed (eviction/eviction_manager.go). The rules stand in `decide`.

What the node and its Pods use comes through `NodeStats`, so that it can be simulated.
"""

# check: observes because it records its own decision

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from lastcall.kube.api.meta import resource_version_of, uid_of
from lastcall.kube.node.admission.critical_pods import is_critical_pod, priority_of
from lastcall.kube.node.admission.decide import Rejection
from lastcall.kube.node.eviction.decide import (
    IMMEDIATE_GRACE_SECONDS,
    REASON,
    SIGNALS,
    EvictionConfig,
    Observations,
    PodUsage,
    PressureState,
    Threshold,
    admit_under_pressure,
    evicted_status,
    eviction_grace,
    eviction_message,
    has_storage_limits,
    next_pressure,
    ranked,
    storage_violation,
    thresholds_met,
)
from lastcall.kube.node.interfaces import EventRecorder
from lastcall.kube.node.versions import Behaviour
from lastcall.kube.node.workers.manager import PodWorkers
from lastcall.records import kinds, rules
from lastcall.records.record import Recorder
from lastcall.world import crash_guard
from lastcall.world.clock import monotonic
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod
    from lastcall.records.definitions.controllers import DeletionDecided
    from lastcall.records.definitions.parts import GroundsOfDecision

log = logging.getLogger(__name__)

MONITORING_SECONDS = 10.0
CLEANUP_SECONDS = 30.0
CLEANUP_LOOK_SECONDS = 1.0
"""How long, and how often, an evicted Pod's end is waited for before the node is looked at again."""

DISK_PRESSURE = "DiskPressure"


class NodeStats(Protocol):
    """What is used. Whatever cannot be read is left out."""

    async def observe(self) -> Observations:
        """Return observations by signal."""
        ...

    async def pod_usage(self, pods: Sequence[Pod]) -> dict[str, PodUsage]:
        """Return the usage of Pods by UID."""
        ...


class EvictionManager:
    """`run` until cancelled. It calls `on_change` when `conditions` have changed."""

    def __init__(
        self,
        *,
        world: World,
        workers: PodWorkers,
        events: EventRecorder,
        recorder: Recorder,
        node_name: str,
        config: EvictionConfig,
        stats: NodeStats | None,
        active_pods: Callable[[], Sequence[Pod]],
        behaviour: Behaviour,
        reclaim: Sequence[Callable[[], Awaitable[None]]] = (),
    ) -> None:
        """`reclaim` gives disk back that no Pod needs: asked, in this order, before a Pod is evicted for it."""
        self._world = world
        self._workers = workers
        self._events = events
        self._recorder = recorder
        self._node_name = node_name
        self._config = config
        self._stats = stats
        self._active_pods = active_pods
        self._behaviour = behaviour
        self._reclaim = reclaim
        self._state = PressureState()
        self.on_change: Callable[[], None] = lambda: None

    @property
    def conditions(self) -> tuple[str, ...]:
        """Return the conditions that hold, of MemoryPressure, DiskPressure and PIDPressure."""
        return self._state.conditions

    def admit(self, pod: Pod, others: list[Pod]) -> Rejection | None:
        """Return why a Pod is rejected, else None: an `AdmitHandler`."""
        return admit_under_pressure(pod, self.conditions)

    async def run(self) -> None:
        """Check every 10 s; after an eviction as soon as its Pod is gone."""
        while self._stats is not None:
            evicted: list[Pod] = []
            try:
                evicted = await self.synchronize(self._stats)
            except Exception as error:
                crash_guard.caught("kubelet eviction", "", error)
            if evicted:
                await self._wait_for_cleanup(evicted)
            else:
                await self._world.clock.sleep(MONITORING_SECONDS)

    async def synchronize(self, stats: NodeStats) -> list[Pod]:
        """Run one pass; return the evicted Pods: any number for their own storage limits, else at most one."""
        seen = await stats.observe()
        before = self.conditions
        self._state, thresholds = next_pressure(self._config, self._state, seen, monotonic(self._world.clock))
        if set(self.conditions) != set(before):
            self.on_change()
        pods = list(self._active_pods())
        limited = [pod for pod in pods if has_storage_limits(pod)]
        usages = await stats.pod_usage(pods if thresholds else limited) if limited or thresholds else {}
        evicted = []
        for pod in limited:
            with crash_guard.Turn("kubelet eviction", uid_of(pod)):
                violation = self._storage_violation(pod, usages)
                if violation and await self._evict(
                    pod, self._immediate, violation, rules.LOCAL_STORAGE_EVICTION, {}, disruption=False
                ):
                    evicted.append(pod)
        if evicted or not thresholds:
            return evicted
        return await self._relieve(stats, thresholds, seen, pods, usages)

    @property
    def _immediate(self) -> int:
        """Seconds of grace of a Pod that is evicted at once."""
        return IMMEDIATE_GRACE_SECONDS if self._behaviour.eviction_asks_for_a_second else 0

    def _storage_violation(self, pod: Pod, usages: Mapping[str, PodUsage]) -> str:
        usage = usages.get(uid_of(pod))
        return (
            storage_violation(pod, usage, of_sidecars=self._behaviour.sidecar_storage_limit)
            if usage is not None
            else ""
        )

    async def _reclaim_node_level_resources(self, stats: NodeStats, threshold: Threshold) -> bool:
        """Whether it is enough without an eviction (eviction_manager.go:reclaimNodeLevelResources)."""
        if SIGNALS[threshold.signal].condition != DISK_PRESSURE or not self._reclaim:
            return False
        for reclaim in self._reclaim:
            try:
                await reclaim()
            except Exception as error:
                crash_guard.noticed("kubelet eviction", "reclaim", error)
                log.warning("eviction manager: unexpected error when attempting to reclaim disk: %s", error)
        return not thresholds_met(self._config.thresholds, await stats.observe(), to_resolve=True)

    async def _relieve(
        self,
        stats: NodeStats,
        thresholds: Sequence[Threshold],
        seen: Observations,
        pods: list[Pod],
        usages: dict[str, PodUsage],
    ) -> list[Pod]:
        threshold = thresholds[0]
        resource = SIGNALS[threshold.signal].resource
        node = {"kind": "Node", "apiVersion": "", "metadata": {"name": self._node_name, "uid": self._node_name}}
        self._events.event(node, "Warning", "EvictionThresholdMet", f"Attempting to reclaim {resource}")
        if await self._reclaim_node_level_resources(stats, threshold):
            log.info("eviction manager: able to reduce %s pressure without evicting pods", resource)
            return []
        candidates = ranked(pods, usages, resource)
        for rank, pod in enumerate(candidates, 1):
            message = eviction_message(pod, usages.get(uid_of(pod)), threshold, thresholds, seen)
            grace = self._immediate if threshold.hard else eviction_grace(threshold, pod, self._config)
            facts: GroundsOfDecision = {
                "rank": rank,
                "candidates": len(candidates),
                "signal": threshold.signal,
                "hard": threshold.hard,
            }
            if await self._evict(pod, grace, message, rules.EVICT_UNDER_PRESSURE, facts, disruption=True):
                return [pod]
        log.warning("eviction manager: there is nobody to evict for %s", resource)
        return []

    async def _evict(
        self, pod: Pod, grace: int, message: str, rule: rules.Rule, facts: GroundsOfDecision, *, disruption: bool
    ) -> bool:
        """Whether it was; returns when its containers have stopped, or should have."""
        if is_critical_pod(pod):
            log.warning("eviction manager: %s is critical and stays", pod["metadata"]["name"])
            return False
        decided: DeletionDecided = {
            "why": message.strip(),
            "ownerKind": "Node",
            "owner": self._node_name,
            "observedResourceVersion": resource_version_of(pod),
            "priority": priority_of(pod),
            "gracePeriodSeconds": grace,
            **facts,
        }
        self._recorder.record(kinds.DELETION_DECIDED, pod_uid=uid_of(pod), rule=rule, facts=decided)
        self._events.event(pod, "Warning", REASON, message)
        try:
            await self._workers.kill_pod_now(
                pod, evict=True, grace_period=grace, pod_status_func=evicted_status(message, disruption=disruption)
            )
        except TimeoutError:
            log.warning("eviction manager: %s does not end in time", pod["metadata"]["name"])
        return True

    async def _wait_for_cleanup(self, pods: Sequence[Pod]) -> None:
        deadline = monotonic(self._world.clock) + CLEANUP_SECONDS
        while monotonic(self._world.clock) < deadline:
            await self._world.clock.sleep(CLEANUP_LOOK_SECONDS)
            if all(self._workers.should_pod_be_finished(uid_of(pod)) for pod in pods):
                return
