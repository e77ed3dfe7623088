"""The Client protocol without HTTP: straight into the API server's operations, on its own event loop.

Objects from here are the server's decoded ones, answers to writes included: shared and read-only. What is given to
`create` and `update` stays the caller's.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import AnyObject, Object, name_of
from lastcall.kube.api.resources import METRICS, Resource
from lastcall.kube.apiserver.auth.authentication import UserInfo, is_superuser
from lastcall.kube.apiserver.deletion import DeleteOptions
from lastcall.kube.apiserver.operations import Operations
from lastcall.kube.apiserver.registry.listing import SLICE
from lastcall.kube.apiserver.registry.watch import EventStream, WatchItem
from lastcall.kube.apiserver.requestinfo import RequestInfo
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.kube.apiserver.wire.options import ListOptions, parse_delete_options
from lastcall.kube.client.api import MERGE_PATCH, ListResult, WatchEvent
from lastcall.kube.store.value import Value


class DecodedEvents:
    """The events of a watch, decoded."""

    def __init__(self, events: EventStream, decode: Callable[[Value], Object]) -> None:
        self._events = events
        self._decode = decode

    def __aiter__(self) -> "DecodedEvents":
        return self

    async def __anext__(self) -> WatchEvent:
        return self._decoded(await anext(self._events))

    def take(self) -> WatchEvent | None:
        """Return the next event if it has come already, else None."""
        event = self._events.take()
        return None if event is None else self._decoded(event)

    def _decoded(self, event: WatchItem) -> WatchEvent:
        type_ = event.type
        if type_ in ("ERROR", "BOOKMARK"):
            return WatchEvent(type_, event.value.decoded() or {})
        return WatchEvent(type_, self._decode(event.value))


class InProcessClient:
    """A client acting as `user`."""

    def __init__(self, operations: Operations, user: UserInfo, user_agent: str = "lastcall") -> None:
        self._operations = operations
        self._user = user
        self._user_agent = user_agent
        self._may_everything = is_superuser(user)

    async def _check(
        self,
        verb: str,
        resource: Resource,
        namespace: str,
        name: str = "",
        subresource: str = "",
        *,
        field_selector: str = "",
    ) -> None:
        """Raises the 403 StatusError. Not asked for users who may do everything: it would be a coroutine for each
        request."""
        info = RequestInfo(
            True, "", verb, resource.group, resource.version, namespace, resource.plural, name, subresource
        )
        await self._operations.authorizer.check(self._user, info.with_selector(field_selector))

    def _context(self) -> RequestContext:
        return RequestContext(self._user, self._user_agent, in_process=True)

    async def get(self, resource: Resource, name: str, namespace: str = "", *, subresource: str = "") -> Object:
        resource = self._operations.served(resource)
        if not self._may_everything:
            await self._check("get", resource, namespace, name, subresource)
        if subresource == "scale":
            return (await self._operations.get_scale(resource, namespace, name)).object
        return (await self._operations.get(resource, namespace, name)).object

    async def list(
        self, resource: Resource, namespace: str = "", *, label_selector: str = "", field_selector: str = ""
    ) -> ListResult:
        resource = self._operations.served(resource)
        if not self._may_everything:
            await self._check("list", resource, namespace, field_selector=field_selector)
        options = ListOptions(label_selector=label_selector, field_selector=field_selector)
        if resource in METRICS:
            return ListResult(await self._operations.list_metrics(resource, namespace, options), "")
        page = await self._operations.list(resource, namespace, options)
        items = []
        for number, entry in enumerate(page.entries, 1):
            items.append(self._operations.decode(resource, entry.value))
            if number % SLICE == 0:
                await self._operations.clock.sleep(0)
        return ListResult(items, str(page.revision))

    @asynccontextmanager
    async def watch(
        self,
        resource: Resource,
        namespace: str = "",
        *,
        resource_version: str = "",
        label_selector: str = "",
        field_selector: str = "",
        bookmarks: bool = False,
    ) -> AsyncIterator[AsyncIterator[WatchEvent]]:
        resource = self._operations.served(resource)
        if not self._may_everything:
            await self._check("watch", resource, namespace, field_selector=field_selector)
        options = ListOptions(
            watch=True,
            label_selector=label_selector,
            field_selector=field_selector,
            resource_version=resource_version,
            allow_watch_bookmarks=bookmarks,
        )
        async with self._operations.watch(resource, namespace, options, endless=True) as events:
            yield DecodedEvents(events, self._operations.decoder(resource))

    async def create(
        self, resource: Resource, obj: AnyObject, namespace: str = "", *, name: str = "", subresource: str = ""
    ) -> Object:
        resource = self._operations.served(resource)
        if not self._may_everything:
            await self._check("create", resource, namespace, name, subresource)
        body = cast(Object, obj)  # a TypedDict is a dict
        context = self._context()
        again, key = None, None
        if not (name or subresource):
            again, key = await self._operations.create_again(context, resource, body, namespace)
        if again is not None:
            return again.object
        answer = await self._operations.create(
            context, resource, body, namespace, name=name, subresource=subresource, shared=True
        )
        if key is not None:
            self._operations.remember(context, key, answer)
        return answer.object

    async def update(self, resource: Resource, obj: AnyObject, namespace: str = "", *, subresource: str = "") -> Object:
        name = name_of(obj)
        resource = self._operations.served(resource)
        if not self._may_everything:
            await self._check("update", resource, namespace, name, subresource)
        context = self._context()
        known = await self._operations.stored(resource, namespace, name) if subresource == "status" else None
        if known is None or "metadata" not in obj:
            body = cast(Object, obj)
        else:
            # Only these two can be changed by it; the rest is what is stored and is neither copied nor looked at.
            given: Object = {key: obj[key] for key in ("kind", "apiVersion", "metadata", "status") if key in obj}
            rest = {key: value for key, value in known.items() if key not in ("metadata", "status")}
            body = {**rest, **given}
        answer = await self._operations.update(
            context, resource, body, namespace, name, subresource=subresource, known=known, shared=True
        )
        return answer.object

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
        resource = self._operations.served(resource)
        if not self._may_everything:
            await self._check("patch", resource, namespace, name, subresource)
        context = self._context()
        context.dry_run, context.field_manager = dry_run, field_manager
        answer = await self._operations.patch(
            context,
            resource,
            patch,
            namespace,
            name,
            content_type=content_type,
            subresource=subresource,
            force=bool(field_manager),
        )
        return answer.object

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
        resource = self._operations.served(resource)
        if not self._may_everything:
            await self._check("delete", resource, namespace, name)
        context = self._context()
        options = DeleteOptions(
            grace_period_seconds=grace_period_seconds,
            uid=uid,
            resource_version=resource_version,
            dry_run=dry_run,
            propagation_policy=propagation_policy,  # type: ignore[arg-type]  # checked next
        )
        if propagation_policy is not None:
            parse_delete_options({"propagationPolicy": propagation_policy}, {}, ())
        answer = await self._operations.delete(context, resource, namespace, name, options)
        return answer.object

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""


__all__ = ["InProcessClient", "StatusError"]
