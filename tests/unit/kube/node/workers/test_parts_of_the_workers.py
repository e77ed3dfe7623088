"""The small parts beside the Pods' workers: known Pods, names of static ones, deadlines, what is due, mirrors."""

from typing import Any

import pytest

from lastcall.kube.node.static_pods.decide import (
    CONFIG_HASH,
    CONFIG_MIRROR,
    duplicate_message,
    is_mirror_of,
    mirror_pod,
    without_duplicates,
)
from lastcall.kube.node.workers.active_deadline import ActiveDeadlineHandler
from lastcall.kube.node.workers.mirrors import MirrorAction, mirror_action
from lastcall.kube.node.workers.pod_manager import PodManager
from lastcall.kube.node.workers.queue import WorkQueue
from lastcall.kube.node.workers.static_starts import StaticPodStarts
from lastcall.world.tasks import Tasks
from lastcall.world.virtual import run_virtual
from lastcall.world.world import World


def pod(uid: str = "u", name: str = "p", namespace: str = "n", **annotations: str) -> dict[str, Any]:
    kubernetes = {f"kubernetes.io/config.{key}": value for key, value in annotations.items()}
    return {"metadata": {"uid": uid, "name": name, "namespace": namespace, "annotations": kubernetes}, "spec": {}}


def static(uid: str = "u", hash_: str = "h", name: str = "p") -> dict[str, Any]:
    return pod(uid, name, source="file", hash=hash_)


def mirror(uid: str = "m", hash_: str = "h", name: str = "p") -> dict[str, Any]:
    return pod(uid, name, source="api", mirror=hash_)


# -- known Pods -------------------------------------------------------------------------------------------------------


def test_pods_are_known_by_uid_in_the_order_in_which_they_came() -> None:
    pods = PodManager()
    first, second, again = pod("1"), pod("2", "q"), pod("1", hash="new")
    for each in (first, second, again):
        pods.add_pod(each)
    assert pods.get_pods() == [again, second]
    assert pods.get_pod("1") is again and pods.get_pod("3") is None
    pods.remove_pod(first)
    pods.remove_pod(first)
    assert pods.get_pods() == [second]


def test_a_name_means_the_newest_pod_of_its_namespace_and_never_a_mirror() -> None:
    pods = PodManager()
    newest = pod("2")
    for each in (pod("1"), newest, pod("3", "q"), pod("4", namespace="other"), mirror("5")):
        pods.add_pod(each)
    assert pods.get_pod_by_name("n", "p") is newest
    assert pods.get_pod_by_name("n", "none") is None


def test_mirrors_are_apart_and_one_that_was_replaced_is_not_removed_with_the_old_one() -> None:
    pods, old, new = PodManager(), mirror("old"), mirror("new")
    pods.add_pod(old)
    pods.add_pod(new)
    pods.remove_pod(old)
    assert pods.get_mirrors() == [new] and pods.get_pods() == []
    assert pods.get_mirror("n", "p") is new and pods.get_mirror("other", "p") is None
    pods.remove_pod(new)
    assert pods.get_mirrors() == []


def test_a_static_pod_and_its_mirror_find_each_other() -> None:
    pods, own = PodManager(), static()
    pods.add_pod(own)
    assert pods.mirror_of(own) is None
    pods.add_pod(mirror(hash_="of another"))
    assert pods.mirror_of(own) is None
    pods.add_pod(made := mirror())
    assert pods.mirror_of(own) is made and pods.static_pod_of(made) is own
    pods.remove_pod(own)
    pods.add_pod(pod("x"))
    assert pods.static_pod_of(made) is None, "a Pod of the API is no static one"


# -- static Pods and their mirrors -------------------------------------------------------------------------------------


def test_of_two_static_pods_of_one_name_the_first_counts() -> None:
    """pkg/kubelet/config/config.go:filterInvalidPods."""
    one, two, other = static("1"), static("2"), static("3", name="q")
    elsewhere = pod("4", namespace="other")
    assert without_duplicates([one, two, other, elsewhere]) == ([one, other, elsewhere], [two])
    assert duplicate_message(two) == ('Error validating pod p_n(2) from file due to duplicate pod name "p_n", ignoring')


def test_a_mirror_has_the_node_for_an_owner_and_neither_uid_nor_status() -> None:
    own = static() | {"status": {"phase": "Running"}}
    made = mirror_pod(own, {"metadata": {"name": "node-1", "uid": "node-uid"}})
    assert "uid" not in made["metadata"] and "status" not in made
    assert made["metadata"]["annotations"][CONFIG_MIRROR] == made["metadata"]["annotations"][CONFIG_HASH] == "h"
    assert made["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Node", "name": "node-1", "uid": "node-uid", "controller": True}
    ]
    assert own["metadata"]["uid"] == "u" and "status" in own, "the static Pod stays as it is"


@pytest.mark.parametrize(
    ("found", "is_its", "action"),
    [
        (None, False, MirrorAction.CREATE),
        (mirror(), True, MirrorAction.KEEP),
        (mirror(hash_="other"), False, MirrorAction.REPLACE),
        (mirror(hash_=""), False, MirrorAction.REPLACE),
        (mirror(name="q"), False, MirrorAction.REPLACE),
        (pod("m"), False, MirrorAction.REPLACE),
    ],
)
def test_a_mirror_that_is_not_the_pod_s_is_replaced(found: Any, is_its: bool, action: MirrorAction) -> None:
    """pkg/kubelet/pod/mirror_client.go:IsMirrorPodOf, kubelet.go:tryReconcileMirrorPods."""
    assert mirror_action(static(), found) is action
    if found is not None:
        assert is_mirror_of(found, static()) is is_its


def test_a_mirror_of_a_pod_without_a_hash_is_nobody_s() -> None:
    assert not is_mirror_of(pod("m"), pod())


def test_a_mirror_that_is_being_deleted_is_replaced() -> None:
    ending = mirror()
    ending["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    assert mirror_action(static(), ending) is MirrorAction.REPLACE


# -- whose turn a name is ----------------------------------------------------------------------------------------------


def everybody(uid: str) -> bool:
    return True


def nobody(uid: str) -> bool:
    return False


def test_static_pods_of_one_name_start_in_the_order_in_which_they_came() -> None:
    """pkg/kubelet/pod_workers.go:allowStaticPodStart."""
    starts = StaticPodStarts()
    for uid in "abc":
        starts.wait("p_n", uid)
    assert starts.name_is_taken("p_n", "b", everybody), "a waits before it"
    assert not starts.name_is_taken("p_n", "a", everybody)
    starts.started("p_n", "a")
    assert starts.uid_of("p_n") == "a"
    assert not starts.name_is_taken("p_n", "a", everybody), "it runs already"
    assert starts.name_is_taken("p_n", "b", nobody), "a runs"
    starts.ended("p_n", "b")
    assert starts.name_is_taken("p_n", "b", nobody), "what does not have the name cannot give it back"
    starts.ended("p_n", "a")
    assert starts.uid_of("p_n") is None
    assert starts.name_is_taken("p_n", "c", everybody)
    assert not starts.name_is_taken("p_n", "c", nobody), "b may not start any more"


def test_a_static_pod_that_had_its_turn_does_not_wait_for_another() -> None:
    starts = StaticPodStarts()
    for uid in "ab":
        starts.wait("p_n", uid)
    assert not starts.name_is_taken("p_n", "a", everybody)
    starts.started("p_n", "a")
    starts.ended("p_n", "a")
    assert not starts.name_is_taken("p_n", "b", everybody)


def test_who_has_gone_is_waited_for_no_longer() -> None:
    starts = StaticPodStarts()
    for uid in "ab":
        starts.wait("p_n", uid)
    starts.forget("p_n", "a")
    starts.forget("p_n", "unknown")
    starts.forget("q_n", "unknown")
    assert not starts.name_is_taken("p_n", "b", everybody)
    starts.started("p_n", "b")
    starts.forget("p_n", "a")
    assert starts.uid_of("p_n") == "b"
    starts.forget("p_n", "b")
    assert starts.uid_of("p_n") is None


# -- deadlines ---------------------------------------------------------------------------------------------------------


class Events:
    def __init__(self) -> None:
        self.said: list[tuple[str, str, str]] = []

    def event(self, obj: Any, event_type: str, reason: str, message: str, *, field_path: str = "") -> None:
        self.said.append((event_type, reason, message))


@pytest.mark.parametrize(
    ("deadline", "of_manager", "of_pod", "left"),
    [
        (None, "2030-01-01T00:00:00Z", None, None),
        (30, None, None, None),
        (30, "2030-01-01T00:00:00Z", None, 20.0),
        (30, None, "2029-12-31T23:59:50Z", 10.0),
        (30, "2030-01-01T00:00:00Z", "2029-12-31T23:59:50Z", 20.0),
        (10, "2030-01-01T00:00:00Z", None, 0.0),
        (5, "2030-01-01T00:00:00Z", None, -5.0),
        (11, "2030-01-01T00:00:00Z", None, 1.0),
    ],
)
def test_a_deadline_counts_from_the_start_and_is_over_when_nothing_is_left(
    deadline: int | None, of_manager: str | None, of_pod: str | None, left: float | None
) -> None:
    """pkg/kubelet/active_deadline.go: ten seconds have passed here."""
    events = Events()

    async def main(world: World) -> tuple[float | None, Any]:
        statuses = {"u": {"startTime": of_manager}} if of_manager else {}
        handler = ActiveDeadlineHandler(world=world, events=events, get_status=statuses.get)
        the_pod = pod() | {"spec": {"activeDeadlineSeconds": deadline}, "status": {"startTime": of_pod}}
        await world.clock.sleep(10)
        return handler.seconds_left(the_pod), handler(the_pod)

    seconds, verdict = run_virtual(main)
    assert seconds == (None if left is None else pytest.approx(left))
    message = "Pod was active on the node longer than the specified deadline"
    over = left is not None and left <= 0
    assert verdict == (("DeadlineExceeded", message) if over else None)
    assert events.said == ([("Normal", "DeadlineExceeded", message)] if over else [])


# -- what is due -------------------------------------------------------------------------------------------------------


def due(*steps: tuple[float, str, float | None]) -> list[tuple[float, str]]:
    """Enqueue (at, uid, delay), or forget where the delay is None; answer when each was reported within 100 s."""

    async def main(world: World) -> list[tuple[float, str]]:
        began, told = world.clock.monotonic_ns(), list[tuple[float, str]]()

        def seconds() -> float:
            return round((world.clock.monotonic_ns() - began) / 1e9, 6)

        queue = WorkQueue(world, lambda uid: told.append((seconds(), uid)))
        async with Tasks() as tasks:
            tasks.spawn(queue.run(), name="queue")
            for at, uid, delay in steps:
                await world.clock.sleep(at - seconds())
                if delay is None:
                    queue.forget(uid)
                else:
                    queue.enqueue(uid, delay)
            await world.clock.sleep(100 - seconds())
            tasks.cancel()
        return told

    return run_virtual(main)


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ([(0, "a", 5), (0, "b", 3)], [(3, "b"), (5, "a")]),
        ([(0, "a", 0)], [(0, "a")]),
        ([(0, "a", 5), (1, "b", 1)], [(2, "b"), (5, "a")]),
        ([(0, "a", 5), (1, "a", 1)], [(2, "a")]),
        ([(0, "a", 5), (1, "a", 10)], [(11, "a")]),
        ([(0, "a", 5), (1, "a", None)], []),
        ([(0, "a", 5), (0, "b", 7), (1, "a", None)], [(7, "b")]),
        ([(0, "a", None)], []),
        ([(0, "a", 5), (20, "a", 5), (40, "b", 1)], [(5, "a"), (25, "a"), (41, "b")]),
        ([(0, "a", 5), (0, "a", 5)], [(5, "a")]),
    ],
)
def test_each_uid_is_reported_once_at_the_last_time_that_was_named(
    steps: list[tuple[float, str, float | None]], told: list[tuple[float, str]]
) -> None:
    """pkg/kubelet/util/queue/work_queue.go."""
    assert due(*steps) == told
