"""The workers of the Pods, and what wakes them: changes in the runtime and the passing of time."""

from __future__ import annotations

from lastcall.kube.node.parts.common import Common
from lastcall.kube.node.runtime.pleg import PodLifecycleEventGenerator
from lastcall.kube.node.workers.manager import PodWorkers
from lastcall.kube.node.workers.queue import WorkQueue
from lastcall.world.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class PodWork:
    """`queue` has the Pods that want another sync, `deadlines` those whose activeDeadlineSeconds end."""

    workers: PodWorkers
    pleg: PodLifecycleEventGenerator
    queue: WorkQueue
    deadlines: WorkQueue


def make_work(common: Common) -> PodWork:
    """Make the workers, which still have to be bound to their syncer."""
    given, calls = common.given, common.calls
    pleg = PodLifecycleEventGenerator(given.world, common.runtime, calls.handle_pleg_events)
    queue = WorkQueue(given.world, calls.handle_pod_sync)
    workers = PodWorkers(
        world=given.world,
        tasks=common.tasks,
        cache=pleg,
        events=common.events,
        recorder=given.recorder,
        requeue=queue.enqueue,
    )
    return PodWork(workers, pleg, queue, WorkQueue(given.world, calls.handle_pod_sync))
