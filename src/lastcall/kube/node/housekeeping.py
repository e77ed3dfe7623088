"""Sweep every two seconds, so that the node runs what the kubelet is configured to run
(kubelet_pods.go:HandlePodCleanups)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import is_terminating, name_of, namespace_of, uid_of
from lastcall.kube.cri.api import RuntimeService, RuntimeServiceError
from lastcall.kube.node.garbage.manager import ContainerGC
from lastcall.kube.node.interfaces import PodStatus, VolumeManager
from lastcall.kube.node.parts.sources import PodSources
from lastcall.kube.node.parts.status import PodReports
from lastcall.kube.node.parts.work import PodWork
from lastcall.kube.node.pods.runtime_pod import RunningPod, is_terminal, pods_in_runtime, running_pod_of
from lastcall.kube.node.pods.spec import is_terminal_phase
from lastcall.kube.node.runtime.backoff import Backoff
from lastcall.kube.node.workers.transitions import State, UpdatePodOptions, UpdateType
from lastcall.world import crash_guard
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod

HOUSEKEEPING_SECONDS = 2.0

log = logging.getLogger(__name__)


class Housekeeping:
    """`forget(uid)` drops what other parts keep about a Pod that is gone for good; `is_held(uid)`: it is not to start
    yet."""

    def __init__(
        self,
        *,
        world: World,
        runtime: RuntimeService,
        sources: PodSources,
        work: PodWork,
        reports: PodReports,
        volumes: VolumeManager,
        gc: ContainerGC,
        backoff: Backoff,
        forget: Callable[[set[str]], None],
        is_held: Callable[[str], bool] = lambda uid: False,
    ) -> None:
        self._world = world
        self._runtime = runtime
        self._sources = sources
        self._work = work
        self._reports = reports
        self._volumes = volumes
        self._gc = gc
        self._backoff = backoff
        self._forget = forget
        self._is_held = is_held

    async def run(self) -> None:
        """Sweep until cancelled. Start only when the first SET of Pods is known: Pods that are not in it are ended."""
        # Until the workers know the first SET, every Pod without one counts as one that may run something: a Pod that
        # was rejected would stay Pending until the status manager's next resync.
        self._work.workers.sync_known_pods(self._sources.pods.get_pods())
        while True:
            await self._world.clock.sleep(HOUSEKEEPING_SECONDS)
            try:
                await self.handle_pod_cleanups()
            except RuntimeServiceError as error:
                log.warning("housekeeping failed, it is tried again: %s", error)
            except Exception as error:
                crash_guard.caught("kubelet housekeeping", "", error)

    async def handle_pod_cleanups(self) -> None:
        """Run one sweep. Raises RuntimeServiceError."""
        known_before = dict.fromkeys(self._work.workers.known_uids())
        in_runtime = pods_in_runtime(await self._runtime.list_pod_sandbox(), await self._runtime.list_containers())
        pods = self._sources.pods.get_pods()
        states = self._work.workers.sync_known_pods(pods)
        self._reports.probes.cleanup_pods(
            {uid for uid, state in states.items() if state in (State.SYNC, State.TERMINATING)}
        )
        uids = {uid_of(pod) for pod in pods}
        self._reports.statuses.remove_orphaned_statuses(uids)
        running = {uid for uid, status in in_runtime.items() if status.running_containers()}
        await self._volumes.remove_orphans(uids | set(self._work.workers.known_uids()) | running)
        self._delete_orphaned_mirrors()
        for pod in self._sources.pods.get_pods():
            with crash_guard.Turn("kubelet housekeeping", uid_of(pod)):
                self._restart_forgotten(pod)
        for pod in self._sources.pods.get_pods():
            with crash_guard.Turn("kubelet housekeeping", uid_of(pod)):
                self._finish_terminal(pod, in_runtime)
        # A Pod that had a worker when the listing began may have ended since: the listing says nothing about it.
        self._kill_orphans([status for uid, status in in_runtime.items() if uid not in known_before])
        await self._gc.collect_gone(list(in_runtime.values()))
        self._drop_memories(in_runtime)

    def _delete_orphaned_mirrors(self) -> None:
        """A mirror goes when its static Pod is not wanted any more and has ended (kubelet_pods.go:
        deleteOrphanedMirrorPods)."""
        for mirror in self._sources.pods.get_mirrors():
            if self._sources.pods.static_pod_of(mirror) is None and not self._work.workers.is_static_pod_terminating(
                namespace_of(mirror), name_of(mirror)
            ):
                self._sources.mirrors.delete_orphan(mirror)

    def _restart_forgotten(self, pod: Pod) -> None:
        """A Pod that is wanted but has no worker (a UID used again) starts over."""
        uid = uid_of(pod)
        status = self._reports.statuses.get_pod_status(uid) or {}
        ended = is_terminal(pod) or is_terminal_phase(status.get("phase"))
        if not ended and not self._is_held(uid) and self._work.workers.state_of(uid) is State.UNKNOWN:
            self._work.workers.update_pod(UpdatePodOptions(UpdateType.CREATE, pod))

    def _finish_terminal(self, pod: Pod, in_runtime: dict[str, PodStatus]) -> None:
        """A Pod that never had a worker (a rejected one) needs one to be deleted (filterTerminalPodsToDelete)."""
        uid = uid_of(pod)
        if (
            is_terminating(pod)
            and is_terminal(pod)
            and self._work.workers.state_of(uid) is State.UNKNOWN
            and uid not in in_runtime
        ):
            self._work.workers.update_pod(UpdatePodOptions(UpdateType.KILL, pod))

    def _kill_orphans(self, candidates: list[PodStatus]) -> None:
        """Pods that run and have no worker: force deleted, say, while the node was down, or rejected after it."""
        for status in candidates:
            with crash_guard.Turn("kubelet housekeeping", status.uid):
                self._kill_orphan(status)

    def _kill_orphan(self, status: PodStatus) -> None:
        running = running_pod_of(status)
        ready = status.ready_sandboxes()
        if not (running.containers or ready) or self._work.workers.state_of(status.uid) is not State.UNKNOWN:
            return
        if self._is_held(status.uid):
            return
        orphan = RunningPod(status.uid, status.name, status.namespace, running.containers, running.sandboxes)
        self._work.workers.update_pod(UpdatePodOptions(UpdateType.KILL, running_pod=orphan))

    def _drop_memories(self, in_runtime: dict[str, PodStatus]) -> None:
        """Caches keep nothing about Pods that neither configuration, nor a worker, nor the runtime knows."""
        self._backoff.collect_garbage(self._world.clock.wall_ns())
        kept = (
            {uid_of(pod) for pod in self._sources.pods.get_pods()}
            | set(self._work.workers.known_uids())
            | set(in_runtime)
        )
        for uid in self._work.pleg.known_uids():
            if uid not in kept:
                self._work.pleg.forget(uid)
                self._reports.reasons.forget(uid)
        self._forget(kept)
