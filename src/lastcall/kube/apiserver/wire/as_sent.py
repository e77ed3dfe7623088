"""An object with the empty lists and maps that its client sent.

Go distinguishes an empty list from none as long as an object is in memory: its messages show it, its writer becomes the
manager of a list that is always written, and some kinds count it as a change of the spec. What is stored, and what is
compared with it, has none.
"""

from collections.abc import Sequence
from typing import Any

from lastcall.kube.api.field import FieldError
from lastcall.kube.api.meta import Object
from lastcall.kube.api.schema.pruning import Empties
from lastcall.kube.api.validators.metadata import EVEN_EMPTY, NOT_OF_TEMPLATES, ONLY_ONE_SET

ROOT: Object = {}
"""Represents the object itself in `empties`, because a write makes copies of it."""


def as_sent(obj: Object, empties: Empties) -> Object:
    """Return a copy of `obj` with `empties` where they were."""
    of: dict[int, list[tuple[str, Any]]] = {}
    for struct, key, value in empties:
        of.setdefault(id(obj if struct is ROOT else struct), []).append((key, value))

    def copied(value: Any) -> Any:
        if isinstance(value, list):
            return [copied(each) for each in value]
        if not isinstance(value, dict):
            return value
        new = {key: copied(each) for key, each in value.items()}
        return new | {key: empty for key, empty in of.get(id(value), ()) if new.get(key) is None}

    found: Object = copied(obj)
    return found


def as_written(obj: Object, empties: Empties) -> Object:
    """Return `obj` with those of `empties` that are written as null without; `obj` itself for all others."""
    if not empties:
        return obj
    nulls = [each for each in empties if (obj if each[0] is ROOT else each[0]).get(each[1], "") is None]
    return as_sent(obj, nulls) if nulls else obj


def with_sent_values(errors: Sequence[FieldError], of_sent: Sequence[FieldError]) -> list[FieldError]:
    """Return `errors` with the values of those that the object as it was sent has, too."""
    left: dict[tuple[str, str], list[FieldError]] = {}
    for error in of_sent:
        left.setdefault((error.type, error.field), []).append(error)
    replaced = []
    for error in errors:
        candidates = left.get((error.type, error.field)) or []
        match = next((each for each in candidates if _same_rule(each, error)), None)
        if match is not None:
            candidates.remove(match)
        replaced.append(error if match is None else match)
    return replaced


def empty_in_templates(empties: Empties) -> bool:
    """Return whether an empty list may be too much where it was: in a template's metadata, or beside another list."""
    return any(key in EVEN_EMPTY for _, key, _ in empties)


def with_empty_in_templates(errors: list[FieldError], of_sent: Sequence[FieldError]) -> list[FieldError]:
    """Return `errors` and, in their places, those of `of_sent` that are about empty lists that are too much."""
    more = [each for each in of_sent if each not in errors and each.detail in (NOT_OF_TEMPLATES, ONLY_ONE_SET)]
    if not more:
        return errors
    placed = [each for each in of_sent if each in errors or each in more]
    return placed + [each for each in errors if each not in placed]


def _same_rule(one: FieldError, other: FieldError) -> bool:
    """The same text, or, with a comparison of two objects in it, the same beginning."""
    return one.detail.partition("\n")[0] == other.detail.partition("\n")[0]
