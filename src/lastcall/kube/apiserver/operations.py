"""What can be asked of the API, once, for both faces: HTTP and in-process.

Here a request's object is made fit for the registry (kind and version, unknown fields, defaults), subresources are
told apart, and the answer of a DELETE gets its form.
"""

# check: many attributes Operations because it waits for its division into verbs
# check: long functions Operations._apply because it waits for the division of the class into verbs

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import orjson

from lastcall.kube.api.custom.kinds import CustomResource
from lastcall.kube.api.defaults.kinds import set_defaults
from lastcall.kube.api.errors import (
    StatusError,
    bad_request,
    conflict,
    is_not_found,
    method_not_allowed,
    resource_not_found,
    service_unavailable,
    status_success,
)
from lastcall.kube.api.meta import Object, copy_object, uid_of
from lastcall.kube.api.resources import EVENTS, Resource
from lastcall.kube.apiserver.auth.authentication import forbidden_request, may_everything
from lastcall.kube.apiserver.auth.authorizer import Authorizer
from lastcall.kube.apiserver.auth.reviews import Reviews
from lastcall.kube.apiserver.auth.tokens import TokenIssuer
from lastcall.kube.apiserver.deletion import DeleteOptions
from lastcall.kube.apiserver.faces.conversion import conversions_of, with_conversion
from lastcall.kube.apiserver.faces.scale import SCALES, scale_of, with_replicas
from lastcall.kube.apiserver.faces.table import face_of, stored_resource
from lastcall.kube.apiserver.fieldmanager.requests import (
    Tracking,
    apply_scale,
    manager_of,
    managers_of_scale,
    scope_of,
    update_scale,
)
from lastcall.kube.apiserver.registry.converted import ConvertedStream, by_name, converted_page
from lastcall.kube.apiserver.registry.generic import Answer, GenericStore, Track, Transform
from lastcall.kube.apiserver.registry.listing import SLICE, Page, list_page, wait_for_revision
from lastcall.kube.apiserver.registry.objectmeta import (
    OTHER_NAMESPACE,
    check_name,
    check_names,
    check_version_of_missing,
    wiped,
    with_owners_once,
)
from lastcall.kube.apiserver.registry.patching import check_patched, patched, patcher
from lastcall.kube.apiserver.registry.repeated_pods import Key as RepeatedKey
from lastcall.kube.apiserver.registry.repeated_pods import RepeatedPods
from lastcall.kube.apiserver.registry.selection import Selection, parse_selection
from lastcall.kube.apiserver.registry.watch import EventStream, open_watch
from lastcall.kube.apiserver.requestinfo import RequestInfo
from lastcall.kube.apiserver.streaming.location import connect_options, stream_location
from lastcall.kube.apiserver.subresources.actions import open_log
from lastcall.kube.apiserver.subresources.kubelet_client import KubeletLogs
from lastcall.kube.apiserver.subresources.posts import KINDS as POSTED_KINDS
from lastcall.kube.apiserver.subresources.posts import Posts
from lastcall.kube.apiserver.wire.bodies import prepare
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.kube.apiserver.wire.options import ListOptions, parse_resource_version
from lastcall.kube.client.api import APPLY_PATCH
from lastcall.kube.store.value import Value
from lastcall.world.clock import now, rfc3339_now

if TYPE_CHECKING:
    import ssl

    from multidict import MultiMapping

    from lastcall.kube.apiserver.catalog import Catalog
    from lastcall.kube.apiserver.streaming.proxy import KubeletStreams
    from lastcall.kube.apiserver.subresources.component_statuses import ComponentStatuses
    from lastcall.kube.apiserver.subresources.metrics_server import MetricsServer


class Operations:
    """All verbs on all kinds. Every method raises StatusError."""

    def __init__(
        self,
        kinds: Mapping[Resource, GenericStore],
        issuer: TokenIssuer,
        logs: KubeletLogs | None,
        reviews: Reviews,
        authorizer: Authorizer,
        streams: "KubeletStreams | None" = None,
    ) -> None:
        self.kinds = kinds
        self.authorizer = authorizer
        shared = next(iter(kinds.values())).shared
        self._store, self.clock = shared.store, shared.world.clock
        self._cache = shared.cache
        self._hooks, self._reader = shared.admission.hooks, shared.admission.reader
        self._posts = Posts(kinds, issuer, reviews, self._tracking)
        self._logs = logs
        self._streams = streams
        self._repeated = RepeatedPods(shared.world, shared.admission.reader)
        self.catalog: Catalog | None = None
        """What is served; without one nothing but Kubernetes's own kinds."""
        self.open_metrics: Callable[[], MetricsServer] | None = None
        """What answers metrics.k8s.io, made when it is asked first."""
        self._metrics: MetricsServer | None = None
        self.open_computed: dict[Resource, Callable[[], ComponentStatuses]] = {}
        """What answers for other kinds that are stored nowhere."""
        self.ask_remote: Callable[[str], Awaitable[Object | None]] | None = None
        """A GET of a path that another server answers; None where this one does."""

    def served(self, resource: Resource) -> Resource:
        """A kind as it is served: readers need not know what a definition says. Raises the 404 StatusError."""
        if self.catalog is None or resource in self.kinds or isinstance(resource, CustomResource):
            return resource
        found = self.catalog.resource(resource.group, resource.version, resource.plural)
        if found is None:
            raise resource_not_found()
        return found

    @property
    def metrics(self) -> "MetricsServer":
        """Raises the 404 StatusError where nobody has metrics."""
        if self._metrics is None:
            if self.open_metrics is None:
                raise resource_not_found()
            self._metrics = self.open_metrics()
        return self._metrics

    def computed(self, resource: Resource) -> "MetricsServer | ComponentStatuses":
        """What answers for a kind that is stored nowhere. Raises the 404 StatusError."""
        opened = self.open_computed.get(resource)
        return self.metrics if opened is None else opened()

    async def list_metrics(self, resource: Resource, namespace: str, options: ListOptions) -> list[Object]:
        """NodeMetrics or PodMetrics, of whatever server has them. Raises StatusError."""
        path = f"{resource.path(namespace)}?{urlencode({'labelSelector': options.label_selector})}"
        answer = None if self.ask_remote is None else await self.ask_remote(path)
        if answer is None:
            answer = await self.metrics.all_of(resource, namespace, self.selection(resource, options).matches)
        return [each for each in answer.get("items") or () if isinstance(each, dict)]

    def now(self) -> datetime:
        """The time by which ages are told."""
        return now(self.clock)

    def kind(self, resource: Resource) -> GenericStore:
        """The store behind a resource. Raises the 405 StatusError of a kind that is not stored (Binding)."""
        store = self.kinds.get(resource) or self.kinds.get(stored_resource(resource))
        if store is None and isinstance(resource, CustomResource) and self.catalog is not None:
            # Its definition has changed since the request came.
            now = self.catalog.resource(resource.group, resource.version, resource.plural)
            store = None if now is None else self.kinds.get(stored_resource(now))
        if store is None:
            raise method_not_allowed()
        return store

    def has_objects(self, resource: Resource) -> bool:
        """False for what can only be created, as reviews are: a path with a name leads nowhere."""
        return resource in self.kinds or isinstance(resource, CustomResource) or stored_resource(resource) in self.kinds

    # -- kinds with two faces ----------------------------------------------------------------------------------------

    def decode(self, resource: Resource, value: Value) -> Object:
        """The object of a stored (or watched) value as `resource` shows it. Shared: do not change."""
        if isinstance(resource, CustomResource):
            obj = self._cache.decode(value)  # a watch outlives its definition by the last events
        else:
            obj = self.kind(resource).decode(value)
        face = face_of(resource)
        return obj if face is None else face.show(obj)

    def decoder(self, resource: Resource) -> Callable[[Value], Object]:
        """`decode` of one kind."""
        if isinstance(resource, CustomResource) or face_of(resource) is not None:
            return lambda value: self.decode(resource, value)
        return self.kind(resource).decode

    def present(self, resource: Resource, value: Value) -> bytes:
        """The JSON of a stored value as `resource` shows it: unchanged, but for a kind's other face."""
        if face_of(resource) is None:
            return value.encoded()
        obj = self.decode(resource, value)
        return value.encoded() if obj is self._cache.decode(value) else orjson.dumps(obj)

    async def _answer(self, resource: Resource, answer: Answer) -> Answer:
        face = face_of(resource)
        if face is None:
            return answer
        if (conversions := conversions_of(resource)) is not None:
            await conversions.ensure([answer.object], resource.api_version)
            answer = answer._replace(value=Value(None, answer.object))  # what is stored may be of another version
        obj = face.show(answer.object)
        if obj is answer.object:
            return answer
        return Answer(obj, Value(None, obj), answer.created, answer.removed)

    def selection(self, resource: Resource, options: ListOptions) -> Selection:
        return parse_selection(resource, options.label_selector, options.field_selector)

    # -- reading -----------------------------------------------------------------------------------------------------

    async def get(self, resource: Resource, namespace: str, name: str) -> Answer:
        return await self._answer(resource, await self.kind(resource).get(namespace, name, resource))

    async def stored(self, resource: Resource, namespace: str, name: str) -> Object | None:
        """An object as it is stored; None when there is none, and for a kind that is stored as another."""
        kind = self.kinds.get(resource)
        entry = None if kind is None else await self._store.get(kind.key(namespace, name))
        return None if entry is None else self._cache.decode(entry.value)

    async def get_scale(self, resource: Resource, namespace: str, name: str) -> Answer:
        """The subresource `scale` of an object that has replicas."""
        return self._as_scale(resource, await self.get(resource, namespace, name))

    @staticmethod
    def _as_scale(resource: Resource, answer: Answer) -> Answer:
        scale = scale_of(resource, answer.object)
        return Answer(scale, Value(None, scale))

    async def get_bytes(self, resource: Resource, namespace: str, name: str) -> bytes:
        """The JSON of one object, as stored: nothing is decoded."""
        if isinstance(resource, CustomResource) and conversions_of(resource) is not None:
            return (await self.get(resource, namespace, name)).value.encoded()
        kind = self.kind(resource)
        if (entry := await self._store.get(kind.key(namespace, name))) is None:
            raise kind.missing(resource, namespace, name)
        return self.present(resource, entry.value)

    async def check_get_version(self, resource: Resource, resource_version: str) -> None:
        """`?resourceVersion=` of a GET: "not older than". Raises 504 for what has not come, 500 for an invalid one.

        One of Events is a 400: they are in no watch cache (apiserver pkg/storage/etcd3/store.go:Get)."""
        asked = parse_resource_version(resource_version, for_list=stored_resource(resource) == EVENTS)
        if asked:
            await wait_for_revision(self._store, self.clock, asked)

    async def list(self, resource: Resource, namespace: str, options: ListOptions) -> Page:
        kind, selection = self.kind(resource), self.selection(resource, options)
        if (conversions := conversions_of(resource)) is not None:
            return await converted_page(conversions, kind, resource, namespace, options, selection)
        return await list_page(kind, namespace, options, selection)

    def unreadable(self, resource: Resource, namespace: str) -> Sequence[str]:
        """Return the keys of a collection's objects that are stored and cannot be read: no list has them."""
        return [each.entry.key for each in self._store.unreadable(self.kind(resource).collection(namespace))]

    @asynccontextmanager
    async def watch(
        self, resource: Resource, namespace: str, options: ListOptions, *, endless: bool = False
    ) -> AsyncIterator[EventStream]:
        selection, conversions = self.selection(resource, options), conversions_of(resource)
        looked_at = selection if conversions is None else by_name(selection)
        kind = self.kind(resource)
        async with open_watch(kind, namespace, options, looked_at, shown=resource, endless=endless) as events:
            yield events if conversions is None else ConvertedStream(events, conversions, resource, selection)

    async def log(self, namespace: str, name: str, query: Mapping[str, str]) -> AsyncIterator[bytes] | None:
        return await open_log(self.kinds, self._logs, namespace, name, query)

    async def stream(
        self, subresource: str, namespace: str, name: str, query: "MultiMapping[str]"
    ) -> "tuple[KubeletStreams, Object, str]":
        """For pods/exec, attach and portforward: how to reach a kubelet, the node, path and query there."""
        node, location = await stream_location(self.kinds, subresource, namespace, name, query)
        if self._streams is None:
            raise service_unavailable("this API server has no connection to kubelets")
        return self._streams, node, location

    @property
    def kubelet_tls(self) -> "ssl.SSLContext | None":
        """With what a kubelet knows this server, and this server a kubelet."""
        return None if self._streams is None else self._streams.tls

    # -- writing -----------------------------------------------------------------------------------------------------

    async def create(
        self,
        context: RequestContext,
        resource: Resource,
        obj: Object,
        namespace: str,
        *,
        name: str = "",
        subresource: str = "",
        shared: bool = False,
    ) -> Answer:
        """POST. `obj` belongs to the server afterwards, but with `shared` it stays as it is."""
        context.requested = resource
        post = self._posts.of(resource, subresource)
        if post is not None:
            obj = await self._ask_about(context, resource, obj, namespace, name, subresource)
            return await post(context, resource, obj, namespace, name, shared)
        if subresource or name:
            raise method_not_allowed()
        obj = await self._prepared(context, resource, obj, namespace, None, shared=shared)
        track = self._track(self._tracking(context, resource))
        answer = await self.kind(resource).create(context, wiped(obj), namespace, track=track)
        return await self._answer(resource, answer)

    async def create_again(
        self, context: RequestContext, resource: Resource, obj: Object, namespace: str
    ) -> tuple[Answer | None, RepeatedKey | None]:
        """As `create` for a body that came before, which is only read: (the answer, None where `create` is to be asked
        with the same context; under what to `remember` what that answers)."""
        key = self._repeated.key(context, resource, obj, namespace)
        if key is None:
            return None, None
        if (found := await self._repeated.another(key)) is None:
            context.looks = self._repeated.looks()
            return None, key
        pod, like = found
        try:
            return await self.kind(resource).create_prepared(context, pod, namespace, like), key
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise
            context.looks = self._repeated.looks()
            return None, key  # another name is needed

    def remember(self, context: RequestContext, key: RepeatedKey, answer: Answer) -> None:
        """What a create answered, for `create_again`."""
        if context.looks is not None:
            self._repeated.remember(key, answer, context.looks)

    async def _ask_about(
        self, context: RequestContext, resource: Resource, obj: Object, namespace: str, name: str, subresource: str
    ) -> Object:
        """What webhooks make of what is posted and not stored."""
        kind = POSTED_KINDS.get(subresource, (resource.group, resource.version, resource.kind))
        meta = obj.get("metadata")
        if not isinstance(meta, dict | None):
            return obj  # decoding says what is wrong with it
        name = name or (meta or {}).get("name") or ""
        return await self._hooks.ask(self._reader, context, resource, obj, kind, namespace, name, subresource)

    async def connect(
        self, context: RequestContext, resource: Resource, info: RequestInfo, query: "MultiMapping[str]"
    ) -> None:
        """What comes before a connection by exec, attach, portforward or proxy. Raises StatusError."""
        kind, options = connect_options(resource, info, query)
        await self._hooks.ask(
            self._reader, context, resource, options, kind, info.namespace, info.name, info.subresource, "CONNECT"
        )

    async def _prepared(
        self,
        context: RequestContext,
        resource: Resource,
        obj: Object,
        namespace: str,
        name: str | None,
        known: Object | None = None,
        *,
        shared: bool = False,
    ) -> Object:
        obj = prepare(context, resource, obj, old=known, shared=shared)
        check_names(resource, obj, namespace, name)
        if (conversions := conversions_of(resource)) is not None:
            await conversions.ensure([obj], stored_resource(resource).api_version)
        return self._stored(resource, obj)

    @staticmethod
    def _stored(resource: Resource, obj: Object) -> Object:
        """An object that was given as `resource`, with its defaults, as it is stored."""
        face = face_of(resource)
        if face is not None:
            obj, resource = face.store(obj), face.stored
        set_defaults(resource, obj)
        return obj

    # -- managedFields -----------------------------------------------------------------------------------------------

    def _tracking(self, context: RequestContext, resource: Resource, subresource: str = "") -> Tracking:
        return Tracking(scope_of(resource, subresource), manager_of(context), lambda: rfc3339_now(self.clock))

    @staticmethod
    def _track(tracking: Tracking) -> Track:
        """`tracking` for objects as they are stored."""
        face = face_of(tracking.scope.resource)
        if face is None:
            return tracking.track

        def track(new: Object, old: Object | None) -> list[Object]:
            return tracking.track(face.show(new), None if old is None else face.show(old))

        return track

    async def update(
        self,
        context: RequestContext,
        resource: Resource,
        obj: Object,
        namespace: str,
        name: str,
        *,
        subresource: str = "",
        known: Object | None = None,
        shared: bool = False,
    ) -> Answer:
        """PUT. `obj` belongs to the server afterwards, but with `shared` it stays as it is. What is the same in `known`
        is not looked at."""
        self._check_update(resource, subresource)
        context.requested = resource
        if subresource == "scale":
            scale = prepare(context, SCALES, obj, shared=shared)
            return await self._update_scale(context, resource, namespace, name, lambda old: scale)
        obj = await self._prepared(context, resource, obj, namespace, name, known, shared=shared)
        if obj["metadata"].get("ownerReferences"):
            obj = {**obj, "metadata": with_owners_once(context, obj["metadata"])}
        create = None
        if not subresource and self.kind(resource).strategy.allow_create_on_update:
            create = obj if await self._may_create(context, resource, namespace, name) else None
        answer = await self.kind(resource).update(
            context,
            namespace,
            name,
            lambda old: obj,
            subresource=subresource,
            expected_uid=uid_of(obj),
            create=create,
            track=self._track(self._tracking(context, resource, subresource)),
        )
        return await self._answer(resource, answer)

    async def _may_create(self, context: RequestContext, resource: Resource, namespace: str, name: str) -> bool:
        """Whether who puts or applies what is not there may create it (handlers/create.go:withAuthorization).

        Raises the 403 StatusError when it is not there.
        """
        if may_everything(context.user):
            return True
        asked = RequestInfo(True, "", "create", resource.group, resource.version, namespace, resource.plural, name)
        decision = await self.authorizer.authorize(context.user, asked)
        if not decision.allowed and await self.stored(stored_resource(resource), namespace, name) is None:
            raise forbidden_request(context.user, asked, decision.reason)
        return decision.allowed

    async def _update_scale(
        self,
        context: RequestContext,
        resource: Resource,
        namespace: str,
        name: str,
        change: Transform,
        *,
        managers: bool = False,
    ) -> Answer:
        """Write what `change` makes of the object's Scale, `managers`: of a Scale that tells its managers."""

        tracking = self._tracking(context, resource, "scale")

        def transform(old: Object) -> Object:
            shown = self._in_version(resource, old)
            scale = scale_of(resource, shown)
            if managers and (entries := managers_of_scale(shown)):
                scale["metadata"]["managedFields"] = entries
            new = update_scale(tracking, with_replicas(resource, shown, change(scale)), shown)
            return self._in_version(stored_resource(resource), new)

        answer = await self.kind(resource).update(context, namespace, name, transform, subresource="scale")
        return self._as_scale(resource, await self._answer(resource, answer))

    @staticmethod
    def _in_version(resource: Resource, obj: Object) -> Object:
        """An object of a kind that a webhook converts in a version; any other as it is."""
        conversions = conversions_of(resource)
        return obj if conversions is None else conversions.converted(obj, resource.api_version)

    async def patch(
        self,
        context: RequestContext,
        resource: Resource,
        patch: Any,
        namespace: str,
        name: str,
        *,
        content_type: str,
        subresource: str = "",
        force: bool = False,
    ) -> Answer:
        """PATCH with a decoded patch of `content_type`."""
        self._check_update(resource, subresource)
        context.requested, context.patching = resource, True
        if subresource == "finalize":
            raise method_not_allowed()
        if content_type == APPLY_PATCH:
            return await self._apply(context, resource, patch, namespace, name, subresource, force=force)
        checked = context.field_validation != "Ignore"
        if subresource == "scale":
            change = patcher(SCALES, name, content_type, patch, checked=checked)

            def scaled(old: Object) -> Object:
                told = partial(patched, SCALES, name, content_type, patch, old)
                return prepare(context, SCALES, change(old), patch=told)

            return await self._update_scale(context, resource, namespace, name, scaled, managers=True)
        apply = patcher(resource, name, content_type, patch, checked=checked)
        kind, face = self.kind(resource), face_of(resource)

        def transform(old: Object) -> Object:
            shown = old if face is None else face.show(old)
            new = apply(shown)
            meta = new.get("metadata")
            if not isinstance(meta, dict):
                pass  # decoding says what is wrong with it
            elif meta is not shown["metadata"] and meta.get("managedFields") is old["metadata"].get("managedFields"):
                meta.pop("managedFields", None)  # untouched: they need no checking
            told = partial(patched, resource, name, content_type, patch, shown)
            new = prepare(context, resource, new, patch=told, old=shown, shared=True)
            check_patched(resource, name, new, old)
            if kind.strategy.defaults_in_spec and "status" in new and new.get("spec") is shown["spec"]:
                return new
            return self._stored(resource, new)

        track = self._track(self._tracking(context, resource, subresource))
        answer = await kind.update(context, namespace, name, transform, subresource=subresource, track=track)
        return await self._answer(resource, answer)

    async def _apply(  # noqa: PLR0915 - see the marker
        self,
        context: RequestContext,
        resource: Resource,
        config: Any,
        namespace: str,
        name: str,
        subresource: str,
        *,
        force: bool,
    ) -> Answer:
        """Server-side apply: the object with what `config` says, created when it is not there."""
        kind, tracking = self.kind(resource), self._tracking(context, resource, subresource)
        if subresource == "scale":

            def rescaled(old: Object) -> Object:
                shown = self._in_version(resource, old)
                scale, entries = apply_scale(tracking, config, shown, force=force)
                new = with_replicas(resource, shown, prepare(context, SCALES, copy_object(scale), applied=config))
                new["metadata"]["managedFields"] = entries
                return self._in_version(kind.resource, new)

            answer = await kind.update(context, namespace, name, rescaled, subresource=subresource)
            return self._as_scale(resource, await self._answer(resource, answer))
        face = face_of(resource)

        def applied(old: Object | None) -> Object:
            shown = old if face is None or old is None else face.show(old)
            new = tracking.apply(config, shown, force=force)
            check_name(new.get("metadata", {}), name)
            if old is not None and not resource.namespaced:
                new["metadata"].pop("namespace", None)
            elif old is not None and new["metadata"].get("namespace") != old["metadata"].get("namespace"):
                raise bad_request(OTHER_NAMESPACE)
            if any((config.get("metadata") or {}).get("managedFields") or ()):
                # None that can be read as such: an entry that cannot be decoded fails as any other field does.
                given = {**new["metadata"], "managedFields": copy_object(config)["metadata"]["managedFields"]}
                prepare(context, resource, {**copy_object(new), "metadata": given}, applied=config)
            return self._stored(resource, prepare(context, resource, new, applied=config))

        async def fresh() -> Object:
            return applied(None)

        while True:
            try:
                answer = await kind.update(context, namespace, name, applied, subresource=subresource)
                return await self._answer(resource, answer)
            except StatusError as error:
                if subresource or not is_not_found(error) or error.status.get("details", {}).get("name") != name:
                    raise
            if not await self._may_create(context, resource, namespace, name):
                continue  # it has come meanwhile
            obj = await with_conversion(fresh)
            meta = obj["metadata"]
            if meta.get("uid"):
                why = f"uid mismatch: the provided object specified uid {meta['uid']}, and no existing object was found"
                raise conflict(resource, name, why)
            version = meta.pop("resourceVersion", None)
            check_names(resource, obj, namespace, name)
            check_version_of_missing(version)
            try:
                return await self._answer(resource, await kind.create(context, obj, namespace, named=name))
            except StatusError as error:
                if error.reason != "AlreadyExists" or error.message.startswith("object is being deleted"):
                    raise

    def _check_update(self, resource: Resource, subresource: str) -> None:
        kind = self.kind(resource)
        kind.strategy.check_write(subresource, kind.shared.gates)

    async def delete(
        self, context: RequestContext, resource: Resource, namespace: str, name: str, options: DeleteOptions
    ) -> Answer:
        """DELETE; the answer's object is the object or, for most kinds, a Status once it is removed."""
        kind = self.kind(resource)
        context.requested = resource
        if warning := kind.strategy.delete_warning(options):
            context.warnings.append(warning)
        answer = await kind.delete(context, namespace, name, options)
        if not answer.removed or kind.strategy.returns_deleted_object:
            return await self._answer(resource, answer)
        details = {"name": name, "group": resource.group, "kind": resource.plural, "uid": uid_of(answer.object)}
        status = status_success({key: value for key, value in details.items() if value})
        return Answer(status, Value(None, status), removed=True)

    async def delete_collection(
        self,
        context: RequestContext,
        resource: Resource,
        namespace: str,
        list_options: ListOptions,
        options: DeleteOptions,
    ) -> Page:
        """DELETE on a collection: the page as it was listed; each item goes the way of a single DELETE."""
        kind = self.kind(resource)
        if not kind.strategy.allow_delete_collection:
            raise method_not_allowed()
        page = await self.list(resource, namespace, list_options)
        if warning := kind.strategy.delete_warning(options):
            context.warnings.append(warning)
        context.requested, context.collection = resource, True
        for number, entry in enumerate(page.entries, 1):
            if number % SLICE == 0:
                await self.clock.sleep(0)
            meta = self._cache.decode(entry.value)["metadata"]
            try:
                await kind.delete(context, meta.get("namespace", ""), meta["name"], options)
            except StatusError as error:
                if error.reason != "NotFound":
                    raise
        return page
