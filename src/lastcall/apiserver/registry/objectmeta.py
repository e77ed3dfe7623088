"""metadata through its life: what the server fills in and keeps.

Source: apiserver pkg/registry/rest/{create,update,meta}.go.
"""

from datetime import datetime

from lastcall.api.errors import plain_failure
from lastcall.api.meta import Object
from lastcall.world.clock import rfc3339

KEPT_ON_CREATE = (
    "name",
    "generateName",
    "namespace",
    "generation",
    "labels",
    "annotations",
    "ownerReferences",
    "finalizers",
    "managedFields",
)
_OMIT_EMPTY = (
    "generateName", "namespace", "labels", "annotations", "ownerReferences", "finalizers", "generation",
    "managedFields",
)  # fmt: skip


def normalize(meta: Object) -> Object:
    """A copy without empty and null fields, as the Go types encode them."""
    return {
        key: value
        for key, value in meta.items()
        if value is not None and key != "selfLink" and (value or key not in _OMIT_EMPTY)
    }


def for_create(meta: Object, *, uid: str, namespace: str, now: datetime) -> Object:
    """metadata of a new object: system fields are the server's, whatever the client wrote (FillObjectMetaSystemFields).

    Raises the (reason-less) 500 StatusError when resourceVersion is set.
    """
    if meta.get("resourceVersion"):
        raise plain_failure("resourceVersion should not be set on objects to be created")
    new = {key: value for key, value in normalize(meta).items() if key in KEPT_ON_CREATE}
    if namespace:
        new["namespace"] = namespace
    new["uid"] = uid
    new["creationTimestamp"] = rfc3339(now)
    return new


def for_update(new: Object, old: Object) -> Object:
    """metadata of an update: what may not be left out or changed comes from the stored object (BeforeUpdate)."""
    meta = normalize(new)
    for key in ("uid", "resourceVersion"):
        meta.setdefault(key, old[key])
    for key in ("creationTimestamp", "generation"):
        if key in old:
            meta[key] = old[key]
        else:
            meta.pop(key, None)
    if old.get("deletionTimestamp") is not None:
        meta["deletionTimestamp"] = old["deletionTimestamp"]
    if old.get("deletionGracePeriodSeconds") is not None:
        meta.setdefault("deletionGracePeriodSeconds", old["deletionGracePeriodSeconds"])
    return meta
