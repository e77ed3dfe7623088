"""The APIServices of what this server answers itself, and the order in which discovery lists groups. Pure.

Sources: pkg/controlplane/apiserver/aggregator.go (DefaultGenericAPIServicePriorities and the control plane's own),
pkg/controlplane/controller/crdregistration, kube-aggregator pkg/controllers/autoregister, apimachinery
pkg/version/helpers.go (CompareKubeAwareVersionStrings).
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from lastcall.kube.api.meta import Object

AUTOMANAGED = "kube-aggregator.kubernetes.io/automanaged"
ON_START, ALWAYS = "onstart", "true"
AVAILABLE = "Available"
_VERSION = re.compile(r"v([0-9]{1,18})(?:(alpha|beta)([0-9]{1,18}))?")


class Priority(NamedTuple):
    """Groups and versions with higher ones come first."""

    group: int
    version: int


_GROUPS = {
    "": 18000, "apps": 17800, "events.k8s.io": 17750, "authentication.k8s.io": 17700, "authorization.k8s.io": 17600,
    "autoscaling": 17500, "batch": 17400, "certificates.k8s.io": 17300, "networking.k8s.io": 17200, "policy": 17100,
    "rbac.authorization.k8s.io": 17000, "storage.k8s.io": 16800, "admissionregistration.k8s.io": 16700,
    "apiextensions.k8s.io": 16700, "scheduling.k8s.io": 16600, "coordination.k8s.io": 16500, "node.k8s.io": 16300,
    "discovery.k8s.io": 16200, "resource.k8s.io": 16200, "flowcontrol.apiserver.k8s.io": 16100,
    "internal.apiserver.k8s.io": 16000, "storagemigration.k8s.io": 15800, "metrics.k8s.io": 100,
}  # fmt: skip
"""metrics.k8s.io: as in the manifest of metrics-server."""
_VERSIONS = {
    ("", "v1"): 1, ("autoscaling", "v2"): 30, ("flowcontrol.apiserver.k8s.io", "v1"): 21, ("resource.k8s.io", "v1"): 21,
    ("metrics.k8s.io", "v1"): 100, ("metrics.k8s.io", "v1beta1"): 100,
}  # fmt: skip
_OWN = Priority(15000, 15)
_DECLARED = Priority(1000, 100)
"""Of the groups of CustomResourceDefinitions."""


def priority_of(group: str, version: str) -> Priority:
    """Return the priority of a group version that this server answers itself."""
    if group not in _GROUPS:
        return _DECLARED
    return Priority(_GROUPS[group], _VERSIONS.get((group, version), _OWN.version))


def service_name(group: str, version: str) -> str:
    return f"{version}.{group}"


def local_service(group: str, version: str, managed: str) -> Object:
    """Make the APIService of a group version that this server answers itself.

    `managed` is ON_START for Kubernetes's own kinds, ALWAYS for declared ones. What users may replace has no label: a
    metrics server that was applied stays after a restart.
    """
    priority = priority_of(group, version)
    spec: Object = {"group": group} if group else {}
    spec |= {"version": version, "groupPriorityMinimum": priority.group, "versionPriority": priority.version}
    meta: Object = {"name": service_name(group, version)}
    if group != "metrics.k8s.io":
        meta["labels"] = {AUTOMANAGED: managed}
    return {"metadata": meta, "spec": spec}


def local_condition(moment: str) -> Object:
    return {
        "type": AVAILABLE,
        "status": "True",
        "lastTransitionTime": moment,
        "reason": "Local",
        "message": "Local APIServices are always available",
    }


def version_key(version: str) -> tuple[int, int, int, str]:
    """Sort the newest first: v2, v1, v1beta2, v1beta1, v1alpha1, then all others by their text."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return (1, 0, 0, version)
    stage = {None: 0, "beta": 1, "alpha": 2}[found[2]]
    return (0, stage, -int(found[1]) * 10**18 - int(found[3] or 0), version)


def in_order(versions: Iterable[tuple[str, str, Priority]]) -> dict[str, list[str]]:
    """Return group → versions, both in the order of discovery, of (group, version, priority).

    (apiregistration helpers: SortedByGroupAndVersion) `apiregistration.k8s.io` itself is always first.
    """
    groups: dict[str, list[tuple[str, Priority]]] = {}
    for group, version, priority in versions:
        groups.setdefault(group, []).append((version, priority))

    def group_key(group: str) -> tuple[bool, int, str]:
        most = max(priority.group for _, priority in groups[group])
        return (group != "apiregistration.k8s.io", -most, group)

    return {
        group: [name for name, _ in sorted(groups[group], key=lambda each: (-each[1].version, version_key(each[0])))]
        for group in sorted(groups, key=group_key)
    }
