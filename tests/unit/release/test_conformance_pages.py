"""What `tools/conformance.py` makes of results, and the part of the suite that CI runs."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

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
    assert "3 of 6 passed.\n" in tool.document([RESULTS], "abc")


def test_several_runs_of_one_commit_are_kept_and_told_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = {name: {"message": "wrong\n\nvery", **each} for name, each in RESULTS.items()}
    good = {name: {**each, "passed": True} for name, each in told.items()}
    files = [tmp_path / f"{number}.json" for number in range(3)]
    for file, results in zip(files, (told, good, told), strict=True):
        file.write_text(json.dumps(results))
    monkeypatch.setattr(tool, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(tool, "DOCUMENT", tmp_path / "page.md")
    monkeypatch.setattr(tool, "SPECS", len(RESULTS))
    tool.keep_runs(files, files[0], "abc")
    page = (tmp_path / "page.md").read_text()
    assert "3, 6 and 3 of 6 passed in 3 runs." in page
    assert "with what a real cluster said of those that failed." in page
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == [
        "abc-1.tsv", "abc-2.tsv", "abc-3.tsv", "kubernetes-1.36.2.tsv",
    ]  # fmt: skip
    assert "FAILED\t1.0\t[sig-a] wrong [Conformance]\n\twrong\n\tvery\n" in (tmp_path / "runs/abc-1.tsv").read_text()
    assert "FAILED" not in (tmp_path / "runs/abc-2.tsv").read_text()
    monkeypatch.setattr(tool, "SPECS", 446)
    with pytest.raises(ValueError, match="not whole runs"):
        tool.keep_runs(files, None, "abc")


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
