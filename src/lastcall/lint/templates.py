"""Templates that nobody has rendered: how they are recognised, and what renders them. Pure.

A text with such marks may be meant as it is (a script, an alert): they count only where Kubernetes refuses the text.
"""

# check: pure

import re
from typing import Any

_GO = re.compile(r"\{\{.*?\}\}", re.DOTALL)
"""Helm's, and of everything else that is written in Go's templates."""
_ALONE = re.compile(r"^[ \t]*\{\{.*?\}\}[ \t]*$", re.DOTALL | re.MULTILINE)
_SHELL = re.compile(r"\$\{[A-Za-z_]\w*\}")
RENDERED_BY = {
    _GO: "helm template RELEASE CHART | lastcall lint -",
    _SHELL: "envsubst < FILE | lastcall lint -",
}


def line_of_template(text: str) -> tuple[int, str] | None:
    """Return the line (from 1) of the first mark of Go's templates in a text, and the command that renders it."""
    found = _GO.search(text)
    return None if found is None else (text.count("\n", 0, found.start()) + 1, RENDERED_BY[_GO])


def without_marks(text: str) -> str:
    """Return the text with a word for each mark of Go's templates, and nothing for one that has lines of its own.

    What is readable then was kept from it by the marks.
    """
    return _GO.sub("x", _ALONE.sub("", text))


def how_to_render(value: Any) -> str | None:
    """Return the command that renders a value; None for a value without such marks."""
    if not isinstance(value, str):
        return None
    return next((command for mark, command in RENDERED_BY.items() if mark.search(value)), None)
