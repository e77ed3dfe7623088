"""Requests and limits of a whole Pod. Source: staging/src/k8s.io/component-helpers/resource/helpers.go.

Plain init containers run one after the other, so the greatest counts; sidecars run beside everything that follows.
"""

# check: pure

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from lastcall.kube.api.quantity import Quantity, parse_quantity
from lastcall.kube.api.resource_lists import is_pod_level
from lastcall.kube.node.pods.spec import containers_of, init_containers_of, is_restartable_init_container

if TYPE_CHECKING:
    from lastcall.kube.api.types.container import Container, ResourceRequirements
    from lastcall.kube.api.types.pod import Pod


Kind = Literal["limits", "requests"]


def pod_resources(pod: Pod) -> ResourceRequirements:
    """Return `status.resources`: `requests` and `limits`, each only if not empty. The Pod's own go first."""
    resources: ResourceRequirements = {}
    kind: Kind
    for kind in ("limits", "requests"):
        own = (pod["spec"].get("resources") or {}).get(kind) or {}
        amounts = {**_aggregate(pod, kind), **{name: amount for name, amount in own.items() if is_pod_level(name)}}
        if amounts:
            resources[kind] = dict(sorted(amounts.items()))
    return resources


def _aggregate(pod: Pod, kind: Kind) -> dict[str, str]:
    total: dict[str, Quantity] = {}
    for container in containers_of(pod):
        _add(total, container, kind)
    sidecars: dict[str, Quantity] = {}
    peak: dict[str, Quantity] = {}
    for container in init_containers_of(pod):
        if is_restartable_init_container(container):
            _add(total, container, kind)
            _add(sidecars, container, kind)
            step = dict(sidecars)
        else:
            step = dict(sidecars)
            _add(step, container, kind)
        for name, value in step.items():
            peak[name] = max(peak.get(name, value), value)
    for name, value in peak.items():
        total[name] = max(total.get(name, value), value)
    return {name: str(value) for name, value in sorted(total.items())}


def _add(total: dict[str, Quantity], container: Container, kind: Kind) -> None:
    for name, quantity in ((container.get("resources") or {}).get(kind) or {}).items():
        amount = parse_quantity(quantity)
        total[name] = total[name] + amount if name in total else amount
