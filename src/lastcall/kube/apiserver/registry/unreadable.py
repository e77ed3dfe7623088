"""What is in a store when a server starts: each value is an object of its kind, under its own key, or it is set aside.

Kubernetes answers a GET of such an object, and each list that it is in, with a 500, and removes it on a DELETE with
`ignoreStoreReadErrorWithClusterBreakingPotential`. Here lists and watches go on without it and warn.

Sources: apiserver pkg/storage/etcd3/corrupt_obj_deleter.go, pkg/registry/generic/registry/corrupt_obj_deleter.go
(feature AllowUnsafeMalformedObjectDeletion).
"""

# check: pure

from collections.abc import Sequence

import orjson

from lastcall.kube.api.custom.kinds import CustomResource
from lastcall.kube.api.defaults.kinds import set_defaults
from lastcall.kube.api.errors import StatusError, status_failure
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import CONFIGMAPS, Resource
from lastcall.kube.api.schema.checks import DecodeError
from lastcall.kube.api.schema.decoding import decode_fields
from lastcall.kube.api.schema.types import struct_for
from lastcall.kube.api.validation import validate_create
from lastcall.kube.apiserver.registry.objects import with_type

MOST_TOLD = 5
"""Objects that one warning names."""


class UnreadableError(ValueError):
    """A stored value is not an object of its kind, or not the one that its key names. The text is one sentence."""


def read_stored(resource: Resource, namespace: str, name: str, encoded: bytes) -> bytes:
    """Return the JSON of a stored object in the form in which objects are stored, mostly `encoded` itself.

    `namespace` and `name` are those of its key. Raises UnreadableError.
    """
    try:
        obj = orjson.loads(encoded)
    except ValueError as error:
        raise UnreadableError(f"it is not JSON: {error}") from None
    if not isinstance(obj, dict):
        raise UnreadableError("it is not a JSON object")
    _check_kind(resource, obj)
    meta = obj.get("metadata")
    if not isinstance(meta, dict):
        raise UnreadableError("it has no metadata")
    _check_metadata(meta, namespace, name)
    if not isinstance(resource, CustomResource):
        obj = _with_spec(resource, obj)
    shown = orjson.dumps(with_type(obj, resource) if not isinstance(resource, CustomResource) else obj)
    try:
        if isinstance(resource, CustomResource):  # its schema may have changed since it was stored
            decode_fields(CONFIGMAPS, {"metadata": meta})
        else:
            decode_fields(resource, obj)
    except DecodeError as error:
        raise UnreadableError(str(error)) from None
    return shown


def _check_kind(resource: Resource, obj: Object) -> None:
    kind, api_version = obj.get("kind"), obj.get("apiVersion")
    group = str(api_version).rpartition("/")[0]
    if kind != resource.kind or (group if isinstance(resource, CustomResource) else api_version) != (
        resource.group if isinstance(resource, CustomResource) else resource.api_version
    ):
        raise UnreadableError(f"it is a {kind} of {api_version}, not a {resource.kind} of {resource.api_version}")


def _check_metadata(meta: Object, namespace: str, name: str) -> None:
    """Raise UnreadableError for metadata that every stored object has, and that this one has not."""
    for key, expected in (("name", name), ("namespace", namespace)):
        if (meta.get(key) or "") != expected:
            raise UnreadableError(f"its metadata.{key} is {meta.get(key)!r}, its key says {expected!r}")
    for key in ("uid", "creationTimestamp", "resourceVersion"):
        if not meta.get(key) or not isinstance(meta[key], str):
            raise UnreadableError(f"it has no metadata.{key}")
    if not (meta["resourceVersion"].isascii() and meta["resourceVersion"].isdecimal()):
        raise UnreadableError(f"its metadata.resourceVersion is {meta['resourceVersion']!r}")


def _with_spec(resource: Resource, obj: Object) -> Object:
    """Return `obj` with the spec that its defaults give it. Raises UnreadableError where it has to say one itself."""
    if "spec" not in struct_for(resource).fields or isinstance(obj.get("spec"), dict):
        return obj
    if obj.get("spec") is not None:
        raise UnreadableError("its spec is not an object")
    filled = {key: value for key, value in obj.items() if key != "spec"}
    set_defaults(resource, filled)
    if found := [each for each in validate_create(resource, filled) if each.field.startswith("spec")]:
        raise UnreadableError(f"it has no spec: {found[0]}")
    return filled


# -- words -------------------------------------------------------------------------------------------------------------


def names_of_key(resource: Resource, rest: str) -> tuple[str, str]:
    """Return (namespace, name) of a key without the prefix of its kind."""
    namespace, _, name = rest.rpartition("/") if resource.namespaced else ("", "", rest)
    return namespace, name


def how_to_delete(resource: Resource, namespace: str, name: str) -> str:
    """Return the command that removes an object."""
    return f"kubectl delete {resource.group_resource} {name}" + (f" -n {namespace}" if namespace else "")


def read_error(resource: Resource, namespace: str, name: str, key: str, why: str) -> StatusError:
    """Return the 500 StatusError of a request for an object that is set aside."""
    way_out = how_to_delete(resource, namespace, name)
    message = f"the stored object {key} cannot be read: {why}. Delete it with: {way_out}"
    cause = {"reason": "UnexpectedServerResponse", "message": why, "field": key}
    details = {"name": name, "group": resource.group, "kind": resource.plural, "causes": [cause]}
    return status_failure(500, "StorageReadError", message, {key: value for key, value in details.items() if value})


def warning_of(keys: Sequence[str]) -> str:
    """Return the warning of a list that the objects of these keys are not in."""
    more = f" and {len(keys) - MOST_TOLD} more" if len(keys) > MOST_TOLD else ""
    count = "1 stored object" if len(keys) == 1 else f"{len(keys)} stored objects"
    verb = "is" if len(keys) == 1 else "are"
    return f"{count} cannot be read and {verb} missing here: {', '.join(keys[:MOST_TOLD])}{more}"
