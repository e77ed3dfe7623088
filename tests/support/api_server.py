"""A whole API server on loopback for tests, the replay of recordings, and measurements.

    python tests/support/api_server.py --kubeconfig PATH [--kubernetes-version 1.36] [--controllers] [--stand-in-node]

`--stand-in-node` registers a Ready node, assigns Pods to it and writes the statuses of a kubelet on which every image
starts at once and every container ends as soon as it is asked: enough for what the API alone decides.
"""

import argparse
import asyncio
import os
import secrets
import socket
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import BINDINGS, CONFIGMAPS, NAMESPACES, NODES, PODS, SERVICEACCOUNTS
from lastcall.kube.apiserver.audit.log import AuditOptions
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.auth.pki import ClusterCA
from lastcall.kube.apiserver.auth.tls import server_context
from lastcall.kube.apiserver.proxying.aggregation.front_proxy import FrontProxy
from lastcall.kube.apiserver.server import APIServer, APIServerConfig
from lastcall.kube.apiserver.streaming.proxy import KubeletStreams
from lastcall.kube.apiserver.subresources.kubelet_client import KubeletLogs
from lastcall.kube.client.api import Client
from lastcall.kube.client.http import HTTPClient
from lastcall.kube.client.kubeconfig import render_kubeconfig
from lastcall.kube.store.memory import MemoryStore
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

ADMIN = UserInfo("kubernetes-admin", ("system:masters",))
CONTROLLER = UserInfo("system:kube-controller-manager", ())
NODE = UserInfo("stand-in", ("system:masters",))
"""A kubelet that binds Pods as well: no node may do that."""


@dataclass
class ListRecorder:
    """Keeps (kind, pod uid, rule, facts)."""

    records: list[tuple[str, str, str, dict[str, Any]]] = field(default_factory=list)

    def record(
        self, kind: str, *, pod_uid: str = "", rule: str = "", facts: Mapping[str, Any] | None = None, **_: object
    ) -> str:
        self.records.append((kind, pod_uid, rule, dict(facts or {})))
        return str(len(self.records))


@dataclass
class RunningServer:
    """`url` is `https://127.0.0.1:<port>`; `kubeconfig` is the admin's, as text."""

    server: APIServer
    url: str
    token: str
    ca: ClusterCA
    recorder: ListRecorder
    kubeconfig: str

    @property
    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cadata=self.ca.certificate_pem.decode())

    def http(self, token: str | None = None) -> HTTPClient:
        return HTTPClient(self.url, ssl_context=self.trust, token=self.token if token is None else token)

    @property
    def admin(self) -> Client:
        return self.server.client(ADMIN)


@asynccontextmanager
async def running_server(
    *,
    version: str = "1.36",
    kubelet_logs: KubeletLogs | None = None,
    kubelet_streams: KubeletStreams | None = None,
    ca: ClusterCA | None = None,
    hosts: tuple[str, ...] = (),
    dial: Any = None,
    front_proxy: FrontProxy | None = None,
    audit: AuditOptions | None = None,
) -> AsyncIterator[RunningServer]:
    """An API server that answers HTTPS on a free loopback port while the block runs."""
    world = World()
    ca = ca or ClusterCA.create()
    token = secrets.token_urlsafe(24)
    recorder = ListRecorder()
    server = APIServer(
        world=world,
        store=MemoryStore(),
        recorder=recorder,
        config=APIServerConfig(
            kubernetes_version=version,
            root_ca_pem=ca.certificate_pem,
            tokens={token: ADMIN},
            issuer="https://kubernetes.default.svc.cluster.local",
            hosts=hosts,
            front_proxy=front_proxy or FrontProxy(),
            audit=audit,
        ),
        kubelet_logs=kubelet_logs,
        kubelet_streams=kubelet_streams,
        dial=dial,
    )
    await server.bootstrap()
    sock = socket.create_server(("127.0.0.1", 0))
    url = f"https://127.0.0.1:{sock.getsockname()[1]}"
    certificate, key = ca.issue_server(["127.0.0.1", "localhost"])
    context = server_context(certificate, key, client_ca=ca.certificate_pem)
    kubeconfig = render_kubeconfig("test", url, ca.certificate_pem, token=token)
    async with Tasks() as tasks:
        tasks.spawn(server.serve([sock], context), name="apiserver")
        await asyncio.sleep(0)
        try:
            yield RunningServer(server, url, token, ca, recorder, kubeconfig)
        finally:
            tasks.cancel()


async def stand_in_controllers(client: Client, ca_pem: bytes) -> None:
    """ServiceAccount `default` and the root CA in every namespace; an empty namespace ends."""
    async with client.watch(NAMESPACES) as events:
        async for event in events:
            meta = event.object["metadata"]
            if event.type == "DELETED":
                continue
            if meta.get("deletionTimestamp"):
                await _finish_namespace(client, event.object)
                continue
            for resource, obj in (
                (SERVICEACCOUNTS, {"metadata": {"name": "default"}}),
                (CONFIGMAPS, {"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": ca_pem.decode()}}),
            ):
                try:
                    await client.create(resource, obj, meta["name"])
                except StatusError as error:
                    if error.reason not in ("AlreadyExists", "NotFound", "Forbidden"):
                        raise


async def _finish_namespace(client: Client, namespace: Object) -> None:
    finalizers = [name for name in namespace["spec"].get("finalizers") or [] if name != "kubernetes"]
    try:
        await client.update(NAMESPACES, {**namespace, "spec": {"finalizers": finalizers}}, subresource="finalize")
    except StatusError as error:
        if error.reason not in ("Conflict", "NotFound"):
            raise


async def stand_in_node(client: Client) -> None:
    """See the module's docstring."""
    await client.create(NODES, {"metadata": {"name": "node1"}})
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}
    address = {"type": "InternalIP", "address": "192.0.2.2"}
    status = {"status": {"conditions": [ready], "addresses": [address]}}
    await client.patch(NODES, "node1", status, subresource="status")
    async with client.watch(PODS) as events:
        async for event in events:
            if event.type in ("ADDED", "MODIFIED"):
                try:
                    await _follow(client, event.object)
                except StatusError as error:
                    if error.reason not in ("Conflict", "NotFound"):
                        raise


async def _follow(client: Client, pod: Object) -> None:
    meta, spec = pod["metadata"], pod["spec"]
    name, namespace = meta["name"], meta["namespace"]
    if not spec.get("nodeName"):
        if spec["schedulerName"] == "default-scheduler" and not spec.get("schedulingGates"):
            binding = {"metadata": {"name": name}, "target": {"kind": "Node", "name": "node1"}}
            await client.create(BINDINGS, binding, namespace)
    elif pod["status"]["phase"] == "Pending":
        statuses = [
            {
                "name": container["name"],
                "ready": True,
                "restartCount": 0,
                "image": container["image"],
                "imageID": "",
                "state": {"running": {"startedAt": meta["creationTimestamp"]}},
            }
            for container in spec["containers"]
        ]
        status = {"status": {"phase": "Running", "containerStatuses": statuses}}
        await client.patch(PODS, name, status, namespace, subresource="status")


async def _main(arguments: argparse.Namespace) -> None:
    async with running_server(version=arguments.kubernetes_version) as running, Tasks() as tasks:
        fd = os.open(arguments.kubeconfig, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        os.write(fd, running.kubeconfig.encode())
        os.close(fd)
        print(running.url, flush=True)
        if arguments.controllers:
            tasks.spawn(
                stand_in_controllers(running.server.client(CONTROLLER), running.ca.certificate_pem), name="controllers"
            )
        if arguments.stand_in_node:
            tasks.spawn(stand_in_node(running.server.client(NODE)), name="node")
        await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kubeconfig", required=True)
    parser.add_argument("--kubernetes-version", default="1.36")
    parser.add_argument("--controllers", action="store_true")
    parser.add_argument("--stand-in-node", action="store_true")
    import uvloop

    uvloop.run(_main(parser.parse_args()))
