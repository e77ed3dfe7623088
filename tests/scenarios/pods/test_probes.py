"""Startup, liveness and readiness probes in whole clusters (node-semantics 14, 25.17, 25.18)."""

import re
from itertools import pairwise

import pytest
from virtual_cluster import VirtualCluster, container, pod_manifest, pre_stop, run_cluster, service

from lastcall.kube.cri.simulated_program import ExecResult, HTTPAnswer, Listener, Program
from lastcall.records import kinds

OK, BAD = ExecResult(), ExecResult(exit_code=1)


def near(value: float, by: float = 0.05):
    return pytest.approx(value, abs=by)


def exec_probe(command: str = "check", **more) -> dict:
    return {"exec": {"command": [command]}, "periodSeconds": 1, **more}


@pytest.mark.rule("node-semantics 5.3/probe, 7/every-kill, 9.2/kill, 25/17, 23/killing, 23/probes")
def test_a_liveness_failure_runs_the_hook_uses_the_probe_s_grace_and_restarts() -> None:
    """25.17: K `Container app failed liveness probe, will be restarted`, preStop, StopContainer within the 5 s."""

    async def scenario(cluster: VirtualCluster) -> None:
        probe = exec_probe(failureThreshold=2, terminationGracePeriodSeconds=5)
        await cluster.create(
            pod_manifest(
                terminationGracePeriodSeconds=30,
                containers=[container(livenessProbe=probe, **pre_stop(exec=["sleep", "1"]))],
            )
        )
        await cluster.wait_until(lambda: cluster.container_status().get("restartCount") == 1)

    program = Program(on_term="ignore", execs={"check": (OK, OK, BAD, BAD, OK)})
    cluster = run_cluster(scenario, {"app": program})
    assert (
        "Normal Killing [containers{app}]: Container app failed liveness probe, will be restarted" in cluster.events()
    )
    assert cluster.signals() == [(near(1), "SIGTERM"), (near(5), "SIGKILL")]
    assert any(
        line.startswith("Warning Unhealthy [containers{app}]: Liveness probe failed") for line in cluster.events()
    )


def test_a_container_that_its_liveness_probe_ends_again_and_again_is_held_back_like_one_that_crashes() -> None:
    """doBackOff goes by the newest run that has ended: the one that the kubelet is about to end does not count."""

    async def scenario(cluster: VirtualCluster) -> None:
        probe = exec_probe(failureThreshold=2, terminationGracePeriodSeconds=2)
        await cluster.create(pod_manifest(containers=[container(livenessProbe=probe)]))
        await cluster.sleep(40)

    cluster = run_cluster(scenario, {"app": Program(execs={"check": BAD})})
    starts = [record.at_ns / 1e9 for record in cluster.all_records if record.kind == kinds.PROCESS_STARTED]
    first, second, third = [later - before for before, later in pairwise(starts)][:3]
    assert (round(first), round(second)) == (2, 2)
    assert third >= 12, "two seconds of a run, and ten of the back-off"
    assert any("Back-off restarting failed container app" in line for line in cluster.events())


@pytest.mark.rule("node-semantics 5.3/probe, 6/probes, 13/termination, 25/17")
def test_a_deletion_takes_the_pod_s_grace_and_liveness_no_longer_counts() -> None:
    """25.17 second half: with deletionTimestamp the probe's own grace is ignored and liveness is off."""

    async def scenario(cluster: VirtualCluster) -> None:
        probe = exec_probe(failureThreshold=1, terminationGracePeriodSeconds=2)
        manifest = pod_manifest(terminationGracePeriodSeconds=8, containers=[container(livenessProbe=probe)])
        await cluster.create(manifest)
        await cluster.wait_ready()
        await cluster.sleep(0.5)
        await cluster.delete()
        await cluster.wait_gone()

    program = Program(on_term="ignore", execs={"check": OK}, term_execs={"check": BAD})
    cluster = run_cluster(scenario, {"app": program})
    assert cluster.signals() == [(near(0), "SIGTERM"), (near(8), "SIGKILL")]
    assert len(cluster.records(kinds.KILLING)) == 1
    assert not any("Liveness probe failed" in line for line in cluster.events())


@pytest.mark.rule("node-semantics 13/termination, 25/18")
def test_a_readiness_failure_while_terminating_takes_serving_away() -> None:
    """25.18; recorded: readiness-fails-in-termination."""

    async def scenario(cluster: VirtualCluster) -> None:
        probe = exec_probe(failureThreshold=1)
        await cluster.create(service(), pod_manifest(containers=[container(readinessProbe=probe)]))
        await cluster.wait_ready()
        await cluster.sleep(1.5)
        await cluster.delete()
        await cluster.wait_gone()

    program = Program(drain_seconds=5, execs={"check": OK}, term_execs={"check": BAD})
    cluster = run_cluster(scenario, {"app": program})
    assert cluster.endpoints("svc")[-4:] == [
        ["p ready=true serving=true terminating=false"],
        ["p ready=false serving=true terminating=true"],
        ["p ready=false serving=false terminating=true"],
        [],
    ]


@pytest.mark.rule("node-semantics 12.2/deletion, 25/18")
def test_without_a_failure_ready_stays_true_until_the_containers_stopped() -> None:
    """25.18 first half."""

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(service(), pod_manifest(containers=[container(readinessProbe=exec_probe("true"))]))
        await cluster.wait_ready()
        await cluster.delete()
        await cluster.sleep(3)
        assert cluster.condition("p", "Ready") == "True"
        await cluster.wait_gone()

    cluster = run_cluster(scenario, {"app": Program(drain_seconds=5)})
    assert cluster.condition("p", "Ready") == "False"


@pytest.mark.rule("node-semantics 13/gate")
def test_nothing_is_probed_for_liveness_or_readiness_before_the_startup_probe_succeeds() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(
            pod_manifest(
                containers=[
                    container(
                        startupProbe=exec_probe("started", failureThreshold=10),
                        livenessProbe=exec_probe("alive"),
                        readinessProbe=exec_probe("ready"),
                    )
                ]
            )
        )
        await cluster.wait_ready()
        await cluster.sleep(2)

    execs = {"started": (BAD, BAD, BAD, OK), "alive": OK, "ready": OK}
    cluster = run_cluster(scenario, {"app": Program(execs=execs)})
    order = [r.facts["argv"][0] for r in cluster.records(kinds.EXEC_STARTED)]
    assert order[:4] == ["started"] * 4
    assert {"alive", "ready"} <= set(order[4:])
    assert "started" not in order[4:]


@pytest.mark.rule("node-semantics 5.3/probe, 9.2/kill")
def test_a_startup_probe_that_never_succeeds_restarts_the_container_with_its_own_grace() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        probe = exec_probe("started", failureThreshold=2, terminationGracePeriodSeconds=3)
        await cluster.create(pod_manifest(containers=[container(startupProbe=probe)]))
        await cluster.wait_until(lambda: len(cluster.records(kinds.PROCESS_STARTED)) == 2)

    cluster = run_cluster(scenario, {"app": Program(on_term="ignore", execs={"started": BAD})})
    assert cluster.signals() == [(near(0), "SIGTERM"), (near(3), "SIGKILL")]
    killing = "Normal Killing [containers{app}]: Container app failed startup probe, will be restarted"
    assert killing in cluster.events()


@pytest.mark.rule("node-semantics 13/tcp, 13/http")
@pytest.mark.parametrize("handler", ["httpGet", "tcpSocket"])
def test_ports_are_probed_over_the_pod_s_address(handler: str) -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        probe = {handler: {"port": 8080}, "periodSeconds": 1, "failureThreshold": 1}
        await cluster.create(service(), pod_manifest(containers=[container(readinessProbe=probe)]))
        await cluster.wait_ready()
        assert cluster.now >= 3
        await cluster.delete()
        await cluster.wait_gone()

    listener = Listener(HTTPAnswer(), opens_after=3.0, closes_on_term=True)
    cluster = run_cluster(scenario, {"app": Program(drain_seconds=4, ports={8080: listener})})
    assert ["p ready=false serving=false terminating=true"] in cluster.endpoints("svc")
    assert any("connect: connection refused" in line for line in cluster.events())


@pytest.mark.rule("node-semantics 2/reconcile, 12.2/gates")
def test_a_readiness_gate_holds_ready_back_until_its_condition_is_true() -> None:
    """Recorded: readiness-gate."""

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(readinessGates=[{"conditionType": "example.com/lb"}]))
        await cluster.wait_until(lambda: cluster.condition("p", "ContainersReady") == "True")
        await cluster.sleep(2)
        assert cluster.condition("p", "Ready") == "False"
        gate = {"type": "example.com/lb", "status": "True"}
        conditions = [*cluster.status()["conditions"], gate]
        await cluster.patch("pod/p", {"status": {"conditions": conditions}}, subresource="status")
        patched = cluster.now
        await cluster.wait_ready()
        assert cluster.now - patched < 0.5

    run_cluster(scenario, {"app": Program()})


@pytest.mark.rule("node-semantics 13/ended")
def test_a_container_that_ended_for_good_is_not_probed_round_and_round() -> None:
    """A worker that finds nothing to do must not cause the sync that starts the next one: time would stand still."""

    async def scenario(cluster: VirtualCluster) -> None:
        calls = []
        update_pod = cluster.kubelet._work.workers.update_pod

        def counted(options) -> None:
            calls.append(options)
            assert len(calls) < 100, f"{len(calls)} updates of a Pod in which nothing happens"
            update_pod(options)

        cluster.kubelet._work.workers.update_pod = counted
        ends = container("ends", readinessProbe=exec_probe("true"), livenessProbe=exec_probe("true"))
        await cluster.create(pod_manifest(restartPolicy="Never", containers=[container("stays"), ends]))
        await cluster.wait_until(lambda: "terminated" in cluster.container_status("ends").get("state", {}))
        await cluster.sleep(30)
        assert cluster.status()["phase"] == "Running"

    run_cluster(scenario, {"ends": Program(exits_after=2.0), "stays": Program()})


@pytest.mark.rule("node-semantics 13/grpc")
def test_a_grpc_probe_asks_for_its_service() -> None:
    """node-semantics 13: readiness by grpc.health.v1; a service that is not served is Unhealthy."""

    async def scenario(cluster: VirtualCluster) -> None:
        probe = {"grpc": {"port": 9000, "service": "shop"}, "periodSeconds": 1}
        bad = {"grpc": {"port": 9000, "service": "nobody"}, "periodSeconds": 1}
        refused = {"grpc": {"port": 9001}, "periodSeconds": 1}
        for name, readiness in (("good", probe), ("bad", bad), ("refused", refused)):
            await cluster.create(pod_manifest(name, containers=[container(readinessProbe=readiness)]))
        await cluster.wait_ready("good")
        await cluster.sleep(3)

    cluster = run_cluster(scenario, {"app": Program(ports={9000: Listener(grpc={"shop": 1})})})
    texts = " ".join(cluster.events("bad") + cluster.events("refused"))
    assert "Readiness probe failed: error: health rpc probe failed: rpc error: code = NotFound" in texts
    assert re.search(r'Readiness probe failed: timeout: failed to connect service "[\d.]+:9001" within 1s: ', texts)
