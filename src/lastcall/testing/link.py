"""One event loop's connection to a cluster that runs: its API, its control socket, its records."""

# check: reads facts because it reads what a cluster sends about itself

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lastcall.endings import PodFacts, build_endings
from lastcall.errors import ClusterError, LastcallError
from lastcall.experiment.ready import Objects
from lastcall.kube.api import Object
from lastcall.kube.client import client_for, load_kubeconfig
from lastcall.kube.cluster import (
    AddNode,
    ClusterUsageError,
    ControlClient,
    ControlError,
    DirectoryError,
    NotRunning,
    Publish,
    RemoveNode,
)
from lastcall.manifests.applying import Manifests
from lastcall.records.record import Record
from lastcall.testing.rollout import Rollout, run_rollout
from lastcall.world.clock import RealClock, monotonic

if TYPE_CHECKING:
    from lastcall.endings import Ending as Story
    from lastcall.testing.ending import Ending

__tracebackhide__ = True  # pytest shows the caller's line

SETTLE_SECONDS = 2.0
"""How long the last records of an end may take to arrive, on a machine that is very busy."""
_LOOK_SECONDS = 0.03


class Link:
    """`close` at the end. Raises ClusterError for whatever keeps the cluster from answering."""

    def __init__(self, name: str) -> None:
        """`name` of a cluster that runs. Blocking for some milliseconds."""
        self._control = ControlClient(name)
        self.facts: dict[str, Any] = self._ask(self._control.status)
        self.name = name
        self.kubeconfig: str = self.facts["kubeconfig"]
        self.server: str = self.facts["server"]
        self.kubernetes_version: str = self.facts["kubernetesVersion"]
        self.clock = RealClock()
        self.client = client_for(load_kubeconfig(str(Path(self.kubeconfig))))
        self.objects = Objects(self.client, self.clock)
        self._published: dict[str, tuple[str, int]] = {}

    async def close(self) -> None:
        await self.client.close()

    @staticmethod
    def _ask(question: Any, *arguments: Any) -> Any:
        try:
            return question(*arguments)
        except (ControlError, NotRunning, DirectoryError, ClusterUsageError) as error:
            raise ClusterError(str(error)) from error

    def allow(self, method: str, namespace: str) -> None:
        """Return: in a cluster of our own everything may be changed."""

    def check_own(self, method: str) -> None:
        """Return: it is one."""

    @asynccontextmanager
    async def following(self, pods: Sequence[Object]) -> AsyncIterator[None]:
        """Do nothing: the cluster itself records how its Pods end."""
        yield

    async def rollout(self, manifests: Sequence[Manifests], timeout: float, options: dict[str, Any]) -> Rollout:
        """Run `lastcall rollout` with these manifests, in another cluster of its own."""
        return await run_rollout(manifests, timeout, options)

    async def publish(self, target: str) -> tuple[str, int]:
        """Return where connections to `svc/NAMESPACE/NAME:PORT` are taken. Raises ClusterError."""
        if target not in self._published:
            address = await asyncio.get_running_loop().run_in_executor(None, self._ask, self._publish, target)
            host, _, port = address.rpartition(":")
            self._published[target] = (host, int(port))
        return self._published[target]

    def _publish(self, target: str) -> str:
        with self._control.connect() as connection:
            for answer in connection.ask(Publish(port=f"0:{target}")):
                if "address" in answer:
                    return str(answer["address"])
        raise ControlError(f"cluster {self.name!r} did not say where {target} is published")

    async def change_nodes(self, asked: AddNode | RemoveNode) -> dict[str, Any]:
        """Return all that the cluster answers when it is done. Raises ClusterError.

        A change that is cancelled is undone, if it still can be.
        """
        loop = asyncio.get_running_loop()
        connection = await loop.run_in_executor(None, self._ask, self._control.connect)
        connection.socket.settimeout(None)

        def answers() -> dict[str, Any]:
            return {key: value for answer in connection.ask(asked) for key, value in answer.items()}

        try:
            found: dict[str, Any] = await loop.run_in_executor(None, self._ask, answers)
            return found
        except asyncio.CancelledError:
            connection.socket.shutdown(socket.SHUT_RDWR)  # the thread waits for it
            raise
        finally:
            connection.close()

    # -- stories -------------------------------------------------------------------------------------------------------

    async def _records(self, uid: str = "") -> list[Record]:
        try:
            return [record async for record in await self._control.records(pod_uid=uid)]
        except (ControlError, NotRunning, DirectoryError) as error:
            raise ClusterError(str(error)) from error

    async def endings(self, uids: Sequence[str]) -> "Ending":
        """Return how these Pods ended, when everything about them is known."""
        until = monotonic(self.clock) + SETTLE_SECONDS
        while True:
            records = await self._records(uids[0] if len(uids) == 1 else "") if uids else []
            once = {record.id: record for record in records}.values()
            pods = build_endings(
                once, [PodFacts(uid, "", "") for uid in uids], kubernetes_version=self.kubernetes_version
            )
            if all(pod.gone is not None for pod in pods) or monotonic(self.clock) > until:
                return self._ending(sorted(pods, key=lambda pod: pod.gone or 0.0))
            await self.clock.sleep(_LOOK_SECONDS)

    async def story(self, namespace: str, name: str) -> "Ending":
        """Return how the latest Pod of that name ended of which a container has ended. Raises LastcallError."""
        # late: pytest imports the plugin in every run, with a cluster or without
        from lastcall.endings import find_ending, known_endings
        from lastcall.errors import UserError

        known = known_endings(await self._records(), self.kubernetes_version)
        try:
            return self._ending([find_ending(known, name, namespace, None, self.name)])
        except UserError as error:
            raise LastcallError(str(error)) from error

    async def stories(self, namespace: str) -> "Ending":
        """Return how all Pods of a namespace ended that were to end, in this order."""
        # late: pytest imports the plugin in every run, with a cluster or without
        from lastcall.endings import known_endings

        known = known_endings(await self._records(), self.kubernetes_version)
        return self._ending([each for each in known if each.zero_kind and each.pod.namespace == namespace])

    def _ending(self, pods: "Sequence[Story]") -> "Ending":
        # late: pytest imports the plugin in every run, with a cluster or without
        from lastcall.endings.render import about_cluster
        from lastcall.testing.ending import Ending

        version = self.kubernetes_version
        return Ending(tuple(pods), version, cluster=about_cluster(version, name=self.name))
