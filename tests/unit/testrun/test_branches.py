"""Which branches the pure tests take, and the floors (tools/testrun/branches.py)."""

from testrun.branches import BEGIN, END, percents, problems, with_measured, with_table

FILES = {
    "src/lastcall/__init__.py": (0, 9),
    "src/lastcall/kube/__init__.py": (0, 0),
    "src/lastcall/kube/node/a.py": (1, 4),
    "src/lastcall/kube/node/b/c.py": (2, 2),
    "src/lastcall/kube/apiserver/deletion.py": (1, 2),
    "src/lastcall/kube/apiserver/x.py": (3, 4),
    "src/lastcall/traffic/x.py": (1, 2),
    "src/lastcall/plain/y.py": (0, 0),
}


def test_branches_are_added_up_by_package_and_deletion_has_a_row_beside_it() -> None:
    assert percents(FILES) == {
        "kube/apiserver": 66.7,
        "kube/apiserver/deletion": 50.0,
        "kube/node": 50.0,
        "plain": 100.0,
        "traffic": 50.0,
    }


def test_a_floor_stays_when_a_package_is_measured_again() -> None:
    record = {"node": {"measured": 40.0, "floor": 45.0}, "gone": {"measured": 1.0, "floor": 1.0}}
    assert with_measured(record, {"node": 50.0, "new": 61.5}) == {
        "node": {"measured": 50.0, "floor": 45.0},
        "new": {"measured": 61.5, "floor": 59.0},
    }


def test_a_figure_below_its_floor_and_a_package_without_a_row_are_named() -> None:
    record = {"node": {"measured": 40.0, "floor": 45.0}, "api": {"measured": 45.0, "floor": 45.0}}
    assert problems(record, ["api", "node", "new"]) == [
        "tests/coverage.json has no row for new. Run tools/test main --kind pure --coverage.",
        "Branch coverage of node is 40.0 %, below its floor of 45.0 %.",
    ]


def test_the_table_stands_between_its_markers() -> None:
    page = f"a\n{BEGIN}\nold\n{END}\nb\n"
    row = "| `node` | 40.0 % | 45 % |"
    new = with_table(page, {"node": {"measured": 40.0, "floor": 45.0}})
    assert new.startswith(f"a\n{BEGIN}\n| package |") and new.endswith(f"\n{row}\n{END}\nb\n") and "old" not in new
    assert with_table("no markers", {}) == "no markers"
