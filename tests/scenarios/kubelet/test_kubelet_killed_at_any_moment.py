"""SIGKILL of the kubelet at every moment of a Pod's life: it is started again and the Pod still ends as it should."""

from itertools import pairwise

import pytest
from virtual_cluster import VirtualCluster, container, pod_manifest, pre_stop, run_cluster, service

from lastcall.kube.cri.simulated_program import Program
from lastcall.records import kinds

PROGRAMS = {"app": Program(drain_seconds=1.0), "once": Program(exits_after=1.5)}


async def life(cluster: VirtualCluster, kill_at: float | None = None, down: float = 1.0) -> None:
    """Create two Pods, delete the one that runs; kill the kubelet `kill_at` seconds after the beginning."""
    began = cluster.now

    async def killer() -> None:
        if kill_at is not None:
            await cluster.sleep(kill_at - (cluster.now - began))
            await cluster.kill_kubelet()
            await cluster.sleep(down)
            cluster.start_kubelet()

    killing = cluster._tasks.spawn(killer(), name="killer")
    await cluster.create(
        service(),
        pod_manifest(terminationGracePeriodSeconds=8, containers=[container(**pre_stop(exec=["sleep", "1"]))]),
        pod_manifest("once", restartPolicy="Never", containers=[container("once")]),
    )
    await cluster.wait_ready()
    await cluster.sleep(1)
    await cluster.delete()
    await cluster.wait_gone(limit=120)
    await cluster.wait_phase("once", "Succeeded", limit=120)
    await killing
    await cluster.sleep(20)


def moments() -> list[float]:
    """The times of all records of an undisturbed run, and the middle between each two of them."""
    cluster = run_cluster(life, PROGRAMS)
    began = cluster.at(kinds.POD_CREATED)
    times = sorted({round(r.at_ns / 1e9 - began, 6) for r in cluster.all_records if r.at_ns / 1e9 - began < 5})
    middles = [(a + b) / 2 for a, b in pairwise(times)]
    return sorted({*times, *middles})


@pytest.mark.rule("node-semantics 7/at-least-once, 20/8, 20/9")
@pytest.mark.parametrize("down", [0.0, 1.0, 5.0])
def test_the_pod_ends_the_same_way_whenever_the_kubelet_was_killed(down: float) -> None:
    seen = set()
    for moment in moments():
        cluster = run_cluster(lambda c, moment=moment: life(c, moment, down), PROGRAMS)
        where = f"killed {moment} s after the beginning, down for {down} s"
        ended = cluster.container_status()["state"]["terminated"]
        assert (ended["exitCode"], ended["reason"]) == (0, "Completed"), where
        assert cluster.status()["phase"] == "Succeeded", where
        assert cluster.container_status("once", "once")["state"]["terminated"]["exitCode"] == 0, where
        started, exited = cluster.records(kinds.PROCESS_STARTED), cluster.records(kinds.PROCESS_EXITED)
        assert len(started) == len(exited), f"{where}: a container is left"
        assert [r.container for r in started].count("once") == 1, f"{where}: a Pod that must not restart was restarted"
        attached = [r.facts["ip"] for r in cluster.records(kinds.NETWORK_ATTACHED)]
        detached = [r.facts["ip"] for r in cluster.records(kinds.NETWORK_DETACHED)]
        assert sorted(attached) == sorted(detached), f"{where}: a network is left"
        assert not [r for r in cluster.records(kinds.SIGNAL_SENT) if r.facts["signal"] == "SIGKILL"], where
        assert cluster.endpoints("svc")[-1] == [], where
        seen.add(len(cluster.records(kinds.PRE_STOP_STARTED)))
    assert seen == {1, 2}, "the moments are chosen so that the hook is cut in some of them"
