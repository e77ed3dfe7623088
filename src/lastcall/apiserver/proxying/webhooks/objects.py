"""Objects as webhooks see them, and what they are afterwards."""

from lastcall.api.defaults.kinds import set_defaults
from lastcall.api.meta import Object
from lastcall.api.resources import Resource
from lastcall.apiserver.auth.authentication import UserInfo
from lastcall.apiserver.faces.table import face_of
from lastcall.apiserver.wire.bodies import prepare
from lastcall.apiserver.wire.context import RequestContext

_NOBODY = UserInfo("")


def convert(resource: Resource, obj: Object, other: Resource) -> Object:
    """An object that `resource` shows, as `other` shows it: another name of the same objects."""
    if resource == other:
        return obj
    here, there = face_of(resource), face_of(other)
    stored = obj if here is None else here.store(obj)
    shown = stored if there is None else there.show(stored)
    return {**shown, "kind": other.kind, "apiVersion": other.api_version}


def prepared(resource: Resource, obj: Object) -> Object:
    """A patched object without unknown fields and with its defaults. Raises StatusError."""
    obj = prepare(RequestContext(_NOBODY, field_validation="Ignore"), resource, obj, shared=True)
    face = face_of(resource)
    if face is None:
        set_defaults(resource, obj)
        return obj
    stored = face.store(obj)
    set_defaults(face.stored, stored)
    return face.show(stored)
