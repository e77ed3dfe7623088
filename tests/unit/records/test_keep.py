"""Records in bounded memory, for a cluster that runs for weeks."""

import json
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lastcall.records import kinds as k
from lastcall.records.keep import LINGER_NS, RecordKeeper, weight
from lastcall.records.record import Record

SECOND = 10**9


class Pen:
    """Writes records, one second after the other."""

    def __init__(self, keeper):
        self.keeper, self.count = keeper, 0

    def __call__(self, kind, uid="", actor="kubelet", after=1.0, **facts):
        self.count += 1
        self.now = int((getattr(self, "now", 0)) + after * SECOND)
        fields = [f"{actor}-b-{self.count}", self.now, self.now, actor, kind, uid, "app", "", facts]
        record = Record(*json.loads(json.dumps(fields)))  # as they come out of a ring: nothing is shared
        self.keeper.add(record)
        return record

    def created(self, uid, name=""):
        self(k.POD_CREATED, uid, "apiserver", namespace="default", name=name or uid)
        self(k.POD_ADMITTED, uid)

    def output(self, uid, text="x" * 100):
        self(k.OUTPUT, uid, "runtime", stream="stdout", text=text)

    def ending(self, uid):
        self(k.DELETE_ACCEPTED, uid, "apiserver", gracePeriodSeconds=30)

    def over(self, uid):
        self(k.WORKER_FINISHED, uid)
        self(k.OBJECT_REMOVED, uid, "apiserver")

    def life(self, uid, name=""):
        self.created(uid, name)
        self.ending(uid)
        self.over(uid)


def uids(keeper):
    return [pod.uid for pod in keeper.pods()]


def test_everything_is_kept_while_there_is_room_and_comes_back_by_time():
    keeper = RecordKeeper(max_pods=10, max_bytes=1 << 20)
    pen = Pen(keeper)
    pen.life("a", "web")
    pen(k.PROCESS_DIED, role="node-1")
    late = Record("kubelet-b-99", 5, 5, "kubelet", k.KILLING, "a", "app")
    keeper.add(late)
    (pod,) = keeper.pods()
    assert (pod.namespace, pod.name, pod.ended, pod.records, pod.dropped) == ("default", "web", True, 6, 0)
    assert keeper.records("a")[0] is late
    assert len(keeper.records()) == 7
    assert keeper.records("b") == []


def test_the_oldest_ended_pod_goes_first_and_a_living_or_ending_one_never():
    keeper = RecordKeeper(max_pods=3, max_bytes=1 << 20)
    pen = Pen(keeper)
    pen.created("living")
    pen.created("ending")
    pen.ending("ending")
    for uid in "abc":
        pen.life(uid)
    assert uids(keeper) == ["living", "ending", "c"]
    pen.created("d")
    pen.created("e")
    assert uids(keeper) == ["living", "ending", "d", "e"]
    assert len(keeper.records("ending")) == 3


def test_a_forced_deletion_is_not_over_before_the_node_is_done():
    keeper = RecordKeeper(max_pods=1, max_bytes=1 << 20)
    pen = Pen(keeper)
    pen.created("forced")
    pen.ending("forced")
    pen(k.OBJECT_REMOVED, "forced", "apiserver")
    pen.created("other")
    assert uids(keeper) == ["forced", "other"]
    pen(k.WORKER_FINISHED, "forced")
    assert uids(keeper) == ["other"]


def test_a_pod_that_no_kubelet_finishes_does_not_stay_for_ever():
    keeper = RecordKeeper(max_pods=1, max_bytes=1 << 20)
    pen = Pen(keeper)
    pen.created("lost")
    pen.ending("lost")
    pen(k.OBJECT_REMOVED, "lost", "apiserver")
    pen(k.PROCESS_DIED, role="node-1", after=LINGER_NS / SECOND + 1)
    pen.created("next")
    assert uids(keeper) == ["next"]


def test_a_pod_that_never_was_on_a_node_has_ended_with_its_object():
    keeper = RecordKeeper()
    pen = Pen(keeper)
    pen(k.POD_CREATED, "pending", "apiserver", namespace="default", name="pending")
    pen(k.DELETE_ACCEPTED, "pending", "apiserver")
    assert not keeper.pods()[0].ended
    pen(k.OBJECT_REMOVED, "pending", "apiserver")
    assert keeper.pods()[0].ended


def test_late_records_of_a_dropped_pod_do_not_bring_it_back():
    keeper = RecordKeeper(max_pods=1, max_bytes=1 << 20)
    pen = Pen(keeper)
    pen.life("a")
    pen.life("b")
    pen.output("a")
    pen(k.POD_GONE_SEEN, "a", "client")
    assert uids(keeper) == ["b"]


def test_a_pod_that_prints_for_weeks_keeps_its_newest_lines_and_says_how_many_went():
    keeper = RecordKeeper(max_bytes=200_000)
    pen = Pen(keeper)
    pen.created("chatty")
    for number in range(2000):
        pen.output("chatty", f"line {number}")
    kept = keeper.records("chatty")
    lines = [r for r in kept if r.kind == k.OUTPUT]
    assert kept[0].kind == k.POD_CREATED
    assert lines[-1].facts["text"] == "line 1999"
    assert lines[0].facts["dropped"] == 2000 - len(lines)
    assert "dropped" not in lines[1].facts
    assert 10 < len(lines) < 200
    assert keeper.pods()[0].dropped == 2000 - len(lines)


def test_a_container_that_restarts_for_weeks_stays_within_its_share():
    keeper = RecordKeeper(max_bytes=400_000)
    pen = Pen(keeper)
    pen.created("crashing")
    for attempt in range(1000):
        pen(k.CONTAINER_STARTED, "crashing", attempt=attempt)
        pen(k.PROCESS_EXITED, "crashing", "runtime", exitCode=1)
    assert keeper.bytes <= 60_000
    assert keeper.records("crashing")[0].kind == k.POD_CREATED
    assert keeper.records("crashing")[-1].kind == k.PROCESS_EXITED


def test_of_an_ending_pod_only_output_is_dropped():
    keeper = RecordKeeper(max_bytes=100_000)
    pen = Pen(keeper)
    pen.created("a")
    pen.ending("a")
    for number in range(100):
        pen(k.KILLING, "a", number=number)
        pen.output("a")
    kinds = [record.kind for record in keeper.records("a")]
    assert kinds.count(k.KILLING) == 100
    assert kinds.count(k.OUTPUT) < 100


def test_records_of_no_pod_are_bounded_as_well():
    keeper = RecordKeeper(max_bytes=160_000)
    pen = Pen(keeper)
    for number in range(1000):
        pen(k.PROCESS_DIED, role="orphan", pid=number)
    assert keeper.bytes <= 10_000
    assert keeper.records()[-1].facts["pid"] == 999


@pytest.mark.parametrize("limits", [{"max_pods": 0}, {"max_bytes": 0}])
def test_a_keeper_that_keeps_nothing_is_refused(limits):
    with pytest.raises(ValueError, match="at least 1"):
        RecordKeeper(**limits)


STEPS = st.tuples(st.sampled_from("abcdefgh"), st.sampled_from(["output", "step", "ending", "over", "created"]))


@settings(max_examples=60, deadline=None)
@given(st.lists(STEPS, max_size=250))
def test_whatever_comes_the_sum_holds_and_ending_pods_keep_their_steps(steps):
    keeper = RecordKeeper(max_pods=3, max_bytes=20_000)
    pen = Pen(keeper)
    told = {}
    for uid, what in steps:
        if what == "step":
            record = pen(k.KILLING, uid)
            told.setdefault(uid, []).append(record)
        else:
            getattr(pen, what)(uid)
        if what == "created":
            told.setdefault(uid, [])
        assert keeper.bytes == sum(weight(r) for r in keeper.records()) + _patched(keeper)
        ended = [pod for pod in keeper.pods() if pod.ended]
        assert not ended or len(keeper.pods()) <= 3


def _patched(keeper):
    """The count of dropped lines is put on a record only when it is read."""
    patched = [r for r in keeper.records() if "dropped" in r.facts]
    return -sum(136 for _ in patched)


def test_the_estimate_of_the_memory_is_near_the_truth():
    tracemalloc.start()
    try:
        keeper = RecordKeeper(max_bytes=50 << 20)
        before = tracemalloc.get_traced_memory()[0]
        pen = Pen(keeper)
        for number in range(3000):
            pen.output(f"pod-{number % 7}", "y" * (number % 90))
            argv = ["sh", "-c", f"sleep {number}"]
            pen(k.PROCESS_STARTED, f"pod-{number % 7}", pid=number, exe=f"/bin/{number}", argv=argv)
        taken = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert taken / 1.6 < keeper.bytes < taken * 1.6
