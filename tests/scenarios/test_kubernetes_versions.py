"""node-semantics 24, row by row: what a version of Kubernetes changes in the outcome."""

from typing import Any

import pytest
from node_stats import MI, Stats, disruption, ended_as, using
from virtual_cluster import VirtualCluster, container, pod_manifest, pre_stop, run_cluster

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import PODS
from lastcall.kube.cri.simulated_program import ExecResult, Program
from lastcall.kube.node.eviction.decide import ContainerUsage, FileUsage, PodUsage
from lastcall.kube.node.shutdown.decide import ShutdownGracePeriod, ShutdownNotSupported, grace_periods
from lastcall.kube.node.versions import VERSIONS, behaviour_at, behaviour_of
from lastcall.records import kinds

IGNORES = Program(on_term="ignore", execs={"hang": ExecResult(seconds=3600)})


def near(value: float) -> Any:
    return pytest.approx(value, abs=0.1)


def in_version(version: str, scenario: Any, program: Program = IGNORES, **options: Any) -> VirtualCluster:
    return run_cluster(scenario, {"app": program}, kubernetes_version=version, **options)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_of_a_cluster_is_a_column_of_the_one_table(version: str) -> None:
    assert behaviour_of(f"v{version}.3") == behaviour_at(version)


# -- budgets ----------------------------------------------------------------------------------------------------------

G = 10
HANGS = pod_manifest(terminationGracePeriodSeconds=G, containers=[container(**pre_stop(exec=["hang"]))])


@pytest.mark.rule("node-semantics 24/hook-budget")
@pytest.mark.parametrize(("version", "most"), [("1.23", 2 * G), ("1.27", 2 * G), ("1.36", G + 2), ("1.37", G + 2)])
def test_a_hook_that_hangs_and_a_signal_that_is_ignored_cost_at_most(version: str, most: int) -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(HANGS)
        await cluster.wait_ready()
        await cluster.delete()
        await cluster.wait_gone()

    assert in_version(version, scenario).signals() == [(near(G), "SIGTERM"), (near(most), "SIGKILL")]


@pytest.mark.rule("node-semantics 24/floor")
@pytest.mark.parametrize(("version", "kill"), [("1.23", 2), ("1.27", 2), ("1.36", 3), ("1.37", 3)])
def test_a_second_of_grace_becomes_two_after_the_hook_unless_it_is_an_override(version: str, kill: int) -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(HANGS)
        await cluster.wait_ready()
        await cluster.delete(grace=1)
        await cluster.wait_gone()

    assert in_version(version, scenario).signals() == [(near(1), "SIGTERM"), (near(kill), "SIGKILL")]


@pytest.mark.rule("node-semantics 24/floor")
@pytest.mark.parametrize(
    ("version", "signals"),
    [
        ("1.23", [(near(G), "SIGTERM"), (near(G + 1), "SIGKILL")]),
        ("1.27", [(near(G), "SIGTERM"), (near(G + 1), "SIGKILL")]),
        ("1.36", [(near(1), "SIGTERM"), (near(3), "SIGKILL")]),
    ],
)
def test_a_hard_eviction_used_to_grant_the_hook_all_its_time(version: str, signals: Any) -> None:
    stats = Stats()

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(HANGS)
        await cluster.wait_ready()
        stats.pods["p"], stats.free["memory.available"] = using(memory=80), (50 * MI, 1000 * MI)
        await cluster.wait_until(lambda: cluster.records(kinds.PROCESS_EXITED), 60)
        await cluster.sleep(1)

    cluster = in_version(version, scenario, kubelet={"stats": stats})
    assert cluster.signals() == signals
    assert ended_as(cluster)[1] == "Evicted"


@pytest.mark.rule("node-semantics 24/probe-grace")
@pytest.mark.parametrize(("version", "kill"), [("1.23", G), ("1.27", 3), ("1.36", 3)])
def test_a_probe_has_a_grace_period_of_its_own_since_1_25(version: str, kill: int) -> None:
    probe = {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1}
    manifest = pod_manifest(
        terminationGracePeriodSeconds=G,
        containers=[container(livenessProbe={**probe, "terminationGracePeriodSeconds": 3})],
    )

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(manifest)
        await cluster.wait_until(lambda: len(cluster.records(kinds.SIGNAL_SENT)) >= 2)

    cluster = in_version(version, scenario)
    assert cluster.signals()[:2] == [(near(0), "SIGTERM"), (near(kill), "SIGKILL")]
    probe = cluster.pod()["spec"]["containers"][0]["livenessProbe"]
    assert ("terminationGracePeriodSeconds" in probe) is (version in ("1.27", "1.36"))


# -- what a version does not know -------------------------------------------------------------------------------------


@pytest.mark.rule("node-semantics 24/sidecars")
@pytest.mark.parametrize("version", ["1.23", "1.27"])
def test_before_1_29_a_sidecar_is_an_init_container_that_never_ends(version: str) -> None:
    """The API server does not know initContainers[].restartPolicy: the Pod waits for what is to run forever."""

    async def scenario(cluster: VirtualCluster) -> None:
        (made,) = await cluster.create(pod_manifest(initContainers=[container("s", restartPolicy="Always")]))
        assert "restartPolicy" not in made["spec"]["initContainers"][0]
        await cluster.wait_until(lambda: cluster.records(kinds.PROCESS_STARTED, "s"))
        await cluster.sleep(60)

    cluster = run_cluster(scenario, {"": Program()}, kubernetes_version=version)
    assert cluster.status()["phase"] == "Pending"
    assert cluster.records(kinds.PROCESS_STARTED, "app") == []


@pytest.mark.rule("node-semantics 24/sleep")
@pytest.mark.parametrize("version", VERSIONS)
def test_the_sleep_hook_is_no_handler_before_1_30(version: str) -> None:
    manifest = pod_manifest(containers=[container(**pre_stop(sleep=3))])

    async def scenario(cluster: VirtualCluster) -> None:
        if behaviour_at(version).minor < 30:
            with pytest.raises(StatusError) as refused:
                await cluster.create(manifest)
            assert "spec.containers[0].lifecycle.preStop: Required value: must specify a handler type" in str(
                refused.value
            )
            return
        await cluster.create(manifest)
        await cluster.wait_ready()
        await cluster.delete()
        await cluster.wait_gone()

    cluster = in_version(version, scenario, Program())
    assert cluster.signals() == ([(near(3), "SIGTERM")] if behaviour_at(version).sleep_hook else [])


@pytest.mark.parametrize(("version", "evicted"), [("1.36", False), ("1.37", True)])
def test_since_1_37_a_sidecar_above_its_storage_limit_evicts_its_pod(version: str, evicted: bool) -> None:
    """(kubernetes#138462) Before, only the limits of the other containers and of all together counted."""
    stats = Stats()
    limits = {size: {"limits": {"ephemeral-storage": size}} for size in ("1Mi", "9Mi")}
    sidecar = container("s", restartPolicy="Always", resources=limits["1Mi"])
    manifest = pod_manifest(initContainers=[sidecar], containers=[container(resources=limits["9Mi"])])

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(manifest)
        await cluster.wait_ready()
        stats.pods["p"] = PodUsage({"s": ContainerUsage(MI, 1, FileUsage(2 * MI, 1), FileUsage(0, 0))}, {})
        await cluster.sleep(60)

    cluster = run_cluster(scenario, {"": IGNORES}, kubernetes_version=version, kubelet={"stats": stats})
    if not evicted:
        assert ended_as(cluster)[0] == "Running"
        return
    assert ended_as(cluster)[:2] == ("Failed", "Evicted")
    assert 'Container s exceeded its local ephemeral storage limit "1Mi"' in str(ended_as(cluster)[2])


# -- status -----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("node-semantics 24/disruption-target")
@pytest.mark.parametrize(("version", "said"), [("1.23", False), ("1.27", True), ("1.36", True)])
def test_whoever_ends_a_pod_says_disruption_target_since_1_26(version: str, said: bool) -> None:
    stats = Stats()

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest("evicted"), pod_manifest("asked"))
        await cluster.wait_ready("evicted", "asked")
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "asked"}}
        await cluster.client.create(PODS, eviction, "default", name="asked", subresource="eviction")
        await cluster.wait_gone("asked")
        stats.pods["evicted"], stats.free["memory.available"] = using(memory=80), (50 * MI, 1000 * MI)
        await cluster.wait_phase("evicted", "Failed", 120)
        await cluster.sleep(5)

    cluster = in_version(version, scenario, IGNORES, kubelet={"stats": stats})
    found = [disruption(cluster, pod) for pod in ("evicted", "asked")]
    assert [each is not None for each in found] == [said, said]


@pytest.mark.rule("node-semantics 24/sandbox-condition")
@pytest.mark.parametrize("version", VERSIONS)
def test_the_condition_of_the_sandbox_is_written_since_1_29(version: str) -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest())
        await cluster.wait_ready()

    cluster = in_version(version, scenario, Program())
    assert cluster.condition("p", "PodReadyToStartContainers") == (
        "True" if behaviour_at(version).sandbox_condition else None
    )


# -- node and runtime -------------------------------------------------------------------------------------------------


@pytest.mark.rule("node-semantics 24/shutdown")
@pytest.mark.parametrize(("version", "by_priority"), [("1.23", False), ("1.27", True), ("1.36", True)])
def test_nodes_shut_down_gracefully_and_by_priority_since_1_24(version: str, by_priority: bool) -> None:
    async def can(cluster: VirtualCluster, periods: Any) -> bool:
        try:
            await cluster.kubelet.shutdown.shut_down(periods)
        except ShutdownNotSupported:
            return False
        cluster.kubelet.shutdown.cancel()
        return True

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest())
        await cluster.wait_ready()
        assert await can(cluster, [ShutdownGracePeriod(0, 5), ShutdownGracePeriod(1000, 5)]) is by_priority
        assert await can(cluster, grace_periods(30, 10))
        await cluster.sleep(2)

    cluster = in_version(version, scenario, Program())
    assert cluster.signals()
