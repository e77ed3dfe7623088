"""Claims, volumes and Pods on a virtual cluster: who waits for whom, and what stays."""

from typing import Any

from counted_writes import CountedWrites
from virtual_cluster import VirtualCluster, pod_manifest, run_cluster
from workloads import events_about, listed, template, workload

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import Object, annotations_of, is_terminating, name_of, uid_of
from lastcall.kube.api.resources import (
    NAMESPACES,
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    PODS,
    STATEFULSETS,
    STORAGECLASSES,
)
from lastcall.kube.cri.simulated_program import Program
from lastcall.records import kinds

DRAINS = {"app": Program(drain_seconds=2)}
SIZE = {"requests": {"storage": "1Gi"}}


def claim(name: str, **spec: Any) -> Object:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": SIZE, **spec}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


def volume(name: str, size: str = "1Gi", **spec: Any) -> Object:
    spec = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": f"/mnt/{name}"},
        **spec,
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def user(name: str, *claims: str, **spec: Any) -> Object:
    volumes = [
        {"name": f"v{number}", "persistentVolumeClaim": {"claimName": each}} for number, each in enumerate(claims)
    ]
    return pod_manifest(name, volumes=volumes, **spec)


async def phase(cluster: VirtualCluster, name: str, kind: Any = PERSISTENTVOLUMECLAIMS) -> str:
    """Of a claim or volume; "" when it is gone."""
    try:
        obj = await cluster.client.get(kind, name, "default" if kind is PERSISTENTVOLUMECLAIMS else "")
    except StatusError:
        return ""
    return str(obj["status"]["phase"])


def in_phase(cluster: VirtualCluster, name: str, wanted: str, kind: Any = PERSISTENTVOLUMECLAIMS) -> Any:
    async def ask() -> bool:
        return await phase(cluster, name, kind) == wanted

    return cluster.wait_until_async(ask)


def test_a_claim_of_the_standard_class_waits_for_its_first_pod_and_gets_a_volume_on_its_node():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(claim("data"))
        await cluster.sleep(2)
        assert await phase(cluster, "data") == "Pending"
        assert events_about(cluster, "data") == [
            "WaitForFirstConsumer: waiting for first consumer to be created before binding"
        ]
        await cluster.create(user("p", "data"))
        await cluster.wait_ready("p")
        found = await cluster.client.get(PERSISTENTVOLUMECLAIMS, "data", "default")
        name = f"pvc-{uid_of(found)}"
        assert found["spec"]["volumeName"] == name and found["spec"]["storageClassName"] == "standard"
        assert found["status"] == {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}}
        assert found["metadata"]["finalizers"] == ["kubernetes.io/pvc-protection"]
        assert annotations_of(found) == {
            "pv.kubernetes.io/bind-completed": "yes",
            "pv.kubernetes.io/bound-by-controller": "yes",
            "volume.beta.kubernetes.io/storage-provisioner": "rancher.io/local-path",
            "volume.kubernetes.io/selected-node": "node-1",
            "volume.kubernetes.io/storage-provisioner": "rancher.io/local-path",
        }
        made = await cluster.client.get(PERSISTENTVOLUMES, name)
        assert made["status"]["phase"] == "Bound" and made["spec"]["persistentVolumeReclaimPolicy"] == "Delete"
        assert made["metadata"]["finalizers"] == ["kubernetes.io/pv-protection"]
        assert made["spec"]["hostPath"]["path"].endswith(f"/{name}_default_data")
        assert list(cluster.directories.names) == [f"{name}_default_data"]
        assert events_about(cluster, "data")[1:] == [
            "ExternalProvisioning: Waiting for a volume to be created either by the external provisioner "
            "'rancher.io/local-path' or manually by the system administrator. If volume creation is delayed, please "
            "verify that the provisioner is running and correctly registered.",
            'Provisioning: External provisioner is provisioning volume for claim "default/data"',
            f"ProvisioningSucceeded: Successfully provisioned volume {name}",
        ]
        assert not [each for each in events_about(cluster, "p") if each.startswith("Failed")]

    run_cluster(scenario, DRAINS)


def test_a_claim_that_is_deleted_in_use_stays_until_the_last_pod_is_gone_and_then_goes_with_its_data():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(claim("data"), user("p", "data"), user("q", "data"))
        await cluster.wait_ready("p", "q")
        await cluster.delete("persistentvolumeclaim/data")
        await cluster.delete("pod/p")
        await cluster.wait_gone("p")
        await cluster.sleep(30)
        assert is_terminating(await cluster.client.get(PERSISTENTVOLUMECLAIMS, "data", "default"))
        held = cluster.records(kinds.CLAIM_HELD)
        assert sorted(each.facts["pod"] for each in held) == ["p", "q"]
        await cluster.delete("pod/q")
        await cluster.wait_gone("q")
        await in_phase(cluster, "data", "")
        await cluster.sleep(1)
        assert not await listed(cluster, PERSISTENTVOLUMES)
        assert not cluster.directories.names

    run_cluster(scenario, DRAINS)


def test_a_pod_is_told_why_it_has_no_node_and_gets_one_when_its_claim_comes():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(user("p", "data"))
        await cluster.sleep(5)
        (told,) = {each for each in events_about(cluster, "p") if each.startswith("FailedScheduling")}
        assert told.startswith('FailedScheduling: 0/1 nodes are available: persistentvolumeclaim "data" not found.')
        await cluster.create(claim("data"))
        await cluster.wait_ready("p")

    run_cluster(scenario, DRAINS)


def test_an_immediate_claim_without_a_volume_keeps_its_pod_waiting_until_somebody_makes_one():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(claim("data", storageClassName=""), user("p", "data"))
        await cluster.sleep(5)
        (told,) = {each for each in events_about(cluster, "p") if each.startswith("FailedScheduling")}
        assert "pod has unbound immediate PersistentVolumeClaims" in told
        assert set(events_about(cluster, "data")) == {
            "FailedBinding: no persistent volumes available for this claim and no storage class is set"
        }
        await cluster.create(volume("tiny", "1Mi"), volume("small", "2Gi"), volume("big", "3Gi"))
        await cluster.wait_ready("p")
        found = await cluster.client.get(PERSISTENTVOLUMECLAIMS, "data", "default")
        assert found["spec"]["volumeName"] == "small" and found["status"]["capacity"] == {"storage": "2Gi"}
        assert [await phase(cluster, each, PERSISTENTVOLUMES) for each in ("big", "tiny")] == ["Available"] * 2

    run_cluster(scenario, DRAINS)


def test_a_retained_volume_is_released_and_not_given_to_the_next_claim():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(volume("one"), claim("data", storageClassName=""))
        await in_phase(cluster, "data", "Bound")
        await cluster.delete("persistentvolumeclaim/data")
        await in_phase(cluster, "one", "Released", PERSISTENTVOLUMES)
        await cluster.create(claim("data", storageClassName=""))
        await cluster.sleep(20)
        assert await phase(cluster, "data") == "Pending"
        await cluster.patch("persistentvolume/one", {"spec": {"claimRef": None}})
        await in_phase(cluster, "data", "Bound")

    run_cluster(scenario, DRAINS)


def test_a_bound_claim_whose_volume_is_removed_is_lost():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(volume("one"), claim("data", storageClassName=""))
        await in_phase(cluster, "data", "Bound")
        await cluster.delete("persistentvolume/one")
        await cluster.sleep(5)
        assert is_terminating(await cluster.client.get(PERSISTENTVOLUMES, "one"))  # bound: its finalizer holds it
        await cluster.patch("persistentvolume/one", {"metadata": {"finalizers": None}})
        await in_phase(cluster, "data", "Lost")
        assert events_about(cluster, "data")[-1].startswith("ClaimLost: Bound claim has lost its PersistentVolume.")

    run_cluster(scenario, DRAINS)


def test_a_pod_follows_its_data_to_their_node():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(claim("data"), user("p", "data", nodeSelector={"kubernetes.io/hostname": "node-2"}))
        await cluster.wait_ready("p")
        await cluster.delete("pod/p")
        await cluster.wait_gone("p")
        for number in range(3):
            await cluster.create(user(f"q{number}", "data"))
            await cluster.wait_ready(f"q{number}")
            assert (await cluster.client.get(PODS, f"q{number}", "default"))["spec"]["nodeName"] == "node-2"
        await cluster.create(user("away", "data", nodeSelector={"kubernetes.io/hostname": "node-1"}))
        await cluster.sleep(5)
        (told,) = {each for each in events_about(cluster, "away") if each.startswith("FailedScheduling")}
        assert "1 node(s) didn't match PersistentVolume's node affinity" in told

    run_cluster(scenario, DRAINS, nodes=3)


def test_a_claim_for_one_pod_only_keeps_the_second_one_waiting():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(claim("data", accessModes=["ReadWriteOncePod"]), user("p", "data"))
        await cluster.wait_ready("p")
        await cluster.create(user("q", "data"))
        await cluster.sleep(5)
        (told,) = {each for each in events_about(cluster, "q") if each.startswith("FailedScheduling")}
        assert "ReadWriteOncePod access mode" in told
        await cluster.delete("pod/p")
        await cluster.wait_ready("q")

    run_cluster(scenario, DRAINS)


def test_an_ephemeral_volume_has_a_claim_of_its_own_that_goes_with_the_pod():
    async def scenario(cluster: VirtualCluster) -> None:
        source = {"volumeClaimTemplate": {"spec": claim("")["spec"], "metadata": {"labels": {"a": "b"}}}}
        await cluster.create(pod_manifest("p", volumes=[{"name": "scratch", "ephemeral": source}]))
        await cluster.wait_ready("p")
        found = await cluster.client.get(PERSISTENTVOLUMECLAIMS, "p-scratch", "default")
        assert found["status"]["phase"] == "Bound" and found["metadata"]["labels"] == {"a": "b"}
        await cluster.delete("pod/p")
        await in_phase(cluster, "p-scratch", "")
        await cluster.sleep(2)
        assert not cluster.directories.names

    run_cluster(scenario, DRAINS)


def test_who_deletes_the_standard_class_is_rid_of_it_and_claims_wait_for_the_next_default():
    async def scenario(cluster: VirtualCluster) -> None:
        standard = await cluster.client.get(STORAGECLASSES, "standard")
        await cluster.delete("storageclass/standard")
        await cluster.create(claim("data"))
        await cluster.sleep(30)
        assert not await listed(cluster, STORAGECLASSES)
        assert "storageClassName" not in (await cluster.client.get(PERSISTENTVOLUMECLAIMS, "data", "default"))["spec"]
        meta = {"name": "mine", "annotations": annotations_of(standard)}
        await cluster.create({**standard, "metadata": meta, "volumeBindingMode": "Immediate"})
        await cluster.sleep(20)
        found = await cluster.client.get(PERSISTENTVOLUMECLAIMS, "data", "default")
        assert found["spec"]["storageClassName"] == "mine"
        # Immediate: local-path needs a node and says so.
        assert any("no node was specified" in each for each in events_about(cluster, "data"))

    run_cluster(scenario, DRAINS)


CLAIM_TEMPLATE = {"metadata": {"name": "data"}, "spec": claim("")["spec"]}


def stateful(**spec: Any) -> Object:
    return workload("StatefulSet", serviceName="web", volumeClaimTemplates=[CLAIM_TEMPLATE], **spec)


async def claims(cluster: VirtualCluster) -> list[str]:
    return sorted(name_of(each) for each in await listed(cluster, PERSISTENTVOLUMECLAIMS))


async def all_ready(cluster: VirtualCluster) -> bool:
    owner = await cluster.client.get(STATEFULSETS, "web", "default")
    status = owner.get("status") or {}
    wanted = owner["spec"]["replicas"]
    return [status.get(key, 0) for key in ("replicas", "readyReplicas", "updatedReplicas")] == [wanted] * 3


def test_a_stateful_set_keeps_its_claims_when_nothing_else_is_said():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(stateful(replicas=2))
        await cluster.wait_until_async(lambda: all_ready(cluster))
        assert "SuccessfulCreate: Create Claim data-web-0 Pod web-0 in StatefulSet web success" in events_about(
            cluster, "web"
        )
        bound = {name_of(each): each["spec"]["volumeName"] for each in await listed(cluster, PERSISTENTVOLUMECLAIMS)}
        await cluster.patch("statefulset/web", {"spec": {"template": template("app:2")}})
        await cluster.sleep(20)
        await cluster.patch("statefulset/web", {"spec": {"replicas": 1}})
        await cluster.wait_until_async(lambda: all_ready(cluster))
        await cluster.delete("statefulset/web", propagation="Foreground")
        await cluster.sleep(20)
        kept = {name_of(each): each["spec"]["volumeName"] for each in await listed(cluster, PERSISTENTVOLUMECLAIMS)}
        assert kept == bound and len(kept) == 2

    run_cluster(scenario, DRAINS)


def test_scaling_in_takes_the_claim_when_the_policy_says_so_and_scaling_out_makes_a_new_one():
    async def scenario(cluster: VirtualCluster) -> None:
        policy = {"whenScaled": "Delete", "whenDeleted": "Retain"}
        await cluster.create(stateful(replicas=2, persistentVolumeClaimRetentionPolicy=policy))
        await cluster.wait_until_async(lambda: all_ready(cluster))
        first = uid_of(await cluster.client.get(PERSISTENTVOLUMECLAIMS, "data-web-1", "default"))
        assert not (await cluster.client.get(PERSISTENTVOLUMECLAIMS, "data-web-1", "default"))["metadata"].get(
            "ownerReferences"
        )
        await cluster.patch("statefulset/web", {"spec": {"replicas": 1}})
        await cluster.sleep(1)  # the Pod drains, its claim belongs to it by now
        owners = (await cluster.client.get(PERSISTENTVOLUMECLAIMS, "data-web-1", "default"))["metadata"][
            "ownerReferences"
        ]
        assert [(each["kind"], each["name"]) for each in owners] == [("Pod", "web-1")]
        await cluster.patch("statefulset/web", {"spec": {"replicas": 2}})  # before the claim is gone
        await cluster.wait_until_async(lambda: all_ready(cluster))
        second = await cluster.client.get(PERSISTENTVOLUMECLAIMS, "data-web-1", "default")
        assert uid_of(second) != first and second["status"]["phase"] == "Bound"
        assert len(cluster.directories.names) == 2
        await cluster.delete("statefulset/web", propagation="Foreground")
        await cluster.sleep(20)
        assert await claims(cluster) == ["data-web-0", "data-web-1"]

    run_cluster(scenario, DRAINS)


def test_deleting_the_set_takes_the_claims_when_the_policy_says_so():
    async def scenario(cluster: VirtualCluster) -> None:
        policy = {"whenScaled": "Retain", "whenDeleted": "Delete"}
        await cluster.create(stateful(replicas=3, persistentVolumeClaimRetentionPolicy=policy))
        await cluster.wait_until_async(lambda: all_ready(cluster))
        await cluster.patch("statefulset/web", {"spec": {"replicas": 2}})
        await cluster.wait_until_async(lambda: all_ready(cluster))
        await cluster.sleep(10)
        assert await claims(cluster) == ["data-web-0", "data-web-1", "data-web-2"]
        await cluster.delete("statefulset/web")
        await cluster.sleep(20)
        assert not await claims(cluster) and not cluster.directories.names

    run_cluster(scenario, DRAINS)


def test_a_policy_that_changes_holds_for_the_claims_that_are_there():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(stateful(replicas=1))
        await cluster.wait_until_async(lambda: all_ready(cluster))
        for value, owners in (("Delete", ["StatefulSet"]), ("Retain", [])):
            policy = {"persistentVolumeClaimRetentionPolicy": {"whenDeleted": value}}
            await cluster.patch("statefulset/web", {"spec": policy})
            await cluster.sleep(5)
            found = await cluster.client.get(PERSISTENTVOLUMECLAIMS, "data-web-0", "default")
            assert [each["kind"] for each in found["metadata"].get("ownerReferences") or []] == owners

    run_cluster(scenario, DRAINS)


def test_a_namespace_takes_its_claims_and_their_data_along():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.client.create(NAMESPACES, {"metadata": {"name": "gone"}})
        await cluster.sleep(2)
        await cluster.client.create(STATEFULSETS, stateful(replicas=2), "gone")
        await cluster.sleep(20)
        assert len(cluster.directories.names) == 2
        await cluster.client.delete(NAMESPACES, "gone")
        await cluster.sleep(60)
        assert "gone" not in [name_of(each) for each in await listed(cluster, NAMESPACES)]
        assert not await listed(cluster, PERSISTENTVOLUMES) and not cluster.directories.names

    run_cluster(scenario, DRAINS)


def test_a_claim_that_goes_while_its_pod_waits_for_a_node_is_made_anew_by_its_set():
    async def scenario(cluster: VirtualCluster) -> None:
        pods = template()
        pods["spec"]["nodeSelector"] = {"disk": "fast"}
        await cluster.create(stateful(replicas=1, template=pods))
        await cluster.sleep(5)
        first = uid_of(await cluster.client.get(PERSISTENTVOLUMECLAIMS, "data-web-0", "default"))
        await cluster.delete("persistentvolumeclaim/data-web-0")  # no node, so nobody uses it
        await cluster.sleep(5)
        assert uid_of(await cluster.client.get(PERSISTENTVOLUMECLAIMS, "data-web-0", "default")) != first
        await cluster.patch("node/node-1", {"metadata": {"labels": {"disk": "fast"}}})
        await cluster.wait_until_async(lambda: all_ready(cluster))

    run_cluster(scenario, DRAINS)


def test_a_node_that_goes_before_the_volume_is_made_gives_the_claim_back():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(claim("data"))
        await cluster.sleep(2)
        marks = {"volume.kubernetes.io/selected-node": "node-9"}
        await cluster.patch("persistentvolumeclaim/data", {"metadata": {"annotations": marks}})
        await cluster.sleep(5)
        assert 'ProvisioningFailed: failed to get target node: node "node-9" not found' in events_about(cluster, "data")
        await cluster.create(user("p", "data"))
        await cluster.wait_ready("p")

    run_cluster(scenario, DRAINS)


def test_claims_of_many_pods_cost_a_bounded_number_of_writes():
    """No hot loops: what is bound is written no more, and what waits only says so again now and then."""

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(*[claim(f"c{number}") for number in range(10)], claim("waits"))
        await cluster.create(*[user(f"p{number}", f"c{number}") for number in range(10)])
        await cluster.wait_ready(*[f"p{number}" for number in range(10)])
        await cluster.sleep(5)
        before = counted.of()
        await cluster.sleep(300)
        quiet = counted.of() - before
        assert counted.of("kube-controller-manager", plural="persistentvolumeclaims") <= 10 * 5
        assert counted.of("kube-controller-manager", plural="persistentvolumes") <= 10 * 3
        assert counted.of("kube-scheduler", plural="persistentvolumeclaims") <= 10
        events = counted.of("kube-controller-manager", plural="events")
        assert quiet < 120, (quiet, events)

    counted = CountedWrites()
    run_cluster(scenario, DRAINS, wrap=counted.wrap)


def test_a_pod_that_changes_while_its_node_is_chosen_still_gets_its_volume():
    async def scenario(cluster: VirtualCluster) -> None:
        for number in range(8):
            await cluster.create(claim(f"c{number}"), user(f"p{number}", f"c{number}"))
            for _ in range(number):  # at another moment of the cycle each time
                await cluster.sleep(0)
            await cluster.patch(f"pod/p{number}", {"metadata": {"labels": {"changed": "yes"}}})
        await cluster.wait_ready(*[f"p{number}" for number in range(8)])
        assert {each["status"]["phase"] for each in await listed(cluster, PERSISTENTVOLUMECLAIMS)} == {"Bound"}

    run_cluster(scenario, DRAINS)
