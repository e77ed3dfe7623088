"""Whether a manifest that is applied fits its schema, in the original's words.

Source: structured-merge-diff typed/validate.go, typed/helpers.go.
"""

from typing import Any

from lastcall.kube.api.field import go_json
from lastcall.kube.api.meta import Object
from lastcall.kube.apiserver.fieldmanager.fields import element_text
from lastcall.kube.apiserver.fieldmanager.types import Type


def problems(type_: Type, obj: Object) -> list[str]:
    """Return what is wrong, each with its path: `.spec.bogus: field not declared in schema`."""
    found: list[str] = []
    _check(type_, obj, "", found)
    return found


def error_text(found: list[str]) -> str:
    return found[0] if len(found) == 1 else "\n".join(["errors:", *(f"  {each}" for each in found)])


def _check(type_: Type, value: Any, path: str, found: list[str]) -> None:
    if value is None:
        return
    if type_.kind in ("struct", "map"):
        if not isinstance(value, dict):
            found.append(f"{path}: expected map, got &{{{_go_value(value)}}}")
            return
        for name, item in value.items():
            if type_.kind == "struct" and name not in type_.fields and not type_.open:
                found.append(f"{path}.{name}: field not declared in schema")
                return  # what comes after it is not looked at (typed/validate.go:visitMapItems)
            _check(type_.child(name)[1], item, f"{path}.{name}", found)
    elif type_.kind in ("list", "set"):
        if not isinstance(value, list):
            found.append(f"{path}: expected list, got &{{{_go_value(value)}}}")
            return
        _check_items(type_, value, path, found)
    elif type_.kind == "scalar" and (words := _scalar_problem(type_, value)) is not None:
        found.append(f"{path}: {words}")


def _check_items(type_: Type, items: list[Any], path: str, found: list[str]) -> None:
    assert type_.item is not None
    seen: set[str] = set()
    for index, item in enumerate(items):
        element = f"i:{index}"
        if not type_.leaf:
            if item is None or (type_.keys and not isinstance(item, dict)):
                found.append(f"{path}: element {index}: associative list with keys may not have non-map elements")
                return  # what comes after it is not looked at
            try:
                element = type_.element(item)
            except ValueError as error:
                found.append(f"{path}: element {index}: {error}")
                return
            if element in seen:
                found.append(f"{path}: duplicate entries for key {element_text(element)}")
            seen.add(element)
        _check(type_.item, item, path + element_text(element), found)


def _scalar_problem(type_: Type, value: Any) -> str | None:
    assert type_.field is not None
    shape, is_number = type_.field.shape, isinstance(value, int | float) and not isinstance(value, bool)
    if shape in ("integer", "number"):
        return None if is_number else f"expected numeric (int or float), got {_go_type(value)}"
    if shape == "boolean":
        return None if isinstance(value, bool) else f"expected boolean, got &{{{_go_value(value)}}}"
    if shape == "string" or type_.field.format == "byte":
        if isinstance(value, str):
            return None
        shown = _go_value(value) if isinstance(value, bool | int | float) else _go_literal(value)
        return f"expected string, got &value.valueUnstructured{{Value:{shown}}}"
    if isinstance(value, dict | list):
        return f"expected any scalar, got &{{{_go_value(value)}}}"
    return None


def _go_type(value: Any) -> str:
    names: dict[type, str] = {bool: "bool", str: "string", dict: "map[string]interface {}", list: "[]interface {}"}
    return names.get(type(value), "float64")


def _go_value(value: Any) -> str:
    """As Go's `%v` prints decoded JSON."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{_go_value(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(_go_value(item) for item in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return "<nil>" if value is None else str(value)


def _go_literal(value: Any) -> str:
    """As Go's `%#v` prints decoded JSON."""
    if isinstance(value, dict):
        return "map[string]interface {}{" + ", ".join(f'"{k}":{_go_literal(value[k])}' for k in sorted(value)) + "}"
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(_go_literal(item) for item in value) + "}"
    return "interface {}(nil)" if value is None else go_json(value)
