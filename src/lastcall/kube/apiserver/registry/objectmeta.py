"""metadata through its life: what the server fills in and keeps.

Source: apiserver pkg/registry/rest/{create,update,meta}.go.
"""

from lastcall.kube.api.errors import bad_request, plain_failure
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import Resource
from lastcall.kube.api.text.numbers import NumberError, parse_uint
from lastcall.kube.apiserver.wire.context import RequestContext

WIPED_ON_POST = ("deletionTimestamp", "deletionGracePeriodSeconds")
"""Kept before 1.37 of an object that a PUT or an apply creates. (`WipeObjectMetaSystemFields`)"""
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
    *WIPED_ON_POST,
)
_OMIT_EMPTY = (
    "generateName", "namespace", "labels", "annotations", "ownerReferences", "finalizers", "generation",
    "managedFields",
)  # fmt: skip


def normalize(meta: Object) -> Object:
    """Return a copy without empty and null fields, as the Go types encode them."""
    return {
        key: value
        for key, value in meta.items()
        if value is not None and key != "selfLink" and (value or key not in _OMIT_EMPTY)
    }


def for_create(meta: Object, *, uid: str, namespace: str, now: str) -> Object:
    """Return the metadata of a new object: system fields are the server's. `now` is RFC 3339.

    (`FillObjectMetaSystemFields`)
    """
    new = {key: value for key, value in normalize(meta).items() if key in KEPT_ON_CREATE}
    if namespace:
        new["namespace"] = namespace
    new["uid"] = uid
    new["creationTimestamp"] = now
    return new


def admitted(resource: Resource, meta: Object, filled: Object, namespace: str, name: str) -> Object:
    """Return metadata of a new object that admission has changed, with the system's fields as they were before.

    `filled` is metadata as admission got it. `name` is that of the URL, "" for a POST, which admission may give another
    name. Raises the 400 StatusError for another namespace or name. Kubernetes keeps an object that a PUT or an apply
    creates under the name of the URL, whatever name admission gives it; no request reads such an object.

    (`FillObjectMetaSystemFields`, `BeforeCreate`)
    """
    new = for_create(meta, uid=filled["uid"], namespace="", now=filled["creationTimestamp"])
    ensure_namespace(new, namespace if resource.namespaced else None)
    if name and new.get("name"):
        check_name(new, name)
    return new


def wiped(obj: Object) -> Object:
    """Return a new object as a POST accepts it."""
    meta = obj["metadata"]
    if WIPED_ON_POST[0] not in meta and WIPED_ON_POST[1] not in meta:
        return obj
    return {**obj, "metadata": {key: value for key, value in meta.items() if key not in WIPED_ON_POST}}


def as_new(obj: Object, minor: int) -> Object:
    """Return an object that a PUT or an apply creates in Kubernetes 1.`minor`.

    Since 1.37 it is as a POST takes it (kubernetes#138908).
    """
    return wiped(obj) if minor >= 37 else obj


def check_version_of_missing(version: str | None) -> None:
    """Check that the version of an object that an update creates is one. Any version is accepted.

    Raises the (reason-less) 500 StatusError. (registry/store.go:Update)
    """
    try:
        parse_uint(version or "0")
    except NumberError as error:
        raise plain_failure(str(error)) from None


def check_new_version(version: str | None) -> None:
    """Check that a new object has no version. What is not a version does not count.

    Raises the (reason-less) 500 StatusError. (etcd3 store.go:Create)
    """
    if not version:
        return
    try:
        number = parse_uint(version)
    except NumberError:
        return
    if number:
        raise plain_failure("resourceVersion should not be set on objects to be created")


def for_update(new: Object, old: Object) -> Object:
    """Return metadata of an update: what may not be left out or changed comes from the stored object.

    Raises the 400 StatusError for another namespace. (`BeforeUpdate`)
    """
    meta = normalize(new)
    ensure_namespace(meta, old.get("namespace"))
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


def repeated_owners(uids: list[str], *, patching: bool) -> str:
    """Return the warning for the client that sent them. (handlers/helpers.go)"""
    after = " after mutating admission happens" if patching else ""
    return (
        f".metadata.ownerReferences contains duplicate entries{after}; API server dedups owner references in 1.20+, "
        "and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: "
        + ", ".join(uids)
    )


def owners_once(meta: Object) -> tuple[Object, list[str]] | None:
    """Return (metadata with each owner once, the uids of those that came again); None where all are different.

    (handlers/helpers.go:dedupOwnerReferences, which compares all of an owner)
    """
    owners = meta.get("ownerReferences") or []
    if len(owners) < 2:
        return None
    left: list[Object] = []
    repeated: list[str] = []
    for owner in owners:
        if owner not in left:
            left.append(owner)
        elif (uid := owner.get("uid") or "") not in repeated:
            repeated.append(uid)
    return ({**meta, "ownerReferences": left}, repeated) if repeated else None


def with_owners_once(context: RequestContext, meta: Object) -> Object:
    """Drop an owner that is given again, and warn the client."""
    if not meta.get("ownerReferences") or (found := owners_once(meta)) is None:
        return meta
    meta, repeated = found
    if not context.in_process:
        context.warnings.append(repeated_owners(repeated, patching=context.patching))
    return meta


OTHER_NAMESPACE = "the namespace of the provided object does not match the namespace sent on the request"


def undeterminable(name: str) -> str:
    return f"the name of the object ({name} based on URL) was undeterminable: name must be provided"


def ensure_namespace(meta: Object, namespace: str | None) -> None:
    """Set the namespace, remove that of an object of the cluster (None), or raise the 400 StatusError for another one.

    (rest/meta.go:EnsureObjectNamespaceMatchesRequestNamespace)
    """
    given = meta.get("namespace") or ""
    if namespace is None:
        meta.pop("namespace", None)
    elif given and given != namespace:
        raise bad_request(OTHER_NAMESPACE)
    elif not given:
        meta["namespace"] = namespace


def check_name(meta: Object, name: str) -> None:
    """Raise the 400 StatusError unless the name is that of the URL."""
    if not meta.get("name"):
        raise bad_request(undeterminable(name))
    if meta["name"] != name:
        raise bad_request(f"the name of the object ({meta['name']}) does not match the name on the URL ({name})")


def check_names(resource: Resource, obj: Object, namespace: str, name: str | None) -> None:
    """Check the body against the URL. `name` is the URL's for a PUT, None for a POST. Raises the 400 StatusError."""
    ensure_namespace(obj["metadata"], namespace if resource.namespaced else None)
    if name is not None:
        check_name(obj["metadata"], name)
