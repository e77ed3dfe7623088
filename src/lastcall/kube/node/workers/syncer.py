"""What a worker does for a Pod in each of its states (kubelet.go: SyncPod, SyncTerminatingPod, SyncTerminatedPod)."""

# check: many attributes KubeletPodSyncer because a sync uses every part of the kubelet, each given by name

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import name_of, namespace_of, uid_of
from lastcall.kube.api.text.go_notation import go_list
from lastcall.kube.cri.api import ContainerState
from lastcall.kube.node.interfaces import (
    EventRecorder,
    PodStatus,
    ProbeManager,
    StatusGenerator,
    StatusManager,
    VolumeError,
    VolumeManager,
)
from lastcall.kube.node.pods.restart_all import is_restarting
from lastcall.kube.node.pods.runtime_pod import RunningPod, running_pod_of
from lastcall.kube.node.pods.spec import all_containers_of, is_host_network_pod, is_static_pod, is_terminal_phase
from lastcall.kube.node.runtime.manager import NO_RESIZE, RuntimeManager
from lastcall.kube.node.runtime.pleg import PodLifecycleEventGenerator
from lastcall.kube.node.runtime.resize import ResizeError, ResizePlan, plan_resize
from lastcall.kube.node.stopping.grace import RUNTIME_POD_GRACE_PERIOD_SECONDS
from lastcall.kube.node.stopping.kill_container import ContainerKiller
from lastcall.kube.node.stopping.kill_pod import KillPodError, PodKiller
from lastcall.kube.node.workers.calls import SyncCancelled, SyncContext
from lastcall.kube.node.workers.transitions import NETWORK_NOT_READY, UpdateType
from lastcall.world.tasks import meanwhile, unless

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.pod_status import PodStatus as APIPodStatus
    from lastcall.kube.node.admission.resizes import Resizes


class CRIViolation(Exception):
    """A container runs although everything was stopped."""


class NetworkNotReady(Exception):
    """The Pod needs a network that the runtime does not have now."""


class KubeletPodSyncer:
    """Implements `pod_workers.PodSyncer`. `reclaim` removes a Pod's containers before its last status (before 1.27),
    `reconcile_mirror` sees to the mirror of a static Pod, `network_error` says why Pods get no network,
    `resizes` knows what Pods were given,
    `release_users` gives the user ids of a Pod back."""

    def __init__(
        self,
        *,
        statuses: StatusManager,
        generator: StatusGenerator,
        probes: ProbeManager,
        volumes: VolumeManager,
        pleg: PodLifecycleEventGenerator,
        runtime_manager: RuntimeManager,
        pod_killer: PodKiller,
        container_killer: ContainerKiller,
        events: EventRecorder,
        resizes: Resizes,
        reclaim: Callable[[str], Awaitable[None]] | None,
        reconcile_mirror: Callable[[Pod], None] = lambda pod: None,
        network_error: Callable[[], str] = str,
        release_users: Callable[[str], None] = lambda uid: None,
    ) -> None:
        self._statuses = statuses
        self._generator = generator
        self._probes = probes
        self._volumes = volumes
        self._pleg = pleg
        self._runtime_manager = runtime_manager
        self._pod_killer = pod_killer
        self._container_killer = container_killer
        self._events = events
        self._resizes = resizes
        self._reclaim = reclaim
        self._reconcile_mirror = reconcile_mirror
        self._network_error = network_error
        self._release_users = release_users

    async def sync_pod(self, context: SyncContext, update_type: UpdateType, pod: Pod, pod_status: PodStatus) -> bool:
        """Bring a Pod nearer to its spec; return True if it has ended by itself (kubelet.go:SyncPod).

        An end that begins meanwhile interrupts only the wait for volumes: pulls, creations and postStart hooks under
        way are finished first, as in Kubernetes.
        """
        pod = self._resizes.allocated(pod)
        resize = self._look_at_resize(pod, pod_status)
        status = self._generator.generate_api_pod_status(pod, pod_status, False)
        self._statuses.set_pod_status(pod, status)
        if is_terminal_phase(status.get("phase")):
            return True
        if (error := self._network_error()) and not is_host_network_pod(pod):
            self._events.event(pod, "Warning", "NetworkNotReady", f"{NETWORK_NOT_READY}: {error}")
            raise NetworkNotReady(f"{NETWORK_NOT_READY}: {error}")
        if is_static_pod(pod):
            self._reconcile_mirror(pod)
        await self._mount(context, pod)
        self._probes.add_pod(pod)
        if is_restarting(status):
            await self._runtime_manager.sync_pod(pod, pod_status, restart_all=True)
            pod_status = await self._pleg.refresh(uid_of(pod), name_of(pod), namespace_of(pod))
            self._statuses.set_pod_status(pod, self._generator.generate_api_pod_status(pod, pod_status, False))
            if context.cancelled.is_set():
                return False
        try:
            await self._runtime_manager.sync_pod(pod, pod_status, resize=resize)
        except ResizeError as error:
            self._resizes.failed(pod, str(error))
            self._statuses.set_pod_status(pod, self._generator.generate_api_pod_status(pod, pod_status, False))
            raise
        if not resize.empty:
            pod_status = await self._pleg.refresh(uid_of(pod), name_of(pod), namespace_of(pod))
            self._look_at_resize(pod, pod_status)
            self._statuses.set_pod_status(pod, self._generator.generate_api_pod_status(pod, pod_status, False))
        return False

    def _look_at_resize(self, pod: Pod, pod_status: PodStatus) -> ResizePlan:
        """What the runtime has yet to change to what the Pod was given."""
        if not self._resizes.needs_a_look(uid_of(pod)):
            return NO_RESIZE
        plan = plan_resize(pod, pod_status)
        self._resizes.looked(pod, under_way=not plan.empty)
        return plan

    async def _mount(self, context: SyncContext, pod: Pod) -> None:
        async def mounted() -> bool:
            await self._volumes.wait_for_attach_and_mount(pod)
            return True

        try:
            if not await unless(mounted(), context.cancelled):
                raise SyncCancelled
        except VolumeError as error:
            message = f"Unable to attach or mount volumes: {error}"
            self._events.event(pod, "Warning", "FailedMount", message)
            raise

    async def sync_terminating_pod(
        self,
        pod: Pod,
        pod_status: PodStatus,
        grace_period: int | None,
        pod_status_func: Callable[[APIPodStatus], None] | None,
        cause_id: str,
    ) -> None:
        """Stop everything, then say what became of it (kubelet.go:SyncTerminatingPod). Raises to be called again.

        The kubelet says first that the Pod terminates. Here the signals are on their way before that is put together:
        a reader sees no difference, because a task of its own sends it.
        """

        def say_that_it_terminates() -> None:
            status = self._generator.generate_api_pod_status(pod, pod_status, False)
            if pod_status_func is not None:
                pod_status_func(status)
            self._statuses.set_pod_status(pod, status)
            self._probes.stop_liveness_and_startup(pod)

        pod = self._resizes.allocated(pod)
        self._record_hooks_of_ended_containers(pod, pod_status, cause_id)
        await meanwhile(
            self._kill(pod, running_pod_of(pod_status), grace_period, runtime_only=False, cause_id=cause_id),
            say_that_it_terminates,
        )
        self._probes.remove_pod(pod)
        stopped = await self._pleg.refresh(uid_of(pod), name_of(pod), namespace_of(pod))
        running = [container.metadata.name for container in stopped.running_containers()]
        if running:
            raise CRIViolation(
                f"detected running containers after a successful KillPod, CRI violation: {go_list(running)}"
            )
        self._statuses.set_pod_status(pod, self._generator.generate_api_pod_status(pod, stopped, True))

    async def sync_terminating_runtime_pod(self, running_pod: RunningPod, cause_id: str) -> None:
        """Stop a Pod that only the runtime knows (kubelet.go:SyncTerminatingRuntimePod): no hooks, order or status."""
        pod, override = running_pod.to_api_pod(), RUNTIME_POD_GRACE_PERIOD_SECONDS
        await self._kill(pod, running_pod, override, runtime_only=True, cause_id=cause_id)

    async def sync_terminated_pod(self, pod: Pod, pod_status: PodStatus, cause_id: str) -> None:
        """Remove what is left and set the last status (kubelet.go:SyncTerminatedPod)."""
        pod = self._resizes.allocated(pod)
        self._statuses.set_pod_status(pod, self._generator.generate_api_pod_status(pod, pod_status, True))
        self._resizes.forget(uid_of(pod))
        self._resizes.retry()
        if self._reclaim is not None:
            await self._reclaim(uid_of(pod))
        await self._volumes.wait_for_unmount(pod)
        self._release_users(uid_of(pod))
        self._statuses.terminate_pod(pod)

    async def handed_over(self, uid: str) -> None:
        await self._statuses.handed_over(uid)

    async def _kill(
        self, pod: Pod, running_pod: RunningPod, override: int | None, *, runtime_only: bool, cause_id: str
    ) -> None:
        try:
            await self._pod_killer.kill_pod_with_sync_result(
                pod, running_pod, override, runtime_only=runtime_only, cause_id=cause_id
            )
        except KillPodError as error:
            self._events.event(pod, "Warning", "FailedKillPod", f"error killing pod: {error}")
            raise

    def _record_hooks_of_ended_containers(self, pod: Pod, pod_status: PodStatus, cause_id: str) -> None:
        """A container that has ended, or never ran, gets no preStop hook: say so."""
        for container in all_containers_of(pod):
            if not (container.get("lifecycle") or {}).get("preStop"):
                continue
            status = pod_status.find(container["name"])
            if status is not None and status.state == ContainerState.CONTAINER_RUNNING:
                continue
            why = "the container had already ended" if status is not None else "the container never ran"
            self._container_killer.record_skipped(pod, container["name"], why, cause_id)
