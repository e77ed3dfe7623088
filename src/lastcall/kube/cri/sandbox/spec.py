"""What the sandbox runtime asks of the image store and of the Pod network.

`images/` and `network.py` implement these; `runtime.py` uses nothing else of them.
"""

from typing import Protocol

from lastcall.kube.cri.api import Mount, PodSandboxConfig
from lastcall.world.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class ImageConfig:
    """The part of an OCI image configuration that decides how a container runs.

    `env` holds `NAME=value` texts; `user` is `uid[:gid]` or names, "" is root; `stop_signal` is a name or number, "" is
    SIGTERM.
    """

    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    working_dir: str = ""
    user: str = ""
    stop_signal: str = ""


@dataclass(frozen=True, slots=True)
class RootFilesystem:
    """What a container's root is made of.

    `lowerdirs` are absolute directories in the node's mount namespace, the uppermost layer first; the runtime never
    writes to them. `binds` are further (read-only) bind mounts that belong to the image, such as the host's /usr.
    `image_ref` is the image id for ContainerStatus.
    """

    lowerdirs: tuple[str, ...]
    binds: tuple[Mount, ...] = ()
    config: ImageConfig = ImageConfig()
    image_ref: str = ""


class RootFilesystems(Protocol):
    """The image store, as the runtime sees it."""

    def rootfs(self, image: str) -> RootFilesystem:
        """Return the unpacked image. Raises RuntimeServiceError with reason ImageNotFound."""
        ...


NETWORK = "Pod network"
"""The component of faults that are caught at one sandbox's network."""


class Network(Protocol):
    """The Pod network, as the runtime sees it. `recorded_network.py` writes the records of it."""

    async def attach(self, sandbox_id: str, netns_fd: int, pod_uid: str, config: PodSandboxConfig | None = None) -> str:
        """Connect a network namespace (the fd stays the caller's); return the Pod's IP. Raises RuntimeServiceError."""
        ...

    async def adopt(self, sandbox_id: str, ip: str, config: PodSandboxConfig | None = None) -> None:
        """Adopt what an earlier node process attached. Raises RuntimeServiceError for an unavailable address."""
        ...

    async def detach(self, sandbox_id: str, ip: str) -> None:
        """Release the address and remove the links; "" if attach never answered. Idempotent."""
        ...

    async def status(self) -> str:
        """Return why no Pod could be connected now, "" if one could."""
        ...
