"""The type of a resource's objects, built in or declared, and an object that has no values yet.

Source: structured-merge-diff schema/elements.go; the facts are those of `lastcall.kube.api.schema.types`.
"""

from functools import lru_cache
from typing import Any

from lastcall.kube.api.custom.kinds import CustomResource
from lastcall.kube.api.resources import Resource
from lastcall.kube.api.schema.types import empty, struct_for
from lastcall.kube.apiserver.fieldmanager.custom_types import custom_type
from lastcall.kube.apiserver.fieldmanager.types import Type

KNOWN_TYPES = 512
"""Of how many kinds the type is remembered: a definition that changes makes a new one."""


@lru_cache(KNOWN_TYPES)
def type_of(resource: Resource) -> Type:
    """Return the type of a resource's objects."""
    if isinstance(resource, CustomResource):
        return custom_type(resource)
    return Type(None, struct_for(resource))


@lru_cache(KNOWN_TYPES)
def empty_object(resource: Resource) -> dict[str, Any]:
    """Return an object without any fields, as Go encodes it. A create is compared with it. Do not change it."""
    if isinstance(resource, CustomResource):
        return {}
    return empty(struct_for(resource))
