"""Nodes that are added to a cluster and removed from it, in virtual time: who is evicted, who waits, who notices."""

import pytest
from virtual_cluster import VirtualCluster, is_node_ready, pod_manifest, run_cluster
from virtual_machines import VirtualMachines
from workloads import pods, workload

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import is_terminating, name_of
from lastcall.kube.api.resources import NODES
from lastcall.kube.cluster.control.socket import RemoveNode
from lastcall.kube.cluster.errors import ControlError
from lastcall.kube.cluster.staying.kept_nodes import KeptNodes
from lastcall.kube.cri.simulated_program import Program
from lastcall.records import kinds
from lastcall.world.tasks import Tasks

DRAINS = {"app": Program(drain_seconds=2)}
BUDGET = {
    "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
    "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}},
}  # fmt: skip


async def nodes_of(cluster: VirtualCluster) -> list[str]:
    return sorted(name_of(each) for each in (await cluster.client.list(NODES)).items)


async def homes(cluster: VirtualCluster) -> list[str]:
    return sorted(pod["spec"]["nodeName"] for pod in await pods(cluster) if not is_terminating(pod))


async def ready(cluster: VirtualCluster, count: int) -> bool:
    found = [pod for pod in await pods(cluster) if not is_terminating(pod)]
    conditions = [each for pod in found for each in pod["status"].get("conditions") or () if each["type"] == "Ready"]
    return len(found) == count and [each["status"] for each in conditions] == ["True"] * count


async def unschedulable(cluster: VirtualCluster, node: str) -> bool:
    return bool((await cluster.client.get(NODES, node))["spec"].get("unschedulable"))


def force(node: str, *, ignore_daemonsets: bool = False) -> RemoveNode:
    return RemoveNode(node=node, force=True, ignore_daemonsets=ignore_daemonsets)


def test_a_new_node_takes_pods_that_fitted_nowhere() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        machines = VirtualMachines(cluster)
        large = {"name": "app", "image": "app", "resources": {"requests": {"cpu": "3"}}}
        await cluster.create(pod_manifest("large", containers=[large]), pod_manifest("small"))
        await cluster.wait_ready("small")
        assert cluster.condition("large", "PodScheduled") == "False"
        assert await machines.add(cpu="4") == ["node-2", "node-2 is Ready"]
        await cluster.wait_ready("large")
        assert cluster.pod("large")["spec"]["nodeName"] == "node-2"
        assert is_node_ready(await cluster.client.get(NODES, "node-2"))
        assert await machines.add() == ["node-3", "node-3 is Ready"]

    run_cluster(scenario, DRAINS)


def test_a_removed_node_is_drained_first_and_the_pods_of_another_one_never_notice() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        machines = VirtualMachines(cluster)
        await machines.add()
        await cluster.create(workload("Deployment", replicas=3), BUDGET, pod_manifest("other", nodeName="node-1"))
        await cluster.wait_until_async(lambda: ready(cluster, 4))
        seen = len(cluster.versions("other"))
        told = await machines.remove("node-2")
        assert told[-2:] == ["node-2 is drained", "node-2 is gone"]
        assert [text for text in told if text.endswith("is evicted")]
        assert await nodes_of(cluster) == ["node-1"] and cluster.nodes.keys() == {"node-1"}
        await cluster.wait_until_async(lambda: ready(cluster, 4))
        assert await homes(cluster) == ["node-1"] * 4
        assert len(cluster.versions("other")) == seen, "nobody wrote it"
        killed = [each for each in cluster.records(kinds.SIGNAL_SENT) if each.facts["signal"] == "SIGKILL"]
        assert not killed, "each had its grace period"
        assert machines.kept.removed == {"node-2"} and not machines.kept.added
        assert (await machines.add())[0] == "node-2", "its name is free again"
        assert machines.kept.added == {"node-2": {}} and not machines.kept.removed

    run_cluster(scenario, DRAINS)


def test_a_budget_that_says_no_holds_the_drain_and_its_time_limit_lets_the_node_go_on() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        machines = VirtualMachines(cluster)
        await machines.add()
        alone = workload("Deployment", replicas=1)
        alone["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": "node-2"}
        await cluster.create(alone, {**BUDGET, "spec": {**BUDGET["spec"], "minAvailable": 1}})
        await cluster.wait_until_async(lambda: ready(cluster, 1))
        began = cluster.now
        with pytest.raises(
            ControlError, match=r"node-2 is not drained within 20 s, and takes Pods again: default/"
        ) as no:
            await machines.remove("node-2", timeout=20.0)
        assert 20 <= cluster.now - began < 21 and "disruption budget" in str(no.value)
        assert not await unschedulable(cluster, "node-2") and await homes(cluster) == ["node-2"]
        assert not machines.kept.removed

    run_cluster(scenario, DRAINS)


def test_a_drain_needs_the_options_that_kubectl_s_needs() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        machines = VirtualMachines(cluster)
        await machines.add()
        await cluster.create(
            workload("DaemonSet", name="agent"),
            pod_manifest("bare", nodeName="node-2"),
            pod_manifest("other", nodeName="node-1"),
        )
        await cluster.wait_until_async(lambda: ready(cluster, 4))
        with pytest.raises(ControlError) as refused:
            await machines.remove("node-2")
        assert "default/bare: no controller would replace them (add --force" in str(refused.value)
        assert "default/agent-" in str(refused.value) and "--ignore-daemonsets" in str(refused.value)
        assert not await unschedulable(cluster, "node-2") and len(await homes(cluster)) == 4, "nobody was evicted"
        told = await machines.remove("node-2", force=True, ignore_daemonsets=True)
        assert told[0].endswith("stays until the node ends"), told
        assert await homes(cluster) == ["node-1", "node-1"] and await nodes_of(cluster) == ["node-1"]
        ends = [each for each in cluster.records(kinds.SIGNAL_SENT) if each.facts["signal"] == "SIGKILL"]
        assert not ends, "the DaemonSet's Pod ended gracefully, too"

    run_cluster(scenario, DRAINS)


def test_a_node_that_does_not_become_ready_leaves_nothing() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        machines = VirtualMachines(cluster)
        machines.starts = False
        with pytest.raises(ControlError, match=r"node-2 is not Ready within 30 s \(--timeout\); nothing of it is left"):
            await machines.add(timeout=30.0)
        assert await nodes_of(cluster) == ["node-1"] and cluster.nodes.keys() == {"node-1"}
        assert not machines.kept.added and not machines.kept.removed
        machines.starts = True
        assert (await machines.add())[0] == "node-2"

    run_cluster(scenario, DRAINS)


@pytest.mark.parametrize("when", ["at once", "while Pods end"])
def test_a_drain_whose_asker_goes_away_is_given_up_and_the_node_takes_pods_again(when: str) -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        machines = VirtualMachines(cluster)
        await machines.add()
        await cluster.create(pod_manifest("p", nodeName="node-2"))
        await cluster.wait_ready("p")
        async with Tasks() as tasks:
            told = machines.changes.followed(tasks, lambda tell: machines.changes.remove(force("node-2"), tell))
            first = await anext(told)
            if when == "while Pods end":
                await cluster.sleep(0.5)
            await told.aclose()
        assert first == "default/p is evicted"
        assert not await unschedulable(cluster, "node-2") and not machines.kept.removed
        await cluster.wait_gone("p")
        await cluster.create(pod_manifest("q", nodeName="node-2"))
        await cluster.wait_ready("q")

    run_cluster(scenario, DRAINS)


def test_what_is_past_the_drain_goes_on_without_its_asker() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        machines = VirtualMachines(cluster)
        await machines.add()
        await cluster.create(workload("DaemonSet", name="agent"))
        await cluster.wait_until_async(lambda: ready(cluster, 2))
        asked = force("node-2", ignore_daemonsets=True)
        async with Tasks() as tasks:
            told = machines.changes.followed(tasks, lambda tell: machines.changes.remove(asked, tell))
            async for text in told:
                if text == "node-2 is drained":
                    break
            await told.aclose()
        assert await nodes_of(cluster) == ["node-1"] and machines.log[-1] == "node-2 is gone"

    run_cluster(scenario, DRAINS)


def test_one_change_waits_for_another() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        machines = VirtualMachines(cluster)
        async with Tasks() as tasks:
            for _ in range(3):
                tasks.spawn(machines.add(), name="add")
        assert await nodes_of(cluster) == ["node-1", "node-2", "node-3", "node-4"]

    run_cluster(scenario, DRAINS)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("node-1", "there is a node 'node-1' already"),
        ("node-65", "'node-65' is no name of a node: write node-2 to node-64"),
        ("node-0", "no name of a node"),
        ("extra", "no name of a node"),
        ("node-9", r"a Node object 'node-9' that is not lastcall's exists: kubectl delete node node-9"),
    ],
)
def test_a_name_that_a_new_node_cannot_have_is_refused(name: str, why: str) -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create({"kind": "Node", "metadata": {"name": "node-9"}})
        with pytest.raises(ControlError, match=why):
            await VirtualMachines(cluster).add(name)

    run_cluster(scenario, DRAINS)


def test_a_node_that_cannot_go_is_named_with_the_reason() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        machines = VirtualMachines(cluster)
        with pytest.raises(ControlError, match="there is no node 'node-2': the cluster has node-1"):
            await machines.remove("node-2")
        with pytest.raises(ControlError, match="node-1 is the last node, and stays"):
            await machines.remove("node-1")
        await machines.add()
        with pytest.raises(ControlError, match="node-1 has the static Pods and carries published ports, and stays"):
            await machines.remove("node-1")

    run_cluster(scenario, DRAINS)


def test_the_65th_node_is_refused() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        machines = VirtualMachines(cluster)
        for number in range(2, 65):
            cluster.nodes[f"node-{number}"] = cluster.nodes["node-1"]
        with pytest.raises(ControlError, match="the cluster has 64 nodes, and more are not possible"):
            await machines.add()
        for number in range(2, 65):
            del cluster.nodes[f"node-{number}"]

    run_cluster(scenario, DRAINS)


def test_a_state_directory_that_cannot_be_written_changes_nothing() -> None:
    def full(text: str) -> None:
        raise OSError(28, "No space left on device")

    async def scenario(cluster: VirtualCluster) -> None:
        machines = VirtualMachines(cluster, KeptNodes(write=full))
        with pytest.raises(ControlError, match="the state directory cannot be written: No space left on device"):
            await machines.add()
        with pytest.raises(StatusError):
            await cluster.client.get(NODES, "node-2")

    run_cluster(scenario, DRAINS)
