"""Late, double and lost: what happens between a component and the API server must not change how a Pod ends."""

import pytest
from scenario_facts import final_facts
from scenario_faults import Faults, FaultyClient
from virtual_cluster import VirtualCluster, container, pod_manifest, pre_stop, run_cluster, service

from lastcall.cri.simulated_program import Program
from lastcall.timeline import kinds

PROGRAMS = {"app": Program(drain_seconds=3), "slow": Program(on_term="ignore"), "once": Program(exits_after=2.0)}


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
