"""Evictions under PodDisruptionBudgets in a whole cluster (control-plane-semantics 2.6, 2.7)."""

import random
from contextlib import asynccontextmanager
from typing import Any

import pytest
from virtual_cluster import VirtualCluster, pod_manifest, run_cluster
from workloads import events_about, fewest_at_once, listed, pods, workload

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import Object, copy_object, is_terminating, name_of
from lastcall.kube.api.pods.spec import get_condition, is_pod_ready
from lastcall.kube.api.resources import PODDISRUPTIONBUDGETS, PODS
from lastcall.kube.cri.simulated_program import Program
from lastcall.records import kinds
from lastcall.world.clock import now, rfc3339
from lastcall.world.tasks import Tasks

DRAINS = {"app": Program(drain_seconds=3)}


def budget(**spec: Any) -> Object:
    meta = {"name": "guard"}
    selector = {"matchLabels": {"app": "web"}}
    spec = {"selector": selector, **spec}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": meta, "spec": spec}


async def status(cluster: VirtualCluster) -> Object:
    found = await cluster.client.get(PODDISRUPTIONBUDGETS, "guard", cluster.namespace)
    return found["status"]


async def evict(cluster: VirtualCluster, name: str) -> int:
    """The HTTP status code."""
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    try:
        await cluster.client.create(PODS, body, cluster.namespace, name=name, subresource="eviction")
    except StatusError as error:
        return error.code
    return 201


async def all_ready(cluster: VirtualCluster, count: int) -> None:
    async def ready() -> bool:
        return sum(is_healthy(pod) for pod in await pods(cluster)) == count

    await cluster.wait_until_async(ready)


def is_healthy(pod: Object) -> bool:
    return is_pod_ready(pod) and not is_terminating(pod)


async def guarded(cluster: VirtualCluster, replicas: int, **spec: Any) -> list[str]:
    """A Deployment whose Pods are Ready and counted by the budget; their names."""
    await cluster.create(workload("Deployment", replicas=replicas), budget(**spec))
    await all_ready(cluster, replicas)
    await cluster.sleep(1)
    return [name_of(pod) for pod in await pods(cluster)]


@pytest.mark.parametrize(
    ("spec", "desired", "allowed"),
    [
        ({"minAvailable": 2}, 2, 1),
        ({"minAvailable": "50%"}, 2, 1),
        ({"minAvailable": "100%"}, 3, 0),
        ({"maxUnavailable": 2}, 1, 2),
        ({"maxUnavailable": "10%"}, 2, 1),
    ],
)
def test_a_budget_counts_the_pods_that_a_deployment_asks_for(spec, desired, allowed):
    async def scenario(cluster):
        await guarded(cluster, 3, **spec)
        found = await status(cluster)
        assert (found["currentHealthy"], found["expectedPods"]) == (3, 3)
        assert (found["desiredHealthy"], found["disruptionsAllowed"]) == (desired, allowed)
        (condition,) = found["conditions"]
        assert condition["status"] == ("True" if allowed else "False")

    run_cluster(scenario)


def test_the_second_eviction_waits_until_the_replacement_is_ready():
    async def scenario(cluster):
        first, second, _ = await guarded(cluster, 3, maxUnavailable=1)
        assert await evict(cluster, first) == 201
        assert await evict(cluster, second) == 429
        await all_ready(cluster, 3)
        await cluster.sleep(0.1)
        assert await evict(cluster, second) == 201
        (decided,) = [r for r in cluster.records(kinds.DELETION_DECIDED) if r.pod_uid == cluster.uid(first)]
        assert decided.facts["why"].startswith("evicted by lastcall (user system:kubernetes-admin)")
        order = cluster.kinds(kinds.DELETION_DECIDED, kinds.DELETE_ACCEPTED, kinds.KILLING, pod=first)
        assert order == [kinds.DELETION_DECIDED, kinds.DELETE_ACCEPTED, kinds.KILLING]

    run_cluster(scenario, DRAINS)


def test_pods_without_an_owner_cannot_be_counted_by_percentage():
    async def scenario(cluster):
        await cluster.create(pod_manifest("web", labels={"app": "web"}), budget(maxUnavailable=1))
        await cluster.wait_ready("web")
        await cluster.sleep(1)
        assert await evict(cluster, "web") == 429
        text = next(each for each in events_about(cluster, "guard") if each.startswith("UnmanagedPods"))
        assert 'set ".spec.minAvailable" field of the PDB to an integer value.' in text

    run_cluster(scenario)


def test_a_budget_that_matches_nothing_says_so():
    async def scenario(cluster):
        await cluster.create(budget(minAvailable=1))
        await cluster.sleep(1)
        assert (await status(cluster))["disruptionsAllowed"] == 0
        assert events_about(cluster, "guard") == ["NoPods: No matching pods found"]

    run_cluster(scenario)


def test_an_owner_without_a_scale_fails_the_sync_and_allows_nothing():
    async def scenario(cluster):
        owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "j", "uid": "1", "controller": True}
        pod = pod_manifest("web", labels={"app": "web"})
        pod["metadata"]["ownerReferences"] = [{**owner, "blockOwnerDeletion": False}]
        pod["metadata"]["finalizers"] = ["example.com/hold"]
        await cluster.create(pod, budget(minAvailable="50%"))
        await cluster.sleep(1)
        (condition,) = (await status(cluster))["conditions"]
        assert condition["reason"] == "SyncFailed"
        assert condition["message"] == "cronjobs.batch does not implement the scale subresource"
        assert any(each.startswith("CalculateExpectedPodCountFailed") for each in events_about(cluster, "guard"))

    run_cluster(scenario)


def test_an_evicted_pod_that_is_not_deleted_counts_again_after_two_minutes():
    async def scenario(cluster):
        names = await guarded(cluster, 2, minAvailable=1)
        found = copy_object(await cluster.client.get(PODDISRUPTIONBUDGETS, "guard", cluster.namespace))
        found["status"] |= {"disruptedPods": {names[0]: rfc3339(now(cluster.world.clock))}}
        await cluster.client.update(PODDISRUPTIONBUDGETS, found, cluster.namespace, subresource="status")
        await cluster.sleep(1)
        assert (await status(cluster))["disruptionsAllowed"] == 0
        await cluster.sleep(117)
        assert (await status(cluster))["disruptionsAllowed"] == 0
        await cluster.sleep(3)
        found = await status(cluster)
        assert found["disruptionsAllowed"] == 1
        assert "disruptedPods" not in found
        assert "NotDeleted: Pod was expected by PDB default/default to be deleted but it wasn't" in events_about(
            cluster, names[0]
        )

    run_cluster(scenario)


def test_a_disruption_target_that_stays_is_no_target_after_two_minutes():
    async def scenario(cluster):
        await cluster.create(pod_manifest())
        await cluster.wait_ready()
        target = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "PreemptionByScheduler",
            "message": "m",
            "lastTransitionTime": rfc3339(now(cluster.world.clock)),
        }
        conditions = [*cluster.status()["conditions"], target]
        await cluster.patch("pod/p", {"status": {"conditions": conditions}}, subresource="status")
        await cluster.sleep(118)
        assert cluster.condition("p", "DisruptionTarget") == "True"
        await cluster.sleep(3)
        condition = get_condition(cluster.status(), "DisruptionTarget")
        assert condition["observedGeneration"] == 1
        assert condition is not None
        assert condition["status"] == "False"
        assert "reason" not in condition

    run_cluster(scenario)


def test_a_budget_at_rest_is_not_written():
    async def scenario(cluster):
        await guarded(cluster, 3, maxUnavailable=1)
        (before,) = await listed(cluster, PODDISRUPTIONBUDGETS)
        await cluster.sleep(3600)
        assert await listed(cluster, PODDISRUPTIONBUDGETS) == [before]

    run_cluster(scenario)


# -- never fewer than the budget wants -------------------------------------------------------------------------------


class Late:
    """A controller manager far away: it sees everything late and its writes take their time."""

    def __init__(self, client: Any, cluster_random: random.Random, sleep: Any) -> None:
        self._client, self._random, self._sleep = client, cluster_random, sleep

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def update(self, *args: Any, **kwargs: Any) -> Any:
        await self._sleep(self._random.random() * 0.3)
        return await self._client.update(*args, **kwargs)

    @asynccontextmanager
    async def watch(self, *args: Any, **kwargs: Any) -> Any:
        async with self._client.watch(*args, **kwargs) as events:

            async def late() -> Any:
                async for event in events:
                    await self._sleep(self._random.random() * 0.05)
                    yield event

            yield late()


@pytest.mark.parametrize("seed", range(12))
def test_evictions_never_leave_fewer_healthy_pods_than_the_budget_wants(seed):
    chance = random.Random(seed)
    replicas = chance.randint(2, 6)
    spec, wanted = chance.choice(
        [
            ({"minAvailable": replicas - 1}, replicas - 1),
            ({"maxUnavailable": 1}, replicas - 1),
            ({"maxUnavailable": 2}, max(0, replicas - 2)),
            ({"minAvailable": "50%"}, -(-replicas // 2)),
        ]
    )
    clusters: list[VirtualCluster] = []

    def wrap(client: Any, component: str) -> Any:
        if component != "kube-controller-manager":
            return client
        return Late(client, chance, lambda seconds: clusters[0].sleep(seconds))

    granted = refused = 0

    async def evictor(cluster: VirtualCluster) -> None:
        nonlocal granted, refused
        for _ in range(12):
            alive = [name_of(pod) for pod in await pods(cluster)]
            code = await evict(cluster, chance.choice(alive)) if alive else 404
            granted, refused = granted + (code == 201), refused + (code == 429)
            await cluster.sleep(chance.random() * chance.choice([0.0, 0.2, 3.0]))

    async def scenario(cluster: VirtualCluster) -> None:
        await guarded(cluster, replicas, **spec)
        await cluster.sleep(2)
        since = cluster.now
        async with Tasks() as tasks:
            for number in range(4):
                tasks.spawn(evictor(cluster), name=f"evictor {number}")
            while granted + refused < 12:
                await cluster.sleep(1)
            await cluster.sleep(30)
            tasks.cancel()
        assert fewest_at_once(cluster, is_healthy, since) >= wanted

    run_late(scenario, wrap, clusters.append, seed)
    assert granted > 0
    assert refused > 0


def run_late(scenario: Any, wrap: Any, known: Any, seed: int) -> None:
    """As `run_cluster`; `known` gets the cluster before anything runs in it."""
    from lastcall.world.virtual import run_virtual

    async def main(world: Any) -> None:
        cluster = VirtualCluster(world, DRAINS, wrap=wrap)
        known(cluster)
        async with cluster:
            await scenario(cluster)

    run_virtual(main, seed=seed)
