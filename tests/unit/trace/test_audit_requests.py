"""What audit events say of deletions, and which of them a deletion goes back to."""

import json
from typing import Any

import pytest

from lastcall.trace.auditing.index import MOST_OBJECTS, MOST_OF_EACH, AuditIndex
from lastcall.trace.auditing.lines import LONGEST_LINE, AuditInput
from lastcall.trace.auditing.requests import AuditedWrite, read_event
from lastcall.trace.stamps import SECOND, stamp_ns


def event(verb: str = "delete", **more: Any) -> dict[str, Any]:
    ref = {"resource": "pods", "namespace": "n", "name": "p", "apiVersion": "v1"} | more.pop("ref", {})
    return {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "auditID": "a",
        "stage": "ResponseComplete",
        "requestURI": "/api/v1/namespaces/n/pods/p",
        "verb": verb,
        "user": {"username": "alice", "groups": ["devs"]},
        "sourceIPs": ["10.0.0.7"],
        "userAgent": "kubectl/v1.36.2",
        "objectRef": {key: value for key, value in ref.items() if value},
        "responseStatus": {"metadata": {}, "code": 200},
        "requestReceivedTimestamp": "2030-01-01T00:00:10.500000Z",
        "stageTimestamp": "2030-01-01T00:00:10.520000Z",
        **more,
    }


def taken(*events: dict[str, Any]) -> AuditIndex:
    index = AuditIndex()
    for number, each in enumerate(events):
        write = read_event({"auditID": str(number), **each} if "auditID" not in each else each)
        assert write is not None
        index.add(write)
    return index


def second(number: int) -> tuple[int, int]:
    at = stamp_ns("2030-01-01T00:00:00Z")
    assert at is not None
    return at + number * SECOND, at + (number + 1) * SECOND


def test_a_deletion_names_user_client_and_address() -> None:
    found = read_event(event())
    assert found is not None
    assert (found.user, found.user_agent, found.source_ips) == ("alice", "kubectl/v1.36.2", ("10.0.0.7",))
    assert found.facts == {"auditId": "a", "sourceIPs": ["10.0.0.7"]}


def test_an_impersonated_user_is_the_one_that_acted() -> None:
    found = read_event(event(impersonatedUser={"username": "bob"}))
    assert found is not None
    assert (found.user, found.facts["impersonator"]) == ("bob", "alice")


@pytest.mark.parametrize(
    "each",
    [
        event("get"),
        event("list", ref={"name": ""}),
        event("create"),
        event("update"),
        event(stage="RequestReceived"),
        event(responseStatus={"code": 404}),
        event(responseStatus={}),
        event(requestURI="/api/v1/namespaces/n/pods/p?dryRun=All"),
        event("delete", ref={"resource": "secrets"}),
        event("patch", ref={"resource": "deployments", "subresource": "status"}),
        event(objectRef=None),
    ],
)
def test_a_request_that_ends_no_pod_is_left_out(each: dict[str, Any]) -> None:
    assert read_event(each) is None


@pytest.mark.parametrize(
    "each",
    [
        event("create", ref={"subresource": "eviction"}),
        event("deletecollection", ref={"name": ""}),
        event("patch", ref={"resource": "deployments", "subresource": "scale"}),
        event("update", ref={"resource": "statefulsets"}),
        event("delete", ref={"resource": "namespaces"}),
        event(stage="ResponseStarted"),
    ],
)
def test_evictions_scales_and_rollouts_are_kept(each: dict[str, Any]) -> None:
    assert read_event(each) is not None


@pytest.mark.parametrize("each", [None, [], "x", {}, {"kind": "Pod"}, {"kind": "Event", "apiVersion": "v1"}])
def test_what_is_no_audit_event_is_refused(each: Any) -> None:
    with pytest.raises(ValueError, match="it is"):
        read_event(each)


def test_a_deletion_is_found_by_object_and_second() -> None:
    index = taken(event())
    assert index.deletion_of("pods", "n", "p", "u", second(10)) is not None
    for miss in (("pods", "n", "q", "u", second(10)), ("pods", "m", "p", "u", second(10)),
                 ("pods", "n", "p", "u", second(12))):  # fmt: skip
        assert index.deletion_of(*miss) is None


def test_the_first_request_of_a_second_deleted_it_and_a_request_with_another_uid_did_not() -> None:
    kubelet = event(
        auditID="k", user={"username": "system:node:n1"}, requestReceivedTimestamp="2030-01-01T00:00:10.9Z",
        stageTimestamp="2030-01-01T00:00:10.95Z",
    )  # fmt: skip
    other = event(
        auditID="o", user={"username": "eve"}, ref={"uid": "another"},
        requestReceivedTimestamp="2030-01-01T00:00:10.1Z",
    )  # fmt: skip
    found = taken(kubelet, event(), other).deletion_of("pods", "n", "p", "u", second(10))
    assert found is not None
    assert found.user == "alice"


def test_a_collection_counts_where_no_request_names_the_pod_and_its_selector_fits() -> None:
    uri = "/api/v1/namespaces/n/pods?labelSelector=app%3Dweb"
    index = taken(event("deletecollection", ref={"name": ""}, requestURI=uri, user={"username": "bob"}))
    found = index.deletion_of("pods", "n", "p", "u", second(10), {"app": "web"})
    assert found is not None
    assert found.user == "bob"
    assert index.deletion_of("pods", "n", "p", "u", second(10), {"app": "db"}) is None


def test_the_writer_of_an_owner_is_told_by_its_field_manager_and_controllers_only_adjust() -> None:
    web = {"resource": "deployments", "name": "web"}
    index = taken(
        event("patch", ref=web, auditID="1"),
        event("patch", ref=web, auditID="2", user={"username": "bot"}, userAgent="argocd/2"),
        event("update", ref=web, auditID="3", user={"username": "system:x"}, userAgent="kube-controller-manager/v1"),
    )
    by_kubectl = index.writers_of("deployments", "n", "web", second(10), "kubectl-scale")
    assert [each.user for each in by_kubectl] == ["alice"]
    assert {each.user for each in index.writers_of("deployments", "n", "web", second(10), "")} == {"alice", "bot"}


def test_what_is_kept_is_bounded() -> None:
    index = AuditIndex()
    write = read_event(event())
    assert isinstance(write, AuditedWrite)
    for number in range(MOST_OF_EACH + 5):
        index.add(write._replace(audit_id=str(number)))
    index.add(write._replace(audit_id=str(MOST_OF_EACH + 4)))
    assert index.count == MOST_OF_EACH + 5
    for number in range(MOST_OBJECTS):
        index.add(write._replace(name=f"q{number}"))
    assert index.deletion_of("pods", "n", "p", "u", second(10)) is None
    assert index.deletion_of("pods", "n", "q9", "u", second(10)) is not None


def test_a_line_that_is_not_json_is_skipped_counted_and_reported() -> None:
    notes: list[str] = []
    into = AuditInput(AuditIndex(), notes.append)
    text = "\n".join(
        [json.dumps(event()), "{broken", "", '{"kind":"Pod"}', json.dumps(event("get")), json.dumps(event())]
    )
    for start in range(0, len(text), 7):
        into.feed(text[start : start + 7].encode())
    into.end()
    assert (into.events, into.skipped, into.index.count) == (3, 2, 1)
    assert notes == [
        "audit log: line 2 was skipped: it is not JSON",
        "audit log: line 4 was skipped: it is not an Event",
    ]
    assert into.summary() == "3 audit events read, 2 skipped"


def test_only_the_first_skipped_lines_are_explained() -> None:
    notes: list[str] = []
    into = AuditInput(AuditIndex(), notes.append)
    into.feed(b"x\n" * 100)
    assert (into.skipped, len(notes)) == (100, 3)


def test_a_line_without_an_end_takes_no_memory() -> None:
    into = AuditInput(AuditIndex(), lambda text: None)
    for _ in range(LONGEST_LINE // (1 << 20) + 3):
        into.feed(b"x" * (1 << 20))
    assert len(into._rest) <= LONGEST_LINE
    into.feed(b"\n" + json.dumps(event()).encode() + b"\n")
    assert (into.skipped, into.events) == (1, 1)


def test_the_body_of_a_webhook_is_a_list_of_events() -> None:
    notes: list[str] = []
    into = AuditInput(AuditIndex(), notes.append)
    item = {
        key: value for key, value in event().items() if key not in ("kind", "apiVersion")
    }  # as kube-apiserver sends
    body = {"kind": "EventList", "apiVersion": "audit.k8s.io/v1", "metadata": {}, "items": [item, {"kind": "x"}]}
    assert into.take(json.dumps(body).encode())
    assert (into.events, into.skipped, into.index.count) == (1, 1, 1)
    for wrong in (b"", b"[]", b'{"kind":"List","items":[]}', b'{"kind":"EventList"}'):
        assert not into.take(wrong)
    assert notes[0] == "audit log: item 2 of a request was skipped: it is not an Event"
