"""autoscaling/v1 and v2 show one stored HorizontalPodAutoscaler."""

import orjson

from lastcall.kube.api.resources import HORIZONTALPODAUTOSCALERS, HORIZONTALPODAUTOSCALERS_V1
from lastcall.kube.apiserver.conversions.autoscaling import BEHAVIOR, CONDITIONS, METRICS, to_v1, to_v2

TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 60}}}
MEMORY = {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}}


def autoscaler(**spec):
    return {
        "kind": "HorizontalPodAutoscaler",
        "apiVersion": "autoscaling/v2",
        "metadata": {"name": "web", "annotations": {"mine": "1"}},
        "spec": {"scaleTargetRef": TARGET, "minReplicas": 1, "maxReplicas": 3, **spec},
        "status": {"desiredReplicas": 0, "currentMetrics": None},
    }


def test_the_cpu_target_is_a_field_of_v1():
    face = to_v1(autoscaler(metrics=[CPU]))
    assert face["apiVersion"] == "autoscaling/v1"
    assert face["spec"] == {
        "scaleTargetRef": TARGET, "minReplicas": 1, "maxReplicas": 3, "targetCPUUtilizationPercentage": 60,
    }  # fmt: skip
    assert face["status"] == {"currentReplicas": 0, "desiredReplicas": 0}
    assert face["metadata"]["annotations"] == {"mine": "1"}


def test_what_v1_has_no_field_for_goes_through_annotations_and_back():
    stored = autoscaler(metrics=[CPU, MEMORY], behavior={"scaleDown": {"stabilizationWindowSeconds": 1}})
    stored["status"]["conditions"] = [{"type": "AbleToScale", "status": "True"}]
    face = to_v1(stored)
    annotations = face["metadata"]["annotations"]
    told = {"type": "Resource", "resource": {"name": "memory", "targetAverageValue": "1Gi"}}
    assert orjson.loads(annotations[METRICS]) == [told]
    assert orjson.loads(annotations[BEHAVIOR])["ScaleDown"]["StabilizationWindowSeconds"] == 1
    assert orjson.loads(annotations[CONDITIONS]) == [{"type": "AbleToScale", "status": "True"}]
    stored["spec"]["metrics"] = [MEMORY, CPU]  # what comes out of annotations comes first
    assert to_v2(face) == stored


def test_an_annotation_that_cannot_be_read_is_dropped():
    face = to_v1(autoscaler(metrics=[CPU]))
    face["metadata"]["annotations"][METRICS] = "{not json"
    face["metadata"]["annotations"][BEHAVIOR] = "[]"
    assert to_v2(face) == autoscaler(metrics=[CPU])


def test_neither_face_shares_what_it_changes_with_the_other():
    stored = autoscaler(metrics=[CPU, MEMORY])
    before = orjson.dumps(stored)
    to_v2(to_v1(stored))
    assert orjson.dumps(stored) == before


def test_one_object_is_created_read_patched_and_deleted_in_both_versions(virtual):
    async def main(api):
        client = api.admin
        spec = {"scaleTargetRef": TARGET, "maxReplicas": 3}
        await client.create(HORIZONTALPODAUTOSCALERS_V1, {"metadata": {"name": "web"}, "spec": spec}, "default")
        stored = await client.get(HORIZONTALPODAUTOSCALERS, "web", "default")
        assert stored["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 80
        patch = {"spec": {"targetCPUUtilizationPercentage": 50}}
        face = await client.patch(HORIZONTALPODAUTOSCALERS_V1, "web", patch, "default")
        assert (face["apiVersion"], face["spec"]["targetCPUUtilizationPercentage"]) == ("autoscaling/v1", 50)
        stored = await client.get(HORIZONTALPODAUTOSCALERS, "web", "default")
        assert stored["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"] == 50
        listed = await client.list(HORIZONTALPODAUTOSCALERS_V1, "default")
        assert [each["spec"]["targetCPUUtilizationPercentage"] for each in listed.items] == [50]
        await client.delete(HORIZONTALPODAUTOSCALERS_V1, "web", "default")
        assert not (await client.list(HORIZONTALPODAUTOSCALERS, "default")).items

    virtual(main)
