"""What is known of when Pods ended on somebody's cluster: bounds, by what was seen, when, and by which clock."""

import math
from datetime import UTC, datetime
from typing import Any

import pytest

from lastcall.contexts.clocks import Sample
from lastcall.experiment.existing.connection import Reached
from lastcall.experiment.existing.pod_ends import Following
from lastcall.records import kinds
from lastcall.records.record import Record
from lastcall.trace.scope import Target
from lastcall.traffic.moments import Moment
from lastcall.world.clock import Clock
from lastcall.world.world import World

SECOND = 1_000_000_000


class At(Clock):
    """Stands where it is put; the wall clock is 1 000 000 s ahead."""

    seconds = 0.0

    def monotonic_ns(self) -> int:
        return int(self.seconds * SECOND)

    def wall_ns(self) -> int:
        return int((self.seconds + 1_000_000) * SECOND)

    async def sleep(self, seconds: float) -> None:
        self.seconds += seconds


def pod(
    *,
    ready: bool = True,
    deleted: str = "",
    ended: bool = False,
    restarts: int = 0,
    hook: Any = None,
    grace: int = 30,
) -> Any:
    state = {"terminated": {"exitCode": 0}} if ended else {"running": {}}
    container: dict[str, Any] = {"name": "app", "image": "x"}
    if hook is not None:
        container["lifecycle"] = {"preStop": hook}
    metadata: dict[str, Any] = {"name": "web-1", "uid": "u", "namespace": "shop"}
    if deleted:
        metadata |= {"deletionTimestamp": deleted, "deletionGracePeriodSeconds": grace}
    return {
        "metadata": metadata,
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 30},
        "status": {
            "podIP": "10.0.0.1",
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            "containerStatuses": [{"name": "app", "restartCount": restarts, "state": state}],
        },
    }


class Watched:
    def __init__(self) -> None:
        self.clock = At()
        world = World(clock=self.clock)
        cluster = Reached(None, "c", "https://x", "shop")  # type: ignore[arg-type]  # nothing is asked
        self.following = Following(cluster, (Target("Deployment", "web"),), world)

    def sees(self, at: float, **state: Any) -> None:
        self.clock.seconds = at
        self.following.pod(pod(**state))

    def hears(self, at: float, kind: str) -> None:
        self.clock.seconds = at
        facts = {"message": "", "gracePeriodSeconds": 30} if kind == kinds.KILLING else {}
        self.following._record(Record("r", int(at * SECOND), 0, "kubelet", kind, "u", "app", "", facts))

    @property
    def only(self) -> Any:
        (found,) = self.following.bounded_lives()
        return found


DELETED = "1970-01-12T13:47:20Z"  # 1 000 040 s: DELETE at 10 s with a grace period of 30 s


def test_an_end_without_a_hook_lies_between_the_disruption_and_what_was_heard() -> None:
    there = Watched()
    there.sees(1.0)
    there.following.began = 9.0
    there.sees(10.3, deleted=DELETED)
    there.hears(10.5, kinds.KILLING)
    there.sees(11.0, deleted=DELETED, ended=True)
    found = there.only
    assert (found.deleted.earliest, found.deleted.latest) == (9.0, 10.3)
    assert (found.term.earliest, found.term.latest) == (9.0, 10.5)
    assert (found.exited.latest, found.ready, found.created) == (11.0, Moment.at(1.0), None)


def test_the_api_servers_stamp_bounds_the_delete_once_its_clock_was_compared() -> None:
    there = Watched()
    there.sees(1.0)
    there.following.began = 2.0
    there.sees(10.3, deleted=DELETED)
    there.following._samples.append(Sample(10.1, 1_000_010.1, 10.2))
    assert there.only.deleted.earliest == pytest.approx(10.0, abs=0.01)
    there.following._samples[:] = [Sample(10.1, 1_000_006.1, 10.2)]  # theirs is 4 s behind: the stamp was of 14 s
    assert there.only.deleted.earliest == 10.3  # and never after it was seen
    there.following._samples[:] = [Sample(10.1, 1_000_006.1, 10.2), Sample(10.2, 2_000_000.0, 10.25)]
    assert there.only.deleted.earliest == 2.0  # a clock that was set says nothing


@pytest.mark.parametrize("ahead", [3600, -3600])
def test_an_api_server_whose_clock_is_an_hour_off_bounds_the_delete_as_well(ahead: int) -> None:
    there = Watched()
    there.sees(1.0)
    there.following.began = 2.0
    stamp = datetime.fromtimestamp(1_000_040 + ahead, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    there.sees(10.3, deleted=stamp)
    there.following._samples.append(Sample(10.1, 1_000_010.1 + ahead, 10.2))
    assert there.only.deleted.earliest == pytest.approx(10.0, abs=0.01)
    told = there.following.describe_clock_skew()
    assert told.startswith("+3599.950 s" if ahead > 0 else "-3600.050 s"), told


@pytest.mark.parametrize(("hook", "earliest"), [({"sleep": {"seconds": 5}}, 14.0), ({"exec": {"command": ["x"]}}, 9.0)])
def test_a_hook_that_sleeps_keeps_the_signal_away_and_another_may_end_at_once(hook: Any, earliest: float) -> None:
    there = Watched()
    there.sees(1.0, hook=hook)
    there.following.began = 9.0
    there.sees(10.3, deleted=DELETED, hook=hook)
    there.hears(10.5, kinds.KILLING)
    assert (there.only.term.earliest, there.only.term.latest) == (earliest, math.inf)
    there.hears(16.0, kinds.OBJECT_REMOVED)
    assert (there.only.term.latest, there.only.exited.latest) == (16.0, 16.0)


def test_a_pod_that_a_kubelet_removes_with_a_grace_of_0_slept_in_its_hook_before() -> None:
    there = Watched()
    hook = {"sleep": {"seconds": 5}}
    there.sees(1.0, hook=hook)
    there.following.began = 9.0
    there.sees(10.3, deleted=DELETED, hook=hook)
    there.sees(15.9, deleted=DELETED, hook=hook, ended=True, grace=0)
    assert (there.only.term.earliest, there.only.exited.latest) == (14.0, 15.9)


def test_a_restart_and_a_pod_that_was_unready_are_seen() -> None:
    there = Watched()
    there.sees(1.0)
    there.sees(5.0, ready=False, restarts=1)
    assert [(each.exited.earliest, each.exited.latest) for each in there.only.outages] == [(1.0, math.inf)]
    there.sees(7.0, restarts=1)
    assert [(each.exited.earliest, each.exited.latest) for each in there.only.outages] == [(1.0, 7.0)]
    assert there.only.unreadied == Moment(1.0, 5.0)


def test_a_pod_of_which_the_start_was_seen_late_has_not_been_restarted() -> None:
    there = Watched()
    state = pod(ready=False)
    state["status"].pop("containerStatuses")
    there.clock.seconds = 1.0
    there.following.pod(state)
    there.sees(6.0)  # Ready, with its first containers, by one event
    assert there.only.outages == [] and there.only.ready == Moment.at(6.0)
    there.sees(7.0)
    assert there.only.outages == []
