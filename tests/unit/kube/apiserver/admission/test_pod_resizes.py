"""A resize through the whole API server: its node, LimitRanges, quotas. As Kubernetes 1.36.2 answers."""

import pytest

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import LIMITRANGES, NODES, PODS, RESOURCEQUOTAS
from lastcall.kube.client.api import STRATEGIC_MERGE_PATCH

FEATURES = ["InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers"]


def pod(node="", **spec):
    resources = {"requests": {"cpu": "100m", "memory": "50Mi"}, "limits": {"cpu": "200m", "memory": "100Mi"}}
    init = {"name": "i", "image": "x", "resources": {"requests": {"cpu": "10m"}}}
    made = {"containers": [{"name": "a", "image": "x", "resources": resources}], "initContainers": [init], **spec}
    return {"metadata": {"name": "p"}, "spec": {**made, **({"nodeName": node} if node else {})}}


def cpu(request, limit="200m", group="containers", name="a"):
    resources = {"requests": {"cpu": request}, "limits": {"cpu": limit}}
    return {"spec": {group: [{"name": name, "resources": resources}]}}


async def resize(api, patch):
    return await api.admin.patch(PODS, "p", patch, "default", subresource="resize", content_type=STRATEGIC_MERGE_PATCH)


async def refused(api, patch):
    with pytest.raises(StatusError) as error:
        await resize(api, patch)
    return error.value.status


def a_node(**status):
    return {"metadata": {"name": "n"}, "status": status}


def test_a_resize_changes_resources_and_counts_as_a_change_of_the_spec(virtual):
    async def scenario(api):
        await api.admin.create(PODS, pod(), "default")
        patch = cpu("150m")
        patch["spec"]["containers"][0]["image"] = "other"
        patch["metadata"] = {"labels": {"a": "b"}}
        done = await resize(api, patch)
        assert done["metadata"]["generation"] == 2 and "labels" not in done["metadata"]
        (container,) = done["spec"]["containers"]
        assert container["image"] == "x" and container["resources"]["requests"] == {"cpu": "150m", "memory": "50Mi"}
        assert (await resize(api, {"spec": {}}))["metadata"]["generation"] == 2

    virtual(scenario)


def test_a_pod_without_a_node_of_that_name_is_not_resized(virtual):
    async def scenario(api):
        await api.admin.create(PODS, pod(node="n"), "default")
        status = await refused(api, cpu("150m"))
        assert (status["code"], status["message"]) == (403, 'pods "p" is forbidden: node "n" not found')
        assert (await resize(api, {"spec": {}}))["metadata"]["generation"] == 1

    virtual(scenario)


def test_a_pod_may_not_ask_for_more_than_its_node_has(virtual):
    async def scenario(api):
        await api.admin.create(NODES, a_node(allocatable={"cpu": "1", "memory": "10Mi"}, declaredFeatures=FEATURES))
        await api.admin.create(PODS, pod(node="n"), "default")
        status = await refused(api, cpu("1500m", "2"))
        assert status["message"] == (
            'pods "p" is forbidden: node didn\'t have enough allocatable resources: '
            "cpu, requested: 1500, allocatable: 1000; memory, requested: 52428800, allocatable: 10485760"
        )
        assert status["details"]["causes"] == [{"reason": "NodeCapacity"}]

    virtual(scenario)


def test_a_node_must_have_declared_what_a_resize_needs(virtual):
    async def scenario(api):
        await api.admin.create(NODES, a_node(allocatable={"cpu": "8", "memory": "8Gi"}))
        await api.admin.create(PODS, pod(node="n"), "default")
        assert await resize(api, cpu("150m"))
        both = cpu("20m", group="initContainers", name="i")
        both["spec"]["resources"] = {"requests": {"cpu": "1", "memory": "1Gi"}}
        status = await refused(api, both)
        assert status["message"] == (
            f'pods "p" is forbidden: pod update requires features {", ".join(FEATURES)} '
            'which are not available on node "n"'
        )

    virtual(scenario)


def test_a_resize_keeps_to_limit_ranges_and_gets_their_defaults(virtual):
    async def scenario(api):
        bare = {"name": "b", "image": "x", "resources": {"requests": {"cpu": "10m"}}}
        made = pod()
        made["spec"]["containers"].append(bare)
        await api.admin.create(PODS, made, "default")
        limits = [{"type": "Container", "default": {"cpu": "500m"}, "max": {"cpu": "900m"}}]
        await api.admin.create(LIMITRANGES, {"metadata": {"name": "l"}, "spec": {"limits": limits}}, "default")
        done = await resize(api, cpu("150m"))
        assert "annotations" not in done["metadata"]
        assert done["spec"]["containers"][1]["resources"] == {"requests": {"cpu": "10m"}, "limits": {"cpu": "500m"}}
        status = await refused(api, cpu("950m", "950m"))
        assert status["message"].endswith("maximum cpu usage per Container is 900m, but limit is 950m")

    virtual(scenario)


def test_a_resize_takes_from_the_quota_and_is_refused_beyond_it(virtual):
    async def scenario(api):
        hard = {"requests.cpu": "300m"}
        quota = {"metadata": {"name": "q"}, "spec": {"hard": hard}}
        await api.admin.create(RESOURCEQUOTAS, quota, "default")
        status = {"status": {"hard": hard, "used": {"requests.cpu": "0"}}}
        await api.admin.patch(RESOURCEQUOTAS, "q", status, "default", subresource="status")
        await api.admin.create(PODS, pod(), "default")
        await resize(api, cpu("150m"))
        assert (await api.admin.get(RESOURCEQUOTAS, "q", "default"))["status"]["used"] == {"requests.cpu": "150m"}
        why = (await refused(api, cpu("600m", "700m")))["message"]
        assert why.endswith(
            "exceeded quota: q, requested: requests.cpu=450m, used: requests.cpu=150m, limited: requests.cpu=300m"
        )

    virtual(scenario)
