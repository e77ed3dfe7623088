"""What two states of a Pod's object tell of its deletion and of its containers' runs."""

from typing import Any

import pytest

from lastcall.records import kinds
from lastcall.trace import pods
from lastcall.trace.drafts import Draft

GOING = "2030-01-01T00:00:30Z"


def container(name: str, restarts: int = 0, last: str = "", **state: Any) -> dict[str, Any]:
    """A status; `last`: when its run before the present one ended."""
    before = {"terminated": {"startedAt": "2030-01-01T00:00:00Z", "finishedAt": last, "exitCode": 1}} if last else {}
    return {"name": name, "restartCount": restarts, "lastState": before, "state": state}


RUNS = {"startedAt": "2030-01-01T00:00:10Z"}
ENDED = {"startedAt": "2030-01-01T00:00:10Z", "finishedAt": "2030-01-01T00:00:20Z", "exitCode": 0}


def pod(*statuses: dict[str, Any], grace: int | None = None, finalizers: tuple[str, ...] = ()) -> dict[str, Any]:
    """A Pod that is being deleted if it has a grace period."""
    meta: dict[str, Any] = {"name": "p", "namespace": "n", "uid": "u", "resourceVersion": "7"}
    if grace is not None:
        meta |= {"deletionTimestamp": GOING, "deletionGracePeriodSeconds": grace}
    if finalizers:
        meta["finalizers"] = list(finalizers)
    spec = {"nodeName": "node", "containers": [{"name": each["name"]} for each in statuses]}
    return {"metadata": meta, "spec": spec, "status": {"containerStatuses": list(statuses)}}


def found(drafts: list[Draft], kind: str) -> list[Any]:
    return [each.facts for each in drafts if each.kind == kind]


@pytest.mark.parametrize(
    ("status", "attempts"),
    [
        (container("a", running=RUNS), [0]),
        (container("a", 1, "2030-01-01T00:00:05Z", running=RUNS), [0, 1]),
        (container("a", 3, "2030-01-01T00:00:05Z", terminated=ENDED), [2, 3]),
        (container("a", 0, "2030-01-01T00:00:05Z", running=RUNS), [0, 0]),  # a count that is behind
        (container("a", 2, "2030-01-01T00:00:05Z", waiting={"reason": "CrashLoopBackOff"}), [1]),
    ],
)
def test_each_run_has_the_number_of_its_start(status: dict[str, Any], attempts: list[int]) -> None:
    starts = found(pods.before_the_end(pod(status)), kinds.CONTAINER_STARTED)
    assert [each["attempt"] for each in starts] == attempts


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        ([container("a", running=RUNS), container("b", terminated=ENDED)], False),
        ([container("a", terminated=ENDED), container("b", waiting={})], True),
        ([container("a", running=RUNS), container("b", running=RUNS)], False),
        ([], True),
    ],
)
def test_all_have_ended_when_none_runs(statuses: list[dict[str, Any]], expected: bool) -> None:
    assert pods.all_ended(pod(*statuses)) is expected


LIVES, DIED = container("a", running=RUNS), container("a", terminated=ENDED)


@pytest.mark.parametrize(
    ("old", "new", "shortened", "held"),
    [
        (pod(LIVES, grace=30), pod(LIVES, grace=5), [(30, 5)], []),
        (pod(LIVES, grace=30), pod(LIVES, grace=30), [], []),
        (pod(LIVES, grace=5), pod(LIVES, grace=30), [], []),
        (pod(LIVES), pod(LIVES, grace=5), [], []),
        (pod(LIVES, grace=30), pod(LIVES, grace=0), [], []),  # it goes with this write
        (pod(LIVES, grace=30), pod(LIVES, grace=0, finalizers=("x/y",)), [(30, 0)], [["x/y"]]),
        (pod(DIED, grace=30), pod(DIED, grace=0, finalizers=("x/y",)), [], [["x/y"]]),
        (pod(DIED, grace=0, finalizers=("x/y",)), pod(DIED, grace=0, finalizers=("x/y",)), [], []),
        (pod(DIED), pod(DIED, grace=0, finalizers=("x/y",)), [], [["x/y"]]),
        (pod(DIED, grace=30), pod(DIED, grace=1, finalizers=("x/y",)), [(30, 1)], []),
    ],
)
def test_a_grace_period_that_became_shorter_and_what_finalizers_hold_is_told(
    old: dict[str, Any], new: dict[str, Any], shortened: list[tuple[int, int]], held: list[list[str]]
) -> None:
    drafts = pods.changes(old, new)
    assert [(each["from"], each["to"]) for each in found(drafts, kinds.GRACE_SHORTENED)] == shortened
    assert [each["finalizers"] for each in found(drafts, kinds.HELD_BY_FINALIZERS)] == held
    assert len(found(drafts, kinds.DELETE_ACCEPTED)) == ("deletionTimestamp" not in old["metadata"])
