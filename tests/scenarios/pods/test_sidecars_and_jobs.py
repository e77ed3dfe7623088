"""Sidecars, init containers and Pods that end by themselves (node-semantics 8, 25.12 to 25.14, golden 14 to 17)."""

import pytest
from virtual_cluster import VirtualCluster, container, pod_manifest, pre_stop, run_cluster, service

from lastcall.kube.cri.simulated_program import ExecResult, Program
from lastcall.records import kinds


def near(value: float):
    return pytest.approx(value, abs=0.05)


def sidecar(name: str, **more) -> dict:
    return container(name, restartPolicy="Always", **more)


def first_signals(cluster: VirtualCluster, *names: str) -> dict[str, float]:
    return {name: cluster.signals(name)[0][0] for name in names}


def deleted(programs, *, kubernetes_version: str = "1.36", **spec) -> VirtualCluster:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(**spec))
        await cluster.wait_ready()
        await cluster.sleep(1)
        await cluster.delete()
        await cluster.wait_gone()

    return run_cluster(scenario, programs, kubernetes_version=kubernetes_version)


@pytest.mark.rule("node-semantics 8/regular-first, 8/hooks-together, 8/phase, 6/network, 25/12")
def test_sidecars_stop_after_the_app_in_reverse_order_and_their_exit_codes_do_not_count() -> None:
    """25.12: app at 0, B at 2, A at 4, sandbox at 6; hooks of all three start at 0."""
    hook = pre_stop(exec=["true"])
    cluster = deleted(
        {"app": Program(drain_seconds=2), "": Program(drain_seconds=2, exit_code=5)},
        initContainers=[sidecar("a", **hook), sidecar("b", **hook)],
        containers=[container(**hook)],
    )
    assert first_signals(cluster, "app", "b", "a") == {"app": near(0), "b": near(2), "a": near(4)}
    hooks = {r.container: cluster.since_killing(r) for r in cluster.records(kinds.PRE_STOP_STARTED)}
    assert hooks == {"app": near(0), "a": near(0), "b": near(0)}
    assert cluster.at(kinds.SANDBOX_STOPPED) - cluster.at(kinds.KILLING) == near(6)
    assert cluster.status()["phase"] == "Succeeded"


@pytest.mark.rule("node-semantics 8/budget, 25/13")
def test_a_hanging_hook_of_the_app_makes_every_sidecar_stop_together_at_the_end_of_the_grace() -> None:
    """25.13: all SIGTERM at 10, SIGKILL at 12."""
    hang = {"hang": ExecResult(seconds=3600)}
    cluster = deleted(
        {"": Program(on_term="ignore", execs=hang)},
        terminationGracePeriodSeconds=10,
        initContainers=[sidecar("a"), sidecar("b")],
        containers=[container(**pre_stop(exec=["hang"]))],
    )
    for name in ("app", "a", "b"):
        assert cluster.signals(name) == [(near(10), "SIGTERM"), (near(12), "SIGKILL")]


@pytest.mark.rule("node-semantics 8/natural-end, 16/teardown, 25/14")
def test_a_job_like_pod_ends_when_its_app_does_and_takes_its_sidecar_along() -> None:
    """25.14: Running until the sidecar is gone, its hook runs, volumes are unmounted, object and log stay."""

    async def scenario(cluster: VirtualCluster) -> None:
        volumes = [{"name": "d", "emptyDir": {}}]
        await cluster.create(
            service(),
            pod_manifest(
                restartPolicy="Never",
                volumes=volumes,
                initContainers=[sidecar("s", **pre_stop(exec=["sleep", "1"]))],
                containers=[container()],
            ),
        )
        await cluster.wait_until(lambda: cluster.records(kinds.KILLING, "s"))
        assert cluster.status()["phase"] == "Running"
        await cluster.wait_phase("p", "Succeeded")
        await cluster.sleep(10)
        assert not cluster.is_gone()

    cluster = run_cluster(scenario, {"app": Program(exits_after=2), "s": Program(drain_seconds=3)})
    assert cluster.signals("s") == [(near(1), "SIGTERM")]
    assert cluster.exits("s") == [(near(4), 0)]
    assert "Normal Killing [initContainers{s}]: Stopping container s" in cluster.events()
    order = [kinds.NETWORK_DETACHED, kinds.VOLUMES_UNMOUNTED]
    assert cluster.kinds(*order) == order
    assert cluster.records(kinds.FINAL_DELETE_SENT) == []
    # Golden correction 9: the terminal phase alone takes no endpoint out of the slice.
    assert cluster.endpoints("svc")[-1] == ["p ready=false serving=false terminating=false"]


@pytest.mark.rule("node-semantics 9.3/order, 12.2/initialized")
def test_init_containers_run_one_after_the_other_and_the_app_after_the_last() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(
            pod_manifest(initContainers=[container("one"), sidecar("side"), container("two")], containers=[container()])
        )
        await cluster.wait_ready()

    cluster = run_cluster(scenario, {"one": Program(exits_after=1), "two": Program(exits_after=2), "": Program()})
    started = {r.container: r.at_ns / 1e9 for r in cluster.records(kinds.PROCESS_STARTED)}
    assert list(started) == ["one", "side", "two", "app"]
    assert started["side"] - started["one"] >= 1 and started["app"] - started["two"] >= 2
    initialized = [group for group in cluster.milestones() if "cond Initialized=True" in group]
    assert len(initialized) == 1


@pytest.mark.rule("node-semantics 11.4/failed")
def test_a_pod_deleted_while_it_initialises_never_starts_its_app_and_is_failed() -> None:
    """Golden correction 17; recorded: delete-during-init-clean."""

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(initContainers=[container("one"), container("two")]))
        await cluster.wait_until(lambda: cluster.records(kinds.PROCESS_STARTED, "one"))
        await cluster.sleep(1)
        await cluster.delete()
        await cluster.wait_gone()

    cluster = run_cluster(scenario, {"": Program()})
    assert [r.container for r in cluster.records(kinds.PROCESS_STARTED)] == ["one"]
    assert cluster.status()["phase"] == "Failed"
    assert cluster.container_status("app")["state"]["waiting"]["reason"] == "PodInitializing"


@pytest.mark.rule("node-semantics 9.5/times, 9.5/event, 23/back-off")
def test_crashes_back_off_10_then_20_seconds_and_a_deletion_does_not_wait_for_the_back_off() -> None:
    """Golden correction 4: 10 to 15 s, then 20 to 30 s between an end and the next start."""

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest())
        await cluster.wait_until(lambda: len(cluster.records(kinds.PROCESS_STARTED)) == 4)
        await cluster.sleep(1)
        deleted_at = cluster.now
        await cluster.delete()
        await cluster.wait_gone()
        assert cluster.now - deleted_at < 2

    cluster = run_cluster(scenario, {"app": Program(exits_after=0.5, natural_exit_code=1)})
    starts = [r.at_ns / 1e9 for r in cluster.records(kinds.PROCESS_STARTED)]
    ends = [r.at_ns / 1e9 for r in cluster.records(kinds.PROCESS_EXITED)]
    waits = [start - end for start, end in zip(starts[1:], ends, strict=False)]
    assert waits[0] < 1 and 10 <= waits[1] <= 16 and 20 <= waits[2] <= 31, waits
    assert cluster.container_status()["restartCount"] == 3
    assert cluster.status()["phase"] == "Failed"
    assert any(line.startswith("Warning BackOff [containers{app}]: Back-off restarting") for line in cluster.events())


@pytest.mark.rule("node-semantics 12.1/deleted, 24/phase")
@pytest.mark.parametrize("policy", ["Never", "OnFailure", "Always"])
@pytest.mark.parametrize(("code", "phase"), [(0, "Succeeded"), (1, "Failed")])
def test_after_a_delete_the_phase_follows_the_exit_code_whatever_the_restart_policy(policy, code, phase) -> None:
    """Recorded: delete-exit-matrix."""
    cluster = deleted({"app": Program(exit_code=code)}, restartPolicy=policy)
    assert cluster.status()["phase"] == phase
    assert cluster.container_status()["restartCount"] == 0
