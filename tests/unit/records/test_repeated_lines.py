"""Lines that are printed again and again are shown once, with their number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall.records.text import without_repeats


@pytest.mark.parametrize(
    ("lines", "shown"),
    [
        ("", []),
        ("abc", ["a", "b", "c"]),
        ("aaab", ["a (3 times)", "b"]),
        ("cababd", ["c", "a (2 times)", "b (2 times)", "d"]),
        ("abcdabcd", ["a (2 times)", "b (2 times)", "c (2 times)", "d (2 times)"]),
        ("abcdeabcde", list("abcdeabcde")),  # too long a turn to be read at a glance
        ("aba", ["a", "b", "a"]),
    ],
)
def test_lines_repeated_in_a_row_or_in_turn_are_given_once(lines: str, shown: list[str]) -> None:
    assert without_repeats(lines) == shown


@given(st.lists(st.sampled_from("abc"), max_size=12))
def test_no_line_is_lost_or_added(lines: list[str]) -> None:
    counted = "".join(line[0] * int(line[3:-7] if "times" in line else 1) for line in without_repeats(lines))
    assert sorted(counted) == sorted(lines)
