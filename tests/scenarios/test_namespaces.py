"""A namespace that is deleted (control-plane-semantics 2.11; golden namespace-delete-finalizer)."""

import pytest
from virtual_cluster import VirtualCluster, container, pod_manifest, run_cluster

from lastcall.api.errors import StatusError
from lastcall.api.resources import CONFIGMAPS, NAMESPACES, PODS
from lastcall.cri.simulated_program import Program


def test_a_deleted_namespace_waits_for_its_pods_and_takes_everything_else_with_it() -> None:
    seen = {}

    async def scenario(cluster: VirtualCluster) -> None:
        client = cluster.client
        await client.create(NAMESPACES, {"metadata": {"name": "gone"}})
        await cluster.sleep(0.1)
        await client.create(CONFIGMAPS, {"metadata": {"name": "kept", "finalizers": ["example.com/held"]}}, "gone")
        pod = pod_manifest(containers=[container()])
        pod["metadata"] = {"name": "p", "namespace": "gone"}
        await client.create(PODS, pod, "gone")
        await cluster.sleep(2)
        await client.delete(NAMESPACES, "gone")
        await cluster.sleep(2)
        seen["pods while draining"] = [p["metadata"]["name"] for p in (await client.list(PODS, "gone")).items]
        config = await client.get(CONFIGMAPS, "kept", "gone")
        seen["config while draining"] = config["metadata"].get("deletionTimestamp")
        await cluster.sleep(3)
        seen["pods after"] = (await client.list(PODS, "gone")).items
        seen["held by"] = (await client.get(NAMESPACES, "gone"))["status"]["phase"]
        await client.patch(CONFIGMAPS, "kept", {"metadata": {"finalizers": None}}, "gone")
        await cluster.sleep(2)
        with pytest.raises(StatusError) as missing:
            await client.get(NAMESPACES, "gone")
        seen["code"] = missing.value.code

    run_cluster(scenario, {"": Program(drain_seconds=3)})
    assert seen == {
        "pods while draining": ["p"],
        "config while draining": None,
        "pods after": [],
        "held by": "Terminating",
        "code": 404,
    }
