"""docs/ci.md's table of exit codes has those that the commands use."""

import re
from pathlib import Path

from lastcall.cli import exit_status
from lastcall.experiment.rollout.pool import INCONCLUSIVE, LOSES

DOCS = Path(__file__).parents[3] / "docs" / "ci.md"


def table() -> dict[str, list[str]]:
    """Code → the cells of its row, by command."""
    rows = [line.strip("|").split("|") for line in DOCS.read_text().splitlines() if re.match(r"\| (\d|code)", line)]
    return {row[0].strip(): [cell.strip() for cell in row[1:]] for row in rows}


def test_the_table_has_every_code_that_commands_use() -> None:
    codes = {exit_status.OK, exit_status.WORLD, exit_status.USAGE, exit_status.NOT_GRACEFUL, exit_status.FINDINGS}
    codes |= {LOSES, INCONCLUSIVE}
    found = table()
    assert {code for code in found if code.isdigit()} == set(map(str, codes))
    assert found["128 + N"] and str(exit_status.INTERRUPTED) in found["128 + N"][0]


def test_each_command_that_has_a_code_says_when() -> None:
    columns = {name: number for number, name in enumerate(table()["code"])}
    run, rollout, lint = columns["`run`, `demo`, `story`, `trace`"], columns["`rollout`"], columns["`lint`"]
    assert "SIGKILL" in table()[str(exit_status.NOT_GRACEFUL)][run]
    assert "lost" in table()[str(LOSES)][rollout] and "inconclusive" in table()[str(INCONCLUSIVE)][rollout]
    assert table()[str(exit_status.FINDINGS)][lint] == "findings"
    assert all("bad input" in cell for cell in table()[str(exit_status.USAGE)])
