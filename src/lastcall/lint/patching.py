"""JSON Patches of findings, performed. Pure."""

# check: pure

from collections.abc import Sequence
from typing import Any

from lastcall.kube.api import Object, copy_object
from lastcall.lint.subject import Op


def patched(obj: Object, ops: Sequence[Op]) -> Object | None:
    """Return `obj` with the patch in it, None where that does not fit; `obj` stays as it is."""
    new = copy_object(obj)
    try:
        for op in ops:
            _perform(new, op)
    except (KeyError, IndexError, TypeError, ValueError):
        return None
    return new


def _perform(value: Any, op: Op) -> None:
    for step in op.path[:-1]:
        value = value[step]
    last = op.path[-1]
    if isinstance(value, list) and op.op == "add":
        value.insert(int(last), op.value)
        return
    if op.op != "add":
        value[last]
    if op.op == "remove":
        del value[last]
    else:
        value[last] = op.value
