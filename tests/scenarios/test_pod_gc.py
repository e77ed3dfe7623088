"""Pods that nobody will end: PodGC (control-plane-semantics 2.10)."""

from typing import Any

from virtual_cluster import VirtualCluster, pod_manifest, run_cluster, service
from workloads import events_about

from lastcall.kube.api.resources import ENDPOINTSLICES, NODES, PODS
from lastcall.records import kinds

OUT_OF_SERVICE = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}


async def dead_node(cluster: VirtualCluster, *taints: Any) -> None:
    """A Node that no kubelet stands behind."""
    await cluster.client.create(NODES, {"metadata": {"name": "dead"}, "spec": {"taints": list(taints)}})
    status = {"conditions": [{"type": "Ready", "status": "Unknown"}]}
    await cluster.client.patch(NODES, "dead", {"status": status}, subresource="status")


async def running_there(cluster: VirtualCluster, **more: Any) -> None:
    tolerations = [{"operator": "Exists"}]
    await cluster.create(pod_manifest(nodeName="dead", tolerations=tolerations, **more))
    await cluster.patch("pod/p", {"status": {"phase": "Running"}}, subresource="status")


def test_the_pods_of_a_node_that_is_gone_fail_and_go_after_forty_seconds():
    async def scenario(cluster):
        await dead_node(cluster)
        await running_there(cluster)
        await cluster.client.delete(NODES, "dead")
        at = cluster.now
        await cluster.wait_gone()
        assert 40 <= cluster.now - at <= 81
        failed = [seen.object for seen in cluster.versions("p") if seen.object["status"]["phase"] == "Failed"]
        condition = next(c for c in failed[0]["status"]["conditions"] if c["type"] == "DisruptionTarget")
        assert (condition["reason"], condition["message"]) == ("DeletionByPodGC", "PodGC: node no longer exists")
        observed = [failed[0]["status"]["observedGeneration"], condition["observedGeneration"]]
        assert observed == [failed[0]["metadata"]["generation"]] * 2
        assert "deletionTimestamp" not in failed[0]["metadata"]
        (decided,) = cluster.records(kinds.DELETION_DECIDED, pod="p")
        assert decided.facts["why"] == "its node dead no longer exists"

    run_cluster(scenario)


def test_a_node_that_comes_back_keeps_its_pods():
    async def scenario(cluster):
        await dead_node(cluster)
        await running_there(cluster)
        await cluster.client.delete(NODES, "dead")
        await cluster.sleep(30)
        await dead_node(cluster)
        await cluster.sleep(100)
        assert not cluster.is_gone()

    run_cluster(scenario)


def test_a_terminating_pod_of_a_node_out_of_service_is_not_waited_for():
    async def scenario(cluster):
        await dead_node(cluster)
        await running_there(cluster)
        await cluster.delete(grace=3000)
        await cluster.sleep(60)
        assert not cluster.is_gone()
        await cluster.client.patch(NODES, "dead", {"spec": {"taints": [OUT_OF_SERVICE]}})
        at = cluster.now
        await cluster.wait_gone()
        assert cluster.now - at <= 21
        assert cluster.records(kinds.DELETION_DECIDED, pod="p")[-1].facts["node"] == "dead"

    run_cluster(scenario)


def test_a_deleted_pod_without_a_node_is_told_once_and_waits_for_its_finalizer():
    async def scenario(cluster):
        await cluster.create(pod_manifest(finalizers=["example.com/hold"], nodeSelector={"no": "where"}))
        await cluster.delete()
        await cluster.sleep(100)
        assert cluster.status()["phase"] == "Failed"
        assert len(cluster.records(kinds.DELETION_DECIDED, pod="p")) == 1
        version = (await cluster.client.get(PODS, "p", "default"))["metadata"]["resourceVersion"]
        await cluster.sleep(100)
        assert (await cluster.client.get(PODS, "p", "default"))["metadata"]["resourceVersion"] == version
        await cluster.patch("pod/p", {"metadata": {"finalizers": None}})
        await cluster.wait_gone()

    run_cluster(scenario)


def test_an_endpoint_whose_node_is_gone_leaves_its_slice_and_the_service_says_so():
    async def scenario(cluster):
        await cluster.create(service("web", app="web"), pod_manifest("a", nodeName="node-2", labels={"app": "web"}))
        await cluster.create(pod_manifest("b", labels={"app": "web"}, nodeName="node-1"))
        await cluster.wait_ready("a", "b")
        await cluster.kill_kubelet("node-2")
        await cluster.client.delete(NODES, "node-2")
        await cluster.delete("pod/b")
        await cluster.sleep(3)
        text = "skipping Pod a for Service default/web: Node node-2 Not Found"
        wanted = f"FailedToUpdateEndpointSlices: Error updating Endpoint Slices for Service default/web: {text}"
        assert wanted in events_about(cluster, "web")
        last = [seen.object for seen in cluster.history[ENDPOINTSLICES] if seen.name.startswith("web-")][-1]
        assert "a" not in [endpoint["targetRef"]["name"] for endpoint in last["endpoints"] or ()]

    run_cluster(scenario, nodes=2)
