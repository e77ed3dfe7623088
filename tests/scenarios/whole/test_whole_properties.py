"""What holds however things fall together: rollouts, budgets and identities under drawn interleavings."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from virtual_cluster import VirtualCluster, run_cluster
from workloads import pods, template, workload

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import Object, is_terminating, name_of, uid_of
from lastcall.kube.api.pods.spec import get_condition, is_pod_ready
from lastcall.kube.api.resources import PODDISRUPTIONBUDGETS, PODS
from lastcall.kube.controllers.deployment.rolling import (
    max_surge,
    max_unavailable,
    new_replicas,
    replicas_of,
    shrink_old,
)
from lastcall.kube.controllers.ownership import controller_of
from lastcall.kube.cri.simulated_program import Program
from lastcall.records import kinds
from lastcall.world.clock import now, rfc3339

EXAMPLES = settings(max_examples=20, deadline=None, derandomize=True)
SHARE = st.one_of(st.integers(0, 6), st.integers(0, 100).map(lambda percent: f"{percent}%"))


# -- a rolling update, step by step ----------------------------------------------------------------------------------


@dataclass
class Rollout:
    """A Deployment's ReplicaSets with their Pods, without a cluster: what its controller reads and writes."""

    replicas: int
    surge: int | str
    unavailable: int | str
    sets: list[Object] = field(default_factory=list)
    available: dict[str, int] = field(default_factory=dict)
    """Of each ReplicaSet's Pods; its status says so after `report`."""

    @property
    def deployment(self) -> Object:
        rolling = {"maxSurge": self.surge, "maxUnavailable": self.unavailable}
        return {"spec": {"replicas": self.replicas, "strategy": {"type": "RollingUpdate", "rollingUpdate": rolling}}}

    def revise(self) -> None:
        """A new template: what was new is old now."""
        name = f"rs-{len(self.sets)}"
        meta = {"name": name, "uid": name, "creationTimestamp": f"2030-01-01T00:00:{len(self.sets):02}Z"}
        made: Object = {"metadata": meta, "spec": {"replicas": 0}, "status": {"availableReplicas": 0}}
        self.sets.append(made)
        self.available[name] = 0

    def step(self) -> bool:
        """As `DeploymentController._roll`; False when there is nothing to do."""
        *old, new = self.sets
        size = min(self.replicas, new_replicas(self.deployment, self.sets, new))
        if size != replicas_of(new):
            new["spec"]["replicas"] = size
            self.report(new)
            return True
        steps = shrink_old(self.deployment, [each for each in old if replicas_of(each)], new)
        for step in steps:
            step.replica_set["spec"]["replicas"] = step.replicas
            self.report(step.replica_set)
        return bool(steps)

    def report(self, each: Object) -> None:
        """Its controller has done what is asked, those that do not work first, and says so."""
        name = name_of(each)
        self.available[name] = min(self.available[name], replicas_of(each))
        each["status"]["availableReplicas"] = self.available[name]

    def works(self, number: int, count: int) -> None:
        each = self.sets[number % len(self.sets)]
        self.available[name_of(each)] = min(replicas_of(each), self.available[name_of(each)] + count)
        self.report(each)

    def check(self) -> None:
        assert sum(map(replicas_of, self.sets)) <= self.replicas + max_surge(self.deployment)
        assert sum(self.available.values()) >= self.replicas - max_unavailable(self.deployment)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    replicas=st.integers(1, 30), surge=SHARE, unavailable=SHARE,
    acts=st.lists(
        st.tuples(st.sampled_from(["step", "works", "revise"]), st.integers(0, 5), st.integers(1, 9)), max_size=60
    ),
)  # fmt: skip
def test_any_way_through_a_rollout_keeps_its_bounds_and_ends(replicas, surge, unavailable, acts):
    rollout = Rollout(replicas, surge, unavailable)
    rollout.revise()
    rollout.sets[0]["spec"]["replicas"] = replicas
    rollout.works(0, replicas)
    rollout.revise()
    for act, number, count in acts:
        if act == "step":
            rollout.step()
        elif act == "works":
            rollout.works(number, count)
        elif len(rollout.sets) < 6:
            rollout.revise()
        rollout.check()
    for _ in range(4 * replicas + 20):
        done = not rollout.step()
        rollout.check()
        rollout.works(-1, replicas)
        rollout.check()
        if done and replicas_of(rollout.sets[-1]) == replicas and sum(map(replicas_of, rollout.sets)) == replicas:
            return
    raise AssertionError(f"it does not end: {[replicas_of(each) for each in rollout.sets]}")


# -- budgets ---------------------------------------------------------------------------------------------------------

GATE = "example.com/works"
BUDGETS = st.sampled_from(
    [
        ({"minAvailable": 3}, 3),
        ({"maxUnavailable": 1}, 4),
        ({"maxUnavailable": "40%"}, 3),
        ({"minAvailable": "100%"}, 5),
        ({"maxUnavailable": 2, "unhealthyPodEvictionPolicy": "AlwaysAllow"}, 3),
    ]
)
ACTS = st.lists(
    st.tuples(
        st.sampled_from(["evict", "evict", "evict", "delete", "flip", "wait"]), st.integers(0, 4), st.integers(0, 3)
    ),
    min_size=5,
    max_size=25,
)


def is_healthy(pod: Object) -> bool:
    return is_pod_ready(pod) and not is_terminating(pod)


async def set_gate(cluster: VirtualCluster, pod: Object, *, works: bool) -> None:
    condition = {"type": GATE, "status": str(works), "lastTransitionTime": rfc3339(now(cluster.world.clock))}
    others = [each for each in pod["status"].get("conditions") or [] if each["type"] != GATE]
    await cluster.patch(f"pod/{name_of(pod)}", {"status": {"conditions": [*others, condition]}}, subresource="status")


async def evict(cluster: VirtualCluster, name: str) -> int:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
    try:
        await cluster.client.create(PODS, body, "default", name=name, subresource="eviction")
    except StatusError as error:
        return error.code
    return 201


@EXAMPLES
@given(budget=BUDGETS, acts=ACTS)
def test_no_eviction_takes_a_budget_below_what_it_wants_whatever_else_happens(budget, acts):
    """Deletions and Pods that stop working ask no budget; an eviction after them has to wait until it allows it."""
    spec, wanted = budget

    async def scenario(cluster: VirtualCluster) -> None:
        owned = template(readinessGates=[{"conditionType": GATE}])
        guard = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "guard"}}
        selector = {"selector": {"matchLabels": {"app": "web"}}}
        await cluster.create(workload("ReplicaSet", replicas=5, pods=owned), {**guard, "spec": {**selector, **spec}})
        await settle(cluster)
        await repair(cluster)
        await settle(cluster)
        for act, which, pause in acts:
            alive = sorted(await pods(cluster), key=name_of)
            pod = alive[which % len(alive)]
            if act == "evict":
                await check_eviction(cluster, pod)
            elif act == "delete":
                await cluster.delete(f"pod/{name_of(pod)}")
                await settle(cluster)
            elif act == "flip" and not is_terminating(pod):
                await set_gate(cluster, pod, works=not is_pod_ready(pod))
                await settle(cluster)
            elif act == "wait":
                await cluster.sleep(pause)
                await repair(cluster)
                await settle(cluster)

    async def check_eviction(cluster: VirtualCluster, pod: Object) -> None:
        before = [each for each in await pods(cluster) if is_healthy(each)]
        code = await evict(cluster, name_of(pod))
        after = sum(is_healthy(each) for each in await pods(cluster))
        assert code in (201, 429)
        was_healthy = uid_of(pod) in {uid_of(each) for each in before}
        if code == 201 and was_healthy:
            assert after >= wanted
        elif code == 429:
            assert after == len(before)
            if was_healthy:
                found = await cluster.client.get(PODDISRUPTIONBUDGETS, "guard", "default")
                assert found["status"]["disruptionsAllowed"] == 0

    async def repair(cluster: VirtualCluster) -> None:
        """New Pods work after a while."""
        for pod in await pods(cluster):
            if not is_terminating(pod) and get_condition(pod["status"], GATE) is None:
                await set_gate(cluster, pod, works=True)

    async def settle(cluster: VirtualCluster) -> None:
        """Until the disruption controller has seen it."""
        await cluster.sleep(0.3)

    run_cluster(scenario, {"app": Program(drain_seconds=1)})


# -- identities ------------------------------------------------------------------------------------------------------

EVENTS_OF_A_SET = st.lists(
    st.tuples(
        st.sampled_from(["delete", "scale", "revise", "lose", "return", "kill manager", "wait", "wait"]),
        st.integers(0, 3),
        st.integers(1, 40),
    ),
    min_size=3,
    max_size=14,
)


@EXAMPLES
@given(acts=EVENTS_OF_A_SET, policy=st.sampled_from(["OrderedReady", "Parallel"]))
def test_two_pods_of_one_identity_never_run_at_once_and_each_has_one_owner(acts, policy):
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(workload("StatefulSet", serviceName="web", replicas=3, podManagementPolicy=policy))
        await cluster.sleep(10)
        away: set[str] = set()
        revision = 1
        for act, which, amount in acts:
            node = f"node-{which % 2 + 1}"
            if act == "delete":
                await delete(cluster, f"web-{which}")
            elif act == "scale":
                await cluster.patch("statefulset/web", {"spec": {"replicas": which}})
            elif act == "revise":
                revision += 1
                await cluster.patch("statefulset/web", {"spec": {"template": template(f"app:{revision}")}})
            elif act == "lose" and node not in away:
                away.add(node)
                await cluster.kill_kubelet(node)
            elif act == "return" and node in away:
                away.remove(node)
                cluster.start_kubelet(node)
            elif act == "kill manager":
                await cluster.kill_manager()
                cluster.start_manager()
            elif act == "wait":
                await cluster.sleep(amount * 10)
            await cluster.sleep(amount / 10)
        for node in sorted(away):
            cluster.start_kubelet(node)
        await cluster.patch("statefulset/web", {"spec": {"replicas": 3}})
        await cluster.sleep(400)
        left = await pods(cluster)
        assert sorted(map(name_of, left)) == ["web-0", "web-1", "web-2"]
        assert all(is_healthy(pod) for pod in left)
        assert {pod["spec"]["containers"][0]["image"] for pod in left} == {f"app:{revision}"}
        check_identities(cluster)

    async def delete(cluster: VirtualCluster, name: str) -> None:
        try:
            await cluster.delete(f"pod/{name}")
        except StatusError as error:
            if error.code != 404:
                raise

    run_cluster(scenario, {"app": Program(drain_seconds=4)}, nodes=2)


def check_identities(cluster: VirtualCluster) -> None:
    owners: dict[str, str] = {}
    for seen in cluster.history[PODS]:
        owner = controller_of(seen.object)
        assert owner is not None
        assert owners.setdefault(uid_of(seen.object), owner["uid"]) == owner["uid"]
    running: dict[str, str] = {}
    for record in cluster.all_records:
        if record.kind == kinds.PROCESS_STARTED:
            name = cluster.alias(record.pod_uid).partition("~")[0]
            assert name not in running, f"{name} runs twice at {record.at_ns / 1e9:.3f}"
            running[name] = record.pod_uid
        elif record.kind == kinds.PROCESS_EXITED:
            name = cluster.alias(record.pod_uid).partition("~")[0]
            assert running.pop(name, record.pod_uid) == record.pod_uid
    assert len(set(owners.values())) == 1


@pytest.mark.parametrize("forced", [False, True])
def test_the_check_of_identities_can_fail(forced: bool):
    """Who deletes by force takes the promise away: the old one runs on beside the new one."""

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(workload("StatefulSet", serviceName="web", replicas=1))
        await cluster.sleep(5)
        await cluster.delete("pod/web-0", grace=0 if forced else None)
        await cluster.sleep(20)
        if forced:
            with pytest.raises(AssertionError, match="web-0 runs twice"):
                check_identities(cluster)
        else:
            check_identities(cluster)

    run_cluster(scenario, {"app": Program(drain_seconds=4)})
