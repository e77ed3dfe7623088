"""The scheduler on virtual clusters of several nodes: spreading, making room, waiting for the right thing."""

import pytest
from virtual_cluster import container, pod_manifest, run_cluster
from workloads import pods, template, workload

from lastcall.kube.api.meta import is_terminating, labels_of, name_of
from lastcall.kube.api.resources import EVENTS, PODS
from lastcall.kube.cri.simulated_program import Program
from lastcall.records import kinds

DRAINS = {"app": Program(drain_seconds=2)}


def asking(name, cpu, **spec):
    resources = {"requests": {"cpu": cpu}}
    return pod_manifest(name, containers=[container(resources=resources)], **spec)


def priority_class(name, value, **more):
    return {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value,
            **more}  # fmt: skip


def zones(name):
    return {"topology.kubernetes.io/zone": "a" if name in ("node-1", "node-2") else "b"}


async def placed(cluster):
    return [pod["spec"].get("nodeName") for pod in await pods(cluster) if not is_terminating(pod)]


def test_the_pods_of_a_deployment_are_spread_over_the_nodes():
    async def scenario(cluster):
        await cluster.create(workload("Deployment", replicas=9))
        await cluster.wait_until_async(lambda: _all_placed(cluster, 9))
        assert sorted(await placed(cluster)) == ["node-1"] * 3 + ["node-2"] * 3 + ["node-3"] * 3

    run_cluster(scenario, DRAINS, nodes=3)


def test_the_pods_of_a_deployment_are_spread_over_zones_too():
    async def scenario(cluster):
        await cluster.create(workload("Deployment", replicas=4))
        await cluster.wait_until_async(lambda: _all_placed(cluster, 4))
        assert sorted(await placed(cluster)) == ["node-1", "node-2", "node-3", "node-3"]

    run_cluster(scenario, DRAINS, nodes=3, node_labels=zones)


async def _all_placed(cluster, count):
    on = await placed(cluster)
    return len(on) == count and all(on)


def test_a_constraint_that_must_hold_keeps_a_pod_waiting():
    spread = {"topologySpreadConstraints": [
        {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "DoNotSchedule",
         "minDomains": 3, "labelSelector": {"matchLabels": {"app": "web"}}}
    ]}  # fmt: skip

    async def scenario(cluster):
        await cluster.create(workload("Deployment", replicas=3, pods=template(**spread)))
        await cluster.sleep(5)
        assert sorted(await placed(cluster), key=str) == [None, "node-1", "node-2"]
        (waiting,) = [pod for pod in await pods(cluster) if not pod["spec"].get("nodeName")]
        assert waiting["status"]["conditions"][0]["message"] == (
            "0/2 nodes are available: 2 node(s) didn't match pod topology spread constraints. preemption: 0/2 nodes "
            "are available: 2 No preemption victims found for incoming pod."
        )

    run_cluster(scenario, DRAINS, nodes=2)


def test_pods_that_keep_apart_go_to_different_nodes_and_those_that_want_each_other_to_one():
    def relation(kind, app):
        term = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": "kubernetes.io/hostname"}
        return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}

    async def scenario(cluster):
        for name in ("a", "b", "c"):
            await cluster.create(pod_manifest(name, labels={"app": "apart"}, **relation("podAntiAffinity", "apart")))
        await cluster.sleep(1)
        assert sorted(str(cluster.pod(name)["spec"].get("nodeName")) for name in "abc") == ["None", "node-1", "node-2"]
        (late,) = [name for name in "abc" if not cluster.pod(name)["spec"].get("nodeName")]
        assert "2 node(s) didn't match pod anti-affinity rules." in cluster.status(late)["conditions"][0]["message"]
        for name in ("x", "y", "z"):
            await cluster.create(pod_manifest(name, labels={"app": "close"}, **relation("podAffinity", "close")))
        await cluster.wait_ready("x", "y", "z")
        assert len({cluster.pod(name)["spec"]["nodeName"] for name in "xyz"}) == 1
        (first,) = [name for name in "abc" if cluster.pod(name)["spec"].get("nodeName") == "node-1"]
        await cluster.delete(f"pod/{first}")
        await cluster.wait_ready(late)
        assert cluster.gone_at(first) <= cluster.now
        assert cluster.pod(late)["spec"]["nodeName"] == "node-1"

    run_cluster(scenario, DRAINS, nodes=2)


def test_a_terminating_pod_keeps_its_room_until_it_has_ended():
    async def scenario(cluster):
        await cluster.create(asking("old", "1500m"))
        await cluster.wait_ready("old")
        await cluster.create(asking("new", "1"))
        await cluster.delete("pod/old")
        await cluster.sleep(1)
        assert cluster.condition("new", "PodScheduled") == "False"
        await cluster.wait_ready("new")
        bound_at = next(v.at for v in cluster.versions("new") if v.object["spec"].get("nodeName"))
        ended_at = next(v.at for v in cluster.versions("old") if v.object["status"]["phase"] == "Succeeded")
        assert 0 <= bound_at - ended_at < 0.1

    run_cluster(scenario, DRAINS)


def test_a_gated_pod_is_looked_at_when_its_gate_is_lifted():
    async def scenario(cluster):
        await cluster.create(pod_manifest("p", schedulingGates=[{"name": "example.com/g"}]))
        await cluster.sleep(100)
        assert cluster.events("p") == []
        await cluster.patch("pod/p", {"spec": {"schedulingGates": None}})
        await cluster.wait_ready("p")

    run_cluster(scenario)


def test_a_preemption_takes_the_node_where_it_does_the_least_harm_and_waits_for_the_end():
    async def scenario(cluster):
        await cluster.create(priority_class("low", 1), priority_class("mid", 5), priority_class("high", 10))
        pinned = {"node-1": "mid", "node-2": "low", "node-3": "mid"}
        for node, name in pinned.items():
            await cluster.create(
                asking(f"on-{node}", "1500m", priorityClassName=name,
                       nodeSelector={"kubernetes.io/hostname": node})
            )  # fmt: skip
        await cluster.wait_ready(*(f"on-{node}" for node in pinned))
        await cluster.create(asking("p", "1", priorityClassName="high"))
        await cluster.wait_until(lambda: cluster.status("p").get("nominatedNodeName"))
        assert cluster.status("p")["nominatedNodeName"] == "node-2"
        await cluster.wait_ready("p")
        assert cluster.pod("p")["spec"]["nodeName"] == "node-2"
        assert "nominatedNodeName" not in cluster.status("p")
        assert cluster.is_gone("on-node-2") or cluster.status("on-node-2")["phase"] == "Succeeded"
        assert cluster.signals(pod="on-node-2") == [(0.0, "SIGTERM")], "it has its grace period"
        assert cluster.condition("on-node-2", "DisruptionTarget") == "True"
        (decided,) = cluster.records(kinds.DELETION_DECIDED)
        assert decided.pod_uid == cluster.uid("on-node-2")
        assert decided.facts["why"] == (
            "preempted by default/p: it needs cpu on node-2 and has priority 10, this Pod 1"
        )
        assert {key: decided.facts[key] for key in ("preemptor", "node", "rank", "victims", "candidates")} == {
            "preemptor": "default/p",
            "node": "node-2",
            "rank": 1,
            "victims": 1,
            "candidates": 3,
        }

    run_cluster(scenario, DRAINS, nodes=3)


@pytest.mark.parametrize(("version", "claims"), [("1.36", "no new claims to deallocate, "), ("1.37", "")])
def test_a_class_that_never_preempts_waits_and_says_so(version, claims):
    async def scenario(cluster):
        await cluster.create(priority_class("polite", 100, preemptionPolicy="Never"))
        await cluster.create(asking("old", "1500m"))
        await cluster.wait_ready("old")
        await cluster.create(asking("p", "1", priorityClassName="polite"))
        await cluster.sleep(5)
        assert cluster.status("p")["conditions"][0]["message"] == (
            f"0/1 nodes are available: 1 Insufficient cpu. {claims}preemption: not eligible due to "
            "preemptionPolicy=Never."
        )
        await cluster.delete("pod/old")
        await cluster.wait_ready("p")

    run_cluster(scenario, DRAINS, kubernetes_version=version)


@pytest.mark.parametrize(
    ("version", "more"),
    [("1.36", ""), ("1.37", " preemption: found a potential placement for pod on node node-1, preempting 1 victims")],
)
def test_since_1_37_the_event_says_where_a_preemption_makes_room(version, more):
    """(kubernetes#140180)"""

    async def scenario(cluster):
        await cluster.create(priority_class("high", 10))
        await cluster.create(asking("old", "1500m"))
        await cluster.wait_ready("old")
        await cluster.create(asking("p", "1", priorityClassName="high"))
        await cluster.wait_ready("p")
        texts = [each["message"] for each in cluster.event_objects("p") if each["reason"] == "FailedScheduling"]
        assert texts[0] == f"0/1 nodes are available: 1 Insufficient cpu.{more}"

    run_cluster(scenario, DRAINS, kubernetes_version=version)


def test_the_pod_with_the_higher_priority_is_first_when_room_comes_free():
    async def scenario(cluster):
        await cluster.create(priority_class("high", 10, preemptionPolicy="Never"))
        await cluster.create(asking("old", "2"))
        await cluster.wait_ready("old")
        await cluster.create(asking("first", "2"), asking("important", "2", priorityClassName="high"))
        await cluster.sleep(30)
        await cluster.delete("pod/old")
        await cluster.wait_ready("important")
        await cluster.sleep(30)
        assert not cluster.pod("first")["spec"].get("nodeName")

    run_cluster(scenario, DRAINS)


def test_only_what_may_help_makes_the_scheduler_look_again():
    async def scenario(cluster):
        await cluster.create(pod_manifest("p", nodeSelector={"disk": "ssd"}), asking("big", "3"))
        await cluster.sleep(20)

        def looks(name):
            return sum(
                seen.object["count"] == 1 or seen.type == "MODIFIED"
                for seen in cluster.history[EVENTS]
                if seen.object["involvedObject"]["name"] == name and seen.object["reason"] == "FailedScheduling"
            )

        before = looks("p"), looks("big")
        await cluster.create(pod_manifest("other"))
        await cluster.wait_ready("other")
        await cluster.delete("pod/other")
        await cluster.wait_gone("other")
        await cluster.patch("node/node-1", {"metadata": {"labels": {"disk": "hdd"}}})
        await cluster.sleep(20)
        assert looks("p") == before[0]
        await cluster.patch("node/node-1", {"metadata": {"labels": {"disk": "ssd"}}})
        await cluster.wait_ready("p")

    run_cluster(scenario)


def test_a_rollout_keeps_its_pods_spread():
    async def scenario(cluster):
        await cluster.create(workload("Deployment", replicas=6))
        await cluster.wait_until_async(lambda: _all_placed(cluster, 6))
        await cluster.patch("deployment/web", {"spec": {"template": {"metadata": {"labels": {"v": "2"}}}}})

        async def rolled():
            found = [pod for pod in await pods(cluster) if not is_terminating(pod)]
            return len(found) == 6 and all(labels_of(pod).get("v") == "2" for pod in found)

        await cluster.wait_until_async(rolled, limit=120)
        await cluster.wait_until_async(lambda: _all_placed(cluster, 6))
        on = await placed(cluster)
        assert [on.count(f"node-{number}") for number in (1, 2, 3)] == [2, 2, 2]

    run_cluster(scenario, DRAINS, nodes=3)


def test_no_pod_is_bound_twice_and_no_node_is_overcommitted():
    async def scenario(cluster):
        for number in range(40):
            await cluster.create(asking(f"p{number:02}", "300m"))
        await cluster.sleep(30)
        on = [pod for pod in await pods(cluster) if pod["spec"].get("nodeName")]
        assert len(on) == 18
        for node in cluster.nodes:
            assert sum(pod["spec"]["nodeName"] == node for pod in on) == 6
        assert [name_of(pod) for pod in on] == [f"p{number:02}" for number in range(18)]
        bound = [r for r in cluster.all_records if r.kind == kinds.POD_BOUND]
        assert len({r.pod_uid for r in bound}) == len(bound) == 18
        assert len(await cluster.runtime.list_pod_sandbox()) == 6
        assert len([s for s in cluster.history[PODS] if s.type == "ADDED"]) == 40

    run_cluster(scenario, nodes=3)


def test_priority_classes_reach_pods_and_the_system_s_are_there():
    async def scenario(cluster):
        await cluster.create(pod_manifest("system", priorityClassName="system-node-critical"), pod_manifest("plain"))
        await cluster.create(priority_class("usual", 3, globalDefault=True), pod_manifest("usual"))
        await cluster.wait_ready("system", "plain", "usual")
        got = {name: cluster.pod(name)["spec"] for name in ("system", "plain", "usual")}
        assert [got[name]["priority"] for name in got] == [2_000_001_000, 0, 3]
        assert got["usual"]["priorityClassName"] == "usual"
        await cluster.delete("priorityclass/usual")
        await cluster.create(pod_manifest("after"))
        await cluster.wait_ready("after")
        assert cluster.pod("after")["spec"]["priority"] == 0

    run_cluster(scenario)


def test_a_pod_that_waits_for_a_neighbour_is_not_woken_by_others():
    term = {"labelSelector": {"matchLabels": {"app": "db"}}, "topologyKey": "kubernetes.io/hostname"}
    wants = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}

    async def scenario(cluster):
        await cluster.create(pod_manifest("p", affinity=wants))
        await cluster.sleep(20)
        await cluster.create(pod_manifest("other"))
        await cluster.wait_ready("other")
        await cluster.delete("pod/other")
        await cluster.wait_gone("other")
        assert len(cluster.event_times("FailedScheduling")) == 1
        await cluster.create(pod_manifest("db"))
        await cluster.wait_ready("p")
        assert cluster.pod("p")["spec"]["nodeName"] == cluster.pod("db")["spec"]["nodeName"]

    run_cluster(scenario, nodes=2)
