"""What `make machines` writes into docs/machines.md."""

import re
from pathlib import Path

import pytest
from machines.remedies import commands_of
from machines.table import BEGIN, END, KERNEL_TESTS, ROWS, Cell, Machine, machine_of, section, written_into

PROJECT = Path(__file__).resolve().parents[3]


def cell(seen: str = "seen", *, good: bool = True, commit: str = "abc") -> Cell:
    return Cell(good, seen, commit, "2026-11-29")


def machine(**cells: dict[str, Cell]) -> Machine:
    return Machine("Debian 13, Linux 6.12", cells, {}, {})


def test_every_row_is_a_function_of_the_script() -> None:
    script = (PROJECT / "tools/machines/rows.sh").read_text()
    assert sorted(row.name for row in ROWS) == sorted(re.findall(r"^row_(\w+)\(\)", script, re.MULTILINE))


def test_every_test_of_the_kernel_is_there() -> None:
    assert not [path for path in KERNEL_TESTS if not (PROJECT / path).exists()]


def test_a_row_that_fails_is_marked_and_one_that_was_not_run_says_so() -> None:
    text = section(
        [machine(oom={"root": cell("exit | 1", good=False), "ada": cell("OOMKilled")}, up={"root": cell()})], []
    )
    assert "| what | root | ordinary user |" in text
    assert "| out of memory | **fails**: exit \\| 1 | OOMKilled |" in text
    assert "| `up --detach` | seen | not run |" in text
    assert "| `doctor` | not run | not run |" in text
    assert "2 of 3 as they should be." in text


def test_every_situation_and_every_test_of_the_kernel_has_its_line() -> None:
    text = section(
        [Machine("Debian 12", {}, {"one": cell("helps")}, {KERNEL_TESTS[0]: cell("2 passed")})], ["one", "two"]
    )
    assert "| one | helps |\n| two | not run |" in text
    assert f"| `{KERNEL_TESTS[0]}` | 2 passed |\n| `{KERNEL_TESTS[1]}` | not run |" in text


def test_the_page_says_each_commit_and_date() -> None:
    text = section([machine(up={"root": cell(commit="abc")}, down={"root": cell(commit="def")})], [])
    assert "Commit abc, 2026-11-29; def, 2026-11-29." in text


def test_what_is_kept_is_read_again() -> None:
    kept = Machine("Debian 12", {"up": {"root": cell()}}, {"a situation": cell()}, {"tests/x.py": cell(good=False)})
    assert machine_of(kept.facts()) == kept


def test_only_what_stands_between_the_marks_is_replaced() -> None:
    assert written_into(f"before\n{BEGIN}\nold\n{END}\nafter", "new") == "before\nnew\nafter"
    with pytest.raises(ValueError, match="no <!--"):
        written_into("a page", "new")


def test_the_page_has_the_marks_once() -> None:
    page = (PROJECT / "docs/machines.md").read_text()
    assert (page.count(BEGIN), page.count(END)) == (1, 1)


def test_each_command_of_doctor_s_line_is_tried_by_itself() -> None:
    assert commands_of("sudo a; or for one command: b lastcall …") == ["sudo a", "b lastcall …"]
    assert commands_of("sudo a && sudo b, and log in again") == ["sudo a && sudo b"]
