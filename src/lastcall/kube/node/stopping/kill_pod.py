"""Stop a Pod: all its containers in parallel, then its sandboxes (kubelet
kuberuntime/kuberuntime_manager.go:killPod)."""

# check: observes because it stopped the sandbox

from __future__ import annotations

from typing import TYPE_CHECKING

from lastcall.kube.api.meta import uid_of
from lastcall.kube.api.text.go_notation import go_quote
from lastcall.kube.cri.api import ContainerStatus, PodSandboxStatus, RuntimeService, RuntimeServiceError
from lastcall.kube.node.pods.runtime_pod import RunningPod, has_restartable_init_container
from lastcall.kube.node.stopping.kill_container import ContainerKiller
from lastcall.kube.node.stopping.order import TerminationOrdering
from lastcall.kube.node.versions import Behaviour
from lastcall.records import kinds, rules
from lastcall.records.record import Recorder
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod
    from lastcall.records.definitions.kubelet_end import SandboxStopped


class KillPodError(Exception):
    """Some container or sandbox could not be stopped; the text names each."""

    def __init__(self, errors: list[str]) -> None:
        super().__init__(errors[0] if len(errors) == 1 else "[" + ", ".join(errors) + "]")


class PodKiller:
    def __init__(
        self,
        *,
        world: World,
        runtime: RuntimeService,
        container_killer: ContainerKiller,
        recorder: Recorder,
        behaviour: Behaviour,
    ) -> None:
        self._world = world
        self._runtime = runtime
        self._container_killer = container_killer
        self._recorder = recorder
        self._behaviour = behaviour

    async def kill_pod_with_sync_result(
        self,
        pod: Pod,
        running_pod: RunningPod,
        override: int | None,
        *,
        runtime_only: bool = False,
        cause_id: str = "",
    ) -> None:
        """Stop every running container, wait for all of them, then stop every sandbox even if some stop failed.

        Raises KillPodError.
        """
        errors = await self.kill_containers_with_sync_result(
            pod, running_pod, override, runtime_only=runtime_only, cause_id=cause_id
        )
        for sandbox in running_pod.sandboxes:
            error = await self._stop_sandbox(pod, sandbox, cause_id)
            if error:
                errors.append(error)
        if errors:
            raise KillPodError(errors)

    async def kill_containers_with_sync_result(
        self,
        pod: Pod,
        running_pod: RunningPod,
        override: int | None,
        *,
        runtime_only: bool = False,
        cause_id: str = "",
    ) -> list[str]:
        """Stop the running containers in parallel, sidecars in their order; return what went wrong."""
        ordering: TerminationOrdering | None = None
        if not runtime_only and self._behaviour.sidecar_ordering and has_restartable_init_container(pod):
            running = [container.metadata.name for container in running_pod.containers]
            ordering = TerminationOrdering(self._world.clock, pod, running)
        errors: list[str] = []

        async def kill(container: ContainerStatus) -> None:
            try:
                await self._container_killer.kill_container(
                    pod, container, override=override, ordering=ordering, runtime_only=runtime_only, cause_id=cause_id
                )
            except RuntimeServiceError as error:
                name = go_quote(container.metadata.name)
                errors.append(f'failed to "KillContainer" for {name} with KillContainerError: {go_quote(str(error))}')

        if len(running_pod.containers) == 1:
            await kill(running_pod.containers[0])
        else:
            async with Tasks() as tasks:
                for container in running_pod.containers:
                    tasks.spawn(kill(container), name=f"kill {container.id}")
        return errors

    async def _stop_sandbox(self, pod: Pod, sandbox: PodSandboxStatus, cause_id: str) -> str:
        started = self._world.clock.monotonic_ns()
        error = ""
        try:
            await self._runtime.stop_pod_sandbox(sandbox.id)
        except RuntimeServiceError as failure:
            if failure.reason != "NotFound":
                error = str(failure)
        facts: SandboxStopped = {
            "sandboxId": sandbox.id,
            "seconds": (self._world.clock.monotonic_ns() - started) / 1e9,
            "error": error,
        }
        self._recorder.record(
            kinds.SANDBOX_STOPPED,
            pod_uid=uid_of(pod),
            rule=rules.KILL_POD_WITH_SYNC_RESULT,
            facts=facts,
            cause_id=cause_id,
        )
        uid = go_quote(uid_of(pod))
        return f'failed to "KillPodSandbox" for {uid} with KillPodSandboxError: {go_quote(error)}' if error else ""
