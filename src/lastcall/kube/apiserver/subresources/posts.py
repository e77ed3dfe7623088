"""What is posted and not stored: bindings, evictions, requests for tokens, reviews.

Sources: pkg/registry/core/pod/storage/storage.go, pkg/registry/core/serviceaccount/storage/token.go,
pkg/registry/{authentication,authorization}.
"""

from collections.abc import Awaitable, Callable, Mapping

from lastcall.kube.api.errors import bad_request, method_not_allowed
from lastcall.kube.api.field import go_quote
from lastcall.kube.api.meta import Object, copy_object
from lastcall.kube.api.names import is_path_segment_name
from lastcall.kube.api.resources import BINDINGS, PODS, REVIEWS, SERVICEACCOUNTS, Resource
from lastcall.kube.apiserver.auth.reviews import ANSWERED_ANEW, Reviews
from lastcall.kube.apiserver.auth.tokens import DEFAULT_EXPIRATION, TokenIssuer
from lastcall.kube.apiserver.fieldmanager.requests import Tracking
from lastcall.kube.apiserver.registry.generic import Shared
from lastcall.kube.apiserver.registry.objectmeta import OTHER_NAMESPACE, check_names, with_owners_once
from lastcall.kube.apiserver.registry.reading import Answer
from lastcall.kube.apiserver.subresources.actions import bind, check_target, request_token
from lastcall.kube.apiserver.subresources.eviction import evict
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.kube.apiserver.wire.preparing import check_kind, prepare, prepare_copy
from lastcall.kube.store.value import Value

TOKEN_REQUESTS = Resource("authentication.k8s.io", "v1", "tokenrequests", "TokenRequest", True)
"""What a POST to serviceaccounts/token carries."""
EVICTIONS = Resource("policy", "v1", "evictions", "Eviction", True)

KINDS: Mapping[str, tuple[str, str, str]] = {
    "binding": ("", "v1", "Binding"),
    "eviction": ("policy", "v1", "Eviction"),
    "token": ("authentication.k8s.io", "v1", "TokenRequest"),
}
"""What a POST to a subresource carries: group, version, kind."""

Post = Callable[[RequestContext, Resource, Object, str, str, bool], Awaitable[Answer]]
"""Namespace and name are those of the URL; True: the object stays as it is."""


class Posts:
    """`of` finds what a POST does; all raise StatusError. `tracking` makes the managers of what is answered."""

    def __init__(
        self,
        shared: Shared,
        issuer: TokenIssuer,
        reviews: Reviews,
        tracking: Callable[[RequestContext, Resource, str], Tracking],
    ) -> None:
        self._kinds, self._issuer, self._reviews, self._tracking = shared.kinds, issuer, reviews, tracking
        admission = shared.admission
        self._nodes, self._lifecycle = admission.nodes, admission.namespace_lifecycle
        self._posts: dict[tuple[Resource, str], Post] = {
            (BINDINGS, ""): self._bind,
            (PODS, "binding"): self._bind,
            (PODS, "eviction"): self._evict,
            (SERVICEACCOUNTS, "token"): self._request_token,
            **{(review, ""): self._review for review in REVIEWS},
        }

    def of(self, resource: Resource, subresource: str) -> Post | None:
        """Return the action of a POST, None for what stores an object of the kind."""
        return self._posts.get((resource, subresource))

    async def _bind(
        self, context: RequestContext, resource: Resource, obj: Object, namespace: str, name: str, shared: bool
    ) -> Answer:
        obj = prepare_copy(context, BINDINGS, obj)
        meta = with_owners_once(context, obj["metadata"])
        if meta.get("namespace") and meta["namespace"] != namespace:
            raise bad_request(OTHER_NAMESPACE)
        await self._lifecycle(PODS, namespace, name)
        if name and meta.get("name") != name:
            raise bad_request("name in URL does not match name in Binding object")
        check_target(obj)
        if not (name or meta.get("name")):
            raise bad_request("Name parameter required.")
        name = name or meta["name"]
        if found := is_path_segment_name(name):
            raise bad_request(f"Name parameter invalid: {go_quote(name)}: {';'.join(found)}")
        status = await bind(self._kinds, context, obj, namespace, name)
        return Answer(status, Value(None, status), created=True)

    async def _evict(
        self, context: RequestContext, resource: Resource, obj: Object, namespace: str, name: str, shared: bool
    ) -> Answer:
        obj = copy_object(obj) if shared else obj
        if (obj.get("kind"), obj.get("apiVersion")) != (EVICTIONS.kind, "policy/v1beta1"):
            check_kind(EVICTIONS, obj)
        await self._nodes.create(context.user, resource, obj, namespace, name=name, subresource="eviction")
        status = await evict(self._kinds, context, obj, namespace, name)
        return Answer(status, Value(None, status), created=True)

    async def _request_token(
        self, context: RequestContext, resource: Resource, obj: Object, namespace: str, name: str, shared: bool
    ) -> Answer:
        obj = (prepare_copy if shared else prepare)(context, TOKEN_REQUESTS, obj)
        obj["metadata"] = with_owners_once(context, obj["metadata"])
        await self._lifecycle(SERVICEACCOUNTS, namespace, name)
        await self._nodes.create(context.user, resource, obj, namespace, name=name, subresource="token")
        obj.setdefault("spec", {}).setdefault("expirationSeconds", DEFAULT_EXPIRATION)
        entries = self._tracking(context, TOKEN_REQUESTS, "token").create(obj)
        status = await request_token(self._kinds, self._issuer, obj, namespace, name, dry_run=context.dry_run)
        status["metadata"]["managedFields"] = entries
        return Answer(status, Value(None, status), created=True)

    async def _review(
        self, context: RequestContext, resource: Resource, obj: Object, namespace: str, name: str, shared: bool
    ) -> Answer:
        if name:
            raise method_not_allowed()
        review = (prepare_copy if shared else prepare)(context, resource, obj)
        review["metadata"] = with_owners_once(context, review["metadata"])
        check_names(resource, review, namespace, None)
        entries = self._tracking(context, resource, "").create(review)
        if entries and resource not in ANSWERED_ANEW:
            review["metadata"]["managedFields"] = entries
        review = await self._reviews.answer(resource, review, context.user, namespace)
        return Answer(review, Value(None, review), created=True)
