"""Which tests a tier runs (tools/testrun/tiers.py)."""

from testrun.tiers import KERNEL, LOOPBACK, PURE, REST, TIERS, chosen, expected, kind, may_run, with_new_times

TIMES = {"quick": 0.15, "slow": 0.7, "slower": 1.5, "slowest": 20.0, REST: 3.0}
NAMES = [*(name for name in TIMES if name != REST), "new"]


def test_the_fast_tier_runs_no_test_above_its_limit() -> None:
    assert chosen(TIERS["fast"], NAMES, TIMES) == {"quick", "new"}


def test_one_of_the_tests_that_are_too_slow_stays_in_the_main_tier() -> None:
    assert chosen(TIERS["main"], NAMES, TIMES) == {"quick", "slow", "slower", "new"}


def test_the_whole_tier_runs_every_test() -> None:
    assert chosen(TIERS["all"], NAMES, TIMES) == set(NAMES)


def test_a_file_is_expected_to_take_what_its_chosen_tests_took() -> None:
    times = {"tests/unit/a/test_b.py": TIMES, "tests/node/test_c.py": TIMES}
    assert round(expected(TIERS["fast"], "tests/unit/a/test_b.py", times), 2) == 3.15
    assert round(expected(TIERS["main"], "tests/unit/a/test_b.py", times), 2) == 5.35
    assert round(expected(TIERS["main"], "tests/node/test_c.py", times), 2) == 25.35
    assert expected(TIERS["main"], "tests/unit/test_new.py", times) == 1.0


def test_the_kind_of_a_file_follows_from_its_place_and_its_markers() -> None:
    assert kind("tests/unit/node/test_grace.py", "") == kind("tests/scenarios/test_demos.py", "") == PURE
    assert kind("tests/unit/node/test_streams.py", "pytestmark = pytest.mark.loopback") == LOOPBACK
    assert kind("tests/pains/test_pains.py", "") == kind("tests/node/test_demo_pods_end.py", "") == KERNEL


def test_a_tier_runs_files_by_kind_and_marker() -> None:
    runs = {name: [may_run(tier, each, "") for each in (PURE, LOOPBACK, KERNEL)] for name, tier in TIERS.items()}
    assert runs == {"fast": [True, False, False], "main": [True, True, False], "all": [True, True, True]}
    assert may_run(TIERS["main"], KERNEL, "@pytest.mark.core") and not may_run(TIERS["fast"], KERNEL, "mark.core")


def test_new_times_replace_those_of_their_files_and_small_ones_are_added_up() -> None:
    old = {"tests/a.py": {REST: 9.0, "gone": 2.0}, "tests/b.py": {REST: 1.0}}
    new = with_new_times(old, {"tests/a.py::x[1::2]": 0.5, "tests/a.py::y": 0.04, "tests/a.py::z": 0.031})
    assert new == {"tests/a.py": {REST: 0.07, "x[1::2]": 0.5}, "tests/b.py": {REST: 1.0}}
