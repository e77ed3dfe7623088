"""What ResourceQuotas count: which of their resources an object concerns, and how much of each it uses. Pure.

Sources: pkg/quota/v1/evaluator/core/{pods,services,persistent_volume_claims,registry}.go,
apiserver pkg/quota/v1/generic/evaluator.go, pkg/quota/v1/install/{registry,update_filter}.go.
"""

# check: pure

from collections.abc import Iterable, Mapping
from datetime import datetime
from fractions import Fraction
from typing import Any

from lastcall.kube.api.claims import class_of
from lastcall.kube.api.meta import Object
from lastcall.kube.api.names import is_qualified_name
from lastcall.kube.api.pods.spec import is_pod_terminal
from lastcall.kube.api.quantity import Quantity, parse_quantity
from lastcall.kube.api.quota.scopes import is_terminating_scope, matches_scopes
from lastcall.kube.api.resource_lists import ONE, ZERO, Resources, has_pod_level, parse, pod_limits, pod_requests
from lastcall.kube.api.resources import PERSISTENTVOLUMECLAIMS, PODS, SERVICES, Resource
from lastcall.kube.api.text.times import later, parse_rfc3339

COMPUTE = ("cpu", "memory", "ephemeral-storage")
POD_RESOURCES = frozenset(
    ("pods", "count/pods", *COMPUTE, *(f"{kind}.{name}" for kind in ("requests", "limits") for name in COMPUTE))
)
MUST_BE_SPECIFIED = frozenset(f"{kind}{name}" for kind in ("", "requests.", "limits.") for name in ("cpu", "memory"))
"""Whose quota wants every container to say them. (`validationSet`)"""
SERVICE_RESOURCES = frozenset(("count/services", "services", "services.nodeports", "services.loadbalancers"))
CLAIM_RESOURCES = ("persistentvolumeclaims", "requests.storage")
CLASS_SUFFIX = ".storageclass.storage.k8s.io/"
_OWN_NAME = ("configmaps", "replicationcontrollers", "resourcequotas", "secrets")
"""Kinds of the core group that may be counted by their plain name too. (`legacyObjectCountAliases`)"""
IGNORED = (("", "events"), ("events.k8s.io", "events"))


def count_name(resource: Resource) -> str:
    """Return `count/deployments.apps`. (`ObjectCountQuotaResourceNameFor`)"""
    return f"count/{resource.plural}.{resource.group}" if resource.group else f"count/{resource.plural}"


def is_native(name: str) -> bool:
    return "/" not in name or "kubernetes.io/" in name


def is_extended(name: str) -> bool:
    """Return True if a name is that of an extended resource. (`IsExtendedResourceName`)"""
    return not (is_native(name) or name.startswith("requests.") or is_qualified_name(f"requests.{name}"))


def concerns(resource: Resource, name: str) -> bool:
    """Return whether objects of this kind use the quota's resource `name`. (`MatchingResources`)"""
    if resource == PODS:
        if name in POD_RESOURCES or name.startswith(("hugepages-", "requests.hugepages-")):
            return True
        return name.startswith("requests.") and not is_native(name)
    if resource == SERVICES:
        return name in SERVICE_RESOURCES
    if resource == PERSISTENTVOLUMECLAIMS:
        if name == "count/persistentvolumeclaims" or name in CLAIM_RESOURCES:
            return True
        return name.endswith(tuple(f"{CLASS_SUFFIX}{each}" for each in CLAIM_RESOURCES))
    if not resource.group and resource.plural in _OWN_NAME and name == resource.plural:
        return True
    return name.startswith("count/") and name == count_name(resource)


def concerned(resource: Resource, names: Iterable[str]) -> list[str]:
    """Return, in order, the quota's resources that objects of this kind use."""
    return sorted(name for name in names if concerns(resource, name))


def matches(quota: Object, resource: Resource, obj: Object) -> bool:
    """Return whether the object counts for the quota: by a limit of its status, and by all its scopes. (`Matches`)"""
    hard = (quota.get("status") or {}).get("hard") or {}
    return any(concerns(resource, name) for name in hard) and in_scope(quota, resource, obj)


def in_scope(quota: Object, resource: Resource, obj: Object) -> bool:
    """Return True if the object is in the scope; only Pods can be."""
    spec = quota.get("spec") or {}
    if not spec.get("scopes") and not spec.get("scopeSelector"):
        return True
    return resource == PODS and matches_scopes(spec, obj)


def usage(resource: Resource, obj: Object, now: datetime) -> Resources:
    """Return what one object uses of everything that could be limited. (`Usage`)"""
    if resource == PODS:
        return pod_usage(obj, now)
    if resource == SERVICES:
        return service_usage(obj)
    if resource == PERSISTENTVOLUMECLAIMS:
        return claim_usage(obj)
    found = {count_name(resource): ONE}
    if not resource.group and resource.plural in _OWN_NAME:
        found[resource.plural] = ONE
    return found


def pod_usage(pod: Object, now: datetime) -> Resources:
    """Return what a Pod uses of a quota. (`PodUsageFunc`)"""
    found: Resources = {"count/pods": ONE}
    if pod_counts(pod, now):
        found |= _compute_usage(pod_requests(pod["spec"]), pod_limits(pod["spec"]))
    return found


def pod_counts(pod: Object, now: datetime) -> bool:
    """Return False for a Pod that has ended, or is long overdue to, as when its node is lost. (`QuotaV1Pod`)"""
    if is_pod_terminal(pod):
        return False
    meta = pod["metadata"]
    deleted, grace = meta.get("deletionTimestamp"), meta.get("deletionGracePeriodSeconds")
    return deleted is None or grace is None or now <= later(parse_rfc3339(deleted), grace)


def _compute_usage(requests: Resources, limits: Resources) -> Resources:
    """(`podComputeUsageHelper`)"""
    found: Resources = {"pods": ONE}
    for name in COMPUTE:
        if name in requests:
            found[name] = found[f"requests.{name}"] = requests[name]
        if name in limits:
            found[f"limits.{name}"] = limits[name]
    for name, amount in requests.items():
        if name.startswith("hugepages-"):
            found[name] = found[f"requests.{name}"] = amount
        elif is_extended(name):
            found[f"requests.{name}"] = amount
    return found


def service_usage(service: Object) -> Resources:
    spec = service.get("spec") or {}
    ports, type_ = spec.get("ports") or [], spec.get("type")
    node_ports = len(ports) if type_ in ("NodePort", "LoadBalancer") else 0
    if type_ == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is False:
        node_ports = sum(bool(port.get("nodePort")) for port in ports)
    balancers = ONE if type_ == "LoadBalancer" else ZERO
    return {
        "count/services": ONE,
        "services": ONE,
        "services.nodeports": Quantity(Fraction(node_ports)),
        "services.loadbalancers": balancers,
    }


def claim_usage(claim: Object) -> Resources:
    found: Resources = {"persistentvolumeclaims": ONE, "count/persistentvolumeclaims": ONE}
    storage_class, size = class_of(claim), _claimed(claim)
    prefix = f"{storage_class}{CLASS_SUFFIX}"
    if storage_class:
        found[f"{prefix}persistentvolumeclaims"] = ONE
    if size is not None:
        found["requests.storage"] = size
        if storage_class:
            found[f"{prefix}requests.storage"] = size
    return found


def _claimed(claim: Object) -> Quantity | None:
    """Whole bytes; what the volume was given where that is more. (`getStorageUsage`)"""
    asked = ((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage")
    if asked is None:
        return None
    size = parse_quantity(asked)
    allocated = ((claim.get("status") or {}).get("allocatedResources") or {}).get("storage")
    if allocated is not None and size < parse_quantity(allocated):
        size = parse_quantity(allocated)
    return Quantity(Fraction(size.whole), size.format)


def unspecified(pod: Object, names: Iterable[str]) -> str:
    """Return `must specify cpu for: a,b; memory for: b`: what a quota of these names wants said, or "". (`Constraints`)

    Resources of the Pod as a whole say it for all of its containers.
    """
    wanted = sorted(MUST_BE_SPECIFIED.intersection(names))
    spec = pod["spec"]
    if not wanted or has_pod_level(spec):
        return ""
    missing: dict[str, list[str]] = {}
    for container in (*(spec.get("containers") or ()), *(spec.get("initContainers") or ())):
        resources = container.get("resources") or {}
        said = _compute_usage(parse(resources.get("requests")), parse(resources.get("limits")))
        for name in wanted:
            if name not in said:
                missing.setdefault(name, []).append(container["name"])
    if not missing:
        return ""
    return "must specify " + "; ".join(f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing))


def handles(resource: Resource, new: Object, old: Object | None, subresource: str = "") -> bool:
    """Return whether admission has to check a write; `old` is None at a creation. (`Handles`)"""
    if old is None:
        return (resource.group, resource.plural) not in IGNORED
    if resource == PODS:
        if subresource == "resize":
            return True
        return is_terminating_scope(new) != is_terminating_scope(old)
    return resource in (SERVICES, PERSISTENTVOLUMECLAIMS)


def gives_back(resource: Resource, old: Object, new: Object, now: datetime) -> bool:
    """Return whether an update frees something, so that it has to be counted again. (`DefaultUpdateFilter`)"""
    if resource == PODS:
        return pod_counts(old, now) and not pod_counts(new, now)
    if resource == SERVICES:
        return _counted_type(old) != _counted_type(new)
    if resource == PERSISTENTVOLUMECLAIMS:
        return bool(_allocated(old) != _allocated(new))
    return False


def _counted_type(service: Object) -> str:
    type_ = (service.get("spec") or {}).get("type")
    return str(type_) if type_ in ("NodePort", "LoadBalancer") else ""


def _allocated(claim: Object) -> Mapping[str, Any] | None:
    return (claim.get("status") or {}).get("allocatedResources")
