"""What the autoscaler does in one turn: the target, the metrics, the size, and what its status says.

Source: pkg/controller/podautoscaler/horizontal.go (reconcileAutoscaler, computeReplicasForMetrics).
"""

from collections.abc import Awaitable, Callable

import pytest
from autoscalers import API, autoscaler, conditions, events, status
from fake_api import ListRecorder

from lastcall.kube.api.errors import StatusError, status_failure
from lastcall.kube.api.features.gates import FeatureGates
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import (
    CUSTOMRESOURCEDEFINITIONS,
    HORIZONTALPODAUTOSCALERS,
    PODS,
)
from lastcall.kube.controllers.informers import Informers
from lastcall.kube.controllers.podautoscaler.controller import PodAutoscalerController, _shown, _tolerances
from lastcall.kube.controllers.podautoscaler.replicas import Tolerances
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

FORBIDDEN = status_failure(403, "Forbidden", "no")


def metric(resource: str = "cpu", **target: object) -> Object:
    return {"type": "Resource", "resource": {"name": resource, "target": target or {"averageUtilization": 50}}}


CPU, MEMORY = metric(), metric("memory", averageValue="32Mi")
CONTAINER = {"type": "ContainerResource", "containerResource": {"container": "c", **metric()["resource"]}}
CUSTOM = {"type": "Pods", "pods": {"metric": {"name": "x"}}}


def pod(name: str, labels: dict | None = None) -> Object:
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2000-01-01T00:00:00Z"}
    requests = {"requests": {"cpu": "100m"}}
    return {
        "metadata": {"name": name, "namespace": "default", "labels": labels or {"app": "web"}},
        "spec": {"containers": [{"name": "c", "resources": requests}]},
        "status": {"phase": "Running", "startTime": "2000-01-01T00:00:00Z", "conditions": [ready]},
    }


def run(prepare: Callable[[API], Object], test: Callable[[World, API], Awaitable[None]]) -> list[Object]:
    """Return what was recorded."""

    async def main(world: World) -> list[Object]:
        api, recorder = API(world), ListRecorder(world)
        for name in ("a", "b"):
            api.put(PODS, pod(name))
        api.put(PODS, pod("other", {"app": "other"}))
        api.put(HORIZONTALPODAUTOSCALERS, prepare(api))
        informers = Informers(world, api)
        controller = PodAutoscalerController(world, api, informers, recorder, FeatureGates("1.36"))
        async with Tasks() as tasks:
            informers.spawn(tasks)
            tasks.spawn(controller.run(), name="controller")
            await world.clock.sleep(1)
            await test(world, api)
            tasks.cancel()
        return recorder.records

    return run_virtual(main)


VALID = "the HPA was able to successfully calculate a replica count from "
UTILIZATION = "cpu resource utilization (percentage of request)"


@pytest.mark.parametrize(
    ("metrics", "used", "size", "name", "shown"),
    [
        ([CPU], ("100m", "100m"), 4, UTILIZATION, [{"averageValue": "100m", "averageUtilization": 100}]),
        ([CPU], ("50m", "50m"), 2, UTILIZATION, [{"averageValue": "50m", "averageUtilization": 50}]),
        ([CPU, MEMORY], ("50m", "50m"), 4, "memory resource",
         [{"averageValue": "50m", "averageUtilization": 50}, {"averageValue": "67108864"}]),
        ([MEMORY, CPU], ("150m", "150m"), 4, UTILIZATION,
         [{"averageValue": "67108864"}, {"averageValue": "150m", "averageUtilization": 150}]),
        ([CONTAINER], ("100m", "100m"), 4, "cpu container resource utilization (percentage of request)",
         [{"averageValue": "100m", "averageUtilization": 100}]),
        ([metric("cpu", type="Utilization")], ("150m", "150m"), 3, UTILIZATION,
         [{"averageValue": "150m", "averageUtilization": 150}]),
    ],
)  # fmt: skip
def test_the_metric_that_wants_most_decides(metrics: list, used: tuple, size: int, name: str, shown: list) -> None:
    def prepare(api: API) -> Object:
        api.used = dict(zip(("a", "b"), used, strict=True))
        return autoscaler(*metrics)

    async def test(_: World, api: API) -> None:
        assert api.scale["spec"]["replicas"] == size and api.asked[0] == ("apps", "deployments", "web")
        found = status(api)
        assert (found["currentReplicas"], found["desiredReplicas"], "lastScaleTime" in found) == (2, size, size != 2)
        assert conditions(api)["ScalingActive"] == ("True", "ValidMetricFound", VALID + name)
        listed = [
            next(each[key] for key in ("resource", "containerResource") if key in each)
            for each in found["currentMetrics"]
        ]
        assert [each["current"] for each in listed] == shown
        assert [each.get("container") for each in listed] == ["c" if each is CONTAINER else None for each in metrics]
        said = [("Normal", "SuccessfulRescale", f"New size: {size}; reason: {name} above target")]
        assert events(api) == (said if size != 2 else [])
        if size != 2:
            words = f"the HPA controller was able to update the target scale to {size}"
            assert conditions(api)["AbleToScale"] == ("True", "SucceededRescale", words)

    run(prepare, test)


@pytest.mark.parametrize(
    ("replicas", "spec", "size", "reason"),
    [
        (12, {}, 10, "Current number of replicas above Spec.MaxReplicas"),
        (2, {"minReplicas": 3}, 3, "Current number of replicas below Spec.MinReplicas"),
        (10, {"minReplicas": 10, "metrics": [metric(averageUtilization=100)]}, 10, None),
        (0, {}, 0, None),
        (4, {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 0}}}, 1, "All metrics below target"),
    ],
)
def test_the_bounds_come_before_the_metrics(replicas: int, spec: dict, size: int, reason: str | None) -> None:
    def prepare(api: API) -> Object:
        api.used = {"a": "10m", "b": "10m"}
        api.scale["spec"]["replicas"] = replicas
        return autoscaler(CPU, **({"metrics": [CPU]} | spec))

    async def test(_: World, api: API) -> None:
        assert api.scale["spec"]["replicas"] == size
        said = [("Normal", "SuccessfulRescale", f"New size: {size}; reason: {reason}")]
        assert events(api) == (said if reason else [])
        if replicas == 0:
            why = "scaling is disabled since the replica count of the target is zero"
            assert conditions(api)["ScalingActive"] == ("False", "ScalingDisabled", why)
            assert "currentReplicas" not in status(api) and status(api)["currentMetrics"] is None

    run(prepare, test)


def unavailable(api: API) -> None:
    api.refuse_metrics = FORBIDDEN


def nothing(api: API) -> None:
    api.used = {}


NONE = "failed to get cpu utilization: unable to get metrics for resource cpu: "
REFUSED = NONE + "unable to fetch metrics from resource metrics API: no (get pods.metrics.k8s.io)"
EMPTY = NONE + "no metrics returned from resource metrics API"
OTHER = NONE + "failed to get container metrics: container x not present in metrics for pod default/a"
USAGE = EMPTY.replace("cpu utilization", "memory usage").replace("cpu", "memory")
SERVED = (
    "unable to get metric x: unable to fetch metrics from custom metrics API: no server of custom.metrics.k8s.io can "
    "be asked"
)
LOST = {"type": "ContainerResource", "containerResource": {"container": "x", **metric()["resource"]}}


@pytest.mark.parametrize(
    ("change", "metrics", "reason", "words", "outer"),
    [
        (unavailable, [CPU], "FailedGetResourceMetric", REFUSED, f"failed to get cpu resource metric value: {REFUSED}"),
        (nothing, [CPU], "FailedGetResourceMetric", EMPTY, f"failed to get cpu resource metric value: {EMPTY}"),
        (nothing, [MEMORY], "FailedGetResourceMetric", USAGE, f"failed to get memory resource metric value: {USAGE}"),
        (None, [LOST], "FailedGetContainerResourceMetric", OTHER, f"failed to get cpu container metric value: {OTHER}"),
        (None, [CUSTOM], "FailedGetPodsMetric", SERVED, f"failed to get pods metric value: {SERVED}"),
    ],
)
def test_a_metric_that_cannot_be_had_is_said(
    change: Callable[[API], None] | None, metrics: list, reason: str, words: str, outer: str
) -> None:
    def prepare(api: API) -> Object:
        api.used = {"a": "100m", "b": "100m"}
        if change is not None:
            change(api)
        return autoscaler(*metrics)

    async def test(_: World, api: API) -> None:
        assert api.scale["spec"]["replicas"] == 2
        why = f"the HPA was unable to compute the replica count: {words}"
        assert conditions(api)["ScalingActive"] == ("False", reason, why)
        total = f"invalid metrics (1 invalid out of 1), first error is: {outer}"
        assert events(api) == [("Warning", reason, words), ("Warning", "FailedComputeMetricsReplicas", total)]
        assert (status(api)["currentMetrics"], status(api)["currentReplicas"]) == ([{"type": ""}], 2)

    run(prepare, test)


@pytest.mark.parametrize(("used", "size"), [("100m", 4), ("50m", 2), ("10m", 2)])
def test_with_a_metric_that_cannot_be_had_there_is_only_a_way_up(used: str, size: int) -> None:
    def prepare(api: API) -> Object:
        api.used = {"a": used, "b": used}
        return autoscaler(CUSTOM, CPU, behavior={"scaleDown": {"stabilizationWindowSeconds": 0}})

    async def test(_: World, api: API) -> None:
        assert api.scale["spec"]["replicas"] == size
        active = conditions(api)["ScalingActive"][:2]
        assert active == (("False", "FailedGetPodsMetric") if used == "10m" else ("True", "ValidMetricFound"))

    run(prepare, test)


def test_a_target_without_a_selector_is_not_scaled() -> None:
    def prepare(api: API) -> Object:
        api.scale["status"]["selector"] = ""
        return autoscaler(CPU)

    async def test(_: World, api: API) -> None:
        why = "the HPA target's scale is missing a selector"
        assert conditions(api)["ScalingActive"] == ("False", "InvalidSelector", why)
        assert events(api) == [
            ("Warning", "SelectorRequired", "selector is required"),
            ("Warning", "FailedComputeMetricsReplicas", "selector is required"),
        ]

    run(prepare, test)


def test_a_size_that_is_refused_is_said_and_nothing_is_remembered() -> None:
    def prepare(api: API) -> Object:
        api.used = {"a": "100m", "b": "100m"}
        api.refuse_scale = FORBIDDEN
        return autoscaler(CPU)

    async def test(_: World, api: API) -> None:
        why = "the HPA controller was unable to update the target scale: no"
        assert conditions(api)["AbleToScale"] == ("False", "FailedUpdateScale", why)
        text = f"New size: 4; reason: {UTILIZATION} above target; error: no"
        assert events(api) == [("Warning", "FailedRescale", text)]
        assert "lastScaleTime" not in status(api) and status(api)["desiredReplicas"] == 0

    run(prepare, test)


@pytest.mark.parametrize(
    ("kind", "group", "asked"),
    [
        ("ReplicaSet", "apps/v1", ("apps", "replicasets", "web")),
        ("ReplicationController", "v1", ("", "replicationcontrollers", "web")),
        ("StatefulSet", "apps/v1beta1", ("apps", "statefulsets", "web")),
        ("Thing", "example.org/v1", ("example.org", "things", "web")),
        ("Deployment", "example.org/v1", None), ("Other", "example.org/v1", None),
    ],
)  # fmt: skip
def test_a_target_is_of_any_kind_that_has_a_scale(kind: str, group: str, asked: tuple | None) -> None:
    def prepare(api: API) -> Object:
        names = {"kind": "Thing", "plural": "things"}
        api.put(
            CUSTOMRESOURCEDEFINITIONS, {"metadata": {"name": "x"}, "spec": {"group": "example.org", "names": names}}
        )
        return autoscaler(CPU, kind=kind, group=group)

    async def test(_: World, api: API) -> None:
        assert api.asked[:1] == ([asked] if asked else [])
        if asked is None:
            words = f'no matches for kind "{kind}" in group "example.org"'
            unable = f"the HPA controller was unable to get the target's current scale: {words}"
            assert conditions(api)["AbleToScale"] == ("False", "FailedGetScale", unable)
            assert events(api) == [("Warning", "FailedGetScale", words)]

    run(prepare, test)


def test_it_is_looked_at_every_fifteen_seconds_and_at_each_change_of_its_spec() -> None:
    def prepare(api: API) -> Object:
        api.used = {"a": "50m", "b": "50m"}
        return autoscaler(CPU)

    async def test(world: World, api: API) -> None:
        assert len(api.asked) == 1
        await world.clock.sleep(13)
        assert len(api.asked) == 1
        await world.clock.sleep(2)
        assert len(api.asked) == 2
        stored = api.of(HORIZONTALPODAUTOSCALERS)[0]
        api.put(HORIZONTALPODAUTOSCALERS, {**stored, "metadata": {**stored["metadata"], "labels": {"a": "b"}}})
        await world.clock.sleep(1)
        assert len(api.asked) == 2
        api.put(HORIZONTALPODAUTOSCALERS, {**stored, "spec": {**stored["spec"], "maxReplicas": 9}})
        await world.clock.sleep(1)
        assert len(api.asked) == 3
        await world.clock.sleep(14)
        assert len(api.asked) == 4, "a change does not move the next turn"
        writes = sum(1 for verb, plural, _ in api.calls if (verb, plural) == ("update", "horizontalpodautoscalers"))
        assert writes == 1, "nothing new is not written"
        api.remove(HORIZONTALPODAUTOSCALERS, "hpa", "default")
        await world.clock.sleep(60)
        assert len(api.asked) == 4

    run(prepare, test)


@pytest.mark.parametrize(("code", "reason"), [(409, "Conflict"), (404, "NotFound")])
def test_a_status_that_conflicts_is_left_to_the_next_turn(code: int, reason: str) -> None:
    def prepare(api: API) -> Object:
        api.fail_next("update", "horizontalpodautoscalers", status_failure(code, reason, "x"))
        return autoscaler(CPU)

    async def test(world: World, api: API) -> None:
        assert not status(api) and len(api.asked) == 1
        await world.clock.sleep(15)
        assert conditions(api)["AbleToScale"][0] == "True" and len(api.asked) == 2

    run(prepare, test)


def test_amounts_and_tolerances_as_they_are_written() -> None:
    assert (_shown("cpu", 1500), _shown("cpu", 2000), _shown("memory", 64_000_999)) == ("1500m", "2", "64k")
    assert _tolerances({}) == Tolerances(0.1, 0.1)
    assert _tolerances({"scaleUp": {"tolerance": "0.25"}, "scaleDown": None}) == Tolerances(0.1, 0.25)
    assert _tolerances({"scaleDown": {"tolerance": "0"}}) == Tolerances(0.0, 0.1)


def test_a_new_size_is_recorded_with_the_version_that_was_written() -> None:
    """By it the story of a Pod finds that the autoscaler wanted fewer."""

    def prepare(api: API) -> Object:
        api.used = {"a": "100m", "b": "100m"}
        api.scale["metadata"] = {"name": "web", "uid": "uid of web", "resourceVersion": "77"}
        return autoscaler(CPU)

    async def test(world: World, api: API) -> None:
        assert api.scale["spec"]["replicas"] == 4

    (record,) = run(prepare, test)
    facts = record["facts"]
    assert record["kind"] == "ScaleDecided" and record["rule"].startswith("pkg/controller/podautoscaler/horizontal.go:")
    assert (facts["ownerKind"], facts["owner"]) == ("HorizontalPodAutoscaler", "hpa")
    assert (facts["ofKind"], facts["name"], facts["uid"]) == ("Deployment", "web", "uid of web")
    assert (facts["from"], facts["to"], facts["resourceVersion"], facts["step"]) == (2, 4, "77", "scaling")
    assert facts["why"] == f"{UTILIZATION} above target"


def test_a_size_that_stays_or_is_refused_is_not_recorded() -> None:
    async def test(world: World, api: API) -> None:
        assert api.scale["spec"]["replicas"] == 2

    def prepare(api: API, used: str = "50m", error: StatusError | None = None) -> Object:
        api.used, api.refuse_scale = {"a": used, "b": used}, error
        return autoscaler(CPU)

    assert run(prepare, test) == []
    assert run(lambda api: prepare(api, "100m", FORBIDDEN), test) == []


def test_a_target_that_says_no_size_has_none_and_is_not_scaled() -> None:
    def prepare(api: API) -> Object:
        api.used = {"a": "100m", "b": "100m"}
        del api.scale["spec"]["replicas"]
        return autoscaler(CPU)

    async def test(world: World, api: API) -> None:
        assert (
            conditions(api)["ScalingActive"][:2] == ("False", "ScalingDisabled") and "replicas" not in api.scale["spec"]
        )

    run(prepare, test)
