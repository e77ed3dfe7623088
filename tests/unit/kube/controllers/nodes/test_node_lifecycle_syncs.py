"""What the node lifecycle controller writes and says about nodes and their Pods, beside an API.

Source: pkg/controller/nodelifecycle/node_lifecycle_controller.go (monitorNodeHealth, processTaintBaseEviction,
markNodeForTainting, doNoScheduleTaintingPass, processPod).
"""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from fake_api import ConnectionLost, FakeAPI, play

from lastcall.kube.api.errors import status_failure
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import EVENTS, LEASES, NODES, PODS, Resource
from lastcall.kube.controllers.nodes import lifecycle
from lastcall.world import crash_guard
from lastcall.world.world import World

START = "2030-01-01T00:00:00Z"
BEFORE = "2029-01-01T00:00:00Z"
NOT_READY, UNREACHABLE = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
FORBIDDEN = status_failure(403, "Forbidden", "no")
CONFLICT = status_failure(409, "Conflict", "changed")
NOT_FOUND = status_failure(404, "NotFound", "gone")
BROKEN = status_failure(500, "InternalError", "broken")

Test = Callable[[World, FakeAPI], Awaitable[None]]


def run(test: Test, *there: tuple[Resource, Object]) -> None:
    """Play a test with a controller that starts where some objects are there already."""
    play(lambda world, api, _: test(world, api), ["node-lifecycle-controller"], there)


def node(ready: str | None = "True", *taints: Object, name: str = "n", beat: str = START, **meta: Any) -> Object:
    conditions = [] if ready is None else [{"type": "Ready", "status": ready, "lastHeartbeatTime": beat}]
    known = {"name": name, "uid": f"uid of {name}", "creationTimestamp": START, **meta}
    return {"metadata": known, "spec": {"taints": list(taints)}, "status": {"conditions": conditions}}


def pod(name: str = "p", *, on: str = "n", ready: str | None = "True") -> Object:
    conditions = [{"type": "Initialized", "status": "True"}]
    if ready is not None:
        conditions.append({"type": "Ready", "status": ready, "lastTransitionTime": BEFORE})
    known = {"name": name, "namespace": "default", "uid": f"uid of {name}", "generation": 3}
    return {"metadata": known, "spec": {"nodeName": on} if on else {}, "status": {"conditions": conditions}}


def taint(key: str, effect: str = "NoExecute") -> Object:
    return {"key": key, "effect": effect, "timeAdded": START}


def taints(api: FakeAPI, name: str = "n") -> list[tuple[str, str]]:
    of = api.objects["nodes", "", name]
    found = [
        (each["key"].removeprefix("node.kubernetes.io/"), each["effect"]) for each in of["spec"].get("taints") or ()
    ]
    return sorted(found)


def ready(api: FakeAPI, resource: Resource = PODS) -> list[str]:
    """Return the status of Ready of each."""
    return [
        condition["status"]
        for each in api.of(resource)
        for condition in each["status"]["conditions"]
        if condition["type"] == "Ready"
    ]


def calls(api: FakeAPI, plural: str = "nodes") -> list[str]:
    return [verb for verb, what, _ in api.calls if what == plural and verb not in ("list", "watch")]


def events(api: FakeAPI) -> list[tuple[str, str, str]]:
    return [(each["involvedObject"]["kind"], each["reason"], each["message"]) for each in api.of(EVENTS)]


REGISTERED = ("Node", "RegisteredNode", "Registered Node n in Controller")


def test_a_node_that_comes_and_one_that_goes_are_said_once() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        await world.clock.sleep(12)
        assert events(api) == [REGISTERED]
        (event,) = api.of(EVENTS)
        assert event["involvedObject"]["uid"] == "uid of n" and event["type"] == "Normal"
        api.remove(NODES, "n")
        await world.clock.sleep(12)
        assert events(api) == [REGISTERED, ("Node", "RemovingNode", "Removing Node n from Controller")]
        assert calls(api) == []

    run(test, (NODES, node()))


def test_a_node_whose_heartbeats_and_lease_stop_is_unknown_after_fifty_seconds() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        await world.clock.sleep(50)
        assert ready(api, NODES) == ["True", "True"] and calls(api) == []
        api.put(NODES, node(name="alive", beat="2030-01-01T00:00:50Z"))
        await world.clock.sleep(5)
        assert ready(api, NODES) == ["Unknown", "True"] and ready(api) == ["False", "True"]
        assert ("Node", "NodeNotReady", "Node n status is now: NodeNotReady") in events(api)
        assert ("Pod", "NodeNotReady", "Node is not ready") in events(api)
        written = api.objects["pods", "default", "p"]["status"]["conditions"]
        assert [each["type"] for each in written] == ["Initialized", "Ready"]
        assert written[1] == {
            "type": "Ready", "status": "False", "observedGeneration": 3, "lastTransitionTime": "2030-01-01T00:00:55Z",
        }  # fmt: skip
        await world.clock.sleep(5)
        assert taints(api) == [("unreachable", "NoExecute"), ("unreachable", "NoSchedule")]
        await world.clock.sleep(30)
        assert [each for each in events(api) if each[1] == "NodeNotReady"] == [
            ("Node", "NodeNotReady", "Node n status is now: NodeNotReady"),
            ("Pod", "NodeNotReady", "Node is not ready"),
        ]

    run(test, (NODES, node()), (NODES, node(name="alive")), (PODS, pod()), (PODS, pod("elsewhere", on="m")))


@pytest.mark.parametrize("sign", ["heartbeat", "lease"])
def test_a_sign_of_life_begins_the_wait_anew(sign: str) -> None:
    async def test(world: World, api: FakeAPI) -> None:
        await world.clock.sleep(40)
        if sign == "lease":
            meta = {"name": "n", "namespace": "kube-node-lease"}
            api.put(LEASES, {"metadata": meta, "spec": {"renewTime": "2030-01-01T00:00:39.000000Z"}})
        else:
            api.put(NODES, node(beat="2030-01-01T00:00:40Z"))
        await world.clock.sleep(50)
        assert ready(api, NODES) == ["True"]
        await world.clock.sleep(10)
        assert ready(api, NODES) == ["Unknown"]

    run(test, (NODES, node()))


@pytest.mark.parametrize(("status", "key"), [("False", "not-ready"), ("Unknown", "unreachable")])
def test_a_node_that_is_not_ready_is_tainted_and_one_that_is_again_is_not(status: str, key: str) -> None:
    async def test(world: World, api: FakeAPI) -> None:
        api.put(NODES, node(status))
        await world.clock.sleep(10)
        assert taints(api) == [(key, "NoExecute"), (key, "NoSchedule")]
        tainted = api.objects["nodes", "", "n"]
        api.put(NODES, {**tainted, "status": node("True", beat="later")["status"]})
        await world.clock.sleep(10)
        assert taints(api) == []

    run(test, (NODES, node()), (NODES, node(name="other")))


def test_a_taint_of_one_reason_gives_way_to_the_other_at_once() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        await world.clock.sleep(1)
        assert taints(api) == [("not-ready", "NoExecute"), ("not-ready", "NoSchedule"), ("own", "NoExecute")]

    there = node("False", taint(UNREACHABLE), taint(UNREACHABLE, "NoSchedule"), taint("own"))
    run(test, (NODES, there), (NODES, node(name="other")))


def test_taints_of_conditions_and_of_a_cordon_follow_them_without_a_wait() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        there = node()
        there["spec"]["unschedulable"] = True
        there["status"]["conditions"].append({"type": "DiskPressure", "status": "True"})
        api.put(NODES, there)
        await world.clock.sleep(0.001)
        assert taints(api) == [("disk-pressure", "NoSchedule"), ("unschedulable", "NoSchedule")]
        current = api.objects["nodes", "", "n"]
        api.put(NODES, {**current, "spec": {"taints": current["spec"]["taints"]}, "status": node()["status"]})
        await world.clock.sleep(0.001)
        assert taints(api) == [] and calls(api) == ["patch"] * 2

    run(test, (NODES, node()))


def test_a_patch_of_taints_names_the_version_that_it_read_and_is_made_again_after_a_conflict() -> None:
    seen: list[Object] = []

    async def test(world: World, api: FakeAPI) -> None:
        patch = api.patch

        async def noted(resource: Resource, name: str, body: Any, namespace: str = "", **more: Any) -> Object:
            if resource == NODES:
                seen.append(body)
            return await patch(resource, name, body, namespace, **more)

        api.patch = noted  # type: ignore[method-assign]
        api.fail_next("patch", "nodes", CONFLICT)
        there = api.put(NODES, {**node(), "spec": {"unschedulable": True}})
        await world.clock.sleep(0.001)
        assert calls(api) == ["patch", "get", "patch"] and taints(api) == [("unschedulable", "NoSchedule")]
        assert seen[0]["metadata"] == {"resourceVersion": there["metadata"]["resourceVersion"]}
        assert [each["key"] for each in seen[1]["spec"]["taints"]] == ["node.kubernetes.io/unschedulable"]

    run(test, (NODES, node()))


@pytest.mark.parametrize(("error", "tries"), [(NOT_FOUND, 1), (FORBIDDEN, 2), (ConnectionLost("lost"), 2)])
def test_taints_that_are_refused_are_tried_again_unless_the_node_is_gone(error: Exception, tries: int) -> None:
    async def test(world: World, api: FakeAPI) -> None:
        api.fail_next("patch", "nodes", error)
        api.put(NODES, {**node(), "spec": {"unschedulable": True}})
        await world.clock.sleep(2)
        assert calls(api) == ["patch"] * tries

    run(test, (NODES, node()))


def test_taints_that_change_all_the_time_are_left_for_later() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        api.fail_next("patch", "nodes", CONFLICT, times=lifecycle.TRIES)
        api.put(NODES, {**node(), "spec": {"unschedulable": True}})
        await world.clock.sleep(2)
        assert calls(api) == ["patch", "get"] * lifecycle.TRIES + ["patch"]

    run(test, (NODES, node()))


@pytest.mark.parametrize(("error", "tries"), [(NOT_FOUND, 4), (FORBIDDEN, 5), (ConnectionLost("lost"), 5)])
def test_a_pod_that_could_not_be_marked_is_tried_in_each_look_until_it_is(error: Exception, tries: int) -> None:
    """The second look tries in any case: whoever wrote that the node is Unknown may have died before its Pods' turn."""

    async def test(world: World, api: FakeAPI) -> None:
        await world.clock.sleep(52)
        api.fail_next("patch", "pods", error, times=3)  # both Pods, and then the first of them again
        await world.clock.sleep(20)
        assert calls(api, "pods") == ["patch"] * tries
        assert ready(api) == (["True", "False"] if error is NOT_FOUND else ["False", "False"])

    run(test, (NODES, node()), (PODS, pod("a")), (PODS, pod("b")))


@pytest.mark.parametrize("error", [CONFLICT, NOT_FOUND, BROKEN])
def test_a_status_of_a_node_that_could_not_be_written_is_written_in_the_next_look(error: Exception) -> None:
    async def test(world: World, api: FakeAPI) -> None:
        await world.clock.sleep(52)
        api.fail_next("update", "nodes", error)
        await world.clock.sleep(5)
        assert ready(api, NODES) == ["True"] and ready(api) == ["True"]
        await world.clock.sleep(5)
        assert ready(api, NODES) == ["Unknown"] and ready(api) == ["False"]

    run(test, (NODES, node()), (PODS, pod()))


def test_the_pods_of_a_node_that_was_lost_before_the_controller_came_are_marked() -> None:
    """Who wrote that the node is Unknown may have died before it wrote of its Pods."""

    async def test(world: World, api: FakeAPI) -> None:
        await world.clock.sleep(1)
        assert ready(api) == ["False", "False"]

    run(test, (NODES, node("Unknown")), (PODS, pod()), (PODS, pod("q", ready="False")), (PODS, pod("r", ready=None)))


@pytest.mark.parametrize("how", ["made", "bound"])
@pytest.mark.parametrize(("status", "after"), [("False", "False"), ("Unknown", "False"), ("True", "True")])
def test_a_pod_that_gets_a_node_which_is_not_ready_is_not_ready(how: str, status: str, after: str) -> None:
    async def test(world: World, api: FakeAPI) -> None:
        if how == "bound":
            api.put(PODS, pod(on=""))
            await world.clock.sleep(0.1)
        api.put(PODS, pod())
        await world.clock.sleep(0.1)
        assert ready(api) == [after]

    run(test, (NODES, node(status)), (NODES, node(name="other")))


def test_a_pod_that_was_marked_ready_again_by_somebody_is_left_to_the_next_look() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        assert ready(api) == ["False"]
        api.put(PODS, pod())
        await world.clock.sleep(0.1)
        assert ready(api) == ["True"], "it did not get its node now"

    run(test, (NODES, node("False")), (PODS, pod()))


def test_nodes_are_tainted_one_every_ten_seconds() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        bad = [name for name in "abc" if ("not-ready", "NoExecute") in taints(api, name)]
        assert bad == ["a"]
        await world.clock.sleep(10)
        assert [name for name in "abc" if ("not-ready", "NoExecute") in taints(api, name)] == ["a", "b"]
        await world.clock.sleep(10)
        assert [name for name in "abc" if ("not-ready", "NoExecute") in taints(api, name)] == ["a", "b", "c"]

    bad = [(NODES, node("False", name=name)) for name in "abc"]
    good = [(NODES, node(name=f"good{number}")) for number in range(9)]
    run(test, *bad, *good)


def test_a_node_that_has_no_condition_any_more_or_is_gone_when_its_turn_comes_is_passed_over() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        api.put(NODES, {**api.objects["nodes", "", "b"], "status": {"conditions": []}})
        api.remove(NODES, "c")
        await world.clock.sleep(9.5)
        assert taints(api, "b") == []
        await world.clock.sleep(20)
        assert ("not-ready", "NoExecute") in taints(api, "d")

    bad = [(NODES, node("False", name=name)) for name in "abcd"]
    good = [(NODES, node(name=f"good{number}")) for number in range(9)]
    with crash_guard.installed() as faults:
        run(test, *bad, *good)
    assert faults.all() == []


@pytest.mark.parametrize("error", [FORBIDDEN, ConnectionLost("lost")])
def test_a_node_that_could_not_be_tainted_has_another_turn(error: Exception) -> None:
    async def test(world: World, api: FakeAPI) -> None:
        api.fail_next("patch", "nodes", error, times=2)  # one of them is of the NoSchedule taint
        api.put(NODES, node("False"))
        await world.clock.sleep(30)
        assert taints(api) == [("not-ready", "NoExecute"), ("not-ready", "NoSchedule")]

    run(test, (NODES, node()), (NODES, node(name="other")))


def test_when_no_node_of_the_cluster_is_ready_none_is_tainted_and_one_that_is_again_ends_it() -> None:
    async def test(world: World, api: FakeAPI) -> None:
        await world.clock.sleep(20)
        assert all(("not-ready", "NoExecute") not in taints(api, name) for name in ("n", "m")), taints(api)
        api.put(NODES, {**api.objects["nodes", "", "m"], "status": node("True", beat="later")["status"]})
        await world.clock.sleep(30)
        assert ("not-ready", "NoExecute") in taints(api) and taints(api, "m") == []

    run(test, (NODES, node("False", taint(NOT_READY))), (NODES, node("False", taint(NOT_READY), name="m")))


def test_a_bug_about_one_node_is_a_fault_and_keeps_no_other_from_its_look(monkeypatch: pytest.MonkeyPatch) -> None:
    examine = lifecycle.examine

    def broken(of: Object, *more: Any) -> Any:
        if of["metadata"]["name"] == "a":
            raise ValueError("a bug")
        return examine(of, *more)

    monkeypatch.setattr(lifecycle, "examine", broken)

    async def test(world: World, api: FakeAPI) -> None:
        await world.clock.sleep(1)
        assert ready(api) == ["False"]

    with crash_guard.installed() as faults:
        run(test, (NODES, node(name="a")), (NODES, node("Unknown")), (PODS, pod()))
    assert {(each.component, each.key) for each in faults.all()} == {("node-lifecycle health", "a")}
