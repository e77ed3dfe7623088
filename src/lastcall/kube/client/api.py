"""The Client protocol: how every component talks to the API.

Components are clients and nothing else. In one process with the API server they get
`lastcall.kube.apiserver.inprocess.InProcessClient` (no HTTP, no JSON), elsewhere
`lastcall.kube.client.http.HTTPClient`. All methods raise `lastcall.kube.api.errors.StatusError` when the server refuses
and `ConnectionLost` when it cannot be reached. Objects that it returns, answers to writes included, may be shared: do
not change them (see `lastcall.kube.api.meta.copy_object`).
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Any, Literal, NamedTuple, Protocol

from lastcall.kube.api.meta import AnyObject, Object
from lastcall.kube.api.resources import Resource
from lastcall.world.dataclass import dataclass

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_MERGE_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"


class ConnectionLost(Exception):
    """The server cannot be reached or went away in the middle of an answer. Whether a write happened is unknown, unless
    the request was never `sent`. `reason` is why, without the request; "" where the text is all there is."""

    sent = True
    reason = ""


class UnusableAnswer(ConnectionLost):
    """The server answered with something too large, or with something that is not JSON. Asking again does not help."""


@dataclass(frozen=True, slots=True)
class ListResult:
    """`items` carry kind and apiVersion; `resource_version` is where a watch goes on."""

    items: list[Object]
    resource_version: str


class WatchEvent(NamedTuple):
    """`object` is a Status for `ERROR`. BOOKMARK events are handed on only when asked for."""

    type: Literal["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"]
    object: Object


class Client(Protocol):
    async def get(self, resource: Resource, name: str, namespace: str = "", *, subresource: str = "") -> Object:
        """Send a GET. The only `subresource` that every client can read is `scale`."""
        ...

    async def list(
        self, resource: Resource, namespace: str = "", *, label_selector: str = "", field_selector: str = ""
    ) -> ListResult:
        """Return all objects; namespace "" is all namespaces."""
        ...

    def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
        bookmarks: bool = False,
    ) -> AbstractAsyncContextManager[AsyncIterator[WatchEvent]]:
        """Watch: `async with client.watch(PODS, resource_version=rv) as events: async for event in events: …`.

        The iterator ends when the server closes the watch; start again from the last resourceVersion seen.
        """
        ...

    async def create(
        self, resource: Resource, obj: AnyObject, namespace: str = "", *, name: str = "", subresource: str = ""
    ) -> Object:
        """Send a POST. With `subresource` (binding, eviction, token) `name` is the parent object's name."""
        ...

    async def update(
        self, resource: Resource, obj: AnyObject, namespace: str = "", *, subresource: str = ""
    ) -> Object: ...

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Any,
        namespace: str = "",
        *,
        content_type: str = MERGE_PATCH,
        subresource: str = "",
        dry_run: bool = False,
        field_manager: str = "",
    ) -> Object:
        """Send a PATCH. `dry_run`: everything but the write (`dryRun=All`).

        `field_manager`: the name under which an apply patch sets its fields; it takes over what others have set.
        """
        ...

    async def delete(
        self,
        resource: Resource,
        name: str,
        namespace: str = "",
        *,
        grace_period_seconds: int | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        propagation_policy: str | None = None,
        dry_run: bool = False,
    ) -> Object:
        """Send a DELETE, and return the object or a Status. `uid` and `resource_version` are preconditions; `dry_run`:
        everything but the removal (`dryRun=All`)."""
        ...

    async def close(self) -> None: ...
