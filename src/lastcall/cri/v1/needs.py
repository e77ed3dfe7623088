"""What the service of CRI v1 needs of others, besides the runtime and the images."""

from dataclasses import dataclass
from typing import Protocol

from lastcall.cri import api


@dataclass(frozen=True, slots=True)
class Filesystem:
    """A directory: bytes on disk and inodes of what lies below it, and what its file system has."""

    mountpoint: str
    used_bytes: int
    inodes_used: int
    limit_bytes: int = 0
    inodes: int = 0
    inodes_free: int = 0


class Streams(Protocol):
    """Answers the URL at which one client may have the streams once."""

    def exec(self, container_id: str, cmd: tuple[str, ...], *, tty: bool, streams: frozenset[str]) -> str:
        """`streams` are those of stdin, stdout, stderr that the client wants."""
        ...

    def attach(self, container_id: str, *, tty: bool, streams: frozenset[str]) -> str: ...
    def port_forward(self, pod_sandbox_id: str) -> str: ...


class Disk(Protocol):
    """What images and containers take."""

    async def images(self) -> Filesystem:
        """All unpacked images."""
        ...

    async def containers(self) -> Filesystem:
        """What all containers have written, with the runtime's own files about them."""
        ...

    async def writable_layer(self, container_id: str) -> Filesystem | None:
        """What a container has written; None when nobody counts."""
        ...


class Counting(Protocol):
    """What the kernel counts."""

    async def container_counters(self, container_id: str, *, processes: bool = False) -> api.ContainerCounters:
        """With `processes` their number, descriptors and sockets, too. Raises RuntimeServiceError."""
        ...


class PodFiles(Protocol):
    """Files that a runtime makes for the containers of a sandbox."""

    async def mounts(self, pod_sandbox_id: str, config: api.PodSandboxConfig) -> tuple[api.Mount, ...]:
        """/etc/hostname, /etc/hosts and /etc/resolv.conf. Raises RuntimeServiceError."""
        ...

    async def remove(self, pod_sandbox_id: str) -> None:
        """Idempotent."""
        ...

    def owns(self, host_path: str) -> bool:
        """Whether this is one of them: nobody asked for it, and nobody is told of it."""
        ...


@dataclass(frozen=True, slots=True)
class Facts:
    """What the runtime says of itself. `version` is its own."""

    name: str
    version: str
