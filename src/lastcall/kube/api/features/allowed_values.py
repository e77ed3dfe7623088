"""Values that a feature gate allows: what validation says of them is taken back while the gate is on.

Source: pkg/registry/autoscaling/horizontalpodautoscaler/strategy.go (MinReplicasLowerBound),
pkg/registry/apps/statefulset/strategy.go; kubernetes#139648 and #137187.
"""

# check: pure

from collections.abc import Callable, Iterable, Iterator

from lastcall.kube.api.features.gates import HPA_SCALE_TO_ZERO, STATEFUL_SET_RECREATE, FeatureGates
from lastcall.kube.api.field import FieldError, invalid
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import (
    HORIZONTALPODAUTOSCALERS,
    HORIZONTALPODAUTOSCALERS_V1,
    STATEFULSETS,
    Resource,
)
from lastcall.kube.api.validators.common import internal

_UPDATE = "spec.updateStrategy"


def without_allowed(
    errors: list[FieldError], resource: Resource, new: Object, old: Object | None, gates: FeatureGates
) -> list[FieldError]:
    """Return the errors that are left with these gates. What the old object has stays allowed without its gate."""
    rule = _RULES.get(resource)
    if not errors or rule is None:
        return errors
    gate, has, left = rule
    allowed = has(new) and (gates.enabled(gate) or (old is not None and has(old)))
    return list(left(errors, new)) if allowed else errors


def _to_zero(obj: Object) -> bool:
    return (obj.get("spec") or {}).get("minReplicas") == 0


def _but_zero(errors: Iterable[FieldError], _: Object) -> Iterator[FieldError]:
    return (each for each in errors if each.field != "spec.minReplicas")


def _recreates(obj: Object) -> bool:
    return ((obj.get("spec") or {}).get("updateStrategy") or {}).get("type") == "Recreate"


def _but_recreate(errors: Iterable[FieldError], new: Object) -> Iterator[FieldError]:
    rolling = new["spec"]["updateStrategy"].get("rollingUpdate")
    for each in errors:
        if each.field != _UPDATE:
            yield each
        elif rolling is not None:
            shown = internal("apps.v1.RollingUpdateStatefulSetStrategy", rolling)
            yield invalid(f"{_UPDATE}.rollingUpdate", shown, "only allowed for updateStrategy 'RollingUpdate'")


_Rule = tuple[str, Callable[[Object], bool], Callable[[Iterable[FieldError], Object], Iterator[FieldError]]]
_RULES: dict[Resource, _Rule] = {
    HORIZONTALPODAUTOSCALERS: (HPA_SCALE_TO_ZERO, _to_zero, _but_zero),
    HORIZONTALPODAUTOSCALERS_V1: (HPA_SCALE_TO_ZERO, _to_zero, _but_zero),
    STATEFULSETS: (STATEFUL_SET_RECREATE, _recreates, _but_recreate),
}
"""Kind: its gate, whether an object has the value, and the errors without those about it."""
