"""Connections to webhooks are kept, and what goes wrong with one that was kept is nobody's trouble."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from socket import socket
from typing import Any

import pytest
from api_server import RunningServer, running_server

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import (
    CONFIGMAPS,
    ENDPOINTSLICES,
    NAMESPACES,
    SERVICES,
    VALIDATINGWEBHOOKCONFIGURATIONS,
)
from lastcall.kube.apiserver.auth.pki import ClusterCA
from lastcall.kube.apiserver.auth.tls import server_context
from lastcall.kube.apiserver.proxying import upstream

pytestmark = pytest.mark.loopback

Object = dict[str, Any]
RULE = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["*"], "resources": ["configmaps"]}
FIRST, SECOND = "10.1.2.3", "10.1.2.4"
"""Addresses of endpoints, both of which lead to the webhook."""


@dataclass
class Wire:
    """A webhook by hand. `after` is what it does once it has answered on a connection: "keep" it, "close" it without a
    word before, "more": send an answer that nobody asked for. `before` is the same of a request that has come."""

    after: str = "keep"
    before: str = "answer"
    connections: int = 0
    requests: list[tuple[int, Object]] = field(default_factory=list)
    """(number of the connection, request), in their order."""
    heads: list[str] = field(default_factory=list)
    port: int = 0
    bundle: str = ""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        number = self.connections
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                lengths = [line[15:] for line in head.lower().split("\r\n") if line.startswith("content-length:")]
                length = int(lengths[0])
                review = json.loads(await reader.readexactly(length))
                self.heads.append(head)
                self.requests.append((number, review["request"]))
                if self.before == "close":
                    return
                writer.write(answer(review["request"]["uid"]))
                await writer.drain()
                if self.after == "close":
                    return
                if self.after == "more":
                    writer.write(answer("of-nobody"))
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    @property
    def used(self) -> list[int]:
        """The numbers of the connections by which the requests came."""
        return [number for number, _ in self.requests]


def answer(uid: str) -> bytes:
    response = {"uid": uid, "allowed": True}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response}
    body = json.dumps(review).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body


@asynccontextmanager
async def hooked(wire: Wire) -> AsyncIterator[RunningServer]:
    authority = ClusterCA.create()
    context = server_context(*authority.issue_server(["127.0.0.1", "hook.ns.svc"]))
    listening = await asyncio.start_server(wire.serve, "127.0.0.1", 0, ssl=context)
    wire.port = listening.sockets[0].getsockname()[1]
    wire.bundle = base64.b64encode(authority.certificate_pem).decode()

    async def dial(host: str, port: int) -> socket:
        return await upstream.dial("127.0.0.1", wire.port if host in (FIRST, SECOND) else port)

    try:
        async with running_server(dial=dial) as server:
            await server.admin.create(NAMESPACES, {"metadata": {"name": "ns"}})
            yield server
    finally:
        listening.close()


async def install(server: RunningServer, wire: Wire, name: str = "w", **client: Any) -> None:
    reached = client or {"url": f"https://127.0.0.1:{wire.port}/hook"}
    hook = {
        "name": f"{name}.example.com",
        "rules": [RULE],
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"caBundle": wire.bundle, **reached},
    }
    await server.admin.create(VALIDATINGWEBHOOKCONFIGURATIONS, {"metadata": {"name": name}, "webhooks": [hook]})


async def write(server: RunningServer, *names: str) -> None:
    for name in names:
        await server.admin.create(CONFIGMAPS, {"metadata": {"name": name}}, "ns")


async def settle() -> None:
    """Until what the webhook did after its answer has come: it runs in the same loop."""
    await asyncio.sleep(0.1)  # nothing tells when the webhook's task has ended


async def test_one_connection_serves_one_write_after_another() -> None:
    async with hooked(wire := Wire()) as server:
        await install(server, wire)
        await write(server, "a", "b", "c")
        assert wire.used == [1, 1, 1]


async def test_writes_at_once_have_connections_of_their_own_which_are_used_again() -> None:
    async with hooked(wire := Wire()) as server:
        await install(server, wire)
        await asyncio.gather(*(write(server, f"a{number}") for number in range(5)))
        assert sorted(wire.used) == [1, 2, 3, 4, 5]
        await write(server, "b")
        assert wire.connections == 5


async def test_a_connection_that_the_webhook_has_closed_is_made_anew() -> None:
    async with hooked(wire := Wire(after="close")) as server:
        await install(server, wire)
        for name in "abc":
            await write(server, name)
            await settle()
        assert wire.used == [1, 2, 3]


async def test_a_write_whose_kept_connection_ends_at_that_moment_goes_over_another() -> None:
    async with hooked(wire := Wire()) as server:
        await install(server, wire)
        await asyncio.gather(*(write(server, f"a{number}") for number in range(3)))

        class Once(str):
            """Closes each connection that was kept, and none that is new."""

            __slots__ = ()

            def __eq__(self, other: object) -> bool:
                return wire.requests[-1][0] <= 3 and other == "close"

            __hash__ = str.__hash__

        wire.before = Once("close")
        await write(server, "b")
        assert wire.used[3:] == [1, 2, 3, 4], "each that was kept, and then a new one"


async def test_a_webhook_that_ends_each_connection_is_asked_once_over_a_new_one_and_refuses() -> None:
    async with hooked(wire := Wire(before="close")) as server:
        await install(server, wire)
        with pytest.raises(StatusError, match="EOF"):
            await write(server, "a")
        assert wire.used == [1]


async def test_an_answer_that_nobody_asked_for_is_not_the_next_ones() -> None:
    async with hooked(wire := Wire(after="more")) as server:
        await install(server, wire)
        for name in "abc":
            await write(server, name)
            await settle()
        assert wire.used == [1, 2, 3]


async def test_a_connection_is_not_used_by_a_configuration_that_trusts_others() -> None:
    async with hooked(wire := Wire()) as server:
        await install(server, wire)
        await write(server, "a")
        stranger = base64.b64encode(ClusterCA.create().certificate_pem).decode()
        url = f"https://127.0.0.1:{wire.port}/hook"
        await install(server, wire, "second", url=url, caBundle=stranger)
        with pytest.raises(StatusError, match="x509: certificate signed by unknown authority"):
            await write(server, "b")


async def test_a_connection_is_used_only_while_its_endpoint_is_ready() -> None:
    async with hooked(wire := Wire()) as server:
        service = {"metadata": {"name": "hook"}, "spec": {"ports": [{"port": 443, "targetPort": 8443}]}}
        await server.admin.create(SERVICES, service, "ns")
        endpoints = {
            "metadata": {"name": "hook-1", "labels": {"kubernetes.io/service-name": "hook"}},
            "addressType": "IPv4",
            "ports": [{"name": "", "port": 8443, "protocol": "TCP"}],
            "endpoints": [{"addresses": [FIRST], "conditions": {"ready": True}}],
        }
        made = await server.admin.create(ENDPOINTSLICES, endpoints, "ns")
        await install(server, wire, service={"namespace": "ns", "name": "hook", "path": "/p"})
        await write(server, "a", "b")
        assert wire.used == [1, 1]
        assert "\r\nHost: hook.ns.svc:443\r\n" in wire.heads[0]
        moved = [{"addresses": [SECOND], "conditions": {"ready": True}}]
        made = await server.admin.update(ENDPOINTSLICES, {**made, "endpoints": moved}, "ns")
        await write(server, "c", "d")
        assert wire.used == [1, 1, 2, 2]
        await server.admin.update(ENDPOINTSLICES, {**made, "endpoints": []}, "ns")
        with pytest.raises(StatusError, match="connection refused"):
            await write(server, "e")


async def test_a_connection_that_was_verified_for_one_service_is_not_used_for_another() -> None:
    async with hooked(wire := Wire()) as server:
        for name in ("hook", "stranger"):  # whose certificate does not have the second name
            service = {"metadata": {"name": name}, "spec": {"ports": [{"port": 443, "targetPort": 8443}]}}
            await server.admin.create(SERVICES, service, "ns")
            endpoints = {
                "metadata": {"name": f"{name}-1", "labels": {"kubernetes.io/service-name": name}},
                "addressType": "IPv4",
                "ports": [{"name": "", "port": 8443, "protocol": "TCP"}],
                "endpoints": [{"addresses": [FIRST], "conditions": {"ready": True}}],
            }
            await server.admin.create(ENDPOINTSLICES, endpoints, "ns")
        await install(server, wire, service={"namespace": "ns", "name": "hook"})
        await write(server, "a")
        await install(server, wire, "second", service={"namespace": "ns", "name": "stranger"})
        with pytest.raises(StatusError, match=r"failed to verify certificate: x509: .*stranger\.ns\.svc"):
            await write(server, "b")
