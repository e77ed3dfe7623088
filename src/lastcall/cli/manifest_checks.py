"""What the API server would say of a manifest, asked before anything starts: unknown fields, types, values."""

import re
from collections.abc import Iterator

from lastcall.api.decoding import DecodeError, check_fields
from lastcall.api.meta import Object
from lastcall.api.resources import Resource

Problem = tuple[str, str]
"""(field path, what is wrong with it)."""

_UNKNOWN = re.compile(r'^(unknown|duplicate) field "(?P<field>.*)"$')


def schema_problems(obj: Object, resource: Resource) -> Iterator[Problem]:
    """Unknown fields and values of the wrong type; other rules are asked only when the types are right."""
    try:
        found = check_fields(resource, obj)
    except DecodeError as error:
        yield "", str(error)
        return
    for problem in found:
        match = _UNKNOWN.match(problem)
        if match:
            yield match["field"], f"not a field of {resource.kind}: correct its name or its place, or leave it out"
        else:
            yield "", problem
