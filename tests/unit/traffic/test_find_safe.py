"""The edge of what loses requests: measured ends, the prediction, the bisection, and where the kernel is asked."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rollout_lives import pod_life

from lastcall.traffic.find_safe import (
    EdgeSearch,
    MeasuredEnd,
    Trial,
    deaf_seconds,
    last_safe,
    measure_end,
    smallest_grace,
)
from lastcall.traffic.lives import PodLife


def life(**times: Any) -> PodLife:
    """Deleted at 10, its hook begins at 10.1, SIGTERM at 12, its exit at 12.5, and 0.2 s until nobody is sent to it."""
    usual = {"deleted": 10.0, "hook": 10.1, "term": 12.0, "exited": 12.5, "unrouted": 10.2}
    return pod_life("u", **{**usual, **times})


def end(**values: Any) -> MeasuredEnd:
    usual = {"to_hook": 0.0, "to_term": 2.0, "accepts": 0.0, "drains": 0.5, "own_lag": 0.25, "killed": False}
    return MeasuredEnd(**{**usual, **values})


ENDS = [
    ("not seen to stop listening, gone soon: at the signal", {}, 0.0),
    ("seen to stop listening", {"listener_closed": 12.25}, 0.25),
    ("drained for long and was not seen to stop listening: at its exit", {"exited": 15.0}, 3.0),
    ("killed while it listened: at its exit", {"exited": 12.5, "killed": True}, 0.5),
]


@pytest.mark.parametrize(("times", "accepts"), [row[1:] for row in ENDS], ids=[row[0] for row in ENDS])
def test_a_pod_serves_new_connections_until_it_stops_listening(times: dict[str, Any], accepts: float) -> None:
    found = measure_end([life(**times)], 0.0)
    assert found is not None and found.accepts == pytest.approx(accepts)


def test_what_is_measured_is_the_worst_of_all_pods() -> None:
    pods = [life(), life(term=11.0, exited=11.5, unrouted=10.4), life(exited=14.0, hook=10.05), life(deleted=None)]
    found = measure_end(pods, 0.1)
    assert found is not None
    assert (found.to_term, found.drains) == (1.0, 2.0)
    assert (found.to_hook, found.own_lag) == (pytest.approx(0.05), pytest.approx(0.3))


def test_without_an_end_there_is_nothing_to_predict_from() -> None:
    assert measure_end([life(term=None), life(exited=None)], 0.0) is None


def test_a_hook_and_a_listener_that_outlast_the_lag_leave_no_deaf_pod() -> None:
    assert deaf_seconds(end(), 1.75) == 0 and deaf_seconds(end(), 2.0) == 0.25
    assert deaf_seconds(end(accepts=1.0), 2.5) == -0.25
    assert deaf_seconds(end(), 2.0, sleep=3) == -0.75 and deaf_seconds(end(), 2.0, sleep=1) == 1.25


@pytest.mark.parametrize(("sleep", "drains", "grace"), [(0, 0.0, 1), (2, 0.5, 3), (2, 1.0, 4), (5, 3.2, 9)])
def test_the_grace_period_holds_the_hook_and_the_drain(sleep: int, drains: float, grace: int) -> None:
    assert smallest_grace(drains, sleep) == grace


@given(st.integers(0, 700), st.integers(-1, 700))
def test_bisection_finds_the_last_safe_index(count: int, edge: int) -> None:
    asked: list[int] = []

    def is_safe(index: int) -> bool:
        asked.append(index)
        return index <= edge

    assert last_safe(count, is_safe) == min(edge, count - 1)
    assert len(asked) <= 11 and all(0 <= each < count for each in asked)


@given(st.integers(0, 700), st.integers(-1, 700), st.integers(-5, 710))
def test_a_guess_is_only_a_beginning(count: int, edge: int, guess: int) -> None:
    asked: list[int] = []

    def is_safe(index: int) -> bool:
        asked.append(index)
        return index <= edge

    assert last_safe(count, is_safe, guess) == min(edge, count - 1)
    assert len(asked) <= 22 and all(0 <= each < count for each in asked)
    if count and -1 <= edge < count and abs(guess - edge) <= 1:
        assert len(asked) <= 4


def run(search: EdgeSearch, loses: Callable[[int, int], bool]) -> list[int]:
    """`loses(index, how many runs there were)`; the indexes that were tried."""
    tried: list[int] = []
    while (index := search.next()) is not None:
        assert 0 <= index < search.count and len(tried) < 2 * search.runs
        search.trials.append(Trial(index, 5 if loses(index, len(tried)) else 0, 100))
        tried.append(index)
    return tried


def test_a_right_prediction_is_confirmed_on_both_sides() -> None:
    search = EdgeSearch(601, predicted=50, margin=2, runs=5, known=(Trial(0, 0, 100),))
    assert run(search, lambda index, _: index > 50) == [48, 53, 48, 53, 48]
    assert (search.safe, search.unsafe, search.settled) == (48, 53, True)
    assert len(search.at(48)) == 3 and len(search.at(53)) == 2


def test_a_prediction_that_was_too_high_is_taken_back() -> None:
    search = EdgeSearch(601, predicted=50, margin=2, runs=5, known=(Trial(0, 0, 100),))
    tried = run(search, lambda index, _: index > 44)
    assert search.settled and search.safe is not None and search.safe <= 44 < (search.unsafe or 0)
    assert tried[0] == 48 and len(search.at(search.safe)) >= 2


def test_a_prediction_that_was_too_low_is_raised() -> None:
    search = EdgeSearch(601, predicted=50, margin=2, runs=5, known=(Trial(0, 0, 100),))
    run(search, lambda index, _: index > 70)
    assert search.settled and search.safe is not None and 53 <= search.safe <= 70 < (search.unsafe or 0)


def test_a_value_that_lost_once_is_not_safe_whatever_else_it_did() -> None:
    search = EdgeSearch(601, predicted=50, margin=2, runs=5, known=(Trial(0, 0, 100),))
    run(search, lambda index, turn: index > 50 or turn == 2)  # the third run, at 48, loses one by chance
    assert search.unsafe == 48 and search.safe is not None and search.safe < 48 and len(search.at(search.safe)) >= 2


def test_what_loses_without_any_lag_is_not_tried_further() -> None:
    search = EdgeSearch(601, predicted=-1, margin=2, runs=5, known=(Trial(0, 3, 100),))
    assert search.next() is None and search.safe is None and search.settled


def test_nothing_beyond_the_last_value_is_tried() -> None:
    search = EdgeSearch(10, predicted=9, margin=0, runs=3)
    assert set(run(search, lambda *_: False)) == {9} and search.settled and search.unsafe is None


@given(st.integers(1, 700), st.data())
def test_every_search_ends_with_the_safe_value_below_all_that_lost(count: int, data: st.DataObject) -> None:
    predicted = data.draw(st.integers(-1, count - 1))
    search = EdgeSearch(count, predicted, data.draw(st.integers(0, 5)), data.draw(st.integers(1, 8)))
    tried = run(search, lambda *_: data.draw(st.booleans()))
    lossy = [each.index for each in search.trials if each.lost]
    if search.safe is not None:
        assert all(search.safe < each for each in lossy)
    assert len(tried) >= search.runs or search.unsafe == 0


@given(st.integers(2, 300), st.data())
def test_without_noise_the_edge_lies_between_the_two_values_found(count: int, data: st.DataObject) -> None:
    edge, predicted = data.draw(st.integers(0, count - 1)), data.draw(st.integers(-1, count - 1))
    search = EdgeSearch(count, predicted, data.draw(st.integers(0, 3)), 5)
    run(search, lambda index, _: index > edge)
    assert search.safe is None or search.safe <= edge
    assert search.unsafe is None or search.unsafe > edge
