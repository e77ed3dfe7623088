"""What the log of a pytest process says (tools/testrun/outcomes.py)."""

import json

from testrun.outcomes import FAILED, PASSED, SKIPPED, Outcome, failures_of, read, skips

SELECTED = json.dumps({"selected": ["a::1", "a::2", "a::3"], "cpu": 1.5})


def done(test: str, result: str = PASSED, **more: object) -> str:
    return json.dumps({"test": test, "result": result, **more})


def test_a_process_that_died_fails_the_test_that_ran_and_leaves_those_after_it() -> None:
    log = read([SELECTED, '{"started": "a::1"}', done("a::1"), '{"started": "a::2"}', '{"torn'])
    (failure,) = failures_of(log, "was killed by SIGKILL")
    assert (failure.test, failure.result, failure.proof) == ("a::2", FAILED, True)
    assert "was killed by SIGKILL" in failure.why
    assert log.left() == ["a::3"] and log.collecting == 1.5


def test_a_process_that_died_before_any_test_has_failed() -> None:
    (failure,) = failures_of(read([]), "exited with status 4")
    assert failure.test == "pytest" and failure.proof


def test_a_collection_error_has_failed_and_is_proof() -> None:
    log = read(['{"error": "tests/x.py: SyntaxError"}'])
    (failure,) = failures_of(log, "exited with status 2")
    assert "SyntaxError" in failure.why and failure.proof


def test_a_finished_process_has_failed_only_where_its_tests_have() -> None:
    log = read([SELECTED, done("a::1"), done("a::2", FAILED, why="x"), '{"finished": true}'])
    assert [failure.test for failure in failures_of(log, "exited with status 1")] == ["a::2"]


def test_skipped_tests_are_listed_by_reason_and_the_one_of_most_tests_comes_first() -> None:
    found = [
        Outcome("b::1", SKIPPED, why="Skipped: needs root"),
        Outcome("a::1", SKIPPED, why="Skipped: no etcd"),
        Outcome("a::2", PASSED),
        Outcome("a::3", SKIPPED, why="Skipped: needs root"),
        Outcome("a::3", SKIPPED, why="Skipped: needs root"),
    ]
    assert list(skips(found).items()) == [("needs root", ["a::3", "b::1"]), ("no etcd", ["a::1"])]
