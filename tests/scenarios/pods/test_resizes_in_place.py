"""Resizes of Pods in place, in whole clusters. What is asserted was seen of Kubernetes 1.36.2."""

import json

from virtual_cluster import VirtualCluster, container, pod_manifest, run_cluster

from lastcall.kube.api.resources import NODES, PODS
from lastcall.kube.client.api import STRATEGIC_MERGE_PATCH
from lastcall.kube.cri.simulated_program import Program
from lastcall.records import kinds


def amounts(cpu: str, memory: str, most_cpu: str = "", most_memory: str = "") -> dict:
    resources = {"requests": {"cpu": cpu, "memory": memory}}
    if most_cpu:
        resources["limits"] = {"cpu": most_cpu, "memory": most_memory}
    return resources


async def resize(cluster: VirtualCluster, pod: str = "p", **containers: dict) -> dict:
    patch = {"spec": {"containers": [{"name": name, "resources": each} for name, each in containers.items()]}}
    return await cluster.client.patch(
        PODS, pod, patch, cluster.namespace, content_type=STRATEGIC_MERGE_PATCH, subresource="resize"
    )


def app_status(cluster: VirtualCluster, pod: str = "p") -> dict:
    return (cluster.status(pod).get("containerStatuses") or [{}])[0]


def resize_conditions(cluster: VirtualCluster, pod: str = "p") -> list[dict]:
    found = cluster.status(pod).get("conditions") or []
    return [each for each in found if each["type"].startswith("PodResize")]


def events_of(cluster: VirtualCluster, reason: str) -> list[str]:
    return [text for text in cluster.events() if f" {reason}" in text]


def test_a_container_that_runs_gets_other_limits_without_a_restart() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        app = container("app", resources=amounts("100m", "50Mi", "200m", "100Mi"))
        await cluster.create(pod_manifest(containers=[app]))
        await cluster.wait_ready()
        await resize(cluster, app=amounts("150m", "40Mi", "250m", "80Mi"))
        await cluster.wait_until(lambda: app_status(cluster)["resources"]["limits"]["cpu"] == "250m")
        await cluster.wait_until(lambda: not resize_conditions(cluster))

    cluster = run_cluster(scenario, {"app": Program()})
    status = app_status(cluster)
    assert status["resources"] == amounts("150m", "40Mi", "250m", "80Mi")
    assert (status["allocatedResources"], status["restartCount"]) == ({"cpu": "150m", "memory": "40Mi"}, 0)
    assert cluster.status()["observedGeneration"] == 2
    (done,) = cluster.records(kinds.CONTAINER_RESIZED)
    assert done.facts["after"] == {"cpuShares": 153, "cpuLimit": 0.25, "memoryLimit": 80 << 20}
    (started,) = events_of(cluster, "ResizeStarted")
    said = json.loads(started.partition("Pod resize started: ")[2])
    assert said["generation"] == 2 and said["containers"][0]["name"] == "app"
    assert len(events_of(cluster, "ResizeCompleted")) == 1


def test_a_container_whose_policy_wants_it_starts_anew_with_its_grace() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        policy = [{"resourceName": "memory", "restartPolicy": "RestartContainer"}]
        app = container("app", resources=amounts("100m", "50Mi", "200m", "100Mi"), resizePolicy=policy)
        await cluster.create(pod_manifest(containers=[app]))
        await cluster.wait_ready()
        await resize(cluster, app=amounts("150m", "50Mi", "200m", "100Mi"))
        await cluster.wait_until(lambda: not resize_conditions(cluster) and cluster.status()["observedGeneration"] == 2)
        assert app_status(cluster)["restartCount"] == 0, "CPU needs no restart"
        await resize(cluster, app=amounts("150m", "60Mi", "200m", "120Mi"))
        await cluster.wait_until(lambda: app_status(cluster)["restartCount"] == 1)
        await cluster.wait_until(lambda: not resize_conditions(cluster))

    cluster = run_cluster(scenario, {"app": Program()})
    assert app_status(cluster)["resources"] == amounts("150m", "60Mi", "200m", "120Mi")
    assert any("Container app resize requires restart" in text for text in cluster.events())


def test_a_resize_waits_until_the_node_has_room() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        for name in ("p", "q"):
            app = container("app", resources=amounts("1", "50Mi"))
            await cluster.create(pod_manifest(name, containers=[app]))
            await cluster.wait_ready(name)
        (node,) = (await cluster.client.list(NODES)).items
        total = int(node["status"]["allocatable"]["cpu"])
        await resize(cluster, app=amounts(str(total), "50Mi"))
        await cluster.wait_until(lambda: bool(resize_conditions(cluster)))
        (pending,) = resize_conditions(cluster)
        assert (pending["type"], pending["reason"], pending["observedGeneration"]) == (
            "PodResizePending", "Deferred", 2,
        )  # fmt: skip
        assert pending["message"].startswith("Node didn't have enough resource: cpu, requested: ")
        assert app_status(cluster)["allocatedResources"]["cpu"] == "1"
        await cluster.delete("pod/q")
        await cluster.wait_until(lambda: app_status(cluster)["allocatedResources"]["cpu"] == str(total))
        await cluster.wait_until(lambda: not resize_conditions(cluster))

    cluster = run_cluster(scenario, {"app": Program()})
    assert len(events_of(cluster, "ResizeDeferred")) == 1
    assert len(events_of(cluster, "ResizeCompleted")) == 1
