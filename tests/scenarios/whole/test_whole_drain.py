"""Twenty nodes drained as `kubectl drain` does it, with all sorts of owners and budgets in the way."""

from collections import Counter
from collections.abc import Callable

from virtual_cluster import VirtualCluster, pod_manifest, run_cluster
from workloads import pods, workload

from lastcall.kube.api.errors import StatusError, is_not_found
from lastcall.kube.api.meta import Object, is_terminating, labels_of, name_of, uid_of
from lastcall.kube.api.pods.spec import get_condition, is_pod_ready
from lastcall.kube.api.resources import NODES, PODDISRUPTIONBUDGETS, PODS
from lastcall.kube.controllers.ownership import controller_of
from lastcall.kube.cri.simulated_program import Program
from lastcall.world.tasks import Tasks

NODES_IN_ALL = 24
DRAINED = [f"node-{number}" for number in range(1, 21)]
AT_ONCE = 5
"""How many people drain at a time."""

RETRY_SECONDS = 5.0
POLL_SECONDS = 1.0
GUARDED = {"web": 54, "api": 8, "db": 9}
"""Budget → how many of its Pods have to be healthy at any moment."""


def is_healthy(pod: Object) -> bool:
    return is_pod_ready(pod) and not is_terminating(pod)


class Drain:
    """`kubectl drain --ignore-daemonsets --force NODE`. Source: kubectl pkg/drain/drain.go, filters.go."""

    def __init__(self, cluster: VirtualCluster) -> None:
        self.cluster = cluster
        self.answers: Counter[tuple[str, int]] = Counter()
        """(label app, HTTP status code) of all evictions."""

    async def node(self, name: str) -> None:
        await self.cluster.patch(f"node/{name}", {"spec": {"unschedulable": True}})
        found = (await self.cluster.client.list(PODS, field_selector=f"spec.nodeName={name}")).items
        async with Tasks() as tasks:
            for pod in found:
                owner = controller_of(pod)
                if owner is None or owner["kind"] != "DaemonSet":
                    tasks.spawn(self._evict(pod), name=f"evict {name_of(pod)}")

    async def _evict(self, pod: Object) -> None:
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name_of(pod)}}
        while (code := await self._ask(pod, body)) == 429:
            await self.cluster.sleep(RETRY_SECONDS)
        while code == 201 and await self._is_there(pod):
            await self.cluster.sleep(POLL_SECONDS)

    async def _ask(self, pod: Object, body: Object) -> int:
        code = 201
        try:
            await self.cluster.client.create(PODS, body, "default", name=name_of(pod), subresource="eviction")
        except StatusError as error:
            if error.code not in (404, 429):
                raise
            code = error.code
        self.answers[labels_of(pod)["app"], code] += 1
        return code

    async def _is_there(self, pod: Object) -> bool:
        try:
            return uid_of(await self.cluster.client.get(PODS, name_of(pod), "default")) == uid_of(pod)
        except StatusError as error:
            if not is_not_found(error):
                raise
            return False


def owner(kind: str, app: str, replicas: int | None, **spec: object) -> Object:
    container = {"name": "app", "image": f"{app}:1"}
    if app == "broken":
        container["readinessProbe"] = {"exec": {"command": ["false"]}}
    pods = {"metadata": {"labels": {"app": app}}, "spec": {"containers": [container]}}
    counted = {} if replicas is None else {"replicas": replicas}
    made = workload(kind, name=app, pods=pods, **counted, **spec)
    made["spec"]["selector"] = {"matchLabels": {"app": app}}
    return made


def budget(app: str, **spec: object) -> Object:
    spec = {"selector": {"matchLabels": {"app": app}}, **spec}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": app}, "spec": spec}


MANIFESTS = [
    owner("Deployment", "web", 60), budget("web", maxUnavailable="10%"),
    owner("Deployment", "api", 10), budget("api", minAvailable=8),
    owner("StatefulSet", "db", 10, serviceName="db"), budget("db", maxUnavailable=1),
    owner("Deployment", "lone", 1), budget("lone", minAvailable=1),
    owner("Deployment", "broken", 4), budget("broken", minAvailable=4, unhealthyPodEvictionPolicy="AlwaysAllow"),
    owner("ReplicaSet", "free", 10),
    owner("DaemonSet", "agent", None),
    *[pod_manifest(f"bare-{number}", labels={"app": "bare"}) for number in range(5)],
    budget("bare", minAvailable=2),
]  # fmt: skip
WANTED = {"web": 60, "api": 10, "db": 10, "lone": 1, "broken": 4, "free": 10, "agent": NODES_IN_ALL, "bare": 5}


async def count(cluster: VirtualCluster, holds: Callable[[Object], bool] = lambda pod: True) -> Counter[str]:
    return Counter(labels_of(pod)["app"] for pod in await pods(cluster) if holds(pod) and not is_terminating(pod))


def fewest_healthy(cluster: VirtualCluster, app: str, since: int) -> int:
    """After any write from the revision `since` on."""
    healthy: dict[str, bool] = {}
    fewest = 10**9
    for seen in cluster.history[PODS]:
        if labels_of(seen.object)["app"] == app:
            healthy[uid_of(seen.object)] = seen.type != "DELETED" and is_healthy(seen.object)
            if int(seen.object["metadata"]["resourceVersion"]) >= since:
                fewest = min(fewest, sum(healthy.values()))
    return fewest


def test_twenty_drained_nodes_violate_no_budget_and_everything_comes_up_elsewhere():
    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create(*MANIFESTS)
        healthy = {**WANTED, "broken": 0}

        async def up() -> bool:
            return await count(cluster, is_healthy) == +Counter(healthy)

        await cluster.wait_until_async(up)
        await cluster.sleep(5)
        since = int((await cluster.client.list(PODS)).resource_version)
        evicted = {uid_of(pod): pod for pod in await pods(cluster) if pod["spec"]["nodeName"] in DRAINED}
        on_drained = Counter(labels_of(pod)["app"] for pod in evicted.values())
        drain = Drain(cluster)
        waiting = list(DRAINED)

        async def person() -> None:
            while waiting:
                await drain.node(waiting.pop(0))

        async with Tasks() as tasks:
            for number in range(AT_ONCE):
                tasks.spawn(person(), name=f"person {number}")
            await cluster.sleep(600)
            # Two Pods whose budgets allow nothing: their nodes wait for somebody to do something about it.
            stuck = [pod for pod in await pods(cluster) if labels_of(pod)["app"] in ("lone", "bare")]
            assert Counter(labels_of(pod)["app"] for pod in stuck) == {"lone": 1, "bare": 2}
            assert all(pod["spec"]["nodeName"] in DRAINED for pod in stuck)
            await cluster.patch("deployment/lone", {"spec": {"replicas": 2}})
            await cluster.delete("poddisruptionbudget/bare")
        await cluster.sleep(30)
        check_all(cluster, drain, since)
        left = await pods(cluster)
        elsewhere = {labels_of(pod)["app"] for pod in left if pod["spec"]["nodeName"] in DRAINED}
        assert elsewhere == {"agent"}
        assert await count(cluster, is_healthy) == +Counter({**healthy, "lone": 2, "bare": 0})
        assert on_drained["bare"] == 5

    def check_all(cluster: VirtualCluster, drain: Drain, since: int) -> None:
        for app, least in GUARDED.items():
            assert fewest_healthy(cluster, app, since) == least, f"{app}: the budget is used and not exceeded"
        assert fewest_healthy(cluster, "lone", since) == 1
        assert all(
            seen.at < cluster.now - 600 for seen in cluster.history[PODS] if labels_of(seen.object)["app"] == "agent"
        )
        for app in ("web", "db", "lone", "bare"):
            assert drain.answers[app, 429] > 0, app
        assert drain.answers["broken", 429] == drain.answers["free", 429] == 0
        ended = {uid_of(seen.object): seen.object for seen in cluster.history[PODS] if seen.type == "DELETED"}
        for pod in ended.values():
            condition = get_condition(pod["status"], "DisruptionTarget") or {}
            assert condition.get("reason") == "EvictionByEvictionAPI", name_of(pod)
        assert len(ended) == sum(number for (_, code), number in drain.answers.items() if code == 201)

    programs = {"": Program(drain_seconds=8), "db": Program(drain_seconds=3)}
    cluster = run_cluster(scenario, programs, nodes=NODES_IN_ALL, watched=(NODES, PODDISRUPTIONBUDGETS))
    cordoned = {seen.name for seen in cluster.history[NODES] if seen.object["spec"].get("unschedulable")}
    assert cordoned == set(DRAINED)
