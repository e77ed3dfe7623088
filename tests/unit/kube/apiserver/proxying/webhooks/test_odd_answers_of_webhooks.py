"""Answers of webhooks with values of a wrong type, and what a real Kubernetes 1.36.2 said of them."""

import base64
import json
from typing import Any

import pytest

from lastcall.kube.apiserver.proxying.webhooks.matching import Wanted, Webhook
from lastcall.kube.apiserver.proxying.webhooks.review import CallFailed, Verdict, read

INTO = "json: cannot unmarshal"
RESPONSE = "into Go struct field AdmissionResponse.response"
STATUS = "into Go struct field Status.response.status"
UNDECODABLE = "received undecodable patch in webhook response: json: cannot unmarshal"


def patch(text: str) -> dict[str, Any]:
    return {"patchType": "JSONPatch", "patch": base64.b64encode(text.encode()).decode()}


def status(**fields: Any) -> dict[str, Any]:
    return {"allowed": False, "status": fields}


REFUSED = [
    ({"auditAnnotations": {"k": 5}}, f"{INTO} number {RESPONSE}.auditAnnotations of type string"),
    ({"auditAnnotations": {"k": True}}, f"{INTO} bool {RESPONSE}.auditAnnotations of type string"),
    ({"auditAnnotations": {"k": {}}}, f"{INTO} object {RESPONSE}.auditAnnotations of type string"),
    ({"auditAnnotations": ["k"]}, f"{INTO} array {RESPONSE}.auditAnnotations of type map[string]string"),
    ({"auditAnnotations": "x"}, f"{INTO} string {RESPONSE}.auditAnnotations of type map[string]string"),
    ({"warnings": [5]}, f"{INTO} number {RESPONSE}.warnings of type string"),
    (status(message=5), f"{INTO} number {STATUS}.message of type string"),
    (status(code="400"), f"{INTO} string {STATUS}.code of type int32"),
    (status(code=400.5), f"{INTO} number 400.5 {STATUS}.code of type int32"),
    (status(code=99999999999), f"{INTO} number 99999999999 {STATUS}.code of type int32"),
    (status(reason=[]), f"{INTO} array {STATUS}.reason of type v1.StatusReason"),
    (status(metadata=[]), f"{INTO} array {STATUS}.metadata of type v1.ListMeta"),
    (status(details=[]), f"{INTO} array {STATUS}.details of type v1.StatusDetails"),
    (
        status(details={"causes": "x"}),
        f"{INTO} string into Go struct field StatusDetails.response.status.details.causes of type []v1.StatusCause",
    ),
    (
        status(details={"causes": [{"message": 5}]}),
        f"{INTO} number into Go struct field StatusCause.response.status.details.causes.message of type string",
    ),
    ({**patch(""), "patch": "***"}, "illegal base64 data at input byte 0"),
    (patch("[5]"), f"{UNDECODABLE} number into Go value of type jsonpatch.Operation"),
    (patch("{}"), f"{UNDECODABLE} object into Go value of type jsonpatch.Patch"),
]
TAKEN = [
    {"auditAnnotations": {"k": None}},
    {"auditAnnotations": None},
    {"warnings": [None]},
    patch("null"),
    {"status": {"message": None, "code": None}},
]


def said(response: dict[str, Any]) -> Verdict:
    webhook = Webhook("w/h.example.com/0", "h.example.com", {}, Wanted({}, []))
    body = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}
    text = json.dumps({**body, "response": {"uid": "u", "allowed": True, **response}})
    return read(webhook, "u", "v1", text.encode(), mutating=True)


@pytest.mark.parametrize(("response", "words"), REFUSED, ids=lambda each: json.dumps(each)[:60])
def test_an_answer_with_a_value_of_a_wrong_type_has_no_meaning(response: dict[str, Any], words: str) -> None:
    with pytest.raises(CallFailed) as refused:
        said(response)
    assert str(refused.value) == words


@pytest.mark.parametrize("response", TAKEN, ids=json.dumps)
def test_a_null_in_an_answer_is_no_value(response: dict[str, Any]) -> None:
    verdict = said(response)
    assert (verdict.refusal, verdict.patch or []) == (None, [])
    assert verdict.warnings in ([], [""])
