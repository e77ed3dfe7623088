"""Start one container: image, configuration, create, start, postStart (kuberuntime_container.go:startContainer)."""

# check: observes because it started the container
# check: many attributes ContainerStarter because its collaborators are given by name, as in kuberuntime_container.go

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Protocol

from lastcall.kube.api.meta import name_of, namespace_of, uid_of
from lastcall.kube.api.pods.handlers import handler_detail, handler_name
from lastcall.kube.cri.api import ContainerConfig, Image, PodSandboxConfig, RuntimeService, RuntimeServiceError
from lastcall.kube.node.interfaces import EventRecorder, ImageManager, ImagePullError, PodStatus, VolumeError
from lastcall.kube.node.logs.files import LogLinks
from lastcall.kube.node.pods.spec import container_field_path, init_containers_of
from lastcall.kube.node.runtime.environment import ContainerConfigError
from lastcall.kube.node.stopping.grace import KillReason
from lastcall.kube.node.stopping.hooks import HandlerRunner, HookError, shown_output
from lastcall.kube.node.stopping.kill_container import ContainerKiller
from lastcall.kube.node.versions import Behaviour
from lastcall.records import kinds, rules
from lastcall.records.record import Recorder
from lastcall.world.counting import Family
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.container import Container, LifecycleHandler
    from lastcall.kube.api.types.pod import Pod
    from lastcall.records.definitions.kubelet_start import (
        ContainerCreated,
        ContainerStarted,
        ContainerStartFailed,
        PostStartFinished,
        PostStartStarted,
    )
    from lastcall.records.record import Facts, Kind


class StartContainerError(Exception):
    """A container could not be started: waiting `reason`; the text is the waiting message.

    `expires_ns` is set when only a back-off is in the way: wall clock nanoseconds of its end.
    """

    def __init__(self, reason: str, message: str, expires_ns: int | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.expires_ns = expires_ns


class MakeContainerConfig(Protocol):
    """Makes the config of one container. Raises ContainerConfigError or VolumeError."""

    def __call__(
        self, pod: Pod, container: Container, image: Image, attempt: int, pod_ips: tuple[str, ...]
    ) -> Awaitable[ContainerConfig]: ...


def restart_count(pod_status: PodStatus, container_name: str, highest_log: int | None, reported: int = 0) -> int:
    """Return the attempt number of a new instance: the last one's, or the highest log file's, plus one.

    Log files outlive containers, so a count is not lost with the runtime's record (calcRestartCountByLogDir); nor does
    it go below what the status has `reported` for a container whose record is gone.
    """
    previous = pod_status.find(container_name)
    if previous is not None:
        return previous.metadata.attempt + 1
    return max(reported, 0 if highest_log is None else highest_log + 1)


def highest_log_number(directory: str) -> int | None:
    """Return N of the highest `N.log` in a container's log directory; None if there is none."""
    try:
        names = os.listdir(directory)
    except OSError:
        return None
    numbers = [int(match.group(1)) for name in names if (match := re.match(r"(\d+)\.log", name))]
    return max(numbers, default=None)


class ContainerStarter:
    def __init__(
        self,
        *,
        world: World,
        runtime: RuntimeService,
        images: ImageManager,
        make_config: MakeContainerConfig,
        hooks: HandlerRunner,
        killer: ContainerKiller,
        events: EventRecorder,
        recorder: Recorder,
        behaviour: Behaviour,
        highest_log: Callable[[str], int | None] = highest_log_number,
        log_links: LogLinks = LogLinks(""),  # noqa: B008 (it keeps nothing)
        reported_restarts: Callable[[str, str], int] = lambda pod_uid, name: 0,
    ) -> None:
        self._world = world
        self._runtime = runtime
        self._images = images
        self._make_config = make_config
        self._hooks = hooks
        self._killer = killer
        self._events = events
        self._recorder = recorder
        self._behaviour = behaviour
        self._highest_log = highest_log
        self._log_links = log_links
        self._reported_restarts = reported_restarts
        self._started: dict[str, int] = {}
        self._failures: dict[tuple[str, str], int] = {}

    async def start_container(
        self,
        pod: Pod,
        container: Container,
        pod_status: PodStatus,
        sandbox_id: str,
        sandbox_config: PodSandboxConfig,
        pod_ips: tuple[str, ...],
    ) -> None:
        """Start a container. Raises StartContainerError, after the Event and the record that report it."""
        kind = _type_of(pod, container)
        self._started[kind] = self._started.get(kind, 0) + 1
        try:
            await self._start_container(pod, container, pod_status, sandbox_id, sandbox_config, pod_ips)
        except StartContainerError as error:
            failed = (error.reason, kind)
            self._failures[failed] = self._failures.get(failed, 0) + 1
            raise

    def families(self) -> Iterator[Family]:
        """Yield the counts (pkg/kubelet/metrics/metrics.go)."""
        started = [({"container_type": kind}, count) for kind, count in self._started.items()]
        yield "kubelet_started_containers_total", started
        failures = [({"code": code, "container_type": kind}, count) for (code, kind), count in self._failures.items()]
        yield "kubelet_started_containers_errors_total", failures

    async def _start_container(
        self,
        pod: Pod,
        container: Container,
        pod_status: PodStatus,
        sandbox_id: str,
        sandbox_config: PodSandboxConfig,
        pod_ips: tuple[str, ...],
    ) -> None:
        name = container["name"]
        mounted = {each["name"] for each in container.get("volumeMounts") or ()}
        try:
            for volume in pod["spec"].get("volumes") or ():
                if volume["name"] in mounted and (source := volume.get("image")) is not None:
                    await self._images.ensure_volume_image_exists(pod, source)
            image = await self._images.ensure_image_exists(pod, container)
        except ImagePullError as error:
            self._note_failure(pod, name, error.reason, str(error))
            raise StartContainerError(error.reason, str(error), error.expires_ns) from error
        highest = self._highest_log(f"{sandbox_config.log_directory}/{name}")
        attempt = restart_count(pod_status, name, highest, self._reported_restarts(uid_of(pod), name))
        container_id = await self._create(pod, container, image, attempt, sandbox_id, sandbox_config, pod_ips)
        await self._start(pod, container, container_id, attempt)
        log_path = f"{sandbox_config.log_directory}/{name}/{attempt}.log"
        self._log_links.add(name_of(pod), namespace_of(pod), name, container_id, log_path)
        post_start = (container.get("lifecycle") or {}).get("postStart")
        if post_start:
            await self._post_start(pod, container, post_start, container_id)

    async def _create(
        self,
        pod: Pod,
        container: Container,
        image: Image,
        attempt: int,
        sandbox_id: str,
        sandbox_config: PodSandboxConfig,
        pod_ips: tuple[str, ...],
    ) -> str:
        name = container["name"]
        try:
            config = await self._make_config(pod, container, image, attempt, pod_ips)
        except (ContainerConfigError, VolumeError) as error:
            raise self._failed(pod, name, "CreateContainerConfigError", str(error)) from error
        try:
            container_id = await self._runtime.create_container(sandbox_id, config, sandbox_config)
        except RuntimeServiceError as error:
            raise self._failed(pod, name, "CreateContainerError", str(error)) from error
        facts: ContainerCreated = {
            "containerId": container_id,
            "image": container.get("image", ""),
            "attempt": attempt,
        }
        self._record(kinds.CONTAINER_CREATED, pod, name, facts)
        self._event(pod, name, "Created", "created")
        return container_id

    async def _start(self, pod: Pod, container: Container, container_id: str, attempt: int) -> None:
        name = container["name"]
        try:
            await self._runtime.start_container(container_id)
        except RuntimeServiceError as error:
            message = str(error).replace(container_id, name)
            raise self._failed(pod, name, "RunContainerError", message) from error
        facts: ContainerStarted = {"containerId": container_id, "attempt": attempt}
        self._record(kinds.CONTAINER_STARTED, pod, name, facts)
        self._event(pod, name, "Started", "started")

    async def _post_start(self, pod: Pod, container: Container, handler: LifecycleHandler, container_id: str) -> None:
        """Run to the end, without a time limit; a failure kills the container."""
        name, kind = container["name"], handler_name(handler)
        begun: PostStartStarted = {"handler": kind, "detail": handler_detail(handler)}
        cause_id = self._record(kinds.POST_START_STARTED, pod, name, begun)
        started = self._world.clock.monotonic_ns()
        failure: HookError | None = None
        try:
            await self._hooks.run(container_id, pod, container, handler, lambda: self._killer.live_pod_ip(uid_of(pod)))
        except HookError as error:
            failure = error
        facts: PostStartFinished = {
            "handler": kind,
            "outcome": "failed" if failure else "succeeded",
            "seconds": (self._world.clock.monotonic_ns() - started) / 1e9,
            "message": str(failure) if failure else "",
        }
        if failure is not None and failure.exit_code is not None:
            facts["exitCode"] = failure.exit_code
            facts["stdout"], facts["stderr"] = shown_output(failure.stdout), shown_output(failure.stderr)
        cause_id = self._record(kinds.POST_START_FINISHED, pod, name, facts, cause_id)
        if failure is None:
            return
        text = "PostStartHook failed" if self._behaviour.hook_failure_text_is_fixed else str(failure)
        path = container_field_path(pod, name)
        self._events.event(pod, "Warning", "FailedPostStartHook", text, field_path=path)
        try:
            status = await self._runtime.container_status(container_id)
            await self._killer.kill_container(
                pod,
                status,
                message="FailedPostStartHook",
                reason=KillReason.FAILED_POST_START_HOOK,
                cause_id=cause_id,
            )
        except RuntimeServiceError:
            pass  # the next sync sees what the container really does
        raise StartContainerError("PostStartHookError", str(failure)) from failure

    def _failed(self, pod: Pod, name: str, reason: str, message: str) -> StartContainerError:
        path = container_field_path(pod, name)
        self._events.event(pod, "Warning", "Failed", f"Error: {message}", field_path=path)
        self._note_failure(pod, name, reason, message)
        return StartContainerError(reason, message)

    def _note_failure(self, pod: Pod, name: str, reason: str, message: str) -> None:
        facts: ContainerStartFailed = {"reason": reason, "message": message}
        self._record(kinds.CONTAINER_START_FAILED, pod, name, facts)

    def _event(self, pod: Pod, name: str, reason: str, verb: str) -> None:
        named = self._behaviour.container_names_in_start_events
        message = f"{verb.capitalize()} container {name}" if named else f"Container {verb}"
        self._events.event(pod, "Normal", reason, message, field_path=container_field_path(pod, name))

    def _record(self, kind: Kind[Facts], pod: Pod, name: str, facts: Facts, cause_id: str = "") -> str:
        return self._recorder.record(
            kind, pod_uid=uid_of(pod), container=name, rule=rules.START_CONTAINER, facts=facts, cause_id=cause_id
        )


def _type_of(pod: Pod, container: Container) -> str:
    """(metrics.go: Container, InitContainer, EphemeralContainer)"""
    name = container["name"]
    if any(each["name"] == name for each in init_containers_of(pod)):
        return "init_container"
    ephemeral = pod["spec"].get("ephemeralContainers") or ()
    return "ephemeral_container" if any(each["name"] == name for each in ephemeral) else "container"
