"""Requests and limits of a whole Pod. Source: staging/src/k8s.io/component-helpers/resource/helpers.go.

Plain init containers run one after the other, so the greatest counts; sidecars run beside everything that follows.
"""

from decimal import Decimal

from lastcall.api.meta import Object
from lastcall.node.pod_rules import containers_of, init_containers_of, is_restartable_init_container
from lastcall.node.volumes.downward import parse_quantity

_BINARY = (("Ei", 60), ("Pi", 50), ("Ti", 40), ("Gi", 30), ("Mi", 20), ("Ki", 10))


def pod_resources(pod: Object) -> Object:
    """`status.resources`: `requests` and `limits`, each only when not empty."""
    resources = {kind: _aggregate(pod, kind) for kind in ("limits", "requests")}
    return {kind: value for kind, value in resources.items() if value}


def _aggregate(pod: Object, kind: str) -> dict[str, str]:
    total: dict[str, Decimal] = {}
    for container in containers_of(pod):
        _add(total, container, kind)
    sidecars: dict[str, Decimal] = {}
    peak: dict[str, Decimal] = {}
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
    return {name: format_quantity(name, value) for name, value in sorted(total.items())}


def _add(total: dict[str, Decimal], container: Object, kind: str) -> None:
    for name, quantity in ((container.get("resources") or {}).get(kind) or {}).items():
        total[name] = total.get(name, Decimal(0)) + parse_quantity(quantity)


def format_quantity(name: str, value: Decimal) -> str:
    """`1500m` and `2` for cpu, `64Mi` for bytes, plain numbers otherwise."""
    if name == "cpu":
        milli = int((value * 1000).to_integral_value(rounding="ROUND_CEILING"))
        return f"{milli}m" if milli % 1000 else str(milli // 1000)
    number = int(value.to_integral_value(rounding="ROUND_CEILING"))
    if name in ("memory", "ephemeral-storage") or name.startswith("hugepages-"):
        for suffix, shift in _BINARY:
            if number and number % (1 << shift) == 0:
                return f"{number >> shift}{suffix}"
    return str(number)
