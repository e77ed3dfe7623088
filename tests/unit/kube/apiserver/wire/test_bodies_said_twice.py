"""What a body says twice or in the wrong place, and how that is told: as warnings, or as a refusal."""

import pytest

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.resources import CONFIGMAPS, DEPLOYMENTS, PODS
from lastcall.kube.apiserver.auth.authentication import UserInfo
from lastcall.kube.apiserver.registry.patching import check_patched, patched, patcher
from lastcall.kube.apiserver.wire.bodies import Turns, decode_object, decode_patch
from lastcall.kube.apiserver.wire.context import RequestContext
from lastcall.kube.apiserver.wire.negotiation import JSON, YAML
from lastcall.kube.apiserver.wire.options import parse_dry_run
from lastcall.kube.apiserver.wire.preparing import prepare, prepare_patched
from lastcall.kube.client.api import JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH
from lastcall.world.clock import RealClock

BODY = (
    b'{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"unknown":1,"gone":{"x":1,"x":2},'
    b'"gone":2,"paused":true,"paused":false,"selector":{"matchLabels":{"a":"b"}},"template":{"spec":{"containers":'
    b'[{"name":"m","image":"x","nested":1,"image":"y"}]}}}}'
)
PROBLEMS = [
    'unknown field "spec.unknown"',
    'unknown field "spec.gone"',
    'duplicate field "spec.paused"',
    'unknown field "spec.template.spec.containers[0].nested"',
    'duplicate field "spec.template.spec.containers[0].image"',
]


def context(validation: str) -> RequestContext:
    return RequestContext(UserInfo("u", ()), field_validation=validation)  # type: ignore[arg-type]


async def read(body: bytes, validation: str, resource=DEPLOYMENTS, media_type: str = JSON) -> list[str]:
    asked = context(validation)
    prepare(asked, resource, await decode_object(body, media_type, resource, asked, Turns(RealClock())))
    return asked.warnings


async def test_what_is_repeated_and_what_is_unknown_comes_in_the_order_of_the_document() -> None:
    assert await read(BODY, "Warn") == PROBLEMS
    assert await read(BODY, "Ignore") == []
    with pytest.raises(StatusError) as refused:
        await read(BODY, "Strict")
    assert refused.value.message == (
        'Deployment in version "v1" cannot be handled as a Deployment: strict decoding error: ' + ", ".join(PROBLEMS)
    )


async def test_a_body_with_spaces_repeats_nothing_for_that() -> None:
    assert await read(b'{ "metadata" : { "name" : "c" } , "data" : { "a" : "1.0" } }  ', "Strict", CONFIGMAPS) == []


async def test_keys_that_a_yaml_text_has_twice_are_told_with_their_lines() -> None:
    body = b"metadata:\n  name: c\ndata:\n  a: b\n  a: c\nfoo: 1\n"
    assert await read(body, "Warn", CONFIGMAPS, YAML) == ['line 5: key "a" already set in map', 'unknown field "foo"']
    with pytest.raises(StatusError) as refused:
        await read(body, "Strict", CONFIGMAPS, YAML)
    assert 'strict decoding error: yaml: unmarshal errors:\n  line 5: key "a" already set in map' in str(refused.value)


@pytest.mark.parametrize(
    ("content_type", "patch", "words"),
    [
        (MERGE_PATCH, b'{"data":{"b":1}}', '"{\\"apiVersion\\":\\"v1\\",\\"data\\":{\\"a\\":\\"x\\",\\"b\\":1},'),
        (JSON_PATCH, b'[{"op":"add","path":"/data/b","value":1}]', '"{\\"apiVersion\\":\\"v1\\",\\"data\\":{'),
        (STRATEGIC_MERGE_PATCH, b'{"data":{"b":1}}', '"map[data:map[b:1]]": cannot convert int64 to string'),
        (STRATEGIC_MERGE_PATCH, b'{"data":["b"]}', '"map[data:[b]]": cannot restore map from slice'),
        (STRATEGIC_MERGE_PATCH, b'{"metadata":{"labels":3}}', "cannot restore map from int64"),
        (STRATEGIC_MERGE_PATCH, b'{"bogus":2}', '"map[bogus:2]": strict decoding error: unknown field "bogus"'),
        (MERGE_PATCH, b'{"data":{"b":"1"},"data":{"b":"1"}}', 'strict decoding error: duplicate field "data"'),
    ],
)
async def test_a_patch_that_makes_no_object_is_a_422_that_shows_what_it_made(content_type, patch, words) -> None:
    old = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "c", "namespace": "n"}, "data": {"a": "x"}}
    asked = context("Strict")
    change = await decode_patch(patch, content_type, Turns(RealClock()), asked)
    new = patcher(CONFIGMAPS, "c", content_type, change)(old)
    with pytest.raises(StatusError) as refused:
        prepare_patched(asked, CONFIGMAPS, new, lambda: patched(CONFIGMAPS, "c", content_type, change, old), old)
    assert refused.value.code == 422
    assert refused.value.message.startswith(' "" is invalid: patch: Invalid value: "')
    assert words in refused.value.message


def test_a_patch_does_not_move_an_object_to_another_namespace() -> None:
    old = {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "c", "namespace": "n"}}
    new = patcher(CONFIGMAPS, "c", MERGE_PATCH, {"metadata": {"namespace": "other"}})(old)
    with pytest.raises(StatusError, match="the namespace of the provided object does not match") as refused:
        check_patched(CONFIGMAPS, "c", new, old)
    assert refused.value.code == 400


@pytest.mark.parametrize(
    ("body", "media_type", "words"),
    [
        (b'{"metadata":"x"}', JSON, "cannot unmarshal string into Go struct field Pod.metadata of type v1.ObjectMeta"),
        (b"{" + b" " * 40 + b"bad", JSON, "({" + " " * 29 + " ...)"),
        (b"a: [", YAML, "(613a205b)"),
    ],
)
async def test_a_body_that_cannot_be_read_is_shown_by_its_beginning(body: bytes, media_type: str, words: str) -> None:
    with pytest.raises(StatusError) as refused:
        await read(body, "Warn", PODS, media_type)
    assert words in refused.value.message


def test_an_unknown_field_validation_is_an_invalid_option() -> None:
    with pytest.raises(StatusError) as refused:
        parse_dry_run("CreateOptions", {"fieldValidation": "Foo"}, [])
    assert refused.value.code == 422
    assert refused.value.message == (
        'CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Foo": supported values: "", '
        '"Ignore", "Strict", "Warn"'
    )
