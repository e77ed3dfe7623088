"""What becomes of the objects of an owner that is deleted: background, foreground, orphaned, in circles."""

import pytest
from virtual_cluster import VirtualCluster, run_cluster
from workloads import events_about, listed, pods, workload

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import is_terminating, name_of
from lastcall.kube.api.pods.spec import is_pod_ready
from lastcall.kube.api.resources import CONFIGMAPS, DEPLOYMENTS, PODS, REPLICASETS
from lastcall.kube.cri.simulated_program import Program
from lastcall.records import kinds

DRAINS = {"app": Program(drain_seconds=3)}


async def deployed(cluster: VirtualCluster) -> None:
    await cluster.create(workload("Deployment", replicas=2))

    async def ready() -> bool:
        return sum(map(is_pod_ready, await pods(cluster))) == 2

    await cluster.wait_until_async(ready)


async def nothing_left(cluster: VirtualCluster) -> bool:
    return not [obj for kind in (DEPLOYMENTS, REPLICASETS, PODS) for obj in await listed(cluster, kind)]


def test_in_the_background_the_owner_goes_first_and_its_pods_end_gracefully():
    async def scenario(cluster):
        await deployed(cluster)
        names = [name_of(pod) for pod in await pods(cluster)]
        at = cluster.now
        await cluster.delete("deployment/web", propagation="Background")
        assert await listed(cluster, DEPLOYMENTS) == []
        await cluster.wait_until_async(lambda: nothing_left(cluster))
        assert 3 <= cluster.now - at < 5
        for name in names:
            assert [v.object["status"]["phase"] for v in cluster.versions(name)][-1] == "Succeeded"
        decided = cluster.records(kinds.DELETION_DECIDED)
        (why,) = {record.facts["why"] for record in decided}
        assert len(decided) == 2
        assert why.startswith("its owner is gone: ReplicaSet web-")
        assert why.endswith(", which Deployment web had owned")

    run_cluster(scenario, DRAINS)


def test_in_the_foreground_the_owner_stays_until_its_pods_have_ended():
    async def scenario(cluster):
        await deployed(cluster)
        at = cluster.now
        answer = await cluster.delete("deployment/web", propagation="Foreground")
        assert answer["metadata"]["finalizers"] == ["foregroundDeletion"]
        await cluster.sleep(2)
        assert is_terminating((await listed(cluster, DEPLOYMENTS))[0])
        assert is_terminating((await listed(cluster, REPLICASETS))[0])
        assert all(is_terminating(pod) for pod in await pods(cluster))
        await cluster.wait_until_async(lambda: nothing_left(cluster))
        assert 3 <= cluster.now - at < 5

    run_cluster(scenario, DRAINS)


def test_orphaned_dependents_stay_and_belong_to_nobody():
    async def scenario(cluster):
        await deployed(cluster)
        await cluster.delete("deployment/web", propagation="Orphan")

        async def gone() -> bool:
            return not await listed(cluster, DEPLOYMENTS)

        await cluster.wait_until_async(gone)
        await cluster.sleep(5)
        (replica_set,) = await listed(cluster, REPLICASETS)
        assert "ownerReferences" not in replica_set["metadata"]
        assert len(await pods(cluster)) == 2
        assert not any(map(is_terminating, await pods(cluster)))

    run_cluster(scenario, DRAINS)


def config_map(name, *owners, **meta):
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "ownerReferences": list(owners), **meta} if owners else {"name": name, **meta},
    }


def reference(owner, **more):
    return {"apiVersion": "v1", "kind": "ConfigMap", "name": name_of(owner), "uid": owner["metadata"]["uid"], **more}


async def names(cluster: VirtualCluster) -> list[str]:
    return sorted(name_of(obj) for obj in await listed(cluster, CONFIGMAPS) if name_of(obj) != "kube-root-ca.crt")


def test_an_object_whose_owner_never_was_is_collected():
    async def scenario(cluster):
        ghost = {"apiVersion": "v1", "kind": "ConfigMap", "name": "ghost", "uid": "no-such-uid"}
        await cluster.create(config_map("a", ghost))
        await cluster.sleep(1)
        assert await names(cluster) == []

    run_cluster(scenario)


def test_with_one_of_two_owners_left_only_the_dangling_reference_goes():
    async def scenario(cluster):
        one, two = await cluster.create(config_map("one"), config_map("two"))
        await cluster.create(config_map("child", reference(one), reference(two)))
        await cluster.delete("configmap/one")
        await cluster.sleep(1)
        assert await names(cluster) == ["child", "two"]
        child = await cluster.client.get(CONFIGMAPS, "child", "default")
        assert child["metadata"]["ownerReferences"] == [reference(two)]
        await cluster.delete("configmap/two")
        await cluster.sleep(1)
        assert await names(cluster) == []

    run_cluster(scenario)


def test_an_owner_of_the_same_name_and_another_uid_is_no_owner():
    async def scenario(cluster):
        (owner,) = await cluster.create(config_map("owner"))
        await cluster.create(config_map("child", {**reference(owner), "uid": "another"}))
        await cluster.sleep(1)
        assert await names(cluster) == ["owner"]

    run_cluster(scenario)


def test_an_owner_in_another_namespace_counts_as_absent_and_an_event_says_so():
    async def scenario(cluster):
        await cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
        await cluster.sleep(1)
        (owner,) = await cluster.create(config_map("owner", namespace="shop"))
        await cluster.create(config_map("child", reference(owner)))
        await cluster.sleep(1)
        assert await names(cluster) == []
        (event,) = events_about(cluster, "child")
        uid = owner["metadata"]["uid"]
        assert event == (
            f"OwnerRefInvalidNamespace: ownerRef [v1/ConfigMap, namespace: default, name: owner, uid: {uid}] "
            'does not exist in namespace "default"'
        )

    run_cluster(scenario)


def test_an_owner_of_a_kind_that_is_not_served_keeps_its_dependent():
    async def scenario(cluster):
        strange = {"apiVersion": "example.com/v1", "kind": "Gizmo", "name": "g", "uid": "u"}
        await cluster.create(config_map("child", strange))
        await cluster.sleep(60)
        assert await names(cluster) == ["child"]

    run_cluster(scenario)


@pytest.mark.parametrize("blocks", [True, False])
def test_only_dependents_that_block_hold_a_foreground_deletion(blocks):
    async def scenario(cluster):
        (owner,) = await cluster.create(config_map("owner"))
        child = config_map("child", reference(owner, blockOwnerDeletion=blocks), finalizers=["example.com/hold"])
        await cluster.create(child)
        await cluster.delete("configmap/owner", propagation="Foreground")
        await cluster.sleep(2)
        assert await names(cluster) == (["child", "owner"] if blocks else ["child"])
        await cluster.patch("configmap/child", {"metadata": {"finalizers": None}})
        await cluster.sleep(2)
        assert await names(cluster) == []

    run_cluster(scenario)


def test_a_circle_of_owners_does_not_hold_itself():
    async def scenario(cluster):
        (one,) = await cluster.create(config_map("one"))
        (two,) = await cluster.create(config_map("two", reference(one, blockOwnerDeletion=True)))
        circle = {"metadata": {"ownerReferences": [reference(two, blockOwnerDeletion=True)]}}
        await cluster.patch("configmap/one", circle)
        await cluster.delete("configmap/one", propagation="Foreground")
        await cluster.sleep(10)
        assert await names(cluster) == []

    run_cluster(scenario)


def test_a_foreground_deletion_can_be_turned_into_a_background_one():
    async def scenario(cluster):
        await deployed(cluster)
        await cluster.delete("deployment/web", propagation="Foreground")
        await cluster.delete("deployment/web", propagation="Background")
        with pytest.raises(StatusError, match="not found"):
            await cluster.client.get(DEPLOYMENTS, "web", "default")
        await cluster.wait_until_async(lambda: nothing_left(cluster))

    run_cluster(scenario, DRAINS)
