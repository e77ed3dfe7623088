"""Bars and lanes: cells add up and nothing that happened vanishes."""

from hypothesis import given
from hypothesis import strategies as st

from lastcall.endings.render.bars import axis, budget_bar, budget_legend, lane, share
from lastcall.endings.story import Budget, Span

amounts = st.lists(st.floats(0, 1e4), min_size=1, max_size=5)


@given(amounts, st.integers(10, 200))
def test_the_cells_of_a_bar_add_up_and_what_is_not_zero_is_seen(values, width):
    cells = share(values, width)
    assert sum(cells) == (width if sum(values) > 0 else 0)
    assert all((count >= 1) == (value > 0) for count, value in zip(cells, values, strict=True))


def test_a_bar_shows_hook_drain_and_what_is_unused_in_proportion():
    bar = budget_bar(Budget("app", 30, 3, 0, 5.3, 21.7, 0), 60)
    assert [(part.kind, len(part.text)) for part in bar] == [("preStop", 6), ("drain", 11), ("unused", 43)]


def test_an_overrun_is_shown_after_what_lay_within_the_grace_period():
    budget = Budget("app", 10, 2, 0, 10, 0, 2)
    assert "".join(part.text for part in budget_legend(budget)) == "hook 2.0 s | drain 8.0 s | overrun 2.0 s"
    assert len("".join(part.text for part in budget_bar(budget, 48))) == 48


def test_the_moment_that_a_sigkill_takes_is_no_overrun():
    budget = Budget("app", 10, 2, 0, 8.1, 0, 0.1)
    assert "".join(part.text for part in budget_legend(budget)) == "hook 2.0 s | drain 8.0 s"
    assert "!" not in "".join(part.text for part in budget_bar(budget, 48))


@given(st.floats(0, 100), st.floats(0, 100), st.floats(0.001, 100), st.integers(8, 150))
def test_a_lane_never_leaves_its_width(start, length, end, width):
    assert len(lane(Span("x", "drain", start, start + length), end, width)) <= width
    assert len(lane(Span("x", "drain", start, None), end, width)) <= width


def test_spans_that_overlap_in_time_overlap_in_the_picture():
    hook = lane(Span("hook", "preStop", 0, 5), 10, 20)
    endpoint = lane(Span("endpoint", "endpoint", 0, 10), 10, 20)
    drain = lane(Span("drain", "drain", 5, 10), 10, 20)
    assert (hook, drain, endpoint) == ("█" * 10, " " * 10 + "█" * 10, "█" * 20)


@given(st.floats(0.01, 1e5), st.integers(8, 150))
def test_the_axis_fits_and_begins_at_zero(end, width):
    marks = axis(end, width)
    assert len(marks) <= width
    assert marks.startswith("0")
