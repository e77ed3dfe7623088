"""Which tests a tier runs (tools/testrun/tiers.py)."""

from testrun.tiers import KERNEL, LOOPBACK, PURE, REST, TIERS, chosen, expected, kind, may_have, time_of, with_new_times

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
    assert round(expected(TIERS["main"], "tests/node/test_c.py", times), 2) == 22.35
    assert round(expected(TIERS["all"], "tests/node/test_c.py", times), 2) == 25.35
    assert expected(TIERS["main"], "tests/unit/test_new.py", times) == 1.0
    assert expected(TIERS["main"], "tests/node/test_new.py", times) == 20.0


def test_a_time_is_found_by_the_whole_name_of_a_test() -> None:
    times = {"tests/a.py": {"x[1::2]": 0.5}}
    assert time_of(times, "tests/a.py::x[1::2]") == 0.5 and time_of(times, "tests/b.py::x") == 0.0


def test_the_kind_of_a_test_follows_from_its_place_and_its_marker() -> None:
    assert kind("tests/unit/node/test_grace.py", False) == kind("tests/scenarios/test_demos.py", False) == PURE
    assert kind("tests/unit/node/test_streams.py", True) == LOOPBACK
    assert kind("tests/pains/test_pains.py", False) == kind("tests/node/test_demo_pods_end.py", False) == KERNEL


def test_a_tier_looks_into_files_by_kind_and_marker() -> None:
    unit, node = "tests/unit/test_a.py", "tests/node/test_a.py"
    fast, main, all_ = TIERS["fast"], TIERS["main"], TIERS["all"]
    assert all(may_have(tier, PURE, unit, "") and not may_have(tier, PURE, node, "") for tier in TIERS.values())
    marked = "@pytest.mark.loopback @pytest.mark.core"
    assert may_have(main, LOOPBACK, unit, marked) and not may_have(fast, LOOPBACK, unit, marked)
    assert may_have(main, KERNEL, node, marked) and not may_have(main, KERNEL, node, "")
    assert may_have(all_, KERNEL, node, "") and not may_have(fast, KERNEL, node, marked)


def test_new_times_replace_those_of_their_files_and_small_ones_are_added_up() -> None:
    old = {"tests/a.py": {REST: 9.0, "gone": 2.0}, "tests/b.py": {REST: 1.0}}
    new = with_new_times(old, {"tests/a.py::x[1::2]": 0.5, "tests/a.py::y": 0.04, "tests/a.py::z": 0.031})
    assert new == {"tests/a.py": {REST: 0.07, "x[1::2]": 0.5}, "tests/b.py": {REST: 1.0}}


def test_times_of_tests_that_no_tier_chooses_are_added_up() -> None:
    new = with_new_times({}, {"tests/node/a.py::x": 5.0, "tests/node/a.py::y": 4.0}, {"tests/node/a.py::y"})
    assert new == {"tests/node/a.py": {REST: 4.0, "x": 5.0}}
