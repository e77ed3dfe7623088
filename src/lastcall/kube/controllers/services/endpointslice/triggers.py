"""Which Pod changes concern a Service, and when the change that a slice write answers took place.

Source: staging/src/k8s.io/endpointslice util/controller_utils.go:podEndpointsChanged,
GetServicesToUpdateOnPodChange and trigger_time_tracker.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lastcall.kube.api.meta import is_terminating, labels_of, name_of
from lastcall.kube.controllers.services.endpointslice.decide import pod_ips, pod_ready

if TYPE_CHECKING:
    from lastcall.kube.api.types.pod import Pod
    from lastcall.kube.api.types.service import Service


def pod_endpoints_changed(old: Pod, new: Pod) -> bool:
    """Return True when the write from `old` to `new` can change an endpoint.

    A phase alone does not: a Pod that ends by itself stays in its slices until something else happens. Every write to
    a Pod with a deletionTimestamp does (the original compares pointers).
    """
    if is_terminating(old) or is_terminating(new):
        return True
    return pod_ready(old) != pod_ready(new) or pod_ips(old) != pod_ips(new)


def pod_membership_changed(old: Pod, new: Pod) -> bool:
    """Return True when the Pod may have come to other Services: labels, hostname or subdomain differ."""

    def domain(pod: Pod) -> tuple[str, str]:
        spec = pod.get("spec", {})
        return spec.get("hostname") or "", spec.get("subdomain") or ""

    return labels_of(old) != labels_of(new) or domain(old) != domain(new)


def selector_matches(selector: Mapping[str, str] | None, labels: Mapping[str, str]) -> bool:
    """Match a Service's equality selector; an empty one matches nothing."""
    return bool(selector) and all(labels.get(key) == value for key, value in (selector or {}).items())


class TriggerTimeTracker:
    """Remembers, per Service, the last times at which its Pods' Ready conditions changed."""

    def __init__(self) -> None:
        self._services: dict[str, tuple[str, dict[str, str]]] = {}

    def compute(self, key: str, service: Service, pods: Sequence[Pod]) -> str:
        """Return the earliest change not yet answered, RFC 3339; "" when there is none. `key` names the Service.

        RFC 3339 texts in UTC with whole seconds compare like the times they stand for.
        """
        known = self._services.get(key)
        last_service, last_pods = known if known is not None else ("", {})
        changed: list[str] = []
        pod_times: dict[str, str] = {}
        for pod in pods:
            moment = _ready_transition(pod)
            if moment:
                pod_times[name_of(pod)] = moment
                if moment > last_pods.get(name_of(pod), ""):
                    changed.append(moment)
        created = service["metadata"].get("creationTimestamp") or ""
        if created > last_service:
            changed.append(created)
        self._services[key] = (max(created, last_service), pod_times)
        if known is None:
            return str(created)
        return min(changed, default="")

    def forget(self, key: str) -> None:
        self._services.pop(key, None)


def _ready_transition(pod: Pod) -> str:
    for condition in pod.get("status", {}).get("conditions") or ():
        if condition.get("type") == "Ready":
            return condition.get("lastTransitionTime") or ""
    return ""
