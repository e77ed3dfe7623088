"""How files are shared out among processes (tools/testrun/groups.py)."""

from hypothesis import given
from hypothesis import strategies as st
from testrun.groups import groups

FILES = st.dictionaries(st.text("abc/", min_size=1, max_size=5), st.floats(0, 100), max_size=30)


@given(FILES, st.floats(1, 60))
def test_each_file_is_in_one_group_and_the_longest_begins(expected: dict[str, float], seconds: float) -> None:
    found = groups(expected, seconds)
    assert sorted(path for group in found for path in group.files) == sorted(expected)
    assert [group.seconds for group in found] == sorted((group.seconds for group in found), reverse=True)
    assert all(group.seconds <= seconds or len(group.files) == 1 for group in found)


def test_files_of_one_directory_stay_together() -> None:
    found = groups({"a/1": 10, "b/1": 10, "a/2": 10, "b/2": 10}, 20)
    assert {tuple(group.files) for group in found} == {("a/1", "a/2"), ("b/1", "b/2")}
