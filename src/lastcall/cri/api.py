"""The Container Runtime Interface: verbs and field names of k8s.io/cri-api runtime/v1, as typed structs.

`lastcall.node` knows nothing of a runtime but this. Protobuf exists only at a gRPC edge. Runtime facts that CRI does
not carry (who sent a signal, a signal mask, container output) are records on the timeline, which the runtime writes.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Literal, Protocol

from lastcall.api.field import go_quote

NamespaceMode = Literal["POD", "CONTAINER", "NODE", "TARGET"]


DEFAULT_MASKED_PATHS = (
    "/proc/asound",
    "/proc/acpi",
    "/proc/interrupts",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/proc/scsi",
    "/sys/firmware",
    "/sys/devices/virtual/powercap",
)
DEFAULT_READONLY_PATHS = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")
"""Source: Kubernetes pkg/securitycontext/util.go."""


@dataclass(frozen=True, slots=True)
class PodSandboxMetadata:
    name: str
    uid: str
    namespace: str
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class IDMapping:
    """`length` ids from `container_id` on are those from `host_id` on for the runtime."""

    host_id: int
    container_id: int
    length: int


@dataclass(frozen=True, slots=True)
class UserNamespace:
    """NODE shares the runtime's; POD has the ids of these mappings, whose users and groups must be the same."""

    mode: NamespaceMode = "NODE"
    uids: tuple[IDMapping, ...] = ()
    gids: tuple[IDMapping, ...] = ()


@dataclass(frozen=True, slots=True)
class NamespaceOption:
    network: NamespaceMode = "POD"
    pid: NamespaceMode = "CONTAINER"
    ipc: NamespaceMode = "POD"
    target_id: str = ""
    userns_options: UserNamespace = UserNamespace()


@dataclass(frozen=True, slots=True)
class DNSConfig:
    servers: tuple[str, ...] = ()
    searches: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PortMapping:
    """`protocol` is TCP, UDP or SCTP; `host_ip` "" is every address of the node."""

    host_port: int
    container_port: int
    protocol: str = "TCP"
    host_ip: str = ""


@dataclass(frozen=True, slots=True)
class LinuxContainerResources:
    """CFS period and quota in microseconds, memory in bytes; 0 is unlimited.

    `unified` holds files of cgroup v2 by name (`pids.max`); a runtime on version 1 does what it can of them.
    """

    cpu_period: int = 0
    cpu_quota: int = 0
    cpu_shares: int = 0
    memory_limit_in_bytes: int = 0
    oom_score_adj: int = 0
    unified: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PodSandboxConfig:
    """`log_directory` is absolute; containers' `log_path` is relative to it.

    `cgroup_parent` is the Pod's control group below the runtime's own (`/kubepods/burstable/pod<uid>`), "" for none;
    the runtime makes it with the limits of `resources` and removes it with the sandbox (CRI LinuxPodSandboxConfig).
    """

    metadata: PodSandboxMetadata
    hostname: str = ""
    log_directory: str = ""
    dns_config: DNSConfig = DNSConfig()
    port_mappings: tuple[PortMapping, ...] = ()
    namespace_options: NamespaceOption = NamespaceOption()
    sysctls: dict[str, str] = field(default_factory=dict)
    cgroup_parent: str = ""
    resources: LinuxContainerResources = LinuxContainerResources()
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


class PodSandboxState(IntEnum):
    SANDBOX_READY = 0
    SANDBOX_NOTREADY = 1


@dataclass(frozen=True, slots=True)
class PodSandboxStatus:
    """`created_at` is nanoseconds since the epoch; `ips` has the primary address first, empty for NODE network.

    `resources` are the limits of the Pod's control group, as they were set last.
    """

    id: str
    metadata: PodSandboxMetadata
    state: PodSandboxState
    created_at: int
    ips: tuple[str, ...] = ()
    namespace_options: NamespaceOption = NamespaceOption()
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    resources: LinuxContainerResources = LinuxContainerResources()


@dataclass(frozen=True, slots=True)
class ContainerMetadata:
    name: str
    attempt: int = 0


@dataclass(frozen=True, slots=True)
class Mount:
    """A bind mount of `host_path` (in the node's mount namespace) at `container_path`.

    With `image`, the name of one that is on the node, what that holds is mounted instead, or `image_sub_path` of it.
    """

    container_path: str
    host_path: str
    readonly: bool = False
    image: str = ""
    image_sub_path: str = ""


@dataclass(frozen=True, slots=True)
class Capability:
    add: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SecurityProfile:
    """`localhost_ref` is the absolute path of the profile's file, with Localhost."""

    profile_type: Literal["RuntimeDefault", "Unconfined", "Localhost"] = "Unconfined"
    localhost_ref: str = ""


@dataclass(frozen=True, slots=True)
class LinuxContainerSecurityContext:
    """None for `run_as_user`/`run_as_group` means the image's own, for `masked_paths`/`readonly_paths` the runtime's.

    With `supplemental_groups_policy` Merge the user's groups in the image's /etc/group are added, with Strict not.
    """

    privileged: bool = False
    capabilities: Capability = Capability()
    run_as_user: int | None = None
    run_as_group: int | None = None
    supplemental_groups: tuple[int, ...] = ()
    supplemental_groups_policy: Literal["Merge", "Strict"] = "Merge"
    readonly_rootfs: bool = False
    no_new_privs: bool = False
    masked_paths: tuple[str, ...] | None = None
    readonly_paths: tuple[str, ...] | None = None
    namespace_options: NamespaceOption = NamespaceOption()
    seccomp: SecurityProfile = SecurityProfile()


@dataclass(frozen=True, slots=True)
class ContainerConfig:
    """
    `command` replaces the image's entrypoint, `args` its cmd, as in Kubernetes. `stop_signal` "" is the image's.
    """

    metadata: ContainerMetadata
    image: str
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    working_dir: str = ""
    envs: tuple[tuple[str, str], ...] = ()
    mounts: tuple[Mount, ...] = ()
    log_path: str = ""
    stdin: bool = False
    stdin_once: bool = False
    tty: bool = False
    stop_signal: str = ""
    security_context: LinuxContainerSecurityContext = LinuxContainerSecurityContext()
    resources: LinuxContainerResources = LinuxContainerResources()
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)


class ContainerState(IntEnum):
    CONTAINER_CREATED = 0
    CONTAINER_RUNNING = 1
    CONTAINER_EXITED = 2
    CONTAINER_UNKNOWN = 3


@dataclass(frozen=True, slots=True)
class ContainerStatus:
    """Times are nanoseconds since the epoch, 0 when not reached.

    `reason` is Completed, Error, OOMKilled, StartError, Unknown (nobody saw its end) or ContainerStatusUnknown.

    `message` is what the runtime has to say (a start error); the termination message file is the kubelet's to read.
    `info` is CRI's verbose information: the keys SINGLE_USER_ID and MISSING_GROUPS, where there is something to say.
    `stop_signal` is the name of the signal that StopContainer sends: the config's, the image's, else SIGTERM.
    `resources` are the limits as they were set last.
    """

    id: str
    metadata: ContainerMetadata
    pod_sandbox_id: str
    state: ContainerState
    image: str
    image_ref: str
    created_at: int
    started_at: int = 0
    finished_at: int = 0
    exit_code: int = 0
    reason: str = ""
    message: str = ""
    log_path: str = ""
    mounts: tuple[Mount, ...] = ()
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    info: dict[str, str] = field(default_factory=dict)
    stop_signal: str = ""
    resources: LinuxContainerResources = LinuxContainerResources()


SINGLE_USER_ID = "lastcall.dev/single-user-id"
"""In `info`: the calls (`chown setuid`) that were answered with success without being done: there is one user id."""

MISSING_GROUPS = "lastcall.dev/missing-groups"
"""In `info`: the supplementary groups (`2000 3000`) that the container's processes could not be members of."""


@dataclass(frozen=True, slots=True)
class ContainerStats:
    """What a container uses now: CPU time since its start in nanoseconds, memory in bytes, processes and threads."""

    cpu_usage_core_nano_seconds: int = 0
    memory_usage_bytes: int = 0
    memory_working_set_bytes: int = 0
    process_count: int = 0


@dataclass(frozen=True, slots=True)
class RuntimeCondition:
    """`type` is RuntimeReady, NetworkReady, or one of LIMITS_ENFORCED, USER_IDS_MAPPED and USER_NAMESPACES."""

    type: str
    status: bool
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True)
class RuntimeStatus:
    conditions: tuple[RuntimeCondition, ...] = ()

    def find(self, condition_type: str) -> RuntimeCondition | None:
        return next((condition for condition in self.conditions if condition.type == condition_type), None)


LIMITS_ENFORCED = "lastcall.dev/LimitsEnforced"
USER_IDS_MAPPED = "lastcall.dev/UserIDsMapped"
USER_NAMESPACES = "lastcall.dev/UserNamespaces"
"""Whether a sandbox can have a user namespace of mode POD."""


@dataclass(frozen=True, slots=True)
class ExecSyncResponse:
    stdout: bytes
    stderr: bytes
    exit_code: int


class ContainerStreams(Protocol):
    """The streams of a command (Exec) or of a container (Attach). CRI answers with a URL, here they are themselves.

    Nothing is buffered: a read waits for data, a write for room. One reader and one writer a stream.
    """

    async def read_stdout(self) -> bytes:
        """Some bytes; b"" when the stream is over."""
        ...

    async def read_stderr(self) -> bytes:
        """As `read_stdout`. A terminal has only one output, stdout."""
        ...

    async def write_stdin(self, data: bytes) -> None:
        """All of `data`. Raises BrokenPipeError when nobody reads any more."""
        ...

    async def close_stdin(self) -> None:
        """The client's input is over. An attach then ends too, unless the container has `stdin_once`."""
        ...

    def resize(self, width: int, height: int) -> None:
        """The size of the client's terminal, in characters. Nothing happens without one."""
        ...

    async def wait(self) -> int:
        """The exit code of a command, once it has ended; its output may not be over yet. 0 of an attach."""
        ...

    async def close(self) -> None:
        """Let go. A command that still runs goes on, as in containerd."""
        ...


class PortForwardStream(Protocol):
    """A TCP connection to a port of a Pod."""

    async def read(self) -> bytes:
        """Some bytes; b"" when the other side has ended its direction."""
        ...

    async def write(self, data: bytes) -> None:
        """All of `data`. Raises BrokenPipeError."""
        ...

    async def close_write(self) -> None:
        """This direction is over."""
        ...

    async def close(self) -> None: ...


class ContainerEventType(IntEnum):
    CONTAINER_CREATED_EVENT = 0
    CONTAINER_STARTED_EVENT = 1
    CONTAINER_STOPPED_EVENT = 2
    CONTAINER_DELETED_EVENT = 3


@dataclass(frozen=True, slots=True)
class ContainerEventResponse:
    """`pod_uid` is the sandbox metadata's uid; `container_id` is the sandbox id for sandbox events."""

    container_id: str
    container_event_type: ContainerEventType
    created_at: int
    pod_uid: str


@dataclass(frozen=True, slots=True)
class Image:
    """`id` is the config digest; `size` in bytes. `annotations` carry lastcall's own facts (see `SUBSTITUTE_FOR`).

    A `pinned` image is not to be garbage collected."""

    id: str
    repo_tags: tuple[str, ...] = ()
    repo_digests: tuple[str, ...] = ()
    size: int = 0
    user: str = ""
    annotations: dict[str, str] = field(default_factory=dict)
    pinned: bool = False


SUBSTITUTE_FOR = "lastcall.dev/substitute-for"
"""Image annotation: this image was made from the host's own files because the named one is not available."""


@dataclass(frozen=True, slots=True)
class AuthConfig:
    """Credentials for a registry: user and password, or an identity token, or a token for the registry itself."""

    username: str = ""
    password: str = field(default="", repr=False)
    identity_token: str = field(default="", repr=False)
    registry_token: str = field(default="", repr=False)


class RuntimeServiceError(Exception):
    """A CRI call failed.

    `reason` is empty or one of NotFound, StartError, DeadlineExceeded, ImageNotFound, InvalidImageName,
    RegistryUnavailable, SignatureValidationFailed.
    """

    def __init__(self, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.reason = reason


RUNTIME_HANDLERS = ("", "runc", "test-handler")
"""What a Pod's RuntimeClass may ask for: containerd's default, its name, and the one more that kind configures."""


def check_handler(name: str) -> None:
    """Raises RuntimeServiceError in containerd's words (internal/cri/server/sandbox_run.go, pkg/sandbox_runtime)."""
    if name not in RUNTIME_HANDLERS:
        text = f"failed to get sandbox runtime: no runtime for {go_quote(name)} is configured"
        raise RuntimeServiceError(f"rpc error: code = Unknown desc = {text}")


class RuntimeService(Protocol):
    """runtime/v1 RuntimeService. Stop and remove verbs are idempotent. Ids are 64 hex digits."""

    async def run_pod_sandbox(self, config: PodSandboxConfig, runtime_handler: str = "") -> str:
        """`runtime_handler` "" is the runtime's default."""
        ...

    async def stop_pod_sandbox(self, pod_sandbox_id: str) -> None:
        """Kill what is left in the sandbox, tear its network down. Called at least once before remove."""
        ...

    async def remove_pod_sandbox(self, pod_sandbox_id: str) -> None: ...
    async def pod_sandbox_status(self, pod_sandbox_id: str) -> PodSandboxStatus: ...
    async def list_pod_sandbox(self, pod_uid: str = "") -> list[PodSandboxStatus]:
        """All sandboxes, or those of one Pod; newest first."""
        ...

    async def update_pod_sandbox_resources(self, pod_sandbox_id: str, resources: LinuxContainerResources) -> None:
        """Set the limits of the Pod's control group anew. Raises RuntimeServiceError."""
        ...

    async def create_container(
        self, pod_sandbox_id: str, config: ContainerConfig, sandbox_config: PodSandboxConfig
    ) -> str: ...
    async def start_container(self, container_id: str) -> None:
        """Raises RuntimeServiceError with reason StartError when the process could not be executed (exit code 128)."""
        ...

    async def stop_container(self, container_id: str, timeout: int) -> None:
        """Send the stop signal once per container lifetime, wait `timeout` seconds, SIGKILL, wait for the exit.

        timeout 0 is SIGKILL at once. An unknown or not running container is a success.
        Source of the rule: containerd internal/cri/server/container_stop.go.
        """
        ...

    async def remove_container(self, container_id: str) -> None: ...
    async def update_container_resources(self, container_id: str, resources: LinuxContainerResources) -> None:
        """Set the limits of a container that runs anew. Raises RuntimeServiceError, also when it does not run."""
        ...

    async def reopen_container_log(self, container_id: str) -> None:
        """Write on into a new file at the container's `log_path`: the old one was renamed.

        Raises RuntimeServiceError, also when the container does not run.
        """
        ...

    async def list_containers(self, pod_uid: str = "") -> list[ContainerStatus]:
        """All containers, or those of one Pod; newest first."""
        ...

    async def container_status(self, container_id: str) -> ContainerStatus: ...
    async def exec_sync(self, container_id: str, cmd: tuple[str, ...], timeout: float) -> ExecSyncResponse:
        """Run a command in the container's namespaces. timeout in seconds, 0 is none.

        Cancelling the call kills the process. Raises RuntimeServiceError, reason DeadlineExceeded on timeout.
        """
        ...

    async def exec(self, container_id: str, cmd: tuple[str, ...], *, tty: bool, stdin: bool) -> ContainerStreams:
        """Start a command with streams. Raises RuntimeServiceError: NotFound, StartError.

        It is killed when this process ends, not when its client goes away.
        """
        ...

    async def attach(self, container_id: str, *, stdin: bool, stdout: bool, stderr: bool) -> ContainerStreams:
        """A running container's input, and its output from now on. Raises RuntimeServiceError."""
        ...

    async def port_forward(self, pod_sandbox_id: str, port: int) -> PortForwardStream:
        """Connect to `port` on the sandbox's loopback interface. Raises RuntimeServiceError."""
        ...

    def get_container_events(self) -> AsyncIterator[ContainerEventResponse]:
        """All events from now on."""
        ...

    async def status(self) -> RuntimeStatus:
        """What the runtime can do here; a kubelet ignores conditions it does not know."""
        ...

    async def container_stats(self, container_id: str) -> ContainerStats | None:
        """None when nobody counts. Raises RuntimeServiceError, reason NotFound."""
        ...

    async def close(self) -> None: ...


class ImageService(Protocol):
    """runtime/v1 ImageService."""

    async def image_status(self, image: str) -> Image | None: ...
    async def pull_image(self, image: str, auth: AuthConfig | None = None) -> str:
        """The image ref (digest). None for `auth`: what the runtime itself knows.

        Raises RuntimeServiceError with reason ImageNotFound or InvalidImageName, or none.
        """
        ...

    async def list_images(self) -> list[Image]:
        """The images on this node; `size` is what one takes there."""
        ...

    async def remove_image(self, image: str) -> None:
        """Take an image off this node, by id or name; one that is not there is a success.

        What other nodes share with it (a store of pulled images) is not touched. Raises RuntimeServiceError.
        """
        ...
