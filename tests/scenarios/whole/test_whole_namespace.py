"""A namespace full of owners, Pods that take their time and finalizers of several kinds is deleted, and made again."""

import pytest
from counted_writes import CountedWrites
from virtual_cluster import KINDS, VirtualCluster, pod_manifest, run_cluster, service
from workloads import template, workload

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import Object, is_terminating, name_of
from lastcall.kube.api.pods.spec import is_pod_ready
from lastcall.kube.api.resources import (
    CONFIGMAPS,
    DEPLOYMENTS,
    JOBS,
    NAMESPACES,
    PERSISTENTVOLUMECLAIMS,
    PODS,
    SECRETS,
)
from lastcall.kube.cri.simulated_program import Program
from lastcall.records import kinds

GONE = "gone"
HELD = "example.com/held"
PROGRAMS = {"app": Program(drain_seconds=4), "once": Program(exits_after=1.0), "slow": Program(drain_seconds=20)}


def pods_of(app: str, image: str = "app:1", **spec: object) -> Object:
    made = template(image, **spec)
    made["metadata"]["labels"] = {"app": app}
    return made


def owner(kind: str, name: str, image: str = "app:1", pods: Object | None = None, **spec: object) -> Object:
    made = workload(kind, name=name, pods=pods or pods_of(name, image), **spec)
    made["spec"]["selector"] = {"matchLabels": {"app": name}}
    return made


def job(name: str, image: str, **spec: object) -> Object:
    pods = pods_of(name, image, restartPolicy="Never")
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": pods, **spec}}


def held(kind: str, name: str, **more: object) -> Object:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "finalizers": [HELD]}, **more}


CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
CONTENT = [
    owner("Deployment", "web", replicas=3),
    owner("StatefulSet", "db", serviceName="db", replicas=2),
    owner("DaemonSet", "agent"),
    owner("ReplicaSet", "slow", "slow:1", replicas=2),
    job("done", "once:1"),
    job("running", "app:1", parallelism=2),
    {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "often"},
        "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": job("", "once:1")["spec"]}},
    },
    {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "guard"},
        "spec": {"minAvailable": "100%", "selector": {"matchLabels": {"app": "web"}}},
    },
    service("web", app="web"),
    held("ConfigMap", "kept"),
    held("Secret", "kept"),
    held("PersistentVolumeClaim", "kept", spec=CLAIM),
    pod_manifest("held", finalizers=["example.com/pod"]),
]


async def content(cluster: VirtualCluster) -> list[str]:
    """`kind/name` of all that is in the namespace."""
    found = []
    for kind, resource in KINDS.items():
        if resource.namespaced:
            found += [f"{kind}/{name_of(each)}" for each in (await cluster.client.list(resource, GONE)).items]
    return found


async def namespace(cluster: VirtualCluster) -> Object | None:
    try:
        return await cluster.client.get(NAMESPACES, GONE)
    except StatusError as error:
        if error.code != 404:
            raise
        return None


async def conditions(cluster: VirtualCluster) -> dict[str, tuple[str, str]]:
    found = await namespace(cluster)
    assert found is not None
    return {each["type"]: (each["status"], each["message"]) for each in found["status"].get("conditions") or []}


async def fill(cluster: VirtualCluster) -> None:
    await cluster.client.create(NAMESPACES, {"metadata": {"name": GONE}})
    await cluster.sleep(0.5)
    for manifest in CONTENT:
        await cluster.client.create(KINDS[manifest["kind"]], manifest, GONE)
    kept = await cluster.client.get(CONFIGMAPS, "kept", GONE)
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "kept", "uid": kept["metadata"]["uid"]}
    child = {"metadata": {"name": "child", "ownerReferences": [{**reference, "blockOwnerDeletion": True}]}}
    await cluster.client.create(CONFIGMAPS, child, GONE)
    await cluster.sleep(20)


async def let_go(cluster: VirtualCluster, resource, name: str) -> None:
    await cluster.client.patch(resource, name, {"metadata": {"finalizers": None}}, GONE)


def test_pods_go_first_then_all_else_and_what_finalizers_hold_is_told_until_they_are_off():
    counts = CountedWrites()

    async def scenario(cluster: VirtualCluster) -> None:
        await fill(cluster)
        client = cluster.client
        made = len(cluster._versions)
        await client.delete(NAMESPACES, GONE)
        await cluster.sleep(1)
        # Pods first: nothing else is told to go while there are any.
        assert all(is_terminating(pod) or pod["metadata"].get("finalizers") for pod in await here(cluster, PODS))
        assert not any(is_terminating(each) for each in await here(cluster, DEPLOYMENTS))
        assert not any(is_terminating(each) for each in await here(cluster, CONFIGMAPS))
        with pytest.raises(StatusError) as refused:
            await client.create(CONFIGMAPS, {"metadata": {"name": "late"}}, GONE)
        assert refused.value.code == 403
        assert refused.value.message == (
            'configmaps "late" is forbidden: unable to create new content in namespace gone because it is being '
            "terminated"
        )
        await cluster.sleep(60)
        # The slow ones had 30 s, the budget asked nobody, and no owner has made a Pod anew.
        assert [name_of(pod) for pod in await here(cluster, PODS)] == ["held"]
        assert len(cluster._versions) == made
        why = {record.facts["why"] for record in cluster.records(kinds.DELETION_DECIDED)}
        assert why == {f"its namespace {GONE} is deleted"}
        found = await conditions(cluster)
        assert found["NamespaceDeletionContentFailure"][0] == "False"
        assert await here(cluster, DEPLOYMENTS), "a Pod is still there"
        await let_go(cluster, PODS, "held")
        await cluster.sleep(40)
        left = ["ConfigMap/kept", "PersistentVolumeClaim/kept", "Secret/kept"]
        assert sorted(each for each in await content(cluster) if not each.startswith("Event/")) == left
        found = await conditions(cluster)
        assert found["NamespaceContentRemaining"] == (
            "True",
            "Some resources are remaining: configmaps. has 1 resource instances, persistentvolumeclaims. has 1 "
            "resource instances, secrets. has 1 resource instances",
        )
        assert found["NamespaceFinalizersRemaining"] == (
            "True",
            f"Some content in the namespace has finalizers remaining: {HELD} in 3 resource instances",
        )
        await cluster.sleep(5)
        stays = counts.of("kube-controller-manager")
        await cluster.sleep(600)
        assert counts.of("kube-controller-manager") == stays
        for resource in (SECRETS, CONFIGMAPS, PERSISTENTVOLUMECLAIMS):
            assert await namespace(cluster) is not None
            await let_go(cluster, resource, "kept")
            await cluster.sleep(20)
        assert await namespace(cluster) is None
        assert await content(cluster) == []
        # The same again, in a new namespace of the name.
        await fill(cluster)
        assert sum(is_pod_ready(pod) for pod in await here(cluster, PODS)) == 12
        assert len(await here(cluster, JOBS)) >= 2

    async def here(cluster: VirtualCluster, resource) -> list[Object]:
        return (await cluster.client.list(resource, GONE)).items

    run_cluster(scenario, PROGRAMS, nodes=2, wrap=counts.wrap)


@pytest.mark.parametrize("policy", ["Foreground", "Background"])
def test_owners_that_are_deleted_already_and_the_namespace_with_them_do_not_wait_for_each_other(policy):
    async def scenario(cluster: VirtualCluster) -> None:
        await fill(cluster)
        for resource, name in (
            (PODS, "held"),
            (SECRETS, "kept"),
            (CONFIGMAPS, "kept"),
            (PERSISTENTVOLUMECLAIMS, "kept"),
        ):
            await let_go(cluster, resource, name)
        for kind, name in (("Deployment", "web"), ("Job", "running"), ("StatefulSet", "db"), ("CronJob", "often")):
            await cluster.client.delete(KINDS[kind], name, GONE, propagation_policy=policy)
        await cluster.sleep(0.01)
        await cluster.client.delete(NAMESPACES, GONE)
        await cluster.sleep(60)
        assert await namespace(cluster) is None
        assert await content(cluster) == []

    run_cluster(scenario, PROGRAMS, nodes=2)


def test_a_namespace_deleted_in_the_middle_of_a_rollout_is_gone_when_its_pods_are():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.client.create(NAMESPACES, {"metadata": {"name": GONE}})
        await cluster.sleep(0.5)
        await cluster.client.create(DEPLOYMENTS, owner("Deployment", "web", replicas=6), GONE)
        await cluster.sleep(10)
        changed = {"spec": {"template": pods_of("web", "slow:1")}}
        await cluster.client.patch(DEPLOYMENTS, "web", changed, GONE)
        await cluster.sleep(2)
        at = cluster.now
        await cluster.client.delete(NAMESPACES, GONE)
        while await namespace(cluster) is not None:
            await cluster.sleep(0.5)
        assert cluster.now - at <= 32, "the slowest Pod takes 20 s"
        assert await content(cluster) == []
        ended = [versions[-1] for versions in cluster._versions.values()]
        assert {seen.type for seen in ended} == {"DELETED"}

    run_cluster(scenario, PROGRAMS, nodes=2)
