"""The shape of API objects: plain JSON as decoded from the wire.

An object is a `dict` with the field names of the Kubernetes API (camelCase). Objects taken from a cache, a watch or a
store are shared: treat them as read-only, and use `copy_object` before changing one.
"""

from collections.abc import Mapping
from typing import Any, TypeVar, cast

import orjson

Object = dict[str, Any]
"""A Kubernetes API object of any kind, or any part of one that is a JSON object."""

AnyObject = Mapping[str, Any]
"""The same, to be read only: a `Pod` of `lastcall.kube.api.types` is one, too."""

T = TypeVar("T", bound=AnyObject)


def copy_object(obj: T) -> T:
    """Return a deep copy (by encoding and decoding, ten times faster than `copy.deepcopy`).

    managedFields, which nobody changes in place and which are as long as all the rest, are shared.
    """
    meta = obj.get("metadata")
    entries = meta.get("managedFields") if isinstance(meta, dict) else None
    if not isinstance(meta, dict) or not entries:
        return cast(T, orjson.loads(orjson.dumps(obj)))
    rest = {key: value for key, value in meta.items() if key != "managedFields"}
    new: Object = orjson.loads(orjson.dumps({**obj, "metadata": rest}))
    new["metadata"]["managedFields"] = entries
    return cast(T, new)


def with_own_metadata(obj: T) -> T:
    """Return a copy in whose metadata members may be set; these and everything else are shared with `obj`."""
    return cast(T, {**obj, "metadata": dict(obj.get("metadata") or ())})


def metadata(obj: Object) -> Object:
    """Return `metadata`, made when absent."""
    return cast(Object, obj.setdefault("metadata", {}))


# Asked for some hundred times in a Pod's life: no `cast` here, which is a call, and no empty dict for each.
_NOTHING: Object = {}


def name_of(obj: AnyObject) -> str:
    name: str = obj.get("metadata", _NOTHING).get("name", "")
    return name


def namespace_of(obj: AnyObject) -> str:
    """Return `metadata.namespace`; "" for a cluster-scoped object."""
    namespace: str = obj.get("metadata", _NOTHING).get("namespace", "")
    return namespace


def uid_of(obj: AnyObject) -> str:
    uid: str = obj.get("metadata", _NOTHING).get("uid", "")
    return uid


def resource_version_of(obj: AnyObject) -> str:
    version: str = obj.get("metadata", _NOTHING).get("resourceVersion", "")
    return version


def labels_of(obj: AnyObject) -> dict[str, str]:
    labels: dict[str, str] = obj.get("metadata", _NOTHING).get("labels") or {}
    return labels


def annotations_of(obj: AnyObject) -> dict[str, str]:
    annotations: dict[str, str] = obj.get("metadata", _NOTHING).get("annotations") or {}
    return annotations


def is_terminating(obj: AnyObject) -> bool:
    """Return True once `metadata.deletionTimestamp` is set."""
    return obj.get("metadata", _NOTHING).get("deletionTimestamp") is not None
