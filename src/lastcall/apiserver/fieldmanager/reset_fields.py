"""Fields that a write through some endpoint cannot change, and which therefore make nobody their manager.

Source: GetResetFields of pkg/registry/*/*/strategy.go.
"""

from lastcall.api.resources import DEPLOYMENTS, PODS, Resource
from lastcall.apiserver.fieldmanager.fields import EMPTY, FieldSet, set_of

_STATUS = set_of(("f:status",))
_SPEC = set_of(("f:spec",))
_OF_STATUS_WRITES: dict[Resource, FieldSet] = {
    PODS: set_of(("f:spec",), ("f:metadata", "f:deletionTimestamp"), ("f:metadata", "f:ownerReferences")),
    DEPLOYMENTS: set_of(("f:spec",), ("f:metadata", "f:labels")),
}


def reset_fields(resource: Resource, subresource: str) -> FieldSet:
    if subresource == "status":
        return _OF_STATUS_WRITES.get(resource, _SPEC)
    return _STATUS if "status" in resource.subresources else EMPTY
