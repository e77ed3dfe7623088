"""What a Pod asks for, in whole numbers: millicores of cpu, bytes, counts.

Source: component-helpers resource/helpers.go:PodRequests. Plain init containers run one after the other, so the
greatest counts; sidecars run beside everything that follows them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from lastcall.kube.api.pods.spec import is_restartable_init
from lastcall.kube.api.quantity import parse_quantity

if TYPE_CHECKING:
    from lastcall.kube.api.types.container import Container
    from lastcall.kube.api.types.pod import Pod, PodSpec
    from lastcall.kube.api.types.pod_status import ContainerStatus

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"

DEFAULT_REQUESTS: Mapping[str, int] = {CPU: 100, MEMORY: 200 * 1024 * 1024}
"""What a container that asks for nothing counts as when nodes are compared (`util.GetNonzeroRequests`)."""

_POD_LEVEL = (CPU, MEMORY)


def amount(resource: str, quantity: str) -> int:
    """Convert to millicores of cpu, units of everything else; rounded up."""
    parsed = parse_quantity(quantity)
    return parsed.milli if resource == CPU else parsed.whole


def amounts(resources: Mapping[str, str] | None) -> dict[str, int]:
    return {name: amount(name, quantity) for name, quantity in (resources or {}).items()}


def is_scalar(resource: str) -> bool:
    """Return whether this is an extended resource or huge pages, which are only counted. (`IsScalarResourceName`)"""
    if resource.startswith(("hugepages-", "attachable-volumes-")):
        return True
    domain, slash, _ = resource.partition("/")
    return bool(slash) and not resource.startswith("requests.") and not domain.endswith("kubernetes.io")


def counts(resource: str) -> bool:
    """Return whether the scheduler looks at this resource at all."""
    return resource in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar(resource)


def pod_requests(spec: PodSpec, defaults: Mapping[str, int] | None = None) -> dict[str, int]:
    """Return the requests of the whole Pod; `defaults` is what counts for a container that does not name a resource."""
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


def held_spec(pod: Pod) -> PodSpec:
    """Return the spec with what each container holds of its node: the most of what it asks for, was given and has.

    While a resize is under way these differ; else it is the spec itself. What the node can never give does not count.
    Source: component-helpers resource/helpers.go:determineContainerReqs (UseStatusResources).
    """
    spec, status = pod["spec"], pod.get("status") or {}
    found = {
        each["name"]: each
        for each in (*(status.get("containerStatuses") or ()), *(status.get("initContainerStatuses") or ()))
        if "allocatedResources" in each or "resources" in each
    }
    if not found or not spec.get("nodeName"):
        return spec
    infeasible = any(
        each.get("type") == "PodResizePending" and each.get("reason") == "Infeasible"
        for each in status.get("conditions") or ()
    )
    held: PodSpec = {**spec}
    field: Literal["containers", "initContainers"]
    changed = False
    for field in ("containers", "initContainers"):
        containers = spec.get(field) or []
        now = [_held(each, found.get(each["name"]), infeasible=infeasible) for each in containers]
        if any(one is not other for one, other in zip(now, containers, strict=True)):
            held[field], changed = now, True
    return held if changed else spec


def _held(container: Container, status: ContainerStatus | None, *, infeasible: bool) -> Container:
    if status is None:
        return container
    resources = container.get("resources") or {}
    asked = resources.get("requests") or {}
    given, has = status.get("allocatedResources") or {}, (status.get("resources") or {}).get("requests") or {}
    if given in (asked, {}) and has in (asked, {}):
        return container
    most: dict[str, str] = {}
    for amounts_ in (given, has) if infeasible and given else (asked, given, has):
        for name, quantity in amounts_.items():
            if name not in most or amount(name, most[name]) < amount(name, quantity):
                most[name] = quantity
    if amounts(most) == amounts(asked):
        return container
    return {**container, "resources": {**resources, "requests": most}}


def _container(container: Container, defaults: Mapping[str, int] | None) -> dict[str, int]:
    asked = amounts((container.get("resources") or {}).get("requests"))
    return {**defaults, **asked} if defaults else asked


def _add(total: dict[str, int], more: Mapping[str, int]) -> None:
    for name, value in more.items():
        total[name] = total.get(name, 0) + value
