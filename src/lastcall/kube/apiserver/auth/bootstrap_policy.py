"""The roles and bindings that every cluster has: those that users bind, those of Kubernetes's components, and what
everybody may.

Kubernetes's own are facts, and stand in bootstrap_policy.json (`tools/make_policy.py` asks a real cluster for them).
What add-ons bring elsewhere is here: nodes' DNS servers (CoreDNS's role as kubeadm gives it), the metrics that users
read, and NetworkPolicies.

Source: plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go, controller_policy.go, namespace_policy.go.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import orjson

from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import CLUSTERROLEBINDINGS, CLUSTERROLES, ROLEBINDINGS, ROLES, Resource
from lastcall.kube.apiserver.auth.rbac import RBAC_GROUP

AGGREGATE = f"{RBAC_GROUP}/aggregate-to-"
"""Begins the label of roles whose rules another role takes over."""

AUTO_UPDATE = "rbac.authorization.kubernetes.io/autoupdate"
"""The annotation of roles and bindings that get what a newer version of them has (`default_roles.py`)."""

FACTS = Path(__file__).with_name("bootstrap_policy.json")


def _rule(verbs: str, group: str, resources: str) -> Object:
    return {"verbs": verbs.split(), "apiGroups": [group], "resources": resources.split()}


READ = "get list watch"
METRICS = _rule(READ, "metrics.k8s.io", "nodes pods")
"""As the manifest of metrics-server gives it to `view`, `edit` and `admin`."""

COREDNS = (
    _rule("list watch", "", "endpoints services pods namespaces"),
    _rule("list watch", "discovery.k8s.io", "endpointslices"),
)

NETWORK_POLICIES = (
    _rule("list watch", "", "namespaces pods"),
    _rule("list watch", "networking.k8s.io", "networkpolicies"),
    _rule("create patch", "", "events"),
)
"""As the manifest of kube-network-policies has it, and Events on policies and Pods that cannot have their rules."""


def _account(name: str) -> list[Object]:
    return [{"kind": "ServiceAccount", "name": name, "namespace": "kube-system"}]


ADDONS: tuple[Object, ...] = (
    {
        "kind": "ClusterRole",
        "name": "system:aggregated-metrics-reader",
        "aggregateTo": ["admin", "edit", "view"],
        "rules": [METRICS],
    },
    {"kind": "ClusterRole", "name": "system:coredns", "rules": list(COREDNS)},
    {"kind": "ClusterRoleBinding", "name": "system:coredns", "subjects": _account("coredns")},
    {"kind": "ClusterRole", "name": "kube-network-policies", "rules": list(NETWORK_POLICIES)},
    {"kind": "ClusterRoleBinding", "name": "kube-network-policies", "subjects": _account("kube-network-policies")},
)

_OF_COMPONENTS = (
    "system:controller:",
    "system:kube-controller-manager",
    "system:kube-scheduler",
    "system:volume-scheduler",
    "system::leader-locking-",
)

_KINDS: Mapping[str, Resource] = {
    "ClusterRole": CLUSTERROLES,
    "ClusterRoleBinding": CLUSTERROLEBINDINGS,
    "Role": ROLES,
    "RoleBinding": ROLEBINDINGS,
}


def default_policy(components: bool = True) -> Iterator[tuple[Resource, Object]]:
    """Yield the objects, made anew: roles first.

    Without `components` not those of controllers and scheduler, which need none where they run beside the API server.
    """
    entries: list[Object] = [*orjson.loads(FACTS.read_bytes()), *ADDONS]
    if not components:
        entries = [each for each in entries if not each["name"].startswith(_OF_COMPONENTS)]
    roles = [each for each in entries if each["kind"] == "ClusterRole"]
    for each in sorted(entries, key=lambda entry: entry["kind"].endswith("Binding")):
        obj: Object = {"metadata": _meta(each)}
        if each["kind"].endswith("Binding"):
            role = {"kind": each["kind"].removesuffix("Binding"), "name": each.get("role", each["name"])}
            obj["roleRef"] = {"apiGroup": RBAC_GROUP, **role}
            if each["subjects"]:
                obj["subjects"] = each["subjects"]
        elif into := each.get("aggregates"):
            obj["rules"] = taken_over(into, roles)
            obj["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {AGGREGATE + into: "true"}}]}
        else:
            obj["rules"] = each["rules"]
        yield _KINDS[each["kind"]], obj


def taken_over(into: str, roles: Sequence[Object]) -> list[Object]:
    """Return the rules of the role that aggregates others' rules: by name, each rule once.

    It is what the controller `clusterrole-aggregation` makes of it, so that it has nothing to do
    (clusterroleaggregation_controller.go:syncClusterRole).
    """
    rules: list[Object] = []
    for each in sorted(roles, key=lambda role: str(role["name"])):
        if into in each.get("aggregateTo", ()):
            found = taken_over(each["aggregates"], roles) if "aggregates" in each else each["rules"]
            rules += [rule for rule in found if rule not in rules]
    return rules


def _meta(entry: Object) -> Object:
    labels = {"kubernetes.io/bootstrapping": "rbac-defaults"}
    labels |= {AGGREGATE + into: "true" for into in entry.get("aggregateTo", ())}
    namespace = {"namespace": entry["namespace"]} if "namespace" in entry else {}
    return {"name": entry["name"], **namespace, "labels": labels, "annotations": {AUTO_UPDATE: "true"}}
