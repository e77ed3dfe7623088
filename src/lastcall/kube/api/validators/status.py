"""The status that controllers write: counts that fit each other, addresses of load balancers.

Sources: pkg/apis/apps/validation/validation.go (ValidateDeploymentStatus and its likes), pkg/apis/core/validation
(ValidateLoadBalancerStatus), pkg/apis/networking/validation.
"""

from collections.abc import Sequence

from lastcall.kube.api.field import FieldError, each, forbidden, invalid, not_supported, required
from lastcall.kube.api.meta import Object
from lastcall.kube.api.names import is_dns1123_subdomain, is_ip, is_strict_ip
from lastcall.kube.api.validators.common import non_negative
from lastcall.kube.api.validators.kind_rules import UpdateRule

_AVAILABLE = "availableReplicas"


def _counts(names: Sequence[str], at_most_replicas: Sequence[str], ready: str) -> UpdateRule:
    """`names` are not negative, `at_most_replicas` no more than replicas, and what is available was ready before."""

    def check(new: Object, old: Object) -> list[FieldError]:
        status, stored = new.get("status") or {}, old.get("status") or {}
        errors = [error for name in names for error in non_negative(status.get(name), f"status.{name}")]
        for name in at_most_replicas:
            if (count := status.get(name) or 0) > (status.get("replicas") or 0):
                errors.append(invalid(f"status.{name}", count, "cannot be greater than status.replicas"))
        if ready and (count := status.get(_AVAILABLE) or 0) > (status.get("readyReplicas") or 0):
            errors.append(invalid(f"status.{_AVAILABLE}", count, f"cannot be greater than {ready}"))
        had, has = stored.get("collisionCount"), status.get("collisionCount")
        if "collisionCount" in names and had is not None and (has is None or has < had):
            errors.append(invalid("status.collisionCount", has or 0, "cannot be decremented"))
        return errors

    return check


deployment_status = _counts(
    ("observedGeneration", "replicas", "updatedReplicas", "readyReplicas", _AVAILABLE, "unavailableReplicas",
     "terminatingReplicas", "collisionCount"),
    ("updatedReplicas", "readyReplicas", _AVAILABLE), "readyReplicas",
)  # fmt: skip
replica_set_status = _counts(
    ("replicas", "fullyLabeledReplicas", "readyReplicas", _AVAILABLE, "observedGeneration", "terminatingReplicas"),
    ("fullyLabeledReplicas", "readyReplicas", _AVAILABLE), "readyReplicas",
)  # fmt: skip
replication_controller_status = _counts(
    ("replicas", "fullyLabeledReplicas", "readyReplicas", _AVAILABLE, "observedGeneration"),
    ("fullyLabeledReplicas", "readyReplicas", _AVAILABLE), "readyReplicas",
)  # fmt: skip
stateful_set_status = _counts(
    ("replicas", "readyReplicas", "currentReplicas", "updatedReplicas", _AVAILABLE, "observedGeneration",
     "collisionCount"),
    ("readyReplicas", "currentReplicas", "updatedReplicas", _AVAILABLE), "status.readyReplicas",
)  # fmt: skip
daemon_set_status = _counts(
    ("currentNumberScheduled", "numberMisscheduled", "desiredNumberScheduled", "numberReady", "observedGeneration",
     "updatedNumberScheduled", "numberAvailable", "numberUnavailable", "collisionCount"),
    (), "",
)  # fmt: skip


def autoscaler_status(new: Object, old: Object) -> list[FieldError]:
    """Check an update of a HorizontalPodAutoscaler's status. (`ValidateHorizontalPodAutoscalerStatusUpdate`)"""
    status = new.get("status") or {}
    return [
        error
        for name in ("currentReplicas", "desiredReplicas")
        for error in non_negative(status.get(name), f"status.{name}")
    ]


def service_status(new: Object, old: Object) -> list[FieldError]:
    """Check an update of a Service's status. (`ValidateServiceStatusUpdate`)"""
    ingresses, path = _ingresses(new), "status.loadBalancer.ingress"
    if (new.get("spec") or {}).get("type") != "LoadBalancer":
        return [forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")] if ingresses else []
    errors: list[FieldError] = []
    for index, ingress in enumerate(ingresses):
        address, mode, at = ingress.get("ip") or "", ingress.get("ipMode"), f"{path}[{index}]"
        errors += each(f"{at}.ip", address, is_strict_ip(address)) if address else []
        if address and mode is None:
            errors.append(required(f"{at}.ipMode", "must be specified when `ip` is set"))
        elif mode is not None and not address:
            errors.append(forbidden(f"{at}.ipMode", "may not be specified when `ip` is not set"))
        elif mode is not None and mode not in ("Proxy", "VIP"):
            errors.append(not_supported(f"{at}.ipMode", mode, ("Proxy", "VIP")))
        errors += _hostname(ingress.get("hostname") or "", f"{at}.hostname")
    return errors


def ingress_status(new: Object, old: Object) -> list[FieldError]:
    """Check an update of an Ingress's status. (`ValidateIngressStatusUpdate`)"""
    errors: list[FieldError] = []
    for index, ingress in enumerate(_ingresses(new)):
        address, at = ingress.get("ip") or "", f"status.loadBalancer.ingress[{index}]"
        errors += each(f"{at}.ip", address, is_strict_ip(address)) if address else []
        errors += _hostname(ingress.get("hostname") or "", f"{at}.hostname")
    return errors


def _ingresses(obj: Object) -> Sequence[Object]:
    found: Sequence[Object] = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
    return found


def _hostname(name: str, path: str) -> list[FieldError]:
    if not name:
        return []
    errors = each(path, name, is_dns1123_subdomain(name))
    return errors if is_ip(name) else [*errors, invalid(path, name, "must be a DNS name, not an IP address")]
