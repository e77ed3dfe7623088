"""A Pod's sandbox: what it is asked to be, and how it is."""

from dataclasses import field
from enum import IntEnum
from typing import Literal

from lastcall.world.dataclass import dataclass

NamespaceMode = Literal["POD", "CONTAINER", "NODE", "TARGET"]


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
    privileged: bool = False
    """Whether its containers may be privileged."""
    run_as_user: int | None = None
    """Of the sandbox's own process; None is the user of its image."""
    run_as_group: int | None = None


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
