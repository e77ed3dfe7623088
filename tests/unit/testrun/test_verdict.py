"""What a run's failures mean (tools/testrun/verdict.py)."""

import pytest
from testrun.outcomes import FAILED, Outcome
from testrun.verdict import LONG_STALL, MOST_UNSTABLE, judge, known_unstable, runs_again


def failure(test: str, *, proof: bool = False, pure: bool = False, stall: float = 0.0) -> Outcome:
    return Outcome(test, FAILED, why="first failure", proof=proof, pure=pure, stall=stall)


@pytest.mark.parametrize(
    ("failed", "again"),
    [
        (failure("tests/node/test_a.py::test_b[ordinary user]"), True),
        (failure("tests/node/test_a.py::test_b", proof=True), False),
        (failure("tests/unit/test_a.py::test_b", pure=True), False),
        (failure("collection", proof=True), False),
        (failure("checks"), False),
    ],
)
def test_only_a_test_in_real_time_without_proof_runs_again(failed: Outcome, again: bool) -> None:
    assert runs_again(failed) is again


def test_a_test_that_passes_alone_is_unstable_and_the_run_is_green() -> None:
    verdict = judge([failure("tests/node/a::b")], ["tests/node/a::b"], [], ran=3)
    assert verdict.green and [each.test for each in verdict.unstable] == ["tests/node/a::b"] and not verdict.failed


def test_a_test_that_fails_again_makes_the_run_red() -> None:
    verdict = judge([failure("tests/node/a::b")], [], [], ran=3)
    assert not verdict.green and verdict.failed and not verdict.unstable


def test_too_many_unstable_tests_make_the_run_red() -> None:
    names = [f"tests/node/a::{number}" for number in range(MOST_UNSTABLE + 1)]
    assert judge([failure(name) for name in names[:-1]], names, [], ran=9).green
    assert not judge([failure(name) for name in names], names, [], ran=9).green


def test_a_test_that_failed_while_the_machine_stood_still_and_passes_alone_is_not_unstable() -> None:
    names = [f"tests/node/a::{number}" for number in range(MOST_UNSTABLE + 1)]
    verdict = judge([failure(name, stall=LONG_STALL) for name in names], names, names, ran=9)
    assert verdict.green and not verdict.unstable and [each.test for each in verdict.stalled] == names


def test_a_test_that_fails_again_is_red_however_long_the_machine_stood_still() -> None:
    assert not judge([failure("tests/node/a::b", stall=60.0)], [], [], ran=3).green


def test_a_test_that_is_known_to_be_unstable_makes_the_run_red() -> None:
    page = "# Tests\n\n## Unstable tests\n\n- `tests/node/a::b c` since 2026-11-28\n\n## More\n\n- `tests/node/a::d`\n"
    assert known_unstable(page) == {"tests/node/a::b c"}
    verdict = judge([failure("tests/node/a::b c")], ["tests/node/a::b c"], known_unstable(page), ran=3)
    assert not verdict.green and "tests/node/a::b c" in verdict.reasons[0]


def test_a_run_without_a_test_is_red() -> None:
    assert judge([], [], [], ran=0).reasons == ["No test ran."]
