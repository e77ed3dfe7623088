"""Restart policies of containers, rules by exit code, and the restart of all containers (node-semantics 21.2)."""

from itertools import pairwise
from typing import Any

import pytest
from virtual_cluster import VirtualCluster, container, pod_manifest, run_cluster

from lastcall.kube.cri.api import ContainerConfig, PodSandboxConfig
from lastcall.kube.cri.simulated import Durations
from lastcall.kube.cri.simulated_program import ExecResult, Program
from lastcall.records import kinds

ALL_ON_42 = {
    "restartPolicy": "Never",
    "restartPolicyRules": [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [42]}}],
}
AGAIN_ON_42 = {
    "restartPolicy": "Never",
    "restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}],
}


def by_attempt(**programs: list[Program]) -> Any:
    """Each container's program by its restart count; the last one forever."""

    def find(config: ContainerConfig, sandbox: PodSandboxConfig) -> Program:
        own = programs[config.metadata.name]
        return own[min(config.metadata.attempt, len(own) - 1)]

    return find


def condition(status: dict, type_: str = "AllContainersRestarting") -> dict:
    return next((each for each in status.get("conditions") or [] if each["type"] == type_), {})


RUNS = Program()
ASKS = Program(exits_after=5.0, natural_exit_code=42)


@pytest.mark.rule("node-semantics 21.2/restart-all, 5.4/8, 12.4/7")
def test_an_exit_by_its_rule_restarts_every_container_in_the_same_sandbox() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        hook = {"lifecycle": {"preStop": {"exec": {"command": ["hook"]}}}}
        await cluster.create(
            pod_manifest(
                restartPolicy="Never",
                terminationGracePeriodSeconds=30,
                initContainers=[container("init"), container("proxy", restartPolicy="Always")],
                containers=[container("source", **ALL_ON_42), container("other", **hook), container("done")],
            )
        )
        await cluster.wait_until(lambda: cluster.container_status("other").get("restartCount") == 1)
        await cluster.wait_until(lambda: "running" in cluster.container_status("source")["state"])
        await cluster.sleep(5)

    stubborn = Program(on_term="ignore", execs={"hook": ExecResult()})
    ends = Program(exits_after=1.0)
    programs = by_attempt(init=[ends], proxy=[RUNS], source=[ASKS, RUNS], other=[stubborn, RUNS], done=[ends])
    cluster = run_cluster(scenario, programs, durations=Durations(create_container=0.05))

    assert len(cluster.records(kinds.SANDBOX_CREATED)) == 1
    assert cluster.records(kinds.PRE_STOP_STARTED) == []
    assert len(cluster.records(kinds.PROCESS_STARTED, "init")) == 2
    killing = {r.container: r.facts for r in cluster.records(kinds.KILLING)}
    assert killing == {name: {"message": "killing", "gracePeriodSeconds": 0} for name in ("proxy", "other")}
    term, kill = cluster.signals("other")
    assert (term[1], kill[1]) == ("SIGTERM", "SIGKILL") and kill[0] - term[0] == pytest.approx(2, abs=0.01)
    (restarting,) = cluster.records(kinds.ALL_CONTAINERS_RESTARTING)
    assert restarting.facts["containers"] == ["other", "done", "init", "proxy", "source"]
    assert (restarting.container, restarting.facts["exitCode"]) == ("source", 42)

    versions = [seen.object["status"] for seen in cluster.versions()]
    during = [status for status in versions if condition(status).get("status") == "True"]
    assert during and all(status["phase"] == "Running" for status in during)
    assert condition(during[0])["reason"] == "RestartAllContainersStarted"
    assert condition(during[0])["message"] == "container exited with restart policy rule"
    status = cluster.status()
    assert condition(status)["status"] == "False"
    for each in (*status["initContainerStatuses"], *status["containerStatuses"]):
        assert each["restartCount"] == 1, each["name"]
        last = each["lastState"]["terminated"]
        assert (last["exitCode"], last["reason"]) == (137, "RestartingAllContainers"), each["name"]
        assert last.get("startedAt") is None
    waiting = [
        each["state"]["waiting"]["reason"]
        for seen in versions
        for each in seen.get("containerStatuses") or []
        if "waiting" in each["state"] and each["lastState"]
    ]
    assert "RestartingAllContainers" in waiting


@pytest.mark.rule("node-semantics 21.2/restart-all")
def test_a_sidecar_may_ask_for_it_and_a_pod_of_one_container_too() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        rules = {"restartPolicyRules": ALL_ON_42["restartPolicyRules"]}
        watcher = container("watcher", restartPolicy="Always", **rules)
        await cluster.create(pod_manifest("a", restartPolicy="Never", initContainers=[watcher]))
        await cluster.create(pod_manifest("b", restartPolicy="Never", containers=[container("source", **ALL_ON_42)]))
        await cluster.wait_until(lambda: cluster.container_status("app", "a").get("restartCount") == 1)
        await cluster.wait_until(lambda: cluster.container_status("source", "b").get("restartCount") == 1)
        await cluster.wait_ready("a")
        await cluster.wait_ready("b")

    run_cluster(scenario, by_attempt(watcher=[ASKS, RUNS], source=[ASKS, RUNS], app=[RUNS]))


@pytest.mark.rule("node-semantics 21.2/restart-all")
def test_an_exit_that_asks_for_it_again_and_again_is_held_back() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(
            pod_manifest(restartPolicy="Never", containers=[container("source", **ALL_ON_42), container("other")])
        )
        await cluster.wait_until(lambda: cluster.container_status("other").get("restartCount") == 3)

    asks_at_once = Program(exits_after=0.5, natural_exit_code=42)
    cluster = run_cluster(scenario, {"source": asks_at_once, "other": RUNS})
    at = [record.at_ns / 1e9 for record in cluster.records(kinds.PROCESS_STARTED, "other")]
    apart = [later - before for before, later in pairwise(at)]
    # The wait counts from the exit; the worker looks again up to half as late.
    assert apart[0] < 2 and 10 <= apart[1] <= 17 and 20 <= apart[2] <= 32
    waiting = [
        status["state"]["waiting"]["reason"]
        for seen in cluster.versions()
        for status in seen.object["status"].get("containerStatuses") or []
        if status["name"] == "source" and "waiting" in status["state"]
    ]
    assert "CrashLoopBackOff" in waiting
    assert cluster.container_status("source")["restartCount"] == 3


@pytest.mark.rule("node-semantics 21.2/restart-all")
def test_a_pod_that_is_being_deleted_restarts_nothing() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(containers=[container("source", **ALL_ON_42), container("other")]))
        await cluster.wait_ready()
        await cluster.delete()
        await cluster.wait_gone()

    leaves = Program(exit_code=42)
    cluster = run_cluster(scenario, {"source": leaves, "other": Program(drain_seconds=3.0)})
    assert len(cluster.records(kinds.PROCESS_STARTED)) == 2
    assert cluster.container_status("source")["state"]["terminated"]["exitCode"] == 42
    assert cluster.status()["phase"] == "Failed"


@pytest.mark.rule("node-semantics 21.2/restart-all")
@pytest.mark.parametrize("after", [0.01, 1.0, 3.0, 7.0])
def test_a_kubelet_killed_on_the_way_goes_on_where_it_was(after: float) -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        others = [container(f"other-{number}") for number in range(3)]
        await cluster.create(
            pod_manifest(restartPolicy="Never", containers=[container("source", **ALL_ON_42), *others])
        )
        await cluster.wait_until(lambda: condition(cluster.status()).get("status") == "True")
        await cluster.sleep(after)
        await cluster.kill_kubelet()
        await cluster.sleep(1)
        cluster.start_kubelet()
        names = ("source", "other-0", "other-1", "other-2")
        await cluster.wait_until(
            lambda: (
                all("running" in cluster.container_status(name)["state"] for name in names)
                and condition(cluster.status()).get("status") == "False"
            )
        )
        assert all(cluster.container_status(name)["restartCount"] >= 1 for name in names)
        await cluster.delete()
        await cluster.wait_gone()

    stubborn = [Program(on_term="ignore"), RUNS]
    programs = {f"other-{number}": stubborn for number in range(3)}
    cluster = run_cluster(scenario, by_attempt(source=[ASKS, RUNS], **programs))
    assert len(cluster.records(kinds.SANDBOX_CREATED)) == 1


@pytest.mark.rule("node-semantics 21.2/rules")
def test_a_rule_restarts_a_container_of_a_pod_that_never_restarts() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(
            pod_manifest(restartPolicy="Never", containers=[container("again", **AGAIN_ON_42), container("once")])
        )
        await cluster.wait_until(lambda: cluster.status().get("phase") == "Failed")

    again = [Program(exits_after=1.0, natural_exit_code=42), Program(exits_after=1.0, natural_exit_code=7)]
    once = [Program(exits_after=1.0, natural_exit_code=42)]
    cluster = run_cluster(scenario, by_attempt(again=again, once=once))
    counts = {each["name"]: each["restartCount"] for each in cluster.status()["containerStatuses"]}
    assert counts == {"again": 1, "once": 0}
    assert cluster.container_status("again")["lastState"]["terminated"]["exitCode"] == 42
    assert cluster.container_status("again")["state"]["terminated"]["exitCode"] == 7


@pytest.mark.rule("node-semantics 21.2/policy")
@pytest.mark.parametrize(("policy", "code", "phase"), [("Never", 1, "Failed"), ("Never", 0, "Running")])
def test_an_init_container_s_own_policy_decides_whether_the_pod_fails(policy: str, code: int, phase: str) -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(initContainers=[container("init", restartPolicy=policy)]))
        await cluster.wait_until(lambda: cluster.status().get("phase") == phase)
        await cluster.sleep(60)

    init = Program(exits_after=1.0, natural_exit_code=code)
    cluster = run_cluster(scenario, {"init": init, "app": RUNS})
    assert cluster.status()["phase"] == phase
    assert len(cluster.records(kinds.PROCESS_STARTED, "init")) == 1


@pytest.mark.rule("node-semantics 21.2/probes")
def test_a_liveness_failure_looks_at_the_policy_and_not_at_rules() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        rules = [{"action": "Restart", "exitCodes": {"operator": "NotIn", "values": [0]}}]
        probe = {"exec": {"command": ["check"]}, "periodSeconds": 1, "failureThreshold": 1}
        own = container(restartPolicy="Never", restartPolicyRules=rules, livenessProbe=probe)
        await cluster.create(pod_manifest(restartPolicy="Always", containers=[own, container("other")]))
        await cluster.wait_until(lambda: cluster.records(kinds.KILLING))
        await cluster.sleep(5)

    cluster = run_cluster(scenario, {"app": Program(execs={"check": ExecResult(exit_code=1)}), "other": RUNS})
    assert cluster.records(kinds.KILLING)[0].facts["message"] == "Container app failed liveness probe"
