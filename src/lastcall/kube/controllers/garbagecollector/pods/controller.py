"""The Pod garbage collector: removes by force the Pods that nobody will end.

Source: pkg/controller/podgc/gc_controller.go. Caches tell which Pods and nodes there are, so that a round costs no more
than what it finds; that a node is gone is asked of the API.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from lastcall.kube.api.disruption import disruption_target
from lastcall.kube.api.errors import StatusError, is_conflict, is_not_found
from lastcall.kube.api.meta import is_terminating, name_of, namespace_of, uid_of
from lastcall.kube.api.pods.spec import get_condition, is_pod_terminal, pod_key
from lastcall.kube.api.resources import NODES, PODS
from lastcall.kube.client.api import STRATEGIC_MERGE_PATCH, Client, ConnectionLost
from lastcall.kube.client.informer import Informer
from lastcall.kube.controllers.garbagecollector.pods.decide import (
    PERIOD_SECONDS,
    TERMINATED_POD_THRESHOLD,
    Quarantine,
    excess_terminated,
    is_out_of_service,
    is_pod_terminated,
    is_unscheduled_terminating,
)
from lastcall.kube.controllers.informers import NODE, Informers
from lastcall.kube.controllers.pods.control import delete_pod
from lastcall.records import rules
from lastcall.records.record import Recorder
from lastcall.world import crash_guard
from lastcall.world.clock import monotonic, now, rfc3339
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.node import Node
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.pod_status import PodCondition, PodStatus
    from lastcall.records.definitions.parts import GroundsOfDecision

_log = logging.getLogger(__name__)

COMPONENT = "pod-garbage-collector-controller"


class PodGarbageCollector:
    """`threshold` is how many terminated Pods are kept (--terminated-pod-gc-threshold), 0 for all."""

    def __init__(
        self,
        world: World,
        client: Client,
        informers: Informers,
        recorder: Recorder,
        threshold: int = TERMINATED_POD_THRESHOLD,
    ) -> None:
        self._world, self._client, self._recorder = world, client, recorder
        self._threshold = threshold
        self._pods: Informer[Pod] = informers.get(PODS)
        self._nodes: Informer[Node] = informers.get(NODES)
        self._terminated: dict[str, Pod] = {}
        self._unscheduled: dict[str, Pod] = {}
        self._quarantine = Quarantine()
        self._pods.add_handler(self._observe, lambda _, pod: self._observe(pod), self._forget)

    def _observe(self, pod: Pod) -> None:
        for kept, holds in ((self._terminated, is_pod_terminated), (self._unscheduled, is_unscheduled_terminating)):
            if holds(pod):
                kept[pod_key(pod)] = pod
            elif kept:
                kept.pop(pod_key(pod), None)

    def _forget(self, pod: Pod) -> None:
        for kept in (self._terminated, self._unscheduled):
            if kept:
                kept.pop(pod_key(pod), None)

    async def run(self) -> None:
        """Run a round every 20 s until cancelled; starts when the caches are filled."""
        await self._pods.synced()
        await self._nodes.synced()
        while True:
            with suppress(ConnectionLost):  # the next round finds them again
                await self._round()
            await self._world.clock.sleep(PERIOD_SECONDS)

    async def _round(self) -> None:
        """(`gc`)"""
        for part in (self._excess, self._out_of_service, self._orphaned, self._never_scheduled):
            try:
                await part()
            except ConnectionLost:
                raise
            except Exception as error:
                crash_guard.caught(COMPONENT, part.__name__.strip("_"), error)

    async def _excess(self) -> None:
        for pod in excess_terminated(list(self._terminated.values()), self._threshold):
            facts: GroundsOfDecision = {"terminated": len(self._terminated), "threshold": self._threshold}
            why = f"more than {self._threshold} Pods have ended"
            await self._remove(pod, rule=rules.GC_TERMINATED, why=why, facts=facts)

    async def _never_scheduled(self) -> None:
        for pod in list(self._unscheduled.values()):
            why = "it is being deleted and has no node that would end it"
            await self._remove(pod, rule=rules.GC_UNSCHEDULED_TERMINATING, why=why, facts={})

    async def _out_of_service(self) -> None:
        for node in self._nodes.items():
            if not is_out_of_service(node):
                continue
            name = name_of(node)
            for pod in self._pods.by_index(NODE, name):
                if is_terminating(pod):
                    why = f"its node {name} is not Ready and out of service"
                    await self._remove(pod, rule=rules.GC_TERMINATING, why=why, facts={"node": name})

    async def _orphaned(self) -> None:
        missing = [name for name in self._pods.index_values(NODE) if self._nodes.get("", name) is None]
        for name in self._quarantine.look(missing, monotonic(self._world.clock)):
            if await self._exists(name):
                continue
            remove = partial(self._remove, rule=rules.GC_ORPHANED, why=f"its node {name} no longer exists")
            for pod in self._pods.by_index(NODE, name):
                target = disruption_target("DeletionByPodGC", "PodGC: node no longer exists")
                await remove(pod, facts={"node": name}, condition=target)

    async def _exists(self, node: str) -> bool:
        """Ask the API, because the cache may be behind. Return True when the answer is unknown."""
        try:
            await self._client.get(NODES, node)
        except StatusError as error:
            return not is_not_found(error)
        return True

    async def _remove(
        self, pod: Pod, *, rule: rules.Rule, why: str, facts: GroundsOfDecision, condition: PodCondition | None = None
    ) -> None:
        """Mark the Pod Failed, because no kubelet will, then remove it. What is refused is tried in the next round.

        (`markFailedAndDeletePodWithCondition`)
        """
        meta = pod["metadata"]
        if is_pod_terminal(pod) and meta.get("finalizers") and meta.get("deletionGracePeriodSeconds") == 0:
            return  # only its finalizers hold it
        try:
            if not is_pod_terminal(pod):
                await self._mark_failed(pod, condition)
            options = {"grace_period_seconds": 0, "uid": uid_of(pod)}
            await delete_pod(self._client, self._recorder, pod, None, rule=rule, why=why, facts=facts, options=options)
        except StatusError as error:
            if not (is_not_found(error) or is_conflict(error)):
                _log.warning("%s: %s: %s", COMPONENT, pod_key(pod), error)
        except ConnectionLost:
            raise
        except Exception as error:
            crash_guard.caught(COMPONENT, pod_key(pod), error)

    async def _mark_failed(self, pod: Pod, condition: PodCondition | None) -> None:
        generation = pod["metadata"].get("generation", 0)
        status: PodStatus = {"phase": "Failed", "observedGeneration": generation}
        if condition is not None:
            condition = {**condition, "observedGeneration": generation}
            old = get_condition(pod.get("status") or {}, condition["type"])
            if old is None or old.get("status") != condition.get("status"):
                condition = {**condition, "lastTransitionTime": rfc3339(now(self._world.clock))}
            status["conditions"] = [condition]
        patch = {"metadata": {"uid": uid_of(pod)}, "status": status}
        await self._client.patch(
            PODS, name_of(pod), patch, namespace_of(pod), content_type=STRATEGIC_MERGE_PATCH, subresource="status"
        )
