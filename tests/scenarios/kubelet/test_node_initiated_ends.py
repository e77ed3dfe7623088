"""Ends that the node decides: one test for each row of node-semantics 18, in whole clusters in virtual time."""

from typing import Any

import pytest
from node_stats import MI, Stats, disruption, ended_as, node_events, using
from virtual_cluster import VirtualCluster, container, pod_manifest, pre_stop, run_cluster

from lastcall.kube.api.resources import NODES
from lastcall.kube.cri.simulated_program import ExecResult, Program
from lastcall.kube.node.eviction.decide import (
    EvictionConfig,
    PodUsage,
    parse_thresholds,
)
from lastcall.kube.node.shutdown.decide import ShutdownGracePeriod, grace_periods
from lastcall.records import kinds

IGNORES = Program(on_term="ignore", execs={"hang": ExecResult(seconds=3600)})
SHUTDOWN = "Pod was terminated in response to imminent node shutdown."


def near(value: float) -> Any:
    return pytest.approx(value, abs=0.1)


def decisions(cluster: VirtualCluster) -> list[str]:
    return [record.facts["why"] for record in cluster.records(kinds.DELETION_DECIDED)]


async def node_condition(cluster: VirtualCluster, type_: str) -> tuple[str, str]:
    node = await cluster.client.get(NODES, "node-1")
    found = next(c for c in node["status"]["conditions"] if c["type"] == type_)
    return found["status"], found["message"]


def resources(cpu: str, limit: bool = False) -> Any:
    return {"requests": {"cpu": cpu}} | ({"limits": {"cpu": cpu, "memory": "1Mi"}} if limit else {})


# -- graceful node shutdown -------------------------------------------------------------------------------------------


@pytest.mark.rule("node-semantics 18/6, 18/not-ready, 18/stays, 5.1/override")
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
    status = cluster.versions("p")[-1].object["status"]
    assert {each["observedGeneration"] for each in status["conditions"]} == {status["observedGeneration"]}
    assert node_events(cluster) == [
        "Normal Shutdown: Shutdown manager detected shutdown event",
        "Normal NodeNotReady: Node node-1 status is now: NodeNotReady",
    ]
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


@pytest.mark.rule("node-semantics 18/6, 18/groups")
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


@pytest.mark.rule("node-semantics 18/groups")
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


@pytest.mark.rule("node-semantics 18/groups")
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


@pytest.mark.rule("node-semantics 18/not-ready")
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
    assert node_events(cluster)[-2:] == [
        "Normal Shutdown: Shutdown manager detected shutdown cancellation",
        "Normal NodeReady: Node node-1 status is now: NodeReady",
    ]


# -- preemption by a critical Pod -------------------------------------------------------------------------------------


@pytest.mark.rule("node-semantics 18/5")
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


@pytest.mark.rule("node-semantics 18/5")
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


@pytest.mark.rule("node-semantics 18/8")
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


# -- node-pressure eviction -------------------------------------------------------------------------------------------


def with_memory(name: str, request: str = "", **spec: Any) -> Any:
    wanted = {"resources": {"requests": {"memory": request}}} if request else {}
    return pod_manifest(name, containers=[container(**wanted)], **spec)


def run_with(stats: Stats, scenario: Any, program: Program = IGNORES, **config: Any) -> VirtualCluster:
    kubelet_config = {"eviction": EvictionConfig(**config)} if config else {}
    return run_cluster(scenario, {"app": program}, kubelet={"stats": stats}, kubelet_config=kubelet_config)


@pytest.mark.rule("node-semantics 18/1, 18/stays, 25/21, 5.1/override, 23/node")
def test_a_hard_threshold_evicts_with_a_second_of_grace_and_cuts_the_hook() -> None:
    """25.21."""
    stats = Stats()

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(containers=[container(**pre_stop(exec=["hang"]))]))
        await cluster.wait_ready()
        stats.pods["p"], stats.free["memory.available"] = using(memory=80), (50 * MI, 1000 * MI)
        await cluster.wait_phase("p", "Failed", 20)
        assert await node_condition(cluster, "MemoryPressure") == ("True", "kubelet has insufficient memory available")
        await cluster.sleep(5)

    cluster = run_with(stats, scenario)
    message = (
        "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. "
        "Container app was using 80Mi, request is 0, has larger consumption of memory. "
    )
    assert cluster.signals() == [(near(1), "SIGTERM"), (near(3), "SIGKILL")]
    assert ended_as(cluster) == ("Failed", "Evicted", message)
    assert disruption(cluster) == ("TerminationByKubelet", message)
    assert f"Warning Evicted: {message}" in cluster.events()
    assert "Warning EvictionThresholdMet: Attempting to reclaim memory" in node_events(cluster)
    assert "Normal NodeHasInsufficientMemory: Node node-1 status is now: NodeHasInsufficientMemory" in node_events(
        cluster
    )
    assert decisions(cluster) == [message.strip()] and not cluster.is_gone()
    # Phase, reason and condition come in one write, when the container has stopped.
    (failed, *_) = (seen for seen in cluster.versions() if seen.object["status"].get("phase") == "Failed")
    assert failed.at >= cluster.at(kinds.PROCESS_EXITED) and failed.object["status"]["reason"] == "Evicted"
    assert any(each["type"] == "DisruptionTarget" for each in failed.object["status"]["conditions"])


@pytest.mark.rule("node-semantics 18/2")
@pytest.mark.parametrize(("own", "bound", "grace"), [(30, 6, 6), (4, 6, 4)])
def test_a_soft_threshold_has_to_last_and_gives_the_lesser_grace(own: int, bound: int, grace: int) -> None:
    stats = Stats()

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(terminationGracePeriodSeconds=own))
        await cluster.wait_ready()
        stats.pods["p"], stats.free["memory.available"] = using(memory=1), (150 * MI, 1000 * MI)
        await cluster.sleep(25)
        stats.free["memory.available"] = (500 * MI, 1000 * MI)  # a moment of relief begins the wait anew
        await cluster.sleep(10)
        stats.free["memory.available"] = (150 * MI, 1000 * MI)
        await cluster.sleep(29)
        assert not cluster.records(kinds.DELETION_DECIDED)
        await cluster.wait_phase("p", "Failed", 40)

    thresholds = parse_thresholds(
        {"memory.available": "100Mi"}, {"memory.available": "200Mi"}, {"memory.available": 30}
    )
    cluster = run_with(stats, scenario, thresholds=thresholds, max_pod_grace_seconds=bound)
    assert cluster.signals() == [(near(0), "SIGTERM"), (near(grace), "SIGKILL")]
    assert cluster.status()["reason"] == "Evicted"


def evicted_in_order(cluster: VirtualCluster) -> list[str]:
    return [cluster.alias(record.pod_uid) for record in cluster.records(kinds.DELETION_DECIDED)]


def order_of(
    free: dict[str, tuple[int, int]], usages: dict[str, PodUsage], *manifests: Any, **config: Any
) -> list[str]:
    """Who is evicted, one after the other, as long as nothing gets better."""
    stats = Stats()

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(*manifests)
        await cluster.wait_ready(*usages)
        stats.pods, stats.free = usages, free
        await cluster.sleep(120)

    return evicted_in_order(run_with(stats, scenario, Program(), **config))


@pytest.mark.rule("node-semantics 18/ranking, 18/critical")
def test_memory_takes_who_exceeds_the_request_then_the_least_priority_then_the_farthest_above() -> None:
    order = order_of(
        {"memory.available": (1, 1000 * MI)},
        {"within": using(90), "above": using(60), "farther": using(150), "high": using(500), "critical": using(900)},
        with_memory("within", "100Mi"),
        with_memory("above", "50Mi"),
        with_memory("farther", "100Mi"),
        with_memory("high", "100Mi", priorityClassName="system-cluster-critical"),
        with_memory("critical", priorityClassName="system-node-critical"),
    )
    assert order == ["farther", "above", "within"]  # critical Pods stay


@pytest.mark.rule("node-semantics 18/ranking")
def test_processes_are_ranked_by_priority_and_number() -> None:
    order = order_of(
        {"pid.available": (5, 1000)},
        {"few": using(processes=3), "many": using(processes=300)},
        pod_manifest("few"),
        pod_manifest("many"),
        thresholds=parse_thresholds({"pid.available": "10%"}),
    )
    assert order == ["many", "few"]


@pytest.mark.rule("node-semantics 18/ranking")
@pytest.mark.parametrize(
    ("signal", "resource"),
    [
        ("nodefs.available", "ephemeral-storage"),
        ("imagefs.available", "ephemeral-storage"),
        ("nodefs.inodesFree", "inodes"),
    ],
)
def test_disk_is_ranked_by_all_that_a_pod_wrote(signal: str, resource: str) -> None:
    stats = Stats()

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest("small"), pod_manifest("big"))
        await cluster.wait_ready("small", "big")
        stats.pods = {"small": using(rootfs=3, logs=1), "big": using(rootfs=1, data=9, more=9)}
        stats.free = {signal: (1 * MI, 1000 * MI)}
        await cluster.wait_phase("big", "Failed", 20)
        stats.free = {}
        assert await node_condition(cluster, "DiskPressure") == ("True", "kubelet has disk pressure")
        await cluster.sleep(20)

    cluster = run_with(stats, scenario)
    assert evicted_in_order(cluster) == ["big"]
    assert cluster.status("big")["message"].startswith(
        f"The node was low on resource: {resource}. Threshold quantity: "
    )
    assert f"Warning EvictionThresholdMet: Attempting to reclaim {resource}" in node_events(cluster)


@pytest.mark.rule("node-semantics 18/one-at-a-time")
def test_one_pod_at_a_time_until_the_minimum_is_reclaimed() -> None:
    stats = Stats()

    async def scenario(cluster: VirtualCluster) -> None:
        names = ["a", "b", "c"]
        await cluster.create(*(pod_manifest(name) for name in names))
        await cluster.wait_ready(*names)
        stats.pods = {"a": using(30), "b": using(20), "c": using(10)}
        stats.free = {"memory.available": (90 * MI, 1000 * MI)}
        await cluster.wait_phase("a", "Succeeded", 20)
        stats.free = {"memory.available": (120 * MI, 1000 * MI)}  # above the threshold, not yet far enough
        await cluster.wait_phase("b", "Succeeded", 20)
        stats.free = {"memory.available": (160 * MI, 1000 * MI)}
        await cluster.sleep(60)

    thresholds = parse_thresholds({"memory.available": "100Mi"}, min_reclaim={"memory.available": "50Mi"})
    cluster = run_with(stats, scenario, Program(), thresholds=thresholds)
    assert evicted_in_order(cluster) == ["a", "b"]


@pytest.mark.rule("node-semantics 18/conditions")
def test_a_condition_outlives_its_cause_and_keeps_best_effort_pods_away() -> None:
    stats = Stats()

    async def scenario(cluster: VirtualCluster) -> None:
        stats.free = {"memory.available": (1, 1000 * MI)}
        await cluster.sleep(12)
        stats.free = {"memory.available": (900 * MI, 1000 * MI)}
        began = cluster.now
        await cluster.create(
            pod_manifest("best-effort", nodeName="node-1"),
            with_memory("burstable", "1Mi", nodeName="node-1"),
            pod_manifest(
                "tolerant",
                nodeName="node-1",
                tolerations=[{"key": "node.kubernetes.io/memory-pressure", "operator": "Exists"}],
            ),
        )
        await cluster.wait_phase("best-effort", "Failed")
        await cluster.wait_ready("burstable", "tolerant")
        while (await node_condition(cluster, "MemoryPressure"))[0] == "True":
            await cluster.sleep(1)
        assert 280 < cluster.now - began < 320
        await cluster.create(pod_manifest("later", nodeName="node-1"))
        await cluster.wait_ready("later")

    cluster = run_with(stats, scenario)
    assert ended_as(cluster, "best-effort") == (
        "Failed", "Evicted", "Pod was rejected: The node had condition: [MemoryPressure]. ",
    )  # fmt: skip
    assert "Normal NodeHasSufficientMemory: Node node-1 status is now: NodeHasSufficientMemory" in node_events(cluster)


@pytest.mark.rule("node-semantics 18/conditions, 18/critical")
def test_other_pressure_keeps_every_pod_away_but_critical_ones() -> None:
    stats = Stats()

    async def scenario(cluster: VirtualCluster) -> None:
        stats.free = {"nodefs.available": (1, 1000 * MI)}
        await cluster.sleep(12)
        await cluster.create(
            with_memory("burstable", "1Mi", nodeName="node-1"),
            pod_manifest("critical", nodeName="node-1", priorityClassName="system-node-critical"),
        )
        await cluster.wait_phase("burstable", "Failed")
        await cluster.wait_ready("critical")

    cluster = run_with(stats, scenario)
    assert cluster.status("burstable")["message"] == "Pod was rejected: The node had condition: [DiskPressure]. "


# -- limits on local storage ------------------------------------------------------------------------------------------


def limited(name: str, usage: PodUsage, **spec: Any) -> VirtualCluster:
    stats = Stats()

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest("p", **spec), pod_manifest("other"))
        await cluster.wait_ready("p", "other")
        await cluster.sleep(15)
        assert not cluster.records(kinds.DELETION_DECIDED)
        stats.pods[name] = usage
        await cluster.wait_phase("p", "Failed", 20)
        await cluster.sleep(15)

    cluster = run_with(stats, scenario)
    assert cluster.status("other")["phase"] == "Running"
    return cluster


def storage(limit: str) -> Any:
    return {"resources": {"limits": {"ephemeral-storage": limit}}}


@pytest.mark.rule("node-semantics 18/3, 18/4")
@pytest.mark.parametrize(
    ("usage", "spec", "message"),
    [
        (
            using(scratch=11),
            {"volumes": [{"name": "scratch", "emptyDir": {"sizeLimit": "10Mi"}}]},
            'Usage of EmptyDir volume "scratch" exceeds the limit "10Mi". ',
        ),
        (
            using(rootfs=6, logs=2, scratch=3),
            {"containers": [container(**storage("10Mi"))], "volumes": [{"name": "scratch", "emptyDir": {}}]},
            "Pod ephemeral local storage usage exceeds the total limit of containers 10Mi. ",
        ),
        (
            using(rootfs=6, logs=5),
            {"containers": [container(**storage("10Mi")), container("second", **storage("1Gi"))]},
            'Container app exceeded its local ephemeral storage limit "10Mi". ',
        ),
    ],
)
def test_a_pod_over_its_local_storage_limit_is_evicted(usage: PodUsage, spec: Any, message: str) -> None:
    cluster = limited("p", usage, **spec)
    assert ended_as(cluster) == ("Failed", "Evicted", message)
    assert f"Warning Evicted: {message}" in cluster.events() and decisions(cluster) == [message.strip()]
    assert disruption(cluster) is None  # it is the Pod's own doing
    assert cluster.signals()[-1] == (near(2), "SIGKILL")
    assert "EvictionThresholdMet" not in str(node_events(cluster))


@pytest.mark.rule("node-semantics 18/one-at-a-time")
def test_several_pods_over_their_limits_end_in_one_pass() -> None:
    stats = Stats()
    spec = {"volumes": [{"name": "scratch", "emptyDir": {"sizeLimit": "10Mi"}}]}

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest("a", **spec), pod_manifest("b", **spec))
        await cluster.wait_ready("a", "b")
        stats.pods = {"a": using(scratch=11), "b": using(scratch=12)}
        await cluster.wait_phase("b", "Succeeded", 20)

    cluster = run_with(stats, scenario, Program())
    first, second = cluster.records(kinds.DELETION_DECIDED)
    assert second.at_ns - first.at_ns < 5e9


@pytest.mark.rule("node-semantics 18/too-long, 23/exceeded")
def test_an_eviction_that_takes_too_long_is_warned_of_and_the_worker_goes_on() -> None:
    stats = Stats()
    spec = {"volumes": [{"name": "scratch", "emptyDir": {"sizeLimit": "10Mi"}}]}

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(**spec))
        await cluster.wait_ready()
        stats.pods = {"p": using(scratch=11)}
        stop = cluster.runtime.stop_container

        async def slow(container_id: str, timeout: int) -> None:
            await cluster.sleep(15)
            await stop(container_id, timeout)

        cluster.runtime.stop_container = slow  # type: ignore[method-assign]
        await cluster.wait_phase("p", "Failed", 60)

    cluster = run_with(stats, scenario)
    text = "Container runtime did not kill the pod within specified grace period."
    assert f"Warning ExceededGracePeriod: {text}" in cluster.events()
    assert cluster.status()["reason"] == "Evicted"


# -- what the kubelet's other ends are --------------------------------------------------------------------------------


@pytest.mark.rule("node-semantics 18/7, 5.2/none, 12.1/deadline")
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


@pytest.mark.rule("node-semantics 18/8")
def test_a_pod_that_does_not_fit_is_rejected_without_a_worker() -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(pod_manifest(nodeName="node-1", containers=[container(resources=resources("3"))]))
        await cluster.wait_phase("p", "Failed")

    cluster = run_cluster(scenario, {"app": Program()})
    text = "Node didn't have enough resource: cpu, requested: 3000, used: 0, capacity: 2000"
    assert ended_as(cluster) == ("Failed", "OutOfcpu", f"Pod was rejected: {text}")
    assert cluster.events() == [f"Warning OutOfcpu: {text}"]
    assert cluster.records(kinds.TERMINATION_OBSERVED) == [] and disruption(cluster) is None
