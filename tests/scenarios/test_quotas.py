"""ResourceQuotas and LimitRanges on a virtual cluster: what is counted when, and what owners of refused Pods say."""

from virtual_cluster import run_cluster
from workloads import events_about, listed, pods, workload

from lastcall.kube.api.meta import name_of
from lastcall.kube.api.pods.spec import get_condition
from lastcall.kube.api.resources import DEPLOYMENTS, PODS, REPLICASETS, RESOURCEQUOTAS
from lastcall.kube.cri.simulated_program import Program

DRAINS = {"app": Program(drain_seconds=2)}


def quota(hard, name="few", **spec):
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name},
        "spec": {"hard": hard, **spec},
    }


async def used(cluster, name="few"):
    found = await cluster.client.get(RESOURCEQUOTAS, name, cluster.namespace)
    return (found.get("status") or {}).get("used")


async def until_used(cluster, expected, name="few"):
    async def says_so():
        return await used(cluster, name) == expected

    await cluster.wait_until_async(says_so)


def test_a_new_quota_counts_what_is_there_already():
    async def scenario(cluster):
        await cluster.create(workload("ReplicaSet", replicas=2))
        await cluster.sleep(5)
        hard = {"pods": "9", "count/replicasets.apps": "1", "configmaps": "4", "services.nodeports": "0"}
        await cluster.create(quota(hard))
        counted = {"configmaps": "1", "count/replicasets.apps": "1", "pods": "2", "services.nodeports": "0"}
        await until_used(cluster, counted)

    run_cluster(scenario, DRAINS)


def test_a_replica_set_whose_pods_are_refused_says_so_and_goes_on_when_there_is_room():
    async def scenario(cluster):
        await cluster.create(quota({"pods": "2"}))
        await until_used(cluster, {"pods": "0"})
        await cluster.create(workload("Deployment", replicas=3))
        await cluster.sleep(5)
        assert len(await pods(cluster)) == 2
        assert await used(cluster) == {"pods": "2"}
        (replica_set,) = await listed(cluster, REPLICASETS)
        failure = get_condition(replica_set["status"], "ReplicaFailure")
        refused = "is forbidden: exceeded quota: few, requested: pods=1, used: pods=2, limited: pods=2"
        assert (failure["status"], failure["reason"]) == ("True", "FailedCreate")
        assert failure["message"].startswith(f'pods "{name_of(replica_set)}-')
        assert failure["message"].endswith(refused)
        told = [each for each in events_about(cluster, name_of(replica_set)) if each.startswith("FailedCreate")]
        assert told
        assert told[0].startswith(f'FailedCreate: Error creating: pods "{name_of(replica_set)}-')
        assert told[0].endswith(refused)
        (deployment,) = await listed(cluster, DEPLOYMENTS)
        assert get_condition(deployment["status"], "ReplicaFailure")["reason"] == "FailedCreate"
        await cluster.patch("resourcequota/few", {"spec": {"hard": {"pods": "3"}}})
        await until_used(cluster, {"pods": "3"})
        (replica_set,) = await listed(cluster, REPLICASETS)
        assert get_condition(replica_set["status"], "ReplicaFailure") is None

    run_cluster(scenario, DRAINS)


def test_what_a_pod_used_is_given_back_when_it_is_gone_and_when_it_has_ended():
    async def scenario(cluster):
        await cluster.create(quota({"pods": "5", "count/pods": "5", "requests.cpu": "2"}))
        await until_used(cluster, {"count/pods": "0", "pods": "0", "requests.cpu": "0"})
        resources = {"requests": {"cpu": "250m"}}
        container = {"name": "app", "image": "app", "resources": resources}
        ends = {"name": "app", "image": "ends", "resources": resources}
        pod = {"apiVersion": "v1", "kind": "Pod"}
        spec = {"terminationGracePeriodSeconds": 5}
        await cluster.create({**pod, "metadata": {"name": "stays"}, "spec": {"containers": [container], **spec}})
        await cluster.create(
            {**pod, "metadata": {"name": "ends"}, "spec": {"containers": [ends], "restartPolicy": "Never"}}
        )
        assert await used(cluster) == {"count/pods": "2", "pods": "2", "requests.cpu": "500m"}
        await until_used(cluster, {"count/pods": "2", "pods": "1", "requests.cpu": "250m"})
        await cluster.delete("pod/stays")
        await cluster.sleep(1)
        assert await used(cluster) == {"count/pods": "2", "pods": "1", "requests.cpu": "250m"}
        await cluster.wait_gone("stays")
        await until_used(cluster, {"count/pods": "1", "pods": "0", "requests.cpu": "0"})

    run_cluster(scenario, {"app": Program(drain_seconds=2), "ends": Program(exits_after=10)})


def test_usage_that_somebody_falsified_is_counted_anew_within_five_minutes():
    async def scenario(cluster):
        await cluster.create(quota({"pods": "5"}))
        await until_used(cluster, {"pods": "0"})
        found = await cluster.client.get(RESOURCEQUOTAS, "few", "default")
        false = {**found, "status": {"hard": {"pods": "5"}, "used": {"pods": "4"}}}
        await cluster.client.update(RESOURCEQUOTAS, false, "default", subresource="status")
        await cluster.sleep(310)
        assert await used(cluster) == {"pods": "0"}

    run_cluster(scenario, DRAINS)


def test_a_quota_of_a_scope_counts_only_pods_of_that_scope():
    async def scenario(cluster):
        await cluster.create(quota({"pods": "5"}, scopes=["BestEffort"]))
        await cluster.create(quota({"pods": "5"}, "important", scopeSelector={
            "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["system-node-critical"]}]
        }))  # fmt: skip
        await until_used(cluster, {"pods": "0"})
        await until_used(cluster, {"pods": "0"}, "important")
        pod = {"apiVersion": "v1", "kind": "Pod"}
        plain = {"containers": [{"name": "app", "image": "app"}]}
        asks = {"containers": [{"name": "app", "image": "app", "resources": {"requests": {"memory": "1Mi"}}}]}
        await cluster.create({**pod, "metadata": {"name": "a"}, "spec": plain})
        await cluster.create({**pod, "metadata": {"name": "b"}, "spec": asks})
        await cluster.create(
            {**pod, "metadata": {"name": "c"}, "spec": {**asks, "priorityClassName": "system-node-critical"}}
        )
        await cluster.sleep(5)
        assert await used(cluster) == {"pods": "1"}
        assert await used(cluster, "important") == {"pods": "1"}
        await cluster.patch("resourcequota/few", {"metadata": {"labels": {"counted": "again"}}})
        await cluster.sleep(310)
        assert await used(cluster) == {"pods": "1"}
        assert await used(cluster, "important") == {"pods": "1"}

    run_cluster(scenario, DRAINS)


def test_a_limit_range_gives_the_pods_of_an_owner_what_a_quota_asks_for():
    async def scenario(cluster):
        limits = [{"type": "Container", "default": {"cpu": "200m"}, "defaultRequest": {"cpu": "100m"}}]
        kind = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "l"}}
        await cluster.create({**kind, "spec": {"limits": limits}}, quota({"limits.cpu": "500m"}))
        await until_used(cluster, {"limits.cpu": "0"})
        await cluster.create(workload("ReplicaSet", replicas=3))
        await cluster.sleep(5)
        made = await pods(cluster)
        assert [pod["spec"]["containers"][0]["resources"]["limits"] for pod in made] == [{"cpu": "200m"}] * 2
        assert [pod["metadata"]["annotations"] for pod in made] == [
            {
                "kubernetes.io/limit-ranger": "LimitRanger plugin set: cpu request for container app; "
                "cpu limit for container app"
            }
        ] * 2
        assert await used(cluster) == {"limits.cpu": "400m"}

    run_cluster(scenario, DRAINS)


def test_while_pods_come_and_go_no_more_are_there_than_allowed_and_the_count_is_true_in_the_end():
    async def scenario(cluster):
        await cluster.create(quota({"pods": "4", "count/pods": "8"}))
        await until_used(cluster, {"count/pods": "0", "pods": "0"})
        for name in ("a", "b", "c"):
            await cluster.create(workload("ReplicaSet", name=name, replicas=3))
        for number in range(24):
            await cluster.sleep(0.3)
            there = await pods(cluster)
            running = [pod for pod in there if pod["status"]["phase"] not in ("Succeeded", "Failed")]
            assert len(running) <= 4
            if there and number % 2:
                await cluster.client.delete(PODS, name_of(there[number % len(there)]), "default")
        await cluster.sleep(30)
        assert len(await pods(cluster)) == 4
        assert await used(cluster) == {"count/pods": "4", "pods": "4"}
        for name in ("a", "b", "c"):
            await cluster.delete(f"replicaset/{name}")
        await until_used(cluster, {"count/pods": "0", "pods": "0"})

    run_cluster(scenario, DRAINS)
