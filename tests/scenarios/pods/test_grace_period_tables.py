"""The worked numbers of the grace period: node-semantics 5.4 and 5.6 with the recordings' corrections.

All seconds count from the Killing event (T0). Not here: the RestartAllContainers row (not yet a feature).
"""

import pytest
from virtual_cluster import VirtualCluster, container, pod_manifest, pre_stop, run_cluster

from lastcall.kube.api.resources import PODS
from lastcall.kube.cri.simulated_program import ExecResult, Program
from lastcall.records import kinds

IGNORES = Program(on_term="ignore", execs={"hook": ExecResult(seconds=3600)})


def near(value: float):
    return pytest.approx(value, abs=0.05)


def ended(
    *, hook: dict | None = None, program: Program = IGNORES, grace: int | None = None, spec_grace: int = 30, **more
) -> VirtualCluster:
    """One Pod, deleted a second after it was Ready, followed to its end."""

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(
            pod_manifest(
                terminationGracePeriodSeconds=spec_grace, containers=[container(**(pre_stop(**hook) if hook else {}))]
            )
        )
        await cluster.wait_ready()
        await cluster.sleep(1)
        await cluster.delete(grace=grace)
        await cluster.wait_gone()

    return run_cluster(scenario, {"app": program}, **more)


@pytest.mark.rule("node-semantics 5.4/1, 25/1")
def test_an_app_that_drains_for_three_seconds_ends_then_with_its_own_code() -> None:
    """node-semantics 5.4 row 1, 25.1."""
    cluster = ended(program=Program(drain_seconds=3, exit_code=0))
    assert cluster.signals() == [(near(0), "SIGTERM")]
    assert cluster.exits() == [(near(3), 0)]
    assert cluster.status()["phase"] == "Succeeded"
    assert cluster.records(kinds.STOP_REQUESTED)[0].facts["timeoutSeconds"] == 30


@pytest.mark.rule("node-semantics 5.4/2, 5.4/3, 5.4/4, 5.4/5, 5.3/truncated, 5.3/floor, 25/2, 25/7, 12.4/sigkill")
@pytest.mark.parametrize(
    ("grace", "hook", "term", "kill"),
    [
        pytest.param(30, {"exec": ["sleep", "10"]}, 10, 30, id="5.4 row 2: a hook of 10 s counts"),
        pytest.param(30, {"exec": ["hook"]}, 30, 32, id="5.4 row 3: a hook that hangs leaves the floor of 2 s"),
        pytest.param(30, {"exec": ["sleep", "29.5"]}, 29.5, 31.5, id="5.4 row 4: 29.5 s count as 29, 1 is raised to 2"),
        pytest.param(1, {"exec": ["sleep", "5"]}, 1, 3, id="5.4 row 5, 25.7: a hook of 5 s is cut at 1 s"),
        pytest.param(5, None, 0, 5, id="25.2: no hook"),
        pytest.param(30, {"exec": ["sleep", "0.9"]}, 0.9, 30.9, id="5.3: a hook of less than a second costs nothing"),
    ],
)  # fmt: skip
def test_an_app_that_ignores_sigterm_gets_sigterm_and_sigkill_at(grace: int, hook, term: float, kill: float) -> None:
    cluster = ended(grace=grace, hook=hook)
    assert cluster.signals() == [(near(term), "SIGTERM"), (near(kill), "SIGKILL")]
    assert cluster.exits() == [(near(kill), 137)]
    assert cluster.status()["phase"] == "Failed"
    assert cluster.container_status()["state"]["terminated"]["reason"] == "Error"


@pytest.mark.rule("node-semantics 24/hook-budget")
@pytest.mark.parametrize(
    ("version", "hook", "term", "kill"),
    [
        ("1.23", 2, 2, 12),
        ("1.27", 2, 2, 12),
        ("1.36", 2, 2, 10),
        ("1.23", None, 0, 10),
        ("1.23", 3600, 10, 20),
    ],
)
def test_from_1_22_to_1_27_the_hook_s_time_was_not_taken_off(version: str, hook, term: float, kill: float) -> None:
    """node-semantics 21 and 25.3: those kubelets gave StopContainer the whole override again."""
    handler = {"exec": ["sleep", str(hook)]} if hook else None
    cluster = ended(grace=10, hook=handler, kubernetes_version=version)
    assert cluster.signals() == [(near(term), "SIGTERM"), (near(kill), "SIGKILL")]


@pytest.mark.rule("node-semantics 5.4/6, 5.6/2, 25/8")
def test_grace_zero_with_a_finalizer_is_one_second_and_the_object_stays() -> None:
    """node-semantics 5.4 row 6, 5.6 row 2, 25.8; recorded: delete-grace-0-finalizer."""

    async def scenario(cluster: VirtualCluster) -> None:
        manifest = pod_manifest(
            finalizers=["example.com/hold"], containers=[container(**pre_stop(exec=["sleep", "5"]))]
        )
        await cluster.create(manifest)
        await cluster.wait_ready()
        await cluster.delete(grace=0)
        await cluster.wait_phase("p", "Failed")
        await cluster.sleep(5)
        assert not cluster.is_gone()
        assert cluster.pod()["metadata"]["deletionGracePeriodSeconds"] == 0
        await cluster.patch("pod/p", {"metadata": {"finalizers": None}})
        await cluster.wait_gone()

    cluster = run_cluster(scenario, {"app": IGNORES})
    assert cluster.signals() == [(near(1), "SIGTERM"), (near(3), "SIGKILL")]
    (hook,) = [r for r in cluster.records(kinds.PRE_STOP_FINISHED) if r.facts["outcome"] == "outlived"]
    assert hook.facts["seconds"] == near(1)


@pytest.mark.rule("node-semantics 5.4/7, 5.6/4, 10/found, 10/no-hook, 20/5, 25/20, 4.6/cgroups, 4.6/runtime-only")
def test_a_pod_force_deleted_while_the_kubelet_was_down_gets_sigkill_at_once_and_no_hook() -> None:
    """node-semantics 5.4 row 7 and 5.6 row 4, as golden correction 2 has them; 25.20."""

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(containers=[container(**pre_stop(exec=["sleep", "2"]))]))
        await cluster.wait_ready()
        await cluster.kill_kubelet()
        await cluster.delete(grace=0)
        assert (await cluster.client.list(PODS, cluster.namespace)).items == []
        await cluster.sleep(2)
        assert cluster.records(kinds.PROCESS_EXITED) == []
        cluster.start_kubelet()
        await cluster.wait_until(lambda: cluster.records(kinds.PROCESS_EXITED))
        await cluster.wait_until(lambda: cluster.records(kinds.SANDBOX_STOPPED))

    cluster = run_cluster(scenario, {"app": IGNORES})
    assert cluster.signals() == [(near(0), "SIGKILL")]
    assert cluster.records(kinds.PRE_STOP_STARTED) == []
    assert "only the runtime knows" in cluster.records(kinds.PRE_STOP_SKIPPED)[0].facts["why"]


@pytest.mark.rule("node-semantics 5.6/1")
def test_a_forced_deletion_of_a_running_pod_gives_it_one_second() -> None:
    """node-semantics 5.6 row 1 as golden correction 1 has it: the node acts on the write before the removal."""

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(
            pod_manifest(terminationGracePeriodSeconds=20, containers=[container(**pre_stop(exec=["sleep", "5"]))])
        )
        await cluster.wait_ready()
        deleted = cluster.now
        await cluster.delete(grace=0)
        await cluster.wait_gone()
        assert cluster.gone_at() - deleted < 0.1
        sent = len(cluster.records(kinds.STATUS_SENT))
        await cluster.wait_until(lambda: cluster.records(kinds.WORKER_FINISHED))
        await cluster.sleep(15)
        assert len(cluster.records(kinds.STATUS_SENT)) == sent, "no status for an object that is gone"

    cluster = run_cluster(scenario, {"app": IGNORES})
    assert cluster.signals() == [(near(1), "SIGTERM"), (near(3), "SIGKILL")]
    assert cluster.records(kinds.FINAL_DELETE_SENT) == []


@pytest.mark.rule("node-semantics 5.6/3, 5.5/forced")
def test_a_forced_deletion_of_a_terminating_pod_changes_nothing_for_its_containers() -> None:
    """node-semantics 5.6 row 3, 5.5: the attempt in flight is not interrupted."""

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(containers=[container(**pre_stop(exec=["sleep", "4"]))]))
        await cluster.wait_ready()
        await cluster.delete(grace=30)
        await cluster.sleep(2)
        await cluster.delete(grace=0)
        await cluster.wait_gone()
        assert cluster.now < 3
        await cluster.wait_until(lambda: cluster.records(kinds.WORKER_FINISHED))

    cluster = run_cluster(scenario, {"app": IGNORES})
    assert cluster.signals() == [(near(4), "SIGTERM"), (near(30), "SIGKILL")]


@pytest.mark.rule("node-semantics 5.5/recorded, 5.5/not-interrupted, 25/10")
def test_a_second_delete_can_only_shorten_and_never_interrupts() -> None:
    """node-semantics 5.5, 25.10: DELETE 60, then 5 two seconds later: the API says 5, the container has its 60."""

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest())
        await cluster.wait_ready()
        first = await cluster.delete(grace=60)
        await cluster.sleep(2)
        second = await cluster.delete(grace=5)
        third = await cluster.delete(grace=300)
        assert [o["metadata"]["deletionGracePeriodSeconds"] for o in (first, second, third)] == [60, 5, 5]
        await cluster.wait_gone()

    cluster = run_cluster(scenario, {"app": IGNORES})
    assert cluster.signals() == [(near(0), "SIGTERM"), (near(60), "SIGKILL")]
    shortened = [r.facts for r in cluster.records(kinds.GRACE_DECIDED) if r.facts["shortened"]]
    assert [facts["gracePeriodSeconds"] for facts in shortened] == [5]


@pytest.mark.rule("node-semantics 25/9")
def test_a_forced_delete_and_a_new_pod_of_the_same_name_run_side_by_side() -> None:
    """node-semantics 25.9 with golden correction 1."""

    async def scenario(cluster: VirtualCluster) -> None:
        manifest = pod_manifest(terminationGracePeriodSeconds=20)
        await cluster.create(manifest)
        await cluster.wait_ready()
        await cluster.delete(grace=0)
        await cluster.create(manifest)
        await cluster.wait_ready("p~2")
        assert cluster.uid("p") != cluster.uid("p~2")
        assert not cluster.records(kinds.PROCESS_EXITED, pod="p"), "the old container still runs"
        await cluster.wait_until(lambda: cluster.records(kinds.PROCESS_EXITED, pod="p"))
        assert cluster.condition("p~2", "Ready") == "True"

    cluster = run_cluster(scenario, {"app": IGNORES})
    assert cluster.signals(pod="p") == [(near(0), "SIGTERM"), (near(2), "SIGKILL")]
    assert cluster.signals(pod="p~2") == []
