"""The JSON paths of CustomResourceDefinitions: `.spec.replicas`, `.status.conditions[?(@.type=="Ready")].status`.

Source: client-go util/jsonpath, the part that apiextensions allows in printer columns and subresources.
"""

import re
from functools import lru_cache
from typing import Any

from lastcall.kube.api.text.numbers import parse_int

_STEP = re.compile(
    r"\.(?P<field>(?:\\.|[^.\[\]\\])+)"
    r"|\[(?P<index>-?\d+)\]"
    r"|\[(?P<all>\*)\]"
    r"|\[(?P<quote>['\"])(?P<key>.*?)(?P=quote)\]"
    r"|\[\?\(\s*@\.(?P<left>[^=!\s]+)\s*(?P<op>==|!=)\s*(?P<q>['\"])(?P<right>.*?)(?P=q)\s*\)\]"
)
Step = tuple[str, Any]


@lru_cache(1024)
def parse_path(text: str) -> tuple[Step, ...]:
    """Return the steps of a path. Raises ValueError for what is no such path."""
    steps: list[Step] = []
    position = 0
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None:
            raise ValueError(f"invalid JSON path {text!r}")
        found = match.groupdict()
        if found["field"] is not None:
            name = re.sub(r"\\(.)", r"\1", found["field"])
            steps.append(("all", None) if name == "*" else ("field", name))
        elif found["index"] is not None:
            steps.append(("index", parse_int(found["index"])))
        elif found["all"] is not None:
            steps.append(("all", None))
        elif found["key"] is not None:
            steps.append(("field", found["key"]))
        else:
            steps.append(("filter", (parse_path("." + found["left"]), found["op"], found["right"])))
        position = match.end()
    return tuple(steps)


def values_at(value: Any, path: str) -> list[Any]:
    """Return all values at a path, none for a path that leads nowhere."""
    return _find([value], parse_path(path))


def _find(values: list[Any], steps: tuple[Step, ...]) -> list[Any]:
    for kind, what in steps:
        values = [found for value in values for found in _step(value, kind, what)]
    return values


def _step(value: Any, kind: str, what: Any) -> list[Any]:
    if kind == "field":
        return [value[what]] if isinstance(value, dict) and what in value else []
    if kind == "index":
        return [value[what]] if isinstance(value, list) and -len(value) <= what < len(value) else []
    items = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    if kind == "all":
        return items
    path, operator, wanted = what
    return [each for each in items if (wanted in map(_text, _find([each], path))) is (operator == "==")]


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def fields_of(path: str) -> tuple[str, ...] | None:
    """Return the names of a path of fields only."""
    steps = parse_path(path)
    return tuple(what for _, what in steps) if all(kind == "field" for kind, _ in steps) else None
