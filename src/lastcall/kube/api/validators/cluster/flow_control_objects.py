"""The flow control objects whose specs nobody may change, and those that every cluster is given at its start.

Source: apiserver pkg/apis/flowcontrol/bootstrap/default.go.
"""

from typing import Any

from lastcall.kube.api.meta import Object

_EVERYBODY = [
    {"kind": "Group", "group": {"name": "system:unauthenticated"}},
    {"kind": "Group", "group": {"name": "system:authenticated"}},
]
_EVERYWHERE: dict[str, Any] = {
    "verbs": ["*"],
    "apiGroups": ["*"],
    "resources": ["*"],
    "clusterScope": True,
    "namespaces": ["*"],
}
_EVERY_PATH = {"verbs": ["*"], "nonResourceURLs": ["*"]}
_KUBE_SYSTEM = {"kind": "ServiceAccount", "serviceAccount": {"name": "*", "namespace": "kube-system"}}
_LEASES: dict[str, Any] = {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "namespaces": ["*"]}


def _user(name: str) -> Object:
    return {"kind": "User", "user": {"name": name}}


def _group(name: str) -> Object:
    return {"kind": "Group", "group": {"name": name}}


def _schema(
    level: str,
    precedence: int,
    method: str,
    subjects: list[Object],
    resources: list[Object] | None = None,
    paths: list[Object] | None = None,
) -> Object:
    rule: Object = {"subjects": subjects}
    everything = resources is None and paths is None
    rule |= {"resourceRules": [_EVERYWHERE] if everything else resources} if everything or resources else {}
    rule |= {"nonResourceRules": [_EVERY_PATH] if everything else paths} if everything or paths else {}
    spec: Object = {"priorityLevelConfiguration": {"name": level}, "matchingPrecedence": precedence}
    return {**spec, **({"distinguisherMethod": {"type": method}} if method else {}), "rules": [rule]}


def _limited(shares: int, lendable: int, queues: int = 0, hand: int = 0) -> Object:
    response: Object = {"type": "Reject"}
    if queues:
        response = {"type": "Queue", "queuing": {"queues": queues, "handSize": hand, "queueLengthLimit": 50}}
    part = {"nominalConcurrencyShares": shares, "limitResponse": response, "lendablePercent": lendable}
    return {"type": "Limited", "limited": part}


FIXED_LEVELS: dict[str, Object] = {
    "exempt": {"type": "Exempt", "exempt": {"nominalConcurrencyShares": 0, "lendablePercent": 0}},
    "catch-all": _limited(5, 0),
}
FIXED_SCHEMAS: dict[str, Object] = {
    "exempt": _schema("exempt", 1, "", [_group("system:masters")]),
    "catch-all": _schema("catch-all", 10000, "ByUser", _EVERYBODY),
}

LEVELS: dict[str, Object] = {
    **FIXED_LEVELS,
    "system": _limited(30, 33, 64, 6),
    "node-high": _limited(40, 25, 64, 6),
    "leader-election": _limited(10, 0, 16, 4),
    "workload-high": _limited(40, 50, 128, 6),
    "workload-low": _limited(100, 90, 128, 6),
    "global-default": _limited(20, 50, 128, 6),
}
_NODES = [{**_EVERYWHERE, "apiGroups": [""], "resources": ["nodes", "nodes/status"]}, {"verbs": ["*"], **_LEASES}]
_MANAGER, _SCHEDULER = _user("system:kube-controller-manager"), _user("system:kube-scheduler")
_PROBED = [{"verbs": ["get"], "nonResourceURLs": ["/healthz", "/readyz", "/livez"]}]
SCHEMAS: dict[str, Object] = {
    **FIXED_SCHEMAS,
    "system-nodes": _schema("system", 500, "ByUser", [_group("system:nodes")]),
    "system-node-high": _schema("node-high", 400, "ByUser", [_group("system:nodes")], _NODES),
    "system-leader-election": _schema(
        "leader-election",
        100,
        "ByUser",
        [_MANAGER, _SCHEDULER, _KUBE_SYSTEM],
        [{"verbs": ["get", "create", "update"], **_LEASES}],
    ),
    "kube-controller-manager": _schema("workload-high", 800, "ByNamespace", [_MANAGER]),
    "kube-scheduler": _schema("workload-high", 800, "ByNamespace", [_SCHEDULER]),
    "kube-system-service-accounts": _schema("workload-high", 900, "ByNamespace", [_KUBE_SYSTEM]),
    "service-accounts": _schema("workload-low", 9000, "ByUser", [_group("system:serviceaccounts")]),
    "global-default": _schema("global-default", 9900, "ByUser", _EVERYBODY),
    "probes": _schema("exempt", 2, "", _EVERYBODY, paths=_PROBED),
}
