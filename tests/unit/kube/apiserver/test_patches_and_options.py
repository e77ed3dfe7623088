"""What a patch says, how its mistakes are told, and what its options may be."""

import pytest

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.patch.apply import apply_json_patch
from lastcall.kube.api.resources import CONFIGMAPS, DEPLOYMENTS, ENDPOINTSLICES, EVENTS, PODS
from lastcall.kube.api.schema.pruning import prune
from lastcall.kube.apiserver.registry.patching import patcher
from lastcall.kube.apiserver.wire.bodies import Turns, decode_patch
from lastcall.kube.apiserver.wire.options import parse_dry_run
from lastcall.kube.client.api import JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH
from lastcall.world.clock import RealClock


def test_replace_sets_a_member_that_is_not_there_but_goes_nowhere_else() -> None:
    doc = {"spec": {}, "list": [1]}
    assert apply_json_patch(doc, [{"op": "replace", "path": "/spec/replicas", "value": 1}])["spec"] == {"replicas": 1}
    assert doc == {"spec": {}, "list": [1]}
    two = [{"op": "test", "path": "/list/0", "value": 1}, {"op": "replace", "path": "/spec/a", "value": 2}]
    assert apply_json_patch(doc, two)["spec"] == {"a": 2}
    for path in ("/spec/nope/x", "/list/3", "/nope/x"):
        with pytest.raises(StatusError) as caught:
            apply_json_patch(doc, [{"op": "replace", "path": path, "value": 1}])
        assert caught.value.code == 422
    assert apply_json_patch(doc, [{"op": "replace", "path": "/spec/a"}])["spec"] == {"a": None}


@pytest.mark.parametrize(
    ("content_type", "body", "message"),
    [
        (STRATEGIC_MERGE_PATCH, b"{bad", "invalid character 'b' looking for beginning of object key string"),
        (MERGE_PATCH, b"nope", "error decoding patch: invalid character 'o' in literal null (expecting 'u')"),
        (JSON_PATCH, b"[bad", "error decoding patch: invalid character 'b' looking for beginning of value"),
        (JSON_PATCH, b"[", "error decoding patch: unexpected end of JSON input"),
        (MERGE_PATCH, b"tru", "error decoding patch: unexpected end of JSON input"),
    ],
)
async def test_a_patch_that_is_no_json_is_told_in_go_s_words(content_type: str, body: bytes, message: str) -> None:
    with pytest.raises(StatusError) as caught:
        await decode_patch(body, content_type, Turns(RealClock()))
    assert (caught.value.code, caught.value.message) == (400, message)


def test_a_patch_may_not_make_another_kind_of_the_object() -> None:
    old = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "c"}}
    with pytest.raises(StatusError) as caught:
        patcher(CONFIGMAPS, "c", MERGE_PATCH, {"kind": "Nope"})(old)
    assert caught.value.code == 422
    assert caught.value.message == (
        ' "" is invalid: patch: Invalid value: "{\\"apiVersion\\":\\"v1\\",\\"kind\\":\\"Nope\\",\\"metadata\\":'
        '{\\"name\\":\\"c\\"}}": no kind "Nope" is registered for version "v1" in scheme '
        '"pkg/api/legacyscheme/scheme.go:30"'
    )
    with pytest.raises(StatusError):
        patcher(CONFIGMAPS, "c", MERGE_PATCH, {"kind": "Pod"})(old)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"fieldManager": "x" * 129}, "fieldManager: Too long: may not be more than 128 bytes"),
        (
            {"fieldManager": "a\x01b"},
            'fieldManager: Invalid value: "a\\x01b": invalid character U+0001 (at position 1)',
        ),
        ({"force": "true"}, "force: Forbidden: may not be specified for non-apply patch"),
    ],
)
def test_options_of_a_patch_are_checked(query: dict[str, str], message: str) -> None:
    with pytest.raises(StatusError) as caught:
        parse_dry_run("PatchOptions", query, ())
    assert caught.value.message == f'PatchOptions.meta.k8s.io "" is invalid: {message}'
    assert parse_dry_run("PatchOptions", {"fieldManager": "me", "force": "false"}, ["All"])


def test_what_go_encodes_as_null_stays_null() -> None:
    empty = {"metadata": {}, "addressType": "IPv4", "endpoints": [], "bogus": 1}
    prune(ENDPOINTSLICES, empty)
    assert empty == {"metadata": {}, "addressType": "IPv4", "endpoints": None, "ports": None}
    event = {"metadata": {}, "involvedObject": {}}
    prune(EVENTS, event)
    assert event["eventTime"] is None
    condition = {"type": "Ready", "status": "True", "lastProbeTime": None, "message": None}
    pod = {
        "metadata": {},
        "spec": {"containers": [{"name": "c", "args": [None]}]},
        "status": {"conditions": [condition]},
    }
    prune(PODS, pod)
    shown = {"type": "Ready", "status": "True", "lastProbeTime": None, "lastTransitionTime": None}
    assert pod["status"]["conditions"] == [shown]
    assert pod["spec"]["containers"] == [{"name": "c", "args": [""], "resources": {}}]


def test_zeros_that_a_protobuf_body_spells_out_go_and_those_that_mean_something_stay() -> None:
    deployment = {"metadata": {"generation": 0}, "spec": {"paused": False, "minReadySeconds": 0, "replicas": 0}}
    prune(DEPLOYMENTS, deployment)
    template = {"metadata": {}, "spec": {"containers": None}}
    spec = {"replicas": 0, "strategy": {}, "template": template}
    assert deployment == {"metadata": {}, "spec": spec, "status": {}}
