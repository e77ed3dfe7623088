"""Rollouts of 500 Pods over ten nodes, with all that Pods do wrong; what has to hold is looked at after every write."""

import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from counted_writes import CountedWrites
from virtual_cluster import VirtualCluster, run_cluster
from workloads import listed, pods, template, workload

from lastcall.kube.api.meta import Object, name_of, uid_of
from lastcall.kube.api.pods.spec import get_condition, is_pod_ready
from lastcall.kube.api.resources import DEPLOYMENTS, PODS, REPLICASETS
from lastcall.kube.controllers.deployment.rolling import fenceposts
from lastcall.kube.controllers.ownership import controller_of
from lastcall.kube.controllers.pods.control import is_pod_active
from lastcall.kube.cri.simulated_program import Listener, Program

REPLICAS = 500
NODES = 10
PORT = 80
DEADLINE = 60
MANAGER = "kube-controller-manager"

FAST = Program(ports={PORT: Listener()}, drain_seconds=1)
SLOW = Program(ports={PORT: Listener(opens_after=25)}, drain_seconds=20)
STUBBORN = Program(ports={PORT: Listener(opens_after=3)}, on_term="ignore")
NEVER = Program(drain_seconds=5)
CRASHES = Program(exits_after=2, natural_exit_code=3)
HOOK = {"preStop": {"sleep": {"seconds": 5}}}


def mixed(**shares: Program) -> Callable[[Any, Any], Program]:
    """Programs by image tag: `v2=((60, FAST), (40, SLOW))` are percentages, chosen by the Pod's name."""

    def program(config: Any, sandbox: Any) -> Program:
        rest = zlib.crc32(sandbox.metadata.name.encode()) % 100
        for share, chosen in shares[config.image.rpartition(":")[2]]:
            if rest < share:
                return chosen
            rest -= share
        raise AssertionError("the shares make less than 100")

    return program


def pod_template(version: str) -> Object:
    made = template(f"app:{version}", terminationGracePeriodSeconds=45)
    made["spec"]["containers"][0] |= {
        "lifecycle": HOOK,
        "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 10},
    }
    return made


def deployment(cluster: VirtualCluster) -> Object:
    """As a client saw it last."""
    return cluster.history[DEPLOYMENTS][-1].object


def complete(cluster: VirtualCluster) -> bool:
    found = deployment(cluster)
    status = found.get("status") or {}
    counts = [status.get(key, 0) for key in ("replicas", "updatedReplicas", "availableReplicas")]
    return counts == [found["spec"]["replicas"]] * 3 and status["observedGeneration"] == found["metadata"]["generation"]


def progressing(cluster: VirtualCluster) -> tuple[str, str]:
    condition = get_condition(deployment(cluster).get("status") or {}, "Progressing") or {}
    return condition.get("status", ""), condition.get("reason", "")


def sums(cluster: VirtualCluster, resource: Any, value: Callable[[Object], int], since: int = 0) -> Iterator[int]:
    """The sum of `value` over all objects after every write from the revision `since` on."""
    values: dict[str, int] = {}
    total = 0
    for seen in cluster.history[resource]:
        uid = uid_of(seen.object)
        new = 0 if seen.type == "DELETED" else value(seen.object)
        total += new - values.get(uid, 0)
        values[uid] = new
        if int(seen.object["metadata"]["resourceVersion"]) >= since:
            yield total


def is_available(pod: Object) -> bool:
    return is_pod_active(pod) and is_pod_ready(pod)


def check_bounds(cluster: VirtualCluster, replicas: int, surge: int, unavailable: int, since: int) -> None:
    """`since`: the revision at which the Deployment was complete for the first time."""
    assert max(sums(cluster, REPLICASETS, lambda each: each["spec"]["replicas"])) <= replicas + surge
    assert max(sums(cluster, PODS, is_pod_active)) <= replicas + surge
    assert min(sums(cluster, PODS, is_available, since)) >= replicas - unavailable


def check_owners(cluster: VirtualCluster) -> None:
    """One controller from the first version to the last, and it is there."""
    owners: dict[str, str] = {}
    sets: dict[str, str] = {}
    for seen in cluster.history[REPLICASETS]:
        (reference,) = seen.object["metadata"]["ownerReferences"]
        assert (reference["kind"], reference["controller"]) == ("Deployment", True)
        sets[uid_of(seen.object)] = name_of(seen.object)
    for seen in cluster.history[PODS]:
        (reference,) = seen.object["metadata"]["ownerReferences"]
        owner = controller_of(seen.object)
        assert owner == reference
        assert sets[owner["uid"]] == owner["name"]
        assert owners.setdefault(uid_of(seen.object), owner["uid"]) == owner["uid"]


def rolling(surge: Any, unavailable: Any, replicas: int = REPLICAS, version: str = "v1", **spec: Any) -> Object:
    strategy = {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}
    return workload("Deployment", replicas=replicas, strategy=strategy, pods=pod_template(version), **spec)


async def roll(cluster: VirtualCluster, version: str) -> None:
    await cluster.patch("deployment/web", {"spec": {"template": pod_template(version)}})


async def converged(cluster: VirtualCluster, limit: float = 3000) -> int:
    """The revision at which it was."""
    await cluster.sleep(0.1)  # what was just asked for is to be seen first
    await cluster.wait_until(lambda: complete(cluster), limit)
    return int(deployment(cluster)["metadata"]["resourceVersion"])


async def images(cluster: VirtualCluster) -> Counter[str]:
    return Counter(pod["spec"]["containers"][0]["image"] for pod in await pods(cluster))


async def versions(cluster: VirtualCluster) -> list[str]:
    """Of the Deployment and its ReplicaSets: changed by every write."""
    found = [*await listed(cluster, DEPLOYMENTS), *await listed(cluster, REPLICASETS)]
    return [each["metadata"]["resourceVersion"] for each in found]


WATCHED = (DEPLOYMENTS, REPLICASETS)


@pytest.mark.timeout(600)
def test_500_pods_of_which_some_never_work_stop_at_the_deadline_and_undo_converges():
    counts = CountedWrites()

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(rolling("10%", "5%", progressDeadlineSeconds=DEADLINE))
        since = await converged(cluster)
        await roll(cluster, "v2")
        await cluster.wait_until(lambda: progressing(cluster) == ("False", "ProgressDeadlineExceeded"), 3000)
        assert DEADLINE <= cluster.now - last_progress(cluster) <= DEADLINE + 2
        stuck = await images(cluster)
        assert stuck["app:v1"] > 0
        assert stuck["app:v2"] > 75
        before = await versions(cluster)
        await cluster.sleep(60)
        assert await versions(cluster) == before
        await roll(cluster, "v1")
        await converged(cluster)
        await cluster.sleep(60)
        check_bounds(cluster, REPLICAS, 50, 25, since)
        check_owners(cluster)
        assert await images(cluster) == {"app:v1": REPLICAS}
        first, second = sorted(await listed(cluster, REPLICASETS), key=lambda each: -each["spec"]["replicas"])
        assert [each["spec"]["replicas"] for each in (first, second)] == [REPLICAS, 0]
        annotations = first["metadata"]["annotations"]
        assert annotations["deployment.kubernetes.io/revision"] == "3"
        assert annotations["deployment.kubernetes.io/revision-history"] == "1"
        assert progressing(cluster) == ("True", "NewReplicaSetAvailable")
        check_writes(counts, created=len(cluster._versions), left=REPLICAS)

    shares = mixed(v1=((80, FAST), (20, STUBBORN)), v2=((55, FAST), (20, SLOW), (15, NEVER), (10, CRASHES)))
    run_cluster(scenario, shares, nodes=NODES, watched=WATCHED, wrap=counts.wrap)


def check_writes(counts: CountedWrites, created: int, left: int) -> None:
    """Each Pod is made once and deleted once; what sums them up is written far less often than they change."""
    assert counts.of(MANAGER, "create", "pods") == created
    assert counts.of(MANAGER, "delete", "pods") == created - left
    assert counts.of(MANAGER, plural="pods") == 2 * created - left
    assert counts.most(MANAGER, "replicasets")[0] <= created / 2
    assert counts.most(MANAGER, "deployments")[0] <= created / 2


def test_a_rollout_that_is_through_costs_no_more_writes():
    counts = CountedWrites()
    replicas = 100

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(rolling("25%", "25%", replicas))
        since = await converged(cluster)
        await roll(cluster, "v2")
        await converged(cluster)
        await cluster.sleep(60)
        check_bounds(cluster, replicas, 25, 25, since)
        check_owners(cluster)
        check_writes(counts, created=2 * replicas, left=replicas)
        before, written = await versions(cluster), counts.of(MANAGER)
        await cluster.sleep(600)
        assert (await versions(cluster), counts.of(MANAGER)) == (before, written)

    shares = mixed(v1=((70, FAST), (30, STUBBORN)), v2=((60, FAST), (25, SLOW), (15, STUBBORN)))
    run_cluster(scenario, shares, nodes=4, watched=WATCHED, wrap=counts.wrap)


def last_progress(cluster: VirtualCluster) -> float:
    """When a Pod was last made anew, became available or went, as the Deployment's status told it.

    Source: deployment/util/deployment_util.go:DeploymentProgressing.
    """
    at, before = 0.0, (0, 0, 0, 0)
    for seen in cluster.history[DEPLOYMENTS]:
        status = seen.object.get("status") or {}
        total, updated, ready, available = (
            status.get(key, 0) for key in ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
        )
        now = (updated, updated - total, ready, available)
        if any(one > other for one, other in zip(now, before, strict=True)):
            at = seen.at
        before = now
    return at


@pytest.mark.parametrize(("surge", "unavailable"), [(1, 0), (0, 1), ("30%", 0), (0, "30%"), ("100%", "100%"), (3, 7)])
def test_whatever_the_strategy_allows_is_never_exceeded(surge, unavailable):
    replicas = 30
    most, least = fenceposts(surge, unavailable, replicas)

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(rolling(surge, unavailable, replicas))
        since = await converged(cluster)
        await roll(cluster, "v2")
        await converged(cluster)
        await cluster.sleep(60)
        check_bounds(cluster, replicas, most, least, since)
        check_owners(cluster)
        assert await images(cluster) == {"app:v2": replicas}

    shares = mixed(v1=((70, FAST), (30, STUBBORN)), v2=((60, FAST), (25, SLOW), (15, STUBBORN)))
    run_cluster(scenario, shares, nodes=3, watched=WATCHED)


def test_pods_that_stop_being_ready_by_themselves_are_no_reason_to_take_more_away():
    """A Pod that was available and crashes makes less of them; a rollout must not use up what is missing then."""
    replicas = 40

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(rolling("20%", "20%", replicas))
        since = await converged(cluster)
        await roll(cluster, "v2")
        await cluster.sleep(400)
        assert min(sums(cluster, PODS, is_available, since)) < replicas - 8, "they do crash"
        was_ready: dict[str, None] = {}

        def never_taken(pod: Object) -> bool:
            if is_pod_ready(pod):
                was_ready[uid_of(pod)] = None
            return uid_of(pod) in was_ready and is_pod_active(pod)

        assert min(sums(cluster, PODS, never_taken, since)) >= replicas - 8
        assert max(sums(cluster, PODS, is_pod_active)) <= replicas + 8

    flapping = Program(ports={PORT: Listener()}, exits_after=12, natural_exit_code=1)
    run_cluster(scenario, mixed(v1=((100, FAST),), v2=((40, FAST), (60, flapping))), nodes=3, watched=WATCHED)
