"""A container: what it is asked to be, how it is, and what it uses."""

from dataclasses import field
from enum import IntEnum
from typing import Literal

from lastcall.kube.cri.structs.sandboxes import LinuxContainerResources, NamespaceOption
from lastcall.world.dataclass import dataclass

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
    `run_as_username` is the image's user where `run_as_group` is given and the image has a name for its user.

    With `supplemental_groups_policy` Merge the user's groups in the image's /etc/group are added, with Strict not.
    """

    privileged: bool = False
    capabilities: Capability = Capability()
    run_as_user: int | None = None
    run_as_group: int | None = None
    run_as_username: str = ""
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
class TCPListener:
    """A TCP port on which a container listens, and the address."""

    address: str
    port: int


@dataclass(frozen=True, slots=True)
class ContainerStats:
    """What a container uses now: CPU time since its start in nanoseconds, memory in bytes, processes and threads."""

    cpu_usage_core_nano_seconds: int = 0
    memory_usage_bytes: int = 0
    memory_working_set_bytes: int = 0
    process_count: int = 0
