"""The order of members in a patched object that an error shows. Pure.

Go reads only those objects of a document apart that a patch reaches into, and writes them with their members by name;
what it does not reach into keeps the text that it had. (gopkg.in/evanphx/json-patch.v4)
"""

from typing import Any

from lastcall.kube.api.meta import Object
from lastcall.kube.api.protobuf.ordering import by_name, in_go_order
from lastcall.kube.client.api import JSON_PATCH


def as_shown(content_type: str, patch: Any, old: Object, new: Object) -> Object:
    """Return `new`, which `patch` has made of `old`, with its members in the order of Kubernetes's text."""
    if content_type == JSON_PATCH:
        reached = [
            tuple(str(operation[key]).split("/")[1:])
            for operation in patch
            for key in ("path", "from")
            if operation.get(key)
        ]
        ordered: Object = _along(in_go_order(new, old), new, reached)
        return ordered
    merged: Object = _merged(in_go_order(old, old), patch, new)
    return merged


def _merged(old: Any, patch: Any, new: Any) -> Any:
    if not isinstance(patch, dict) or not isinstance(new, dict):
        return by_name(new)
    before = old if isinstance(old, dict) else {}
    return {
        key: _merged(before.get(key), patch[key], new[key]) if key in patch else before.get(key, new[key])
        for key in sorted(new)
    }


def _along(ordered: Any, new: Any, written: list[tuple[str, ...]]) -> Any:
    """`ordered` with the objects on the ways to what was written sorted, and what was written as it came in `new`."""
    if () in written:
        return new
    if isinstance(ordered, dict):
        parts = [(key.replace("~", "~0").replace("/", "~1"), key) for key in sorted(ordered)]
        return {key: _step(part, ordered[key], new[key], written) for part, key in parts}
    return [_step(str(at), each, new[at], written) for at, each in enumerate(ordered)]


def _step(part: str, ordered: Any, new: Any, written: list[tuple[str, ...]]) -> Any:
    further = [way[1:] for way in written if way[:1] == (part,)]
    return (
        _along(ordered, new, further)
        if further and isinstance(ordered, dict | list)
        else ordered
        if not further
        else new
    )
