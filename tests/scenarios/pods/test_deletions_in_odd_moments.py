"""Deletions while something else is going on, and faults of the runtime (node-semantics 25)."""

from itertools import pairwise

import pytest
from virtual_cluster import VirtualCluster, container, pod_manifest, pre_stop, run_cluster, service

from lastcall.kube.cri.simulated import SimulatedImage
from lastcall.kube.cri.simulated_program import Program
from lastcall.records import kinds


def near(value: float, by: float = 0.05):
    return pytest.approx(value, abs=by)


IGNORES = Program(on_term="ignore")


@pytest.mark.rule("node-semantics 6/cancel, 15/not-cancelled, 25/15")
def test_a_delete_during_an_image_pull_waits_for_it_and_then_starts_and_stops_the_container() -> None:
    """25.15, golden correction 36."""

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(containers=[container(image="slow:1")]))
        await cluster.sleep(1)
        await cluster.delete()
        await cluster.wait_gone()

    cluster = run_cluster(scenario, {"app": Program()}, images={"slow:1": SimulatedImage(False, pull_seconds=6)})
    order = [kinds.DELETE_ACCEPTED, kinds.PROCESS_STARTED, kinds.KILLING, kinds.SIGNAL_SENT, kinds.OBJECT_REMOVED]
    assert cluster.kinds(*order) == order
    assert cluster.at(kinds.PROCESS_STARTED) == near(6)
    assert cluster.status()["phase"] == "Succeeded"


@pytest.mark.rule("node-semantics 6/pending, 11.4/unknown, 25/15")
def test_a_delete_during_an_image_pull_that_fails_ends_a_pod_that_never_ran() -> None:
    """25.15, second half; golden correction 5: the conditions stay ContainersNotReady."""
    missing = SimulatedImage(False, pull_seconds=6, error="not found")

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(containers=[container(image="none:1")]))
        await cluster.sleep(1)
        await cluster.delete()
        await cluster.wait_gone()

    cluster = run_cluster(scenario, images={"none:1": missing})
    terminated = cluster.container_status()["state"]["terminated"]
    assert (terminated["reason"], terminated["exitCode"]) == ("ContainerStatusUnknown", 137)
    assert cluster.status()["phase"] == "Failed"
    ready = next(c for c in cluster.status()["conditions"] if c["type"] == "Ready")
    assert ready["reason"] == "ContainersNotReady"
    assert cluster.records(kinds.KILLING) == []


@pytest.mark.rule("node-semantics 6/failed-kill, 6/sandbox, 25/11, 23/kill-failed")
def test_a_stop_that_fails_once_is_tried_again_and_the_hook_is_not_run_for_a_dead_container() -> None:
    """25.11: the sandbox is stopped anyway and takes the container with it."""

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(
            pod_manifest(terminationGracePeriodSeconds=6, containers=[container(**pre_stop(exec=["sleep", "1"]))])
        )
        await cluster.wait_ready()
        cluster.runtime.fail_next("stop_container", "rpc error: code = Unknown desc = no")
        await cluster.delete()
        await cluster.wait_gone()

    cluster = run_cluster(scenario, {"app": IGNORES})
    assert any(line.startswith("Warning FailedKillPod: error killing pod: ") for line in cluster.events())
    assert len(cluster.records(kinds.PRE_STOP_STARTED)) == 1
    (sent,) = [r for r in cluster.records(kinds.SIGNAL_SENT) if r.facts["signal"] == "SIGKILL"]
    assert sent.facts["why"] == "StopPodSandbox"
    # The container's end is news from the runtime, so the next attempt does not wait for the 10 to 15 s of a retry.
    assert cluster.gone_at() - cluster.at(kinds.PROCESS_EXITED) < 1.1
    assert cluster.container_status()["state"]["terminated"]["exitCode"] == 137


@pytest.mark.rule("node-semantics 22.2/failed-del, 25/24, 4.4/error")
def test_a_network_teardown_that_fails_is_tried_again_after_10_to_15_seconds_without_a_second_hook() -> None:
    """25.24. The first retry comes with the news that the container ended, the others after 10 to 15 s."""

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(containers=[container(**pre_stop(exec=["sleep", "1"]))]))
        await cluster.wait_ready()
        cluster.runtime.fail_next("cni_del", 'plugin type="veth" failed (delete): busy', times=3)
        await cluster.delete()
        await cluster.wait_gone()

    cluster = run_cluster(scenario, {"app": Program()})
    detached = cluster.records(kinds.NETWORK_DETACHED)
    assert [bool(r.facts["error"]) for r in detached] == [True, True, True, False]
    gaps = [(b.at_ns - a.at_ns) / 1e9 for a, b in pairwise(detached)]
    assert gaps[0] <= 1.1 and all(10 <= gap <= 16 for gap in gaps[1:]), gaps
    assert len(cluster.records(kinds.PRE_STOP_STARTED)) == 1
    assert sum("FailedKillPod" in line for line in cluster.events()) >= 1
    assert cluster.status()["phase"] == "Succeeded"


@pytest.mark.rule("node-semantics 6/volumes, 25/23")
def test_an_unmount_that_takes_a_minute_holds_the_object_and_not_the_status() -> None:
    """25.23: containers Terminated and a terminal phase, while the object waits for its volumes."""

    async def scenario(cluster: VirtualCluster) -> None:
        volumes = [{"name": "d", "emptyDir": {}}]
        mounted = container(volumeMounts=[{"name": "d", "mountPath": "/d"}])
        await cluster.create(pod_manifest(volumes=volumes, containers=[mounted]))
        await cluster.wait_ready()
        cluster.volumes.unmount_seconds = 60.0
        await cluster.delete()
        await cluster.wait_phase("p", "Succeeded")
        assert cluster.now < 5 and not cluster.is_gone()
        await cluster.wait_gone()

    cluster = run_cluster(scenario, {"app": Program()})
    order = [kinds.VOLUMES_MOUNTED, kinds.CONTAINER_STARTED, kinds.PROCESS_EXITED, kinds.NETWORK_DETACHED,
             kinds.VOLUMES_UNMOUNTED, kinds.FINAL_DELETE_SENT]  # fmt: skip
    assert cluster.kinds(*order) == order
    assert cluster.gone_at() - cluster.at(kinds.PROCESS_EXITED) == near(60)


@pytest.mark.rule("node-semantics 12.4/6, 25/29")
def test_a_container_removed_behind_the_kubelet_ends_as_unknown() -> None:
    """25.29: the record of the container is lost before the deletion completes."""

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(restartPolicy="Never", terminationGracePeriodSeconds=30))
        await cluster.wait_ready()
        await cluster.delete()
        await cluster.sleep(1)
        (running,) = await cluster.runtime.list_containers(cluster.uid("p"))
        await cluster.runtime.remove_container(running.id)
        await cluster.wait_gone()

    cluster = run_cluster(scenario, {"app": IGNORES})
    terminated = cluster.container_status()["state"]["terminated"]
    assert (terminated["reason"], terminated["exitCode"]) == ("ContainerStatusUnknown", 137)
    assert cluster.status()["phase"] == "Failed"


@pytest.mark.rule("node-semantics 2/additions, 25/28")
def test_a_rejected_pod_is_failed_at_once_and_a_delete_removes_it_at_once() -> None:
    """25.28: no worker, no container, no conditions; a terminal Pod's grace is 0."""

    async def scenario(cluster: VirtualCluster) -> None:
        needs = container(resources={"requests": {"cpu": "64"}})
        await cluster.create(pod_manifest(nodeName="node-1", containers=[needs]))
        await cluster.wait_phase("p", "Failed", limit=0.5)
        answer = await cluster.delete(grace=30)
        assert answer["metadata"]["deletionGracePeriodSeconds"] == 0
        await cluster.wait_gone(limit=0.5)

    cluster = run_cluster(scenario)
    assert cluster.status()["reason"] == "OutOfcpu"
    assert "containerStatuses" not in cluster.status()
    assert cluster.records(kinds.SANDBOX_CREATED) == []


@pytest.mark.rule("node-semantics 25/28")
def test_a_rejected_pod_with_a_finalizer_is_driven_to_its_end_by_housekeeping() -> None:
    """25.28, second half; golden correction 25."""

    async def scenario(cluster: VirtualCluster) -> None:
        needs = container(resources={"requests": {"cpu": "64"}})
        await cluster.create(pod_manifest(nodeName="node-1", finalizers=["example.com/hold"], containers=[needs]))
        await cluster.wait_phase("p", "Failed", limit=0.5)
        await cluster.delete()
        await cluster.wait_until(lambda: "terminated" in cluster.container_status().get("state", {}), limit=10)
        await cluster.patch("pod/p", {"metadata": {"finalizers": None}})
        await cluster.wait_gone()

    cluster = run_cluster(scenario)
    terminated = cluster.container_status()["state"]["terminated"]
    assert (terminated["reason"], terminated["exitCode"]) == ("ContainerStatusUnknown", 137)


@pytest.mark.rule("node-semantics 7/at-least-once, 20/1, 20/7, 25/19")
def test_a_kubelet_killed_in_a_hook_runs_it_again_and_the_clock_starts_anew() -> None:
    """25.19."""

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(containers=[container(**pre_stop(exec=["sleep", "20"]))]))
        await cluster.wait_ready()
        await cluster.delete()
        await cluster.sleep(10)
        await cluster.kill_kubelet()
        await cluster.sleep(3)
        cluster.start_kubelet()
        await cluster.wait_gone()

    cluster = run_cluster(scenario, {"app": IGNORES})
    assert len(cluster.records(kinds.KILLING)) == len(cluster.records(kinds.PRE_STOP_STARTED)) == 2
    first, second = cluster.records(kinds.EXEC_EXITED)
    assert (first.facts["killedBecause"], second.facts["exitCode"]) == ("caller gone", 0)
    assert cluster.signals() == [(near(20), "SIGTERM"), (near(30), "SIGKILL")]


@pytest.mark.rule("node-semantics 3/tick, 25/22")
def test_an_active_deadline_ends_the_pod_and_the_endpoint_leaves_service_before_sigterm() -> None:
    """25.22, golden correction 15: DeadlineExceeded stays although the app exits 0."""

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(service(), pod_manifest(activeDeadlineSeconds=5, terminationGracePeriodSeconds=30))
        await cluster.wait_phase("p", "Failed")
        await cluster.sleep(5)
        assert not cluster.is_gone(), "the object stays"

    cluster = run_cluster(scenario, {"app": IGNORES})
    assert cluster.signals() == [(near(0), "SIGTERM"), (near(30), "SIGKILL")]
    assert 5 <= cluster.at(kinds.KILLING) <= 7
    assert (cluster.status()["reason"], cluster.status()["phase"]) == ("DeadlineExceeded", "Failed")
    assert any(line.startswith("Normal DeadlineExceeded") for line in cluster.events())
    assert not any("terminating=true" in line for state in cluster.endpoints("svc") for line in state)
    assert cluster.at(kinds.SIGNAL_SENT) <= cluster.at(kinds.POD_STATUS_WRITTEN, nth=-1)


@pytest.mark.rule("node-semantics 6/first-status, 6/final")
def test_the_writes_of_a_graceful_delete_come_in_kubernetes_s_order() -> None:
    """Golden correction 12: timestamp, observedGeneration, terminal phase of all at once, grace 0, DELETED."""

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(containers=[container("quick"), container("slow")]))
        await cluster.wait_ready()
        await cluster.sleep(1)
        await cluster.delete(grace=10)
        await cluster.wait_gone()

    cluster = run_cluster(scenario, {"quick": Program(), "slow": Program(drain_seconds=4, exit_code=3)})
    writes = [sorted(group) for group in cluster.milestones()][-5:]
    assert writes[0] == ["deletion=grace 10", "generation=2"]
    assert writes[1] == ["observedGeneration=2"]
    assert {"phase=Failed", "quick state=terminated(Completed,0)", "slow state=terminated(Error,3)"} <= set(writes[2])
    assert writes[3:] == [["deletion=grace 0"], ["DELETED"]]


@pytest.mark.rule("node-semantics 6/cancel")
def test_the_pod_worker_finishes_starting_before_it_stops() -> None:
    """node-semantics 6.1: a DELETE in the middle of a start never leaves a container behind."""

    async def scenario(cluster: VirtualCluster) -> None:
        names = [f"p{number}" for number in range(12)]
        for name in names:
            await cluster.create(pod_manifest(name, terminationGracePeriodSeconds=2))
        for number, name in enumerate(names):
            await cluster.sleep(0.002 * (number % 5))
            await cluster.delete(f"pod/{name}")
        await cluster.wait_gone(*names)
        assert not [c for c in await cluster.runtime.list_containers() if c.state.name == "CONTAINER_RUNNING"]

    cluster = run_cluster(scenario, {"app": IGNORES})
    started, ended = cluster.records(kinds.PROCESS_STARTED), cluster.records(kinds.PROCESS_EXITED)
    assert len(started) == len(ended)


def test_a_hundred_pods_drain_at_once_and_each_has_its_own_end() -> None:
    names = [f"p{number:03}" for number in range(100)]

    async def scenario(cluster: VirtualCluster) -> None:
        for number, name in enumerate(names):
            program = {"annotations": {"lastcall.dev/program": f"drain-{number % 5}"}}
            await cluster.create(pod_manifest(name, terminationGracePeriodSeconds=3, **program))
        await cluster.wait_ready(*names)
        for name in names:
            await cluster.delete(f"pod/{name}")
        await cluster.wait_gone(*names)

    programs = {f"drain-{n}": Program(drain_seconds=0.9 * n) for n in range(5)}
    cluster = run_cluster(scenario, programs)
    codes = [cluster.container_status(pod=name)["state"]["terminated"]["exitCode"] for name in names]
    assert codes == [137 if number % 5 == 4 else 0 for number in range(len(names))]
