"""Late, double and lost: what happens between a component and the API server must not change how a Pod ends."""

from typing import cast

import pytest
from scenario.facts import final_facts
from scenario.faults import Faults, FaultyClient
from virtual_cluster import VirtualCluster, container, pod_manifest, pre_stop, run_cluster, service
from workloads import workload

from lastcall.kube.client.api import Client
from lastcall.kube.cri.simulated_program import Program
from lastcall.records import kinds

# The drain is longer than the longest pause after a watch broke: what happens in it is seen whatever breaks.
PROGRAMS = {"app": Program(drain_seconds=8), "slow": Program(on_term="ignore"), "once": Program(exits_after=2.0)}


async def story(cluster: VirtualCluster) -> None:
    """Three Pods: one drains behind a Service, one has a hook and must be killed, one ends by itself."""
    drains = pod_manifest(
        "drains",
        labels={"app": "p"},
        containers=[
            container("app", readinessProbe={"exec": {"command": ["true"]}, "periodSeconds": 1}),
        ],
    )
    slow = pod_manifest(
        "slow",
        terminationGracePeriodSeconds=6,
        containers=[container("slow", **pre_stop(exec=["sleep", "2"]))],
    )
    once = pod_manifest("once", restartPolicy="Never", containers=[container("once")])
    await cluster.create(service(), drains, slow, once)
    await cluster.wait_ready("drains", "slow")
    await cluster.wait_phase("once", "Succeeded")
    await cluster.sleep(1)
    for pod in ("drains", "slow", "once"):
        await cluster.delete(f"pod/{pod}")
    await cluster.wait_gone("drains", "slow", "once")
    await cluster.sleep(15)


def outcome(cluster: VirtualCluster) -> dict:
    pods = ("drains", "slow", "once")
    return {
        "final": {pod: final_facts(cluster.pod(pod), cluster.is_gone(pod)) for pod in pods},
        "signals": {c: [name for _, name in cluster.signals(c)] for c in ("app", "slow", "once")},
        "starts": sorted(r.container for r in cluster.records(kinds.PROCESS_STARTED)),
        "hooks": len(cluster.records(kinds.PRE_STOP_STARTED)),
        "killings": sorted(r.container for r in cluster.records(kinds.KILLING)),
        "detached": len(cluster.records(kinds.NETWORK_DETACHED)),
        "endpoints at the end": cluster.endpoints("svc")[-1],
        "was terminating": any("terminating=true" in line for state in cluster.endpoints("svc") for line in state),
    }


QUIET = run_cluster(story, PROGRAMS)

FAULTS = {
    "every tenth watch event breaks the watch": Faults(lost_watches=10),
    "every third watch event breaks the watch": Faults(lost_watches=3),
    "every watch event comes twice": Faults(duplicates=True),
    "every fourth change meets a conflict": Faults(conflicts=4),
    "every fifth change fails at the server": Faults(failures=5),
    "every sixth answer gets lost": Faults(lost_answers=6),
    "all of it": Faults(lost_watches=7, duplicates=True, conflicts=5, failures=7, lost_answers=8),
}


@pytest.mark.parametrize("faults", list(FAULTS.values()), ids=list(FAULTS))
def test_pods_end_the_same_way_whatever_happens_between_a_component_and_the_api_server(faults: Faults) -> None:
    log: dict[str, int] = {}
    cluster = run_cluster(story, PROGRAMS, wrap=lambda client, component: FaultyClient(client, faults, log))
    assert log, "nothing was injected"
    assert outcome(cluster) == outcome(QUIET)


@pytest.mark.rule("node-semantics 23/counts")
def test_no_event_about_a_pod_is_said_twice_when_watches_break() -> None:
    cluster = run_cluster(story, PROGRAMS, wrap=lambda c, component: FaultyClient(c, Faults(lost_watches=3), {}))
    for pod in ("drains", "slow", "once"):
        assert said(cluster, pod) == said(QUIET, pod)


def said(cluster: VirtualCluster, pod: str) -> list[str]:
    """Without probes that run into the end of their container: whether one does is chance."""
    return sorted(line for line in cluster.events(pod) if "Readiness probe errored" not in line)


def test_a_kubelet_that_never_saw_the_first_write_of_a_force_delete_gives_the_spec_s_grace() -> None:
    """node-semantics 5.6 row 1, golden correction 1: only then does terminationGracePeriodSeconds apply."""
    broken: list[FaultyClient] = []

    def wrap(client, component: str):
        if not component.startswith("node:"):
            return client
        broken.append(FaultyClient(client, Faults(), {}))
        return broken[-1]

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(terminationGracePeriodSeconds=7))
        await cluster.wait_ready()
        await cluster.sleep(1)
        broken[0]._faults = Faults(lost_watches=1)  # the next event breaks the watch; the list after it has no Pod
        await cluster.delete(grace=0)
        broken[0]._faults = Faults(lost_watches=1)
        await cluster.sleep(0.01)
        broken[0]._faults = Faults()
        await cluster.wait_until(lambda: cluster.records(kinds.PROCESS_EXITED))

    cluster = run_cluster(scenario, {"app": Program(on_term="ignore")}, wrap=wrap)
    assert cluster.signals() == [(pytest.approx(0, abs=0.05), "SIGTERM"), (pytest.approx(7, abs=0.05), "SIGKILL")]
    assert cluster.records(kinds.TERMINATION_OBSERVED)[0].facts["cause"] == "kill"


async def nodes_and_preemption(cluster: VirtualCluster) -> None:
    """A Pod makes room for itself, a taint ends another, a node is lost and its Pods are replaced."""
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 10}
    big = container("app", resources={"requests": {"cpu": "1500m"}})
    await cluster.create(high, workload("Deployment", replicas=4))
    for number in range(3):
        await cluster.create(pod_manifest(f"low-{number}", containers=[big], nodeName=f"node-{number + 1}"))
    await cluster.wait_ready("low-0", "low-1", "low-2")
    await cluster.create(pod_manifest("high", containers=[big], priorityClassName="high"))
    await cluster.wait_ready("high")
    await cluster.create(pod_manifest("tainted", nodeName="node-3"))
    await cluster.wait_ready("tainted")
    await cluster.patch("node/node-3", {"spec": {"taints": [{"key": "t", "effect": "NoExecute"}]}})
    await cluster.wait_gone("tainted")
    await cluster.patch("node/node-3", {"spec": {"taints": None}})
    await cluster.sleep(60)
    await cluster.kill_kubelet("node-2")
    await cluster.sleep(500)


@pytest.mark.parametrize(
    "faults",
    [
        Faults(),
        Faults(lost_watches=7),
        Faults(duplicates=True),
        Faults(conflicts=3),
        Faults(failures=3),
        Faults(lost_answers=3),
        Faults(lost_watches=11, duplicates=True, conflicts=7, failures=5, lost_answers=5),
    ],
    ids=str,
)
def test_scheduler_and_node_controllers_come_to_the_same_end(faults: Faults) -> None:
    log: dict[str, int] = {}

    def wrap(client: Client, component: str) -> Client:
        if component in ("kube-scheduler", "kube-controller-manager"):
            return cast(Client, FaultyClient(client, faults, log))
        return client

    cluster = run_cluster(nodes_and_preemption, {"app": Program(drain_seconds=2)}, nodes=3, wrap=wrap)
    assert bool(log) == (faults != Faults())
    alive = [seen.object for seen in cluster.last_of_each_pod() if "deletionTimestamp" not in seen.object["metadata"]]
    web = [pod for pod in alive if pod["metadata"]["name"].startswith("web")]
    assert len(web) == 4
    assert {pod["spec"].get("nodeName") for pod in web} <= {"node-1", "node-3"}
    assert cluster.pod("high")["spec"]["nodeName"]
    # Exactly one of the three made room, and nobody else was ended by the scheduler.
    ended = [r.pod_uid for r in cluster.records(kinds.DELETION_DECIDED) if "preempted by" in r.facts["why"]]
    assert len(set(ended)) == 1
    bound = [r.pod_uid for r in cluster.records(kinds.POD_BOUND)]
    assert len(bound) == len(set(bound))
