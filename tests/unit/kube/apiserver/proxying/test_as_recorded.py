"""Requests to proxy subresources that a real Kubernetes 1.36.2 answered, with all that passed and what did not.

recorded.json: name → the request as raw text, and what came back, both of the API server and, in it, of what the target
was sent (tests/support/proxied_target.py, which answered there as well). Left out are headers of the connection.
"""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from api_server import RunningServer, running_server
from proxied_target import serve

from lastcall.kube.api.resources import (
    ENDPOINTS,
    ENDPOINTSLICES,
    NAMESPACES,
    NODES,
    PODS,
    ROLEBINDINGS,
    ROLES,
    SERVICEACCOUNTS,
    SERVICES,
)
from lastcall.kube.apiserver.auth.pki import ClusterCA
from lastcall.kube.apiserver.auth.tls import client_context
from lastcall.kube.apiserver.proxying import upstream
from lastcall.kube.apiserver.subresources.kubelet_client import KubeletClient

pytestmark = pytest.mark.loopback

RECORDED = json.loads(Path(__file__).with_name("recorded.json").read_text())
NAMESPACE, ADDRESS, PORT = "px", "10.123.0.1", 18080
ADDRESSES = {
    "loop": "127.0.0.1", "link": "169.254.1.1", "multi": "224.0.0.1", "zero": "0.0.0.0", "bcast": "255.255.255.255",
    "v6": "fd00::1", "v6loop": "::1", "mapped": "::ffff:127.0.0.1", "badip": "",
}  # fmt: skip
OURS = {"connection: close", "content-length: 0"}
"""What the target is sent besides: each request has a connection of its own, and a DELETE without a body says so."""


async def test_every_request_is_passed_on_or_refused_as_kube_apiserver_does_it() -> None:
    target = await asyncio.start_server(serve, "127.0.0.1", 0, limit=1 << 20)
    port = target.sockets[0].getsockname()[1]

    async def dial(host: str, asked: int):
        if (host, asked) != (ADDRESS, PORT):
            raise upstream.DialError(f"dial tcp {host}:{asked}: connect: connection refused")
        return await upstream.dial("127.0.0.1", port)

    ca = ClusterCA.create()
    kubelets = KubeletClient(client_context(ca.certificate_pem, *ca.issue_client("kubelet-client", ["system:masters"])))
    different = {}
    async with target, running_server(dial=dial, kubelet_streams=kubelets, ca=ca) as server:
        await prepare(server)
        for name, case in RECORDED.items():
            wanted = {key: case[key] for key in ("status", "answered", "answer")}
            wanted["answer"] = seen(wanted["answer"])
            async with asyncio.timeout(120):
                got = await ask(server, case)
            if got != wanted:
                different[name] = (got, wanted)
    assert not different, json.dumps(different, indent=1)
    assert len(RECORDED) > 250


async def prepare(server: RunningServer) -> None:
    admin = server.admin
    await admin.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    await admin.create(SERVICEACCOUNTS, {"metadata": {"name": "default"}}, NAMESPACE)

    async def pod(name: str, address: str, *ports: int) -> None:
        container = {"name": "c", "image": "x", "ports": [{"containerPort": each} for each in ports]}
        spec = {"schedulerName": "none", "containers": [container]}
        await admin.create(PODS, {"metadata": {"name": name}, "spec": spec}, NAMESPACE)
        if address:
            status = {"podIP": address, "podIPs": [{"ip": address}], "phase": "Running"}
            await admin.patch(PODS, name, {"status": status}, NAMESPACE, subresource="status")

    await pod("up", ADDRESS, PORT)
    await pod("noport", ADDRESS)
    await pod("none", "", PORT)
    await pod("dead", ADDRESS, 9)
    for name, address in ADDRESSES.items():
        await pod(name, address, PORT)

    async def service(name: str, ports: list[dict[str, Any]], **spec: Any) -> None:
        await admin.create(SERVICES, {"metadata": {"name": name}, "spec": {"ports": ports, **spec}}, NAMESPACE)

    async def endpoints(name: str, *subsets: dict[str, Any]) -> None:
        await admin.create(ENDPOINTS, {"metadata": {"name": name}, "subsets": list(subsets)}, NAMESPACE)

    def reference(name: str = "up", namespace: str = NAMESPACE, kind: str = "Pod") -> dict[str, str]:
        return {"kind": kind, "name": name, "namespace": namespace}

    def address(target: dict[str, str] | None) -> dict[str, Any]:
        return {"ip": ADDRESS, "targetRef": target} if target else {"ip": ADDRESS}

    for name, referred in (
        ("one", reference()),
        ("noref", None),
        ("badref", reference("none")),
        ("nsref", reference(namespace="default")),
        ("kindref", reference(kind="Node")),
    ):
        await service(name, [{"port": 80}])
        await endpoints(name, {"addresses": [address(referred)], "ports": [{"port": PORT}]})
    await service("named", [{"port": 80, "name": "a"}, {"port": 81, "name": "b"}])
    named = [{"port": PORT, "name": "a"}, {"port": 9, "name": "b"}]
    await endpoints("named", {"addresses": [address(reference())], "ports": named})
    await service("notready", [{"port": 80}])
    await endpoints("notready", {"notReadyAddresses": [address(reference())], "ports": [{"port": PORT}]})
    for name in ("empty", "selnone"):
        await service(name, [{"port": 80}])
        await endpoints(name)
    await service("noeps", [{"port": 80}])
    await service("sliced", [{"port": 80}])
    labels = {"kubernetes.io/service-name": "sliced"}
    sliced = {"metadata": {"name": "sliced-1", "labels": labels}, "addressType": "IPv4", "ports": [{"port": PORT}]}
    await admin.create(
        ENDPOINTSLICES, {**sliced, "endpoints": [{"addresses": [ADDRESS], "targetRef": reference()}]}, NAMESPACE
    )
    await service("ext", [{"port": 80}], type="ExternalName", externalName="example.org")
    await service("headless", [{"port": 80}], clusterIP="None")
    await endpoints("headless", {"addresses": [address(reference())], "ports": [{"port": PORT}]})
    await service("udp", [{"port": 80, "protocol": "UDP"}])
    await endpoints("udp", {"addresses": [address(reference())], "ports": [{"port": PORT, "protocol": "UDP"}]})
    await endpoints("epsonly", {"addresses": [address(reference())], "ports": [{"port": PORT}]})

    for name, found in (("nx", ADDRESS), ("nloop", "127.0.0.1"), ("nlink", "169.254.3.4"), ("nempty", "0.0.0.0")):
        await admin.create(NODES, {"metadata": {"name": name}})
        status = {
            "addresses": [{"type": "InternalIP", "address": found}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": PORT}},
        }
        await admin.patch(NODES, name, {"status": status}, subresource="status")
    await admin.create(NODES, {"metadata": {"name": "nnone"}})

    group = "rbac.authorization.k8s.io"
    for name, user, more in (("g", "getter", {}), ("n", "namer", {"resourceNames": ["up"]})):
        rule = {"apiGroups": [""], "resources": ["pods/proxy"], "verbs": ["get"], **more}
        await admin.create(ROLES, {"metadata": {"name": name}, "rules": [rule]}, NAMESPACE)
        bound = {
            "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
            "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
        }
        await admin.create(ROLEBINDINGS, {"metadata": {"name": name}, **bound}, NAMESPACE)


async def ask(server: RunningServer, case: dict[str, Any]) -> dict[str, Any]:
    host, port = server.url.removeprefix("https://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port), ssl=server.trust, limit=1 << 20)
    headers = [each for each in case.get("headers", ()) if not each.startswith("Authorization:")]
    if not any(each.startswith("Host:") for each in headers):
        headers.insert(0, "Host: localhost:1234")
    headers.append(f"Authorization: Bearer {server.token}")
    text = "\r\n".join([f"{case['line']} HTTP/1.1", *headers, "", ""]) + case.get("body", "")
    writer.write(text.encode("latin-1"))
    try:
        status, _, rest = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").partition("\r\n")
        fields = [each.partition(":")[::2] for each in rest.split("\r\n") if each]
        named = {key.lower(): value.strip() for key, value in fields}
        if " 101 " in status:
            body = await talk(reader, writer, case)
        elif case["line"].startswith("HEAD ") or status.split()[1] in ("204", "304"):
            body = b""
        elif "content-length" in named:
            body = await reader.readexactly(int(named["content-length"]))
        else:
            body = await chunks(reader)
    finally:
        writer.transport.abort()
    hidden = ("audit-id", "date", "connection", "server", "etag", "content-length", "transfer-encoding")
    answered = sorted(
        f"{key.lower()}:{value}"
        for key, value in fields
        if key.lower() not in hidden
        and (key.lower(), value.strip()) not in (("cache-control", "no-cache, private"),)
        and (key.lower(), value.strip()) != ("x-content-type-options", "nosniff")
    )
    shown = body.decode("latin-1")
    try:
        return {"status": status.removeprefix("HTTP/1.1 "), "answered": answered, "answer": seen(json.loads(shown))}
    except ValueError:
        return {"status": status.removeprefix("HTTP/1.1 "), "answered": answered, "answer": seen(shown)}


async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, case: dict[str, Any]) -> bytes:
    """Behind a 101: what is said on it comes back."""
    if "wsecho" in case["line"]:
        request = await reader.readuntil(b"\r\n\r\n")
        return request
    got = await reader.readexactly(len("early"))
    for each in case.get("then", ()):
        writer.write(each.encode())
        got += await reader.readexactly(len(each) + 2)
    return got


async def chunks(reader: asyncio.StreamReader) -> bytes:
    body, size = b"", 1
    while size:
        size = int(await reader.readline(), 16)
        body += (await reader.readexactly(size + 2))[:-2]
    return body


def seen(answer: Any) -> Any:
    """The client's address is another one here, and headers have no order."""
    if isinstance(answer, dict) and "request" in answer:
        headers = {f"{key.lower()}:{value}" for key, _, value in (each.partition(":") for each in answer["headers"])}
        local = {each.replace("127.0.0.1", ADDRESS) for each in headers}
        return {**answer, "headers": sorted(local - OURS)}
    if isinstance(answer, str) and "\nHost: " in answer:  # what a target was sent behind a 101
        return sorted(each.replace("127.0.0.1", ADDRESS).lower() for each in answer.replace("\r\n", "\n").split("\n"))
    return answer
