"""When a loop that does not turn is a hang, and when it is the machine's fault."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall.kube.cluster.health.decide import (
    HANGS_AFTER_SECONDS,
    LOOK_SECONDS,
    MOST_SECONDS,
    Evidence,
    Look,
    hangs,
    own_seconds,
    share_of,
)

START = Look(at=100.0, beats=7, state="S", cpu=5.0, waited=1.0, idle=50.0)


def later(
    before: Look = START,
    *,
    passed: float = 2.0,
    beats: int = 0,
    state: str = "S",
    cpu: float = 0.0,
    waited: float = 0.0,
    idle: float = 3.0,
    share: float = 0.0,
) -> Look:
    return Look(
        before.at + passed,
        before.beats + beats,
        state,
        before.cpu + cpu,
        before.waited + waited,
        before.idle + idle,
        share,
    )


@pytest.mark.parametrize(
    ("before", "after", "own"),
    [
        pytest.param("R", {"state": "R", "cpu": 2.0}, 2.0, id="it runs and does not turn"),
        pytest.param("R", {"state": "R", "cpu": 2.0, "idle": 0.0}, 2.0, id="it runs, and so do others"),
        pytest.param("R", {"state": "R", "cpu": 0.25, "waited": 1.75, "idle": 0.0}, 0.25, id="starved: what it got"),
        pytest.param("R", {"state": "R", "idle": 0.0}, 0.0, id="starved, its wait is not booked yet"),
        pytest.param("S", {}, 2.0, id="it sleeps in one system call on an idle machine"),
        pytest.param("S", {"idle": 0.0, "share": 0.125}, 0.25, id="it waits for somebody who may be starved"),
        pytest.param("S", {"idle": 0.0, "share": 1.0}, 2.0, id="all processors are busy, and nobody waits for one"),
        pytest.param("D", {"state": "S", "share": 1.0}, 0.0, id="it slept uninterruptibly until a moment ago"),
        pytest.param("S", {"idle": 0.0, "cpu": 0.5}, 0.5, id="what it used counts all the same"),
        pytest.param("S", {"waited": 1.5}, 0.5, id="it waited for a processor, then slept"),
        pytest.param("S", {"passed": 30.0, "idle": 59.0}, 0.0, id="init was late: stopped, starved, or a jump of time"),
        pytest.param("R", {"passed": 30.0, "state": "R", "cpu": 30.0}, MOST_SECONDS, id="a paused virtual machine"),
        pytest.param("T", {"state": "T"}, 0.0, id="stopped"),
        pytest.param("T", {"state": "S"}, 0.0, id="was stopped a moment ago"),
        pytest.param("S", {"state": "T"}, 0.0, id="has just been stopped"),
        pytest.param("t", {"state": "t"}, 0.0, id="under a debugger"),
        pytest.param("D", {"state": "D"}, 0.0, id="the disk, or a frozen control group of version 1"),
        pytest.param("S", {"beats": 1, "cpu": 2.0}, 0.0, id="the heart beats"),
        pytest.param("S", {"passed": 0.0, "idle": 0.0}, 0.0, id="no time at all"),
        pytest.param("S", {"passed": -5.0}, 0.0, id="a clock that went back"),
    ],
)
def test_own_time_is_what_the_role_had_and_did_not_use(before: str, after: dict, own: float) -> None:
    first = replace(START, state=before)
    assert own_seconds(first, later(first, **after)) == pytest.approx(own)


def looks_until_it_hangs(most: int = 1000, **each: object) -> int | None:
    """How many looks it takes, the first included."""
    evidence, look = Evidence(), replace(START, state=str(each.get("state", "S")))
    for count in range(1, most):
        if hangs(evidence.add(look)):
            return count
        look = later(look, **each)
    return None


def test_a_hang_is_noticed_by_the_sixth_look() -> None:
    assert looks_until_it_hangs(state="R", cpu=LOOK_SECONDS) == 1 + HANGS_AFTER_SECONDS / LOOK_SECONDS
    assert looks_until_it_hangs(state="S") == 1 + HANGS_AFTER_SECONDS / LOOK_SECONDS


def test_a_loop_that_burns_is_noticed_on_a_starved_machine_too_later() -> None:
    assert looks_until_it_hangs(state="R", cpu=0.25, waited=1.75, idle=0.0) == 41


def test_who_sleeps_among_many_is_noticed_later() -> None:
    share = share_of(processors=2, runnable=16)
    assert looks_until_it_hangs(state="S", idle=0.0, share=share) == 41, "80 s"
    assert [share_of(2, 0), share_of(2, 1), share_of(2, 2), share_of(2, 4)] == [1.0, 1.0, 1.0, 0.5]


@pytest.mark.parametrize("state", ["T", "t", "D", "Z"])
def test_who_cannot_run_never_hangs(state: str) -> None:
    assert looks_until_it_hangs(state=state) is None


def test_a_role_may_have_asked_for_more_time() -> None:
    assert hangs(10.0) and not hangs(9.99)
    assert not hangs(599.0, 600.0) and hangs(600.0, 600.0)


INTERVALS = st.fixed_dictionaries(
    {
        "passed": st.one_of(st.just(LOOK_SECONDS), st.floats(-10, 1e6)),
        "beats": st.sampled_from([0, 0, 0, 0, 1]),
        "state": st.sampled_from("RSDTtZ"),
        "cpu": st.floats(0, 100),
        "waited": st.floats(0, 100),
        "idle": st.floats(0, 100),
        "share": st.floats(0, 1),
    }
)


@given(st.lists(INTERVALS, max_size=60))
def test_nothing_is_counted_twice_and_a_beat_clears_everything(intervals: list[dict]) -> None:
    evidence, look, bound = Evidence(), START, 0.0
    evidence.add(look)
    for each in intervals:
        look = later(look, **each)
        before = evidence.own
        own = evidence.add(look)
        if each["beats"]:
            assert own == 0.0
            bound = 0.0
            continue
        bound += max(0.0, min(each["passed"], MOST_SECONDS))
        assert before <= own <= bound + 1e-6, "more than passed, or than a look may prove"
        if each["state"] not in "S":
            assert own - before <= each["cpu"] + 1e-6, "only what it ran"
        if each["idle"] < 0.05 * each["passed"]:
            most = each["cpu"] + each["share"] * max(0.0, each["passed"])
            assert own - before <= most + 1e-6, "nobody was ever idle: a share of it"


@given(st.lists(INTERVALS, max_size=60), st.floats(2.6, 1e6))
def test_a_stop_of_any_length_between_turns_is_never_a_hang(intervals: list[dict], stopped: float) -> None:
    """Of the role (state T) or of init (late): the evidence afterwards is what it was before."""
    evidence, look = Evidence(), START
    evidence.add(look)
    for each in intervals:
        look = later(look, **each)
        evidence.add(look)
    before = evidence.own
    for _ in range(20):
        look = later(look, passed=stopped, state="T", idle=stopped, share=1.0)
        assert evidence.add(look) == before
    look = later(look, passed=stopped, state="S", idle=stopped)
    assert evidence.add(look) == before, "init came late, and the role was stopped"


@given(st.lists(st.floats(0.01, 2.0), min_size=1, max_size=400))
def test_a_starved_loop_hangs_when_it_has_had_ten_seconds_of_a_processor(shares: list[float]) -> None:
    evidence, look, had = Evidence(), replace(START, state="R"), 0.0
    evidence.add(look)
    for share in shares:
        look = later(look, state="R", cpu=share, waited=LOOK_SECONDS - share, idle=0.0)
        had += share
        assert evidence.add(look) == pytest.approx(had)
        assert hangs(evidence.own) == (evidence.own >= HANGS_AFTER_SECONDS)
