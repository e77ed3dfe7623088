"""A Pod that an admission webhook refuses: which webhook, why, and what to do."""

from typing import Any

import pytest

from lastcall.experiment.reasons.webhooks import Webhooks
from lastcall.experiment.reasons.why_not_ready import why_no_pods

CALL = 'Post "https://labels.default.svc:443/mutate?timeout=2s": '
FAILED = 'Internal error occurred: failed calling webhook "labels.example.com": failed to call webhook: ' + CALL
REFUSED = f"{FAILED}dial tcp 10.96.139.189:443: connect: connection refused"
DENIED = 'admission webhook "labels.example.com" denied the request: no team label'
OWNER = {
    "metadata": {"name": "labels", "namespace": "default"},
    "spec": {"template": {"metadata": {"labels": {"app": "labels"}}}},
}
SERVICE = {"metadata": {"name": "labels", "namespace": "default"}, "spec": {"selector": {"app": "labels"}}}
POD = {"metadata": {"name": "labels-1", "namespace": "default", "labels": {"app": "labels"}}}
NAMED = "webhook labels.example.com of MutatingWebhookConfiguration labels"


def configuration(**fields: Any) -> dict[str, Any]:
    config = {"service": {"name": "labels", "namespace": "default", "path": "/mutate"}}
    webhook = {"name": "labels.example.com", "failurePolicy": "Fail", "clientConfig": config, **fields}
    return {"kind": "MutatingWebhookConfiguration", "metadata": {"name": "labels"}, "webhooks": [webhook]}


def fix(message: str, known: Webhooks, owner: dict[str, Any] = OWNER) -> str:
    """The one fix that is told."""
    events = [{"type": "Warning", "reason": "FailedCreate", "message": f"Error creating: {message}", "count": 13}]
    lines = why_no_pods("Deployment default/labels", owner, 0, 1, events, known)
    (told,) = [line.removeprefix("  fix: ") for line in lines if line.startswith("  fix: ")]
    return told


ITSELF = (
    f"{NAMED} (failurePolicy: Fail) has to allow the Pods of labels, but its Service default/labels selects only "
    "these, so nobody answers for it. Exclude them with its objectSelector: {matchExpressions: [{key: app, operator: "
    "NotIn, values: [labels]}]}, or set failurePolicy: Ignore [webhookRefuses]"
)


@pytest.mark.parametrize("why", ["no endpoints available for service \"labels\"", "context deadline exceeded",
                                 "dial tcp 10.96.139.189:443: connect: connection refused"])  # fmt: skip
def test_a_webhook_that_waits_for_itself_is_named_with_its_way_out(why: str) -> None:
    assert fix(FAILED + why, Webhooks([configuration()], [SERVICE])) == ITSELF


OTHERS = [
    (REFUSED, Webhooks([configuration()], [SERVICE], [POD]),
     f"{NAMED} (failurePolicy: Fail) does not answer: its Service default/labels has no Pod that is Ready and listens"),
    (f'{FAILED}service "labels" not found', Webhooks([configuration()]),
     f"{NAMED} (failurePolicy: Fail) does not answer: its Service default/labels does not exist"),
    (f"{FAILED}context deadline exceeded", Webhooks([configuration()], [SERVICE], [POD]),
     f"{NAMED} (failurePolicy: Fail) did not answer within its timeoutSeconds"),
    (f"{FAILED}x509: certificate signed by unknown authority", Webhooks([configuration()], [SERVICE], [POD]),
     f"{NAMED} (failurePolicy: Fail) is not trusted: set clientConfig.caBundle"),
    (f"{FAILED}EOF", Webhooks([configuration()], [SERVICE], [POD]), f"{NAMED} (failurePolicy: Fail) does not answer"),
    (DENIED, Webhooks([configuration()]), f"{NAMED} refuses it: correct what its message names"),
    (DENIED, Webhooks(), "webhook labels.example.com refuses it"),
    (REFUSED, Webhooks(), "webhook labels.example.com (failurePolicy: Fail) does not answer"),
]  # fmt: skip


@pytest.mark.parametrize(("message", "known", "words"), OTHERS)
def test_a_refusal_is_told_by_webhook_policy_and_service(message: str, known: Webhooks, words: str) -> None:
    told = fix(message, known)
    assert told.startswith(words) and told.endswith("[webhookRefuses]"), told


def test_pods_of_another_owner_do_not_make_a_webhook_wait_for_itself() -> None:
    other = {**OWNER, "spec": {"template": {"metadata": {"labels": {"app": "shop"}}}}}
    assert "selects only these" not in fix(REFUSED, Webhooks([configuration()], [SERVICE]), other)
