"""Deployments and ReplicaSets on a virtual cluster."""

import pytest
from virtual_cluster import VirtualCluster, run_cluster
from workloads import events_about, fewest_at_once, listed, most_at_once, pods, template, workload

from lastcall.kube.api.meta import is_terminating, labels_of, name_of
from lastcall.kube.api.pods.spec import is_pod_ready
from lastcall.kube.api.resources import DEPLOYMENTS, EVENTS, PODS, REPLICASETS, REPLICATIONCONTROLLERS
from lastcall.kube.controllers.pods.control import is_pod_active
from lastcall.kube.cri.simulated_program import Program
from lastcall.records import kinds

REVISION = "deployment.kubernetes.io/revision"
DRAINS = {"app": Program(drain_seconds=2)}


async def complete(cluster: VirtualCluster, name: str = "web") -> bool:
    obj = await cluster.client.get(DEPLOYMENTS, name, cluster.namespace)
    status, wanted = obj.get("status") or {}, obj["spec"]["replicas"]
    counts = [status.get(key, 0) for key in ("replicas", "updatedReplicas", "availableReplicas")]
    return counts == [wanted] * 3 and status["observedGeneration"] == obj["metadata"]["generation"]


def test_a_deployment_makes_a_replica_set_that_makes_the_pods():
    async def scenario(cluster):
        await cluster.create(workload("Deployment", replicas=3))
        await cluster.wait_until_async(lambda: complete(cluster))
        (replica_set,) = await listed(cluster, REPLICASETS)
        assert name_of(replica_set).startswith("web-")
        assert replica_set["metadata"]["annotations"] == {
            "deployment.kubernetes.io/desired-replicas": "3",
            "deployment.kubernetes.io/max-replicas": "4",
            "deployment.kubernetes.io/revision": "1",
        }
        made = await pods(cluster)
        assert len(made) == 3
        assert all(name_of(pod).startswith(f"{name_of(replica_set)}-") for pod in made)
        assert all(labels_of(pod)["pod-template-hash"] in name_of(replica_set) for pod in made)
        assert events_about(cluster, "web") == [
            f"ScalingReplicaSet: Scaled up replica set {name_of(replica_set)} from 0 to 3"
        ]
        deployment = await cluster.client.get(DEPLOYMENTS, "web", "default")
        assert deployment["metadata"]["annotations"] == {"deployment.kubernetes.io/revision": "1"}
        assert [(c["type"], c["status"], c["reason"]) for c in deployment["status"]["conditions"]] == [
            ("Available", "True", "MinimumReplicasAvailable"),
            ("Progressing", "True", "NewReplicaSetAvailable"),
        ]

    run_cluster(scenario, DRAINS)


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "most", "fewest"),
    [(4, "25%", "25%", 5, 3), (3, 1, 0, 4, 3), (3, 0, 1, 3, 2), (5, "50%", "50%", 8, 3), (1, "25%", "25%", 2, 1)],
)
def test_a_rolling_update_stays_within_surge_and_unavailable(replicas, surge, unavailable, most, fewest):
    async def scenario(cluster):
        strategy = {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
        await cluster.create(workload("Deployment", replicas=replicas, strategy=strategy))
        await cluster.wait_until_async(lambda: complete(cluster))
        begin = cluster.now
        await cluster.patch("deployment/web", {"spec": {"template": template("app:2")}})
        await cluster.wait_until_async(lambda: complete(cluster))
        assert most_at_once(cluster, is_pod_active) == most
        assert fewest_at_once(cluster, lambda pod: is_pod_active(pod) and is_pod_ready(pod), begin) == fewest
        await cluster.sleep(10)
        assert {pod["spec"]["containers"][0]["image"] for pod in await pods(cluster)} == {"app:2"}
        old, new = sorted(await listed(cluster, REPLICASETS), key=lambda rs: rs["spec"]["replicas"])
        assert (old["spec"]["replicas"], new["spec"]["replicas"]) == (0, replicas)
        assert new["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "2"

    run_cluster(scenario, DRAINS)


def test_a_replacement_does_not_wait_for_the_end_of_the_pod_it_replaces():
    async def scenario(cluster):
        await cluster.create(workload("ReplicaSet", replicas=2))
        await cluster.wait_until_async(lambda: ready(cluster, 2))
        first = name_of((await pods(cluster))[0])
        at = cluster.now
        await cluster.delete(f"pod/{first}")
        await cluster.wait_until(lambda: len(cluster._versions) == 3)
        assert cluster.now - at < 1
        await cluster.wait_gone(first)
        assert cluster.gone_at(first) - at >= 2
        replica_set = (await listed(cluster, REPLICASETS))[0]
        assert replica_set["status"] == {
            "replicas": 2, "fullyLabeledReplicas": 2, "readyReplicas": 2, "availableReplicas": 2,
            "terminatingReplicas": 0, "observedGeneration": 1,
        }  # fmt: skip

    run_cluster(scenario, DRAINS)


async def ready(cluster: VirtualCluster, count: int) -> bool:
    return sum(is_pod_ready(pod) and is_pod_active(pod) for pod in await pods(cluster)) == count


def test_recreate_ends_the_old_pods_before_it_starts_new_ones():
    async def scenario(cluster):
        await cluster.create(workload("Deployment", replicas=3, strategy={"type": "Recreate"}))
        await cluster.wait_until_async(lambda: complete(cluster))
        await cluster.patch("deployment/web", {"spec": {"template": template("app:2")}})
        await cluster.wait_until_async(lambda: complete(cluster))
        new_at = min(
            seen.at for seen in cluster.history[PODS] if seen.object["spec"]["containers"][0]["image"] == "app:2"
        )
        for seen in cluster.history[PODS]:
            if seen.object["spec"]["containers"][0]["image"] == "app:1" and seen.at > new_at:
                assert seen.object["status"]["phase"] == "Succeeded"
        assert most_at_once(cluster, is_pod_active) == 3

    run_cluster(scenario, DRAINS)


def test_a_rollout_that_gets_nowhere_says_so_at_its_deadline_and_undo_brings_the_old_revision_back():
    async def scenario(cluster):
        await cluster.create(workload("Deployment", replicas=2, progressDeadlineSeconds=10))
        await cluster.wait_until_async(lambda: complete(cluster))
        bad = template("app:2")
        bad["spec"]["containers"][0]["readinessProbe"] = {"exec": {"command": ["false"]}, "periodSeconds": 1}
        await cluster.patch("deployment/web", {"spec": {"template": bad}})
        await cluster.sleep(15)
        conditions = (await cluster.client.get(DEPLOYMENTS, "web", "default"))["status"]["conditions"]
        progressing = next(each for each in conditions if each["type"] == "Progressing")
        assert (progressing["status"], progressing["reason"]) == ("False", "ProgressDeadlineExceeded")
        good = template("app:1")
        good["spec"]["containers"][0]["readinessProbe"] = None
        await cluster.patch("deployment/web", {"spec": {"template": good}})
        await cluster.wait_until_async(lambda: complete(cluster))
        sets = {
            rs["spec"]["template"]["spec"]["containers"][0]["image"]: rs for rs in await listed(cluster, REPLICASETS)
        }
        assert len(sets) == 2
        annotations = sets["app:1"]["metadata"]["annotations"]
        assert annotations["deployment.kubernetes.io/revision"] == "3"
        assert annotations["deployment.kubernetes.io/revision-history"] == "1"

    run_cluster(scenario, {"app": Program(drain_seconds=2)})


def test_scaling_during_a_rollout_shares_out_and_a_paused_deployment_only_scales():
    async def scenario(cluster):
        await cluster.create(workload("Deployment", replicas=4))
        await cluster.wait_until_async(lambda: complete(cluster))
        await cluster.patch("deployment/web", {"spec": {"paused": True, "template": template("app:2")}})
        await cluster.sleep(5)
        assert len(await listed(cluster, REPLICASETS)) == 1
        await cluster.patch("deployment/web", {"spec": {"replicas": 6}})
        await cluster.wait_until_async(lambda: ready(cluster, 6))
        conditions = (await cluster.client.get(DEPLOYMENTS, "web", "default"))["status"]["conditions"]
        assert ("Progressing", "Unknown", "DeploymentPaused") in [
            (each["type"], each["status"], each["reason"]) for each in conditions
        ]
        await cluster.patch("deployment/web", {"spec": {"paused": False}})
        await cluster.wait_until_async(lambda: complete(cluster))
        assert {pod["spec"]["containers"][0]["image"] for pod in await pods(cluster) if is_pod_active(pod)} == {"app:2"}

    run_cluster(scenario, DRAINS)


def test_a_scale_in_says_why_it_picked_each_pod():
    async def scenario(cluster):
        await cluster.create(workload("ReplicaSet", replicas=3))
        await cluster.wait_until_async(lambda: ready(cluster, 3))
        cheap = name_of((await pods(cluster))[1])
        cost = {"controller.kubernetes.io/pod-deletion-cost": "-1"}
        await cluster.patch(f"pod/{cheap}", {"metadata": {"annotations": cost}})
        await cluster.patch("replicaset/web", {"spec": {"replicas": 2}})
        await cluster.wait_gone(cheap)
        (decided,) = cluster.records(kinds.DELETION_DECIDED)
        assert decided.pod_uid == cluster.uid(cheap)
        assert decided.facts["reason"] == "lower pod-deletion-cost"
        assert (decided.facts["rank"], decided.facts["candidates"]) == (1, 3)
        assert decided.facts["why"].startswith("ReplicaSet web goes from 3 to 2 Pods, and this one is number 1 to go")

    run_cluster(scenario, DRAINS)


def test_orphans_that_match_are_adopted_and_pods_whose_labels_change_are_let_go():
    async def scenario(cluster):
        orphan = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "lone"}, "spec": template()["spec"]}
        orphan["metadata"]["labels"] = {"app": "web"}
        await cluster.create(orphan)
        await cluster.wait_ready("lone")
        await cluster.create(workload("ReplicaSet", replicas=2))
        await cluster.wait_until_async(lambda: ready(cluster, 2))
        assert len(await pods(cluster)) == 2
        lone = await cluster.client.get(PODS, "lone", "default")
        assert lone["metadata"]["ownerReferences"][0]["name"] == "web"
        await cluster.patch("pod/lone", {"metadata": {"labels": {"app": "other"}}})
        await cluster.wait_until_async(lambda: ready(cluster, 3))
        lone = await cluster.client.get(PODS, "lone", "default")
        assert "ownerReferences" not in lone["metadata"]

    run_cluster(scenario, DRAINS)


def test_a_replication_controller_counts_as_a_replica_set_does():
    async def scenario(cluster):
        spec = {"replicas": 2, "template": template()}
        await cluster.create(
            {"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "rc"}, "spec": spec}
        )
        await cluster.wait_until_async(lambda: ready(cluster, 2))
        await cluster.sleep(1)
        controller = await cluster.client.get(REPLICATIONCONTROLLERS, "rc", "default")
        assert controller["status"]["readyReplicas"] == 2
        assert "terminatingReplicas" not in controller["status"]

    run_cluster(scenario, DRAINS)


def test_a_converged_deployment_is_left_alone():
    async def scenario(cluster):
        await cluster.create(workload("Deployment", replicas=3))
        await cluster.wait_until_async(lambda: complete(cluster))
        await cluster.sleep(30)
        before = [obj["metadata"]["resourceVersion"] for obj in await listed(cluster, DEPLOYMENTS)]
        events = len(cluster.history[EVENTS])
        await cluster.sleep(3600)
        assert [obj["metadata"]["resourceVersion"] for obj in await listed(cluster, DEPLOYMENTS)] == before
        assert len(cluster.history[EVENTS]) == events

    run_cluster(scenario, DRAINS)


def test_only_pods_that_are_ready_for_long_enough_count_as_available():
    async def scenario(cluster):
        await cluster.create(workload("Deployment", replicas=2, minReadySeconds=10))
        await cluster.wait_until_async(lambda: ready(cluster, 2))
        status = (await cluster.client.get(DEPLOYMENTS, "web", "default"))["status"]
        assert status.get("availableReplicas", 0) == 0
        at = cluster.now
        await cluster.wait_until_async(lambda: complete(cluster))
        assert 8 <= cluster.now - at <= 12

    run_cluster(scenario, DRAINS)


def test_a_rollback_numbers_replica_set_and_deployment_before_it_shows_in_the_status():
    """Each of `getNewReplicaSet`'s two writes makes the rest of a real sync conflict, so that the status comes last."""

    async def scenario(cluster):
        await cluster.create(workload("Deployment", replicas=1))
        await cluster.wait_until_async(lambda: complete(cluster))
        for image in ("app:2", "app:1"):
            (container,) = template(image)["spec"]["containers"]
            await cluster.patch("deployment/web", {"spec": {"template": {"spec": {"containers": [container]}}}})
            await cluster.wait_until_async(lambda: complete(cluster))
        seen = [
            (each.object["status"]["observedGeneration"], each.object["metadata"]["annotations"][REVISION])
            for each in cluster.history[DEPLOYMENTS]
            if each.object["metadata"]["generation"] == 3
        ]
        assert list(dict.fromkeys(seen)) == [(2, "2"), (2, "3"), (3, "3")]

    run_cluster(scenario, DRAINS, watched=(DEPLOYMENTS,))


def test_a_rollout_over_another_one_lets_the_middle_revision_go_first():
    async def scenario(cluster):
        await cluster.create(workload("Deployment", replicas=4))
        await cluster.wait_until_async(lambda: complete(cluster))
        slow = template("app:2", ready_after=600)
        await cluster.patch("deployment/web", {"spec": {"template": slow}})
        await cluster.sleep(5)
        third = template("app:3")
        third["spec"]["containers"][0]["readinessProbe"] = None
        await cluster.patch("deployment/web", {"spec": {"template": third}})
        await cluster.wait_until_async(lambda: complete(cluster))
        await cluster.sleep(40)
        left = await pods(cluster)
        assert {pod["spec"]["containers"][0]["image"] for pod in left} == {"app:3"}
        assert not any(is_terminating(pod) for pod in left)

    run_cluster(scenario, DRAINS)
