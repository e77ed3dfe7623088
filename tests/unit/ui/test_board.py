"""What a browser is told that was away for a while."""

from hypothesis import given
from hypothesis import strategies as st

from lastcall.ui.board import Board


def test_a_browser_gets_what_changed_after_its_version() -> None:
    board = Board()
    board.put("pod/a", {"n": 1})
    seen = board.version_of(board.event_id)
    board.put("pod/b", {"n": 2})
    board.put("pod/b", {"n": 3})
    board.take("pod/a")
    assert board.after(seen) == {"pod/b": {"n": 3}, "pod/a": None}
    assert board.after(board.version) == {}


def test_the_same_again_is_not_a_change() -> None:
    heard: list[int] = []
    board = Board(on_change=lambda: heard.append(1))
    board.put("pod/a", {"n": 1})
    board.put("pod/a", {"n": 1})
    board.take("pod/b")
    assert heard == [1]


def test_versions_of_another_server_and_of_another_cluster_mean_nothing() -> None:
    board, other = Board(), Board()
    board.put("pod/a", {})
    for text in ("", "x", other.event_id, f"{board.epoch}.x", f"{board.epoch}.-1"):
        assert board.version_of(text) == -1
    assert board.after(-1) is None and board.after(board.version + 1) is None
    before = board.version
    board.clear()
    assert board.after(before) is None and board.everything() == {}


def test_what_has_gone_is_remembered_only_so_far() -> None:
    board = Board(most_gone=2)
    for name in "abcd":
        board.put(f"pod/{name}", {})
    seen = board.version
    for name in "abc":
        board.take(f"pod/{name}")
    assert board.after(seen) is None
    assert board.after(seen + 1) == {"pod/b": None, "pod/c": None}


@given(
    st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from([None, 1, 2, 3])), max_size=60), st.integers(0, 60)
)
def test_a_browser_that_was_away_has_in_the_end_what_is_there(steps: list[tuple[str, int | None]], away: int) -> None:
    board = Board(most_gone=3)
    seen, shown = 0, dict[str, object]()
    for number, (key, value) in enumerate(steps):
        if number == away:
            seen, shown = board.version, dict(board.everything())
        if value is None:
            board.take(key)
        else:
            board.put(key, {"n": value})
    changes = board.after(seen)
    if changes is None:
        shown = dict(board.everything())
    for key, change in (changes or {}).items():
        if change is None:
            shown.pop(key, None)
        else:
            shown[key] = change
    assert shown == board.everything()


def test_a_browser_is_behind_when_too_much_has_gone_and_not_when_another_cluster_has_come() -> None:
    board = Board(most_gone=1)
    board.put("pod/a", {})
    seen = board.version
    assert not board.is_behind(seen) and not board.is_behind(-1)
    for name in "bc":
        board.put(f"pod/{name}", {})
        board.take(f"pod/{name}")
    assert board.is_behind(seen) and not board.is_behind(board.version) and not board.is_behind(-1)
    board.clear()
    assert board.after(seen) is None and not board.is_behind(seen)
