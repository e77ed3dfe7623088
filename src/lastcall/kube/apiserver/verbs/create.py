"""create: POST, and connections, which begin like one.

Source: apiserver pkg/endpoints/handlers/{create,rest}.go.
"""

from typing import TYPE_CHECKING

from lastcall.kube.api.errors import StatusError, method_not_allowed
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import Resource
from lastcall.kube.apiserver.registry.objectmeta import wiped
from lastcall.kube.apiserver.registry.reading import Answer
from lastcall.kube.apiserver.registry.repeated_pods import Key as RepeatedKey
from lastcall.kube.apiserver.registry.repeated_pods import RepeatedPods
from lastcall.kube.apiserver.requestinfo import RequestInfo
from lastcall.kube.apiserver.streaming.location import connect_options
from lastcall.kube.apiserver.subresources.posts import KINDS as POSTED_KINDS
from lastcall.kube.apiserver.subresources.posts import Posts
from lastcall.kube.apiserver.verbs.kinds import ServedKinds
from lastcall.kube.apiserver.verbs.writing import Writing
from lastcall.kube.apiserver.wire.context import RequestContext

if TYPE_CHECKING:
    from multidict import MultiMapping


class Create:
    """All methods raise StatusError."""

    def __init__(self, kinds: ServedKinds, writing: Writing, posts: Posts) -> None:
        self._kinds, self._writing, self._posts = kinds, writing, posts
        self._admission = kinds.shared.admission
        self.repeated = RepeatedPods(kinds.shared.world, kinds.shared.admission.reader)

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
        """Answer a POST. `obj` belongs to the server afterwards, but with `shared` it stays as it is."""
        context.requested = resource
        post = self._posts.of(resource, subresource)
        if post is not None:
            obj = await self._ask_about(context, resource, obj, namespace, name, subresource)
            return await post(context, resource, obj, namespace, name, shared)
        if subresource or name:
            raise method_not_allowed()
        obj = await self._writing.prepared(context, resource, obj, namespace, None, shared=shared)
        track = self._writing.track(self._writing.tracking(context, resource))
        answer = await self._kinds.kind(resource).create(context, wiped(obj), namespace, track=track)
        return await self._kinds.answer(resource, answer)

    async def create_again(
        self, context: RequestContext, resource: Resource, obj: Object, namespace: str
    ) -> tuple[Answer | None, RepeatedKey | None]:
        """Create as `create` does from a body that came before, which is only read.

        The result is (the answer, None where `create` is to be asked with the same context; under what to `remember`
        that answer).
        """
        key = self.repeated.key(context, resource, obj, namespace)
        if key is None:
            return None, None
        if (found := await self.repeated.another(key)) is None:
            context.reads = self.repeated.reads()
            return None, key
        pod, like = found
        try:
            kind = self._kinds.kind(resource)
            return await kind.create_prepared(kind.attributes_of_new(context, pod, namespace), like), key
        except StatusError as error:
            if error.reason != "AlreadyExists":
                raise
            context.reads = self.repeated.reads()
            return None, key  # another name is needed

    def remember(self, context: RequestContext, key: RepeatedKey, answer: Answer) -> None:
        """Remember what a create answered, for `create_again`."""
        if context.reads is not None:
            self.repeated.remember(key, answer, context.reads)

    async def _ask_about(
        self, context: RequestContext, resource: Resource, obj: Object, namespace: str, name: str, subresource: str
    ) -> Object:
        """What webhooks make of what is posted and not stored."""
        kind = POSTED_KINDS.get(subresource, (resource.group, resource.version, resource.kind))
        meta = obj.get("metadata")
        if not isinstance(meta, dict | None):
            return obj  # decoding says what is wrong with it
        name = name or (meta or {}).get("name") or ""
        a = self._admission.attributes("CREATE", context, resource, namespace, obj, subresource=subresource)
        a.name, a.kind = name, kind
        return await self._admission.hooks.ask(a)

    async def connect(
        self, context: RequestContext, resource: Resource, info: RequestInfo, query: "MultiMapping[str]"
    ) -> None:
        """Do what comes before a connection by exec, attach, portforward or proxy. Raises StatusError."""
        kind, options = connect_options(resource, info, query)
        subresource = info.subresource
        a = self._admission.attributes("CONNECT", context, resource, info.namespace, options, subresource=subresource)
        a.name, a.kind = info.name, kind
        await self._admission.hooks.ask(a)
