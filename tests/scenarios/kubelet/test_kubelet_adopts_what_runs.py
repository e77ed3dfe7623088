"""SIGKILL of the kubelet beside Pods that run, at every moment after they are Ready: they notice nothing."""

from itertools import pairwise

import pytest
from virtual_cluster import VirtualCluster, container, pod_manifest, pre_stop, run_cluster, service

from lastcall.kube.cri.simulated_program import Program
from lastcall.records import kinds

PROGRAMS = {"app": Program(drain_seconds=0.5), "crash": Program(exits_after=0.4, natural_exit_code=1)}
READY = 4.0
"""Seconds after which every Pod of these scenarios has settled."""


def probe(seconds: float) -> dict:
    return {"exec": {"command": ["sleep", str(seconds)]}, "periodSeconds": 1, "timeoutSeconds": 5}


async def steady(cluster: VirtualCluster, kill_at: float | None = None, down: float = 0.0) -> None:
    """Two Pods with slow probes; `kill_at` seconds after the beginning the kubelet dies. Then both are deleted."""
    began = cluster.now
    slow = container(
        readinessProbe=probe(0.7), livenessProbe=probe(0.3), startupProbe=probe(0.2), **pre_stop(exec=["sleep", "1"])
    )
    sidecar = {**container("side"), "restartPolicy": "Always", "readinessProbe": probe(0.4), "startupProbe": probe(0.1)}
    await cluster.create(
        service(), pod_manifest(containers=[slow]), pod_manifest("q", initContainers=[sidecar], labels={"app": "p"})
    )
    await cluster.wait_ready("p", "q")
    assert cluster.now - began < READY
    if kill_at is not None:
        await cluster.sleep(kill_at - (cluster.now - began))
        await cluster.kill_kubelet()
        await cluster.sleep(down)
        cluster.start_kubelet()
    await cluster.sleep(READY + 4 - (cluster.now - began))
    await cluster.delete("pod/p")
    await cluster.delete("pod/q")
    await cluster.wait_gone("p", "q", limit=60)


def moments() -> list[float]:
    cluster = run_cluster(steady, PROGRAMS)
    began = cluster.at(kinds.POD_CREATED)
    times = sorted({round(r.at_ns / 1e9 - began, 6) for r in cluster.all_records})
    times = [at for at in times if READY <= at < READY + 2.5]
    return sorted({*times, *((a + b) / 2 for a, b in pairwise(times))})


@pytest.mark.rule("node-semantics 20/6")
@pytest.mark.parametrize("down", [0.0, 3.0])
def test_pods_that_run_notice_nothing_of_a_killed_kubelet(down: float) -> None:
    for moment in moments():
        cluster = run_cluster(lambda c, moment=moment: steady(c, moment, down), PROGRAMS)
        where = f"killed {moment} s after the beginning, down for {down} s"
        for pod in ("p", "q"):
            alive = [v.object for v in cluster.versions(pod) if not v.object["metadata"].get("deletionTimestamp")]
            ready = [_condition(each, "Ready") for each in alive]
            assert ready == sorted(ready), f"{where}: {pod} was not Ready for a while: {ready}"
            for status in _container_statuses(cluster, pod):
                assert status["restartCount"] == 0, where
        started = [r.container for r in cluster.records(kinds.PROCESS_STARTED)]
        assert sorted(started) == ["app", "app", "side"], where
        alive = [e for e in cluster.endpoints("svc") if not any("terminating=true" in line for line in e)]
        serving = [sum("ready=true" in line for line in each) for each in alive if each]
        assert serving == sorted(serving) and serving[-1] == 2, (where, serving)
        for reason in ("Pulled", "Created", "Started", "Scheduled"):
            said = [line for line in cluster.events("p") if line.split()[1].rstrip(":") == reason]
            assert len(said) == 1 and " (x" not in said[0], (where, said)
        deleted = cluster.at(kinds.DELETE_ACCEPTED)
        assert not [at for pod in "pq" for at in cluster.event_times("Unhealthy", pod) if at < deleted], where


@pytest.mark.rule("node-semantics 20/6")
def test_a_container_in_back_off_is_restarted_once_and_counted_on() -> None:
    """The length of the back-off is lost with the kubelet (it starts again at 10 s), the count is not."""

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest("crash", containers=[container("crash")]))
        await cluster.wait_until(lambda: cluster.container_status("crash", "crash").get("restartCount") == 2)
        await cluster.sleep(1)
        await cluster.kill_kubelet()
        await cluster.sleep(0.5)
        cluster.start_kubelet()
        await cluster.wait_until(lambda: cluster.container_status("crash", "crash").get("restartCount") == 3)
        await cluster.sleep(5)
        await cluster.delete("pod/crash")
        await cluster.wait_gone("crash")

    cluster = run_cluster(scenario, PROGRAMS)
    counts = [
        s["restartCount"] for v in cluster.versions("crash") for s in v.object["status"].get("containerStatuses", [])
    ]
    assert counts == sorted(counts) and set(counts) == {0, 1, 2, 3}


def _condition(pod: dict, type_: str) -> str:
    found = (c["status"] for c in pod["status"].get("conditions") or [] if c["type"] == type_)
    return next(found, "False")


def _container_statuses(cluster: VirtualCluster, pod: str) -> list[dict]:
    status = cluster.status(pod)
    return [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
