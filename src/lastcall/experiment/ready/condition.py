"""What `wait_for` waits for, in the words of kubectl wait. Pure.

Source: kubectl pkg/cmd/wait (wait.go:conditionFuncFor, condition.go:checkCondition, json.go:JSONPathWait).
"""

# check: pure

from collections.abc import Callable
from typing import Any

from lastcall.errors import UserError
from lastcall.kube.api import Object, parse_path, values_at

__tracebackhide__ = True  # pytest shows the caller's line

Missing = Callable[[Object | None], str]
"""Takes an object, None while it does not exist; returns what is missing, "" when nothing is."""

_ABSENT = "it does not exist"
WORDS = "condition=NAME[=VALUE], jsonpath={PATH}[=VALUE], create or delete"


def parse_condition(text: str) -> Missing:
    """Return what the words mean. Raises UserError."""
    kind, equals, rest = text.partition("=")
    if text == "create":
        return lambda obj: _ABSENT if obj is None else ""
    if text == "delete":
        return lambda obj: "" if obj is None else "it exists"
    if kind == "condition" and rest:
        name, _, wanted = rest.partition("=")
        return lambda obj: _condition(obj, name, wanted or "True")
    if kind == "jsonpath" and equals:
        return _json_path(text, rest)
    raise UserError(f"unknown condition {text!r}: write {WORDS}")


def _condition(obj: Object | None, name: str, wanted: str) -> str:
    if obj is None:
        return _ABSENT
    status = obj.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    for each in conditions if isinstance(conditions, list) else ():
        if isinstance(each, dict) and str(each.get("type")).casefold() == name.casefold():
            observed = each.get("observedGeneration", (status or {}).get("observedGeneration"))
            if isinstance(observed, int) and observed < (obj["metadata"].get("generation") or 0):
                return "its controller has not seen its newest spec"
            now = str(each.get("status"))
            return "" if now.casefold() == wanted.casefold() else f"its condition {each.get('type')} is {now}"
    return f"it has no condition {name}"


def _json_path(text: str, given: str) -> Missing:
    """`{.status.phase}=Running`; braces and the first dot may be left out, as kubectl allows."""
    path, equals, wanted = given.strip("'"), "", ""
    if path.startswith("{"):
        path, closing, wanted = path[1:].rpartition("}")
        equals, wanted = wanted[:1], wanted[1:]
        problem = not closing or equals not in ("", "=")
    else:
        path, equals, wanted = path.partition("=")
        problem = False
    path = path if path.startswith((".", "[")) else f".{path}"
    try:
        parse_path(path)
    except ValueError:
        problem = True
    if problem or path == "." or (equals and not wanted):
        raise UserError(f"cannot read {text!r}: write jsonpath={{.status.phase}}=Running, or without =VALUE")
    return lambda obj: _at(obj, path, wanted if equals else None)


def _at(obj: Object | None, path: str, wanted: str | None) -> str:
    if obj is None:
        return _ABSENT
    found = values_at(obj, path)
    if not found:
        return f"{path} is not set"
    now = _text(found[0]) if len(found) == 1 else ", ".join(map(_text, found))
    return "" if wanted in (None, now) else f"{path} is {now!r:.200}"


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
