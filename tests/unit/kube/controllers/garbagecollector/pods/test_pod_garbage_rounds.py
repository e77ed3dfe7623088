"""What one round of the Pod garbage collector removes, writes and says, beside an API.

Source: pkg/controller/podgc/gc_controller.go (gcTerminated, gcTerminating, gcOrphaned, gcUnscheduledTerminating,
markFailedAndDeletePodWithCondition).
"""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fake_api import ConnectionLost, FakeAPI, ListRecorder

from lastcall.kube.api.errors import status_failure
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import NODES, PODS
from lastcall.kube.controllers.garbagecollector.pods import controller
from lastcall.kube.controllers.garbagecollector.pods.controller import PodGarbageCollector
from lastcall.kube.controllers.informers import Informers
from lastcall.world import crash_guard
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World

START = "2030-01-01T00:00:00Z"
OUT = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
RULES = "pkg/controller/podgc/gc_controller.go"
BROKEN = status_failure(500, "InternalError", "broken")

Test = Callable[[World, FakeAPI, ListRecorder], Awaitable[None]]


def run(test: Test, *pods: Object, nodes: list[Object] | None = None, threshold: int = 12500) -> None:
    """Play a test with a collector whose first round finds these Pods and nodes."""

    async def main(world: World) -> None:
        api, recorder = FakeAPI(world), ListRecorder(world)
        for each in [node()] if nodes is None else nodes:
            api.put(NODES, each)
        for each in pods:
            api.put(PODS, each)
        informers = Informers(world, api)
        collector = PodGarbageCollector(world, api, informers, recorder, threshold)
        async with Tasks() as tasks:
            informers.spawn(tasks)
            tasks.spawn(collector.run(), name="collector")
            await world.clock.sleep(0.001)
            await test(world, api, recorder)
            tasks.cancel()

    run_virtual(main)


def node(*taints: Object, ready: str = "False") -> Object:
    conditions = [{"type": "Ready", "status": ready}]
    return {"metadata": {"name": "n"}, "spec": {"taints": list(taints)}, "status": {"conditions": conditions}}


def pod(name: str = "p", *, on: str = "n", phase: str = "Running", **meta: Any) -> Object:
    known = {"name": name, "namespace": "default", "uid": f"uid of {name}", "generation": 4}
    known |= {"creationTimestamp": START, **meta}
    return {"metadata": known, "spec": {"nodeName": on} if on else {}, "status": {"phase": phase}}


GOING = {"deletionTimestamp": START, "deletionGracePeriodSeconds": 30}


def names(api: FakeAPI) -> list[str]:
    return [each["metadata"]["name"] for each in api.of(PODS)]


def calls(api: FakeAPI) -> list[tuple[str, str]]:
    return [(verb, name) for verb, plural, name in api.calls if plural == "pods" and verb not in ("list", "watch")]


def failed(api: FakeAPI) -> list[Object]:
    """What was written to Pods."""
    return [obj["status"] for _, kind, resource, obj, _ in api.history if resource == PODS and kind == "MODIFIED"]


def test_of_the_pods_that_have_ended_only_the_newest_are_kept() -> None:
    async def test(world: World, api: FakeAPI, recorder: ListRecorder) -> None:
        assert names(api) == ["newest", "running"]
        assert calls(api) == [("delete", "oldest"), ("delete", "middle")], "they have ended, so nothing marks them"
        (first, second) = recorder.records
        assert first["rule"] == f"{RULES}:gcTerminated" and first["pod_uid"] == "uid of oldest"
        assert (first["facts"]["terminated"], first["facts"]["threshold"]) == (3, 1)
        assert first["facts"]["why"] == second["facts"]["why"] == "more than 1 Pods have ended"
        assert "ownerKind" not in first["facts"]

    ends = {"oldest": "Succeeded", "newest": "Failed", "middle": "Succeeded", "running": "Running"}
    stamps = {"oldest": "2029-01-01T00:00:00Z", "newest": "2029-03-01T00:00:00Z", "middle": "2029-02-01T00:00:00Z"}
    made = [pod(name, phase=phase, creationTimestamp=stamps.get(name, START)) for name, phase in ends.items()]
    run(test, *made, threshold=1)


def test_a_pod_that_was_removed_is_counted_no_more_and_one_that_ends_is() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        assert names(api) == ["a", "b", "c"]
        api.put(PODS, pod("c", phase="Succeeded"))
        api.remove(PODS, "a", "default")
        await world.clock.sleep(20)
        assert names(api) == ["b", "c"]
        api.put(PODS, pod("d", phase="Failed"))
        await world.clock.sleep(20)
        assert names(api) == ["c", "d"]

    run(test, pod("a", phase="Failed"), pod("b", phase="Failed"), pod("c"), threshold=2)


def test_a_pod_that_is_being_deleted_and_has_no_node_fails_and_goes() -> None:
    async def test(world: World, api: FakeAPI, recorder: ListRecorder) -> None:
        assert names(api) == ["stays", "bound"] and calls(api) == [("patch", "goes"), ("delete", "goes")]
        assert failed(api) == [{"phase": "Failed", "observedGeneration": 4}]
        (record,) = recorder.records
        assert record["rule"] == f"{RULES}:gcUnscheduledTerminating"
        assert record["facts"]["why"] == "it is being deleted and has no node that would end it"
        api.put(PODS, pod("stays", on="", **GOING))
        await world.clock.sleep(19.9)
        assert names(api) == ["stays", "bound"]
        await world.clock.sleep(0.2)
        assert names(api) == ["bound"]

    run(test, pod("goes", on="", **GOING), pod("stays", on=""), pod("bound", **GOING))


def test_a_pod_that_gets_a_node_after_all_is_left_to_it() -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        api.put(PODS, pod(on="", **GOING))
        api.put(PODS, pod(on="n", **GOING))
        await world.clock.sleep(25)
        assert names(api) == ["p"] and calls(api) == []

    run(test)


@pytest.mark.parametrize(
    ("of", "left"),
    [
        (node(OUT), ["stays"]),
        (node(OUT, ready="Unknown"), ["stays"]),
        (node(OUT, ready="True"), ["goes", "stays"]),
        (node(), ["goes", "stays"]),
    ],
)
def test_pods_that_are_ending_on_a_node_out_of_service_go(of: Object, left: list[str]) -> None:
    async def test(world: World, api: FakeAPI, recorder: ListRecorder) -> None:
        assert names(api) == left
        for record in recorder.records:
            assert (record["rule"], record["facts"]["node"]) == (f"{RULES}:gcTerminating", "n")
            assert record["facts"]["why"] == "its node n is not Ready and out of service"

    run(test, pod("goes", **GOING), pod("stays"), nodes=[of])


def test_the_pods_of_a_node_that_is_gone_are_marked_and_go_when_it_has_been_missing_for_40_seconds() -> None:
    async def test(world: World, api: FakeAPI, recorder: ListRecorder) -> None:
        await world.clock.sleep(39)
        assert names(api) == ["p", "q", "else"] and calls(api) == []
        await world.clock.sleep(2)
        assert names(api) == ["else"] and calls(api) == [(v, n) for n in "pq" for v in ("patch", "delete")]
        assert ("get", "nodes", "gone") in api.calls, "a cache that is behind must not cost anybody a Pod"
        (condition,) = failed(api)[0]["conditions"]
        assert condition == {
            "type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC",
            "message": "PodGC: node no longer exists", "observedGeneration": 4, "lastProbeTime": None,
            "lastTransitionTime": "2030-01-01T00:00:40Z",
        }  # fmt: skip
        record = recorder.records[0]
        assert (record["rule"], record["facts"]["node"]) == (f"{RULES}:gcOrphaned", "gone")
        assert record["facts"]["why"] == "its node gone no longer exists"

    run(test, pod("p", on="gone"), pod("q", on="gone"), pod("else"))


@pytest.mark.parametrize(("status", "stamp"), [("True", "2029-01-01T00:00:00Z"), ("False", "2030-01-01T00:00:40Z")])
def test_the_condition_of_a_disruption_keeps_its_time_unless_its_status_changes(status: str, stamp: str) -> None:
    there = pod(on="gone")
    old = {"type": "DisruptionTarget", "status": status, "lastTransitionTime": "2029-01-01T00:00:00Z"}
    there["status"]["conditions"] = [old, {"type": "Ready", "status": "True"}]

    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        await world.clock.sleep(41)
        conditions = failed(api)[0]["conditions"]
        assert [each["type"] for each in conditions] == ["DisruptionTarget", "Ready"]
        assert (conditions[0]["status"], conditions[0]["lastTransitionTime"]) == ("True", stamp)

    run(test, there)


@pytest.mark.parametrize("error", [None, BROKEN])
def test_the_pods_of_a_node_that_the_api_knows_or_cannot_tell_of_stay(error: Exception | None) -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        if error is None:
            api.objects["nodes", "", "gone"] = {"metadata": {"name": "gone"}}  # told to nobody
        else:
            api.fail_next("get", "nodes", error)
        await world.clock.sleep(41)
        assert names(api) == ["p"] and calls(api) == []
        assert ("get", "nodes", "gone") in api.calls
        await world.clock.sleep(20)
        assert names(api) == (["p"] if error is None else [])

    run(test, pod(on="gone"))


@pytest.mark.parametrize(
    ("phase", "meta", "verbs"),
    [
        ("Failed", {"finalizers": ["x/y"], "deletionGracePeriodSeconds": 0}, []),
        ("Succeeded", {"finalizers": ["x/y"], "deletionGracePeriodSeconds": 0}, []),
        ("Failed", {"finalizers": ["x/y"], "deletionGracePeriodSeconds": 1}, ["delete"]),
        ("Failed", {"deletionGracePeriodSeconds": 0}, ["delete"]),
        ("Running", {"finalizers": ["x/y"], "deletionGracePeriodSeconds": 0}, ["patch", "delete"]),
    ],
)
def test_a_pod_that_only_its_finalizers_hold_is_not_deleted_again(phase: str, meta: Object, verbs: list[str]) -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        assert [verb for verb, _ in calls(api)] == verbs

    run(test, pod(on="", phase=phase, **{**GOING, **meta}))


def test_a_pod_is_deleted_by_its_uid_and_without_a_grace_period() -> None:
    asked: list[Object] = []

    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        delete = api.delete

        async def noted(*args: Any, **options: Any) -> Object:
            asked.append(options)
            return await delete(*args, **options)

        api.delete = noted  # type: ignore[method-assign]
        api.put(PODS, pod(on="", **GOING))
        await world.clock.sleep(20)

    run(test)
    assert asked == [{"grace_period_seconds": 0, "uid": "uid of p"}]


@pytest.mark.parametrize(
    ("verb", "error"),
    [
        ("delete", BROKEN),
        ("patch", BROKEN),
        ("delete", ConnectionLost("lost")),
        ("patch", ConnectionLost("lost")),
        ("patch", status_failure(409, "Conflict", "changed")),
        ("patch", ValueError("a bug")),
    ],
)
def test_what_fails_is_tried_in_the_next_round_and_holds_up_no_other_pod(verb: str, error: Exception) -> None:
    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        api.fail_next(verb, "pods", error)
        for name in "ab":
            api.put(PODS, pod(name, on="", **GOING))
        await world.clock.sleep(20)
        lost = isinstance(error, ConnectionLost)
        assert names(api) == (["a", "b"] if lost else ["a"]), "a server that is away is not asked for the rest"
        await world.clock.sleep(20)
        assert names(api) == []

    with crash_guard.installed() as faults:
        run(test)
    bug = [("pod-garbage-collector-controller", "default/a")] if isinstance(error, ValueError) else []
    assert [(each.component, each.key) for each in faults.all()] == bug


def test_a_part_of_a_round_that_fails_does_not_keep_the_others_from_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr(controller, "excess_terminated", broken)
    monkeypatch.setattr(controller, "is_out_of_service", broken)

    async def test(world: World, api: FakeAPI, _: ListRecorder) -> None:
        assert names(api) == []

    with crash_guard.installed() as faults:
        run(test, pod(on="", **GOING))
    assert {each.key for each in faults.all()} == {"excess", "out_of_service"}
