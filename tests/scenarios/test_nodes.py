"""Nodes that are lost, tainted and drained, on a virtual cluster of several."""

import pytest
from virtual_cluster import is_node_ready, pod_manifest, run_cluster
from workloads import pods, template, workload

from lastcall.kube.api.meta import is_terminating, name_of
from lastcall.kube.api.pods.spec import get_condition
from lastcall.kube.api.resources import EVENTS, NODES, PODS
from lastcall.kube.client.api import STRATEGIC_MERGE_PATCH
from lastcall.kube.cri.simulated_program import Program
from lastcall.records import kinds

DRAINS = {"app": Program(drain_seconds=2)}


async def taints(cluster, node):
    found = (await cluster.client.get(NODES, node))["spec"].get("taints") or []
    return sorted((taint["key"].rpartition("/")[2], taint["effect"]) for taint in found)


async def ready(cluster, count):
    found = [pod for pod in await pods(cluster) if not is_terminating(pod)]
    return sum((get_condition(pod["status"], "Ready") or {}).get("status") == "True" for pod in found) == count


def reasons(cluster, name):
    """Reason and source of the Events about a node."""
    return {
        (seen.object["reason"], seen.object["source"]["component"]): seen.at
        for seen in cluster.history[EVENTS]
        if seen.object["involvedObject"]["name"] == name
    }


def test_a_new_node_takes_pods_only_when_it_was_seen_ready():
    async def scenario(cluster):
        node = {"metadata": {"name": "extra"}, "status": {"allocatable": {"cpu": "4", "pods": "10"}}}
        created = (await cluster.create({"kind": "Node", **node}))[0]
        assert created["spec"]["taints"] == [{"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}]
        for found in [await cluster.client.get(NODES, name) for name in cluster.nodes]:
            assert is_node_ready(found)
            assert not found["spec"].get("taints")

    run_cluster(scenario, nodes=2)


def test_a_lost_node_is_noticed_after_50_s_and_its_pods_are_evicted_300_s_later():
    """The reference, 4.7: lease, Unknown, unreachable, tolerationSeconds 300."""

    async def scenario(cluster):
        await cluster.create(pod_manifest("p", nodeName="node-2"), pod_manifest("other", nodeName="node-1"))
        await cluster.wait_ready("p", "other")
        lost_at = cluster.now
        await cluster.kill_kubelet("node-2")
        await cluster.wait_until(lambda: cluster.condition("p", "Ready") == "False")
        # The lease is renewed every 10 s, and every 5 s somebody looks whether it was.
        assert 45 <= cluster.now - lost_at <= 61
        noticed_at = cluster.now
        node = await cluster.client.get(NODES, "node-2")
        conditions = {c["type"]: (c["status"], c["reason"], c["message"]) for c in node["status"]["conditions"]}
        assert set(conditions.values()) == {("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")}, (
            conditions
        )
        await cluster.sleep(0.1)
        assert ("unreachable", "NoSchedule") in await taints(cluster, "node-2")
        assert cluster.condition("other", "Ready") == "True"
        event = next(e for e in cluster.event_objects("p") if e["reason"] == "NodeNotReady")
        assert (event["type"], event["message"], event["source"]["component"]) == (
            "Warning",
            "Node is not ready",
            "node-controller",
        )
        assert ("NodeNotReady", "node-controller") in reasons(cluster, "node-2")
        await cluster.sleep(6)
        assert await taints(cluster, "node-2") == [("unreachable", "NoExecute"), ("unreachable", "NoSchedule")]
        await cluster.wait_until(lambda: is_terminating(cluster.pod("p")), limit=400)
        assert 300 <= cluster.now - noticed_at <= 306
        assert cluster.condition("p", "DisruptionTarget") == "True"
        (decided,) = cluster.records(kinds.DELETION_DECIDED, pod="p")
        assert decided.facts["why"] == (
            "evicted from node-2 by its taint node.kubernetes.io/unreachable:NoExecute, tolerated for 300 s"
        )
        await cluster.sleep(600)
        assert not cluster.is_gone("p"), "nobody is there to stop it"
        # Back again: the node stops it, and the taints go.
        cluster.start_kubelet("node-2")
        await cluster.wait_gone("p")
        await cluster.sleep(10)
        assert await taints(cluster, "node-2") == []

    run_cluster(scenario, DRAINS, nodes=2)


def test_a_node_back_within_300_s_keeps_its_pods():
    async def scenario(cluster):
        await cluster.create(pod_manifest("p", nodeName="node-2"))
        await cluster.wait_ready("p")
        await cluster.kill_kubelet("node-2")
        await cluster.wait_until(lambda: cluster.condition("p", "Ready") == "False")
        await cluster.sleep(100)
        cluster.start_kubelet("node-2")
        await cluster.wait_until(lambda: cluster.condition("p", "Ready") == "True")
        await cluster.sleep(600)
        assert not is_terminating(cluster.pod("p"))
        assert await taints(cluster, "node-2") == []
        assert [line for line in cluster.events("p") if "TaintManager" in line] == [
            "Normal TaintManagerEviction: Cancelling deletion of Pod default/p"
        ]

    run_cluster(scenario, DRAINS, nodes=2)


def test_when_every_node_is_lost_nothing_is_evicted():
    """handleDisruption: then it is rather the network of the control plane."""

    async def scenario(cluster):
        await cluster.create(pod_manifest("p", nodeName="node-1"), pod_manifest("q", nodeName="node-2"))
        await cluster.wait_ready("p", "q")
        await cluster.kill_kubelet("node-1")
        await cluster.kill_kubelet("node-2")
        await cluster.sleep(1000)
        assert cluster.condition("p", "Ready") == "False"
        assert not is_terminating(cluster.pod("p"))
        assert await taints(cluster, "node-1") == [("unreachable", "NoSchedule")]
        cluster.start_kubelet("node-1")
        await cluster.wait_until(lambda: is_terminating(cluster.pod("q")), limit=1000)
        assert not is_terminating(cluster.pod("p"))

    run_cluster(scenario, DRAINS, nodes=2)


def test_a_deployment_replaces_lost_pods_when_they_are_evicted_a_stateful_set_only_when_they_are_gone():
    async def scenario(cluster):
        spread = {"topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
             "nodeTaintsPolicy": "Honor", "labelSelector": {"matchLabels": {"app": "web"}}}
        ]}  # fmt: skip
        owned = {"metadata": {"labels": {"app": "db"}}, "spec": template()["spec"]}
        stateful = workload("StatefulSet", name="db", serviceName="db", replicas=2, pods=owned)
        stateful["spec"]["selector"] = {"matchLabels": {"app": "db"}}
        await cluster.create(workload("Deployment", replicas=4, pods=template(**spread)), stateful)
        await cluster.wait_until_async(lambda: ready(cluster, 6))
        on = {name_of(pod): pod["spec"]["nodeName"] for pod in await pods(cluster)}
        assert sorted(node for name, node in on.items() if name.startswith("web")) == ["node-1"] * 2 + ["node-2"] * 2
        lost = on["db-0"]
        lost_web = [name for name, node in on.items() if node == lost and name.startswith("web")]
        await cluster.kill_kubelet(lost)
        await cluster.wait_until(lambda: is_terminating(cluster.pod("db-0")), limit=600)
        await cluster.sleep(10)
        # The Deployment counts four again; the StatefulSet waits for an object that nobody takes away.
        alive = [pod for pod in await pods(cluster) if not is_terminating(pod)]
        assert len([pod for pod in alive if name_of(pod).startswith("web")]) == 4
        assert all(is_terminating(cluster.pod(name)) for name in lost_web)
        assert cluster.uid("db-0") == cluster.pod("db-0")["metadata"]["uid"]
        await cluster.sleep(300)
        assert not cluster.is_gone("db-0")
        # Who says that the node is out of service lets its Pods go.
        taint = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
        kept = (await cluster.client.get(NODES, lost))["spec"]["taints"]
        await cluster.patch(f"node/{lost}", {"spec": {"taints": [*kept, taint]}})
        await cluster.wait_gone("db-0", limit=60)
        await cluster.wait_ready("db-0~2", limit=60)
        assert cluster.pod("db-0~2")["spec"]["nodeName"] != lost

    run_cluster(scenario, DRAINS, nodes=2)


def test_pods_of_a_deleted_node_are_failed_and_removed():
    async def scenario(cluster):
        await cluster.create(pod_manifest("p", nodeName="node-2"))
        await cluster.wait_ready("p")
        await cluster.sleep(10)
        await cluster.kill_kubelet("node-2")
        await cluster.delete("node/node-2")
        await cluster.wait_gone("p", limit=120)
        assert (cluster.status("p")["phase"], cluster.condition("p", "DisruptionTarget")) == ("Failed", "True")
        await cluster.sleep(10)
        assert ("RemovingNode", "node-controller") in reasons(cluster, "node-2")

    run_cluster(scenario, DRAINS, nodes=2)


def test_an_untolerated_taint_ends_a_pod_at_once_and_tolerated_seconds_end_it_later():
    async def scenario(cluster):
        def tolerating(name, **more):
            toleration = {"key": "example.com/t", "operator": "Exists", "effect": "NoExecute", **more}
            return pod_manifest(name, nodeName="node-1", tolerations=[toleration])

        await cluster.create(
            pod_manifest("none", nodeName="node-1"),
            tolerating("five", tolerationSeconds=5),
            tolerating("long", tolerationSeconds=60),
            tolerating("ever"),
        )
        await cluster.wait_ready("none", "five", "long", "ever")
        tainted_at = cluster.now
        taint = {"key": "example.com/t", "value": "v", "effect": "NoExecute"}
        await cluster.patch("node/node-1", {"spec": {"taints": [taint]}}, content_type=STRATEGIC_MERGE_PATCH)
        await cluster.wait_gone("none", "five")
        assert cluster.gone_at("none") - tainted_at == pytest.approx(2.0, abs=0.5)
        assert cluster.gone_at("five") - tainted_at == pytest.approx(7.0, abs=0.5)
        await cluster.patch("node/node-1", {"spec": {"taints": None}})
        await cluster.sleep(120)
        assert not is_terminating(cluster.pod("long"))
        assert not is_terminating(cluster.pod("ever"))
        (decided,) = cluster.records(kinds.DELETION_DECIDED, pod="none")
        assert decided.facts["why"] == (
            "evicted from node-1 by its taint example.com/t=v:NoExecute, which this Pod does not tolerate"
        )
        lines = {
            pod: [e for e in cluster.events(pod) if "TaintManager" in e] for pod in ("none", "five", "long", "ever")
        }
        assert lines == {
            "none": ["Normal TaintManagerEviction: Marking for deletion Pod default/none"],
            "five": ["Normal TaintManagerEviction: Marking for deletion Pod default/five"],
            "long": ["Normal TaintManagerEviction: Cancelling deletion of Pod default/long"],
            "ever": [],
        }

    run_cluster(scenario, DRAINS)


def test_a_cordoned_node_gets_its_taint_and_no_new_pods_but_keeps_its_old_ones():
    async def scenario(cluster):
        await cluster.create(pod_manifest("p"))
        await cluster.wait_ready("p")
        await cluster.patch("node/node-1", {"spec": {"unschedulable": True}})
        await cluster.create(pod_manifest("q"))
        await cluster.sleep(1)
        assert await taints(cluster, "node-1") == [("unschedulable", "NoSchedule")]
        assert cluster.condition("q", "PodScheduled") == "False"
        assert cluster.condition("p", "Ready") == "True"
        await cluster.patch("node/node-1", {"spec": {"unschedulable": None}})
        await cluster.wait_ready("q")
        assert await taints(cluster, "node-1") == []

    run_cluster(scenario)


def test_quiet_nodes_cost_no_writes():
    """Neither controller writes about nodes and Pods to which nothing happens."""

    async def scenario(cluster):
        await cluster.create(pod_manifest("p"))
        await cluster.wait_ready("p")
        await cluster.sleep(30)
        before = [(await cluster.client.get(NODES, name))["metadata"]["resourceVersion"] for name in cluster.nodes]
        versions = len(cluster.history[PODS])
        await cluster.sleep(200)
        after = [(await cluster.client.get(NODES, name))["metadata"]["resourceVersion"] for name in cluster.nodes]
        assert before == after
        assert len(cluster.history[PODS]) == versions

    run_cluster(scenario, nodes=3)


def test_of_64_nodes_one_comes_and_one_goes_and_no_pod_of_another_notices():
    keep_apart = {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
                  "labelSelector": {"matchLabels": {"app": "web"}}}  # fmt: skip

    async def scenario(cluster):
        await cluster.create(workload("Deployment", replicas=63, pods=template(topologySpreadConstraints=[keep_apart])))
        await cluster.wait_until_async(lambda: ready(cluster, 63), 60)
        before = {pod["spec"]["nodeName"]: pod["metadata"] for pod in await pods(cluster)}
        assert len(before) == 63, "one on each"

        await cluster.add_node()
        assert is_node_ready(await cluster.client.get(NODES, "node-64"))
        name = before["node-2"]["name"]
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        await cluster.client.create(PODS, body, cluster.namespace, name=name, subresource="eviction")
        await cluster.wait_until_async(lambda: ready(cluster, 63), 60)
        await cluster.kill_kubelet("node-2")
        await cluster.delete("node/node-2")
        await cluster.sleep(60)

        after = {pod["spec"]["nodeName"]: pod["metadata"] for pod in await pods(cluster)}
        assert after.keys() - before.keys() == {"node-64"} and before.keys() - after.keys() == {"node-2"}
        del before["node-2"], after["node-64"]
        assert after == before, "not even a resourceVersion"

    run_cluster(scenario, DRAINS, nodes=63)
