"""Resizes in place as the node decides them: what waits, what is given, what status and Events say (KEP-1287)."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lastcall.kube.api.meta import copy_object
from lastcall.kube.node.admission.checkpoint import AllocationFiles
from lastcall.kube.node.admission.resizes import RETRY_SECONDS, Resizes, resize_text
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World


def pod(name: str = "p", cpu: str = "1", generation: int = 1, **spec: Any) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu}}
    return {
        "metadata": {"name": name, "namespace": "n", "uid": f"uid-{name}", "generation": generation},
        "spec": {"containers": [{"name": "app", "image": "x", "resources": resources}], **spec},
    }


class Node:
    """The Pods of a node with four CPUs, what is synced, and what Events say."""

    def __init__(self, world: World, directory: str = "") -> None:
        self.world = world
        self.pods: dict[str, dict[str, Any]] = {}
        self.synced: list[str] = []
        self.events: list[tuple[str, str, str]] = []
        self.files = AllocationFiles(directory)
        self.resizes = Resizes(
            world=world,
            events=self,  # type: ignore[arg-type]
            allocatable={"cpu": "4", "pods": "2"},
            files=self.files,
            get_pod=self.pods.get,
            active_pods=lambda: list(self.pods.values()),
            sync=self.synced.append,
        )

    def event(self, obj: Any, event_type: str, reason: str, message: str, *, field_path: str = "") -> None:
        self.events.append((event_type, reason, message))

    def admit(self, *pods: dict[str, Any]) -> None:
        for each in pods:
            self.pods[each["metadata"]["uid"]] = each
            self.resizes.admitted(each)

    def ask(self, name: str, cpu: str, generation: int = 2, **spec: Any) -> bool:
        """The API has other resources for a Pod."""
        asking = pod(name, cpu, generation, **spec)
        self.pods[asking["metadata"]["uid"]] = asking
        return self.resizes.changed(asking)

    def has(self, name: str) -> str:
        resources = self.resizes.allocated(self.pods[f"uid-{name}"])["spec"]["containers"][0]["resources"]
        return str(resources["requests"]["cpu"])

    def conditions(self, name: str) -> list[tuple[str, ...]]:
        found = self.resizes.conditions(f"uid-{name}")
        return [(each["type"], each.get("reason", ""), each.get("message", "")) for each in found]

    def reasons(self) -> list[str]:
        return [reason for _, reason, _ in self.events]


def on_node(scenario: Callable[[Node], Any], directory: str = "") -> Node:
    """Play a scenario in virtual time. It may be a coroutine function."""

    async def main(world: World) -> Node:
        node = Node(world, directory)
        async with Tasks() as tasks:
            tasks.spawn(node.resizes.queue.run(), name="queue")
            if (waiting := scenario(node)) is not None:
                await waiting
            tasks.cancel()
        return node

    return run_virtual(main)


def test_a_resize_that_fits_is_given_at_once_and_said() -> None:
    def scenario(node: Node) -> None:
        node.admit(pod())
        assert node.ask("p", "3")
        assert node.has("p") == "1", "it waits until the node looks"
        node.resizes.retry()

    node = on_node(scenario)
    assert (node.has("p"), node.synced) == ("3", ["uid-p"])
    assert node.conditions("p") == [("PodResizeInProgress", "", "")]
    (event,) = node.events
    assert event[:2] == ("Normal", "ResizeStarted")
    assert event[2].startswith('Pod resize started: {"containers":[{"name":"app"') and '"generation":2' in event[2]
    assert node.resizes.needs_a_look("uid-p")


def test_what_is_asked_for_again_as_it_was_waits_no_longer() -> None:
    def scenario(node: Node) -> None:
        node.admit(pod(), pod("other", "2"))
        assert node.ask("p", "3")
        node.resizes.retry()
        assert node.conditions("p")
        assert not node.ask("p", "1", 3)
        assert node.conditions("p") == []
        node.synced.clear()
        node.resizes.retry()

    assert on_node(scenario).synced == []


def test_a_resize_is_deferred_while_others_have_the_room_and_given_when_they_are_gone() -> None:
    text = "Node didn't have enough resource: cpu, requested: 3000, used: 2000, capacity: 4000"

    async def scenario(node: Node) -> None:
        node.admit(pod(), pod("other", "2"))
        node.ask("p", "3")
        node.resizes.retry()
        assert node.has("p") == "1"
        assert node.conditions("p") == [("PodResizePending", "Deferred", text)]
        assert node.events == [
            ("Warning", "ResizeDeferred", f"Pod resize OutOfcpu: {resize_text(node.pods['uid-p'], 2, text)}")
        ]
        node.resizes.retry()
        assert node.reasons() == ["ResizeDeferred"], "the same is said once"
        assert node.synced == ["uid-p"], "nothing has changed since"
        del node.pods["uid-other"]
        await node.world.clock.sleep(RETRY_SECONDS - 1)
        assert node.has("p") == "1"
        await node.world.clock.sleep(2)
        assert node.has("p") == "3"

    node = on_node(scenario)
    assert node.reasons() == ["ResizeDeferred", "ResizeStarted"]
    assert node.conditions("p") == [("PodResizeInProgress", "", "")]


def test_a_deferred_resize_that_asks_for_something_else_is_said_again() -> None:
    def scenario(node: Node) -> None:
        node.admit(pod(), pod("other", "2"))
        for cpu, generation in (("3", 2), ("3", 3), ("3500m", 4)):
            node.ask("p", cpu, generation)
            node.resizes.retry()

    assert on_node(scenario).reasons() == ["ResizeDeferred"] * 3


@pytest.mark.parametrize(
    ("asks", "text"),
    [
        ({"cpu": "5"}, "Node didn't have enough capacity: cpu, requested: 5000, capacity: 4000"),
        (
            {"cpu": "2", "annotations": {"kubernetes.io/config.source": "file"}},
            "In-place resize of static-pods is not supported",
        ),
    ],
)
def test_a_resize_that_can_never_be_is_infeasible_and_not_tried_again(asks: dict[str, Any], text: str) -> None:
    async def scenario(node: Node) -> None:
        node.admit(pod())
        asking = pod("p", asks["cpu"], 2)
        asking["metadata"]["annotations"] = asks.get("annotations", {})
        node.pods["uid-p"] = asking
        assert node.resizes.changed(asking)
        node.resizes.retry()
        node.resizes.retry()
        assert node.conditions("p") == [("PodResizePending", "Infeasible", text)]
        await node.world.clock.sleep(2 * RETRY_SECONDS)

    node = on_node(scenario)
    assert (node.reasons(), node.synced, node.has("p")) == (["ResizeInfeasible"], ["uid-p"], "1")


def test_a_resize_that_was_given_leaves_the_queue_until_the_pod_asks_for_something_else() -> None:
    def scenario(node: Node) -> None:
        node.admit(pod())
        node.ask("p", "3")
        node.resizes.retry()
        node.pods["uid-p"] = pod("p", "2", 3)  # the kubelet has not looked at this change yet
        node.resizes.retry()
        assert node.has("p") == "3"
        node.ask("p", "2", 3)
        node.resizes.retry()

    assert on_node(scenario).has("p") == "2"


def test_an_infeasible_resize_leaves_the_queue_until_the_pod_asks_for_something_else() -> None:
    """allocation_manager.go:retryPendingResizes: only a deferred one stays."""

    def scenario(node: Node) -> None:
        node.admit(pod())
        node.ask("p", "5")
        node.resizes.retry()
        node.pods["uid-p"] = pod("p", "3", 3)  # the kubelet has not looked at this change yet
        node.resizes.retry()
        assert node.has("p") == "1"
        node.ask("p", "3", 3)
        node.resizes.retry()

    assert on_node(scenario).has("p") == "3"


def test_a_deferred_resize_that_was_taken_back_waits_no_longer_when_it_is_its_turn() -> None:
    async def scenario(node: Node) -> None:
        node.admit(pod(), pod("other", "2"))
        node.ask("p", "3")
        node.resizes.retry()
        assert node.conditions("p")
        node.pods["uid-p"] = pod("p", "1", 3)  # the kubelet has not looked at this change yet
        node.resizes.retry()
        assert node.conditions("p") == [] and node.synced == ["uid-p", "uid-p"]
        node.pods["uid-p"] = pod("p", "2", 4)
        node.resizes.retry()
        assert node.has("p") == "1", "it does not wait"

    on_node(scenario)


def test_exactly_the_whole_node_is_not_too_much() -> None:
    def scenario(node: Node) -> None:
        node.admit(pod())
        node.ask("p", "4")
        node.resizes.retry()

    assert on_node(scenario).has("p") == "4"


def test_the_number_of_pods_is_no_reason_against_a_resize() -> None:
    def scenario(node: Node) -> None:
        node.admit(pod(), pod("b", "100m"), pod("c", "100m"))
        node.ask("p", "2")
        node.resizes.retry()

    assert on_node(scenario).has("p") == "2"


def test_a_pod_that_is_synced_anyway_is_not_asked_to_look() -> None:
    def scenario(node: Node) -> None:
        node.admit(pod(), pod("b"))
        node.ask("p", "2")
        node.ask("b", "2")
        node.resizes.retry(but_not="uid-p")

    assert on_node(scenario).synced == ["uid-b"]


def test_who_takes_no_more_goes_first_then_the_longest_wait() -> None:
    async def scenario(node: Node) -> None:
        node.admit(pod("a"), pod("b"), pod("c", "2"))
        node.ask("a", "2")
        node.resizes.retry()
        await node.world.clock.sleep(5)
        node.ask("b", "2")
        node.resizes.retry()
        node.ask("c", "1")
        node.resizes.retry()

    node = on_node(scenario)
    assert [node.has(name) for name in "abc"] == ["2", "1", "1"]


def test_a_pod_that_is_gone_waits_for_nothing() -> None:
    async def scenario(node: Node) -> None:
        node.admit(pod(), pod("other", "2"))
        node.ask("p", "3")
        node.resizes.retry()
        del node.pods["uid-p"]
        node.resizes.retry()
        node.resizes.retry()

    assert on_node(scenario).reasons() == ["ResizeDeferred"]


@pytest.mark.parametrize("requests", [{"cpu": "1"}, {}])
def test_what_has_no_requests_cannot_be_resized(requests: dict[str, str]) -> None:
    def scenario(node: Node) -> None:
        plain = pod()
        plain["spec"]["containers"][0]["resources"] = {"requests": requests}
        node.admit(plain)
        assert node.ask("p", "2") is bool(requests)

    on_node(scenario)


def test_what_a_pod_was_admitted_with_stays_when_it_comes_again() -> None:
    def scenario(node: Node) -> None:
        node.admit(pod())
        node.admit(pod(cpu="2"))

    assert on_node(scenario).has("p") == "1"


# -- what becomes of it ------------------------------------------------------------------------------------------------


def test_a_resize_is_completed_when_the_containers_have_it_and_others_are_looked_at() -> None:
    def scenario(node: Node) -> None:
        node.admit(pod(cpu="3"), pod("b"))
        node.ask("p", "1")
        node.resizes.retry()
        node.ask("b", "3")
        node.resizes.looked(node.pods["uid-p"], under_way=True)
        assert (node.conditions("p"), node.has("b")) == ([("PodResizeInProgress", "", "")], "1")
        node.resizes.looked(node.pods["uid-p"], under_way=False)
        assert (node.conditions("p"), node.has("b")) == ([], "3")
        assert not node.resizes.needs_a_look("uid-p")
        node.resizes.looked(node.pods["uid-p"], under_way=False)

    node = on_node(scenario)
    assert node.reasons() == ["ResizeStarted", "ResizeCompleted", "ResizeStarted"]
    assert node.events[1][0] == "Normal" and node.events[1][2].startswith("Pod resize completed: ")


def test_a_resize_that_was_found_under_way_is_shown() -> None:
    def scenario(node: Node) -> None:
        node.admit(pod(generation=7))
        node.resizes.looked(node.pods["uid-p"], under_way=True)

    (condition,) = on_node(scenario).resizes.conditions("uid-p")
    assert (condition["type"], condition["status"], condition["observedGeneration"]) == (
        "PodResizeInProgress",
        "True",
        7,
    )


def test_an_error_is_said_once_and_stays_until_the_resize_is_done() -> None:
    def scenario(node: Node) -> None:
        node.admit(pod(generation=3))
        for message in ("too small", "too small", "gone"):
            node.resizes.failed(node.pods["uid-p"], message)
        assert node.conditions("p") == [("PodResizeInProgress", "Error", "gone")]
        node.resizes.looked(node.pods["uid-p"], under_way=True)
        assert node.conditions("p") == [("PodResizeInProgress", "Error", "gone")]
        node.resizes.looked(node.pods["uid-p"], under_way=False)
        assert node.conditions("p") == []

    node = on_node(scenario)
    assert node.reasons() == ["ResizeError", "ResizeError", "ResizeCompleted"]
    kind, _, text = node.events[0]
    assert (kind, json.loads(text.removeprefix("Pod resize error: "))["error"]) == ("Warning", "too small")
    assert json.loads(text.removeprefix("Pod resize error: "))["generation"] == 3


def test_a_pod_that_has_ended_is_forgotten_with_its_file(tmp_path: Path) -> None:
    def scenario(node: Node) -> None:
        node.admit(pod(), pod("b"))
        node.ask("p", "9")
        node.resizes.retry()
        node.resizes.failed(node.pods["uid-p"], "bad")
        node.resizes.forget_except({"uid-b"})
        assert node.conditions("p") == []
        assert not node.resizes.needs_a_look("uid-p")
        node.resizes.forget("uid-p")

    node = on_node(scenario, str(tmp_path))
    assert [each.name for each in tmp_path.iterdir()] == ["uid-b.json"]
    assert not node.resizes.changed(node.pods["uid-p"]), "it holds nothing that could be changed"


def test_the_next_kubelet_knows_what_was_given_and_takes_the_conditions_over(tmp_path: Path) -> None:
    def before(node: Node) -> None:
        node.admit(pod())

    def after(node: Node) -> None:
        asking = pod("p", "2", 5)
        asking["status"] = {
            "conditions": [
                {"type": "PodResizePending", "status": "True", "reason": "Deferred", "message": "m"},
                {"type": "PodResizeInProgress", "status": "False"},
            ]
        }
        node.pods["uid-p"] = asking
        assert node.resizes.needs_a_look("uid-p"), "nobody knows what its containers have"
        node.resizes.backfill(asking)
        again = copy_object(asking)
        again["status"]["conditions"][0]["reason"] = "Infeasible"
        node.resizes.backfill(again)
        assert node.conditions("p") == [("PodResizePending", "Deferred", "m")]
        assert node.has("p") == "1"
        node.resizes.looked(asking, under_way=False)
        assert not node.resizes.needs_a_look("uid-p")

    on_node(before, str(tmp_path))
    assert on_node(after, str(tmp_path)).events == []


def test_an_event_says_what_every_container_asks_for_in_the_order_of_its_keys() -> None:
    asking = pod(initContainers=[{"name": "i"}])
    asking["spec"]["containers"][0]["resources"] = {"requests": {"memory": "1Mi", "cpu": "1"}, "limits": {"cpu": "2"}}
    assert resize_text(asking, 4, "why") == (
        '{"initContainers":[{"name":"i","resources":{}}],"containers":[{"name":"app","resources":{"limits":'
        '{"cpu":"2"},"requests":{"cpu":"1","memory":"1Mi"}}}],"generation":4,"error":"why"}'
    )
    assert resize_text({"spec": {}}, 1) == '{"generation":1}'
