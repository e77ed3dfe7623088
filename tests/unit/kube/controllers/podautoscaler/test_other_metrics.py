"""Metrics of other servers, and the way to zero Pods and back (1.37; KEP-2021, kubernetes#139648)."""

from collections.abc import Mapping
from typing import Any

import pytest
from autoscalers import API, autoscaler, conditions, events, status
from fake_api import ListRecorder

from lastcall.kube.api.errors import resource_not_found
from lastcall.kube.api.features.gates import FeatureGates
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import CUSTOMRESOURCEDEFINITIONS, HORIZONTALPODAUTOSCALERS
from lastcall.kube.controllers.informers import Informers
from lastcall.kube.controllers.podautoscaler.controller import PodAutoscalerController
from lastcall.kube.controllers.podautoscaler.other_metrics import measure, question_of
from lastcall.kube.controllers.podautoscaler.replicas import Tolerances
from lastcall.kube.controllers.podautoscaler.scaling import stays_at_zero
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

SELECTOR = {"matchLabels": {"queue": "orders"}}
AT = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/waiting?labelSelector=queue%3Dorders"
FAST = {"scaleDown": {"stabilizationWindowSeconds": 0}}


def external(**target: str) -> Object:
    return {"type": "External", "external": {"metric": {"name": "waiting", "selector": SELECTOR}, "target": target}}


def of_object(**target: str) -> Object:
    thing = {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "name": "front"}
    return {"type": "Object", "object": {"metric": {"name": "hits"}, "describedObject": thing, "target": target}}


def of_pods(**target: str) -> Object:
    return {"type": "Pods", "pods": {"metric": {"name": "busy"}, "target": target}}


READY = {"status": {"conditions": [{"type": "Ready", "status": "True"}]}, "metadata": {}}


@pytest.mark.parametrize(
    ("spec", "values", "current", "replicas", "shown"),
    [
        (external(averageValue="10"), [45_000], 2, 5, {"averageValue": "22500m"}),
        (external(averageValue="10"), [20_000, 1_000], 2, 2, {"averageValue": "10500m"}),
        (external(averageValue="10"), [0], 2, 0, {"averageValue": "0"}),
        (external(averageValue="10"), [1_000], 0, 1, {"averageValue": "0"}),
        (external(value="10"), [30_000], 2, 6, {"value": "30"}),
        (external(value="10"), [10_500], 2, 2, {"value": "10500m"}),
        (external(value="100"), [500_000], 0, 5, {"value": "500"}),
        (of_object(value="10"), [0], 2, 0, {"value": "0"}),
        (of_pods(averageValue="10"), [20_000, 10_000], 2, 3, {"averageValue": "15"}),
        (of_pods(averageValue="10"), [10_000, 10_500], 2, 2, {"averageValue": "10250m"}),
    ],
)
def test_how_many_replicas_a_metric_asks_for(
    spec: Object, values: list[int], current: int, replicas: int, shown: Object
) -> None:
    assert measure(spec, values, current, [READY, READY], Tolerances()) == (replicas, shown)


@pytest.mark.parametrize(
    ("spec", "path", "shown"),
    [
        (
            external(),
            AT,
            "external metric waiting(&LabelSelector{MatchLabels:map[string]string{queue: orders,},"
            "MatchExpressions:[]LabelSelectorRequirement{},})",
        ),
        (
            of_object(),
            "/apis/custom.metrics.k8s.io/v1beta1/namespaces/default/ingresses.networking.k8s.io/front/hits",
            "Ingress metric hits",
        ),
        (
            of_pods(),
            "/apis/custom.metrics.k8s.io/v1beta1/namespaces/default/pods/*/busy?labelSelector=app%3Dweb",
            "pods metric busy",
        ),
    ],
)
def test_where_a_metric_is_asked_for_and_what_events_call_it(spec: Object, path: str, shown: str) -> None:
    assert question_of(spec, "default", "app=web")[:2] == (path, shown)


@pytest.mark.parametrize(
    ("kind", "guessed"),
    [
        ("Gateway", "gateways"),
        ("NetworkPolicy", "networkpolicies"),
        ("Ingress", "ingresses"),
        ("Endpoints", "endpoints"),
        ("Pod", "pods"),
    ],
)
def test_the_plural_of_an_unknown_kind_is_guessed(kind: str, guessed: str) -> None:
    spec = of_object()
    spec["object"]["describedObject"]["kind"] = kind
    assert f"/{guessed}.networking.k8s.io/front/" in question_of(spec, "default", "app=web").path


@pytest.mark.parametrize(
    ("described", "resource"),
    [
        (("example.org/v1", "Ox"), "oxen.example.org"),  # its definition says so
        (("v1", "Endpoints"), "endpoints"),
        (("gateway.networking.k8s.io/v1", "Gateway"), "gateways.gateway.networking.k8s.io"),
    ],
)
def test_the_object_s_plural_is_what_is_served_and_a_guess_only_elsewhere(
    described: tuple[str, str], resource: str
) -> None:
    asked: list[str] = []

    async def scenario(world: World) -> None:
        api = API(world)
        names = {"kind": "Ox", "plural": "oxen"}
        api.put(
            CUSTOMRESOURCEDEFINITIONS, {"metadata": {"name": "x"}, "spec": {"group": "example.org", "names": names}}
        )
        metric = of_object(value="10")
        metric["object"]["describedObject"] = {"apiVersion": described[0], "kind": described[1], "name": "front"}
        meta = {"name": "hpa", "namespace": "default", "generation": 1}
        api.put(HORIZONTALPODAUTOSCALERS, {**autoscaler(metric), "metadata": meta})

        async def fetch(path: str) -> Mapping[str, Any]:
            asked.append(path)
            return {"items": [{"value": "10"}]}

        informers = Informers(world, api)
        gates = FeatureGates("1.37")
        controller = PodAutoscalerController(world, api, informers, ListRecorder(world), gates, fetch)
        async with Tasks() as tasks:
            informers.spawn(tasks)
            tasks.spawn(controller.run(), name="autoscaler")
            await world.clock.sleep(1)
            tasks.cancel()

    run_virtual(scenario)
    assert set(asked) == {f"/apis/custom.metrics.k8s.io/v1beta1/namespaces/default/{resource}/front/hits"}


@pytest.mark.parametrize(
    ("least", "scaled", "measurable", "stays"),
    [
        (0, True, True, False),
        (0, False, True, True),  # somebody else took it to zero: that is how an autoscaler is paused
        (1, False, True, True),
        (1, True, True, False),
        (2, True, False, False),  # its metrics were changed meanwhile: it gets its minimum
        (0, True, False, True),
    ],
)
def test_when_a_target_without_replicas_is_left_alone(least: int, scaled: bool, measurable: bool, stays: bool) -> None:
    assert stays_at_zero(least, scaled=scaled, measurable=measurable) is stays


def play(metric: Object, waiting: list[int | None], version: str = "1.37", **spec: Any) -> list[Object]:
    """Run an autoscaler for a turn of 15 s for each of `waiting` (None: the other server is gone): what is left of
    each."""
    seen: list[Object] = []

    async def scenario(world: World) -> None:
        api, now = API(world), [waiting[0]]
        meta = {"name": "hpa", "namespace": "default", **({"generation": 3} if version == "1.37" else {})}
        api.put(HORIZONTALPODAUTOSCALERS, {**autoscaler(metric, behavior=FAST, **spec), "metadata": meta})

        async def fetch(path: str) -> Mapping[str, Any]:
            assert path == AT
            if now[0] is None:
                raise resource_not_found()
            return {"items": [{"metricName": "waiting", "value": str(now[0])}]}

        informers = Informers(world, api)
        gates = FeatureGates(version)
        controller = PodAutoscalerController(world, api, informers, ListRecorder(world), gates, fetch)
        async with Tasks() as tasks:
            informers.spawn(tasks)
            tasks.spawn(controller.run(), name="autoscaler")
            await world.clock.sleep(1)
            for each in waiting:
                now[0] = each
                await world.clock.sleep(15)
                api.scale["status"]["replicas"] = api.scale["spec"]["replicas"]
                found = {"replicas": api.scale["spec"]["replicas"], "events": events(api), "status": status(api)}
                seen.append({**found, "conditions": conditions(api)})
            tasks.cancel()

    run_virtual(scenario)
    return seen


def test_an_empty_queue_takes_the_target_to_zero_and_a_full_one_brings_it_back() -> None:
    zero, still, back, steady = play(external(averageValue="10"), [0, 0, 45, 45], minReplicas=0)
    assert [each["replicas"] for each in (zero, still, back, steady)] == [0, 0, 4, 5], "at most 4 more at once"
    yes = ("True", "ScaledToZero", "the HPA controller scaled the workload to zero")
    assert zero["conditions"]["ScaledToZero"] == still["conditions"]["ScaledToZero"] == yes
    no = ("False", "NotScaledToZero", "the HPA controller did not scale the workload to zero")
    assert back["conditions"]["ScaledToZero"] == no
    assert ("Normal", "SuccessfulRescale", "New size: 0; reason: All metrics below target") in zero["events"]
    shown = zero["status"]["currentMetrics"][0]["external"]
    assert shown == {"metric": {"name": "waiting", "selector": SELECTOR}, "current": {"averageValue": "0"}}


def test_since_1_37_the_status_says_of_which_generation_it_is() -> None:
    (found,) = play(external(averageValue="10"), [45], minReplicas=0)
    assert found["status"]["observedGeneration"] == 3
    assert {each["observedGeneration"] for each in found["status"]["conditions"]} == {3}
    (before,) = play(external(averageValue="10"), [45], version="1.36", minReplicas=1)
    assert "observedGeneration" not in before["status"] and "ScaledToZero" not in before["conditions"]


def test_a_server_that_is_not_there_is_named() -> None:
    (found,) = play(external(averageValue="10"), [None])
    selector = (
        "&LabelSelector{MatchLabels:map[string]string{queue: orders,},MatchExpressions:[]LabelSelectorRequirement{},}"
    )
    words = (
        f"unable to get external metric default/waiting/{selector}: unable to fetch metrics from external metrics API: "
        "the server could not find the requested resource (get waiting.external.metrics.k8s.io)"
    )
    assert found["replicas"] == 2 and ("Warning", "FailedGetExternalMetric", words) in found["events"]
