"""Front's side of a node that joined somebody's cluster: what differs from that of `up`."""

from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lastcall.api.errors import StatusError
from lastcall.api.meta import Object
from lastcall.api.pods.spec import get_condition
from lastcall.api.resources import NODES, PODS
from lastcall.client.api import Client, ConnectionLost, ListResult
from lastcall.client.informer import Informer
from lastcall.client.kubeconfig import render_kubeconfig
from lastcall.cluster.embedded import Running
from lastcall.cluster.errors import ClusterStartError
from lastcall.cluster.joined import files
from lastcall.cluster.joined.approving import keep_approving
from lastcall.cluster.joined.drain import drain
from lastcall.cluster.joined.facts import Joined
from lastcall.cluster.joined.files import FileCredentials, PairFile
from lastcall.cluster.joined.link import Link
from lastcall.cluster.joined.ports import follow_ports
from lastcall.cluster.options import ClusterOptions
from lastcall.cluster.staying.front import Front
from lastcall.cluster.tree import grow
from lastcall.world import walls
from lastcall.world.messages import Message
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

if TYPE_CHECKING:
    from lastcall.client.access.config import ClientConfig
    from lastcall.client.http import HTTPClient
    from lastcall.cluster.control.socket import Fields

_ROLE = "node-1"
_LOOK_SECONDS = 0.1
_TAKE_OVER_SECONDS = 2.0


def start(options: ClusterOptions) -> "JoinedNode":
    """The process tree of the node that `options.joined` describes. As `embedded.start`."""
    return JoinedNode(grow(options))


class JoinedNode(Running):
    """Its client is the node itself, as the API server knows it."""

    @property
    def joined(self) -> Joined:
        assert self._options.joined is not None
        return self._options.joined

    @property
    def server(self) -> str:
        """That of the cluster."""
        return self.joined.server

    @property
    def outside_server(self) -> str:
        return self.joined.server

    @property
    def ca_certificate(self) -> bytes:
        return self.joined.ca_certificate

    @property
    def link(self) -> Link:
        """To the machine's network."""
        assert self._plan.joined is not None
        return self._plan.joined.link

    @property
    def client_file(self) -> PairFile:
        """The node's client certificate."""
        return PairFile(f"{self._options.state}/{files.DIRECTORY}", files.KUBELET_CLIENT)

    def kubeconfig(self) -> str:
        """The node's own, as YAML: with the file that is renewed."""
        return render_kubeconfig(
            self.joined.node_name,
            self.server,
            self.ca_certificate,
            pair_file=str(self.client_file.path),
            tls_server_name=self.joined.tls_server_name,
        )

    def ask_node(self, node: str, message: Message) -> AsyncIterator[str]:
        return super().ask_node(_ROLE, message)

    def _make_client(self) -> "HTTPClient":
        # late: meanwhile the roles start on another processor
        from lastcall.client.http import HTTPClient

        credentials = FileCredentials(self.client_file, self.ca_certificate)
        return HTTPClient(
            self.server, ssl_context=None, credentials=credentials, tls_server_name=self.joined.tls_server_name
        )

    async def _ask_api_server(self) -> None:
        await self.client.list(NODES, field_selector=f"metadata.name={self.joined.node_name}")

    async def _nodes_ready(self) -> None:
        """Ready is what the node says; whether it may have Pods is the cluster's to say, which may wait for others."""
        while True:
            try:
                with suppress(ConnectionLost):
                    node = await self.client.get(NODES, self.joined.node_name)
                    ready = get_condition(node.get("status") or {}, "Ready") or {}
                    if ready.get("status") == "True" and not _is_old(node, self._plan.boot_id):
                        return
            except StatusError as error:
                if error.code in (401, 403):
                    raise ClusterStartError(f"the API server refuses the node: {error.message}") from error
            await self._clock.sleep(_LOOK_SECONDS)


def _is_old(node: Object, boot_id: str) -> bool:
    """Whether the status is one that an earlier process wrote."""
    return bool((node.get("status") or {}).get("nodeInfo", {}).get("bootID") != boot_id)


@dataclass(slots=True)
class JoinedFront(Front):
    """With `administrator`, the node's certificates are approved with that. `drains`: before the end."""

    administrator: "ClientConfig | None" = None
    drains: bool = False

    @property
    def joined(self) -> Joined:
        assert self.options.joined is not None
        return self.options.joined

    @property
    def nodes(self) -> list[str]:
        return [self.joined.node_name]

    def facts(self) -> "Fields":
        return {
            **super(JoinedFront, self).facts(),
            "node": self.joined.node_name,
            "podCIDR": self.joined.pod_cidr,
            "waitsFor": self._missing(),
        }

    def _beside(self, tasks: Tasks) -> None:
        tasks.spawn(walls.keep_running("ports of Pods", self._follow_ports, self.clock), name="ports of Pods")
        tasks.spawn(walls.keep_running("podCIDR", self._follow_node, self.clock), name="podCIDR")
        if self.administrator is not None:
            approving = walls.keep_running("approvals", self._approve, self.clock)
            tasks.spawn(approving, name="approvals")
        if self.joined.pod_network is not None and self.cluster.machine is None and not self.joined.is_beside_server:
            tasks.spawn(walls.keep_running("Pod network", self._take_over, self.clock), name="Pod network")

    async def _follow_ports(self) -> None:
        assert isinstance(self.cluster, JoinedNode)
        await follow_ports(World(), self.cluster.client, self.joined, self.cluster.link, self.log.write)

    async def _follow_node(self) -> None:
        """A Node that somebody deleted is made again, and may get another range: its Pods' addresses are then wrong."""
        ranges: dict[str, None] = {}

        def seen(node: Object) -> None:
            found = str((node.get("spec") or {}).get("podCIDR") or "")
            if found and found not in ranges:
                if ranges:
                    text = (
                        f"the cluster gave node {self.joined.node_name} podCIDR {found}, and its Pods have addresses "
                        f"of {self.joined.pod_cidr}; fix: start lastcall node join again"
                    )
                    self.log.write(text)
                    self.warn(text)
                ranges[found] = None

        name = self.joined.node_name
        node: Informer[Object] = Informer(
            self.cluster.client, NODES, field_selector=f"metadata.name={name}", world=World()
        )
        node.add_handler(seen, lambda _, new: seen(new))
        await node.run()

    async def _take_over(self) -> None:
        """Another process routes for all nodes of this machine; when it ends, this one does."""
        # late: only for several nodes of one machine
        from lastcall.cluster.machines.here import Here

        assert self.joined.pod_network is not None
        while (machine := Here.of_joined(self.joined.pod_network, self.joined.node_ip, 0)) is None:
            await self.clock.sleep(_TAKE_OVER_SECONDS)
        try:
            await self._route(machine)
        finally:
            machine.end()

    async def _approve(self) -> None:
        assert self.administrator is not None
        await keep_approving(World(), self.administrator, self.joined, self.log.write)

    def _missing(self) -> list[str]:
        """Certificates that others have to approve."""
        assert isinstance(self.cluster, JoinedNode)
        pki = self.cluster.client_file.path.parent
        names = [] if self.administrator is not None else [files.KUBELET_SERVER, files.KUBE_PROXY]
        return [name for name in names if PairFile(pki, name).read() is None]

    async def _before_end(self) -> None:
        if self.drains:
            await drain(World(), self.cluster.client, self.joined.node_name, self.log.write)

    async def _looked_up(self, client: Client) -> tuple[ListResult, ListResult]:
        name = self.joined.node_name
        return (
            await client.list(NODES, field_selector=f"metadata.name={name}"),
            await client.list(PODS, field_selector=f"spec.nodeName={name}"),
        )
