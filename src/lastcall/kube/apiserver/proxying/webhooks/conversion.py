"""Conversion webhooks: a ConversionReview goes out, and what comes back is checked.

Source: apiextensions-apiserver pkg/apiserver/conversion/webhook_converter.go.
"""

from collections.abc import Sequence
from typing import Any

import orjson

from lastcall.kube.api.errors import plain_failure
from lastcall.kube.api.field import FieldError, go_quote
from lastcall.kube.api.meta import Object
from lastcall.kube.api.validators.metadata import validate_annotations, validate_labels
from lastcall.kube.apiserver.proxying.webhooks.caller import Caller
from lastcall.kube.apiserver.proxying.webhooks.review import CallFailed, decoded_review
from lastcall.world.world import World

SECONDS = 30
"""How long a conversion may take."""
GROUP = "apiextensions.k8s.io"
VERSIONS = ("v1", "v1beta1")
_GO_TYPES = {str: "string", bool: "bool", int: "int64", float: "float64", list: "[]interface {}", type(None): "<nil>"}


class ConversionWebhook:
    """The webhook of one CustomResourceDefinition, `conversion` being its `spec.conversion`."""

    def __init__(self, world: World, caller: Caller, conversion: Object) -> None:
        self._world, self._caller = world, caller
        webhook = conversion.get("webhook") or {}
        asked = webhook.get("conversionReviewVersions") or ()
        self._version = next((each for each in asked if each in VERSIONS), "")
        self._spec = {"clientConfig": webhook.get("clientConfig") or {}, "timeoutSeconds": SECONDS}

    async def convert(self, objects: Sequence[Object], api_version: str) -> list[Object]:
        """Return the objects in a version. Raises the 500 StatusError that says what is wrong with the webhook."""
        first = objects[0]
        about = f"conversion webhook for {_gvk(first)}"
        if not self._version:
            raise plain_failure("no supported conversion review versions")
        uid = self._world.new_uid()
        request = {"uid": uid, "desiredAPIVersion": api_version, "objects": objects}
        review = {"kind": "ConversionReview", "apiVersion": f"{GROUP}/{self._version}", "request": request}
        try:
            body = await self._caller.call(self._spec, orjson.dumps(review))
            found = converted_objects(body, self._version, uid)
        except CallFailed as error:
            raise plain_failure(f"{about} failed: {error}") from None
        if len(found) != len(objects):
            raise plain_failure(f"{about} returned {len(found)} objects, expected {len(objects)}")
        if not all(isinstance(each, dict) for each in found):
            raise plain_failure("json: cannot unmarshal string into Go value of type map[string]interface {}")
        for original, converted in zip(objects, found, strict=True):
            if wrong := problem(original, converted, api_version):
                raise plain_failure(f"{about} returned invalid {wrong}")
        return found


def _gvk(obj: Object) -> str:
    return f"{obj.get('apiVersion')}, Kind={obj.get('kind')}"


def converted_objects(body: bytes, version: str, uid: str) -> list[Any]:
    """Return what an answer has converted. Raises CallFailed. (`getConvertedObjectsFromResponse`)"""
    review = decoded_review(body, version, "ConversionReview", GROUP, VERSIONS)
    response = review.get("response")
    if not isinstance(response, dict):
        raise CallFailed("no response provided")
    if version == "v1" and response.get("uid") != uid:
        raise CallFailed(f"expected response.uid={go_quote(uid)}, got {go_quote(str(response.get('uid') or ''))}")
    result = response.get("result")
    result = result if isinstance(result, dict) else {}
    if result.get("status") != "Success":
        status = f"response.result.status was '{result.get('status') or ''}', not 'Success'"
        raise CallFailed(result.get("message") or status)
    found = response.get("convertedObjects")
    return found if isinstance(found, list) else []


def problem(original: Object, converted: Object, api_version: str) -> str:
    """Return what a webhook may not do to an object, as an error goes on; "" for nothing.

    (`validateConvertedObject`, `restoreObjectMeta`)
    """
    if (got := converted.get("apiVersion") or "") != api_version:
        return f"object at index 0: invalid groupVersion (expected {api_version}, received {got})"
    if (kind := converted.get("kind") or "") != original["kind"]:
        return f"object at index 0: invalid kind (expected {original['kind']}, received {kind})"
    meta = converted.get("metadata")
    read = {"metadata": meta if isinstance(meta, dict) else {}}
    for name in ("name", "namespace", "UID"):
        before, after = (each["metadata"].get(name.lower()) or "" for each in (original, read))
        if before != after:
            return f"object: must have the same {name}: {before} != {after}"
    if meta is None:
        return "metadata: missing metadata in converted object"
    if not isinstance(meta, dict):
        return f"metadata: invalid metadata of type {_go_type(meta)} in converted object"
    wrong = _wrong_texts(original, meta)
    return f"metadata: {wrong}" if wrong else ""


def _wrong_texts(original: Object, meta: Object) -> str:
    for field in ("labels", "annotations"):
        texts = meta.get(field)
        if texts is None:
            continue
        if not isinstance(texts, dict):
            return f"invalid metadata.{field} of type {_go_type(texts)} in converted object"
        for key, value in texts.items():
            if not isinstance(value, str):
                return f"metadata.{field}[{key}] must be a string, but is {_go_type(value)} in converted object"
        if texts == (original["metadata"].get(field) or {}):
            continue
        errors = (
            validate_labels(texts, "metadata.labels")
            if field == "labels"
            else validate_annotations(texts, "metadata.annotation")
        )
        if errors:
            return _aggregate(errors)
    return ""


def _aggregate(errors: Sequence[FieldError]) -> str:
    texts = list(dict.fromkeys(str(each) for each in errors))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def _go_type(value: Any) -> str:
    return _GO_TYPES.get(type(value), "map[string]interface {}")
