"""Answers in Kubernetes's protobuf, read back by the decoder of request bodies."""

import struct
from typing import Any

import orjson
import pytest

from lastcall.kube.api.defaults import kinds as defaults
from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import Object
from lastcall.kube.api.protobuf.decoding import decode_envelope
from lastcall.kube.api.protobuf.encoding import encode_envelope, encode_items, encode_list, watch_frame
from lastcall.kube.api.resources import PODS
from lastcall.kube.api.schema.pruning import prune
from lastcall.kube.apiserver.answers.representation import reformat
from lastcall.kube.apiserver.wire.negotiation import PROTOBUF, negotiate, negotiate_status


def pod() -> Object:
    obj: Object = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": "p",
            "uid": "u",
            "generation": 3,
            "creationTimestamp": "2030-01-01T00:00:01Z",
            "labels": {"b": "2", "a": ""},
            "finalizers": ["a/b", "c/d"],
            "managedFields": [{"manager": "m", "fieldsV1": {"f:spec": {}}, "time": "2030-01-01T00:00:01Z"}],
        },
        "spec": {
            "terminationGracePeriodSeconds": -1,
            "volumes": [{"name": "v", "configMap": {"name": "c", "defaultMode": 420}}],
            "containers": [
                {
                    "name": "m",
                    "image": "i",
                    "resources": {"limits": {"cpu": "500m"}},
                    "livenessProbe": {"httpGet": {"port": "web", "path": "/"}},
                    "readinessProbe": {"tcpSocket": {"port": 80}},
                    "envFrom": [{"configMapRef": {"name": "c"}}],
                }
            ],
        },
        "status": {"phase": "Running", "startTime": "2030-01-01T00:00:02Z"},
    }
    defaults.set_defaults(PODS, obj)
    return obj


def pruned(obj: Object) -> Object:
    prune(PODS, obj)
    return obj


def test_a_pod_comes_back_as_it_went() -> None:
    assert pruned(decode_envelope(encode_envelope(pod()))) == pruned(pod())


def test_lists_and_statuses_have_messages_and_declared_kinds_have_none() -> None:
    items = [{key: value for key, value in pod().items() if key not in ("kind", "apiVersion")}]
    sent = {
        "kind": "PodList",
        "apiVersion": "v1",
        "metadata": {"resourceVersion": "7", "continue": "c"},
        "items": items,
    }
    back = decode_envelope(encode_envelope(sent))
    assert (back["kind"], back["metadata"]) == ("PodList", {"resourceVersion": "7", "continue": "c"})
    assert [item["metadata"]["name"] for item in back["items"]] == ["p"]
    status: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": "no",
        "reason": "NotFound",
        "details": {"name": "x", "kind": "pods", "causes": [{"reason": "a", "message": "b"}]},
        "code": 404,
    }
    assert decode_envelope(encode_envelope(status)) == status


def test_what_go_writes_although_it_is_zero_is_there() -> None:
    back = decode_envelope(encode_envelope({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "c"}}))
    assert back["metadata"] == {"name": "c", "generation": 0}


def test_an_event_of_a_watch_is_framed_by_its_length() -> None:
    frame = watch_frame("ADDED", {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "c"}})
    assert struct.unpack(">I", frame[:4])[0] == len(frame) - 4
    assert frame[4:].startswith(b"\x0a\x05ADDED\x12") and b"k8s\x00" in frame


def test_a_client_that_prefers_protobuf_gets_it_where_the_kind_has_a_message() -> None:
    assert negotiate(f"{PROTOBUF},application/json", list_=False).name == PROTOBUF
    assert negotiate(f"application/json,{PROTOBUF}", list_=False).name == "application/json"
    assert negotiate(f"{PROTOBUF},application/json", list_=False, message=False).name == "application/json"
    assert negotiate_status(f"{PROTOBUF},application/json").name == PROTOBUF


def test_of_a_kind_without_a_message_protobuf_has_the_metadata() -> None:
    form = negotiate(f"{PROTOBUF};as=PartialObjectMetadata;v=v1;g=meta.k8s.io", list_=False, message=False)
    assert (form.name, form.as_) == (PROTOBUF, "PartialObjectMetadata")
    with pytest.raises(StatusError, match="only the following media types"):
        negotiate(PROTOBUF, list_=False, message=False)


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_list_that_is_encoded_in_slices_is_the_list_encoded_at_once(size: int) -> None:
    items = [{"metadata": {"name": name, "creationTimestamp": None}, "data": {"a": name}} for name in "abc"]
    head = {"kind": "ConfigMapList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}}
    slices = [encode_items(head, items[start : start + size]) for start in range(0, len(items), size)]
    assert encode_list(head, b"".join(slices)) == encode_envelope({**head, "items": items})


def test_metadata_alone_is_there_in_protobuf_and_a_table_is_not() -> None:
    form = "v=v1;g=meta.k8s.io"
    partial = negotiate(f"{PROTOBUF};as=PartialObjectMetadata;{form}", list_=False)
    assert (partial.name, partial.as_) == (PROTOBUF, "PartialObjectMetadata")
    with pytest.raises(StatusError, match="only the following media types"):
        negotiate(f"{PROTOBUF};as=Table;{form}", list_=True)


@pytest.mark.parametrize(
    ("accept", "name"),
    [
        (f"{PROTOBUF};as=PartialObjectMetadata;v=v1;g=meta.k8s.io,{PROTOBUF}", PROTOBUF),
        ("application/yaml;as=Table;v=v1;g=meta.k8s.io,application/json", "application/json"),
        ("application/yaml", "application/yaml"),
        ("", "application/json"),
    ],
)
def test_the_status_of_a_refused_request_is_never_in_another_form(accept: str, name: str) -> None:
    assert (negotiate_status(accept).name, negotiate_status(accept).as_) == (name, "")


def test_a_refused_request_for_another_form_alone_is_answered_in_json() -> None:
    with pytest.raises(StatusError):
        negotiate_status("application/yaml;as=Table;v=v1;g=meta.k8s.io")


def test_lines_of_yaml_are_folded_as_go_folds_them() -> None:
    body = reformat(
        orjson.dumps({"a": "word " * 20 + "end", "b": "x" * 120}), negotiate("application/yaml", list_=False)
    )
    assert body.decode() == "a: " + "word " * 15 + "word\n  " + "word " * 4 + f"end\nb: {'x' * 120}\n"


def test_yaml_is_written_as_go_writes_it() -> None:
    texts = {"a": "true", "b": "2030-01-01T00:00:00Z", "c": "x\ny\n", "d": "plain", "e": "", "f": "1", "g": "- x"}
    body = orjson.dumps({**texts, "h": ["y"], "i": "é"})
    assert reformat(body, negotiate("application/yaml", list_=False)).decode() == (
        'a: "true"\nb: "2030-01-01T00:00:00Z"\nc: |\n  x\n  y\nd: plain\ne: ""\nf: "1"\ng: \'- x\'\nh:\n- "y"\ni: é\n'
    )
