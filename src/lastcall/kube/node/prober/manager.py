"""The probe workers of all Pods, and what their results mean for a status. Source: prober/prober_manager.go."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import uid_of
from lastcall.kube.api.text.times import parse_rfc3339
from lastcall.kube.cri.api import RuntimeService
from lastcall.kube.node.interfaces import Dialer, EventRecorder, ProbeResult, ProbeType
from lastcall.kube.node.pods.spec import containers_of, init_containers_of, is_restartable_init_container
from lastcall.kube.node.prober.decide import find_container_status, probe_of
from lastcall.kube.node.prober.results import Changed, Results
from lastcall.kube.node.prober.worker import ProbeContext, ProbeWorker, Statuses
from lastcall.kube.node.status.containers import runtime_id
from lastcall.kube.node.status.features import StatusFeatures
from lastcall.records.record import Recorder
from lastcall.world import crash_guard
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.pod_status import ContainerStatus as APIContainerStatus
    from lastcall.kube.api.types.pod_status import PodStatus as APIPodStatus

PROBE_TYPES: tuple[ProbeType, ...] = ("startup", "readiness", "liveness")


class PodProbeManager:
    """Implements `interfaces.ProbeManager`. Workers are tasks of `tasks`."""

    def __init__(
        self,
        *,
        world: World,
        tasks: Tasks,
        runtime: RuntimeService,
        dialer: Dialer,
        events: EventRecorder,
        recorder: Recorder,
        statuses: Statuses,
        features: StatusFeatures,
    ) -> None:
        self._tasks = tasks
        self._context = ProbeContext(
            world, runtime, dialer, events, recorder, statuses, features, world.clock.wall_ns() / 1e9
        )
        self._callbacks: list[Changed] = []
        self._results: dict[ProbeType, Results] = {kind: Results(kind, self._changed) for kind in PROBE_TYPES}
        self._workers: dict[tuple[str, str, ProbeType], ProbeWorker] = {}

    def add_pod(self, pod: Pod) -> None:
        """Start a worker for every probe that has none yet."""
        sidecars = [c for c in init_containers_of(pod) if is_restartable_init_container(c)]
        for container in (*containers_of(pod), *sidecars):
            for kind in PROBE_TYPES:
                key = (uid_of(pod), container["name"], kind)
                if not probe_of(container, kind) or key in self._workers:
                    continue
                worker = ProbeWorker(self._context, kind, pod, container, container in sidecars, self._results[kind])
                self._workers[key] = worker
                run = crash_guard.guarded("kubelet prober", "/".join(key), worker.run(self._ended))
                self._tasks.spawn(run, name=f"probe-{kind}-{key[0]}-{key[1]}")

    def stop_liveness_and_startup(self, pod: Pod) -> None:
        """Stop these probes when the Pod's end begins; readiness goes on, and so does the liveness of sidecars."""
        for container in containers_of(pod):
            for kind in ("liveness", "startup"):
                self._stop((uid_of(pod), container["name"], kind))

    def remove_pod(self, pod: Pod) -> None:
        self._remove(uid_of(pod))

    def cleanup_pods(self, desired_uids: set[str]) -> None:
        for uid in dict.fromkeys(key[0] for key in self._workers):
            if uid not in desired_uids:
                self._remove(uid)

    def update_pod_status(self, pod: Pod, status: APIPodStatus) -> None:
        """Fill `started` and `ready`; a started container whose readiness is unknown is probed at once."""
        sidecars = {c["name"] for c in init_containers_of(pod) if is_restartable_init_container(c)}
        for container in status.get("containerStatuses") or []:
            container["started"] = self._is_started(pod, container)
            container["ready"] = container["started"] and self._is_ready(pod, container)
        for container in status.get("initContainerStatuses") or []:
            container["started"] = self._is_started(pod, container)
            if container["name"] in sidecars:
                container["ready"] = container["started"] and self._is_ready(pod, container)
            else:
                ended = (container.get("state") or {}).get("terminated")
                container["ready"] = ended is not None and ended["exitCode"] == 0

    def workers(self) -> list[ProbeWorker]:
        """Return the present workers."""
        return list(self._workers.values())

    def liveness_result(self, container_id: str) -> ProbeResult:
        """Return the result; `success` if there is no probe or no result yet."""
        return self._results["liveness"].get(runtime_id(container_id)) or "success"

    def startup_result(self, container_id: str) -> ProbeResult:
        """Return the result; `unknown` before the first probe: what comes after a sidecar has to wait."""
        return self._results["startup"].get(runtime_id(container_id)) or "unknown"

    def on_result(self, callback: Callable[[ProbeType, str, str, ProbeResult], None]) -> None:
        self._callbacks.append(callback)

    def _changed(self, kind: ProbeType, pod_uid: str, container_id: str, result: ProbeResult) -> None:
        for callback in self._callbacks:
            with crash_guard.Turn("kubelet prober", pod_uid):
                callback(kind, pod_uid, container_id, result)

    def _is_started(self, pod: Pod, container: APIContainerStatus) -> bool:
        """Source: prober_manager.go:isContainerStarted."""
        if "running" not in (container.get("state") or {}):
            return False
        result = self._results["startup"].get(runtime_id(container["containerID"]))
        if result is not None:
            return result == "success"
        before = self._before_restart(pod, container)
        if before is not None:
            return bool(before.get("started"))
        return (uid_of(pod), container["name"], "startup") not in self._workers

    def _is_ready(self, pod: Pod, container: APIContainerStatus) -> bool:
        result = self._results["readiness"].get(runtime_id(container["containerID"]))
        if result == "success" or not _has_readiness_probe(pod, container["name"]):
            return True
        worker = self._workers.get((uid_of(pod), container["name"], "readiness"))
        before = self._before_restart(pod, container)
        if result is None and before is not None:
            if worker is not None and not before.get("ready"):
                worker.kick()
            return bool(before.get("ready"))
        if worker is None:
            return True
        worker.kick()
        return False

    def _before_restart(self, pod: Pod, container: APIContainerStatus) -> APIContainerStatus | None:
        """What the API said of a container that ran before this kubelet, else None (since 1.35).

        Kubernetes takes only those that were started 10 s before it, because nothing else distinguishes them. That
        the API knows the container's id says it as well, and a node that is back in 20 ms makes no young Pod unready.
        """
        if not self._context.features.preserve_on_restart:
            return None
        started = parse_rfc3339(container["state"]["running"].get("startedAt")).timestamp()
        if started > self._context.started_at:
            return None
        before = find_container_status(pod.get("status") or {}, container["name"])
        return before if before and before["containerID"] == container["containerID"] else None

    def _stop(self, key: tuple[str, str, ProbeType]) -> None:
        worker = self._workers.pop(key, None)
        if worker is not None:
            worker.stop()

    def _remove(self, uid: str) -> None:
        for key in [key for key in self._workers if key[0] == uid]:
            self._stop(key)

    def _ended(self, worker: ProbeWorker) -> None:
        key = (uid_of(worker.pod), worker.container["name"], worker.probe_type)
        if self._workers.get(key) is worker:
            del self._workers[key]


def _has_readiness_probe(pod: Pod, name: str) -> bool:
    every = (*containers_of(pod), *init_containers_of(pod))
    return any(each["name"] == name and each.get("readinessProbe") for each in every)
