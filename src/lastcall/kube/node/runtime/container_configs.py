"""The CRI configuration of a container, from its Pod, the node and what other objects say."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from lastcall.kube.api.features.gates import CONTAINER_STOP_SIGNALS, FeatureGates
from lastcall.kube.api.meta import uid_of
from lastcall.kube.api.quantity import parse_quantity
from lastcall.kube.api.resources import SERVICES
from lastcall.kube.client.api import Client
from lastcall.kube.client.informer import Informer
from lastcall.kube.cri.api import ContainerConfig, Image
from lastcall.kube.node.interfaces import VolumeManager
from lastcall.kube.node.pods.spec import is_host_network_pod, is_static_pod
from lastcall.kube.node.runtime.container_config import generate_container_config
from lastcall.kube.node.runtime.environment import APISources, ContainerConfigError, make_environment
from lastcall.kube.node.runtime.pleg import PodLifecycleEventGenerator
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.kube.api.types.container import Container, EphemeralContainer
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.service import Service
    from lastcall.kube.node.kubelet_config import KubeletConfig

SERVICES_TIMEOUT_SECONDS = 5.0


class ContainerConfigs:
    """`run` beside the kubelet: it follows the Services that environment variables name."""

    def __init__(
        self,
        *,
        world: World,
        client: Client,
        config: KubeletConfig,
        volumes: VolumeManager,
        pleg: PodLifecycleEventGenerator,
        gates: FeatureGates,
    ) -> None:
        self._config = config
        self._volumes = volumes
        self._pleg = pleg
        self._gates = gates
        self._memory_capacity = config.memory_capacity or parse_quantity(config.allocatable.get("memory", "0")).whole
        self._services: Informer[Service] = Informer(client, SERVICES, world=world)
        self.sources = APISources(client, self._services.items)

    async def run(self) -> None:
        """Run until cancelled."""
        await self._services.run()

    async def make(
        self, pod: Pod, container: Container, image: Image, attempt: int, pod_ips: tuple[str, ...]
    ) -> ContainerConfig:
        if is_host_network_pod(pod):
            pod_ips = (self._config.node_ip,)
        if not is_static_pod(pod):  # which has to run without an API server
            try:
                async with asyncio.timeout(SERVICES_TIMEOUT_SECONDS):
                    await self._services.synced()
            except TimeoutError:
                text = "services have not yet been read at least once, cannot construct envvars"
                raise ContainerConfigError(text) from None
        envs = await make_environment(
            pod,
            container,
            sources=self.sources,
            pod_ips=pod_ips,
            host_ip=self._config.node_ip,
            node_allocatable=self._config.allocatable,
        )
        return generate_container_config(
            pod,
            container,
            image,
            attempt=attempt,
            envs=envs,
            mounts=self._volumes.mounts(pod, container, pod_ips, attempt=attempt),
            stop_signal_is_honoured=self._gates.enabled(CONTAINER_STOP_SIGNALS),
            memory_capacity=self._memory_capacity,
            target_id=self._target_container_id(pod, container),
            seccomp_default=self._config.seccomp_default,
        )

    def _target_container_id(self, pod: Pod, container: Container) -> str:
        """The running container whose processes an ephemeral container sees. Raises ContainerConfigError."""
        name = cast("EphemeralContainer", container).get("targetContainerName")  # others have no such key
        if not name:
            return ""
        status = self._pleg.get(uid_of(pod))
        target = status.find(name) if status else None
        if target is None:
            raise ContainerConfigError(f"unable to find target container {name}")
        return target.id
