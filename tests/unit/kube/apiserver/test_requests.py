"""URLs, options, negotiation, allocators: the pure parts around a request."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall.kube.api.errors import StatusError
from lastcall.kube.apiserver.allocators import AllocationError, Allocator, ClusterIPAllocator, NodePortAllocator
from lastcall.kube.apiserver.deletion import DeleteOptions
from lastcall.kube.apiserver.requestinfo import request_info
from lastcall.kube.apiserver.wire.negotiation import JSON, PROTOBUF, YAML, check_offered, negotiate
from lastcall.kube.apiserver.wire.options import (
    decode_continue,
    encode_continue,
    parse_delete_options,
    parse_list_options,
)


@pytest.mark.parametrize(
    ("method", "path", "query", "expected"),
    [
        ("GET", "/api/v1/pods", {}, ("list", "", "", "pods", "", "")),
        ("GET", "/api/v1/pods", {"watch": "1"}, ("watch", "", "", "pods", "", "")),
        ("GET", "/api/v1/pods", {"watch": ""}, ("watch", "", "", "pods", "", "")),
        ("GET", "/api/v1/pods", {"watch": "false"}, ("list", "", "", "pods", "", "")),
        ("GET", "/api/v1/namespaces/x/pods/p", {"watch": "1"}, ("get", "", "x", "pods", "p", "")),
        ("GET", "/api/v1/namespaces/x/pods/", {}, ("list", "", "x", "pods", "", "")),
        ("DELETE", "/api/v1/namespaces/x/pods", {}, ("deletecollection", "", "x", "pods", "", "")),
        ("PATCH", "/api/v1/namespaces/x/pods/p/status", {}, ("patch", "", "x", "pods", "p", "status")),
        ("GET", "/api/v1/namespaces/x", {}, ("get", "", "x", "namespaces", "x", "")),
        ("PUT", "/api/v1/namespaces/x/finalize", {}, ("update", "", "x", "namespaces", "x", "finalize")),
        ("GET", "/api/v1/watch/namespaces/x/pods/p", {}, ("watch", "", "x", "pods", "p", "")),
        (
            "POST",
            "/apis/discovery.k8s.io/v1/namespaces/x/endpointslices",
            {},
            ("create", "discovery.k8s.io", "x", "endpointslices", "", ""),
        ),
    ],
)
def test_a_url_says_what_is_asked(method, path, query, expected) -> None:
    info = request_info(method, path, query)
    assert info.is_resource_request
    assert (info.verb, info.group, info.namespace, info.resource, info.name, info.subresource) == expected


@pytest.mark.parametrize("path", ["/", "/api", "/api/v1", "/apis/apps/v1", "/healthz", "/version"])
def test_paths_that_are_no_resources(path: str) -> None:
    assert not request_info("GET", path, {}).is_resource_request


def test_delete_options_come_from_the_body_or_else_from_the_query_never_from_both() -> None:
    assert parse_delete_options({"gracePeriodSeconds": 60}, {"gracePeriodSeconds": "5"}, ()).grace_period_seconds == 60
    assert parse_delete_options({}, {"gracePeriodSeconds": "5"}, ()) == DeleteOptions()
    assert parse_delete_options(None, {"gracePeriodSeconds": "5"}, ["All"]) == DeleteOptions(5, dry_run=True)
    body = {"kind": "DeleteOptions", "apiVersion": "nope/v1", "preconditions": {"uid": "u"}, "unknown": 1}
    assert parse_delete_options(body, {}, ()) == DeleteOptions(uid="u")


@pytest.mark.parametrize(
    ("body", "code", "words"),
    [
        ({"propagationPolicy": "Later"}, 422, 'supported values: "Foreground", "Background", "Orphan", "nil"'),
        ({"propagationPolicy": "Orphan", "orphanDependents": True}, 422, "cannot be both set"),
        ({"dryRun": ["Server"]}, 422, 'Unsupported value: ["Server"]: supported values: "All"'),
        ({"kind": "Pod"}, 400, 'no kind "Pod" is registered'),
        ({"gracePeriodSeconds": "5"}, 400, "cannot unmarshal string into Go struct field"),
        ({"gracePeriodSeconds": True}, 400, "cannot unmarshal bool"),
        ([], 400, "cannot unmarshal array into Go value"),
    ],
)
def test_delete_options_that_make_no_sense(body, code: int, words: str) -> None:
    with pytest.raises(StatusError) as caught:
        parse_delete_options(body, {}, ())
    assert caught.value.code == code
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("query", "watch", "field"),
    [
        ({"resourceVersionMatch": "Exact"}, False, "resourceVersionMatch"),
        ({"resourceVersionMatch": "Exact", "resourceVersion": "0"}, False, "resourceVersionMatch"),
        ({"sendInitialEvents": "true"}, False, "sendInitialEvents"),
        ({"sendInitialEvents": "true"}, True, "resourceVersionMatch"),
        ({"resourceVersionMatch": "NotOlderThan"}, True, "resourceVersionMatch"),
    ],
)
def test_list_options_that_do_not_go_together(query, watch: bool, field: str) -> None:
    with pytest.raises(StatusError) as caught:
        parse_list_options(query, watch=watch)
    assert caught.value.code == 422
    assert caught.value.status["details"]["causes"][0]["field"] == field


@given(st.integers(-1, 1 << 40), st.from_regex(r"[a-z0-9-]{1,20}(/[a-z0-9.-]{1,20}[a-z0-9])?", fullmatch=True))
def test_a_continue_token_brings_back_where_it_was(revision: int, key: str) -> None:
    assert decode_continue(encode_continue(revision, key)) == (revision, key)


@given(st.text())
def test_any_other_token_is_a_bad_request(token: str) -> None:
    with pytest.raises(StatusError) as caught:
        decode_continue(token)
    assert caught.value.code == 400


@pytest.mark.parametrize(
    ("accept", "list_", "expected"),
    [
        ("", False, (JSON, "")),
        ("*/*", False, (JSON, "")),
        ("application/yaml", False, (YAML, "")),
        (f"{PROTOBUF},application/json", False, (PROTOBUF, "")),
        (f"application/json;q=0.5,{PROTOBUF};as=Table;v=v1;g=meta.k8s.io", True, (JSON, "")),
        ("application/json;q=0.5,application/yaml", False, (YAML, "")),
        ("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", True, (JSON, "Table")),
        ("application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io", True, (JSON, "PartialObjectMetadataList")),
        ("application/json;as=Table;v=v2;g=meta.k8s.io,application/json", True, (JSON, "")),
    ],
)
def test_the_first_form_that_can_be_served(accept: str, list_: bool, expected: tuple[str, str]) -> None:
    media_type = negotiate(accept, list_=list_)
    assert (media_type.name, media_type.as_) == expected


@pytest.mark.parametrize(
    "accept",
    ["text/html", "application/*", "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io"],
)
def test_forms_that_cannot_be_served(accept: str) -> None:
    with pytest.raises(StatusError) as caught:
        negotiate(accept, list_=True)
    assert caught.value.code == 406


def test_a_route_that_offers_one_media_type_refuses_clients_of_others() -> None:
    for accept in ("", "*/*", f"{PROTOBUF},application/json"):
        check_offered(accept, JSON)
    with pytest.raises(StatusError, match=r"Available representations: application/json$"):
        check_offered(PROTOBUF, JSON)


def test_an_allocator_gives_each_number_once_until_it_comes_back() -> None:
    allocator = Allocator(1, 20, Random(1))
    numbers = [allocator.take_any() for _ in range(20)]
    assert sorted(numbers) == list(range(1, 21))
    assert allocator.take_any() is None
    allocator.give_back(7)
    assert allocator.take_any() == 7


def test_addresses_and_ports_stay_in_their_range() -> None:
    addresses = ClusterIPAllocator("10.96.0.0/29", Random(1))
    assert len({addresses.take_any() for _ in range(6)}) == 6
    with pytest.raises(AllocationError, match="range is full"):
        addresses.take_any()
    with pytest.raises(AllocationError, match="does not match the current range"):
        addresses.take("10.97.0.1")
    with pytest.raises(AllocationError, match="does not match the current range"):
        addresses.take("garbage")
    with pytest.raises(AllocationError, match=r"The range of valid IPs is 10\.96\.0\.0/29"):
        addresses.take("10.97.0.1", dry_run=True)
    ports = NodePortAllocator(Random(1))
    with pytest.raises(AllocationError, match="30000-32767"):
        ports.take(80)
