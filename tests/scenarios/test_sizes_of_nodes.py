"""Nodes of different sizes in virtual time: who fits, who makes room, and what a Pod is told of its node."""

from typing import Any

import pytest
from virtual_cluster import VirtualCluster, container, pod_manifest, run_cluster

from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import NODES
from lastcall.kube.cri.simulated_program import Program

DRAINS = {"app": Program(drain_seconds=2)}
SIZES = ("cpu=4,memory=4Gi", "node-1:cpu=500m,memory=512Mi")


def asking(name: str, requests: dict[str, str], **spec: Any) -> Object:
    return pod_manifest(name, containers=[container(resources={"requests": requests})], **spec)


def test_a_node_tells_its_size_and_what_pods_may_ask_for() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        seen = [(await cluster.client.get(NODES, name))["status"] for name in cluster.nodes]
        told = [
            (each["capacity"]["memory"], each["allocatable"]["memory"], each["allocatable"]["cpu"]) for each in seen
        ]
        assert told == [("512Mi", "412Mi", "500m"), ("4Gi", "3996Mi", "4")]

    run_cluster(scenario, DRAINS, nodes=2, node_capacity=SIZES)


def test_pods_go_to_the_node_that_is_large_enough() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(asking("a", {"memory": "413Mi"}), asking("b", {"cpu": "501m"}))
        await cluster.wait_ready("a", "b")
        assert {cluster.pod(name)["spec"]["nodeName"] for name in ("a", "b")} == {"node-2"}
        await cluster.create(asking("c", {"memory": "3997Mi"}))
        await cluster.wait_until(lambda: cluster.condition("c", "PodScheduled") == "False")
        message = cluster.status("c")["conditions"][0]["message"]
        assert message.startswith("0/2 nodes are available: 2 Insufficient memory.")

    run_cluster(scenario, DRAINS, nodes=2, node_capacity=SIZES)


@pytest.mark.parametrize(("memory", "phase"), [("412Mi", "Running"), ("413Mi", "Failed")])
def test_the_kubelet_admits_what_fits_its_node(memory: str, phase: str) -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(asking("p", {"memory": memory}, nodeName="node-1"))
        await cluster.wait_phase("p", phase)
        assert (cluster.status("p").get("reason") == "OutOfmemory") == (phase == "Failed")

    run_cluster(scenario, DRAINS, node_capacity=SIZES[1:])


def test_a_pod_of_higher_priority_takes_the_room_of_a_small_node() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        urgent = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "urgent"}}
        await cluster.create({**urgent, "value": 1000}, asking("small", {"memory": "300Mi"}))
        await cluster.wait_ready("small")
        await cluster.create(asking("large", {"memory": "300Mi"}, priorityClassName="urgent"))
        await cluster.wait_gone("small")
        await cluster.wait_ready("large")

    run_cluster(scenario, DRAINS, node_capacity=SIZES[1:])
