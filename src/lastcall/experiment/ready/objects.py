"""What is asked of a cluster's API: apply, get, list, delete, wait. Async; one for each event loop."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import ClassVar

from lastcall.errors import ClusterError, InvalidManifest, LastcallError
from lastcall.experiment.lookups import get_or_none
from lastcall.kube.api import (
    CUSTOMRESOURCEDEFINITIONS,
    NAMESPACES,
    SERVED,
    Object,
    Resource,
    StatusError,
    served_resources,
)
from lastcall.kube.client import ConnectionLost, HTTPClient, WatchEvent
from lastcall.manifests.applying import Named, Reference, find, find_kind, with_namespace
from lastcall.world.clock import Clock, monotonic

__tracebackhide__ = True  # pytest shows the caller's line

FIELD_MANAGER = "lastcall"
ACCOUNT_SECONDS = 10.0
"""How long a new namespace may take to get its ServiceAccount `default`, which its Pods need."""
_AGAIN_SECONDS = 0.05
_NOT_OF_ITS_SCHEMA = "failed to create typed patch object"
"""(fieldmanager/structuredmerge.go:Apply)"""

ObjectList = list[Object]
"""For classes whose method is called `list`."""

Seen = Callable[[Object | None], bool]
"""Takes an object, None while it does not exist, and answers whether it is as it was waited for. May raise."""


class Objects:
    """Objects of one cluster, by reference. `patience` is that of `waiting.py:Waiting`."""

    patience: ClassVar[float] = 0.0

    def __init__(self, client: HTTPClient, clock: Clock) -> None:
        self.client: HTTPClient = client
        self.clock = clock
        self._custom: list[Resource] = []

    # -- what a reference names ----------------------------------------------------------------------------------------

    async def find(self, reference: Reference, namespace: str) -> Named:
        """Find what the reference names. Raises LastcallError for a kind that the cluster does not serve."""
        with suppress(LastcallError):
            return find(reference, namespace, (*SERVED, *self._custom))
        await self._learn()
        return find(reference, namespace, (*SERVED, *self._custom))

    async def kind(self, word: str) -> Resource:
        """Return a kind as kubectl takes it. Raises LastcallError."""
        with suppress(LastcallError):
            return find_kind(word, (*SERVED, *self._custom))
        await self._learn()
        return find_kind(word, (*SERVED, *self._custom))

    async def _learn(self) -> None:
        """The kinds that CustomResourceDefinitions declare now."""
        definitions = await self.client.list(CUSTOMRESOURCEDEFINITIONS)
        self._custom = [each for definition in definitions.items for each in _with_names(definition)]

    async def declared(self) -> list[Resource]:
        """Return the namespaced kinds that CustomResourceDefinitions declare, each in one version."""
        await self._learn()
        kinds = {each.group_resource: each for each in reversed(self._custom) if each.namespaced}
        return sorted(kinds.values(), key=lambda each: each.group_resource)

    # -- one object ----------------------------------------------------------------------------------------------------

    async def get(self, named: Named) -> Object | None:
        """Return the object, None when it does not exist."""
        return await get_or_none(self.client, named.resource, named.name, named.namespace)

    async def apply(self, obj: Object, namespace: str) -> Object:
        """Create an object, or make it as written, by server-side apply with force. Raises InvalidManifest."""
        name = obj["metadata"].get("name")
        named = await self.find({**obj, "metadata": {**obj["metadata"], "name": name or "generated"}}, namespace)
        obj = with_namespace(obj, named.resource, namespace)
        until = monotonic(self.clock) + ACCOUNT_SECONDS
        while True:
            try:
                return await self._write(named, obj)
            except StatusError as error:
                # The namespace's ServiceAccount is made by a controller, a moment after the namespace.
                waits = error.code == 403 and "serviceaccount" in error.message and "not found" in error.message
                if not waits or monotonic(self.clock) > until:
                    raise _refused(named, error) from None
            await self.clock.sleep(_AGAIN_SECONDS)

    async def _write(self, named: Named, obj: Object) -> Object:
        """Create or change one object. Raises StatusError, ConnectionLost."""
        if obj["metadata"].get("name") is None:  # metadata.generateName: there is nothing that it could be applied to
            return await self.client.create(named.resource, obj, named.namespace)
        return await self._apply(named, obj)

    async def _apply(self, named: Named, obj: Object) -> Object:
        # late: pytest imports the plugin in every run, with a cluster or without
        import orjson

        path = named.resource.path(named.namespace, named.name)
        query = [("fieldManager", FIELD_MANAGER), ("force", "true"), ("fieldValidation", "Strict")]
        answer = await self.client.request(
            "PATCH", path, query=query, body=obj, content_type="application/apply-patch+yaml"
        )
        applied: Object = orjson.loads(answer)
        return applied

    async def ensure_namespace(self, name: str) -> None:
        """Create it where it does not exist."""
        with suppress(StatusError):
            await self.client.get(NAMESPACES, name)
            return
        await self.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, "")

    # -- what may be changed: everything, in a cluster of our own ------------------------------------------------------

    async def check_apply(self, found: Sequence[Object], namespace: str) -> None:
        """Raise UserError if any of these objects may not be applied. Nothing was applied then."""

    def check_delete(self, named: Named, obj: Object) -> None:
        """Raise UserError if an object may not be deleted."""

    # -- waiting -------------------------------------------------------------------------------------------------------

    async def wait(self, named: Named, seen: Seen) -> None:
        """Return when `seen` says so: it is asked at once, and upon every change. No limit of its own."""
        while True:
            try:
                selector = f"metadata.name={named.name}"
                listed = await self.client.list(named.resource, named.namespace, field_selector=selector)
                if seen(listed.items[0] if listed.items else None):
                    return
                if await self._watch(named, listed.resource_version, seen):
                    return
            except (ConnectionLost, StatusError) as error:
                if isinstance(error, StatusError) and error.code < 500 and error.code not in (410, 429):
                    raise
            await self.clock.sleep(_AGAIN_SECONDS)

    async def _watch(self, named: Named, version: str, seen: Seen) -> bool:
        selector = f"metadata.name={named.name}"
        async with self.client.watch(
            named.resource, named.namespace, resource_version=version, field_selector=selector
        ) as events:
            async for event in events:
                if event.type == "ERROR":
                    return False
                if seen(_now(event)):
                    return True
        return False


def _with_names(definition: Object) -> list[Resource]:
    """What a definition serves, with all the names that kubectl takes."""
    names = (definition.get("status") or {}).get("acceptedNames") or definition["spec"]["names"]
    singular, short = names.get("singular") or "", tuple(names.get("shortNames") or ())
    return [replace(each, singular=singular, short_names=short) for each in served_resources(definition)]


def _now(event: WatchEvent) -> Object | None:
    return None if event.type == "DELETED" else event.object


def _refused(named: Named, error: StatusError) -> LastcallError:
    # an error of the server to a structured-merge-diff, and a mistake of the manifest all the same
    if (error.code >= 500 and not error.message.startswith(_NOT_OF_ITS_SCHEMA)) or error.code == 429:
        return ClusterError(f"{named}: the API server cannot apply it: {error.message}")
    return InvalidManifest(f"{named}: {error.message}")
