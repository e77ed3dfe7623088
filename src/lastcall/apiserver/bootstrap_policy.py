"""The roles and bindings that every cluster has: those that users bind, and what everybody may.

The roles of Kubernetes's own components are left out: here the components may everything.

Source: plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go.
"""

from collections.abc import Iterator, Sequence

from lastcall.api.meta import Object
from lastcall.api.resources import CLUSTERROLEBINDINGS, CLUSTERROLES, Resource
from lastcall.apiserver.auth import ALL_AUTHENTICATED, ALL_UNAUTHENTICATED, MASTERS
from lastcall.apiserver.rbac import FULL_AUTHORITY, RBAC_GROUP

READ = "get list watch"
WRITE = "create delete deletecollection patch update"
READ_WRITE = "create delete deletecollection get list patch update watch"
BATCH, APPS = "batch", "apps"
AGGREGATE = f"{RBAC_GROUP}/aggregate-to-"
"""Begins the label of roles whose rules another role takes over."""


def _rule(verbs: str, group: str, resources: str) -> Object:
    return {"verbs": verbs.split(), "apiGroups": [group], "resources": resources.split()}


def _paths(paths: str) -> Object:
    return {"verbs": ["get"], "nonResourceURLs": paths.split()}


VIEW = (
    _rule(READ, "", "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods "
          "replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status"),
    _rule(READ, "", "bindings events limitranges namespaces/status pods/log pods/status replicationcontrollers/status "
          "resourcequotas resourcequotas/status"),
    _rule(READ, "", "namespaces"),
    _rule(READ, "discovery.k8s.io", "endpointslices"),
    _rule(READ, APPS, "controllerrevisions daemonsets daemonsets/status deployments deployments/scale "
          "deployments/status replicasets replicasets/scale replicasets/status statefulsets statefulsets/scale "
          "statefulsets/status"),
    _rule(READ, "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"),
    _rule(READ, BATCH, "cronjobs cronjobs/status jobs jobs/status"),
    _rule(READ, "extensions", "daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses "
          "ingresses/status networkpolicies replicasets replicasets/scale replicasets/status "
          "replicationcontrollers/scale"),
    _rule(READ, "policy", "poddisruptionbudgets poddisruptionbudgets/status"),
    _rule(READ, "networking.k8s.io", "ingresses ingresses/status networkpolicies"),
)  # fmt: skip

EDIT = (
    _rule(READ, "", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy"),
    _rule("impersonate", "", "serviceaccounts"),
    _rule(WRITE, "", "pods pods/attach pods/exec pods/portforward pods/proxy"),
    _rule("create", "", "pods/eviction"),
    _rule(WRITE, "", "configmaps events persistentvolumeclaims replicationcontrollers replicationcontrollers/scale "
          "secrets serviceaccounts services services/proxy"),
    _rule("create", "", "serviceaccounts/token"),
    _rule(WRITE, APPS, "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale "
          "statefulsets statefulsets/scale"),
    _rule(WRITE, "autoscaling", "horizontalpodautoscalers"),
    _rule(WRITE, BATCH, "cronjobs jobs"),
    _rule(WRITE, "extensions", "daemonsets deployments deployments/rollback deployments/scale ingresses "
          "networkpolicies replicasets replicasets/scale replicationcontrollers/scale"),
    _rule(WRITE, "policy", "poddisruptionbudgets"),
    _rule(WRITE, "networking.k8s.io", "ingresses networkpolicies"),
    _rule(READ_WRITE, "coordination.k8s.io", "leases"),
)  # fmt: skip

ADMIN = (
    _rule("create", "authorization.k8s.io", "localsubjectaccessreviews"),
    _rule(READ_WRITE, RBAC_GROUP, "rolebindings roles"),
)

_ROLES: tuple[tuple[str, Sequence[Object], str, str], ...] = (
    # name, rules, the role that takes them over, the label's role whose rules it takes over: what the controller
    # `clusterrole-aggregation` would make of it, so that it has nothing to do.
    ("cluster-admin", FULL_AUTHORITY, "", ""),
    ("admin", (*EDIT, *VIEW, *ADMIN), "", "admin"),
    ("edit", (*EDIT, *VIEW), "admin", "edit"),
    ("view", VIEW, "edit", "view"),
    ("system:aggregate-to-admin", ADMIN, "admin", ""),
    ("system:aggregate-to-edit", EDIT, "edit", ""),
    ("system:aggregate-to-view", VIEW, "view", ""),
    ("system:auth-delegator", (
        _rule("create", "authentication.k8s.io", "tokenreviews"),
        _rule("create", "authorization.k8s.io", "subjectaccessreviews"),
    ), "", ""),
    ("system:basic-user", (
        _rule("create", "authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews"),
        _rule("create", "authentication.k8s.io", "selfsubjectreviews"),
    ), "", ""),
    ("system:discovery", (
        _paths("/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/"),
    ), "", ""),
    ("system:public-info-viewer", (_paths("/healthz /livez /readyz /version /version/"),), "", ""),
    ("system:service-account-issuer-discovery", (
        _paths("/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/"),
    ), "", ""),
)  # fmt: skip

_BINDINGS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("cluster-admin", (MASTERS,)),
    ("system:basic-user", (ALL_AUTHENTICATED,)),
    ("system:discovery", (ALL_AUTHENTICATED,)),
    ("system:public-info-viewer", (ALL_AUTHENTICATED, ALL_UNAUTHENTICATED)),
    ("system:service-account-issuer-discovery", ("system:serviceaccounts",)),
)
"""A role and the groups to which the binding of its name gives it."""


def default_policy() -> Iterator[tuple[Resource, Object]]:
    """The objects, made anew: roles first."""
    for name, rules, into, takes in _ROLES:
        role: Object = {"metadata": _meta(name)}
        if into:
            role["metadata"]["labels"][AGGREGATE + into] = "true"
        role["rules"] = list(rules)
        if takes:
            role["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {AGGREGATE + takes: "true"}}]}
        yield CLUSTERROLES, role
    for name, groups in _BINDINGS:
        yield (
            CLUSTERROLEBINDINGS,
            {
                "metadata": _meta(name),
                "roleRef": {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": name},
                "subjects": [{"apiGroup": RBAC_GROUP, "kind": "Group", "name": group} for group in groups],
            },
        )


def _meta(name: str) -> Object:
    return {
        "name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    }
