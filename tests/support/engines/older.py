"""A proxy that takes away from a real kube-apiserver 1.36 what older ones lack: `older(real, 30)` is as 1.30.

What the API offers and which fields come: nothing else of an older server is imitated (its defaults, validation and
bugs). `LACKS` is the list, with sources (the KEPs' milestones; kubernetes pkg/features/kube_features.go).
"""

import asyncio
import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
from aiohttp import web

from engines.api_server import RealAPIServer
from lastcall.kube.client.kubeconfig import render_kubeconfig


@dataclass(frozen=True, slots=True)
class Lack:
    """Of versions before 1.`since`, by default. `kinds` are plurals of a group-version, () all of it; `fields` are
    paths in objects of a kind, with `*` for each item of a list."""

    since: int
    group_version: str
    kinds: tuple[str, ...] = ()
    kind: str = ""
    fields: tuple[str, ...] = ()
    source: str = ""


LACKS = (
    Lack(28, "authentication.k8s.io/v1", ("selfsubjectreviews",), source="KEP 3325: v1 in 1.28"),
    Lack(29, "flowcontrol.apiserver.k8s.io/v1", source="deprecation guide: v1 since 1.29"),
    Lack(30, "admissionregistration.k8s.io/v1", ("validatingadmissionpolicies", "validatingadmissionpolicybindings"),
         source="KEP 3488: v1 in 1.30"),
    Lack(33, "networking.k8s.io/v1", ("ipaddresses", "servicecidrs"), source="KEP 1880: v1 in 1.33"),
    Lack(33, "v1", ("pods/resize",), source="KEP 1287: beta, on by default, in 1.33"),
    Lack(34, "resource.k8s.io/v1", source="KEP 4381: v1 in 1.34"),
    Lack(34, "storage.k8s.io/v1", ("volumeattributesclasses",), source="KEP 3751: v1 in 1.34"),
    Lack(36, "admissionregistration.k8s.io/v1", ("mutatingadmissionpolicies", "mutatingadmissionpolicybindings"),
         source="KEP 3962: v1 in 1.36"),
    Lack(29, "v1", kind="Pod", fields=("spec.initContainers.*.restartPolicy",), source="KEP 753: beta in 1.29"),
    Lack(29, "v1", kind="Pod", fields=("status.hostIPs",), source="KEP 2681: beta in 1.29"),
    Lack(30, "v1", kind="Pod", fields=("spec.containers.*.lifecycle.preStop.sleep",), source="KEP 3960: beta in 1.30"),
    Lack(34, "v1", kind="Pod",
         fields=("status.observedGeneration", "status.conditions.*.observedGeneration"),
         source="KEP 5067: beta in 1.34"),
    Lack(29, "batch/v1", kind="Job", fields=("status.terminating",), source="KEP 3939: beta in 1.29"),
    Lack(35, "apps/v1", kind="Deployment", fields=("status.terminatingReplicas",), source="KEP 3973: beta in 1.35"),
)  # fmt: skip
AGGREGATED_V2 = 30
"""Before it discovery comes as v2beta1 or group by group. (KEP 3352)"""


def taken(minor: int) -> list[Lack]:
    return [lack for lack in LACKS if minor < lack.since]


def prune(obj: Any, lacks: list[Lack]) -> Any:
    """An object, a list or a watch event without the fields."""
    if not isinstance(obj, dict):
        return obj
    for each in [*(obj.get("items") or ()), obj.get("object"), obj]:
        for lack in lacks:
            if (
                isinstance(each, dict)
                and (each.get("kind") or str(obj.get("kind", "")).removesuffix("List")) == lack.kind
            ):
                for path in lack.fields:
                    _remove(each, path.split("."))
    return obj


def _remove(at: Any, path: list[str]) -> None:
    first, *rest = path
    if first == "*":
        for each in at if isinstance(at, list) else ():
            _remove(each, rest)
    elif isinstance(at, dict) and first in at:
        if rest:
            _remove(at[first], rest)
        else:
            del at[first]


def is_taken(path: str, lacks: list[Lack]) -> bool:
    """Whether a request's path is of a group-version or a resource that an older server has not."""
    parts = path.strip("/").split("/")
    if parts[0] not in ("api", "apis") or len(parts) < 2:
        return False
    version, rest = (parts[1], parts[2:]) if parts[0] == "api" else ("/".join(parts[1:3]), parts[3:])
    if len(rest) > 2 and rest[0] == "namespaces":
        rest = rest[2:]
    wanted = {rest[0], f"{rest[0]}/{rest[2]}" if len(rest) > 2 else rest[0]} if rest else set[str]()
    return any(
        lack.group_version == version and not lack.kind and (not lack.kinds or wanted & set(lack.kinds))
        for lack in lacks
    )


def discovery(document: Any, lacks: list[Lack]) -> Any:
    """A document of discovery without what is taken: aggregated, APIGroupList, APIGroup or APIResourceList."""
    whole = {lack.group_version for lack in lacks if not lack.kind and not lack.kinds}
    some = {(lack.group_version, kind) for lack in lacks for kind in lack.kinds}
    match document.get("kind"):
        case "APIGroupDiscoveryList":
            for group in document["items"]:
                name = group["metadata"].get("name", "")
                for version in group["versions"]:
                    gv = f"{name}/{version['version']}" if name else version["version"]
                    version["resources"] = [
                        {**each, "subresources": [sub for sub in each.get("subresources") or ()
                                                  if (gv, f"{each['resource']}/{sub['subresource']}") not in some]}
                        for each in version.get("resources") or () if (gv, each["resource"]) not in some
                    ]  # fmt: skip
                group["versions"] = [v for v in group["versions"] if f"{name}/{v['version']}" not in whole]
            document["items"] = [group for group in document["items"] if group["versions"]]
        case "APIGroupList":
            for group in document["groups"]:
                group["versions"] = [each for each in group["versions"] if each["groupVersion"] not in whole]
                if group["versions"] and group["preferredVersion"]["groupVersion"] in whole:
                    group["preferredVersion"] = group["versions"][0]
            document["groups"] = [group for group in document["groups"] if group["versions"]]
        case "APIResourceList":
            gv = document["groupVersion"]
            document["resources"] = [each for each in document["resources"] if (gv, each["name"]) not in some]
    return document


class Older:
    def __init__(self, real: RealAPIServer, minor: int) -> None:
        self.minor, self.lacks = minor, taken(minor)
        self._real, self._port = real, 0
        self._ready, self._loop = threading.Event(), asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._ready.wait(60) and self._port, "the proxy did not start"
        self.url = f"https://127.0.0.1:{self._port}"

    def kubeconfig(self, token: str) -> str:
        """The path of one whose user has that token; certificates do not go through."""
        path = self._real.folder / f"older-{self.minor}.kubeconfig"
        path.write_text(render_kubeconfig("older", self.url, self._real.ca.certificate_pem, token=token))
        path.chmod(0o600)
        return str(path)

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(30)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            runner = self._loop.run_until_complete(self._begin())
            self._ready.set()
            self._loop.run_forever()
            self._loop.run_until_complete(self._session.close())
            self._loop.run_until_complete(runner.cleanup())
        finally:
            self._ready.set()
            self._loop.close()

    async def _begin(self) -> web.ServerRunner:
        tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        tls.load_cert_chain(self._real.folder / "server.crt", self._real.folder / "server.key")
        runner = web.ServerRunner(web.Server(self._handle), shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        self._port = int(runner.addresses[0][1])
        trust = ssl.create_default_context(cadata=self._real.ca.certificate_pem.decode())
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust, limit=0))
        return runner

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if is_taken(request.path, self.lacks):
            status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}
            return web.json_response(
                {**status, "message": "the server could not find the requested resource"}, status=404
            )
        left_out = ("host", "accept-encoding", "content-length")
        headers = {key: value for key, value in request.headers.items() if key.lower() not in left_out}
        if self.minor < AGGREGATED_V2:
            accept = headers.get("Accept", "").split(",")
            headers["Accept"] = ",".join(each for each in accept if "v=v2;" not in each)
        body = await request.read()
        if body and "json" in request.content_type and request.method in ("POST", "PUT"):
            body = json.dumps(prune(json.loads(body), self.lacks)).encode()
        async with self._session.request(
            request.method, f"{self._real.url}{request.raw_path}", data=body or None, headers=headers,
            allow_redirects=False,
            timeout=aiohttp.ClientTimeout(total=None),
        ) as answer:  # fmt: skip
            kind = answer.headers.get("Content-Type", "")
            if request.query.get("watch") == "true" and answer.status == 200:
                stream = web.StreamResponse(headers={"Content-Type": kind})
                await stream.prepare(request)
                async for line in answer.content:
                    await stream.write(json.dumps(prune(json.loads(line), self.lacks)).encode() + b"\n")
                return stream
            data = await answer.read()
            if "json" in kind and data:
                document = json.loads(data)
                if request.path == "/version":
                    document |= {"minor": str(self.minor), "gitVersion": f"v1.{self.minor}.0"}
                data = json.dumps(prune(discovery(document, self.lacks), self.lacks)).encode()
            return web.Response(body=data, status=answer.status, headers={"Content-Type": kind} if kind else {})


@contextmanager
def older(real: RealAPIServer, minor: int) -> Iterator[Older]:
    made = Older(real, minor)
    try:
        yield made
    finally:
        made.close()
