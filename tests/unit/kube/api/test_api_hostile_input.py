"""Whatever a client sends is answered with a refusal or accepted, never with a traceback."""

import random
from copy import deepcopy
from typing import Any

import pytest

from lastcall.kube.api import errors
from lastcall.kube.api.defaults import kinds as defaults
from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.meta import copy_object
from lastcall.kube.api.patch import apply as patch
from lastcall.kube.api.pods import spec as pods
from lastcall.kube.api.resources import SERVED, Resource
from lastcall.kube.api.schema import checks as schema
from lastcall.kube.api.schema.pruning import prune
from lastcall.kube.api.schema.types import Field, Struct, struct_for, struct_of
from lastcall.kube.api.validation import validate_create, validate_update

TEXTS = ["", "a", "x/y", "Bad_Name", "..", "a=b", "\x00", "None", "Always", "ClusterIP", "10.0.0.1", "x" * 300, "é"]
SCALARS: dict[str, list[Any]] = {
    "quantity": ["1", "100m", "-1", "", 3, 0.5, "1Gi"],
    "intstr": [80, "http", "", -1],
    "time": ["2030-01-01T00:00:00Z", None, "2030-01-01T00:00:00.123456Z", "9999-12-31T23:59:59-05:00"],
    "microtime": ["2030-01-01T00:00:00.123456Z", None, "0001-01-01T00:00:00.000000+05:00"],
    "byte": ["", "eA==", None],
}
WRONG = [None, True, 7, -1, 1.5, "text", [], {}, [None], {"a": None}, [{}], 10**18]


def a_value(field: Field, source: random.Random, depth: int, wrong: float) -> Any:
    if source.random() < wrong:
        return deepcopy(source.choice(WRONG))
    if field.shape == "struct":
        return an_object(struct_of(field), source, depth + 1, wrong)
    if field.shape == "list":
        assert field.item is not None
        return [a_value(field.item, source, depth, wrong) for _ in range(source.randint(0, 2))]
    if field.shape == "map":
        assert field.item is not None
        return {source.choice(TEXTS): a_value(field.item, source, depth, wrong) for _ in range(source.randint(0, 2))}
    if field.shape == "scalar":
        return source.choice(SCALARS[field.format])
    if field.shape == "string":
        return source.choice([*TEXTS, *field.enum])
    if field.shape == "boolean":
        return source.random() < 0.5
    return source.choice([0, 1, -1, 80, 70000, 2**31 - 1]) if field.shape in ("integer", "number") else {}


def an_object(struct: Struct, source: random.Random, depth: int, wrong: float) -> dict[str, Any]:
    keys = list(struct.fields)
    chosen = [key for key in keys if key in struct.required or source.random() < (0.6 if depth < 3 else 0.25)]
    return {key: a_value(struct.fields[key], source, depth, wrong) for key in chosen if depth < 8}


def answer(resource: Resource, obj: dict[str, Any]) -> str:
    """What becomes of a create: `decode`, `invalid` or `accepted`."""
    try:
        schema.check_fields(resource, obj)
    except schema.DecodeError:
        return "decode"
    prune(resource, obj)
    defaults.set_defaults(resource, obj)
    if resource.kind == "Pod":
        pods.qos_class(obj)
    found = validate_create(resource, obj) + validate_update(resource, copy_object(obj), obj)
    assert errors.invalid(resource, "x", found).message.startswith(resource.kind)
    again = copy_object(obj)
    prune(resource, again)
    defaults.set_defaults(resource, again)
    assert again == obj, "decoding and defaulting an answer changes nothing"
    return "invalid" if found else "accepted"


@pytest.mark.parametrize("resource", SERVED, ids=lambda resource: resource.group_resource)
@pytest.mark.parametrize("wrong", [0.0, 0.02])
def test_random_objects_get_an_answer(resource: Resource, wrong: float) -> None:
    source = random.Random(f"{resource.group_resource} {wrong}")
    for _ in range(150):
        answer(resource, an_object(struct_for(resource), source, 0, wrong))


def outcome(apply: Any, doc: Any, change: Any) -> int:
    """The status code."""
    try:
        return 200 if isinstance(apply(doc, change), dict) else 0
    except StatusError as error:
        return error.code


@pytest.mark.parametrize("resource", SERVED, ids=lambda resource: resource.group_resource)
def test_random_patches_get_an_answer(resource: Resource) -> None:
    source = random.Random(resource.group_resource)
    for _ in range(150):
        doc = an_object(struct_for(resource), source, 0, 0.0)
        change = an_object(struct_for(resource), source, 0, 0.05)
        for key in ("$patch", "$retainKeys", "$setElementOrder/finalizers", "$deleteFromPrimitiveList/finalizers"):
            if source.random() < 0.1:
                change.setdefault("metadata", {})
                if isinstance(change["metadata"], dict):
                    change["metadata"][key] = source.choice(["delete", "bogus", [], ["a"], None, {}])
        before = copy_object(doc)
        for apply in (patch.merge_patch, lambda d, p: patch.strategic_merge_patch(resource, d, p)):
            assert outcome(apply, doc, change) in (200, 400, 422, 500)
        assert doc == before


@pytest.mark.parametrize("bad", WRONG)
def test_a_patch_that_is_no_patch_is_refused(bad: Any) -> None:
    for apply in (patch.apply_json_patch, patch.merge_patch, lambda d, p: patch.strategic_merge_patch(SERVED[1], d, p)):
        assert outcome(apply, {"metadata": {}}, bad) in (200, 400, 422)
