"""The smaller rules of ends: node-semantics 5.2 to 8, 13, in whole clusters in virtual time."""

from typing import Any

import pytest
from virtual_cluster import VirtualCluster, container, pod_manifest, pre_stop, run_cluster

from lastcall.kube.cri.api import RuntimeServiceError
from lastcall.kube.cri.simulated_program import ExecResult, Listener, Program
from lastcall.kube.node.stopping.kill_container import ContainerKiller
from lastcall.kube.node.versions import behaviour_of
from lastcall.records import kinds
from lastcall.world.tasks import Tasks

OK, BAD = ExecResult(), ExecResult(exit_code=1)
IGNORES = Program(on_term="ignore", execs={"hang": ExecResult(seconds=3600)})


def near(value: float) -> Any:
    return pytest.approx(value, abs=0.05)


def sidecar(name: str, **more: Any) -> dict[str, Any]:
    return container(name, restartPolicy="Always", **more)


def probe(command: str = "check", **more: Any) -> dict[str, Any]:
    return {"exec": {"command": [command]}, "periodSeconds": 1, "failureThreshold": 1, **more}


def deleted(programs: dict[str, Program], *, grace: int | None = None, version: str = "1.36", **spec: Any) -> Any:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(**spec))
        await cluster.wait_ready()
        await cluster.sleep(1)
        await cluster.delete(grace=grace)
        await cluster.wait_gone()
        await cluster.sleep(1)

    return run_cluster(scenario, programs, kubernetes_version=version)


# -- 5: grace periods -------------------------------------------------------------------------------------------------


@pytest.mark.rule("node-semantics 5.2/later")
def test_a_delete_during_an_end_by_itself_brings_its_grace_to_the_next_attempt() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        manifest = pod_manifest(activeDeadlineSeconds=5, terminationGracePeriodSeconds=30)
        await cluster.create(manifest)
        await cluster.wait_until(lambda: cluster.records(kinds.SIGNAL_SENT))
        cluster.runtime.fail_next("stop_pod_sandbox", "busy")
        (running,) = await cluster.runtime.list_containers(cluster.uid("p"))
        await cluster.sleep(1)
        await cluster.delete(grace=7)
        await cluster.sleep(1)
        assert [r.facts["gracePeriodSeconds"] for r in cluster.records(kinds.GRACE_DECIDED)] == [7]
        cluster.runtime.kill(running.id)  # the first attempt is over, and its sandbox cannot be stopped
        await cluster.wait_gone()

    cluster = run_cluster(scenario, {"app": IGNORES})
    assert cluster.records(kinds.STOP_REQUESTED)[0].facts["timeoutSeconds"] == 30
    assert cluster.status()["reason"] == "DeadlineExceeded"


def stop_fails_and_leaves_the_container_running(cluster: VirtualCluster, times: int = 1) -> None:
    """As when the shim does not answer: neither the container nor its sandbox can be stopped."""
    cluster.runtime.fail_next("stop_container", "shim is gone", times=times, seconds=2.0)
    cluster.runtime.fail_next("stop_pod_sandbox", "shim is gone", times=times)


@pytest.mark.rule("node-semantics 5.5/retry, 5.3/event, 7/at-least-once, 25/11, 4.4/error")
def test_a_second_attempt_has_the_whole_grace_period_and_runs_the_hook_again() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(containers=[container(**pre_stop(exec=["sleep", "3"]))]))
        await cluster.wait_ready()
        stop_fails_and_leaves_the_container_running(cluster)
        await cluster.delete(grace=20)
        await cluster.wait_gone()

    cluster = run_cluster(scenario, {"app": IGNORES})
    first, second = (record.at_ns / 1e9 for record in cluster.records(kinds.KILLING))
    assert 3 + 2 + 10 <= second - first <= 3 + 2 + 15 + 0.1
    assert [r.facts["timeoutSeconds"] for r in cluster.records(kinds.STOP_REQUESTED)] == [17, 17]
    assert len(cluster.records(kinds.PRE_STOP_STARTED)) == 2
    assert cluster.signals() == [(near(3), "SIGTERM"), (near(20), "SIGKILL")]
    assert sum("FailedKillPod" in line for line in cluster.events()) == 1


@pytest.mark.rule("node-semantics 5.3/not-found")
def test_a_container_that_the_runtime_does_not_know_is_stopped() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest())
        await cluster.wait_ready()
        cluster.runtime.fail_next("stop_container", RuntimeServiceError("container not found", "NotFound"))
        await cluster.delete()
        await cluster.wait_gone()

    cluster = run_cluster(scenario, {"app": Program()})
    assert not any("FailedKillPod" in line for line in cluster.events())


@pytest.mark.rule("node-semantics 5.3/no-budget")
def test_a_kill_with_an_override_of_0_runs_no_hook() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(restartPolicy="Never", containers=[container(**pre_stop(exec=["true"]))]))
        await cluster.wait_ready()
        (running,) = await cluster.runtime.list_containers(cluster.uid("p"))
        async with Tasks() as tasks:
            killer = ContainerKiller(
                world=cluster.world,
                runtime=cluster.runtime,
                hooks=None,  # type: ignore[arg-type]
                events=cluster.kubelet._common.events,
                recorder=cluster.recorder.for_actor("kubelet"),
                behaviour=behaviour_of("1.36"),
                hook_tasks=tasks,
            )
            await killer.kill_container(cluster.pod(), running, override=0)

    cluster = run_cluster(scenario, {"app": IGNORES})
    assert cluster.signals() == [(near(0), "SIGTERM"), (near(2), "SIGKILL")]
    assert cluster.records(kinds.PRE_STOP_STARTED) == []
    assert (
        cluster.records(kinds.PRE_STOP_SKIPPED)[0].facts["why"] == "a grace period of 0 s leaves no time for the hook"
    )


# -- 6: the way of an end ---------------------------------------------------------------------------------------------


@pytest.mark.rule("node-semantics 6/verify")
def test_a_container_that_runs_although_it_was_stopped_is_an_error_and_stopped_again() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest())
        await cluster.wait_ready()
        stop, sandbox = cluster.runtime.stop_container, cluster.runtime.stop_pod_sandbox

        async def nothing(*arguments: Any) -> None:
            """Says that it was done."""

        cluster.runtime.stop_container = cluster.runtime.stop_pod_sandbox = nothing  # type: ignore[assignment]
        await cluster.delete(grace=5)
        await cluster.sleep(3)
        assert cluster.status()["phase"] == "Running" and not cluster.is_gone()
        cluster.runtime.stop_container, cluster.runtime.stop_pod_sandbox = stop, sandbox
        await cluster.wait_gone(limit=30)

    cluster = run_cluster(scenario, {"app": Program(exit_code=4)})
    assert len(cluster.records(kinds.KILLING)) >= 2
    assert cluster.container_status()["state"]["terminated"]["exitCode"] == 4


@pytest.mark.rule("node-semantics 16/usable, 6/order")
def test_volumes_stay_mounted_until_the_last_container_has_stopped() -> None:
    cluster = deleted(
        {"": Program(drain_seconds=5)},
        volumes=[{"name": "d", "emptyDir": {}}],
        containers=[container("a", **pre_stop(sleep=3)), container("b")],
    )
    unmounted = cluster.at(kinds.VOLUMES_UNMOUNTED)
    assert unmounted >= max(r.at_ns / 1e9 for r in cluster.records(kinds.PROCESS_EXITED))
    assert unmounted >= cluster.at(kinds.SANDBOX_STOPPED)


# -- 7: hooks ---------------------------------------------------------------------------------------------------------


@pytest.mark.rule("node-semantics 7/not-run")
def test_a_container_that_has_ended_by_itself_gets_no_hook() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        hook = pre_stop(exec=["true"])
        three = [container("ends", **hook), container("runs", **hook), container("ends-without-hook")]
        await cluster.create(pod_manifest(restartPolicy="Never", containers=three))
        await cluster.wait_until(lambda: "terminated" in cluster.container_status("ends").get("state", {}))
        assert cluster.records(kinds.PRE_STOP_STARTED) == []
        await cluster.delete()
        await cluster.wait_gone()

    ends = Program(exits_after=2.0)
    cluster = run_cluster(scenario, {"ends": ends, "runs": Program(), "ends-without-hook": ends})
    assert [r.container for r in cluster.records(kinds.PRE_STOP_STARTED)] == ["runs"]
    (skipped,) = cluster.records(kinds.PRE_STOP_SKIPPED)
    assert (skipped.container, skipped.facts["why"]) == ("ends", "the container had already ended")


@pytest.mark.rule("node-semantics 7/every-kill")
def test_a_hook_runs_at_every_kill_by_the_kubelet() -> None:
    """Here: a changed image, and a sidecar that is ended because the app is done."""

    async def scenario(cluster: VirtualCluster) -> None:
        hook = pre_stop(exec=["sleep", "1"])
        await cluster.create(pod_manifest(containers=[container(**hook)]))
        await cluster.create(
            pod_manifest(
                "job", restartPolicy="Never", initContainers=[sidecar("s", **hook)], containers=[container("j")]
            )
        )
        await cluster.wait_ready("p")
        await cluster.patch("pod/p", {"spec": {"containers": [container(image="busybox:2", **hook)]}})
        await cluster.wait_until(lambda: cluster.container_status().get("restartCount") == 1)
        await cluster.wait_phase("job", "Succeeded")

    cluster = run_cluster(scenario, {"j": Program(exits_after=2.0), "": Program()})
    assert sorted(r.container for r in cluster.records(kinds.PRE_STOP_STARTED)) == ["app", "s"]


# -- 8: sidecars ------------------------------------------------------------------------------------------------------


@pytest.mark.rule("node-semantics 8/ready")
def test_a_pod_is_ready_only_when_its_sidecar_is() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        listens = {"tcpSocket": {"port": 80}, "periodSeconds": 1}
        await cluster.create(pod_manifest(initContainers=[sidecar("s", readinessProbe=listens)]))
        await cluster.wait_until(lambda: cluster.container_status("app").get("ready"))
        await cluster.sleep(0.5)
        assert cluster.condition("p", "Ready") == "False"
        await cluster.wait_ready()

    cluster = run_cluster(scenario, {"s": Program(ports={80: Listener(opens_after=5.0)}), "": Program()})
    assert cluster.now >= 5


@pytest.mark.rule("node-semantics 8/failed-turn")
def test_a_stop_that_fails_releases_no_sidecar_before_the_grace_period_is_over() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(initContainers=[sidecar("s")]))
        await cluster.wait_ready()
        cluster.runtime.fail_next("stop_container", "shim is gone")
        await cluster.delete(grace=8)
        await cluster.wait_gone()

    cluster = run_cluster(scenario, {"": Program()})
    assert cluster.signals("s")[0] == (near(8), "SIGTERM")


@pytest.mark.rule("node-semantics 8/no-restart")
def test_a_sidecar_that_exits_while_the_pod_ends_is_not_restarted() -> None:
    cluster = deleted(
        {"s": Program(exits_after=3.0, natural_exit_code=1), "app": Program(drain_seconds=10)},
        initContainers=[sidecar("s")],
    )
    assert len(cluster.records(kinds.PROCESS_STARTED, "s")) == 1
    assert cluster.status()["phase"] == "Succeeded"


@pytest.mark.rule("node-semantics 8/probes-go-on")
def test_a_sidecar_s_liveness_is_looked_at_until_the_end_and_changes_nothing() -> None:
    cluster = deleted(
        {"s": Program(execs={"check": (OK, OK, BAD)}), "app": Program(drain_seconds=6)},
        initContainers=[sidecar("s", livenessProbe=probe())],
    )
    assert any("Liveness probe failed" in line for line in cluster.events())
    assert len(cluster.records(kinds.KILLING, "s")) == 1 and len(cluster.records(kinds.PROCESS_STARTED, "s")) == 1
    assert cluster.signals("s") == [(near(6), "SIGTERM")]


# -- 13, 21: probes and restarts --------------------------------------------------------------------------------------


@pytest.mark.rule("node-semantics 13/liveness-restart, 13/hold")
def test_readiness_is_looked_at_while_a_liveness_failure_is_dealt_with_and_liveness_is_not() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        spec = container(livenessProbe=probe("alive"), readinessProbe=probe("ready"), **pre_stop(exec=["sleep", "6"]))
        await cluster.create(pod_manifest(containers=[spec]))
        await cluster.wait_until(lambda: cluster.container_status().get("restartCount") == 1)

    execs = {"alive": (OK, OK, OK, BAD, BAD), "ready": OK}
    cluster = run_cluster(scenario, {"app": Program(execs=execs)})
    begin, end = cluster.at(kinds.PRE_STOP_STARTED), cluster.at(kinds.PRE_STOP_FINISHED)
    meanwhile = [r.facts["argv"] for r in cluster.records(kinds.EXEC_STARTED) if begin < r.at_ns / 1e9 < end]
    assert meanwhile.count(["ready"]) >= 5 and ["alive"] not in meanwhile


@pytest.mark.rule("node-semantics 21.2/probes")
def test_a_kill_for_a_probe_asks_the_policies_and_no_rule() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        rules = [{"action": "Restart", "exitCodes": {"operator": "In", "values": [137, 0, 143]}}]
        own = {"restartPolicy": "Never", "restartPolicyRules": rules}
        await cluster.create(
            pod_manifest(
                restartPolicy="Never",
                terminationGracePeriodSeconds=2,
                containers=[container("rules", livenessProbe=probe(), **own), container("stays")],
            )
        )
        await cluster.wait_until(lambda: cluster.records(kinds.KILLING))
        await cluster.sleep(5)

    cluster = run_cluster(scenario, {"": Program(execs={"check": (OK, BAD, OK)})})
    first = cluster.records(kinds.KILLING)[0]
    assert first.facts["message"] == "Container rules failed liveness probe"  # nothing of a restart
    # What it then exited with is for the rules again.
    assert cluster.exits("rules")[0][1] == 0 and len(cluster.records(kinds.PROCESS_STARTED, "rules")) == 2
