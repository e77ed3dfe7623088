"""StatefulSets on a virtual cluster: order, identity, updates."""

import pytest
from virtual_cluster import VirtualCluster, run_cluster
from workloads import events_about, listed, most_at_once, pods, template, workload

from lastcall.kube.api.meta import is_terminating, labels_of, name_of
from lastcall.kube.api.pods.spec import is_pod_ready
from lastcall.kube.api.resources import CONTROLLERREVISIONS, EVENTS, PERSISTENTVOLUMECLAIMS, PODS, STATEFULSETS
from lastcall.kube.cri.simulated_program import Program
from lastcall.records import kinds

DRAINS = {"app": Program(drain_seconds=2)}


def stateful(**spec):
    return workload("StatefulSet", serviceName="web", **spec)


async def settled(cluster: VirtualCluster) -> bool:
    owner = await cluster.client.get(STATEFULSETS, "web", cluster.namespace)
    status, wanted = owner.get("status") or {}, owner["spec"]["replicas"]
    counts = [status.get(key, 0) for key in ("replicas", "readyReplicas", "updatedReplicas", "availableReplicas")]
    return counts == [wanted] * 4 and status["observedGeneration"] == owner["metadata"]["generation"]


def happened(cluster: VirtualCluster) -> list[str]:
    """Pods made (+) and marked for deletion (-), in order."""
    found: dict[str, None] = {}
    for seen in cluster.history[PODS]:
        uid = seen.object["metadata"]["uid"]
        if seen.type == "ADDED":
            found[f"+{seen.name} {uid}"] = None
        if is_terminating(seen.object):
            found[f"-{seen.name} {uid}"] = None
        if seen.type == "DELETED":
            found[f"x{seen.name} {uid}"] = None
    return [each.split()[0] for each in found]


def test_pods_come_one_after_the_other_and_each_waits_for_the_one_before():
    async def scenario(cluster):
        await cluster.create(stateful(replicas=3))
        await cluster.wait_until_async(lambda: settled(cluster))
        assert happened(cluster) == ["+web-0", "+web-1", "+web-2"]
        for before, after in (("web-0", "web-1"), ("web-1", "web-2")):
            ready_at = next(v.at for v in cluster.versions(before) if is_pod_ready(v.object))
            assert cluster.versions(after)[0].at >= ready_at
        pod = await cluster.client.get(PODS, "web-1", "default")
        assert pod["spec"]["hostname"] == "web-1"
        assert pod["spec"]["subdomain"] == "web"
        labels = labels_of(pod)
        assert labels["statefulset.kubernetes.io/pod-name"] == "web-1"
        assert labels["apps.kubernetes.io/pod-index"] == "1"
        assert labels["controller-revision-hash"].startswith("web-")
        assert events_about(cluster, "web") == [
            f"SuccessfulCreate: Create Pod web-{number} in StatefulSet web successful" for number in range(3)
        ]
        owner = await cluster.client.get(STATEFULSETS, "web", "default")
        revision = owner["status"]["updateRevision"]
        assert owner["status"] == {
            "observedGeneration": 1, "replicas": 3, "readyReplicas": 3, "currentReplicas": 3, "updatedReplicas": 3,
            "currentRevision": revision, "updateRevision": revision, "collisionCount": 0, "availableReplicas": 3,
        }  # fmt: skip

    run_cluster(scenario, DRAINS)


def test_a_name_is_made_again_only_when_its_object_is_gone():
    async def scenario(cluster):
        await cluster.create(stateful(replicas=2))
        await cluster.wait_until_async(lambda: settled(cluster))
        await cluster.delete("pod/web-0")
        await cluster.wait_gone("web-0")
        await cluster.wait_until_async(lambda: settled(cluster))
        assert happened(cluster) == ["+web-0", "+web-1", "-web-0", "xweb-0", "+web-0"]
        assert most_at_once(cluster, lambda pod: name_of(pod) == "web-0") == 1

    run_cluster(scenario, DRAINS)


def test_scaling_in_takes_the_highest_ordinal_and_waits_for_each():
    async def scenario(cluster):
        await cluster.create(stateful(replicas=3))
        await cluster.wait_until_async(lambda: settled(cluster))
        await cluster.patch("statefulset/web", {"spec": {"replicas": 1}})
        await cluster.wait_until_async(lambda: settled(cluster))
        assert happened(cluster)[3:] == ["-web-2", "xweb-2", "-web-1", "xweb-1"]
        why = [record.facts["why"] for record in cluster.records(kinds.DELETION_DECIDED)]
        assert why == ["StatefulSet web scales to 1, the highest ordinal goes first"] * 2

    run_cluster(scenario, DRAINS)


def test_in_parallel_nobody_waits():
    async def scenario(cluster):
        await cluster.create(stateful(replicas=3, podManagementPolicy="Parallel"))
        await cluster.wait_until_async(lambda: settled(cluster))
        await cluster.patch("statefulset/web", {"spec": {"replicas": 0}})
        await cluster.wait_until_async(lambda: settled(cluster))
        assert set(happened(cluster)[3:6]) == {"-web-0", "-web-1", "-web-2"}

    run_cluster(scenario, DRAINS)


def test_an_update_goes_from_the_highest_ordinal_down_one_at_a_time():
    async def scenario(cluster):
        await cluster.create(stateful(replicas=3))
        await cluster.wait_until_async(lambda: settled(cluster))
        await cluster.patch("statefulset/web", {"spec": {"template": template("app:2")}})
        await cluster.wait_until_async(lambda: settled(cluster))
        expected = [f"{mark}web-{number}" for number in (2, 1, 0) for mark in "-x+"]
        assert happened(cluster)[3:] == expected
        assert {pod["spec"]["containers"][0]["image"] for pod in await pods(cluster)} == {"app:2"}
        assert len(await listed(cluster, CONTROLLERREVISIONS)) == 2
        await cluster.wait_until_async(lambda: current(cluster))

    async def current(cluster) -> bool:
        status = (await cluster.client.get(STATEFULSETS, "web", "default"))["status"]
        return status["currentRevision"] == status["updateRevision"]

    run_cluster(scenario, DRAINS)


def test_a_partition_keeps_the_low_ordinals_as_they_are_also_when_they_are_made_anew():
    async def scenario(cluster):
        await cluster.create(stateful(replicas=3))
        await cluster.wait_until_async(lambda: settled(cluster))
        update = {"updateStrategy": {"rollingUpdate": {"partition": 2}}, "template": template("app:2")}
        await cluster.patch("statefulset/web", {"spec": update})
        await cluster.sleep(20)
        await cluster.delete("pod/web-0")
        await cluster.sleep(20)
        images = {name_of(pod): pod["spec"]["containers"][0]["image"] for pod in await pods(cluster)}
        assert images == {"web-0": "app:1", "web-1": "app:1", "web-2": "app:2"}

    run_cluster(scenario, DRAINS)


def test_on_delete_leaves_the_update_to_the_user():
    async def scenario(cluster):
        await cluster.create(stateful(replicas=2, updateStrategy={"type": "OnDelete"}))
        await cluster.wait_until_async(lambda: settled(cluster))
        await cluster.patch("statefulset/web", {"spec": {"template": template("app:2")}})
        await cluster.sleep(20)
        assert {pod["spec"]["containers"][0]["image"] for pod in await pods(cluster)} == {"app:1"}
        await cluster.delete("pod/web-1")
        await cluster.sleep(20)
        images = {name_of(pod): pod["spec"]["containers"][0]["image"] for pod in await pods(cluster)}
        assert images == {"web-0": "app:1", "web-1": "app:2"}

    run_cluster(scenario, DRAINS)


@pytest.mark.parametrize("exit_code", [0, 1])
def test_a_pod_that_has_ended_is_deleted_and_made_again(exit_code):
    async def scenario(cluster):
        await cluster.create(stateful(replicas=1))
        await cluster.wait_until_async(lambda: settled(cluster))
        first = cluster.uid("web-0")
        phase = "Failed" if exit_code else "Succeeded"
        await cluster.patch("pod/web-0", {"status": {"phase": phase}}, subresource="status")

        async def anew() -> bool:
            found = await pods(cluster)
            return bool(found) and found[0]["metadata"]["uid"] != first and is_pod_ready(found[0])

        await cluster.wait_until_async(anew)

    run_cluster(scenario, DRAINS)


def test_each_identity_has_its_own_claims():
    async def scenario(cluster):
        claim = {"metadata": {"name": "data"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}  # fmt: skip
        await cluster.create(stateful(replicas=1, volumeClaimTemplates=[claim]))
        await cluster.sleep(2)
        (made,) = await listed(cluster, PERSISTENTVOLUMECLAIMS)
        assert name_of(made) == "data-web-0"
        (pod,) = await pods(cluster)
        assert {"name": "data", "persistentVolumeClaim": {"claimName": "data-web-0"}} in pod["spec"]["volumes"]

    run_cluster(scenario, DRAINS)


def test_a_converged_set_is_left_alone_and_old_revisions_are_forgotten():
    async def scenario(cluster):
        await cluster.create(stateful(replicas=1, revisionHistoryLimit=1))
        for number in range(2, 6):
            await cluster.wait_until_async(lambda: settled(cluster))
            await cluster.patch("statefulset/web", {"spec": {"template": template(f"app:{number}")}})
        await cluster.wait_until_async(lambda: settled(cluster))
        await cluster.sleep(60)
        assert [each["revision"] for each in await listed(cluster, CONTROLLERREVISIONS)] in ([4, 5], [5, 4])
        version = (await listed(cluster, STATEFULSETS))[0]["metadata"]["resourceVersion"]
        events = len(cluster.history[EVENTS])
        await cluster.sleep(3600)
        assert (await listed(cluster, STATEFULSETS))[0]["metadata"]["resourceVersion"] == version
        assert len(cluster.history[EVENTS]) == events

    run_cluster(scenario, DRAINS)


def test_what_a_quota_refuses_is_told_with_a_capital_verb_as_1_36_has_it():
    async def scenario(cluster):
        quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}}
        await cluster.create({**quota, "spec": {"hard": {"pods": "1", "persistentvolumeclaims": "1"}}})
        await cluster.sleep(1)
        claim = {"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
        claim["spec"]["resources"] = {"requests": {"storage": "1Mi"}}
        await cluster.create(workload("StatefulSet", name="plain", replicas=2))
        await cluster.sleep(2)
        await cluster.create(
            workload(
                "StatefulSet",
                name="kept",
                replicas=1,
                volumeClaimTemplates=[claim, {**claim, "metadata": {"name": "more"}}],
            )
        )
        await cluster.sleep(2)
        refused = "is forbidden: exceeded quota: q, requested: {0}=1, used: {0}=1, limited: {0}=1"
        pods_refused, claims_refused = refused.format("pods"), refused.format("persistentvolumeclaims")
        assert (
            f'FailedCreate: Create Pod plain-1 in StatefulSet plain failed error: pods "plain-1" {pods_refused}'
        ) in events_about(cluster, "plain")
        told = events_about(cluster, "kept")
        assert "SuccessfulCreate: Create Claim data-kept-0 Pod kept-0 in StatefulSet kept success" in told
        error = f'persistentvolumeclaims "more-kept-0" {claims_refused}'
        text = "FailedCreate: Create Claim more-kept-0 for Pod kept-0 in StatefulSet kept failed error: "
        assert text + error in told
        text = "FailedCreate: Create Pod kept-0 in StatefulSet kept failed error: failed to create PVC more-kept-0: "
        assert text + error in told

    run_cluster(scenario)


@pytest.mark.parametrize("policy", ["OrderedReady", "Parallel"])
def test_a_set_that_wants_more_pods_than_there_can_be_costs_no_more_than_those_there_are(policy: str) -> None:
    async def scenario(cluster):
        quota = {"kind": "ResourceQuota", "metadata": {"name": "bound"}, "spec": {"hard": {"pods": "6"}}}
        await cluster.create(quota)
        await cluster.create(stateful(replicas=2**31 - 1, podManagementPolicy=policy))
        await cluster.wait_until(lambda: len(cluster.last_of_each_pod()) == 6)
        await cluster.client.delete(STATEFULSETS, "web", cluster.namespace)
        await cluster.wait_until(lambda: not cluster.last_of_each_pod())

    run_cluster(scenario, DRAINS)


async def rolled_out(cluster: VirtualCluster, version: str = "2") -> list[str]:
    """What happened to the Pods after the set of three got another template."""
    await cluster.wait_until_async(lambda: settled(cluster))
    before = len(happened(cluster))
    template_ = {"metadata": {"annotations": {"version": version}}}
    await cluster.patch("statefulset/web", {"spec": {"template": template_}})
    await cluster.wait_until_async(lambda: settled(cluster))
    return happened(cluster)[before:]


@pytest.mark.parametrize(
    ("version", "begins"),
    [("1.36", ["-web-2", "xweb-2", "+web-2"]), ("1.37", ["-web-2", "-web-1"])],
)
def test_max_unavailable_is_of_1_37_by_default(version, begins):
    """(kubernetes#139466)"""
    update = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}}

    async def scenario(cluster):
        await cluster.create(stateful(replicas=3, updateStrategy=update))
        done = await rolled_out(cluster)
        assert done[: len(begins)] == begins
        owner = await cluster.client.get(STATEFULSETS, "web", "default")
        kept = owner["spec"]["updateStrategy"]["rollingUpdate"].get("maxUnavailable")
        assert kept == (2 if version == "1.37" else None)

    run_cluster(scenario, DRAINS, kubernetes_version=version)


def test_a_set_with_recreate_ends_all_its_pods_before_it_makes_the_first():
    """(KEP-3541, behind the gate StatefulSetRecreateStrategy of 1.37)"""

    async def scenario(cluster):
        await cluster.create(stateful(replicas=3, updateStrategy={"type": "Recreate"}))
        done = await rolled_out(cluster)
        assert sorted(done[:3]) == ["-web-0", "-web-1", "-web-2"]
        assert sorted(done[3:6]) == ["xweb-0", "xweb-1", "xweb-2"]
        assert done[6:] == ["+web-0", "+web-1", "+web-2"]

    gates = {"StatefulSetRecreateStrategy": True}
    run_cluster(scenario, DRAINS, kubernetes_version="1.37", feature_gates=gates)


@pytest.mark.parametrize(("version", "becomes_current"), [("1.36", False), ("1.37", True)])
def test_a_set_whose_pods_users_delete_gets_its_current_revision_since_1_37(version, becomes_current):
    """(kubernetes#136833)"""

    async def scenario(cluster):
        await cluster.create(stateful(replicas=1, updateStrategy={"type": "OnDelete"}))
        await cluster.wait_until_async(lambda: settled(cluster))
        await cluster.patch("statefulset/web", {"spec": {"template": {"metadata": {"annotations": {"a": "b"}}}}})
        await cluster.delete("pod/web-0")
        await cluster.wait_until_async(lambda: settled(cluster))
        await cluster.sleep(5)
        status = (await cluster.client.get(STATEFULSETS, "web", "default"))["status"]
        assert (status["currentRevision"] == status["updateRevision"]) is becomes_current

    run_cluster(scenario, DRAINS, kubernetes_version=version)
