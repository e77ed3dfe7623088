"""Graceful node shutdown, performed (nodeshutdown/nodeshutdown_manager_linux.go).

`lastcall node shutdown`, or SIGTERM to the node's process, takes the place of logind.
"""

# check: observes because it records its own decision

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import name_of, uid_of
from lastcall.kube.node.admission.critical_pods import priority_of
from lastcall.kube.node.admission.decide import Rejection
from lastcall.kube.node.interfaces import EventRecorder
from lastcall.kube.node.shutdown.decide import (
    CANCELLED,
    DEFAULT_GRACE_PERIODS,
    DETECTED,
    REJECTION,
    ShutdownGracePeriod,
    check_supported,
    grace_override,
    group_by_priority,
    shutdown_status,
)
from lastcall.kube.node.versions import Behaviour
from lastcall.kube.node.workers.manager import PodWorkers
from lastcall.records import kinds, rules
from lastcall.records.record import Recorder
from lastcall.world import crash_guard
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod
    from lastcall.records.definitions.controllers import DeletionDecided

log = logging.getLogger(__name__)

LOOK_SECONDS = 0.05
"""Between two looks whether the killed Pods' volumes are gone."""


class NodeShutdown:
    """`active_pods` are those that may run something; `on_change` is called when a shutdown begins or is cancelled."""

    def __init__(
        self,
        *,
        world: World,
        tasks: Tasks,
        workers: PodWorkers,
        events: EventRecorder,
        recorder: Recorder,
        node_name: str,
        active_pods: Callable[[], Sequence[Pod]],
        behaviour: Behaviour,
    ) -> None:
        self._world = world
        self._tasks = tasks
        self._workers = workers
        self._events = events
        self._recorder = recorder
        self._node_name = node_name
        self._node = {"kind": "Node", "apiVersion": "", "metadata": {"name": node_name, "uid": node_name}}
        self._active_pods = active_pods
        self._behaviour = behaviour
        self.on_change: Callable[[], None] = lambda: None
        self.shutting_down = False
        """From the request until it is cancelled: the node is not Ready and takes no Pod."""

    def admit(self, pod: Pod, others: list[Pod]) -> Rejection | None:
        """Return why a Pod is rejected, else None: an `AdmitHandler`."""
        return REJECTION if self.shutting_down else None

    async def shut_down(
        self,
        periods: Sequence[ShutdownGracePeriod] = DEFAULT_GRACE_PERIODS,
        progress: Callable[[str], None] = lambda text: None,
    ) -> None:
        """End every Pod, group after group; wait until all are gone or their time is over. They are not revived.

        Raises ShutdownNotSupported.
        """
        check_supported(self._behaviour, periods)
        if not self.shutting_down:
            self.shutting_down = True
            self._events.event(self._node, "Normal", "Shutdown", DETECTED)
            self.on_change()
        for period, pods in group_by_priority(periods, self._active_pods()):
            if not pods:
                continue  # nobody to wait for
            names = ", ".join(name_of(pod) for pod in pods)
            progress(f"priority {period.priority} and above, {period.seconds} s: {names}")
            for pod in pods:  # which goes on when the group's time is over
                kill = crash_guard.guarded("kubelet shutdown", uid_of(pod), self._kill(pod, period))
                self._tasks.spawn(kill, name=f"shutdown {uid_of(pod)}")
            try:
                async with asyncio.timeout(period.seconds):
                    while not all(self._workers.should_pod_be_finished(uid_of(pod)) for pod in pods):
                        await self._world.clock.sleep(LOOK_SECONDS)
            except TimeoutError:
                late = [name_of(pod) for pod in pods if not self._workers.should_pod_be_finished(uid_of(pod))]
                log.warning("shutdown manager: the time of priority %d is over: %s", period.priority, late)
                progress(f"the time of priority {period.priority} is over, still ending: {', '.join(late)}")

    def cancel(self) -> None:
        """Cancel: the machine stays up after all. Pods are taken again; those that were ended are not revived."""
        if self.shutting_down:
            self.shutting_down = False
            self._events.event(self._node, "Normal", "Shutdown", CANCELLED)
            self.on_change()

    async def _kill(self, pod: Pod, period: ShutdownGracePeriod) -> None:
        override = grace_override(period, pod)
        facts: DeletionDecided = {
            "why": f"the node is shutting down, and Pods of priority {period.priority} and above have "
            f"{period.seconds} s",
            "ownerKind": "Node",
            "owner": self._node_name,
            "observedResourceVersion": pod["metadata"].get("resourceVersion", ""),
            "priority": priority_of(pod),
            "gracePeriodSeconds": override,
            "ownGracePeriodSeconds": pod["spec"].get("terminationGracePeriodSeconds"),
        }
        self._recorder.record(
            kinds.DELETION_DECIDED, pod_uid=uid_of(pod), rule=rules.KILL_PODS_AT_SHUTDOWN, facts=facts
        )
        try:
            await self._workers.kill_pod_now(pod, evict=False, grace_period=override, pod_status_func=shutdown_status)
        except TimeoutError:
            return  # an Event says so; the worker goes on
