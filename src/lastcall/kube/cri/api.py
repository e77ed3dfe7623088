"""The Container Runtime Interface: verbs and field names of k8s.io/cri-api runtime/v1, as typed structs.

`lastcall.kube.node` knows nothing of a runtime but this. Protobuf exists only at a gRPC edge. Runtime facts that CRI
does not carry (who sent a signal, a signal mask, container output) are records on the timeline, which the runtime
writes; `listeners`, the one call that is not CRI's, is for a record of the kubelet.

This module is the door: the services and what they raise stand here, what goes over them in `structs/`, by topic, and
everybody takes it from here (a contract of import-linter holds that).
"""

from collections.abc import AsyncIterator
from typing import Protocol

from lastcall.kube.api.field import go_quote
from lastcall.kube.cri.structs.containers import (
    DEFAULT_MASKED_PATHS,
    DEFAULT_READONLY_PATHS,
    MISSING_GROUPS,
    SINGLE_USER_ID,
    Capability,
    ContainerConfig,
    ContainerMetadata,
    ContainerState,
    ContainerStats,
    ContainerStatus,
    LinuxContainerSecurityContext,
    Mount,
    SecurityProfile,
    TCPListener,
)
from lastcall.kube.cri.structs.images import SUBSTITUTE_FOR, AuthConfig, Image
from lastcall.kube.cri.structs.runtime import (
    LIMITS_ENFORCED,
    USER_IDS_MAPPED,
    USER_NAMESPACES,
    ContainerEventResponse,
    ContainerEventType,
    RuntimeCondition,
    RuntimeStatus,
)
from lastcall.kube.cri.structs.sandboxes import (
    DNSConfig,
    IDMapping,
    LinuxContainerResources,
    NamespaceMode,
    NamespaceOption,
    PodSandboxConfig,
    PodSandboxMetadata,
    PodSandboxState,
    PodSandboxStatus,
    PortMapping,
    UserNamespace,
)
from lastcall.kube.cri.structs.streams import ContainerStreams, ExecSyncResponse, PortForwardStream

__all__ = [
    "DEFAULT_MASKED_PATHS",
    "DEFAULT_READONLY_PATHS",
    "LIMITS_ENFORCED",
    "MISSING_GROUPS",
    "RUNTIME_HANDLERS",
    "SINGLE_USER_ID",
    "SUBSTITUTE_FOR",
    "USER_IDS_MAPPED",
    "USER_NAMESPACES",
    "AuthConfig",
    "Capability",
    "ContainerConfig",
    "ContainerEventResponse",
    "ContainerEventType",
    "ContainerMetadata",
    "ContainerState",
    "ContainerStats",
    "ContainerStatus",
    "ContainerStreams",
    "DNSConfig",
    "ExecSyncResponse",
    "IDMapping",
    "Image",
    "ImageService",
    "LinuxContainerResources",
    "LinuxContainerSecurityContext",
    "Mount",
    "NamespaceMode",
    "NamespaceOption",
    "PodSandboxConfig",
    "PodSandboxMetadata",
    "PodSandboxState",
    "PodSandboxStatus",
    "PortForwardStream",
    "PortMapping",
    "RuntimeCondition",
    "RuntimeService",
    "RuntimeServiceError",
    "RuntimeStatus",
    "SecurityProfile",
    "TCPListener",
    "UserNamespace",
    "check_handler",
]


class RuntimeServiceError(Exception):
    """A CRI call failed.

    `reason` is empty or one of NotFound, StartError, DeadlineExceeded, ImageNotFound, InvalidImageName,
    RegistryUnavailable, SignatureValidationFailed.
    """

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason

    def as_rpc(self) -> str:
        """Return it as the kubelet shows it, for which every runtime is a gRPC server."""
        text = str(self)
        code = self.reason if self.reason in ("NotFound", "DeadlineExceeded") else "Unknown"
        return text if text.startswith("rpc error: ") else f"rpc error: code = {code} desc = {text}"


RUNTIME_HANDLERS = ("", "runc", "test-handler")
"""What a Pod's RuntimeClass may ask for: containerd's default, its name, and the one more that kind configures."""


def check_handler(name: str) -> None:
    """Raise RuntimeServiceError, as containerd's, for an unknown handler (internal/cri/server/sandbox_run.go)."""
    if name not in RUNTIME_HANDLERS:
        text = f"failed to get sandbox runtime: no runtime for {go_quote(name)} is configured"
        raise RuntimeServiceError(f"rpc error: code = Unknown desc = {text}")


class RuntimeService(Protocol):
    """runtime/v1 RuntimeService. Stop and remove verbs are idempotent. Ids are 64 hex digits."""

    async def run_pod_sandbox(self, config: PodSandboxConfig, runtime_handler: str = "") -> str:
        """Run a sandbox and return its id. `runtime_handler` "" is the runtime's default."""
        ...

    async def stop_pod_sandbox(self, pod_sandbox_id: str) -> None:
        """Kill what is left in the sandbox, remove its network. Called at least once before remove."""
        ...

    async def remove_pod_sandbox(self, pod_sandbox_id: str) -> None: ...
    async def pod_sandbox_status(self, pod_sandbox_id: str) -> PodSandboxStatus: ...
    async def list_pod_sandbox(self, pod_uid: str = "") -> list[PodSandboxStatus]:
        """Return all sandboxes, or those of one Pod; newest first."""
        ...

    async def update_pod_sandbox_resources(self, pod_sandbox_id: str, resources: LinuxContainerResources) -> None:
        """Set new limits for the Pod's control group. Raises RuntimeServiceError."""
        ...

    async def create_container(
        self, pod_sandbox_id: str, config: ContainerConfig, sandbox_config: PodSandboxConfig
    ) -> str: ...
    async def start_container(self, container_id: str) -> None:
        """Start a container. Raises RuntimeServiceError, reason StartError if the process cannot run (exit 128)."""
        ...

    async def stop_container(self, container_id: str, timeout: int) -> None:
        """Send the stop signal once per container lifetime, wait `timeout` seconds, SIGKILL, wait for the exit.

        timeout 0 is SIGKILL at once. An unknown or not running container is a success.
        Source of the rule: containerd internal/cri/server/container_stop.go.
        """
        ...

    async def remove_container(self, container_id: str) -> None: ...
    async def update_container_resources(self, container_id: str, resources: LinuxContainerResources) -> None:
        """Set new limits for a container that runs. Raises RuntimeServiceError, also if it does not run."""
        ...

    async def reopen_container_log(self, container_id: str) -> None:
        """Write on into a new file at the container's `log_path`: the old one was renamed.

        Raises RuntimeServiceError, also when the container does not run.
        """
        ...

    async def list_containers(self, pod_uid: str = "") -> list[ContainerStatus]:
        """Return all containers, or those of one Pod; newest first."""
        ...

    async def container_status(self, container_id: str) -> ContainerStatus: ...
    async def exec_sync(self, container_id: str, cmd: tuple[str, ...], timeout: float) -> ExecSyncResponse:
        """Run a command in the container's namespaces. timeout in seconds, 0 is unlimited.

        Cancelling the call kills the process. Raises RuntimeServiceError, reason DeadlineExceeded on timeout.
        """
        ...

    async def exec(self, container_id: str, cmd: tuple[str, ...], *, tty: bool, stdin: bool) -> ContainerStreams:
        """Start a command with streams. Raises RuntimeServiceError: NotFound, StartError.

        It is killed when this process ends, not when its client goes away.
        """
        ...

    async def attach(self, container_id: str, *, stdin: bool, stdout: bool, stderr: bool) -> ContainerStreams:
        """Return a running container's input, and its output from now on. Raises RuntimeServiceError."""
        ...

    async def port_forward(self, pod_sandbox_id: str, port: int) -> PortForwardStream:
        """Connect to `port` on the sandbox's loopback interface. Raises RuntimeServiceError."""
        ...

    def get_container_events(self) -> AsyncIterator[ContainerEventResponse]:
        """Yield all events from now on."""
        ...

    async def status(self) -> RuntimeStatus:
        """Return what the runtime can do here; a kubelet ignores conditions it does not know."""
        ...

    async def container_stats(self, container_id: str) -> ContainerStats | None:
        """Return the usage; None if nobody counts. Raises RuntimeServiceError, reason NotFound."""
        ...

    async def listeners(self, container_id: str) -> tuple[TCPListener, ...] | None:
        """Return who listens in a running container; None where the runtime does not know: CRI has no such call."""
        ...

    async def close(self) -> None: ...


class ImageService(Protocol):
    """runtime/v1 ImageService."""

    async def image_status(self, image: str) -> Image | None: ...
    async def pull_image(self, image: str, auth: AuthConfig | None = None) -> str:
        """Pull an image and return its ref (digest). None for `auth`: what the runtime itself knows.

        Raises RuntimeServiceError with reason ImageNotFound or InvalidImageName, or none.
        """
        ...

    async def list_images(self) -> list[Image]:
        """Return the images on this node; `size` is what one takes there."""
        ...

    async def remove_image(self, image: str) -> None:
        """Remove an image from this node, by id or name; success if it is not there.

        What other nodes share with it (a store of pulled images) is not touched. Raises RuntimeServiceError.
        """
        ...
