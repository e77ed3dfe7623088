"""docs/dependencies.md names what pyproject.toml asks for, and says why, what it costs and under which licence."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[3]
PROJECT = (ROOT / "pyproject.toml").read_text()
ASKED = [Requirement(text) for text in tomllib.loads(PROJECT)["project"]["dependencies"]]
HEAD = "| package | why | import, ms | installed, kB | wheels | licence | newest |"


def rows() -> dict[str, list[str]]:
    """Package → the other cells of its row."""
    _, found, table = (ROOT / "docs" / "dependencies.md").read_text().partition(HEAD)
    assert found
    lines = table.strip().partition("\n\n")[0].splitlines()[1:]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {name: rest for name, *rest in cells}


def test_the_table_and_pyproject_name_the_same_packages() -> None:
    assert list(rows()) == [each.name for each in ASKED]


def test_each_row_is_whole() -> None:
    for name, cells in rows().items():
        why, milliseconds, size, wheels, licence, newest = cells
        assert len(why) > 20, name
        assert milliseconds.isdecimal(), name
        assert re.fullmatch(r"\d+( \+ \d+)?", size), name
        assert wheels and licence, name
        assert re.fullmatch(r"20\d\d-[01]\d", newest), name


def test_each_requirement_has_a_least_version_and_its_reason_beside_it() -> None:
    for each in ASKED:
        assert any(specifier.operator in (">=", "==") for specifier in each.specifier), each.name
        assert re.search(rf'^  "{re.escape(each.name)}[^"]*",\s+# \w.{{10,}}$', PROJECT, re.MULTILINE), each.name


def test_no_row_says_less_than_the_marker() -> None:
    """A package that pip takes on Linux alone is told as such."""
    linux_alone = {each.name for each in ASKED if each.marker and not each.marker.evaluate({"sys_platform": "darwin"})}
    assert {name for name, cells in rows().items() if cells[3] == "Linux"} == linux_alone
