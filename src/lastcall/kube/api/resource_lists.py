"""Lists of resources (`{"cpu": "100m", "memory": "1Gi"}`) as exact amounts, and what a Pod asks for in all.

Sources: apiserver pkg/quota/v1/resources.go, component-helpers/resource/helpers.go (PodRequests, PodLimits).
"""

from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction
from typing import Any

from lastcall.kube.api.meta import Object
from lastcall.kube.api.pods.spec import is_restartable_init
from lastcall.kube.api.quantity import Quantity, parse_quantity

Resources = dict[str, Quantity]
"""Amounts by the name of the resource."""

ZERO = Quantity(Fraction(0))
ONE = Quantity(Fraction(1))
_POD_LEVEL = ("cpu", "memory")


def parse(resources: Mapping[str, Any] | None) -> Resources:
    """Parse each quantity of the list. Raises `QuantityError`."""
    return {name: parse_quantity(value) for name, value in (resources or {}).items()}


def written(resources: Resources) -> dict[str, str]:
    """Return the resources as an object carries them, names in order."""
    return {name: str(resources[name]) for name in sorted(resources)}


def shown(resources: Resources) -> str:
    """Format as `cpu=1,memory=1Gi`. (`prettyPrint`)"""
    return ",".join(f"{name}={resources[name]}" for name in sorted(resources))


def add(left: Resources, right: Resources) -> Resources:
    result = dict(left)
    for name, amount in right.items():
        result[name] = result[name] + amount if name in result else amount
    return result


def subtract_not_below_zero(left: Resources, right: Resources) -> Resources:
    """Return the differences, 0 instead of negative ones. (`SubtractWithNonNegativeResult`)"""
    result = {}
    for name in (*left, *(name for name in right if name not in left)):
        amount = left.get(name, ZERO) - right.get(name, ZERO)
        result[name] = amount if amount.value > 0 else ZERO
    return result


def mask(resources: Resources, names: Collection[str]) -> Resources:
    return {name: amount for name, amount in resources.items() if name in names}


def without_zeros(resources: Resources) -> Resources:
    return {name: amount for name, amount in resources.items() if amount.value}


def exceeded(wanted: Resources, allowed: Resources) -> list[str]:
    """Return the names of which more is wanted than allowed. (`LessThanOrEqual`)"""
    return [name for name, most in allowed.items() if name in wanted and most < wanted[name]]


def _largest(left: Resources, right: Resources) -> Resources:
    result = dict(left)
    for name, amount in right.items():
        if name not in result or result[name] < amount:
            result[name] = amount
    return result


def _of_containers(spec: Object, kind: str) -> Resources:
    """The sum of all that run at once, or what an init container needs at its time where that is more."""
    total: Resources = {}
    for container in spec.get("containers") or ():
        total = add(total, parse((container.get("resources") or {}).get(kind)))
    sidecars: Resources = {}
    first: Resources = {}
    for container in spec.get("initContainers") or ():
        its = parse((container.get("resources") or {}).get(kind))
        if is_restartable_init(container):
            total, sidecars = add(total, its), add(sidecars, its)
            first = _largest(first, sidecars)
        else:
            first = _largest(first, add(its, sidecars))
    return _largest(total, first)


def has_pod_level(spec: Object) -> bool:
    """Return True if the Pod itself has resources. (`IsPodLevelResourcesSet`)"""
    resources = spec.get("resources") or {}
    return any(is_pod_level(name) for kind in ("requests", "limits") for name in resources.get(kind) or ())


def is_pod_level(name: str) -> bool:
    return name in _POD_LEVEL or name.startswith("hugepages-")


def _with_pod_level(resources: Resources, spec: Object, kind: str) -> Resources:
    given = parse((spec.get("resources") or {}).get(kind))
    return {**resources, **{name: amount for name, amount in given.items() if is_pod_level(name)}}


def pod_requests(spec: Object, *, overhead: bool = True) -> Resources:
    """Return what all containers of a Pod ask for; resources of the Pod itself override the sum."""
    found = _with_pod_level(_of_containers(spec, "requests"), spec, "requests")
    return add(found, parse(spec.get("overhead"))) if overhead else found


def pod_limits(spec: Object, *, overhead: bool = True) -> Resources:
    """Return the limits as `pod_requests` does the requests; overhead counts where there is a limit."""
    found = _with_pod_level(_of_containers(spec, "limits"), spec, "limits")
    return add(found, mask(parse(spec.get("overhead")), without_zeros(found))) if overhead else found


def names(resources: Iterable[str]) -> str:
    """Return the names as errors list them. (`prettyPrintResourceNames`)"""
    return ",".join(sorted(resources))
