"""What a kubelet finds when it starts again: one test for each row of node-semantics 20, in whole clusters."""

from typing import Any

import pytest
from virtual_cluster import VirtualCluster, container, pod_manifest, pre_stop, run_cluster

from lastcall.kube.api.resources import PODS
from lastcall.kube.client.api import ConnectionLost
from lastcall.kube.cri.simulated_program import ExecResult, Program
from lastcall.records import kinds

IGNORES = Program(on_term="ignore", execs={"hang": ExecResult(seconds=3600)})
HOLD = "example.com/hold"


def near(value: float) -> Any:
    return pytest.approx(value, abs=0.05)


async def restart(cluster: VirtualCluster, down: float = 3.0) -> float:
    """Kill the kubelet and start another one; answers when."""
    await cluster.kill_kubelet()
    await cluster.sleep(down)
    cluster.start_kubelet()
    return cluster.now


@pytest.mark.rule("node-semantics 20/1, 5.3/event, 2/first-seen")
def test_a_terminating_pod_has_its_whole_grace_again_and_no_second_signal() -> None:
    restarted: list[float] = []

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest())
        await cluster.wait_ready()
        await cluster.delete(grace=30)
        await cluster.sleep(10)
        restarted.append(await restart(cluster))
        await cluster.wait_gone()

    cluster = run_cluster(scenario, {"app": IGNORES})
    term, kill = cluster.records(kinds.SIGNAL_SENT)
    assert (term.facts["signal"], kill.facts["signal"]) == ("SIGTERM", "SIGKILL")
    assert kill.at_ns / 1e9 - restarted[0] == near(30)
    assert len(cluster.records(kinds.KILLING)) == 2
    assert cluster.events().count("Normal Killing [containers{app}]: Stopping container app") == 2


@pytest.mark.rule("node-semantics 20/2, 2/readmission, 4.6/runtime-only")
def test_a_terminating_pod_that_the_node_would_not_take_any_more_is_killed_and_removed() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        asks = container(resources={"requests": {"cpu": "1"}}, **pre_stop(exec=["sleep", "9"]))
        await cluster.create(pod_manifest(containers=[asks]))
        await cluster.wait_ready()
        await cluster.delete(grace=30)
        await cluster.sleep(2)
        cluster.first.allocatable["cpu"] = "500m"
        await restart(cluster)
        began = cluster.now
        await cluster.wait_gone(limit=20)
        assert cluster.now - began < 5

    cluster = run_cluster(scenario, {"app": IGNORES})
    assert cluster.status()["phase"] == "Failed" and cluster.status()["reason"] == "OutOfcpu"
    assert len(cluster.records(kinds.PRE_STOP_STARTED)) == 1  # that of the first kubelet
    assert [r.facts["signal"] for r in cluster.records(kinds.SIGNAL_SENT)] == ["SIGKILL"]
    assert len(cluster.records(kinds.FINAL_DELETE_SENT)) == 1


@pytest.mark.rule("node-semantics 4.6/terminal, 25/28")
def test_a_pod_that_was_deleted_before_the_node_rejected_it_is_driven_to_its_end() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.kill_kubelet()
        asks = container(resources={"requests": {"cpu": "64"}})
        await cluster.create(pod_manifest(nodeName="node-1", finalizers=[HOLD], containers=[asks]))
        await cluster.delete(grace=30)
        cluster.start_kubelet()
        await cluster.wait_until(lambda: cluster.records(kinds.WORKER_FINISHED), 20)
        await cluster.wait_until(lambda: cluster.records(kinds.FINAL_DELETE_SENT), 20)
        await cluster.patch("pod/p", {"metadata": {"finalizers": None}})
        await cluster.wait_gone(limit=5)

    cluster = run_cluster(scenario, {"app": IGNORES})
    assert (cluster.status()["phase"], cluster.status()["reason"]) == ("Failed", "OutOfcpu")
    assert cluster.container_status()["state"]["terminated"]["reason"] == "ContainerStatusUnknown"
    assert cluster.records(kinds.SANDBOX_CREATED) == []


@pytest.mark.rule("node-semantics 20/3, 4.2/2")
def test_a_terminating_pod_that_has_ended_is_taken_down_and_deleted() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(restartPolicy="Never", finalizers=[HOLD]))
        await cluster.wait_phase("p", "Succeeded")
        await cluster.sleep(5)
        await cluster.kill_kubelet()
        await cluster.delete(grace=30)
        await cluster.sleep(3)
        seen = len(cluster.all_records)
        cluster.start_kubelet()
        await cluster.wait_until(lambda: cluster.records(kinds.FINAL_DELETE_SENT))
        after = [record.kind for record in cluster.all_records[seen:]]
        assert not {kinds.KILLING, kinds.SIGNAL_SENT, kinds.SANDBOX_CREATED, kinds.PRE_STOP_STARTED} & set(after)
        assert kinds.WORKER_FINISHED in after
        await cluster.patch("pod/p", {"metadata": {"finalizers": None}})
        await cluster.wait_gone()

    cluster = run_cluster(scenario, {"app": Program(exits_after=1.0)})
    assert cluster.status()["phase"] == "Succeeded"


@pytest.mark.rule("node-semantics 20/4, 4.2/2")
def test_a_pod_that_has_ended_stays_and_holds_no_resources() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        whole = [container(resources={"requests": {"cpu": "2"}})]
        await cluster.create(pod_manifest("done", restartPolicy="Never", containers=whole))
        await cluster.wait_phase("done", "Succeeded")
        await cluster.sleep(5)
        await restart(cluster)
        await cluster.create(pod_manifest("next", nodeName="node-1", containers=whole, **program("stays")))
        await cluster.wait_ready("next", limit=5)
        await cluster.sleep(30)

    cluster = run_cluster(scenario, {"app": Program(exits_after=1.0), "stays": Program()})
    assert not cluster.is_gone("done") and cluster.status("done")["phase"] == "Succeeded"
    assert cluster.records(kinds.FINAL_DELETE_SENT) == []
    assert len(cluster.records(kinds.PROCESS_STARTED, pod="done")) == 1


def program(name: str) -> dict[str, Any]:
    return {"annotations": {"lastcall.dev/program": name}}


@pytest.mark.rule("node-semantics 20/5, 10/found, 10/no-hook, 2/sources-ready, 3/housekeeping")
def test_a_pod_whose_object_went_meanwhile_is_killed_in_the_first_sweep() -> None:
    times: list[float] = []

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest("p", containers=[container(**pre_stop(exec=["sleep", "5"]))]))
        await cluster.create(pod_manifest("q"))
        await cluster.wait_ready("p", "q")
        await cluster.kill_kubelet()
        await cluster.delete("pod/p", grace=0)
        assert [pod["metadata"]["name"] for pod in (await cluster.client.list(PODS, "default")).items] == ["q"]
        cluster.start_kubelet()
        times.append(cluster.now)
        await cluster.wait_until(lambda: cluster.records(kinds.PROCESS_EXITED, pod="p"))
        await cluster.sleep(10)

    cluster = run_cluster(scenario, {"app": IGNORES})
    killing = cluster.at(kinds.KILLING, pod="p") - times[0]
    assert 1.9 < killing < 4.1, "not before the first sweep, which waits for the first set"
    assert cluster.records(kinds.PRE_STOP_STARTED) == [] and cluster.signals(pod="p") == [(near(0), "SIGKILL")]
    assert cluster.records(kinds.KILLING, pod="q") == []


@pytest.mark.rule("node-semantics 20/6")
def test_a_running_pod_is_kept_and_its_back_off_begins_anew() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest("runs"), pod_manifest("crashes", **program("crashes")))
        await cluster.wait_ready("runs")
        await cluster.wait_until(lambda: len(cluster.records(kinds.PROCESS_STARTED, pod="crashes")) == 4)
        await cluster.wait_until(lambda: len(cluster.records(kinds.PROCESS_EXITED, pod="crashes")) == 4)
        await restart(cluster, 0.1)
        await cluster.wait_until(lambda: len(cluster.records(kinds.PROCESS_STARTED, pod="crashes")) == 6)

    cluster = run_cluster(scenario, {"app": Program(), "crashes": Program(exits_after=0.5, natural_exit_code=1)})
    started = [r.at_ns / 1e9 for r in cluster.records(kinds.PROCESS_STARTED, pod="crashes")]
    exited = [r.at_ns / 1e9 for r in cluster.records(kinds.PROCESS_EXITED, pod="crashes")]
    waits = [start - end for start, end in zip(started[1:], exited, strict=False)]
    assert waits[2] > 20 and waits[3] < 1 and 10 <= waits[4] < 16, waits
    assert len(cluster.records(kinds.PROCESS_STARTED, pod="runs")) == 1
    assert [c["status"] for seen in cluster.versions("runs") for c in seen.object["status"].get("conditions", [])
            if c["type"] == "Ready"][-1] == "True"  # fmt: skip


@pytest.mark.rule("node-semantics 20/7, 7/at-least-once")
def test_a_hook_under_way_is_cut_off_and_delivered_again() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(containers=[container(**pre_stop(exec=["sleep", "6"]))]))
        await cluster.wait_ready()
        await cluster.delete(grace=30)
        await cluster.sleep(2)
        await restart(cluster)
        await cluster.wait_gone()

    cluster = run_cluster(scenario, {"app": Program()})
    cut, whole = cluster.records(kinds.EXEC_EXITED)
    assert cut.facts["killedBecause"] == "caller gone" and whole.facts["exitCode"] == 0
    started = cluster.records(kinds.EXEC_STARTED)
    assert started[1].at_ns > cut.at_ns, "never two at a time"


@pytest.mark.rule("node-semantics 20/8, 22.3/cancelled")
def test_a_stop_under_way_leaves_no_kill_behind() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest())
        await cluster.wait_ready()
        await cluster.delete(grace=5)
        await cluster.sleep(1)
        await cluster.kill_kubelet()
        await cluster.sleep(20)  # far beyond the grace period
        assert cluster.records(kinds.PROCESS_EXITED) == []
        cluster.start_kubelet()
        await cluster.wait_gone()

    cluster = run_cluster(scenario, {"app": IGNORES})
    assert [r.facts["signal"] for r in cluster.records(kinds.SIGNAL_SENT)] == ["SIGTERM", "SIGKILL"]


class Unsent:
    """A client that loses the kubelet's DELETE requests while `lost` is true."""

    lost = True

    def __init__(self, client: Any, component: str) -> None:
        self._client = client
        self._is_node = component.startswith("node:")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def delete(self, *arguments: Any, **options: Any) -> Any:
        if self._is_node and Unsent.lost:
            await self._client.list(PODS, "default")  # it takes as long as a request
            raise ConnectionLost("lost")
        return await self._client.delete(*arguments, **options)


@pytest.mark.rule("node-semantics 20/9, 11.3/uid")
def test_a_death_between_the_terminal_phase_and_the_delete_is_made_good() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        Unsent.lost = True
        await cluster.create(pod_manifest())
        await cluster.wait_ready()
        await cluster.delete()
        await cluster.wait_phase("p", "Succeeded")
        await cluster.kill_kubelet()
        await cluster.sleep(30)
        assert not cluster.is_gone()
        Unsent.lost = False
        cluster.start_kubelet()
        await cluster.wait_gone(limit=10)

    cluster = run_cluster(scenario, {"app": Program()}, wrap=Unsent)
    assert len(cluster.records(kinds.KILLING)) == 1


@pytest.mark.rule("node-semantics 13/restart")
def test_a_terminating_pod_is_not_probed_after_a_restart_and_stays_ready() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        probe = {"exec": {"command": ["check"]}, "periodSeconds": 1, "failureThreshold": 1}
        await cluster.create(pod_manifest(containers=[container(readinessProbe=probe, livenessProbe=probe)]))
        await cluster.wait_ready()
        await cluster.kill_kubelet()
        await cluster.delete(grace=20)
        probes = len(cluster.records(kinds.EXEC_STARTED))
        cluster.start_kubelet()
        await cluster.sleep(10)
        assert len(cluster.records(kinds.EXEC_STARTED)) == probes
        assert cluster.condition("p", "Ready") == "True"
        await cluster.wait_gone()

    bad = {"check": ExecResult(exit_code=1)}
    cluster = run_cluster(scenario, {"app": Program(on_term="ignore", execs={"check": ExecResult()}, term_execs=bad)})
    assert cluster.condition("p", "Ready") == "False"


@pytest.mark.rule("node-semantics 13/jitter")
def test_what_ran_before_is_not_probed_all_at_once() -> None:
    restarted: list[float] = []
    names = [f"p{number}" for number in range(12)]

    async def scenario(cluster: VirtualCluster) -> None:
        probe = {"exec": {"command": ["true"]}, "periodSeconds": 10}
        await cluster.create(*(pod_manifest(name, containers=[container(readinessProbe=probe)]) for name in names))
        await cluster.wait_ready(*names)
        restarted.append(await restart(cluster))
        await cluster.sleep(11)

    cluster = run_cluster(scenario, {"app": Program()})
    probed: dict[str, float] = {}
    for record in cluster.records(kinds.EXEC_STARTED):
        if record.at_ns / 1e9 >= restarted[0]:
            probed.setdefault(cluster.alias(record.pod_uid), record.at_ns / 1e9 - restarted[0])
    assert sorted(probed) == sorted(names) and max(probed.values()) <= 10.1
    assert max(probed.values()) - min(probed.values()) > 3


@pytest.mark.rule("node-semantics 8/start")
def test_what_comes_after_a_started_sidecar_still_comes_after_a_restart() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        probe = {"exec": {"command": ["true"]}, "periodSeconds": 1}
        sidecar = container("s", restartPolicy="Always", startupProbe=probe)
        await cluster.create(pod_manifest(initContainers=[sidecar, container("i")]))
        await cluster.wait_until(lambda: cluster.records(kinds.PROCESS_STARTED, "i"))
        await cluster.sleep(2)
        await restart(cluster)
        await cluster.wait_ready(limit=60)

    cluster = run_cluster(scenario, {"i": Program(exits_after=20.0), "": Program()})
    assert [r.container for r in cluster.records(kinds.PROCESS_STARTED)] == ["s", "i", "app"]
