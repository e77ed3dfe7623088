"""A cluster's clock in terms of ours."""

import pytest

from lastcall.trace.stamps import SECOND, WINDOW_NS, Clocks, stamp_ns


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1970-01-01T00:00:01Z", SECOND),
        ("1970-01-01T00:00:01.5Z", SECOND * 3 // 2),
        ("1970-01-01T00:00:01.000000001Z", SECOND + 1),
        ("1970-01-01T01:00:01+01:00", SECOND),
        ("1970-01-01T01:00:01.25+01:00", SECOND * 5 // 4),
        ("", None),
        ("yesterday", None),
        ("9999999-01-01T00:00:00Z", None),
    ],
)
def test_a_stamp_is_nanoseconds_or_nothing(text: str, ns: int | None) -> None:
    assert stamp_ns(text) == ns


def test_the_least_difference_is_the_clocks() -> None:
    clocks = Clocks()
    clocks.saw("n", "1970-01-01T00:00:10Z", 3613 * SECOND)  # came 3 s after it was made, an hour ahead
    clocks.saw("n", "1970-01-01T00:00:20Z", 3620 * SECOND)
    assert clocks.ours("n", "1970-01-01T00:00:30Z") == 3630 * SECOND
    assert clocks.behind_seconds("n") == 3600.0


def test_a_clock_nobody_has_seen_is_taken_at_its_word() -> None:
    assert Clocks().ours("n", "1970-01-01T00:00:30Z") == 30 * SECOND
    assert Clocks().behind_seconds("n") is None


def test_a_clock_that_was_set_is_believed_again_after_a_while() -> None:
    clocks = Clocks()
    clocks.saw_ns("n", 100 * SECOND, 100 * SECOND)
    for turn in range(1, 4):
        now = turn * (WINDOW_NS + SECOND) + 100 * SECOND
        clocks.saw_ns("n", now - 50 * SECOND, now)
    assert clocks.behind_seconds("n") == 50.0
