"""The Pod network with NetworkPolicies: a sandbox has its address when the kernel goes by the policies about it.

So the rules that isolate a Pod exist before its first process runs. While there is no NetworkPolicy this only
remembers who is attached.
"""

import asyncio
from collections.abc import Awaitable, Callable

from lastcall.kube.cri.api import PodSandboxConfig, RuntimeServiceError
from lastcall.kube.cri.sandbox.spec import Network
from lastcall.kube.proxy.policies.first_policy import AttachedPod

WAIT_SECONDS = 10.0
"""For the rules of a new Pod; then its sandbox fails, and the kubelet tries again."""


class PolicyGate:
    """A `Network`. `admit` is called for each new Pod while NetworkPolicies are enforced."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self.attached: dict[str, AttachedPod] = {}
        """By the sandbox's id."""
        self._admit: Callable[[], Awaitable[None]] | None = None
        self._known = asyncio.Event()
        self._known.set()

    def expect(self) -> None:
        """Let new Pods wait: what is allowed will be known soon."""
        self._known.clear()

    @property
    def expecting(self) -> bool:
        """Return whether new Pods wait until it is known what is allowed."""
        return not self._known.is_set()

    def enforce(self, admit: Callable[[], Awaitable[None]] | None) -> None:
        """Ask `admit` for every new Pod from here on; None: there are no NetworkPolicies."""
        self._admit = admit
        self._known.set()

    async def attach(self, sandbox_id: str, netns_fd: int, pod_uid: str, config: PodSandboxConfig | None = None) -> str:
        ip = await self._network.attach(sandbox_id, netns_fd, pod_uid, config)
        self._remember(sandbox_id, ip, config)
        if self._admit is not None or not self._known.is_set():
            try:
                async with asyncio.timeout(WAIT_SECONDS):
                    await self._known.wait()
                    if self._admit is not None:
                        await self._admit()
            except TimeoutError:
                text = f'failed to setup network for sandbox "{sandbox_id}": its NetworkPolicies are not in force yet'
                raise RuntimeServiceError(text) from None
        return ip

    async def adopt(self, sandbox_id: str, ip: str, config: PodSandboxConfig | None = None) -> None:
        await self._network.adopt(sandbox_id, ip, config)
        self._remember(sandbox_id, ip, config)

    async def detach(self, sandbox_id: str, ip: str) -> None:
        self.attached.pop(sandbox_id, None)
        await self._network.detach(sandbox_id, ip)

    async def status(self) -> str:
        return await self._network.status()

    def _remember(self, sandbox_id: str, ip: str, config: PodSandboxConfig | None) -> None:
        if config is not None:
            key = config.metadata.namespace, config.metadata.name
            self.attached[sandbox_id] = AttachedPod(key, config.metadata.uid, ip, dict(config.labels))
