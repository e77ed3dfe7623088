"""When Pods leave a node with a NoExecute taint, and what is said of it (tainteviction/taint_eviction.go), alone."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fake_api import ConnectionLost, FakeAPI, ListRecorder

from lastcall.kube.api.errors import status_failure
from lastcall.kube.api.features.gates import FeatureGates
from lastcall.kube.api.meta import Object, copy_object
from lastcall.kube.api.resources import EVENTS, NODES, PODS
from lastcall.kube.controllers.manager import run_controllers
from lastcall.kube.controllers.nodes import taint_eviction
from lastcall.world import crash_guard
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

TAINT = {"key": "gone", "effect": "NoExecute"}
OTHER = {"key": "other", "effect": "NoExecute"}
MARKING = ("TaintManagerEviction", "Marking for deletion Pod default/p")
CANCELLING = ("TaintManagerEviction", "Cancelling deletion of Pod default/p")


def node(*taints: Object) -> Object:
    return {"metadata": {"name": "n"}, "spec": {"taints": list(taints)}}


def pod(seconds: int | None = None, node_name: str = "n", **more: Any) -> Object:
    """A Pod that tolerates the taint for some seconds, or not at all."""
    own = [] if seconds is None else [{"key": "gone", "operator": "Exists", "tolerationSeconds": seconds}]
    return {
        "metadata": {"name": "p", "namespace": "default", "generation": 3, **more},
        "spec": {"nodeName": node_name, "tolerations": own},
        "status": {"phase": "Running"},
    }


class Cluster:
    def __init__(self, world: World) -> None:
        self.world, self.api, self.recorder = world, FakeAPI(world), ListRecorder(world)

    async def sleep(self, seconds: float) -> None:
        await self.world.clock.sleep(seconds)

    def is_there(self) -> bool:
        return bool(self.api.of(PODS))

    def calls(self) -> list[str]:
        return [verb for verb, plural, _ in self.api.calls if plural == "pods" and verb not in ("list", "watch")]

    def events(self) -> list[tuple[str, str]]:
        return [(each["reason"], each["message"]) for each in self.api.of(EVENTS)]


def run(test: Callable[[Cluster], Awaitable[None]], *there: tuple[Any, Object]) -> Cluster:
    """Play a test with a controller that starts where some objects are there already."""

    async def main(world: World) -> Cluster:
        cluster = Cluster(world)
        for resource, obj in there:
            cluster.api.put(resource, obj)
        async with Tasks() as tasks:
            controllers = run_controllers(
                gates=FeatureGates(),
                world=world, client=cluster.api, recorder_for=lambda _: cluster.recorder, root_ca_pem=b"ca",
                names=["taint-eviction-controller"],
            )  # fmt: skip
            tasks.spawn(controllers, name="controllers")
            await world.clock.sleep(0.5)
            await test(cluster)
            await world.clock.sleep(0.5)
            tasks.cancel()
        return cluster

    return run_virtual(main)


@pytest.mark.parametrize("order", [("node", "pod"), ("pod", "node")])
def test_a_pod_that_does_not_tolerate_a_taint_is_marked_and_deleted_at_once(order: tuple[str, str]) -> None:
    """addConditionAndDeletePod: the condition DisruptionTarget comes first."""
    things = {"node": (NODES, node(TAINT)), "pod": (PODS, pod())}

    async def test(cluster: Cluster) -> None:
        if order[0] == "pod":
            cluster.api.put(NODES, node())
        for each in order:
            cluster.api.put(*things[each])
            await cluster.sleep(0.1)
        assert not cluster.is_there()

    cluster = run(test)
    assert cluster.calls() == ["get", "patch", "delete"]
    written = [obj for _, kind, resource, obj, _ in cluster.api.history if resource == PODS and kind == "MODIFIED"]
    assert written[-1]["status"]["conditions"] == [
        {
            "type": "DisruptionTarget",
            "observedGeneration": 3,
            "status": "True",
            "lastProbeTime": None,
            "lastTransitionTime": "2030-01-01T00:00:00Z",
            "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
        }
    ]
    assert cluster.events() == [MARKING]
    (record,) = cluster.recorder.records
    assert record["facts"]["why"] == "evicted from n by its taint gone:NoExecute, which this Pod does not tolerate"
    assert (record["facts"]["node"], record["facts"]["taint"]) == ("n", "gone:NoExecute")
    assert record["facts"]["toleratedSeconds"] == 0


def test_what_was_there_before_the_controller_is_looked_at_when_it_starts() -> None:
    async def test(cluster: Cluster) -> None:
        assert not cluster.is_there()

    run(test, (PODS, pod()), (NODES, node(TAINT)))


def test_a_pod_stays_for_as_long_as_it_tolerates_the_taint() -> None:
    async def test(cluster: Cluster) -> None:
        cluster.api.put(NODES, node())
        cluster.api.put(PODS, pod(30))
        await cluster.sleep(10)
        cluster.api.put(NODES, node(TAINT))
        await cluster.sleep(29.9)
        assert cluster.is_there() and cluster.events() == []
        await cluster.sleep(0.2)
        assert not cluster.is_there()

    (record,) = run(test).recorder.records
    assert record["facts"]["why"] == "evicted from n by its taint gone:NoExecute, tolerated for 30 s"


def test_a_second_taint_does_not_begin_the_wait_anew() -> None:
    """processPodOnNode: a scheduled eviction keeps its createdAt."""

    async def test(cluster: Cluster) -> None:
        both = pod(30)
        both["spec"]["tolerations"].append({"key": "other", "operator": "Exists", "tolerationSeconds": 60})
        cluster.api.put(NODES, node(TAINT))
        cluster.api.put(PODS, both)
        await cluster.sleep(20)
        cluster.api.put(NODES, node(TAINT, OTHER))
        await cluster.sleep(9.9)
        assert cluster.is_there()
        await cluster.sleep(0.2)
        assert not cluster.is_there()

    run(test)


def test_a_second_taint_that_is_not_tolerated_ends_the_wait() -> None:
    async def test(cluster: Cluster) -> None:
        cluster.api.put(NODES, node(TAINT))
        cluster.api.put(PODS, pod(30))
        await cluster.sleep(20)
        cluster.api.put(NODES, node(TAINT, OTHER))
        await cluster.sleep(0.1)
        assert not cluster.is_there()

    assert run(test).events() == [CANCELLING, MARKING]


@pytest.mark.parametrize("how", ["the taint goes", "the Pod tolerates it for ever", "the Pod ends"])
def test_a_deletion_that_waits_is_cancelled_and_said(how: str) -> None:
    async def test(cluster: Cluster) -> None:
        cluster.api.put(NODES, node(TAINT))
        cluster.api.put(PODS, pod(30))
        await cluster.sleep(10)
        if how == "the taint goes":
            cluster.api.put(NODES, node())
        elif how == "the Pod ends":
            cluster.api.remove(PODS, "p", "default")
        else:
            forever = pod()
            forever["spec"]["tolerations"] = [{"operator": "Exists"}]
            cluster.api.put(PODS, forever)
        await cluster.sleep(100)
        assert cluster.is_there() is (how != "the Pod ends")

    cluster = run(test)
    assert (cluster.events(), cluster.calls()) == ([CANCELLING], [])


def test_a_taint_that_comes_back_begins_a_new_wait() -> None:
    async def test(cluster: Cluster) -> None:
        cluster.api.put(NODES, node(TAINT))
        cluster.api.put(PODS, pod(30))
        await cluster.sleep(20)
        cluster.api.put(NODES, node())
        await cluster.sleep(1)
        cluster.api.put(NODES, node(TAINT))
        await cluster.sleep(29.9)
        assert cluster.is_there(), "the first wait is over since 20 s, and means nothing"
        await cluster.sleep(0.2)
        assert not cluster.is_there()

    run(test)


def test_a_pod_without_a_node_and_one_of_another_node_stay() -> None:
    async def test(cluster: Cluster) -> None:
        cluster.api.put(NODES, node(TAINT))
        cluster.api.put(PODS, pod(node_name=""))
        cluster.api.put(PODS, pod(node_name="unknown", name="q"))
        await cluster.sleep(1)
        assert len(cluster.api.of(PODS)) == 2
        cluster.api.put(PODS, pod())
        await cluster.sleep(1)
        assert [each["metadata"]["name"] for each in cluster.api.of(PODS)] == ["q"], "it was bound"

    run(test)


def test_a_pod_that_took_the_name_is_not_deleted_for_the_one_before() -> None:
    async def test(cluster: Cluster) -> None:
        cluster.api.put(NODES, node(TAINT))
        cluster.api.latency = 1.0
        cluster.api.put(PODS, pod(uid="first"))
        await cluster.sleep(0.5)
        cluster.api.remove(PODS, "p", "default")
        cluster.api.put(PODS, pod(uid="second", node_name="elsewhere"))
        await cluster.sleep(10)
        assert cluster.is_there()

    assert run(test).calls() == ["get"]


def test_a_pod_that_is_gone_already_is_let_go() -> None:
    async def test(cluster: Cluster) -> None:
        cluster.api.fail_next("get", "pods", status_failure(404, "NotFound", "gone"))
        cluster.api.put(NODES, node(TAINT))
        cluster.api.put(PODS, pod())
        await cluster.sleep(10)

    assert run(test).calls() == ["get"]


@pytest.mark.parametrize("error", [status_failure(500, "InternalError", "boom"), ConnectionLost("gone")])
@pytest.mark.parametrize("times", [4, 5])
def test_a_deletion_that_fails_is_tried_five_times_and_again_after_a_second(error: Exception, times: int) -> None:
    """timed_workers.go, deletePodHandler: retries, and the 10 ms between them."""

    async def test(cluster: Cluster) -> None:
        cluster.api.fail_next("get", "pods", error, times=times)
        cluster.api.put(NODES, node(TAINT))
        cluster.api.put(PODS, pod())
        await cluster.sleep(0.2)
        assert cluster.calls()[:5] == ["get"] * 5
        assert cluster.is_there() is (times == 5)
        await cluster.sleep(1)
        assert not cluster.is_there()

    cluster = run(test)
    assert len(cluster.calls()) == times + 3


def test_a_deletion_that_failed_and_waits_for_its_next_try_is_cancelled_and_said() -> None:
    async def test(cluster: Cluster) -> None:
        cluster.api.fail_next("get", "pods", ConnectionLost("lost"), times=5)
        cluster.api.put(NODES, node(TAINT))
        cluster.api.put(PODS, pod())
        await cluster.sleep(0.5)
        cluster.api.put(NODES, node())
        await cluster.sleep(5)
        assert cluster.is_there() and cluster.events()[-1] == CANCELLING

    run(test)


def test_the_condition_is_not_written_again_if_the_pod_has_it() -> None:
    async def test(cluster: Cluster) -> None:
        cluster.api.fail_next("delete", "pods", ConnectionLost("gone"))
        cluster.api.put(NODES, node(TAINT))
        cluster.api.put(PODS, pod())

    assert run(test).calls() == ["get", "patch", "delete", "get", "delete"]


def test_a_taint_that_is_gone_when_the_pod_is_deleted_is_not_named() -> None:
    async def test(cluster: Cluster) -> None:
        cluster.api.put(NODES, node(TAINT))
        cluster.api.latency = 1.0
        cluster.api.put(PODS, pod())
        await cluster.sleep(1.5)
        cluster.api.put(NODES, node())
        await cluster.sleep(5)

    (record,) = run(test).recorder.records
    assert record["facts"]["why"] == "evicted from n: it has a NoExecute taint"
    assert "taint" not in record["facts"]


def test_a_bug_in_one_deletion_is_a_fault_and_the_pod_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = taint_eviction.why_evicted
    failures = [ValueError("a bug")]

    def fails(*given: Any) -> Any:
        if failures:
            raise failures.pop()
        return rule(*given)

    monkeypatch.setattr(taint_eviction, "why_evicted", fails)

    async def test(cluster: Cluster) -> None:
        cluster.api.put(NODES, node(TAINT))
        cluster.api.put(PODS, copy_object(pod()))
        await cluster.sleep(1)
        assert not cluster.is_there()

    with crash_guard.installed() as faults:
        cluster = run(test)
    assert [(each.component, each.key) for each in faults.all()] == [("taint-eviction-controller", "default/p")]
    assert [reason for reason, _ in cluster.events() if reason != "TaintManagerEviction"] != []
