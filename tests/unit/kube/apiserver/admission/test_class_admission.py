"""RuntimeClass, DefaultIngressClass and PodTopologyLabels: what is filled in and refused."""

import pytest

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import BINDINGS, INGRESSCLASSES, INGRESSES, NODES, PODS, RUNTIMECLASSES
from lastcall.kube.apiserver.admission.classes import (
    check_overhead,
    merge_tolerations,
    set_ingress_class,
    set_runtime_class,
)


def pod(**spec):
    return {"metadata": {"name": "p"}, "spec": {"containers": [], **spec}}


def runtime_class(**more):
    return {"metadata": {"name": "c"}, "handler": "h", **more}


OVERHEAD = {"podFixed": {"cpu": "250m"}}


@pytest.mark.parametrize(
    ("made", "its", "expected"),
    [
        (pod(runtimeClassName="c"), runtime_class(), {}),
        (pod(runtimeClassName="c"), runtime_class(overhead=OVERHEAD), {"overhead": {"cpu": "250m"}}),
        (
            pod(runtimeClassName="c", overhead={"cpu": "0.25"}),
            runtime_class(overhead=OVERHEAD),
            {"overhead": {"cpu": "250m"}},
        ),
        (
            pod(runtimeClassName="c", nodeSelector={"a": "b"}),
            runtime_class(scheduling={"nodeSelector": {"c": "d", "a": "b"}}),
            {"nodeSelector": {"a": "b", "c": "d"}},
        ),
        (
            pod(runtimeClassName="c", tolerations=[{"key": "a", "operator": "Exists"}]),
            runtime_class(scheduling={"tolerations": [{"key": "a", "value": "x"}, {"key": "b", "operator": "Exists"}]}),
            {"tolerations": [{"key": "a", "operator": "Exists"}, {"key": "b", "operator": "Exists"}]},
        ),
    ],
)
def test_a_pod_gets_what_its_runtime_class_says(made, its, expected):
    before = dict(made["spec"])
    set_runtime_class(made, its)
    assert made["spec"] == {**before, **expected}


@pytest.mark.parametrize(
    ("made", "its", "why"),
    [
        (pod(runtimeClassName="c"), None, 'pod rejected: RuntimeClass "c" not found'),
        (
            pod(runtimeClassName="c", overhead={"cpu": "1"}),
            runtime_class(overhead=OVERHEAD),
            "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead",
        ),
        (
            pod(runtimeClassName="c", nodeSelector={"a": "x"}),
            runtime_class(scheduling={"nodeSelector": {"a": "b"}}),
            "conflict: runtimeClass.scheduling.nodeSelector[a] = b; pod.spec.nodeSelector[a] = x",
        ),
    ],
)
def test_a_pod_may_not_disagree_with_its_runtime_class(made, its, why):
    with pytest.raises(StatusError) as refused:
        set_runtime_class(made, its)
    assert (refused.value.code, refused.value.message) == (403, f'pods "p" is forbidden: {why}')


@pytest.mark.parametrize("its", [None, runtime_class()])
def test_a_pod_has_no_overhead_but_that_of_its_class(its):
    with pytest.raises(StatusError) as refused:
        check_overhead(pod(overhead={"cpu": "1"}), its)
    why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
    assert (refused.value.code, refused.value.message) == (403, f'pods "p" is forbidden: {why}')
    check_overhead(pod(overhead={"cpu": "1"}), runtime_class(overhead=OVERHEAD))
    check_overhead(pod(), its)


EXISTS = {"operator": "Exists"}


@pytest.mark.parametrize(
    ("first", "second", "merged"),
    [
        ([{"key": "a", **EXISTS}], [{"key": "a", **EXISTS}], [{"key": "a", **EXISTS}]),
        ([{"key": "a", "value": "x"}], [EXISTS], [EXISTS]),
        ([{"key": "a", "effect": "NoSchedule"}], [{"key": "a"}], [{"key": "a"}]),
        ([{"key": "a", "value": "x"}], [{"key": "a"}], [{"key": "a", "value": "x"}, {"key": "a"}]),
        (
            [{"key": "a", "effect": "NoExecute", "tolerationSeconds": 5, **EXISTS}],
            [{"key": "a", "effect": "NoExecute", "tolerationSeconds": 9, **EXISTS}],
            [{"key": "a", "effect": "NoExecute", "tolerationSeconds": 9, **EXISTS}],
        ),
        (
            [{"key": "a", "effect": "NoExecute", **EXISTS}],
            [{"key": "a", "effect": "NoExecute", "tolerationSeconds": 9, **EXISTS}],
            [{"key": "a", "effect": "NoExecute", **EXISTS}],
        ),
    ],
)  # fmt: skip
def test_tolerations_that_others_include_are_left_out(first, second, merged):
    assert merge_tolerations(first, second) == merged


def ingress_class(name, created, default="true"):
    note = {"ingressclass.kubernetes.io/is-default-class": default}
    return {"metadata": {"name": name, "creationTimestamp": created, "annotations": note}}


@pytest.mark.parametrize(
    ("spec", "annotations", "expected"),
    [
        ({}, {}, "newer"),
        ({"ingressClassName": "mine"}, {}, "mine"),
        ({}, {"kubernetes.io/ingress.class": "old"}, None),
    ],
)
def test_an_ingress_without_a_class_gets_the_default_one(spec, annotations, expected):
    made = {"metadata": {"annotations": annotations}, "spec": dict(spec)}
    classes = [
        ingress_class("older", "2030-01-01T00:00:00Z"),
        ingress_class("newer", "2030-01-01T00:00:05Z"),
        ingress_class("newest", "2030-01-01T00:00:09Z", default="false"),
    ]
    set_ingress_class(made, classes)
    assert made["spec"].get("ingressClassName") == expected
    set_ingress_class(made, [])


def test_through_the_api_classes_and_zones_reach_pods_and_ingresses(virtual):
    async def scenario(api):
        container = {"name": "a", "image": "x"}
        with pytest.raises(StatusError, match="RuntimeClass"):
            await api.admin.create(PODS, pod(containers=[container], runtimeClassName="c"), "default")
        await api.admin.create(RUNTIMECLASSES, runtime_class(overhead=OVERHEAD))
        made = await api.admin.create(PODS, pod(containers=[container], runtimeClassName="c"), "default")
        assert made["spec"]["overhead"] == {"cpu": "250m"}

        await api.admin.create(INGRESSCLASSES, ingress_class("web", None) | {"spec": {"controller": "a.b/c"}})
        rules = {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}
        ingress = await api.admin.create(INGRESSES, {"metadata": {"name": "i"}, "spec": rules}, "default")
        assert ingress["spec"]["ingressClassName"] == "web"

        labels = {"topology.kubernetes.io/zone": "z", "topology.kubernetes.io/region": "r", "other": "no"}
        await api.admin.create(NODES, {"metadata": {"name": "n1", "labels": labels}})
        binding = {"metadata": {"name": "p"}, "target": {"kind": "Node", "name": "n1"}}
        await api.admin.create(BINDINGS, binding, "default", name="p")
        topology = {key: value for key, value in labels.items() if key != "other"}
        assert (await api.admin.get(PODS, "p", "default"))["metadata"]["labels"] == topology
        placed = pod(containers=[container], nodeName="n1")
        placed["metadata"] = {"name": "q", "labels": {"topology.kubernetes.io/zone": "mine"}}
        placed = await api.admin.create(PODS, placed, "default")
        assert placed["metadata"]["labels"] == {**topology, "topology.kubernetes.io/zone": "mine"}

    virtual(scenario)
