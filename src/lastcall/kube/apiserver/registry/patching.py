"""PATCH: a patch as a transformation of the stored object.

Source: apiserver pkg/endpoints/handlers/patch.go.
"""

from typing import Any

from lastcall.kube.api.custom.kinds import CustomResource
from lastcall.kube.api.errors import StatusError, bad_request, status_failure, unsupported_media_type
from lastcall.kube.api.errors import invalid as invalid_object
from lastcall.kube.api.field import go_json, invalid
from lastcall.kube.api.meta import Object
from lastcall.kube.api.patch import apply as patches
from lastcall.kube.api.resources import Resource
from lastcall.kube.api.schema.checks import json_type, known_kind, unconverted
from lastcall.kube.apiserver.registry.objectmeta import OTHER_NAMESPACE, check_name, undeterminable
from lastcall.kube.apiserver.updated_object import Transform
from lastcall.kube.apiserver.wire.preparing import misfit, scheme_of
from lastcall.kube.client.api import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH

PATCH_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH, APPLY_PATCH)


NO_STRATEGIC = (
    "the body of the request was in an unknown format - accepted media types include: "
    f"{JSON_PATCH}, {MERGE_PATCH}, {APPLY_PATCH}"
)


def patch_type(content_type: str) -> str:
    """Return the patch type. Raises the 415 StatusError of one that is not served."""
    name = content_type.partition(";")[0].strip().lower()
    if name not in PATCH_TYPES:
        raise unsupported_media_type()
    return name


def patcher(resource: Resource, name: str, content_type: str, patch: Any, *, checked: bool = True) -> Transform:
    """Return `patch` as a transformation. Raises StatusError when it does not fit the object.

    `checked`: the request asks for field validation, which looks at a JSON patch itself, too. Its answer is a new dict,
    which shares with the old object and with the patch what is in it.
    """

    if isinstance(resource, CustomResource) and content_type == STRATEGIC_MERGE_PATCH:
        raise unsupported_media_type(NO_STRATEGIC)

    def transform(old: Object) -> Object:
        if content_type == JSON_PATCH:
            new = patches.apply_json_patch(old, patch, checked=checked)
        elif content_type == MERGE_PATCH:
            new = patches.merge_patch(old, patch)
        else:
            new = patches.strategic_merge_patch(resource, old, patch)
        if not isinstance(resource, CustomResource):
            new = _with_kind(resource, name, content_type, patch, old, new)
        elif new.get("kind") != resource.kind or new.get("apiVersion") != resource.api_version:
            raise _another_kind(resource, name, new)
        if not isinstance(new.get("metadata"), dict):
            return new
        if _is_untouched(new["metadata"], old["metadata"]):
            return {**new, "metadata": old["metadata"]}
        return new

    return transform


def patched(resource: Resource, name: str, content_type: str, patch: Any, old: Object) -> str:
    """Return what an error of a patch shows: the patch itself as a Go map, or the patched object as JSON."""
    if content_type == STRATEGIC_MERGE_PATCH:
        return patches.go_map(patch)
    return _shown(content_type, patch, old, patcher(resource, name, content_type, patch)(old))


def _shown(content_type: str, patch: Any, old: Object, new: Object) -> str:
    if content_type == STRATEGIC_MERGE_PATCH:
        return patches.go_map(patch)
    # late: for an error's words only
    from lastcall.kube.apiserver.registry.patched_text import as_shown

    return go_json(as_shown(content_type, patch, old, new))


def _is_untouched(new: Object, old: Object) -> bool:
    """Whether a patch changed no member, as that of a status which says only whose it is (its uid)."""
    if len(new) != len(old):
        return False
    for key, value in new.items():
        before = old.get(key)
        if value is not before and (type(value) is not str or value != before):
            return False
    return True


def _with_kind(resource: Resource, name: str, content_type: str, patch: Any, old: Object, new: Object) -> Object:
    """`new` as one of `resource`. A strategic merge keeps kind and version whatever the patch says; what any other
    patch leaves of them is read as a body is. Raises StatusError."""
    kind, api_version = new.get("kind"), new.get("apiVersion")
    if (kind, api_version) == (resource.kind, resource.api_version):
        return new
    if content_type == STRATEGIC_MERGE_PATCH:
        why = next(
            (unconverted(each, "string") for each in (kind, api_version) if not isinstance(each, str | None)), ""
        )
    elif not isinstance(kind, str | None) or not isinstance(api_version, str | None):
        field, value = ("apiVersion", api_version) if isinstance(kind, str | None) else ("kind", kind)
        text = f"json: cannot unmarshal {json_type(value)} into Go struct field .{field} of type string"
        why = f"couldn't get version/kind; json parse error: {text}"
    elif not api_version:
        # Kubernetes reads it as its own form of the object, whose members have other names: nothing is left of it.
        raise bad_request(undeterminable(name))
    else:
        why = misfit(resource, kind or resource.kind, api_version)
    if why:
        shown = _shown(content_type, patch, old, new)
        raise invalid_object("", "", [invalid("patch", shown, why)])
    return {**new, "kind": resource.kind, "apiVersion": resource.api_version}


def check_patched(resource: Resource, name: str, new: Object, old: Object) -> None:
    """Check name and namespace of a decoded patched object; one of the cluster loses a namespace. Raises 400."""
    meta = new["metadata"]
    if not resource.namespaced:
        meta.pop("namespace", None)
    elif (meta.get("namespace") or "") not in ("", old["metadata"].get("namespace") or ""):
        raise bad_request(OTHER_NAMESPACE)
    check_name(meta, name)


def _another_kind(resource: Resource, name: str, new: Object) -> StatusError:
    """A patch of a declared kind changed kind or apiVersion; to a kind that there is, or to none."""
    kind, api_version = new.get("kind", ""), new.get("apiVersion", "")
    if known_kind(str(api_version), str(kind)):
        return _unprocessable(resource, name, "kind and apiVersion may not be changed")
    why = f'no kind "{kind}" is registered for version "{api_version}" in scheme "{scheme_of(resource)}"'
    return invalid_object("", "", [invalid("patch", go_json(new), why)])


def _unprocessable(resource: Resource, name: str, why: str) -> StatusError:
    details = {"name": name, "group": resource.group, "kind": resource.plural}
    message = f"the server rejected our request due to an error in our request ({why})"
    return status_failure(422, "Invalid", message, {key: value for key, value in details.items() if value})
