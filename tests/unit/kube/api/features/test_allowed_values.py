"""What a feature gate allows is no error while it is on."""

from typing import Any

import pytest

from lastcall.kube.api.defaults.kinds import set_defaults
from lastcall.kube.api.features.allowed_values import without_allowed
from lastcall.kube.api.features.disabled_fields import drop_disabled_fields
from lastcall.kube.api.features.gates import FeatureGates
from lastcall.kube.api.resources import HORIZONTALPODAUTOSCALERS, STATEFULSETS
from lastcall.kube.api.validation import validate_create

QUEUE = {
    "type": "External",
    "external": {"metric": {"name": "queue"}, "target": {"type": "AverageValue", "averageValue": "3"}},
}


def autoscaler(*metrics: dict[str, Any]) -> dict[str, Any]:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    spec = {"scaleTargetRef": target, "minReplicas": 0, "maxReplicas": 3, "metrics": list(metrics)}
    return {"metadata": {"name": "web", "namespace": "default"}, "spec": spec}


def stateful_set(**update: Any) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "app", "image": "app"}]}}
    spec = {"selector": {"matchLabels": {"app": "web"}}, "serviceName": "web", "template": template}
    obj = {"metadata": {"name": "web", "namespace": "default"}, "spec": {**spec, "updateStrategy": update}}
    set_defaults(STATEFULSETS, obj)
    return obj


def errors_of(resource: Any, obj: dict[str, Any], gates: FeatureGates, old: dict[str, Any] | None = None) -> list[str]:
    return [str(each) for each in without_allowed(validate_create(resource, obj), resource, obj, old, gates)]


@pytest.mark.parametrize(
    ("version", "refused"),
    [("1.36", ["spec.minReplicas: Invalid value: 0: must be greater than or equal to 1"]), ("1.37", [])],
)
def test_since_1_37_an_autoscaler_may_go_to_zero_by_a_metric_that_needs_no_pods(
    version: str, refused: list[str]
) -> None:
    assert errors_of(HORIZONTALPODAUTOSCALERS, autoscaler(QUEUE), FeatureGates(version)) == refused
    (only,) = errors_of(HORIZONTALPODAUTOSCALERS, autoscaler(), FeatureGates("1.37"))
    assert only.startswith("spec.metrics: Forbidden: must specify at least one Object or External metric")


def test_a_set_is_recreated_only_with_its_gate_or_where_it_was_before() -> None:
    on = FeatureGates("1.37", {"StatefulSetRecreateStrategy": True})
    recreated = stateful_set(type="Recreate")
    assert errors_of(STATEFULSETS, recreated, on) == []
    (refused,) = errors_of(STATEFULSETS, recreated, FeatureGates("1.37"))
    assert refused.startswith("spec.updateStrategy: Invalid value")
    assert errors_of(STATEFULSETS, recreated, FeatureGates("1.37"), recreated) == []
    (told,) = errors_of(STATEFULSETS, stateful_set(type="Recreate", rollingUpdate={"partition": 1}), on)
    assert "only allowed for updateStrategy 'RollingUpdate'" in told
    (other,) = errors_of(STATEFULSETS, stateful_set(type="Never"), on)
    assert other.startswith("spec.updateStrategy: Invalid value")


def test_max_unavailable_is_filled_in_while_its_gate_is_on_and_dropped_while_it_is_off() -> None:
    for version, most in (("1.36", None), ("1.37", 1)):
        made = stateful_set()
        drop_disabled_fields(STATEFULSETS, made, None, FeatureGates(version))
        assert made["spec"]["updateStrategy"]["rollingUpdate"].get("maxUnavailable") == most
    asked = stateful_set(type="RollingUpdate", rollingUpdate={"maxUnavailable": "40%"})
    drop_disabled_fields(STATEFULSETS, asked, None, FeatureGates("1.37"))
    assert asked["spec"]["updateStrategy"]["rollingUpdate"]["maxUnavailable"] == "40%"
