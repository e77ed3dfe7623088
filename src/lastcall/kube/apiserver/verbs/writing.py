"""What create, update, patch and apply have in common: the object as it is stored, and who manages its fields."""

from lastcall.kube.api.defaults.kinds import set_defaults
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import Resource
from lastcall.kube.apiserver.auth.authentication import forbidden_request, is_superuser
from lastcall.kube.apiserver.auth.authorizer import Authorizer
from lastcall.kube.apiserver.conversions.conversion import conversions_of
from lastcall.kube.apiserver.conversions.table import conversion_of, stored_resource
from lastcall.kube.apiserver.fieldmanager.requests import Tracking, manager_of, scope_of
from lastcall.kube.apiserver.registry.objectmeta import check_names
from lastcall.kube.apiserver.requestinfo import RequestInfo
from lastcall.kube.apiserver.updated_object import Track
from lastcall.kube.apiserver.verbs.kinds import ServedKinds
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.kube.apiserver.wire.preparing import prepare, prepare_copy
from lastcall.world.clock import rfc3339_now


class Writing:
    """All methods raise StatusError."""

    def __init__(self, kinds: ServedKinds, authorizer: Authorizer) -> None:
        self._kinds, self._authorizer = kinds, authorizer
        self._clock = kinds.shared.world.clock

    async def prepared(
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
        obj = (prepare_copy if shared else prepare)(context, resource, obj, known)
        check_names(resource, obj, namespace, name)
        if (conversions := conversions_of(resource)) is not None:
            await conversions.ensure([obj], stored_resource(resource).api_version)
        return self.stored(resource, obj)

    @staticmethod
    def stored(resource: Resource, obj: Object) -> Object:
        """Return an object that was given as `resource`, with its defaults, as it is stored."""
        conversion = conversion_of(resource)
        if conversion is not None:
            obj, resource = conversion.store(obj), conversion.stored
        set_defaults(resource, obj)
        return obj

    def tracking(self, context: RequestContext, resource: Resource, subresource: str = "") -> Tracking:
        return Tracking(scope_of(resource, subresource), manager_of(context), lambda: rfc3339_now(self._clock))

    @staticmethod
    def track(tracking: Tracking) -> Track:
        """Return `tracking` for objects as they are stored."""
        conversion = conversion_of(tracking.scope.resource)
        if conversion is None:
            return tracking.track

        def track(new: Object, old: Object | None) -> list[Object]:
            return tracking.track(conversion.show(new), None if old is None else conversion.show(old))

        return track

    def check_update(self, resource: Resource, subresource: str) -> None:
        kind = self._kinds.kind(resource)
        kind.strategy.check_write(subresource, kind.shared.gates)

    async def may_create(self, context: RequestContext, resource: Resource, namespace: str, name: str) -> bool:
        """Return whether a user who puts or applies a missing object may create it
        (handlers/create.go:withAuthorization).

        Raises the 403 StatusError when it is not there.
        """
        if is_superuser(context.user):
            return True
        asked = RequestInfo(True, "", "create", resource.group, resource.version, namespace, resource.plural, name)
        decision = await self._authorizer.authorize(context.user, asked)
        if not decision.allowed and await self._kinds.stored(stored_resource(resource), namespace, name) is None:
            raise forbidden_request(context.user, asked, decision.reason)
        return decision.allowed
