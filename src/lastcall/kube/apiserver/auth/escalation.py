"""Users grant only what they have: a user that writes a role must hold its rules, and so must one that binds it.

Sources: pkg/registry/rbac/{role,clusterrole,rolebinding,clusterrolebinding}/policybased/storage.go,
pkg/registry/rbac/escalation_check.go.
"""

# check: asks for kinds because it is about roles and bindings

from lastcall.kube.api.errors import forbidden, not_found
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import CLUSTERROLEBINDINGS, CLUSTERROLES, ROLEBINDINGS, ROLES, Resource
from lastcall.kube.apiserver.auth.authentication import UserInfo, is_superuser
from lastcall.kube.apiserver.auth.authorizer import Authorizer
from lastcall.kube.apiserver.auth.rbac import FULL_AUTHORITY, RBAC_GROUP, missing_text, uncovered
from lastcall.kube.apiserver.requestinfo import RequestInfo

_KINDS = (ROLES, CLUSTERROLES, ROLEBINDINGS, CLUSTERROLEBINDINGS)
_COLLECTOR_FIELDS = ("ownerReferences", "finalizers", "managedFields", "resourceVersion")


class EscalationCheck:
    """For writes of the four kinds; others pass."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    async def create(self, user: UserInfo, resource: Resource, obj: Object, namespace: str) -> None:
        """Check a creation. Raises the 403 StatusError; 404 for a binding to a role that does not exist."""
        if resource.group != RBAC_GROUP or resource not in _KINDS or is_superuser(user):
            return
        if resource in (ROLES, CLUSTERROLES):
            await self._role(user, resource, obj, namespace, requested="", aggregates=_aggregates(obj))
        else:
            await self._binding(user, resource, obj, namespace)

    async def update(self, user: UserInfo, resource: Resource, new: Object, old: Object) -> None:
        """Check an update as `create` does. Changes of ownerReferences and finalizers grant no permissions."""
        if resource.group != RBAC_GROUP or resource not in _KINDS or is_superuser(user) or _only_collected(new, old):
            return
        meta = new["metadata"]
        namespace = meta.get("namespace", "")
        if resource in (ROLES, CLUSTERROLES):
            aggregates = _aggregates(new) or _aggregates(old)
            await self._role(user, resource, new, namespace, requested=meta["name"], aggregates=aggregates)
        else:
            await self._binding(user, resource, new, namespace)

    async def _role(
        self, user: UserInfo, resource: Resource, role: Object, namespace: str, *, requested: str, aggregates: bool
    ) -> None:
        """`requested` is the name in the URL."""
        if await self._may(user, "escalate", resource, namespace, requested):
            return
        name = role["metadata"].get("name", "")
        await self._confirm(user, resource, name, namespace, role.get("rules") or [])
        if not aggregates:
            return
        owned = await self._authorizer.rules_for(user, namespace)
        if uncovered(owned.rules, FULL_AUTHORITY):
            raise forbidden(resource, name, "must have cluster-admin privileges to use the aggregationRule")

    async def _binding(self, user: UserInfo, resource: Resource, binding: Object, namespace: str) -> None:
        reference = binding.get("roleRef") or {}
        name = reference.get("name") or ""
        roles = {"Role": ROLES, "ClusterRole": CLUSTERROLES}.get(reference.get("kind", ""))
        if roles is None or (roles is ROLES and not namespace) or not name:
            return  # which validation refuses
        if await self._may(user, "bind", roles, namespace, name):
            return
        rules = await self._authorizer.role_rules(reference, namespace)
        if rules is None:
            raise not_found(roles, name)
        await self._confirm(user, resource, binding["metadata"].get("name", ""), namespace, rules)

    async def _may(self, user: UserInfo, verb: str, resource: Resource, namespace: str, name: str) -> bool:
        asked = RequestInfo(True, "", verb, RBAC_GROUP, "*", namespace, resource.plural, name)
        return (await self._authorizer.authorize(user, asked)).allowed

    async def _confirm(
        self, user: UserInfo, resource: Resource, name: str, namespace: str, rules: list[Object]
    ) -> None:
        owned = await self._authorizer.rules_for(user, namespace)
        missing = uncovered(owned.rules, rules)
        if missing:
            why = missing_text(user, missing)
            if owned.errors:
                why += f"; resolution errors: [{' '.join(owned.errors)}]"
            raise forbidden(resource, name, why)


def _aggregates(role: Object) -> bool:
    return bool((role.get("aggregationRule") or {}).get("clusterRoleSelectors"))


def _only_collected(new: Object, old: Object) -> bool:
    """(helpers.go:IsOnlyMutatingGCFields)"""
    one, other = ({**obj, "metadata": _rest(obj["metadata"])} for obj in (new, old))
    return one == other


def _rest(meta: Object) -> Object:
    return {key: value for key, value in meta.items() if key not in _COLLECTOR_FIELDS}
