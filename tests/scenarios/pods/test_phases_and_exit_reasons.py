"""Phases and the reasons of exits: one test for each row of node-semantics 12.1 and 12.4, in whole clusters."""

from typing import Any

import pytest
from virtual_cluster import VirtualCluster, container, pod_manifest, run_cluster

from lastcall.kube.cri.simulated_program import ExecResult, Program
from lastcall.records import kinds

STAYS = Program(on_term="ignore")


def ends(code: int = 0, after: float = 2.0) -> Program:
    return Program(exits_after=after, natural_exit_code=code)


def phases(cluster: VirtualCluster, pod: str = "p") -> list[str]:
    """The phases that the Pod went through, each once."""
    return list(dict.fromkeys(seen.object["status"]["phase"] for seen in cluster.versions(pod)))


def lived(programs: dict[str, Program], *, until: str = "", seconds: float = 30.0, **spec: Any) -> VirtualCluster:
    """A Pod that nobody deletes: followed until it has the phase, or for some time."""

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(**spec))
        if until:
            await cluster.wait_phase("p", until)
        await cluster.sleep(seconds)

    return run_cluster(scenario, programs)


def state(cluster: VirtualCluster, container: str = "app") -> tuple[str, str | None, int | None]:
    ((kind, more),) = cluster.container_status(container)["state"].items()
    return kind, more.get("reason"), more.get("exitCode")


# -- 12.1: the phase --------------------------------------------------------------------------------------------------


@pytest.mark.rule("node-semantics 12.1/1, 9.2/init-failed")
def test_an_init_container_that_fails_for_good_fails_the_pod() -> None:
    cluster = lived({"i": ends(3), "": STAYS}, restartPolicy="Never", initContainers=[container("i")])
    assert phases(cluster) == ["Pending", "Failed"]
    assert state(cluster, "i") == ("terminated", "Error", 3)
    assert state(cluster) == ("waiting", "PodInitializing", None)


@pytest.mark.rule("node-semantics 12.1/2, 9.3/init-failure")
def test_a_pod_is_pending_while_an_init_container_runs_or_is_tried_again() -> None:
    cluster = lived({"i": ends(3), "": STAYS}, initContainers=[container("i")], seconds=40)
    assert phases(cluster) == ["Pending"]
    assert len(cluster.records(kinds.PROCESS_STARTED, "i")) > 2
    assert cluster.records(kinds.PROCESS_STARTED, "app") == []


@pytest.mark.rule("node-semantics 12.1/2, 8/start")
def test_a_pod_is_pending_until_its_sidecar_has_started() -> None:
    probe = {"exec": {"command": ["up"]}, "periodSeconds": 1, "failureThreshold": 60}
    sidecar = container("s", restartPolicy="Always", startupProbe=probe)
    late = Program(execs={"up": (*(ExecResult(exit_code=1),) * 9, ExecResult())})
    cluster = lived({"s": late, "": STAYS}, until="Running", initContainers=[sidecar])
    assert cluster.at(kinds.PROCESS_STARTED, "app") - cluster.at(kinds.PROCESS_STARTED, "s") >= 9
    running = next(seen for seen in cluster.versions() if seen.object["status"]["phase"] == "Running")
    assert running.at >= cluster.at(kinds.PROCESS_STARTED, "app")


@pytest.mark.rule("node-semantics 12.1/3")
def test_a_container_that_waits_and_never_ran_keeps_the_pod_pending_beside_one_that_runs() -> None:
    env = [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "missing", "key": "a"}}}]
    cluster = lived({"": STAYS}, containers=[container("runs"), container("waits", env=env)])
    assert phases(cluster) == ["Pending"]
    assert state(cluster, "runs")[0] == "running"
    assert state(cluster, "waits") == ("waiting", "CreateContainerConfigError", None)


@pytest.mark.rule("node-semantics 12.1/4")
def test_one_container_that_runs_makes_the_pod_running_whatever_the_others_did() -> None:
    cluster = lived({"runs": STAYS, "": ends(7)}, restartPolicy="Never", containers=[container("runs"), container()])
    assert phases(cluster)[-1] == "Running"
    assert state(cluster) == ("terminated", "Error", 7)


@pytest.mark.rule("node-semantics 12.1/5, 12.1/deleted")
@pytest.mark.parametrize(("code", "phase"), [(0, "Succeeded"), (9, "Failed"), (143, "Failed")])
@pytest.mark.parametrize("policy", ["Always", "OnFailure", "Never"])
def test_a_deleted_pod_ends_by_its_codes_alone(policy: str, code: int, phase: str) -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(restartPolicy=policy))
        await cluster.wait_ready()
        await cluster.delete()
        await cluster.wait_gone()

    cluster = run_cluster(scenario, {"app": Program(exit_code=code)})
    assert phases(cluster)[-2:] == ["Running", phase]


@pytest.mark.rule("node-semantics 12.1/6, 12.1/waiting-stopped")
@pytest.mark.parametrize(
    ("policy", "code", "last"),
    [
        ("Always", 0, "Running"),
        ("Always", 1, "Running"),
        ("OnFailure", 1, "Running"),
        ("OnFailure", 0, "Succeeded"),
        ("Never", 0, "Succeeded"),
        ("Never", 1, "Failed"),
    ],
)
def test_a_pod_all_of_whose_containers_ended_is_running_if_one_may_start_again(
    policy: str, code: int, last: str
) -> None:
    cluster = lived({"app": ends(code, after=0.5)}, restartPolicy=policy, seconds=60)
    assert phases(cluster) == list(dict.fromkeys(["Pending", "Running", last]))
    assert len(cluster.records(kinds.PROCESS_STARTED)) > 1 or last != "Running"


@pytest.mark.rule("node-semantics 12.1/7")
def test_a_pod_whose_container_the_runtime_has_not_made_yet_is_pending() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        cluster.runtime.fail_next("cni_add", "no addresses left", times=1000)
        await cluster.create(pod_manifest())
        await cluster.sleep(30)

    cluster = run_cluster(scenario, {"": STAYS})
    assert phases(cluster) == ["Pending"] and state(cluster) == ("waiting", "ContainerCreating", None)


@pytest.mark.rule("node-semantics 12.1/sidecars, 12.1/4")
def test_a_running_sidecar_alone_keeps_the_pod_running_and_a_failed_one_does_not_fail_it() -> None:
    cluster = lived(
        {"s": Program(drain_seconds=4, exit_code=5), "app": ends(0)},
        until="Succeeded",
        restartPolicy="Never",
        initContainers=[container("s", restartPolicy="Always")],
    )
    assert phases(cluster) == ["Pending", "Running", "Succeeded"]
    (succeeded, *_) = (seen for seen in cluster.versions() if seen.object["status"]["phase"] == "Succeeded")
    assert succeeded.at >= cluster.at(kinds.PROCESS_EXITED, "s") and state(cluster, "s")[2] == 5


@pytest.mark.rule("node-semantics 12.1/sticky, 9.1/terminal")
def test_a_pod_that_has_ended_starts_nothing_again_whatever_changes() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(restartPolicy="Never", volumes=[{"name": "d", "emptyDir": {}}]))
        await cluster.wait_phase("p", "Succeeded")
        await cluster.wait_until(lambda: cluster.records(kinds.WORKER_FINISHED))
        await cluster.patch("pod/p", {"metadata": {"labels": {"new": "label"}}})
        await cluster.sleep(120)

    cluster = run_cluster(scenario, {"app": ends(0)})
    assert phases(cluster) == ["Pending", "Running", "Succeeded"]
    assert len(cluster.records(kinds.PROCESS_STARTED)) == 1 and len(cluster.records(kinds.VOLUMES_UNMOUNTED)) == 1
    assert cluster.records(kinds.FINAL_DELETE_SENT) == [] and not cluster.is_gone()


# -- 12.4: why a container ended --------------------------------------------------------------------------------------


@pytest.mark.rule("node-semantics 12.4/1")
def test_an_exit_with_0_is_completed() -> None:
    cluster = lived({"app": ends(0)}, until="Succeeded", restartPolicy="Never")
    assert state(cluster) == ("terminated", "Completed", 0)


@pytest.mark.rule("node-semantics 12.4/2")
@pytest.mark.parametrize("code", [1, 42, 137, 143])
def test_any_other_exit_is_an_error_with_its_code(code: int) -> None:
    cluster = lived({"app": ends(code)}, until="Failed", restartPolicy="Never")
    assert state(cluster) == ("terminated", "Error", code)


def ended_by(hand: Any, program: Program = STAYS, **spec: Any) -> VirtualCluster:
    """A Pod that runs, and whose container something happens to."""

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(restartPolicy="Never", **spec))
        await cluster.wait_ready()
        await hand(cluster)
        await cluster.wait_until(lambda: "terminated" in cluster.container_status().get("state", {}))

    return run_cluster(scenario, {"app": program})


async def running_id(cluster: VirtualCluster) -> str:
    (running,) = await cluster.runtime.list_containers(cluster.uid("p"))
    return running.id


@pytest.mark.rule("node-semantics 12.4/3")
@pytest.mark.parametrize("code", [137, 1])
def test_a_container_that_ran_out_of_memory_says_so_whatever_its_code(code: int) -> None:
    async def out_of_memory(cluster: VirtualCluster) -> None:
        cluster.runtime.kill(await running_id(cluster), code, oom=True)

    assert state(ended_by(out_of_memory)) == ("terminated", "OOMKilled", code)


@pytest.mark.rule("node-semantics 12.4/sigkill")
def test_a_sigkill_at_the_end_of_the_grace_period_is_an_error_and_no_lack_of_memory() -> None:
    async def delete(cluster: VirtualCluster) -> None:
        await cluster.delete(grace=3)
        await cluster.wait_gone()

    assert state(ended_by(delete)) == ("terminated", "Error", 137)


@pytest.mark.rule("node-semantics 12.4/4")
def test_a_process_that_cannot_be_started_is_a_start_error() -> None:
    cluster = lived({"app": Program(start_error="exec: no such file")}, until="Failed", restartPolicy="Never")
    assert state(cluster) == ("terminated", "StartError", 128)


@pytest.mark.rule("node-semantics 12.4/6, 12.3/lost")
@pytest.mark.parametrize("policy", ["Never", "Always"])
def test_a_container_whose_record_is_lost_ended_with_status_unknown(policy: str) -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(restartPolicy=policy))
        await cluster.wait_ready()
        await cluster.runtime.remove_container(await running_id(cluster))
        await cluster.wait_until(lambda: cluster.container_status().get("restartCount") == 1, 60)

    cluster = run_cluster(scenario, {"": STAYS})
    last = cluster.container_status()["lastState"]["terminated"]
    assert (last["reason"], last["exitCode"]) == ("ContainerStatusUnknown", 137)


@pytest.mark.rule("node-semantics 12.4/8")
def test_an_exit_that_the_runtime_could_not_see_is_told_as_it_tells_it() -> None:
    async def unseen(cluster: VirtualCluster) -> None:
        container_id = await running_id(cluster)
        exit_ = cluster.runtime._lives.exit
        cluster.runtime._lives.exit = lambda c, code, reason="": exit_(c, code, "Unknown")  # type: ignore[method-assign]
        cluster.runtime.kill(container_id, 255)

    assert state(ended_by(unseen)) == ("terminated", "Unknown", 255)
