"""Several nodes lost at once, by zones: what is tainted when, what is evicted, what comes back.

Zones of five nodes; node-1 to node-5 are zone a, and so on.
"""

from collections.abc import Iterable
from itertools import pairwise

from virtual_cluster import VirtualCluster, run_cluster
from workloads import pods, template, workload

from lastcall.kube.api.meta import Object, is_terminating, labels_of, name_of, uid_of
from lastcall.kube.api.pods.spec import get_condition, is_pod_ready
from lastcall.kube.api.resources import NODES
from lastcall.kube.cri.simulated_program import Program

PER_ZONE = 5
ZONE = "topology.kubernetes.io/zone"
POD_UID = "io.kubernetes.pod.uid"
TAINT = "node.kubernetes.io/unreachable"
NOTICED = 61.0
"""Seconds until a lost node is noticed at the latest."""
TOLERATED = 300.0


def zone(name: str) -> str:
    return "abcd"[(int(name.partition("-")[2]) - 1) // PER_ZONE]


def nodes_of(letter: str) -> list[str]:
    first = "abcd".index(letter) * PER_ZONE
    return [f"node-{number}" for number in range(first + 1, first + PER_ZONE + 1)]


def run(scenario, zones: int = 4) -> None:
    run_cluster(
        scenario, {"app": Program(drain_seconds=2)}, nodes=zones * PER_ZONE, watched=(NODES,),
        node_labels=lambda name: {ZONE: zone(name)},
    )  # fmt: skip


SPREAD = {"topologySpreadConstraints": [
    {"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
     "labelSelector": {"matchLabels": {"app": "web"}}}
]}  # fmt: skip


async def fill(cluster: VirtualCluster, replicas: int = 40) -> None:
    """Pods of a Deployment on all nodes, of a StatefulSet, and of a DaemonSet."""

    def named(kind: str, name: str, **spec: object) -> Object:
        made = workload(kind, name=name, **spec)
        made["spec"]["template"] = {"metadata": {"labels": {"app": name}}, "spec": template()["spec"]}
        made["spec"]["selector"] = {"matchLabels": {"app": name}}
        return made

    await cluster.create(
        workload("Deployment", replicas=replicas, pods=template(**SPREAD)),
        named("StatefulSet", "db", serviceName="db", replicas=8, podManagementPolicy="Parallel"),
        named("DaemonSet", "agent"),
    )
    await cluster.wait_until_async(lambda: healthy(cluster, web=replicas, db=8, agent=len(cluster.nodes)))
    assert {pod["spec"]["nodeName"] for pod in await pods(cluster) if labels_of(pod)["app"] == "web"} == set(
        cluster.nodes
    )


async def healthy(cluster: VirtualCluster, **wanted: int) -> bool:
    found = dict.fromkeys(wanted, 0)
    for pod in await pods(cluster):
        app = labels_of(pod)["app"]
        if app in found and is_pod_ready(pod) and not is_terminating(pod):
            found[app] += 1
    return found == wanted


async def lose(cluster: VirtualCluster, *names: str) -> float:
    at = cluster.now
    for name in names:
        await cluster.kill_kubelet(name)
    return at


def tainted_at(cluster: VirtualCluster, effect: str) -> dict[str, float]:
    """When each node got the taint first."""
    found: dict[str, float] = {}
    for seen in cluster.history[NODES]:
        taints = seen.object["spec"].get("taints") or []
        if any((taint["key"], taint["effect"]) == (TAINT, effect) for taint in taints):
            found.setdefault(seen.name, seen.at)
    return found


def on(cluster: VirtualCluster, names: list[str]) -> list[Object]:
    """The Pods bound to these nodes, as last seen."""
    found = [seen.object for seen in cluster.last_of_each_pod()]
    return [pod for pod in found if pod["spec"].get("nodeName") in names]


def app_of(pod: Object) -> str:
    return labels_of(pod)["app"]


async def taints(cluster: VirtualCluster) -> dict[str, list[str]]:
    found = {}
    for name in cluster.nodes:
        node = await cluster.client.get(NODES, name)
        found[name] = sorted(taint["effect"] for taint in node["spec"].get("taints") or [])
    return {name: effects for name, effects in found.items() if effects}


def each_of(names: Iterable[str], *effects: str) -> dict[str, list[str]]:
    return {name: list(effects) for name in names}


def test_a_zone_that_is_lost_is_evicted_one_node_in_ten_seconds_and_its_pods_come_up_in_the_others():
    lost = nodes_of("b")

    async def scenario(cluster: VirtualCluster) -> None:
        await fill(cluster)
        before = {uid_of(pod): pod for pod in on(cluster, lost)}
        at = await lose(cluster, *lost)
        await cluster.sleep(NOTICED + 0.5)
        assert set(tainted_at(cluster, "NoSchedule")) == set(lost)
        assert all(not is_pod_ready(pod) for pod in on(cluster, lost))
        await cluster.sleep(50)
        moments = sorted(tainted_at(cluster, "NoExecute").values())
        assert len(moments) == len(lost)
        # A lost zone keeps the ordinary rate: 0.1 nodes per second.
        gaps = [later - earlier for earlier, later in pairwise(moments)]
        assert all(9.9 <= gap <= 15.1 for gap in gaps), gaps
        assert moments[0] - at <= NOTICED + 5
        await cluster.wait_until_async(lambda: healthy(cluster, web=40), limit=TOLERATED + 120)
        for pod in on(cluster, lost):
            gone = app_of(pod) != "agent"
            assert is_terminating(pod) == gone, name_of(pod)
            reason = (get_condition(pod["status"], "DisruptionTarget") or {}).get("reason")
            assert reason == ("DeletionByTaintManager" if gone else None)
        assert {uid_of(pod) for pod in on(cluster, lost)} == set(before), "nobody can stop what runs there"
        # Of a StatefulSet nothing is made anew while the old object is there.
        left = sum(app_of(pod) == "db" for pod in before.values())
        assert await healthy(cluster, db=8 - left, agent=15)
        for name in lost:
            cluster.start_kubelet(name)
        await cluster.wait_until_async(lambda: healthy(cluster, web=40, db=8, agent=20))
        await cluster.sleep(10)
        assert await taints(cluster) == {}
        evicted = {uid for uid, pod in before.items() if app_of(pod) != "agent"}
        assert not evicted & {uid_of(pod) for pod in await pods(cluster)}

    run(scenario)


def test_a_zone_of_which_most_is_lost_is_not_evicted_until_enough_of_it_is_back():
    lost = nodes_of("c")[:3]

    async def scenario(cluster: VirtualCluster) -> None:
        await fill(cluster, replicas=15)
        await lose(cluster, *lost)
        await cluster.sleep(NOTICED + TOLERATED + 300)
        # Three of five: that is rather the zone's network. A small zone is left alone.
        assert await taints(cluster) == each_of(lost, "NoSchedule")
        assert not any(is_terminating(pod) for pod in on(cluster, lost))
        assert all(not is_pod_ready(pod) for pod in on(cluster, lost))
        cluster.start_kubelet(lost[0])
        await cluster.sleep(30)
        assert await taints(cluster) == each_of(lost[1:], "NoExecute", "NoSchedule")
        assert all(is_pod_ready(pod) for pod in on(cluster, lost[:1]))
        await cluster.wait_until_async(lambda: healthy(cluster, web=15), limit=TOLERATED + 60)
        assert not any(is_terminating(pod) for pod in on(cluster, lost[:1]))

    run(scenario, zones=3)


def test_two_zones_lost_in_part_do_not_hold_up_each_other():
    """Two of five are no disruption: each zone has its own queue, and its own rate."""
    lost = [*nodes_of("a")[:2], *nodes_of("c")[:2]]

    async def scenario(cluster: VirtualCluster) -> None:
        await fill(cluster, replicas=15)
        await lose(cluster, *lost)
        await cluster.sleep(NOTICED + 20)
        moments = tainted_at(cluster, "NoExecute")
        assert set(moments) == set(lost)
        for letter in "ac":
            first, second = sorted(at for name, at in moments.items() if zone(name) == letter)
            assert 9.9 <= second - first <= 15.1
        assert abs(min(moments[name] for name in lost[:2]) - min(moments[name] for name in lost[2:])) <= 5.1
        await cluster.wait_until_async(lambda: healthy(cluster, web=15), limit=TOLERATED + 60)

    run(scenario, zones=3)


def test_when_all_zones_are_lost_nothing_is_evicted_and_everything_goes_on_when_they_are_back():
    async def scenario(cluster: VirtualCluster) -> None:
        await fill(cluster, replicas=20)
        before = {uid_of(pod) for pod in await pods(cluster)}
        await lose(cluster, *cluster.nodes)
        await cluster.sleep(1200)
        assert await taints(cluster) == each_of(cluster.nodes, "NoSchedule")
        assert not any(is_terminating(pod) for pod in await pods(cluster))
        for name in cluster.nodes:
            cluster.start_kubelet(name)
        await cluster.wait_until_async(lambda: healthy(cluster, web=20, db=8, agent=10))
        await cluster.sleep(TOLERATED + 60)
        assert {uid_of(pod) for pod in await pods(cluster)} == before
        assert await taints(cluster) == {}

    run(scenario, zones=2)


def test_nodes_that_are_said_to_be_out_of_service_let_their_pods_go_and_stateful_sets_go_on():
    lost = nodes_of("a")[:2]

    async def scenario(cluster: VirtualCluster) -> None:
        await fill(cluster)
        before = {uid_of(pod): pod for pod in on(cluster, lost)}
        assert any(app_of(pod) == "db" for pod in before.values())
        await lose(cluster, *lost)
        await cluster.sleep(NOTICED + 30)
        taint = {"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown", "effect": "NoExecute"}
        for name in lost:
            kept = (await cluster.client.get(NODES, name))["spec"]["taints"]
            await cluster.patch(f"node/{name}", {"spec": {"taints": [*kept, taint]}})
        # Long before the 300 s are over: nobody tolerates this taint, and who is being deleted there is removed.
        await cluster.wait_until_async(lambda: healthy(cluster, web=40, db=8), limit=60)
        left = [pod for pod in on(cluster, lost) if app_of(pod) != "agent"]
        assert left == []
        for name in lost:
            kept = (await cluster.client.get(NODES, name))["spec"]["taints"]
            others = [each for each in kept if each["key"] != taint["key"]]
            await cluster.patch(f"node/{name}", {"spec": {"taints": others}})
            cluster.start_kubelet(name)
        await cluster.wait_until_async(lambda: healthy(cluster, web=40, db=8, agent=20))
        await cluster.sleep(30)
        assert await taints(cluster) == {}
        # What was left running there was stopped when the node came back.
        running = {status.labels[POD_UID] for name in lost for status in await containers(cluster, name)}
        assert running <= {uid_of(pod) for pod in await pods(cluster)}

    async def containers(cluster: VirtualCluster, name: str) -> list:
        found = await cluster.nodes[name].runtime.list_containers()
        return [each for each in found if each.state.name == "CONTAINER_RUNNING"]

    run(scenario)
