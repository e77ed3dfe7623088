"""What one may set otherwise about a rollout on the page, and the patch that says so."""

from typing import Any

import pytest

from lastcall.kube.api.patch.apply import strategic_merge_patch
from lastcall.kube.api.resources import DEPLOYMENTS
from lastcall.ui.rollout.values import Values, least_unavailable, patch_of, read_values, values_of

NONE = {"controller": 0.0, "watch": 0.0, "kernel": 0.0, "balancer": 0.0}


def deployment(hook: dict[str, Any] | None = None, kind: str = "Deployment", **spec: Any) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "app", "image": "i", **({"lifecycle": {"preStop": hook}} if hook else {})}
    grace = spec.pop("grace", 30)
    template = {"spec": {"containers": [container], "terminationGracePeriodSeconds": grace}}
    return {"kind": kind, "metadata": {"name": "web"}, "spec": {"replicas": 4, "template": template, **spec}}


@pytest.mark.parametrize(
    ("workload", "sleep", "grace", "unavailable"),
    [
        (deployment(), 0, 30, 1),  # 25 % of 4
        (deployment({"sleep": {"seconds": 5}}, grace=9), 5, 9, 1),
        (deployment({"exec": {"command": ["sh", "-c", "nginx -s quit"]}}), None, 30, 1),
        (deployment(replicas=3), 0, 30, 0),  # 25 % of 3, rounded down
        (deployment(strategy={"rollingUpdate": {"maxUnavailable": "50%"}}), 0, 30, 2),
        (deployment(strategy={"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}), 0, 30, 0),
        (deployment(strategy={"type": "Recreate"}), 0, 30, None),
        (deployment(kind="DaemonSet"), 0, 30, 1),
        (deployment(kind="StatefulSet"), 0, 30, None),
    ],
)
def test_values_are_those_of_the_manifest(
    workload: dict[str, Any], sleep: int | None, grace: int, unavailable: int | None
) -> None:
    assert values_of(workload, {}) == Values(sleep, grace, unavailable, NONE)


def test_without_a_surge_one_pod_has_to_be_unavailable() -> None:
    assert least_unavailable(deployment()) == 0
    assert least_unavailable(deployment(strategy={"rollingUpdate": {"maxSurge": 0}})) == 1


def test_the_patch_says_what_differs_and_nothing_else() -> None:
    workload = deployment({"sleep": {"seconds": 5}})
    own = values_of(workload, {"watch": 1.0})
    assert patch_of(workload, own, own) == {}
    changed = read_values({"sleep": 8, "grace": 40, "maxUnavailable": 2, "hops": {"watch": 3}}, own)
    assert changed.propagation == "watch=3s"
    patched = strategic_merge_patch(DEPLOYMENTS, workload, patch_of(workload, changed, own))
    assert values_of(patched, {}) == Values(8, 40, 2, NONE)
    without = strategic_merge_patch(DEPLOYMENTS, workload, patch_of(workload, read_values({"sleep": 0}, own), own))
    assert values_of(without, {}).sleep == 0


def test_before_1_30_the_image_s_sleep_waits() -> None:
    workload = deployment()
    own = values_of(workload, {})
    patch = patch_of(workload, read_values({"sleep": 4}, own), own, sleep_hooks=False)
    patched = strategic_merge_patch(DEPLOYMENTS, workload, patch)
    assert patched["spec"]["template"]["spec"]["containers"][0]["lifecycle"]["preStop"]["exec"]["command"][0] == "sleep"
    assert values_of(patched, {}).sleep == 4


@pytest.mark.parametrize(
    ("told", "error"),
    [
        ({"sleep": -1}, "sleep: '-1' is not a number from 0 to 120"),
        ({"sleep": True}, "sleep"),
        ({"grace": "x" * 100}, "grace"),
        ({"maxUnavailable": 1e9}, "maxUnavailable"),
        ({"hops": {"watch": float("nan")}}, "watch"),
        ({"hops": [1]}, "hops"),
    ],
)
def test_what_is_no_such_value_is_told_by_its_name(told: dict[str, Any], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        read_values(told, values_of(deployment(), {}))


def test_a_workload_without_such_a_thing_keeps_none() -> None:
    own = values_of(deployment({"exec": {"command": ["x"]}}, kind="StatefulSet"), {})
    found = read_values({"sleep": 5, "maxUnavailable": 3}, own)
    assert (found.sleep, found.max_unavailable) == (None, None)
