"""The order in which Go writes the members of an object: that of its type's fields, in which
protobuf.json lists them; maps by key."""

from typing import Any

from lastcall.kube.api.protobuf.decoding import fields_of, has_message, message_of

_LEAVES = frozenset({"meta.v1.Time", "meta.v1.MicroTime", "meta.v1.FieldsV1", "Quantity", "IntOrString"})


def in_go_order(obj: dict[str, Any], typed: dict[str, Any]) -> dict[str, Any]:
    """Sort the members as Go's `json.Marshal` of the type of `typed` does; by name without a type.

    `typed` is an object whose kind and apiVersion are right.
    """
    head = {key: obj[key] for key in ("kind", "apiVersion") if key in obj}
    message = message_of(typed.get("apiVersion", ""), typed.get("kind", ""))
    if not has_message(message):
        plain: dict[str, Any] = by_name(obj)
        return plain
    members: dict[str, Any] = ordered(message, obj)
    return head | members


def by_name(value: Any) -> Any:
    """Sort every member of every object by its name."""
    if isinstance(value, dict):
        return {key: by_name(value[key]) for key in sorted(value)}
    return [by_name(each) for each in value] if isinstance(value, list) else value


def ordered(message: str, value: Any) -> Any:
    """Sort the members of `value`, JSON of the type `message` (`core.v1.PodSpec`)."""
    if not isinstance(value, dict) or message in _LEAVES or not has_message(message):
        return by_name(value)
    done = _members(message, value)
    # A type's own kind and version, which protobuf leaves out, come first.
    head = {key: value[key] for key in ("kind", "apiVersion") if key in value and key not in done}
    return head | done | {key: value[key] for key in sorted(value) if key not in done and key not in head}


def _members(message: str, value: dict[str, Any]) -> dict[str, Any]:
    """Those of `value` that the type has, in its order."""
    done: dict[str, Any] = {}
    for field in fields_of(message).values():
        if field.inline and has_message(field.type):
            done |= _members(field.type, {key: value[key] for key in value if key not in done})
        if field.name not in value or field.name in done:
            continue
        found = value[field.name]
        if field.key and isinstance(found, dict):
            done[field.name] = {key: ordered(field.type, found[key]) for key in sorted(found)}
        elif isinstance(found, list):
            done[field.name] = [ordered(field.type, each) for each in found]
        else:
            done[field.name] = ordered(field.type, found)
    return done
