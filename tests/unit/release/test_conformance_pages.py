"""What `tools/conformance.py` makes of results, and the part of the suite that CI runs."""

import importlib.util
import re
from pathlib import Path

PROJECT = Path(__file__).parents[3]
_SPEC = importlib.util.spec_from_file_location("conformance_tool", PROJECT / "tools/conformance.py")
assert _SPEC is not None
assert _SPEC.loader is not None
tool = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(tool)

RESULTS = {
    "[sig-a] quick [Conformance]": {"passed": True, "seconds": 1.0},
    "[sig-a] slow (a.b) [Conformance]": {"passed": True, "seconds": 20.0},
    "[sig-a] alone [Serial] [Conformance]": {"passed": True, "seconds": 1.0},
    "[sig-a] wrong [Conformance]": {"passed": False, "seconds": 1.0},
    "[sig-node] Pod InPlace Resize x [Conformance]": {"passed": False, "seconds": 1.0},
    "[sig-network] DNS should provide DNS for pods for Hostname [Conformance]": {"passed": False, "seconds": 1.0},
}


def test_the_part_has_what_passed_within_the_seconds_and_may_run_beside_others() -> None:
    assert tool.chosen(RESULTS, 8) == ["[sig-a] quick [Conformance]"]


def test_the_focus_matches_the_names_and_nothing_that_only_looks_like_them() -> None:
    focus = re.compile(tool.focus_of(["[sig-a] slow (a.b) [Conformance]"]))
    assert focus.search("[sig-a] slow (a.b) [Conformance]")
    assert not focus.search("[sig-a] slow (acb) [Conformance]")


def test_each_failure_has_its_reason_or_says_that_it_is_not_known() -> None:
    section = tool.user_section(RESULTS, "abc")
    assert "Commit abc, " in section
    assert "3 of 6 passed (6 of the 446 specs ran)." in section
    few = {name: each for name, each in RESULTS.items() if "[Serial]" not in name}
    assert "(5 of the 446 specs ran, none [Serial])." in tool.user_section(few, "abc")
    assert "- [sig-a] wrong [Conformance] — the reason is not known" in section
    assert "no control groups are delegated" in section
    assert section.count("a real cluster fails here, too") == 1
    assert "3 of 6 passed.\n" in tool.document(RESULTS, "abc")


def test_the_section_of_an_earlier_run_is_replaced() -> None:
    page = f"before\n{tool.BEGIN}\nold\n{tool.END}\nafter\n"
    assert tool.written_into(page, f"{tool.BEGIN}\nnew\n{tool.END}") == (
        f"before\n{tool.BEGIN}\nnew\n{tool.END}\nafter\n"
    )


def test_the_page_of_differences_has_a_place_for_the_run_of_an_ordinary_user() -> None:
    text = (PROJECT / "docs/fidelity.md").read_text()
    assert text.count(tool.BEGIN) == text.count(tool.END) == 1


def test_the_list_of_the_part_has_no_spec_twice_and_none_that_runs_alone() -> None:
    specs = (PROJECT / "tools/conformance_part.txt").read_text().splitlines()
    assert len(specs) == len(set(specs)) > 150
    assert [name for name in specs if "[Serial]" in name or "[Conformance]" not in name] == []
    assert len({name.partition("]")[0] for name in specs}) >= 6
