"""The time axis of pictures."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall.endings.picture.axis import MARGIN, adaptive_axis, tick_label, ticks

BURSTS = [0.0, 0.001, 0.002, 0.004, 3.01, 3.011, 3.012, 30.0, 30.001, 30.002]


def test_a_burst_after_a_long_wait_can_be_told_apart_and_the_wait_is_still_the_widest():
    axis = adaptive_axis(BURSTS, 0.0, 30.01)
    places = [axis.place(at) for at in BURSTS]
    widths = [b - a for a, b in pairwise(places)]
    assert min(widths) > 0.01  # 10 pixels of 1000
    assert max(widths) == widths[6]  # from 3.012 to 30
    assert 0.3 < widths[6] < 0.6


def test_the_ends_of_the_axis_have_a_margin_and_what_lies_outside_is_at_them():
    axis = adaptive_axis([1, 2], 0.0, 3.0)
    assert (axis.place(-5), axis.place(0)) == (MARGIN, MARGIN)
    assert (axis.place(3), axis.place(99)) == (1 - MARGIN, 1 - MARGIN)


@pytest.mark.parametrize(("start", "end"), [(0.0, 0.0), (5.0, 1.0)])
def test_a_story_without_length_has_an_axis_too(start, end):
    axis = adaptive_axis([], start, end)
    assert axis.place(start) < axis.place(start + 1)


def test_marks_on_the_axis_are_round_apart_and_include_zero():
    marks = ticks(adaptive_axis(BURSTS, 0.0, 30.01), most=10)
    assert 0.0 in [at for at, _ in marks]
    assert 3 < len(marks) <= 10
    assert all(b - a >= 0.0999 for (_, a), (_, b) in pairwise(marks))
    assert all(len(f"{at:g}".replace(".", "").strip("0")) <= 3 for at, _ in marks)


@pytest.mark.parametrize(
    ("at", "label"),
    [
        (0, "0"),
        (0.004, "4 ms"),
        (0.5, "500 ms"),
        (2.5, "2.5 s"),
        (30, "30 s"),
        (600, "10 min"),
        (630, "630 s"),
        (-1, "-1 s"),
    ],
)
def test_marks_are_labelled_in_the_unit_that_fits(at, label):
    assert tick_label(at) == label


@given(st.lists(st.floats(-10, 4000, allow_nan=False), max_size=60))
def test_time_never_runs_backwards_on_an_axis(instants):
    start, end = min([0.0, *instants]), max([0.0, *instants])
    axis = adaptive_axis(instants, start, end)
    places = [axis.place(at) for at in sorted(instants)]
    assert places == sorted(places)
    assert all(0 < place < 1 for place in places)
    assert [place for _, place in ticks(axis)] == sorted(place for _, place in ticks(axis))
