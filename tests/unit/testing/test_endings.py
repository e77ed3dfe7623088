"""What an ending says that has no Pods."""

import pytest

import lastcall
from lastcall.endings import WORLD


def test_an_ending_without_pods_is_not_graceful_and_says_that_nothing_was_checked() -> None:
    ending = lastcall.Ending((), "1.37")
    assert not ending.graceful and ending.outcome == "unknown"
    with pytest.raises(AssertionError, match=r"^no Pod ended: nothing was checked$"):
        ending.assert_graceful()
    assert ending.text == "no Pod ended: nothing was checked\n"
    document = ending.as_dict()
    assert document["exitStatus"] == WORLD and document["error"] == "no Pod ended: nothing was checked"
