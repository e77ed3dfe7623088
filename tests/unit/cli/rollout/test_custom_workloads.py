"""Workloads of kinds that Kubernetes does not have: which is meant, when its controller is done, what is refused."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest

from lastcall.errors import UserError
from lastcall.experiment.existing.copy import parsed_workload
from lastcall.experiment.existing.kinds import find_kind
from lastcall.experiment.ready.custom import Scaled, scaled, why_unsettled
from lastcall.experiment.ready.readiness import is_custom
from lastcall.experiment.rollout.custom import check_scale_in, check_template
from lastcall.experiment.rollout.fields import RESTARTED_AT
from lastcall.experiment.rollout.workload import resource_of
from lastcall.kube.api.errors import not_found
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import DEPLOYMENTS, HORIZONTALPODAUTOSCALERS, PODS, Resource

ROLLOUTS = Resource("argoproj.io", "v1alpha1", "rollouts", "Rollout", True)
RESTARTED = RESTARTED_AT[-1]


def group(name: str, *kinds: tuple[str, str]) -> Object:
    scoped = {"scope": "Namespaced", "verbs": ["get"]}
    resources = [{"resource": plural, "responseKind": {"kind": kind}, **scoped} for plural, kind in kinds]
    return {"metadata": {"name": name}, "versions": [{"version": "v1", "resources": resources}]}


async def request(method: str, path: str, *, accept: str) -> bytes:
    groups = [
        group("argoproj.io", ("rollouts", "Rollout"), ("boats", "Boat")),
        group("example.com", ("rollouts", "Rollout"), ("deployments", "Deployment")),
        group("batch", ("jobs", "Job")),
    ]
    return json.dumps({"kind": "APIGroupDiscoveryList", "items": groups if path == "/apis" else []}).encode()


def found(asked: str) -> tuple[str, str]:
    cluster: Any = SimpleNamespace(client=SimpleNamespace(request=request), where="context 'prod'", context="prod")
    resource, name = asyncio.run(find_kind(cluster, asked))
    return resource.group_resource, name


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        ("deployment/web", "deployments.apps"),
        ("deploy/web", "deployments.apps"),
        ("deployments.apps/web", "deployments.apps"),
        ("deployment.example.com/web", "deployments.example.com"),
        ("Rollout.argoproj.io/web", "rollouts.argoproj.io"),
        ("rollouts.v1.example.com/web", "rollouts.example.com"),
        ("boat/web", "boats.argoproj.io"),
    ],
)
def test_a_kind_is_found_by_its_name_and_group(asked: str, kind: str) -> None:
    assert found(asked) == (kind, "web")


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (
            "rollout/web",
            r"ambiguous: .* rollouts\.argoproj\.io and rollouts\.example\.com\nfix: .*rollout\.argoproj\.io/web",
        ),
        ("rolout.argoproj.io/web", r"no kind rolout\.argoproj\.io \(did you mean rollout\.argoproj\.io/web\?\)\nfix: "),
        ("cloneset.apps.kruise.io/web", "no kind .*\nfix: name one of deployment, .* api-resources shows all"),
        ("job/web", "a job is not a workload that can be disrupted\nfix: "),
        ("web", "write KIND/NAME, .* KIND is deployment, .* or KIND.GROUP"),
        ("rollout.argoproj.io/", "write KIND/NAME"),
    ],
)
def test_a_kind_that_is_ambiguous_or_unknown_is_named_with_the_way_out(asked: str, why: str) -> None:
    with pytest.raises(UserError, match=why):
        found(asked)


def test_a_kind_of_another_group_is_none_of_kubernetes() -> None:
    assert resource_of("deployment.example.com") is None
    assert resource_of("deployments.v1.apps") == DEPLOYMENTS
    assert is_custom(ROLLOUTS)
    assert not any(map(is_custom, (DEPLOYMENTS, PODS, HORIZONTALPODAUTOSCALERS)))
    assert not is_custom(Resource("snapshot.storage.k8s.io", "v1", "volumesnapshots", "VolumeSnapshot", True))


def test_a_workload_whose_controller_is_elsewhere_is_not_copied() -> None:
    with pytest.raises(UserError, match=r"has no controller for a rollout.argoproj.io\nfix: .*--context"):
        parsed_workload("rollout.argoproj.io/web")


# -- its controller ----------------------------------------------------------------------------------------------------


def pod(name: str, restarted: str = "", *, ready: bool = True, ending: bool = False, phase: str = "Running") -> Object:
    meta: Object = {"name": name, "namespace": "shop", "annotations": {RESTARTED: restarted} if restarted else {}}
    if ending:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    return {"metadata": meta, "spec": {}, "status": {"phase": phase, "conditions": conditions}}


def workload(restarted: str = "", **status: Any) -> Object:
    template: Object = {"spec": {"containers": [{"name": "a"}]}}
    if restarted:
        template["metadata"] = {"annotations": {RESTARTED: restarted}}
    meta = {"name": "web", "namespace": "shop", "generation": 3}
    return {"metadata": meta, "spec": {"replicas": 2, "template": template}, "status": status}


@pytest.mark.parametrize(
    ("owner", "pods", "why"),
    [
        (workload(), [pod("a"), pod("b")], ""),
        (workload("now"), [pod("a", "now"), pod("b", "now"), pod("c", ending=True)], ""),
        (workload(observedGeneration=3, updatedReplicas=2), [pod("a"), pod("b")], ""),
        (workload(observedGeneration="3"), [pod("a"), pod("b")], ""),
        (workload(observedGeneration="7c9f"), [pod("a"), pod("b")], ""),
        (workload(observedGeneration=2), [pod("a"), pod("b")], "its controller has not seen its newest spec"),
        (workload(observedGeneration="2"), [pod("a"), pod("b")], "its controller has not seen its newest spec"),
        (workload(updatedReplicas=1), [pod("a"), pod("b")], "2 of 2 Pods are available, 1 of 2 are updated"),
        (workload("now"), [pod("a", "now"), pod("b")], "1 of 2 Pods are available, 1 of 2 are updated"),
        (workload(), [pod("a"), pod("b", "then")], "1 of 2 Pods are available, 1 of 2 are updated"),
        (workload(), [pod("a"), pod("b", ready=False)], "1 of 2 Pods are available, 2 of 2 are updated"),
        (workload(), [pod("a"), pod("b"), pod("c")], "3 of 2 are updated, 1 more to go"),
        (workload(), [pod("a"), pod("b", ending=True)], "1 of 2 Pods are available"),
    ],
)
def test_its_controller_is_done_when_its_status_and_its_pods_say_so(
    owner: Object, pods: list[Object], why: str
) -> None:
    told = why_unsettled(owner, Scaled(2, "app=web", pods))
    assert told == why or (why and why in told)


def looked_at(scale: Object | None, pods: list[Object]) -> Scaled:
    async def get(resource: Resource, name: str, namespace: str, *, subresource: str) -> Object:
        assert (resource, name, namespace, subresource) == (ROLLOUTS, "web", "shop", "scale")
        if scale is None:
            raise not_found(ROLLOUTS, name)
        return scale

    async def listed(resource: Resource, namespace: str, *, label_selector: str) -> Any:
        assert (resource, namespace, label_selector) == (PODS, "shop", "app=web")
        return SimpleNamespace(items=pods)

    client: Any = SimpleNamespace(get=get, list=listed)
    return asyncio.run(scaled(client, ROLLOUTS, workload()))


def test_its_pods_are_those_of_its_scale_subresource_without_ended_ones() -> None:
    pods = [pod("a"), pod("b", ending=True), pod("c", phase="Failed")]
    seen = looked_at({"spec": {"replicas": 2}, "status": {"selector": "app=web"}}, pods)
    assert (seen.wanted, seen.living, seen.ending) == (2, [pods[0]], [pods[1]])


@pytest.mark.parametrize(
    ("scale", "why"),
    [
        (None, "Rollout web has no scale subresource.*\nfix: add subresources.scale to .* rollouts.argoproj.io"),
        ({"spec": {"replicas": 2}, "status": {}}, "does not say which Pods it has.*\nfix: set labelSelectorPath"),
    ],
)
def test_a_workload_whose_pods_are_not_known_is_refused_with_the_fix(scale: Object | None, why: str) -> None:
    with pytest.raises(UserError, match=why):
        looked_at(scale, [])


@pytest.mark.parametrize("spec", [{}, {"template": {}}, {"template": {"spec": {"containers": []}}}, {"template": "x"}])
def test_a_workload_without_a_pod_template_is_refused_with_the_fix(spec: Object) -> None:
    check_template(ROLLOUTS, workload())
    with pytest.raises(UserError, match=r"Rollout web has no Pod template in spec\.template\nfix: "):
        check_template(ROLLOUTS, {"metadata": {"name": "web"}, "spec": spec})


def test_replicas_that_are_elsewhere_are_not_scaled_in() -> None:
    check_scale_in(ROLLOUTS, workload(), 2)
    with pytest.raises(UserError, match=r"does not keep its 3 replicas in spec\.replicas\nfix: --disrupt rollout"):
        check_scale_in(ROLLOUTS, workload(), 3)
