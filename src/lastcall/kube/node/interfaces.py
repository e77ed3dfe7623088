"""The parts of the kubelet as each other sees them. Names are the kubelet's own.

`kubelet.py`, `workers/manager.py` and the kill and start paths know the status manager, the prober, the volume manager,
the image manager and the outside world only by these protocols, so that the virtual world can put its own in their
place.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import TYPE_CHECKING, Literal, Protocol

from lastcall.kube.api.meta import AnyObject
from lastcall.kube.cri.api import (
    ContainerState,
    ContainerStatus,
    DNSConfig,
    Image,
    Mount,
    PodSandboxState,
    PodSandboxStatus,
)
from lastcall.world.dataclass import dataclass

if TYPE_CHECKING:
    from lastcall.kube.api.types.container import Container
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.pod_status import PodStatus as APIPodStatus
    from lastcall.kube.api.types.volumes import ImageVolumeSource

ProbeType = Literal["readiness", "liveness", "startup"]
ProbeResult = Literal["success", "failure", "unknown"]


@dataclass(frozen=True, slots=True)
class PodStatus:
    """What the runtime knows of one Pod (kubelet container/runtime.go:PodStatus). Both lists have the newest first."""

    uid: str
    name: str
    namespace: str
    ips: tuple[str, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    sandbox_statuses: tuple[PodSandboxStatus, ...] = ()

    def running_containers(self) -> tuple[ContainerStatus, ...]:
        return tuple(c for c in self.container_statuses if c.state == ContainerState.CONTAINER_RUNNING)

    def ready_sandboxes(self) -> tuple[PodSandboxStatus, ...]:
        return tuple(s for s in self.sandbox_statuses if s.state == PodSandboxState.SANDBOX_READY)

    def find(self, container_name: str) -> ContainerStatus | None:
        """Return the newest instance of a container."""
        return next((c for c in self.container_statuses if c.metadata.name == container_name), None)


@dataclass(frozen=True, slots=True)
class StartError:
    """Why a container could not start: waiting `reason` (ErrImagePull, CrashLoopBackOff, …) and `message`.

    Source: kubelet reason_cache.go.
    """

    reason: str
    message: str


class ReasonCache(Protocol):
    def get(self, pod_uid: str, container_name: str) -> StartError | None: ...


class PodStateProvider(Protocol):
    """Predicates of the pod workers that other parts ask (node-semantics 4.5)."""

    def could_have_running_containers(self, uid: str) -> bool: ...
    def is_pod_termination_requested(self, uid: str) -> bool: ...
    def should_pod_runtime_be_removed(self, uid: str) -> bool: ...
    def should_pod_content_be_removed(self, uid: str) -> bool: ...
    def should_pod_be_finished(self, uid: str) -> bool: ...
    def is_pod_known_terminated(self, uid: str) -> bool: ...


class StatusManager(Protocol):
    """status/status_manager.go: caches statuses, PATCHes them, deletes finished Pods."""

    def set_pod_status(self, pod: Pod, status: APIPodStatus) -> None: ...
    def set_pod_sandbox_ready(self, pod: Pod) -> None:
        """Set PodReadyToStartContainers: the sandbox was just created (1.36; kubelet.go:OnPodSandboxReady)."""
        ...

    def terminate_pod(self, pod: Pod) -> None: ...
    def get_pod_status(self, uid: str) -> APIPodStatus | None: ...
    async def handed_over(self, uid: str) -> None:
        """Wait until the status that was set last has left for the API server, or cannot leave now."""
        ...

    def set_container_readiness(self, pod_uid: str, container_id: str, ready: bool) -> None: ...
    def set_container_startup(self, pod_uid: str, container_id: str, started: bool) -> None: ...
    def remove_orphaned_statuses(self, pod_uids: set[str]) -> None: ...
    async def run(self) -> None:
        """Write statuses until cancelled."""
        ...


class StatusGenerator(Protocol):
    """kubelet_pods.go:generateAPIPodStatus. Pure but for its collaborators' current answers."""

    def generate_api_pod_status(self, pod: Pod, pod_status: PodStatus, pod_is_terminal: bool) -> APIPodStatus: ...


class ProbeManager(Protocol):
    """prober/prober_manager.go."""

    def add_pod(self, pod: Pod) -> None: ...
    def stop_liveness_and_startup(self, pod: Pod) -> None: ...
    def remove_pod(self, pod: Pod) -> None: ...
    def cleanup_pods(self, desired_uids: set[str]) -> None: ...
    def update_pod_status(self, pod: Pod, status: APIPodStatus) -> None:
        """Fill `ready` and `started` of the container statuses in place."""
        ...

    def liveness_result(self, container_id: str) -> ProbeResult: ...
    def startup_result(self, container_id: str) -> ProbeResult: ...
    def on_result(self, callback: Callable[[ProbeType, str, str, ProbeResult], None]) -> None:
        """Register `callback(probe type, pod uid, container id, result)` for changed results."""
        ...


class VolumeManager(Protocol):
    """volumemanager/volume_manager.go."""

    def prepare(self, pod: Pod) -> None:
        """Start what the Pod's volumes need from the API (token, ConfigMaps) before its worker asks; never blocks."""
        ...

    async def wait_for_attach_and_mount(self, pod: Pod) -> None:
        """Wait until all is mounted, at every sync; quick when it is, and refreshes what has changed meanwhile.

        Each failing volume gets its own FailedMount Event. Raises VolumeError after 2 m 3 s with the text that follows
        `Unable to attach or mount volumes: `. Cancel the call when the Pod's end begins.
        """
        ...

    def mounts(
        self, pod: Pod, container: Container, pod_ips: tuple[str, ...], *, attempt: int = 0
    ) -> tuple[Mount, ...]:
        """Return one container's bind mounts: volumeMounts, /etc/hosts, /etc/hostname, resolv.conf, termination log.

        `attempt` is the container's restart count: each attempt has a termination log of its own.
        Raises VolumeError (waiting reason CreateContainerConfigError) for a volumeMount that cannot be resolved.
        """
        ...

    def dns_config(self, pod: Pod) -> DNSConfig:
        """Return the DNS configuration for PodSandboxConfig, by dnsPolicy and dnsConfig (network/dns/dns.go)."""
        ...

    def hostname(self, pod: Pod) -> str:
        """Return the host name for PodSandboxConfig (kubelet_pods.go:GeneratePodHostNameAndDomain)."""
        ...

    def owners_can_be_mapped(self, pod: Pod) -> bool:
        """Return whether all volumes are on the node's own file systems, not the machine's. Call it after mounting."""
        ...

    async def wait_for_unmount(self, pod: Pod) -> None: ...
    async def remove_orphans(self, known_uids: set[str]) -> None: ...
    def read_termination_message(self, pod_uid: str, container_name: str, attempt: int) -> str: ...


class VolumeError(Exception):
    """A volume could not be mounted; the text goes into the FailedMount Event."""


class ImagePullError(Exception):
    """EnsureImageExists failed: waiting `reason` (ErrImagePull, ImagePullBackOff, …) and message.

    `expires_ns` is set when only a back-off is in the way: wall clock nanoseconds of its end.
    """

    def __init__(self, reason: str, message: str, expires_ns: int | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.expires_ns = expires_ns


class ImageManager(Protocol):
    """images/image_manager.go; emits all Events of node-semantics 15 itself, `Error: ErrImagePull` included."""

    async def ensure_image_exists(self, pod: Pod, container: Container) -> Image: ...

    async def ensure_volume_image_exists(self, pod: Pod, source: ImageVolumeSource) -> Image: ...


class EventRecorder(Protocol):
    """client-go record.EventRecorder; `lastcall.kube.client.events.EventRecorder` is the real one."""

    def event(
        self,
        obj: AnyObject,
        event_type: Literal["Normal", "Warning"],
        reason: str,
        message: str,
        *,
        field_path: str = "",
    ) -> None:
        """Record an Event. `obj` has kind, apiVersion, metadata. Never blocks. `field_path`: `spec.containers{a}`."""
        ...


@dataclass(frozen=True, slots=True)
class HTTPResponse:
    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


class DialError(Exception):
    """No answer: refused, reset, unreachable, time-out. The text is Go's wording where Kubernetes shows it."""


class RPCError(Exception):
    """A server's answer that is not a success. `code` is gRPC's name of it (`NotFound`), the text is the server's."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Dialer(Protocol):
    """The way probes and hooks reach Pods."""

    async def http_get(
        self, url: str, headers: list[tuple[str, str]], timeout: float | None, *, follow_redirects: bool = True
    ) -> HTTPResponse:
        """Send a GET without verifying certificates; timeout in seconds, None for none. Raises DialError."""
        ...

    async def tcp_connect(self, host: str, port: int, timeout: float | None) -> None:
        """Connect to a TCP port and close the connection. Raises DialError."""
        ...

    async def grpc_health(self, host: str, port: int, service: str, timeout: float, user_agent: str) -> int:
        """Check of grpc.health.v1.Health: the ServingStatus as a number (SERVING is 1).

        Raises DialError when there is no HTTP/2 connection within `timeout` seconds, RPCError for what goes wrong then
        (DeadlineExceeded when the rest of the time is over).
        """
        ...
