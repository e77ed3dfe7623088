"""Objects as webhooks see them, and what they are afterwards."""

from lastcall.kube.api.defaults.kinds import set_defaults
from lastcall.kube.api.errors import StatusError, internal
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import Resource
from lastcall.kube.api.schema.checks import json_type
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.conversions.table import conversion_of
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.kube.apiserver.wire.preparing import prepare_copy

_NOBODY = UserInfo("")


def convert(resource: Resource, obj: Object, other: Resource) -> Object:
    """Convert an object that `resource` shows to what `other` shows: another name of the same objects."""
    if resource == other:
        return obj
    here, there = conversion_of(resource), conversion_of(other)
    stored = obj if here is None else here.store(obj)
    shown = stored if there is None else there.show(stored)
    return {**shown, "kind": other.kind, "apiVersion": other.api_version}


def prepared(resource: Resource, obj: Object, *, strict: bool = False) -> Object:
    """Return a patched object with its defaults and without unknown fields, which are errors if `strict`.

    Raises the 500 StatusError for what is not an object of the resource.
    """
    for key in ("kind", "apiVersion"):
        if not isinstance(value := obj.get(key), str | None):
            text = f"json: cannot unmarshal {json_type(value)} into Go struct field .{key} of type string"
            raise internal(f"couldn't get version/kind; json parse error: {text}")
    context = RequestContext(_NOBODY, field_validation="Strict" if strict else "Ignore")
    try:
        obj = prepare_copy(context, resource, obj)
    except StatusError as error:
        if error.code != 400:
            raise
        found = error.message.rpartition(" cannot be handled as a ")[2].partition(": ")[2]
        raise internal(found or error.message) from None
    conversion = conversion_of(resource)
    if conversion is None:
        set_defaults(resource, obj)
        return obj
    stored = conversion.store(obj)
    set_defaults(conversion.stored, stored)
    return conversion.show(stored)
