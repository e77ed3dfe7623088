"""What a Pod asks for, in whole numbers: millicores of cpu, bytes, counts.

Source: component-helpers resource/helpers.go:PodRequests. Plain init containers run one after the other, so the
greatest counts; sidecars run beside everything that follows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lastcall.api.pods.spec import is_restartable_init
from lastcall.api.quantity import parse_quantity

if TYPE_CHECKING:
    from lastcall.api.types.container import Container
    from lastcall.api.types.pod import PodSpec

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"

DEFAULT_REQUESTS: Mapping[str, int] = {CPU: 100, MEMORY: 200 * 1024 * 1024}
"""What a container that asks for nothing counts as when nodes are compared (`util.GetNonzeroRequests`)."""

_POD_LEVEL = (CPU, MEMORY)


def amount(resource: str, quantity: str) -> int:
    """Millicores of cpu, units of everything else; rounded up."""
    parsed = parse_quantity(quantity)
    return parsed.milli if resource == CPU else parsed.whole


def amounts(resources: Mapping[str, str] | None) -> dict[str, int]:
    return {name: amount(name, quantity) for name, quantity in (resources or {}).items()}


def is_scalar(resource: str) -> bool:
    """Extended resources and huge pages: counted, and nothing more is known of them. (`IsScalarResourceName`)"""
    if resource.startswith(("hugepages-", "attachable-volumes-")):
        return True
    domain, slash, _ = resource.partition("/")
    return bool(slash) and not resource.startswith("requests.") and not domain.endswith("kubernetes.io")


def counts(resource: str) -> bool:
    """Whether the scheduler looks at this resource at all."""
    return resource in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar(resource)


def pod_requests(spec: PodSpec, defaults: Mapping[str, int] | None = None) -> dict[str, int]:
    """The requests of the whole Pod; `defaults` is what counts for a container that does not name a resource."""
    total: dict[str, int] = {}
    for container in spec.get("containers") or ():
        _add(total, _container(container, defaults))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in spec.get("initContainers") or ():
        asked = _container(container, defaults)
        if is_restartable_init(container):
            _add(total, asked)
            _add(sidecars, asked)
            asked = sidecars
        else:
            asked = {name: asked.get(name, 0) + sidecars.get(name, 0) for name in {**asked, **sidecars}}
        for name, value in asked.items():
            peak[name] = max(peak.get(name, 0), value)
    for name, value in peak.items():
        total[name] = max(total.get(name, 0), value)
    for name, value in amounts((spec.get("resources") or {}).get("requests")).items():
        if name in _POD_LEVEL or name.startswith("hugepages-"):
            total[name] = value  # the Pod's own word goes before its containers'
    _add(total, amounts(spec.get("overhead")))
    return total


def _container(container: Container, defaults: Mapping[str, int] | None) -> dict[str, int]:
    asked = amounts((container.get("resources") or {}).get("requests"))
    return {**defaults, **asked} if defaults else asked


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + value
