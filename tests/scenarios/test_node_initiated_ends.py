"""Ends that the node decides: one test for each row of node-semantics 18, in whole clusters in virtual time."""

from typing import Any

import pytest
from virtual_cluster import VirtualCluster, container, pod_manifest, pre_stop, run_cluster

from lastcall.api.resources import EVENTS, NODES
from lastcall.cri.simulated_program import ExecResult, Program
from lastcall.node.shutdown import ShutdownGracePeriod, grace_periods
from lastcall.timeline import kinds

IGNORES = Program(on_term="ignore", execs={"hang": ExecResult(seconds=3600)})
SHUTDOWN = "Pod was terminated in response to imminent node shutdown."


def near(value: float) -> Any:
    return pytest.approx(value, abs=0.1)


def disruption(cluster: VirtualCluster, pod: str = "p") -> tuple[str, str] | None:
    conditions = cluster.status(pod).get("conditions") or []
    return next((((c["reason"]), c["message"]) for c in conditions if c["type"] == "DisruptionTarget"), None)


def ended_as(cluster: VirtualCluster, pod: str = "p") -> tuple[str | None, ...]:
    status = cluster.status(pod)
    return status.get("phase"), status.get("reason"), status.get("message")


def node_events(cluster: VirtualCluster) -> list[str]:
    found = {}
    for seen in cluster.history[EVENTS]:
        if seen.object["involvedObject"]["kind"] == "Node" and seen.object["source"].get("component") == "kubelet":
            found[seen.name] = f"{seen.object['type']} {seen.object['reason']}: {seen.object['message']}"
    return list(found.values())


def decisions(cluster: VirtualCluster) -> list[str]:
    return [record.facts["why"] for record in cluster.records(kinds.DELETION_DECIDED)]


async def node_condition(cluster: VirtualCluster, type_: str) -> tuple[str, str]:
    node = await cluster.client.get(NODES, "node-1")
    found = next(c for c in node["status"]["conditions"] if c["type"] == type_)
    return found["status"], found["message"]


def resources(cpu: str, limit: bool = False) -> Any:
    return {"requests": {"cpu": cpu}} | ({"limits": {"cpu": cpu, "memory": "1Mi"}} if limit else {})


# -- graceful node shutdown -------------------------------------------------------------------------------------------


def test_a_node_shutdown_ends_pods_with_their_own_grace_and_says_so_at_the_end() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(terminationGracePeriodSeconds=5))
        await cluster.wait_ready()
        await cluster.kubelet.shutdown.shut_down(grace_periods(30, 10))
        await cluster.sleep(2)
        assert await node_condition(cluster, "Ready") == ("False", "node is shutting down")

    cluster = run_cluster(scenario, {"app": IGNORES})
    assert cluster.signals() == [(near(0), "SIGTERM"), (near(5), "SIGKILL")]
    assert ended_as(cluster) == ("Failed", "Terminated", SHUTDOWN)
    assert disruption(cluster) == ("TerminationByKubelet", SHUTDOWN)
    assert node_events(cluster) == ["Normal Shutdown: Shutdown manager detected shutdown event"]
    assert ["shutting down" in why for why in decisions(cluster)] == [True]
    assert not cluster.is_gone()
    # Nobody hears that it has ended before it has.
    failed = next(seen for seen in cluster.versions() if seen.object["status"].get("phase") == "Failed")
    assert failed.at >= cluster.at(kinds.PROCESS_EXITED)


def test_a_pod_that_ends_with_0_on_shutdown_has_succeeded_and_keeps_the_condition() -> None:
    """The exit codes decide the phase (kubelet_pods.go:getPhase); the reason goes with the phase it was set with."""

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest())
        await cluster.wait_ready()
        await cluster.kubelet.shutdown.shut_down()

    cluster = run_cluster(scenario, {"app": Program()})
    assert ended_as(cluster) == ("Succeeded", None, None)
    assert disruption(cluster) == ("TerminationByKubelet", SHUTDOWN)


def test_a_group_cuts_the_grace_of_its_pods_and_critical_pods_end_after_the_others() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(
            pod_manifest("plain", terminationGracePeriodSeconds=60),
            pod_manifest("critical", terminationGracePeriodSeconds=60, priorityClassName="system-node-critical"),
        )
        await cluster.wait_ready("plain", "critical")
        await cluster.kubelet.shutdown.shut_down(grace_periods(20, 7))
        await cluster.sleep(3)

    cluster = run_cluster(scenario, {"app": IGNORES})
    assert [at for at, _ in cluster.signals(pod="plain")] == [near(0), near(13)]
    assert [at for at, _ in cluster.signals(pod="critical")] == [near(0), near(7)]
    assert cluster.at(kinds.KILLING, pod="critical") >= cluster.at(kinds.KILLING, pod="plain") + 13 - 0.1


def test_groups_by_priority_end_from_the_least_and_empty_ones_take_no_time() -> None:
    periods = [ShutdownGracePeriod(0, 5), ShutdownGracePeriod(100, 600), ShutdownGracePeriod(2_000_000_000, 5)]

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest("a"), pod_manifest("b", priorityClassName="system-cluster-critical"))
        await cluster.wait_ready("a", "b")
        began = cluster.now
        await cluster.kubelet.shutdown.shut_down(periods)
        assert cluster.now - began < 5

    cluster = run_cluster(scenario, {"app": Program(drain_seconds=1)})
    assert cluster.at(kinds.KILLING, pod="b") > cluster.at(kinds.PROCESS_EXITED, pod="a")


def test_a_group_that_takes_too_long_is_left_behind() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest("slow"), pod_manifest("next", priorityClassName="system-node-critical"))
        await cluster.wait_ready("slow", "next")
        cluster.volumes.unmount_seconds = 60
        said: list[str] = []
        await cluster.kubelet.shutdown.shut_down(grace_periods(8, 4), said.append)
        assert ["over" in text for text in said] == [False, True, False, True]

    cluster = run_cluster(scenario, {"app": Program()})
    assert cluster.at(kinds.KILLING, pod="next") - cluster.at(kinds.KILLING, pod="slow") == near(4)


def test_a_node_that_shuts_down_takes_no_pods_until_it_is_cancelled() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest("before"))
        await cluster.wait_ready("before")
        await cluster.kubelet.shutdown.shut_down()
        await cluster.create(pod_manifest("late", nodeName="node-1"))
        await cluster.wait_phase("late", "Failed")
        cluster.kubelet.shutdown.cancel()
        await cluster.create(pod_manifest("after", nodeName="node-1"))
        await cluster.wait_ready("after")
        await cluster.sleep(2)
        assert (await node_condition(cluster, "Ready"))[0] == "True"

    cluster = run_cluster(scenario, {"app": Program()})
    assert ended_as(cluster, "late") == (
        "Failed", "NodeShutdown", "Pod was rejected: Pod was rejected as the node is shutting down.",
    )  # fmt: skip
    assert cluster.events("late")[-1] == "Warning NodeShutdown: Pod was rejected as the node is shutting down."
    assert cluster.status("before")["phase"] == "Succeeded"  # not revived
    assert node_events(cluster)[-1] == "Normal Shutdown: Shutdown manager detected shutdown cancellation"


# -- preemption by a critical Pod -------------------------------------------------------------------------------------


def test_a_critical_pod_that_does_not_fit_ends_another_which_keeps_its_grace() -> None:
    text = "Preempted in order to admit critical pod"

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(
            pod_manifest(
                "victim", containers=[container(resources=resources("1500m"))], terminationGracePeriodSeconds=6
            )
        )
        await cluster.wait_ready("victim")
        await cluster.create(
            pod_manifest(
                "critical",
                nodeName="node-1",
                priorityClassName="system-node-critical",
                containers=[container(resources=resources("1"))],
            )
        )
        await cluster.sleep(4)
        # What happens to it meanwhile does not start it.
        await cluster.patch("pod/critical", {"metadata": {"labels": {"new": "label"}}})
        await cluster.wait_ready("critical")

    cluster = run_cluster(scenario, {"app": IGNORES})
    assert cluster.signals(pod="victim") == [(near(0), "SIGTERM"), (near(6), "SIGKILL")]
    assert ended_as(cluster, "victim") == ("Failed", "Preempting", text)
    assert f"Warning Preempting: {text}" in cluster.events("victim")
    condition = "Pod was preempted by Kubelet to accommodate a critical pod."
    assert disruption(cluster, "victim") == ("TerminationByKubelet", condition)
    assert cluster.at(kinds.PROCESS_STARTED, pod="critical") >= cluster.at(kinds.PROCESS_EXITED, pod="victim")
    (decided,) = cluster.records(kinds.DELETION_DECIDED)
    assert decided.facts["preemptor"] == cluster.uid("critical") and decided.pod_uid == cluster.uid("victim")


def test_victims_are_as_few_and_as_humble_as_can_be() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(
            pod_manifest("guaranteed", containers=[container(resources=resources("500m", limit=True))]),
            pod_manifest("small", containers=[container(resources=resources("300m"))]),
            pod_manifest("enough", containers=[container(resources=resources("700m"))]),
            pod_manifest("best-effort"),
        )
        await cluster.wait_ready("guaranteed", "small", "enough", "best-effort")
        await cluster.create(
            pod_manifest(
                "critical",
                nodeName="node-1",
                priorityClassName="system-cluster-critical",
                containers=[container(resources=resources("1100m"))],
            )
        )
        await cluster.wait_ready("critical")

    cluster = run_cluster(scenario, {"app": Program()})
    (decided,) = cluster.records(kinds.DELETION_DECIDED)
    assert decided.pod_uid == cluster.uid("enough")


def test_a_critical_pod_that_no_preemption_makes_room_for_is_rejected() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(
            pod_manifest(
                "critical",
                nodeName="node-1",
                priorityClassName="system-node-critical",
                containers=[container(resources=resources("3"))],
            )
        )
        await cluster.wait_phase("critical", "Failed")

    cluster = run_cluster(scenario, {"app": Program()})
    assert ended_as(cluster, "critical")[1:] == (
        "UnexpectedAdmissionError",
        "Pod was rejected: Unexpected error while attempting to recover from admission failure: preemption: error "
        "finding a set of pods to preempt: no set of running pods found to reclaim resources: [(res: cpu, q: 1000), ]",
    )


# -- what the kubelet's other ends are --------------------------------------------------------------------------------


def test_a_pod_past_its_deadline_gets_its_whole_grace_period_and_the_hook_too() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(
            pod_manifest(
                activeDeadlineSeconds=5,
                terminationGracePeriodSeconds=10,
                containers=[container(**pre_stop(exec=["hang"]))],
            )
        )
        await cluster.wait_phase("p", "Failed")
        await cluster.sleep(2)

    cluster = run_cluster(scenario, {"app": IGNORES})
    message = "Pod was active on the node longer than the specified deadline"
    assert cluster.signals() == [(near(10), "SIGTERM"), (near(12), "SIGKILL")]
    assert ended_as(cluster) == ("Failed", "DeadlineExceeded", message)
    assert any(line.startswith(f"Normal DeadlineExceeded: {message}") for line in cluster.events())
    assert disruption(cluster) is None


def test_a_pod_that_does_not_fit_is_rejected_without_a_worker() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(nodeName="node-1", containers=[container(resources=resources("3"))]))
        await cluster.wait_phase("p", "Failed")

    cluster = run_cluster(scenario, {"app": Program()})
    text = "Node didn't have enough resource: cpu, requested: 3000, used: 0, capacity: 2000"
    assert ended_as(cluster) == ("Failed", "OutOfcpu", f"Pod was rejected: {text}")
    assert cluster.events() == [f"Warning OutOfcpu: {text}"]
    assert cluster.records(kinds.TERMINATION_OBSERVED) == [] and disruption(cluster) is None
