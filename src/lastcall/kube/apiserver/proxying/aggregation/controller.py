"""Keeps the condition `Available` of APIServices of other servers, and what those say that they serve.

Nothing runs while there are none. With some, each is looked at after a change of APIServices, Services or slices, every
half minute, and sooner after a failure.

Sources: kube-aggregator pkg/controllers/status/remote, pkg/apiserver/handler_discovery.go.
"""

import asyncio
from contextlib import suppress
from typing import Any

import orjson

from lastcall.kube.api.apiservices.local import service_name
from lastcall.kube.api.apiservices.routes import Remote, Routes
from lastcall.kube.api.errors import StatusError, service_unavailable
from lastcall.kube.api.meta import Object, labels_of, namespace_of
from lastcall.kube.api.resources import APISERVICES, ENDPOINTSLICES, SERVICES
from lastcall.kube.apiserver.auth.authentication import MASTERS, UserInfo
from lastcall.kube.apiserver.proxying.aggregation.availability import (
    PASSED,
    Verdict,
    bad_status,
    discovery_path,
    failed_check,
    look,
    with_verdict,
)
from lastcall.kube.apiserver.proxying.aggregation.backends import Backends, BadBundle, Downloaded
from lastcall.kube.apiserver.proxying.aggregation.entries import aggregated_entries, entries_of_list
from lastcall.kube.client.api import Client, ConnectionLost
from lastcall.kube.client.informer import Informer
from lastcall.kube.streaming.dialing import DialError
from lastcall.world import crash_guard
from lastcall.world.aiohttp_inside.client import aiohttp
from lastcall.world.clock import rfc3339_now
from lastcall.world.tasks import Tasks
from lastcall.world.world import World

AGGREGATOR = UserInfo("system:kube-aggregator", (MASTERS,))
CHECK_SECONDS = 5.0
RESYNC_SECONDS = 30.0
FIRST_BACKOFF = 1.0
AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

Key = tuple[str, str]


class AvailabilityController:
    """`wake` after each change of the routes."""

    def __init__(self, world: World, client: Client, routes: Routes, backends: Backends) -> None:
        self._world, self._client, self._routes, self._backends = world, client, routes, backends
        self._services: Informer[Object] = Informer(client, SERVICES, world=world)
        self._slices: Informer[Object] = Informer(client, ENDPOINTSLICES, indexes={"service": _service_of}, world=world)
        self._changed = asyncio.Event()
        self._failures: dict[Key, int] = {}
        for informer in (self._services, self._slices):
            informer.add_handler(on_add=self._look, on_update=lambda old, new: self._look(new), on_delete=self._look)

    def wake(self) -> None:
        self._changed.set()

    def _look(self, obj: Object) -> None:
        if any(each.service.namespace == namespace_of(obj) for each in self._routes.remote.values()):
            self._changed.set()

    async def run(self) -> None:
        """Work while there are such APIServices."""
        async with Tasks() as tasks:
            for informer in (self._services, self._slices):
                tasks.spawn(informer.run(), name="aggregation informer")
            await self._services.synced()
            await self._slices.synced()
            while self._routes.remote:
                self._changed.clear()
                await self._check_all()
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._pause()):
                        await self._changed.wait()
            tasks.cancel()
        await self._backends.keep_only(set())

    def _pause(self) -> float:
        failed = [FIRST_BACKOFF * float(2 ** min(times - 1, 6)) for times in self._failures.values() if times]
        return min([RESYNC_SECONDS, *failed])

    async def _check_all(self) -> None:
        remotes = dict(self._routes.remote)
        await self._backends.keep_only({each.service for each in remotes.values()})
        self._failures = {key: times for key, times in self._failures.items() if key in remotes}
        async with Tasks() as tasks:
            for key, remote in remotes.items():
                what = f"aggregation {service_name(*key)}"
                tasks.spawn(crash_guard.guarded("API server", what, self._check(key, remote)), name=what)

    async def _check(self, key: Key, remote: Remote) -> None:
        service = remote.service
        found = self._services.get(service.namespace, service.name)
        slices = self._slices.by_index("service", f"{service.namespace}/{service.name}")
        verdict = look(service, found, slices)
        if verdict == PASSED:
            verdict = await self._asked(remote)
        self._failures[key] = 0 if verdict.available else self._failures.get(key, 0) + 1
        if verdict.reason != "FailedDiscoveryCheck" and not verdict.available:
            self._failures[key] = 0  # a change of Service or endpoints comes by itself
        await self._write(key, verdict)
        entries = await self._entries(remote) if verdict.available else None
        self._routes.discovered(key, service, entries)

    async def _asked(self, remote: Remote) -> Verdict:
        path = discovery_path(remote)
        answer = await self._get(remote, path, "application/json")
        if isinstance(answer, str):
            return failed_check(path, remote.service, answer)
        if not 200 <= answer.status < 300:
            return failed_check(path, remote.service, bad_status(path, remote.service, answer.status))
        return PASSED

    async def _get(self, remote: Remote, path: str, accept: str) -> Downloaded | str:
        """Or why not."""
        url = f"https://{remote.service.host}:{remote.service.port}{path}"
        try:
            return await self._backends.get(remote, path, accept, AGGREGATOR, CHECK_SECONDS)
        except TimeoutError:
            return f'Get "{url}": context deadline exceeded'
        except (DialError, aiohttp.ClientError, BadBundle, ValueError) as error:
            return f'Get "{url}": {error or type(error).__name__}'

    async def _entries(self, remote: Remote) -> tuple[Object, ...] | None:
        """What it serves, by its own aggregated discovery or else by its list of resources."""
        answer = await self._get(remote, "/apis", AGGREGATED)
        if not isinstance(answer, str) and answer.status == 200 and "APIGroupDiscoveryList" in answer.content_type:
            return aggregated_entries(_decoded(answer.body), remote.group, remote.version)
        answer = await self._get(remote, discovery_path(remote), "application/json")
        if isinstance(answer, str) or answer.status != 200:
            return None
        return entries_of_list(_decoded(answer.body))

    async def _write(self, key: Key, verdict: Verdict) -> None:
        try:
            stored = await self._client.get(APISERVICES, service_name(*key))
            status = with_verdict(stored, verdict, rfc3339_now(self._world.clock))
            if status is not None:
                await self._client.update(APISERVICES, {**stored, "status": status}, subresource="status")
        except StatusError as error:
            if error.code not in (404, 409):
                raise
            self._changed.set()
        except ConnectionLost:
            self._changed.set()


def _service_of(each: Object) -> list[str]:
    name = (labels_of(each) or {}).get("kubernetes.io/service-name")
    return [f"{namespace_of(each)}/{name}"] if name else []


def _decoded(body: bytes) -> Any:
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None


async def ask(backends: Backends, remote: Remote, path: str) -> Object:
    """Send a GET as the aggregator itself. Raises StatusError: the other server's own, or that it is not reachable."""
    words = "the server is currently unable to handle the request"
    if not remote.available:
        raise service_unavailable(words)
    try:
        answer = await backends.get(remote, path, "application/json", AGGREGATOR, CHECK_SECONDS)
    except (DialError, aiohttp.ClientError, TimeoutError, ValueError):
        raise service_unavailable(words) from None
    decoded = _decoded(answer.body)
    if not isinstance(decoded, dict):
        raise service_unavailable(words)
    if decoded.get("kind") == "Status" and decoded.get("code") == answer.status != 200:
        raise StatusError(decoded)
    if answer.status != 200:
        raise service_unavailable(words)
    return decoded
