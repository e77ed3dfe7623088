"""metadata through its life: what the server fills in and keeps.

Source: apiserver pkg/registry/rest/{create,update,meta}.go.
"""

from datetime import datetime

from lastcall.api.errors import bad_request, plain_failure
from lastcall.api.meta import Object
from lastcall.api.resources import Resource
from lastcall.api.text.numbers import NumberError, parse_uint
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
    """metadata of a new object: system fields are the server's, whatever the client wrote.

    (`FillObjectMetaSystemFields`)
    """
    new = {key: value for key, value in normalize(meta).items() if key in KEPT_ON_CREATE}
    if namespace:
        new["namespace"] = namespace
    new["uid"] = uid
    new["creationTimestamp"] = rfc3339(now)
    return new


def check_new_version(version: str | None) -> None:
    """The store takes no new object of a version; what is not a version does not count.

    Raises the (reason-less) 500 StatusError. (etcd3 store.go:Create)
    """
    try:
        number = parse_uint(version or "0")
    except NumberError:
        return
    if number:
        raise plain_failure("resourceVersion should not be set on objects to be created")


def for_update(new: Object, old: Object) -> Object:
    """metadata of an update: what may not be left out or changed comes from the stored object (BeforeUpdate)."""
    meta = normalize(new)
    if old.get("namespace"):
        meta.setdefault("namespace", old["namespace"])
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


OTHER_NAMESPACE = "the namespace of the provided object does not match the namespace sent on the request"


def undeterminable(name: str) -> str:
    return f"the name of the object ({name} based on URL) was undeterminable: name must be provided"


def check_names(resource: Resource, obj: Object, namespace: str, name: str | None) -> None:
    """Body against URL. `name` is the URL's for a PUT, None for a POST. Raises the 400 StatusError."""
    meta = obj["metadata"]
    given = meta.get("namespace") or ""
    if resource.namespaced:
        if given and given != namespace:
            raise bad_request(OTHER_NAMESPACE)
        if not given:
            meta["namespace"] = namespace
    else:
        meta.pop("namespace", None)
    if name is None:
        return
    if not meta.get("name"):
        raise bad_request(undeterminable(name))
    if meta["name"] != name:
        raise bad_request(f"the name of the object ({meta['name']}) does not match the name on the URL ({name})")
