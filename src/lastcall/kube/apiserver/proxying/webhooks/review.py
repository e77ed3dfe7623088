"""What is said to an admission webhook, and what its answer means. Pure.

Sources: apiserver pkg/admission/plugin/webhook/request/admissionreview.go, errors/statuserror.go,
client-go rest/request.go:transformResponse. The texts are those of a real 1.36.2
(tests/unit/kube/apiserver/proxying/webhooks/answers.json).
"""

# check: pure

import base64
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from lastcall.kube.api.errors import StatusError, status_failure
from lastcall.kube.api.field import go_quote
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import Resource
from lastcall.kube.api.schema.checks import DecodeError, check_scalar, json_type
from lastcall.kube.api.text import go_json
from lastcall.kube.api.text.json_bounds import OutOfBoundsError
from lastcall.kube.api.validators.cluster.webhooks import REVIEW_VERSIONS
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.proxying.webhooks.matching import Webhook, Write
from lastcall.world.dataclass import dataclass

GROUP = "admission.k8s.io"
_SCHEME = "pkg/util/webhook/client.go:71"


class CallFailed(Exception):
    """The webhook could not be asked, or its answer has no meaning: failurePolicy decides."""


@dataclass(slots=True)
class Verdict:
    """`patch` is None where nothing is to change."""

    patch: list[Any] | None = None
    warnings: list[str] = field(default_factory=list)
    refusal: StatusError | None = None


def version_of(webhook: Webhook) -> str:
    """Return the version of AdmissionReview that the webhook prefers. Raises CallFailed."""
    for version in webhook.spec.get("admissionReviewVersions") or ():
        if version in REVIEW_VERSIONS:
            return str(version)
    raise CallFailed("webhook does not accept known AdmissionReview versions (v1, v1beta1)")


def request_for(
    webhook: Webhook, write: Write, resource: Resource, new: Object | None, old: Object | None, user: UserInfo, uid: str
) -> Object:
    """Make the AdmissionReview. `resource`, `new` and `old` are as the webhook wants to see them. Raises CallFailed."""
    version = version_of(webhook)
    facts = facts_of_request(write, resource, user)
    last = {key: facts.pop(key) for key in ("dryRun", "options")}
    request = {"uid": uid, **facts, "object": new, "oldObject": old, **last}
    return {"kind": "AdmissionReview", "apiVersion": f"{GROUP}/{version}", "request": request}


def facts_of_request(write: Write, resource: Resource, user: UserInfo) -> Object:
    """Return what webhooks and expressions get of a request besides its objects. `resource` is as which kind they want
    to see the write. (plugin/cel/condition.go:CreateAdmissionRequest)"""
    request: Object = {"kind": _kind(write.kind_of(resource)), "resource": _resource(resource)}
    if write.subresource:
        request["subResource"] = write.subresource
    request |= {"requestKind": _kind(write.kind_of(write.resource)), "requestResource": _resource(write.resource)}
    if write.subresource:
        request["requestSubResource"] = write.subresource
    request |= {key: value for key, value in (("name", write.name), ("namespace", write.namespace)) if value}
    return request | {
        "operation": write.operation,
        "userInfo": _user(user),
        "dryRun": write.dry_run,
        "options": write.options,
    }


def _kind(kind: tuple[str, str, str]) -> Object:
    return dict(zip(("group", "version", "kind"), kind, strict=True))


def _resource(resource: Resource) -> Object:
    return {"group": resource.group, "version": resource.version, "resource": resource.plural}


def _user(user: UserInfo) -> Object:
    fields = {
        "username": user.name,
        "uid": user.uid,
        "groups": list(user.groups),
        "extra": {key: list(values) for key, values in user.extra.items()},
    }
    return {key: value for key, value in fields.items() if value}


# -- the answer --------------------------------------------------------------------------------------------------------


def body_of(status: int, content_type: str, body: bytes) -> bytes:
    """Return the body of an answer that has one. Raises CallFailed for all others."""
    if not 200 <= status <= 206:
        raise CallFailed(_refused(status, content_type, body))
    if not body:
        raise CallFailed(f"0-length response with status code: {status} and content type: {content_type}")
    return body


_REFUSALS = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    403: "unknown",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    406: "the server was unable to respond with a content type that the client supports",
    409: "the server reported a conflict",
    415: "the server was unable to process the request because of its media type",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}
"""(`NewGenericServerResponse`)"""


def _refused(status: int, content_type: str, body: bytes) -> str:
    text = "unknown"
    if content_type.startswith("text/"):
        text = body[:2048].decode(errors="replace").strip()
    try:
        answer = go_json.loads(body)
    except ValueError:
        answer = None
    if isinstance(answer, dict) and answer.get("kind") == "Status" and isinstance(answer.get("message"), str):
        return str(answer["message"])
    if status in _REFUSALS:
        return _REFUSALS[status]
    if status >= 500:
        return f"an error on the server ({go_quote(text)}) has prevented the request from succeeding"
    return f"the server responded with the status code {status} but did not return more information"


def read(webhook: Webhook, uid: str, asked_version: str, body: bytes, *, mutating: bool) -> Verdict:
    """Read what the webhook says. Raises CallFailed for an answer that has no meaning."""
    response = _response(decoded_review(body, asked_version))
    if (response.get("uid") or "") != uid:
        heard = go_quote(str(response.get("uid") or ""))
        raise CallFailed(f"received invalid webhook response: expected response.uid={go_quote(uid)}, got {heard}")
    patch, type_ = response.get("patch"), response.get("patchType")
    if not mutating:
        if patch:
            raise CallFailed("received invalid webhook response: validating webhook may not return response.patch")
        if type_:
            raise CallFailed("received invalid webhook response: validating webhook may not return response.patchType")
    elif patch and not type_ and asked_version == "v1":
        why = "webhook returned response.patch but not response.patchType"
        raise CallFailed(f"received invalid webhook response: {why}")
    elif type_ and not patch:
        why = "webhook returned response.patchType but not response.patch"
        raise CallFailed(f"received invalid webhook response: {why}")
    verdict = Verdict(warnings=[each or "" for each in response.get("warnings") or ()])
    if response.get("allowed") is not True:
        verdict.refusal = denied(webhook.name, response.get("status"))
    elif patch:
        verdict.patch = _operations(patch)
        if verdict.patch and type_ not in (None, "JSONPatch"):
            raise CallFailed(f"unsupported patch type {go_quote(type_)}")
    return verdict


def decoded_review(
    body: bytes,
    asked_version: str,
    kind_asked: str = "AdmissionReview",
    group: str = GROUP,
    versions: Sequence[str] = REVIEW_VERSIONS,
) -> Object:
    """Decode an answer that is the review that was asked for, in that version. Raises CallFailed."""
    try:
        review = go_json.loads(body)
    except OutOfBoundsError as error:
        raise CallFailed(str(error)) from None
    except ValueError:
        # Go reads a text that is not JSON as YAML, and most of the time that is a string.
        raise CallFailed(
            "couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type "
            'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
        ) from None
    if not isinstance(review, dict):
        raise CallFailed("couldn't get version/kind; json parse error: json: the answer is not an object")
    kind, version = review.get("kind"), review.get("apiVersion")
    if not kind:
        raise CallFailed("Object 'Kind' is missing in the answer")
    if kind != kind_asked or version not in [f"{group}/{each}" for each in versions]:
        scheme = go_quote(_SCHEME)
        raise CallFailed(
            f"no kind {go_quote(str(kind))} is registered for version {go_quote(str(version))} in scheme {scheme}"
        )
    heard = str(version).rpartition("/")[2]
    if heard != asked_version:
        raise CallFailed(f"converting ({heard}.{kind}) to ({asked_version}.{kind}): unknown conversion")
    return review


def _response(review: Object) -> Object:
    response = review.get("response")
    if not isinstance(response, dict):
        raise CallFailed("received invalid webhook response: webhook response was absent")
    _check(_RESPONSE, response, "AdmissionReview", "response")
    try:
        check_scalar("byte", response.get("patch") or "")
    except DecodeError as error:
        raise CallFailed(str(error)) from None
    return response


@dataclass(frozen=True, slots=True)
class _Type:
    """A type of Go and what JSON it is read from; `item` is that of a list or of the values of a map."""

    name: str
    json: type
    fields: Mapping[str, "_Type"] = field(default_factory=dict)
    item: "_Type | None" = None


_STRING, _INT32, _BOOL = _Type("string", str), _Type("int32", int), _Type("bool", bool)
_CAUSE = _Type("v1.StatusCause", dict, {"reason": _Type("v1.CauseType", str), "message": _STRING, "field": _STRING})
_DETAILS = _Type(
    "v1.StatusDetails",
    dict,
    {
        **dict.fromkeys(("name", "group", "kind"), _STRING),
        "uid": _Type("types.UID", str),
        "causes": _Type("[]v1.StatusCause", list, item=_CAUSE),
        "retryAfterSeconds": _INT32,
    },
)
_STATUS = _Type(
    "v1.Status",
    dict,
    {
        **dict.fromkeys(("kind", "apiVersion", "status", "message"), _STRING),
        "metadata": _Type("v1.ListMeta", dict),
        "reason": _Type("v1.StatusReason", str),
        "details": _DETAILS,
        "code": _INT32,
    },
)
_RESPONSE = _Type(
    "v1.AdmissionResponse",
    dict,
    {
        "uid": _Type("types.UID", str),
        "allowed": _BOOL,
        "status": _STATUS,
        "patch": _Type("[]uint8", str),
        "patchType": _Type("v1.PatchType", str),
        "auditAnnotations": _Type("map[string]string", dict, item=_STRING),
        "warnings": _Type("[]string", list, item=_STRING),
    },
)


def _check(wanted: _Type, value: Any, struct: str, path: str) -> None:
    """Raise CallFailed for a value that Go does not read as this type. `struct` is the one whose field it is."""
    if value is None:
        return
    number = type(value) in (int, float) and wanted is _INT32
    if not (-(2**31) <= value < 2**31 and type(value) is int if number else type(value) is wanted.json):
        word = f"number {value}" if number else json_type(value)
        raise CallFailed(f"json: cannot unmarshal {word} into Go struct field {struct}.{path} of type {wanted.name}")
    for key, inner in wanted.fields.items():
        _check(inner, value.get(key), wanted.name.rpartition(".")[2], f"{path}.{key}")
    if wanted.item is not None:
        for each in value.values() if isinstance(value, dict) else value:
            _check(wanted.item, each, struct, path)


def _operations(patch: str) -> list[Any]:
    decoded = base64.b64decode(patch)
    try:
        operations = go_json.loads(decoded)
    except OutOfBoundsError as error:
        raise CallFailed(f"received undecodable patch in webhook response: {error}") from None
    except ValueError:
        raise CallFailed(f"received undecodable patch in webhook response: {_complaint(decoded)}") from None
    into = (
        "" if isinstance(operations, list | None) else f"{json_type(operations)} into Go value of type jsonpatch.Patch"
    )
    for each in operations if isinstance(operations, list) else ():
        if not isinstance(each, dict | None):
            into = into or f"{json_type(each)} into Go value of type jsonpatch.Operation"
    if into:
        raise CallFailed(f"received undecodable patch in webhook response: json: cannot unmarshal {into}")
    return [each or {} for each in operations or ()]


def _complaint(text: bytes) -> str:
    reading = go_json.complaint(text)
    while True:
        try:
            next(reading)
        except StopIteration as end:
            return str(end.value)


def denied(name: str, result: Any) -> StatusError:
    """Return the refusal as the client sees it (`ToStatusErr`)."""
    answer = result if isinstance(result, dict) else {}
    by = f"admission webhook {go_quote(name)} denied the request"
    message, reason = answer.get("message") or "", answer.get("reason") or ""
    text = f"{by}: {message or reason}" if message or reason else f"{by} without explanation"
    code = answer.get("code")
    status = code if isinstance(code, int) and 400 <= code <= 599 else 400
    details = answer.get("details")
    return status_failure(status, str(reason), text, details if isinstance(details, dict) and details else None)
