"""Who decided the end of a Pod and why this one, in a whole cluster: one decider after the other."""

from typing import Any

import pytest
from virtual_cluster import VirtualCluster, pod_manifest, run_cluster
from workloads import autoscaler, pods, workload

from lastcall.endings.ending import build_endings
from lastcall.endings.story import DecidedBy, Ending, PodFacts
from lastcall.kube.api.meta import Object, is_terminating, name_of, uid_of
from lastcall.kube.api.pods.spec import is_pod_ready
from lastcall.kube.api.resources import DEPLOYMENTS, NODES, PODS, REPLICASETS
from lastcall.kube.cri.simulated_program import Program
from lastcall.records import kinds

DRAINS = {"app": Program(drain_seconds=2)}
ADMIN = "system:kubernetes-admin"
"""The user of a virtual cluster's client."""
BY = f"lastcall (user {ADMIN})"


async def ready(cluster: VirtualCluster, count: int) -> None:
    async def enough() -> bool:
        return sum(is_pod_ready(each) and not is_terminating(each) for each in await pods(cluster)) == count

    await cluster.wait_until_async(enough)
    await cluster.sleep(1)


def endings(cluster: VirtualCluster) -> list[Ending]:
    """Of all Pods whose end has begun, the first to be deleted first."""
    uids = dict.fromkeys(record.pod_uid for record in cluster.all_records if record.pod_uid)
    known = [PodFacts(uid, "", "") for uid in uids]
    made = build_endings(cluster.all_records, known, kubernetes_version="1.36")
    return sorted((each for each in made if each.decided_by is not None), key=lambda each: each.zero_ns)


def decided(cluster: VirtualCluster) -> DecidedBy:
    found = endings(cluster)[0].decided_by
    assert found is not None
    return found


async def after(cluster: VirtualCluster, number: int = 1) -> None:
    """Until that many Pods are being deleted."""
    await cluster.wait_until(lambda: len(cluster.records(kinds.DELETE_ACCEPTED)) >= number)
    await cluster.sleep(0.1)


NEW_TEMPLATE = {"spec": {"template": {"metadata": {"annotations": {"version": "2"}}}}}


def test_a_user_who_deletes_a_pod_is_named():
    async def scenario(cluster):
        await cluster.create(pod_manifest())
        await cluster.wait_ready()
        await cluster.delete()
        await cluster.wait_gone()
        found = decided(cluster)
        assert (found.actor, found.reason, found.user) == ("user", "deleted", ADMIN)
        assert found.why == f"it was deleted by {BY}"

    run_cluster(scenario, DRAINS)


def test_a_rollout_is_told_from_the_deployment_down_to_the_rank_of_the_pod():
    async def scenario(cluster):
        await cluster.create(workload("Deployment", replicas=3))
        await ready(cluster, 3)
        (old,) = (await cluster.client.list(REPLICASETS, cluster.namespace)).items
        cheap = (await pods(cluster))[1]
        cost = {"metadata": {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-5"}}}
        await cluster.patch(f"pod/{name_of(cheap)}", cost)
        await cluster.patch("deployment/web", NEW_TEMPLATE)
        await after(cluster, 3)
        await ready(cluster, 3)
        found = endings(cluster)
        assert found[0].pod.name == name_of(cheap)
        assert found[0].decided_by.actor == "replicaset-controller"
        assert found[0].decided_by.reason == "rolledOut"
        assert found[0].decided_by.user == ADMIN
        assert found[0].decided_by.why == (
            f"Deployment web was rolled out to revision 2 by {BY}: ReplicaSet {name_of(old)} goes from 3 to 2 Pods, "
            "and this one is number 1 to go: lower pod-deletion-cost"
        )
        assert {each.decided_by.reason for each in found[:3]} == {"rolledOut"}
        # The arrows go from the accepted DELETE back to the write of the template.
        kinds_of = {entry.record.id: entry for entry in found[0].entries}
        entry = next(e for e in found[0].entries if e.record.kind == kinds.DELETE_ACCEPTED)
        way = []
        while entry.cause_id in kinds_of:
            entry = kinds_of[entry.cause_id]
            way.append(entry.record.kind)
        assert way == [kinds.DELETION_DECIDED, kinds.SCALE_DECIDED, kinds.OWNER_WRITTEN]
        assert entry.record.facts["changed"] == ["template"]

    run_cluster(scenario, DRAINS)


def test_a_deployment_that_is_scaled_in_names_both_sizes_and_the_rank():
    async def scenario(cluster):
        await cluster.create(workload("Deployment", replicas=4))
        await ready(cluster, 4)
        await cluster.patch("deployment/web", {"spec": {"replicas": 2}}, subresource="scale")
        await after(cluster, 2)
        found = endings(cluster)
        assert [each.decided_by.reason for each in found] == ["scaledIn", "scaledIn"]
        assert found[0].decided_by.why.startswith(f"Deployment web was scaled from 4 to 2 by {BY}: ReplicaSet web-")
        assert "goes from 4 to 2 Pods, and this one is number" in found[0].decided_by.why

    run_cluster(scenario, DRAINS)


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "ReplicaSet"])
def test_an_autoscaler_that_scales_in_is_named_with_its_reason(kind):
    async def scenario(cluster):
        await cluster.create(workload(kind, replicas=3, podManagementPolicy="Parallel"))
        await ready(cluster, 3)
        await cluster.create(autoscaler(kind, most=2))
        await after(cluster)
        found = decided(cluster)
        assert found.reason == "scaledIn"
        assert found.why.startswith(
            f"HorizontalPodAutoscaler web-sizes scaled {kind} web from 3 to 2 "
            f"(Current number of replicas above Spec.MaxReplicas): "
        )

    run_cluster(scenario, DRAINS)


def test_a_scale_in_after_a_rollout_is_not_told_as_the_rollout():
    async def scenario(cluster):
        await cluster.create(workload("Deployment", replicas=2))
        await ready(cluster, 2)
        await cluster.patch("deployment/web", NEW_TEMPLATE)
        await after(cluster, 2)
        await ready(cluster, 2)
        before = len(endings(cluster))
        await cluster.patch("deployment/web", {"spec": {"replicas": 1}})
        await after(cluster, before + 1)
        assert endings(cluster)[before].decided_by.why.startswith("Deployment web was scaled from 2 to 1 by")

    run_cluster(scenario, DRAINS)


def test_a_replica_set_of_nobody_that_is_scaled_in():
    async def scenario(cluster):
        await cluster.create(workload("ReplicaSet", replicas=2))
        await ready(cluster, 2)
        await cluster.patch("replicaset/web", {"spec": {"replicas": 1}})
        await after(cluster)
        found = decided(cluster)
        assert found.reason == "scaledIn"
        assert found.why.startswith(f"ReplicaSet web was scaled from 2 to 1 by {BY}: ReplicaSet web goes from 2 to 1")

    run_cluster(scenario, DRAINS)


def test_a_stateful_set_tells_its_update_and_its_scaling_apart():
    async def scenario(cluster):
        await cluster.create(workload("StatefulSet", replicas=2, serviceName="web"))
        await ready(cluster, 2)
        await cluster.patch("statefulset/web", NEW_TEMPLATE)
        await after(cluster, 2)
        await ready(cluster, 2)
        await cluster.patch("statefulset/web", {"spec": {"replicas": 1}})
        await after(cluster, 3)
        found = endings(cluster)
        assert [(each.pod.name, each.decided_by.reason) for each in found] == [
            ("web-1", "rolledOut"),
            ("web-0", "rolledOut"),
            ("web-1", "scaledIn"),
        ]
        assert found[0].decided_by.why.startswith(f"StatefulSet web was changed by {BY}: StatefulSet web rolls out")
        assert found[2].decided_by.why.startswith(f"StatefulSet web was scaled from 2 to 1 by {BY}: ")

    run_cluster(scenario, DRAINS)


def test_a_daemon_set_that_is_rolled_out():
    async def scenario(cluster):
        await cluster.create(workload("DaemonSet"))
        await ready(cluster, 1)
        await cluster.patch("daemonset/web", NEW_TEMPLATE)
        await after(cluster)
        found = decided(cluster)
        assert (found.actor, found.reason) == ("daemonset-controller", "rolledOut")
        assert found.why.startswith(f"DaemonSet web was changed by {BY}: DaemonSet web rolls out revision")

    run_cluster(scenario, DRAINS)


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_a_deleted_owner_is_told_with_everything_between_it_and_the_pod(propagation):
    async def scenario(cluster):
        await cluster.create(workload("Deployment", replicas=1))
        await ready(cluster, 1)
        (replica_set,) = (await cluster.client.list(REPLICASETS, cluster.namespace)).items
        await cluster.delete("deployment/web", propagation=propagation)
        await after(cluster)
        found = decided(cluster)
        assert (found.actor, found.reason) == ("garbage-collector-controller", "ownerDeleted")
        assert found.why == (
            f"Deployment web was deleted by {BY}: that removed ReplicaSet {name_of(replica_set)} and this Pod"
        )

    run_cluster(scenario, DRAINS)


def test_a_deleted_namespace():
    async def scenario(cluster):
        await cluster.create(pod_manifest())
        await cluster.wait_ready()
        await cluster.delete("namespace/shop")
        await after(cluster)
        found = decided(cluster)
        assert found.reason == "namespaceDeleted"
        assert found.why == f"Namespace shop was deleted by {BY}"

    run_cluster(scenario, DRAINS, namespace="shop")


def test_an_eviction_says_who_asked_and_what_the_budget_said():
    async def scenario(cluster):
        await cluster.create(pod_manifest())
        await cluster.wait_ready()
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"}}
        await cluster.client.create(PODS, body, cluster.namespace, name="p", subresource="eviction")
        await after(cluster)
        found = decided(cluster)
        assert (found.reason, found.user) == ("evicted", ADMIN)
        assert found.why == f"it was evicted by {BY}: no PodDisruptionBudget selects it"

    run_cluster(scenario, DRAINS)


def test_a_taint_of_the_node():
    async def scenario(cluster):
        await cluster.create(pod_manifest())
        await cluster.wait_ready()
        taint = {"key": "maintenance", "value": "now", "effect": "NoExecute"}
        await cluster.client.patch(NODES, "node-1", {"spec": {"taints": [taint]}})
        await after(cluster)
        found = decided(cluster)
        assert (found.actor, found.reason) == ("taint-eviction-controller", "tainted")
        assert found.why.startswith("it was evicted from node-1 by its taint maintenance=now:NoExecute")

    run_cluster(scenario, DRAINS)


def test_a_pod_of_higher_priority():
    def asks(name: str, priority: int) -> Object:
        resources = {"requests": {"cpu": "1500m"}}
        return pod_manifest(
            name,
            containers=[{"name": "app", "image": "app:1", "resources": resources}],
            priorityClassName="high" if priority else "",
        )

    async def scenario(cluster):
        high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}}
        await cluster.create(high | {"value": 1000})
        await cluster.create(asks("p", 0))
        await cluster.wait_ready()
        await cluster.create(asks("vip", 1000))
        await after(cluster)
        found = decided(cluster)
        assert (found.actor, found.reason) == ("scheduler", "preempted")
        assert found.why.startswith(f"it was preempted by {cluster.namespace}/vip: it needs cpu")

    run_cluster(scenario, DRAINS)


def test_a_node_that_is_gone():
    async def scenario(cluster):
        await cluster.client.create(NODES, {"metadata": {"name": "dead"}})
        await cluster.create(pod_manifest(nodeName="dead", tolerations=[{"operator": "Exists"}]))
        await cluster.patch("pod/p", {"status": {"phase": "Running"}}, subresource="status")
        await cluster.client.delete(NODES, "dead")
        await cluster.wait_gone()
        found = decided(cluster)
        assert (found.actor, found.reason) == ("pod-garbage-collector-controller", "podGC")
        assert found.why == "its node dead no longer exists"

    run_cluster(scenario)


def job(**spec: Any) -> Object:
    made = workload("Job", api_version="batch/v1", **spec)
    del made["spec"]["selector"]
    made["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    return made


def test_a_job_that_is_suspended_and_one_over_its_deadline():
    async def scenario(cluster):
        await cluster.create(job())
        await ready(cluster, 1)
        await cluster.patch("job/web", {"spec": {"suspend": True}})
        await after(cluster)
        found = decided(cluster)
        assert (found.actor, found.reason) == ("job-controller", "jobSuspended")
        assert found.why == f"Job web was changed by {BY}: Job web is suspended"
        late = job(activeDeadlineSeconds=5)
        late["metadata"]["name"] = "late"
        await cluster.create(late)
        await after(cluster, 2)
        deadline = endings(cluster)[1].decided_by
        assert deadline.reason == "jobFinished"
        assert deadline.why.startswith("Job late ")

    run_cluster(scenario, DRAINS)


def test_a_pod_that_ended_by_itself_before_somebody_deleted_it():
    async def scenario(cluster):
        await cluster.create(pod_manifest(restartPolicy="Never"))
        await cluster.wait_phase("p", "Succeeded")
        await cluster.delete()
        await cluster.wait_gone()
        found = decided(cluster)
        assert (found.actor, found.reason) == ("kubelet", "completed")
        assert found.why.startswith("its containers had ended by themselves")

    run_cluster(scenario, {"app": Program(exits_after=1)})


def test_writes_of_owners_are_recorded_once_for_each_change_of_what_they_ask_for():
    async def scenario(cluster):
        (created,) = await cluster.create(workload("Deployment", replicas=2))
        await ready(cluster, 2)
        await cluster.patch("deployment/web", {"metadata": {"annotations": {"a": "b"}}})
        await cluster.patch("deployment/web", {"spec": {"replicas": 3}})
        await ready(cluster, 3)
        own = [r for r in cluster.records(kinds.OWNER_WRITTEN) if r.facts["uid"] == uid_of(created)]
        assert [r.facts["changed"] for r in own] == [[], ["replicas"]]
        stored = await cluster.client.get(DEPLOYMENTS, "web", cluster.namespace)
        assert own[-1].facts["generation"] == stored["metadata"]["generation"]

    run_cluster(scenario, DRAINS)
