"""Differences that stay on purpose: the table of docs/fidelity.md whose first column is matched with causes."""

import re
from pathlib import Path

FIDELITY = Path(__file__).resolve().parents[2] / "docs" / "fidelity.md"
HEAD = "| Cause in the differential tester |"
"""How the table's first line begins. A row: a regular expression in backticks, and the reason."""

_ROW = re.compile(r"\| `([^`]+)` +\| (.+?) +\|$")


def reasons(text: str | None = None) -> list[tuple[re.Pattern[str], str]]:
    """Return (expression, reason) of each row of the table in `text`, which is docs/fidelity.md when left out."""
    lines = iter((FIDELITY.read_text() if text is None else text).splitlines())
    found = []
    for line in lines:
        if line.startswith(HEAD):
            next(lines, "")  # the line under the head
            for row in lines:
                if (cells := _ROW.fullmatch(row.strip())) is None:
                    break
                found.append((re.compile(cells[1]), cells[2]))
    return found


def reason_of(cause: str, of: list[tuple[re.Pattern[str], str]]) -> str:
    """Return why a difference stays; "" for one that nobody wants."""
    return next((reason for expression, reason in of if expression.search(cause)), "")
