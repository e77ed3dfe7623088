"""The roles and bindings that every cluster has: those that users bind, and what everybody may.

Of the roles of Kubernetes's own components those are here that somebody has: nodes' service proxies and DNS servers
(CoreDNS's as kubeadm gives it), and `system:node`, which Kubernetes binds to nobody: nodes have an authorizer of their
own (`node_rules.py`). Controllers and scheduler may everything.

Source: plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go.
"""

from collections.abc import Iterator, Sequence

from lastcall.api.meta import Object
from lastcall.api.resources import CLUSTERROLEBINDINGS, CLUSTERROLES, ROLEBINDINGS, ROLES, Resource
from lastcall.apiserver.auth.authentication import ALL_AUTHENTICATED, ALL_UNAUTHENTICATED, MASTERS
from lastcall.apiserver.auth.rbac import FULL_AUTHORITY, RBAC_GROUP

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


_EVENTS = {**_rule("create patch update", "", "events"), "apiGroups": ["", "events.k8s.io"]}

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

METRICS = _rule(READ, "metrics.k8s.io", "nodes pods")
"""As the manifest of metrics-server gives it to `view`, `edit` and `admin`."""

NODE = (
    _rule("create", "authentication.k8s.io", "tokenreviews"),
    _rule("create", "authorization.k8s.io", "localsubjectaccessreviews subjectaccessreviews"),
    _rule(READ, "", "services"),
    _rule("create get list watch", "", "nodes"),
    _rule("patch update", "", "nodes/status"),
    _rule("patch update", "", "nodes"),
    _EVENTS,
    _rule(READ, "", "pods"),
    _rule("create delete", "", "pods"),
    _rule("patch update", "", "pods/status"),
    _rule("create", "", "pods/eviction"),
    _rule(READ, "", "configmaps secrets"),
    _rule("get", "", "persistentvolumeclaims persistentvolumes"),
    _rule("get", "", "endpoints"),
    _rule("create get list watch", "certificates.k8s.io", "certificatesigningrequests"),
    _rule("create delete get patch update", "coordination.k8s.io", "leases"),
    _rule("get", "storage.k8s.io", "volumeattachments"),
    _rule("create", "", "serviceaccounts/token"),
    _rule("get patch update", "", "persistentvolumeclaims/status"),
    _rule(READ, "storage.k8s.io", "csidrivers"),
    _rule("create delete get patch update", "storage.k8s.io", "csinodes"),
    _rule(READ, "node.k8s.io", "runtimeclasses"),
    _rule("get", "resource.k8s.io", "resourceclaims"),
    _rule("deletecollection", "resource.k8s.io", "resourceslices"),
    _rule("get", "", "serviceaccounts"),
)

NODE_PROXIER = (
    _rule("list watch", "", "endpoints services"),
    _rule(READ, "", "nodes"),
    _EVENTS,
    _rule("list watch", "networking.k8s.io", "servicecidrs"),
    _rule("list watch", "discovery.k8s.io", "endpointslices"),
)

COREDNS = (
    _rule("list watch", "", "endpoints services pods namespaces"),
    _rule("list watch", "discovery.k8s.io", "endpointslices"),
)

NETWORK_POLICIES = (
    _rule("list watch", "", "namespaces pods"),
    _rule("list watch", "networking.k8s.io", "networkpolicies"),
)
"""As the manifest of kube-network-policies has it."""

_ROLES: tuple[tuple[str, Sequence[Object], str, str], ...] = (
    # name, rules, the roles that take them over, the label's role whose rules it takes over: what the controller
    # `clusterrole-aggregation` would make of it, so that it has nothing to do.
    ("cluster-admin", FULL_AUTHORITY, "", ""),
    ("admin", (*EDIT, METRICS, *VIEW, *ADMIN), "", "admin"),
    ("edit", (*EDIT, METRICS, *VIEW), "admin", "edit"),
    ("view", (*VIEW, METRICS), "edit", "view"),
    ("system:aggregate-to-admin", ADMIN, "admin", ""),
    ("system:aggregate-to-edit", EDIT, "edit", ""),
    ("system:aggregate-to-view", VIEW, "view", ""),
    ("system:aggregated-metrics-reader", (METRICS,), "admin edit view", ""),
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
    ("system:node", NODE, "", ""),
    ("system:node-proxier", NODE_PROXIER, "", ""),
    ("system:coredns", COREDNS, "", ""),
    ("kube-network-policies", NETWORK_POLICIES, "", ""),
    ("system:monitoring", (
        _paths("/flagz /healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/* /statusz"),
        _rule("get", "", "nodes/metrics"),
    ), "", ""),
    ("system:public-info-viewer", (_paths("/healthz /livez /readyz /version /version/"),), "", ""),
    ("system:service-account-issuer-discovery", (
        _paths("/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/"),
    ), "", ""),
)  # fmt: skip

KUBE_PROXY = "system:kube-proxy"
COREDNS_NAMESPACE, COREDNS_NAME = "kube-system", "coredns"
POLICIES_NAME = "kube-network-policies"


def _groups(*names: str) -> list[Object]:
    return [{"apiGroup": RBAC_GROUP, "kind": "Group", "name": name} for name in names]


_BINDINGS: tuple[tuple[str, list[Object]], ...] = (
    ("cluster-admin", _groups(MASTERS)),
    ("system:basic-user", _groups(ALL_AUTHENTICATED)),
    ("system:discovery", _groups(ALL_AUTHENTICATED)),
    ("system:node", []),
    ("system:node-proxier", [{"apiGroup": RBAC_GROUP, "kind": "User", "name": KUBE_PROXY}]),
    ("system:coredns", [{"kind": "ServiceAccount", "name": COREDNS_NAME, "namespace": COREDNS_NAMESPACE}]),
    (POLICIES_NAME, [{"kind": "ServiceAccount", "name": POLICIES_NAME, "namespace": COREDNS_NAMESPACE}]),
    ("system:monitoring", _groups("system:monitoring")),
    ("system:public-info-viewer", _groups(ALL_AUTHENTICATED, ALL_UNAUTHENTICATED)),
    ("system:service-account-issuer-discovery", _groups("system:serviceaccounts")),
)
"""A role and to whom the binding of its name gives it."""

READER, READER_NAMESPACE = "extension-apiserver-authentication-reader", "kube-system"
_READERS = ("system:kube-controller-manager", "system:kube-scheduler")


def default_policy() -> Iterator[tuple[Resource, Object]]:
    """The objects, made anew: roles first."""
    for name, rules, into, takes in _ROLES:
        role: Object = {"metadata": _meta(name)}
        for each in into.split():
            role["metadata"]["labels"][AGGREGATE + each] = "true"
        role["rules"] = list(rules)
        if takes:
            role["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {AGGREGATE + takes: "true"}}]}
        yield CLUSTERROLES, role
    for name, subjects in _BINDINGS:
        reference = {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": name}
        binding: Object = {"metadata": _meta(name), "roleRef": reference}
        if subjects:
            binding["subjects"] = [dict(subject) for subject in subjects]
        yield CLUSTERROLEBINDINGS, binding
    may_read = {**_rule(READ, "", "configmaps"), "resourceNames": ["extension-apiserver-authentication"]}
    yield ROLES, {"metadata": {**_meta(READER), "namespace": READER_NAMESPACE}, "rules": [may_read]}
    reference = {"apiGroup": RBAC_GROUP, "kind": "Role", "name": READER}
    subjects = [{"apiGroup": RBAC_GROUP, "kind": "User", "name": name} for name in _READERS]
    meta = {**_meta(f"system::{READER}"), "namespace": READER_NAMESPACE}
    yield ROLEBINDINGS, {"metadata": meta, "roleRef": reference, "subjects": subjects}


def _meta(name: str) -> Object:
    return {
        "name": name,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    }
