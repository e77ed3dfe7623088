"""May they? First the few who may everything, then nodes by what their Pods need, then role-based access control.

The roles and bindings of a decision are read from the store when it is made: what was answered holds at once, and who
may everything costs nothing.

Source: plugin/pkg/auth/authorizer/rbac/rbac.go, pkg/registry/rbac/validation/rule.go:VisitRulesFor.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple

from lastcall.kube.api.field import go_quote
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import CLUSTERROLEBINDINGS, CLUSTERROLES, ROLEBINDINGS, ROLES, Resource
from lastcall.kube.apiserver.auth.authentication import MASTERS, UserInfo, forbidden_request, is_superuser, node_of
from lastcall.kube.apiserver.auth.node_graph import NodeGraph
from lastcall.kube.apiserver.auth.node_rules import Related, decide_node, not_related
from lastcall.kube.apiserver.auth.rbac import FULL_AUTHORITY, RBAC_GROUP, described, rule_allows, subject_of
from lastcall.kube.apiserver.requestinfo import RequestInfo

GetObject = Callable[[Resource, str, str], Awaitable[Object | None]]
"""(resource, namespace, name) → the object, None when it is not there."""
ListObjects = Callable[[Resource, str], Awaitable[list[Object]]]
"""(resource, namespace) → all objects, "" for those of a cluster-scoped kind."""


class Decision(NamedTuple):
    """`reason` says which binding allows, or which roles that bindings name are missing; "" says nothing."""

    allowed: bool
    reason: str = ""


class Rules(NamedTuple):
    """The rules that hold for a user in a namespace, and what could not be found out."""

    rules: list[Object]
    errors: list[str]


class Grant(NamedTuple):
    """A binding that means a user, by which subject, and the role's rules; None when the role is missing."""

    binding: Object
    subject: Object
    rules: list[Object] | None


ALLOWED = Decision(True)


class Authorizer:
    """Answers from the objects that `get` and `list_all` give, as they are now; `graph` says what belongs to a node."""

    def __init__(self, get: GetObject, list_all: ListObjects, graph: NodeGraph) -> None:
        self._get = get
        self._list = list_all
        self._graph = graph

    async def authorize(self, user: UserInfo, request: RequestInfo) -> Decision:
        """Decide whether `user` may do this, first by cluster-wide bindings, then by those of the namespace."""
        if is_superuser(user):
            return ALLOWED
        reasons: list[str] = []
        if (node := node_of(user)) is not None:
            why = decide_node(node, user, request)
            if isinstance(why, Related):
                why = None if await self._graph.related(node, why) else not_related(node)
            if why is None:
                return ALLOWED
            reasons = [why] if why else []
        errors: list[str] = []
        namespace = request.namespace if request.is_resource_request else ""
        async for grant in self._grants(user, namespace):
            if grant.rules is None:
                errors.append(_role_missing(grant.binding["roleRef"]))
            elif any(rule_allows(rule, request) for rule in grant.rules):
                return Decision(True, f"RBAC: allowed by {described(grant.binding, grant.subject)}")
        if errors:
            reasons.append(f"RBAC: {aggregate(errors)}")
        return Decision(False, "\n".join(reasons))

    async def allows(self, user: UserInfo, request: RequestInfo) -> bool:
        """Decide as `authorize` does, without the reason."""
        return (await self.authorize(user, request)).allowed

    async def check(self, user: UserInfo, request: RequestInfo) -> None:
        """Raise the 403 StatusError when `user` may not do this."""
        if is_superuser(user):
            return
        decision = await self.authorize(user, request)
        if not decision.allowed:
            raise forbidden_request(user, request, decision.reason)

    async def rules_for(self, user: UserInfo, namespace: str) -> Rules:
        """Return all rules by which `user` may do something in `namespace` ("" is cluster-wide rules only)."""
        found = Rules([], [])
        if is_superuser(user) and MASTERS not in user.groups:  # whose rules are bound
            found.rules.extend(FULL_AUTHORITY)
        if node_of(user) is not None:
            found.errors.append("node authorizer does not support user rule resolution")
        async for grant in self._grants(user, namespace):
            if grant.rules is None:
                found.errors.append(_role_missing(grant.binding["roleRef"]))
            else:
                found.rules.extend(grant.rules)
        return found

    async def role_rules(self, reference: Object, namespace: str) -> list[Object] | None:
        """Return the rules of a roleRef in a binding of `namespace`; None when there is no such role."""
        resource, place = (CLUSTERROLES, "") if reference.get("kind") == "ClusterRole" else (ROLES, namespace)
        role = await self._get(resource, place, reference.get("name", ""))
        return None if role is None else list(role.get("rules") or ())

    async def _grants(self, user: UserInfo, namespace: str) -> AsyncIterator[Grant]:
        bindings = await self._list(CLUSTERROLEBINDINGS, "")
        if namespace:
            bindings = [*bindings, *await self._list(ROLEBINDINGS, namespace)]
        for binding in bindings:
            subject = subject_of(binding, user)
            if subject is not None:
                place = binding["metadata"].get("namespace", "")
                yield Grant(binding, subject, await self.role_rules(binding["roleRef"], place))


def _role_missing(reference: Object) -> str:
    return f"{reference['kind'].lower()}.{RBAC_GROUP} {go_quote(reference['name'])} not found"


def aggregate(errors: list[str]) -> str:
    """Format several errors as apimachinery pkg/util/errors:NewAggregate prints them: each once."""
    once = list(dict.fromkeys(errors))
    return once[0] if len(once) == 1 else "[" + ", ".join(once) + "]"
