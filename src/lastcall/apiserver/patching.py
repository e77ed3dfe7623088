"""PATCH: a patch as a transformation of the stored object.

Source: apiserver pkg/endpoints/handlers/patch.go.
"""

from typing import Any

from lastcall.api import patch as patches
from lastcall.api.errors import StatusError, bad_request, status_failure, unsupported_media_type
from lastcall.api.meta import Object, copy_object
from lastcall.api.resources import Resource
from lastcall.apiserver.registry import Transform
from lastcall.client.api import JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH

PATCH_TYPES = (JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH)
MAX_JSON_PATCH_OPERATIONS = 10_000


def patch_type(content_type: str) -> str:
    """Raises the 415 StatusError of a patch type that is not served."""
    name = content_type.partition(";")[0].strip().lower()
    if name not in PATCH_TYPES:
        raise unsupported_media_type()
    return name


def check_patch(content_type: str, patch: Any) -> None:
    """What can be said without the object. Raises 400 and 413 StatusErrors."""
    if content_type == JSON_PATCH:
        if not isinstance(patch, list):
            raise bad_request("json: cannot unmarshal object into Go value of type jsonpatch.Patch")
        if len(patch) > MAX_JSON_PATCH_OPERATIONS:
            raise status_failure(
                413,
                "RequestEntityTooLarge",
                f"The allowed maximum operations in a JSON patch is {MAX_JSON_PATCH_OPERATIONS}, got {len(patch)}",
            )
    elif not isinstance(patch, dict):
        raise bad_request("json: cannot unmarshal array into Go value of type map[string]interface {}")


def patcher(resource: Resource, name: str, content_type: str, patch: Any) -> Transform:
    """The transformation that `patch` stands for. Raises StatusError when it does not fit the object."""

    def transform(old: Object) -> Object:
        current = copy_object(old)
        if content_type == JSON_PATCH:
            new = patches.json_patch(current, patch)
        elif content_type == MERGE_PATCH:
            new = patches.merge_patch(current, patch)
        else:
            new = patches.strategic_merge_patch(resource, current, patch)
        if not isinstance(new, dict) or not isinstance(new.get("metadata"), dict):
            raise _unprocessable(resource, name, "the patched object has no metadata")
        if new.get("kind") != resource.kind or new.get("apiVersion") != resource.api_version:
            raise _unprocessable(resource, name, "kind and apiVersion may not be changed")
        if new["metadata"].get("name") != name:
            raise bad_request(
                f"the name of the object ({new['metadata'].get('name')}) does not match the name on the URL ({name})"
            )
        return new

    return transform


def _unprocessable(resource: Resource, name: str, why: str) -> StatusError:
    details = {"name": name, "group": resource.group, "kind": resource.plural}
    message = f"the server rejected our request due to an error in our request ({why})"
    return status_failure(422, "Invalid", message, {key: value for key, value in details.items() if value})
