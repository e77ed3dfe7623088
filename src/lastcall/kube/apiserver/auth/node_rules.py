"""What a node may do: fixed rules, and objects that its Pods need. Pure.

Sources: plugin/pkg/auth/authorizer/node/node_authorizer.go (1.36), bootstrappolicy/policy.go:NodeRules. The texts are
those of a real 1.36.2 (tests/unit/kube/apiserver/auth/test_nodes_as_recorded.py).
"""

# check: pure

from collections.abc import Callable
from typing import NamedTuple

from lastcall.kube.api.field import go_quote
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.auth.rbac import rule_allows
from lastcall.kube.apiserver.requestinfo import RequestInfo


class Related(NamedTuple):
    """Allowed if the object belongs to the node: `resource` is `secrets`, `persistentvolumes` …"""

    resource: str
    namespace: str
    name: str


Why = str | Related | None
"""None: allowed. A text: nothing allows it, and why ("" says nothing)."""

LEASE_NAMESPACE = "kube-node-lease"
ONE_LEASE = "can only access node lease with the same name as the requesting node"
ONE_CSINODE = "can only access CSINode with the same name as the requesting node"
LEASES_ONLY_THERE = f'can only access leases in the "{LEASE_NAMESPACE}" system namespace'


def not_related(node: str) -> str:
    return f"no relationship found between node '{node}' and this object"


def decide_node(node: str, user: UserInfo, request: RequestInfo) -> Why:
    """Decide whether `node`, which is `user`, may do this."""
    if not node:
        return f"unknown node for user {go_quote(user.name)}"
    if request.is_resource_request:
        decide = _DIVIDED.get((request.group, request.resource))
        if decide is not None:
            return decide(node, request)
    return None if any(rule_allows(rule, request) for rule in _RULES) else ""


def _related(request: RequestInfo) -> Why:
    if not request.name:
        return "No Object name found"
    return Related(request.resource, request.namespace, request.name)


def _get(node: str, request: RequestInfo) -> Why:
    if request.verb != "get":
        return "can only get individual resources of this type"
    return "cannot get subresource" if request.subresource else _related(request)


def _read(node: str, request: RequestInfo) -> Why:
    if request.verb not in ("get", "list", "watch"):
        return "can only read resources of this type"
    if request.subresource:
        return "cannot read subresource"
    return _related(request) if request.namespace else "can only read namespaced object of this type"


def _claim(node: str, request: RequestInfo) -> Why:
    if request.subresource != "status":
        return _get(node, request)
    return _related(request) if request.verb in ("update", "patch") else "can only get/update/patch this type"


def _account(node: str, request: RequestInfo) -> Why:
    if request.verb == "get" and not request.subresource:
        return _read(node, request)
    if request.verb != "create" or not request.name:
        return "can only create tokens for individual service accounts"
    if request.subresource != "token":
        return "can only create token subresource of serviceaccount"
    return Related(request.resource, request.namespace, request.name)


def _lease(node: str, request: RequestInfo) -> Why:
    if request.verb not in ("get", "create", "update", "patch", "delete"):
        return "can only get, create, update, patch, or delete a node lease"
    if request.namespace != LEASE_NAMESPACE:
        return LEASES_ONLY_THERE
    # The name of what is created is looked at by NodeRestriction.
    return None if request.verb == "create" or request.name == node else ONE_LEASE


def _csi_node(node: str, request: RequestInfo) -> Why:
    if request.verb not in ("get", "create", "update", "patch", "delete"):
        return "can only get, create, update, patch, or delete a CSINode"
    if request.subresource:
        return "cannot authorize CSINode subresources"
    return None if request.verb == "create" or request.name == node else ONE_CSINODE


def _slice(node: str, request: RequestInfo) -> Why:
    if request.subresource:
        return "cannot authorize ResourceSlice subresources"
    if request.verb == "create":
        return None
    if request.verb in ("get", "update", "patch", "delete"):
        return _related(request)
    if request.verb in ("watch", "list", "deletecollection"):
        if request.selects("spec.nodeName", node):
            return None
        return "can only list/watch/deletecollection resourceslices with nodeName field selector"
    return (
        "only the following verbs are allowed for a ResourceSlice: get, watch, list, create, update, patch, delete, "
        "deletecollection"
    )


def _node(node: str, request: RequestInfo) -> Why:
    """Whose Node is written is looked at by NodeRestriction."""
    verb = request.verb
    if not request.subresource:
        if verb in ("create", "update", "patch"):
            return None
        if verb in ("get", "list", "watch"):
            if request.name == node:
                return None
            if not request.name:
                return f"node '{node}' cannot read all nodes, only its own Node object"
            return f"node '{node}' cannot read '{request.name}', only its own Node object"
    return None if request.subresource == "status" and verb in ("update", "patch") else ""


def _pod(node: str, request: RequestInfo) -> Why:
    """Whose Pod is written is looked at by NodeRestriction."""
    verb = request.verb
    if not request.subresource:
        if verb == "get":
            return _get(node, request)
        if verb in ("list", "watch"):
            if request.selects("spec.nodeName", node):
                return None
            if request.name:
                return _related(request)
            return "can only list/watch pods with spec.nodeName field selector"
        return None if verb in ("create", "delete") else ""
    if request.subresource == "status":
        return None if verb in ("update", "patch") else ""
    return None if request.subresource == "eviction" and verb == "create" else ""


_DIVIDED: dict[tuple[str, str], Callable[[str, RequestInfo], Why]] = {
    ("", "secrets"): _read,
    ("", "configmaps"): _read,
    ("", "persistentvolumeclaims"): _claim,
    ("", "persistentvolumes"): _get,
    ("", "serviceaccounts"): _account,
    ("", "nodes"): _node,
    ("", "pods"): _pod,
    ("coordination.k8s.io", "leases"): _lease,
    ("storage.k8s.io", "csinodes"): _csi_node,
    ("storage.k8s.io", "volumeattachments"): _get,
    ("resource.k8s.io", "resourceclaims"): _get,
    ("resource.k8s.io", "resourceslices"): _slice,
}

_RULES = (
    {"verbs": ["create"], "apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"]},
    {
        "verbs": ["create"],
        "apiGroups": ["authorization.k8s.io"],
        "resources": ["subjectaccessreviews", "localsubjectaccessreviews"],
    },
    {"verbs": ["create", "patch", "update"], "apiGroups": ["", "events.k8s.io"], "resources": ["events"]},
    {"verbs": ["get", "list", "watch"], "apiGroups": [""], "resources": ["services"]},
    {"verbs": ["get"], "apiGroups": [""], "resources": ["endpoints"]},
    {"verbs": ["get", "list", "watch"], "apiGroups": ["storage.k8s.io"], "resources": ["csidrivers"]},
    {"verbs": ["get", "list", "watch"], "apiGroups": ["node.k8s.io"], "resources": ["runtimeclasses"]},
    {
        "verbs": ["create", "get", "list", "watch"],
        "apiGroups": ["certificates.k8s.io"],
        "resources": ["certificatesigningrequests"],
    },
)
"""What every node may alike (NodeRules, without what is divided above)."""
