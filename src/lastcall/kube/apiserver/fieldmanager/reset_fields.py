"""Fields that a write through some endpoint cannot change, and which therefore make nobody their manager.

Source: GetResetFields of pkg/registry/*/*/strategy.go.
"""

from lastcall.kube.api.resources import (
    CERTIFICATESIGNINGREQUESTS,
    DEPLOYMENTS,
    FLOWSCHEMAS,
    PODS,
    PRIORITYLEVELCONFIGURATIONS,
    RESOURCECLAIMS,
    SERVICECIDRS,
    VOLUMEATTACHMENTS,
    Resource,
)
from lastcall.kube.apiserver.fieldmanager.fields import EMPTY, FieldSet, set_of

_STATUS = set_of(("f:status",))
_SPEC = set_of(("f:spec",))
_SPEC_AND_STATUS = set_of(("f:spec",), ("f:status",))
_SPEC_AND_METADATA = set_of(("f:spec",), ("f:metadata",))
_OF_STATUS_WRITES: dict[Resource, FieldSet] = {
    PODS: set_of(("f:spec",), ("f:metadata", "f:deletionTimestamp"), ("f:metadata", "f:ownerReferences")),
    DEPLOYMENTS: set_of(("f:spec",), ("f:metadata", "f:labels")),
    CERTIFICATESIGNINGREQUESTS: set_of(("f:spec",), ("f:status", "f:conditions")),
    FLOWSCHEMAS: _SPEC_AND_METADATA,
    PRIORITYLEVELCONFIGURATIONS: _SPEC_AND_METADATA,
    RESOURCECLAIMS: _SPEC_AND_METADATA,
    SERVICECIDRS: _SPEC_AND_METADATA,
    VOLUMEATTACHMENTS: _SPEC_AND_METADATA,
}
_OTHERS: dict[tuple[Resource, str], FieldSet] = {
    (PODS, "resize"): EMPTY,
    (PODS, "ephemeralcontainers"): EMPTY,
    (CERTIFICATESIGNINGREQUESTS, ""): _SPEC_AND_STATUS,
    (CERTIFICATESIGNINGREQUESTS, "approval"): set_of(("f:spec",), ("f:status", "f:certificate")),
}
"""Of a kind whose writes differ from those of all others."""


def reset_fields(resource: Resource, subresource: str) -> FieldSet:
    if subresource == "status":
        return _OF_STATUS_WRITES.get(resource, _SPEC)
    if (found := _OTHERS.get((resource, subresource))) is not None:
        return found
    return _STATUS if "status" in resource.subresources else EMPTY
