"""What expressions see of one write, made once for all policies that see it as one kind."""

from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import Resource
from lastcall.kube.apiserver.policies.authorization import Asked, user_authorizer, write_authorizer
from lastcall.kube.apiserver.policies.evaluation import Input
from lastcall.kube.apiserver.proxying.webhooks.dispatch import Convert
from lastcall.kube.apiserver.proxying.webhooks.matching import Write
from lastcall.kube.apiserver.proxying.webhooks.review import facts_of_request
from lastcall.kube.apiserver.wire.context import RequestContext


class Inputs:
    """`asked` is what the authorizer was asked about the write. `namespace`, as expressions see it, may come later."""

    def __init__(self, convert: Convert, context: RequestContext, write: Write, asked: Asked) -> None:
        self._convert, self._write, self._user = convert, write, context.user
        self.namespace: Object | None = None
        self._authorizer = user_authorizer(context.user, asked)
        self._resource_authorizer = write_authorizer(context.user, write, asked)
        self._requests: dict[Resource, Object] = {}
        self._olds: dict[Resource, Object | None] = {}
        self._new: tuple[Object | None, Resource, Object | None] | None = None

    def of(self, resource: Resource, params: Object | None = None) -> Input:
        """Return what expressions may name that see the write as one of `resource`."""
        if resource not in self._requests:
            self._requests[resource] = facts_of_request(self._write, resource, self._user)
            self._olds[resource] = self._shown(self._write.old, resource)
        written = self._write.new
        if self._new is None or self._new[0] is not written or self._new[1] != resource:
            self._new = (written, resource, self._shown(written, resource))
        return Input(
            self._new[2],
            self._olds[resource],
            self._requests[resource],
            params,
            self.namespace,
            self._authorizer,
            self._resource_authorizer,
        )

    def _shown(self, obj: Object | None, resource: Resource) -> Object | None:
        if obj is None or self._write.kind is not None:
            return obj
        return self._convert(self._write.resource, obj, resource)
