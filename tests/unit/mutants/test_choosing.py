"""Which mutants are tried, by which tests, and what a run came to (tools/mutants/choosing.py, results.py)."""

from pathlib import Path

from mutants.choosing import (
    Equivalent,
    Touched,
    chosen_tests,
    mask,
    only_at_import,
    read_equivalents,
    shuffled,
    stale,
    without_equivalents,
)
from mutants.results import KILLED, SILENT, SURVIVED, TIMEOUT, Result, summary, text
from mutants.sandbox import to_close
from mutants.sites import Mutant, mutants

SOURCE = "def f(a, b):\n    if a < b:\n        return 1\n    return 2\n"
EVERY = mutants(SOURCE, "src/a.py")


def mutant(change: str) -> Mutant:
    return next(each for each in EVERY if each.change == change)


def test_the_same_seed_draws_the_same_mutants() -> None:
    assert shuffled(EVERY, "1") == shuffled(reversed(EVERY), "1") != shuffled(EVERY, "2")


def test_leaving_out_an_equivalent_one_keeps_the_order_of_the_others() -> None:
    order = shuffled(EVERY, "1")
    listed = [Equivalent("src/a.py", "f", order[2].change, "why")]
    assert without_equivalents(order, listed) == order[:2] + order[3:]


def test_an_entry_whose_code_has_gone_is_named() -> None:
    listed = [Equivalent("src/a.py", "f", "gone", ""), Equivalent("src/b.py", "f", "elsewhere", "")]
    assert stale(EVERY, listed, {"src/a.py"}) == listed[:1]


def test_equivalent_ones_are_read_from_their_file(tmp_path: Path) -> None:
    file = tmp_path / "list.toml"
    assert read_equivalents(file) == []
    file.write_text('[[mutant]]\npath = "a"\nfunction = "f"\nchange = "`a`"\nreason = "why"\n')
    assert read_equivalents(file) == [Equivalent("a", "f", "`a`", "why")]


def test_the_quickest_of_the_tests_that_touch_the_line_comes_first() -> None:
    slow, quick = Touched("slow", 2.0, {"src/a.py": mask(2, 3)}), Touched("quick", 0.1, {"src/a.py": mask(3, 3)})
    other, elsewhere = (
        Touched("other", 0.1, {"src/a.py": mask(4, 4)}),
        Touched("elsewhere", 0.1, {"src/b.py": mask(1, 9)}),
    )
    tests = [slow, quick, other, elsewhere]
    assert chosen_tests(mutant("`return 1` → `return None`"), tests) == [quick, slow]
    assert chosen_tests(mutant("`a < b` → `a <= b`"), tests) == [slow]


def test_code_that_only_ran_at_import_is_left_out_and_code_that_never_ran_is_not() -> None:
    one = mutant("`return 1` → `return None`")
    assert only_at_import(one, {"src/a.py": mask(3, 3)}, [])
    assert not only_at_import(one, {}, [])
    assert not only_at_import(one, {"src/a.py": mask(3, 3)}, [Touched("t", 0.1, {"src/a.py": mask(3, 3)})])


def test_a_timeout_and_a_silent_one_count_as_killed_and_survivors_are_listed() -> None:
    first, second, third, fourth, *_ = EVERY
    found = [Result(first, KILLED, "t"), Result(second, TIMEOUT, "t"), Result(third, SURVIVED, why="3 of 3 tests ran")]
    found += [Result(fourth, SILENT, "t")]
    figures = "4 mutants, 3 killed (75.0 %, 1 of them by time, 1 silent twice), 1 survived"
    assert summary("node", found) == f"node: {figures}"
    assert text("node", found).splitlines()[1:] == [f"  src/a.py:{third.line}: {third.change} (in f; 3 of 3 tests ran)"]


def test_everything_but_temporary_files_results_and_devices_is_read_only() -> None:
    mounts = ["/", "/proc", "/proc/sys", "/dev", "/dev/shm", "/sys", "/tmp", "/w/build/mutants", "/"]
    assert to_close(mounts, ["/tmp", "/w/build/mutants"]) == ["/", "/proc/sys", "/sys"]
