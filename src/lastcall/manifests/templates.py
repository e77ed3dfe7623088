"""Templates that nobody has rendered: how they are recognised, and what renders them. Pure.

A text with such marks may be meant as it is (a script, an alert): they count only where Kubernetes refuses the text.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from lastcall.manifests.paths import Path, value_at
from lastcall.manifests.yaml_documents import YAMLProblem, read_documents

_GO = re.compile(r"\{\{.*?\}\}", re.DOTALL)
"""Helm's, and of everything else that is written in Go's templates."""
_ALONE = re.compile(r"^[ \t]*\{\{.*?\}\}[ \t]*$", re.DOTALL | re.MULTILINE)
_SHELL = re.compile(r"\$\{[A-Za-z_]\w*(?:[-:=?+][^}]*)?\}")
RENDERED_BY = {_GO: "helm template RELEASE CHART", _SHELL: "envsubst < FILE"}
_POD_SPECS: tuple[Path, ...] = (
    ("spec",), ("spec", "template", "spec"), ("spec", "jobTemplate", "spec", "template", "spec"),
)  # fmt: skip


def template_in(text: str) -> tuple[int, str] | None:
    """Return the line (from 1) of the first mark of an unreadable text, and the command that renders the text.

    None if it is not its marks that keep it from being YAML.
    """
    found = _GO.search(text)
    if found is None:
        return None
    try:
        list(read_documents(_GO.sub("x", _ALONE.sub("", text))))
    except YAMLProblem:
        return None
    return text.count("\n", 0, found.start()) + 1, RENDERED_BY[_GO]


def how_to_render(value: Any) -> str | None:
    """Return the command that renders a value; None for a value without such marks."""
    if not isinstance(value, str):
        return None
    return next((command for mark, command in RENDERED_BY.items() if mark.search(value)), None)


def unrendered_field(obj: Any, refused: Iterable[Path]) -> tuple[Path, str] | None:
    """Return the first field with such marks that Kubernetes refuses, and the command that renders it.

    `refused` are those that the API server refuses; the kubelet refuses images (InvalidImageName).
    """
    for path in (*refused, *_images(obj)):
        if (command := how_to_render(value_at(obj, path))) is not None:
            return path, command
    return None


def _images(obj: Any) -> Iterator[Path]:
    for above in _POD_SPECS:
        for which in ("initContainers", "containers"):
            containers = value_at(obj, (*above, which))
            for index in range(len(containers) if isinstance(containers, list) else 0):
                yield (*above, which, index, "image")
