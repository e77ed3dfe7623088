"""Bring a Pod's sandbox and containers to what the spec wants (kuberuntime/kuberuntime_manager.go:SyncPod)."""

# check: observes because it created the sandbox and restarts the containers
# check: many attributes RuntimeManager because its collaborators are given by name, as in kuberuntime_manager.go

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import name_of, namespace_of, uid_of
from lastcall.kube.api.pods.spec import pod_ref_text
from lastcall.kube.api.text.go_notation import go_duration, go_quote
from lastcall.kube.cri.api import ContainerState, ContainerStatus, PodSandboxConfig, RuntimeService, RuntimeServiceError
from lastcall.kube.node.interfaces import EventRecorder, PodStatus, ProbeManager, StartError
from lastcall.kube.node.pods.runtime_pod import running_pod_of
from lastcall.kube.node.pods.spec import (
    container_field_path,
    containers_of,
    find_container,
    init_containers_of,
    is_host_network_pod,
    is_restartable_init_container,
)
from lastcall.kube.node.runtime.backoff import Backoff, BackoffError
from lastcall.kube.node.runtime.classes import RuntimeHandlerOf
from lastcall.kube.node.runtime.decide import PodActions, compute_pod_actions, hash_container
from lastcall.kube.node.runtime.notices import RuntimeNotices
from lastcall.kube.node.runtime.resize import ResizeError, ResizePlan, Resizer
from lastcall.kube.node.runtime.start_container import ContainerStarter, StartContainerError
from lastcall.kube.node.stopping.kill_container import ContainerKiller
from lastcall.kube.node.stopping.kill_pod import PodKiller
from lastcall.records import kinds, rules
from lastcall.records.record import Recorder
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.container import Container
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.node.status.reason_cache import LastStartErrors
    from lastcall.records.definitions.kubelet_start import AllContainersRestarting, SandboxCreated


NO_RESIZE = ResizePlan()

MakeSandboxConfig = Callable[["Pod", int], PodSandboxConfig]
"""(pod, attempt) → config."""


class SyncPodError(Exception):
    """A sync did not get everything done; it is tried again after the usual back-off."""


class RuntimeManager:
    def __init__(
        self,
        *,
        world: World,
        runtime: RuntimeService,
        starter: ContainerStarter,
        pod_killer: PodKiller,
        container_killer: ContainerKiller,
        probes: ProbeManager,
        reasons: LastStartErrors,
        backoff: Backoff,
        make_sandbox_config: MakeSandboxConfig,
        runtime_handler_of: RuntimeHandlerOf,
        is_termination_requested: Callable[[str], bool],
        on_pod_sandbox_ready: Callable[[Pod], None],
        notices: RuntimeNotices,
        events: EventRecorder,
        recorder: Recorder,
    ) -> None:
        self._world = world
        self._runtime = runtime
        self._starter = starter
        self._pod_killer = pod_killer
        self._container_killer = container_killer
        self._probes = probes
        self._reasons = reasons
        self._backoff = backoff
        self._make_sandbox_config = make_sandbox_config
        self._runtime_handler_of = runtime_handler_of
        self._is_termination_requested = is_termination_requested
        self._on_pod_sandbox_ready = on_pod_sandbox_ready
        self._notices = notices
        self._events = events
        self._recorder = recorder
        self._resizer = Resizer(runtime, recorder)
        self._reset_for: dict[str, str] = {}
        """Pod uid → the container that asked for the restart of all, while a reset that may go on has not ended."""

    async def sync_pod(
        self, pod: Pod, pod_status: PodStatus, *, restart_all: bool = False, resize: ResizePlan = NO_RESIZE
    ) -> bool:
        """Run one pass; return True if something was done. With `restart_all` nothing is started in it.

        Raises BackoffError when only back-offs are in the way, else KillPodError, SyncPodError, ResizeError.
        """
        actions = compute_pod_actions(
            pod,
            pod_status,
            liveness=self._probes.liveness_result,
            startup=self._probes.startup_result,
            restart_all=restart_all,
            resized=resize.restarts,
        )
        if actions.empty:
            if resize.empty:
                return False
            await self._resizer.resize(pod, pod_status, resize)
            return True
        if actions.containers_to_reset:
            await self._reset(pod, pod_status, actions.containers_to_reset)
            return True
        if actions.create_sandbox and actions.sandbox_changed:
            message = "Pod sandbox changed, it will be killed and re-created."
            self._events.event(pod, "Normal", "SandboxChanged", message)
        if actions.kill_pod:
            running = running_pod_of(pod_status)
            if running.containers or running.sandboxes:
                await self._pod_killer.kill_pod_with_sync_result(pod, running, None)
            if actions.create_sandbox:
                await self._remove_init_containers(pod, pod_status, keep=0)
                pod_status = replace(pod_status, container_statuses=_without_init(pod, pod_status))
        else:
            for kill in actions.containers_to_kill:
                try:
                    await self._container_killer.kill_container(
                        pod, kill.status, message=kill.message, reason=kill.reason
                    )
                except RuntimeServiceError as error:
                    name = go_quote(kill.status.metadata.name)
                    text = f'failed to "KillContainer" for {name} with KillContainerError: {go_quote(str(error))}'
                    raise SyncPodError(text) from error
        if actions.init_containers_to_start:
            await self._remove_init_containers(pod, pod_status, keep=1)
        sandbox = await self._sandbox(pod, pod_status, actions)
        failure = None
        if not resize.empty and not actions.kill_pod:
            try:
                await self._resizer.resize(pod, pod_status, resize)
            except ResizeError as error:
                failure = error  # what is to be started is, all the same
        if sandbox is not None:
            await self._start_containers(pod, pod_status, actions, *sandbox)
        if failure is not None:
            raise failure
        return True

    async def _reset(self, pod: Pod, pod_status: PodStatus, statuses: list[ContainerStatus]) -> None:
        """Kill without hooks, with the least grace, and remove, one after the other; logs stay.

        Exits that ask for it too often are held back like those of one container. Raises BackoffError, SyncPodError.
        """
        source, uid = statuses[-1], uid_of(pod)
        container = find_container(pod, source.metadata.name)
        if container is not None and self._reset_for.get(uid) != source.id:
            try:
                self._do_back_off(pod, container, pod_status)
            except StartContainerError as error:
                self._reasons.update(uid, container["name"], StartError(error.reason, str(error)))
                _raise([error])
            self._reasons.update(uid, container["name"], None)
            self._reset_for[uid] = source.id
        restarting: AllContainersRestarting = {
            "exitCode": source.exit_code,
            "containers": [each.metadata.name for each in statuses],
        }
        cause_id = self._recorder.record(
            kinds.ALL_CONTAINERS_RESTARTING,
            pod_uid=uid_of(pod),
            container=source.metadata.name,
            rule=rules.SYNC_POD,
            facts=restarting,
        )
        ended = (ContainerState.CONTAINER_EXITED, ContainerState.CONTAINER_CREATED)
        for status in statuses:
            try:
                if status.state not in ended:
                    await self._container_killer.kill_container(
                        pod, status, message="killing", override=0, cause_id=cause_id
                    )
                await self._runtime.remove_container(status.id)
            except RuntimeServiceError as error:
                name = go_quote(status.metadata.name)
                raise SyncPodError(f'failed to "RemoveContainer" for {name}: {go_quote(str(error))}') from error
        self._reset_for.pop(uid, None)

    # -- the sandbox ----------------------------------------------------------------------------------------------

    async def _sandbox(
        self, pod: Pod, pod_status: PodStatus, actions: PodActions
    ) -> tuple[str, PodSandboxConfig, tuple[str, ...]] | None:
        """Id, config and addresses of the sandbox to start containers in; None when there is nothing to start."""
        if not actions.create_sandbox:
            if actions.kill_pod:
                return None
            return actions.sandbox_id, self._make_sandbox_config(pod, actions.attempt), pod_status.ips
        started = self._world.clock.monotonic_ns()
        try:
            config = self._make_sandbox_config(pod, actions.attempt)
            sandbox_id = await self._runtime.run_pod_sandbox(config, await self._runtime_handler_of(pod))
        except RuntimeServiceError as error:
            if not self._is_termination_requested(uid_of(pod)):
                message = f"Failed to create pod sandbox: {error}"
                self._events.event(pod, "Warning", "FailedCreatePodSandBox", message)
            uid = go_quote(uid_of(pod))
            text = f'failed to "CreatePodSandbox" for {uid} with CreatePodSandboxError: {go_quote(str(error))}'
            raise SyncPodError(text) from error
        try:
            status = await self._runtime.pod_sandbox_status(sandbox_id)
        except RuntimeServiceError as error:
            message = f"Unable to get pod sandbox status: {error}"
            self._events.event(pod, "Warning", "FailedPodSandBoxStatus", message)
            raise SyncPodError(message) from error
        facts: SandboxCreated = {
            "sandboxId": sandbox_id,
            "ips": list(status.ips),
            "seconds": (self._world.clock.monotonic_ns() - started) / 1e9,
        }
        self._recorder.record(kinds.SANDBOX_CREATED, pod_uid=uid_of(pod), rule=rules.SYNC_POD, facts=facts)
        self._on_pod_sandbox_ready(pod)
        await self._notices.sandbox_ready(pod)
        ips = () if is_host_network_pod(pod) else status.ips
        return sandbox_id, config, ips

    # -- the containers -------------------------------------------------------------------------------------------

    async def _start_containers(
        self,
        pod: Pod,
        pod_status: PodStatus,
        actions: PodActions,
        sandbox_id: str,
        config: PodSandboxConfig,
        ips: tuple[str, ...],
    ) -> None:
        """Ephemeral, init, then regular containers, one after the other in the order of the spec."""
        failures: list[StartContainerError] = []

        async def start(container: Container) -> bool:
            name = container["name"]
            try:
                self._do_back_off(pod, container, pod_status)
                await self._starter.start_container(pod, container, pod_status, sandbox_id, config, ips)
            except StartContainerError as error:
                failures.append(error)
                self._reasons.update(uid_of(pod), name, StartError(error.reason, str(error)))
                return False
            self._reasons.update(uid_of(pod), name, None)
            return True

        ephemeral = pod["spec"].get("ephemeralContainers") or []
        for index in actions.ephemeral_containers_to_start:
            await start(ephemeral[index])
        init_containers = init_containers_of(pod)
        for index in actions.init_containers_to_start:
            container = init_containers[index]
            if not await start(container) and not is_restartable_init_container(container):
                break  # an init container that fails to start stops this pass
        else:
            for index in actions.containers_to_start:
                await start(containers_of(pod)[index])
        if failures:
            _raise(failures)

    def _do_back_off(self, pod: Pod, container: Container, pod_status: PodStatus) -> None:
        """Refuse a restart that comes too soon after the last exit (kuberuntime_manager.go:doBackOff).

        The last exit that is known: of a container that was just ended for its probe, the one before.
        Raises StartContainerError with CrashLoopBackOff.
        """
        name = container["name"]
        runs = (each for each in pod_status.container_statuses if each.metadata.name == name)
        last = next((each for each in runs if each.state == ContainerState.CONTAINER_EXITED), None)
        if last is None:
            return
        key = back_off_key(pod, container)
        now, finished = self._world.clock.wall_ns(), last.finished_at
        if self._backoff.is_in_backoff_since(key, finished, now):
            reference = pod_ref_text(pod)
            self._events.event(
                pod,
                "Warning",
                "BackOff",
                f"Back-off restarting failed container {name} in pod {reference}",
                field_path=container_field_path(pod, name),
            )
            window = self._backoff.get_ns(key)
            message = f"back-off {go_duration(window / 1e9)} restarting failed container={name} pod={reference}"
            raise StartContainerError("CrashLoopBackOff", message, finished + window)
        self._backoff.next(key, finished, now)

    async def _remove_init_containers(self, pod: Pod, pod_status: PodStatus, *, keep: int) -> None:
        """Remove ended init containers but the newest `keep` of each name (purge-/pruneInitContainersBeforeStart)."""
        for container in init_containers_of(pod):
            ended = [
                status
                for status in pod_status.container_statuses
                if status.metadata.name == container["name"]
                and status.state in (ContainerState.CONTAINER_EXITED, ContainerState.CONTAINER_UNKNOWN)
            ]
            for status in ended[keep:]:
                try:
                    await self._runtime.remove_container(status.id)
                except RuntimeServiceError as error:
                    raise SyncPodError(f"failed to remove init container {container['name']}: {error}") from error


def back_off_key(pod: Pod, container: Container) -> str:
    """Return the key: Pod, container, image, resources. New image or resources reset the back-off (getBackoffKey)."""
    resources = container.get("resources") or {}
    return "_".join(
        (name_of(pod), namespace_of(pod), uid_of(pod), container["name"], hash_container(container), repr(resources))
    )


def _without_init(pod: Pod, pod_status: PodStatus) -> tuple[ContainerStatus, ...]:
    names = {container["name"] for container in init_containers_of(pod)}
    return tuple(status for status in pod_status.container_statuses if status.metadata.name not in names)


def _raise(failures: list[StartContainerError]) -> None:
    """Back-offs alone: again when the first one ends. Anything else: the usual 10 s."""
    ends = [failure.expires_ns for failure in failures if failure.expires_ns is not None]
    text = ", ".join(str(failure) for failure in failures)
    if len(ends) == len(failures):
        raise BackoffError(text, min(ends))
    raise SyncPodError(text)
