"""Every kind goes through protobuf: to it, and back to what it was."""

import json
import random
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from lastcall.kube.api.protobuf.decoding import decode_envelope
from lastcall.kube.api.protobuf.encoding import _ALWAYS, encode_envelope
from lastcall.kube.api.resources import CUSTOMRESOURCEDEFINITIONS, SERVED, Resource
from lastcall.kube.api.schema.decoding import decode_fields
from lastcall.kube.api.schema.newer import FIELDS
from lastcall.kube.api.schema.types import Field, Struct, struct_for, struct_of

API = Path(__file__).parents[4] / "src" / "lastcall" / "kube" / "api"
TEXTS = {
    "quantity": "100m",
    "intstr": "5%",
    "time": "9999-12-31T23:59:59Z",
    "microtime": "0000-12-31T19:00:00.000001Z",
    "byte": "YQ==",
}
FREE = {
    "apiextensions.v1.JSON": [1, {"a": None}],
    "apiextensions.v1.JSONSchemaPropsOrArray": {"type": "string"},
    "apiextensions.v1.JSONSchemaPropsOrBool": True,
    "apiextensions.v1.JSONSchemaPropsOrStringArray": ["a", "b"],
    "meta.v1.FieldsV1": {"f:a": {}},
    "runtime.RawExtension": {"kind": "X"},
}


def a_value(field: Field, source: random.Random, depth: int) -> Any:
    if field.shape == "struct":
        return an_object(struct_of(field), source, depth + 1)
    if field.shape == "list":
        assert field.item is not None
        return [a_value(field.item, source, depth) for _ in range(2)]
    if field.shape == "map":
        assert field.item is not None
        return {key: a_value(field.item, source, depth) for key in ("a", "b")}
    if field.shape == "scalar":
        return 7 if field.format == "intstr" and source.random() < 0.5 else TEXTS[field.format]
    if field.shape == "string":
        return source.choice([each for each in field.enum if each] or ["x", "é\n"])
    if field.shape == "boolean":
        return True
    if field.shape in ("integer", "number"):
        largest = 2**31 - 1 if field.format == "int32" else 2**63 - 1
        return source.choice([1, -1, largest]) if field.shape == "integer" else 0.5
    return deepcopy(FREE.get(field.ref))


def an_object(struct: Struct, source: random.Random, depth: int) -> dict[str, Any]:
    """All fields, and from some depth on half of them."""
    every = depth < 4 or struct.name in _ALWAYS
    newer = FIELDS.get(struct.name, {})  # the API server drops them: they are in no answer
    keys = [key for key in struct.fields if key not in newer]
    keys = [key for key in keys if every or (source.random() < 0.4 and depth < 9)]
    made = {key: a_value(struct.fields[key], source, depth) for key in keys}
    if depth and "metadata" in struct.fields:  # as in volumeClaimTemplates: protobuf has no kind there
        made = {key: value for key, value in made.items() if key not in ("apiVersion", "kind")}
    return {key: value for key, value in made.items() if value is not None}


@pytest.mark.parametrize("resource", SERVED, ids=lambda resource: f"{resource.group_resource}-{resource.version}")
def test_an_object_with_every_field_comes_back_as_it_was(resource: Resource) -> None:
    head = {"apiVersion": resource.api_version, "kind": resource.kind}
    for number in range(3):
        obj = {**an_object(struct_for(resource), random.Random(f"{resource} {number}"), 0), **head}
        assert decode_fields(resource, obj) == []
        back = decode_envelope(encode_envelope(obj))
        assert decode_fields(resource, back) == []
        assert back == obj
        if resource.kind != "Binding":
            items = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version, "items": [obj]}
            (item,) = decode_envelope(encode_envelope(items))["items"]
            decode_fields(resource, item)
            assert {**item, **head} == obj


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array", "items": [{"type": "string"}, {"type": "integer"}]},
        {"type": "object", "additionalProperties": False},
        {"type": "object", "additionalProperties": {"type": "string"}},
        {"type": "string", "default": "x", "enum": ["x", None, 5, 1.5, {"a": []}, []]},
        {"type": "object", "default": {}, "example": [1], "maximum": 1e308, "multipleOf": 5e-324},
    ],
)
def test_an_odd_schema_comes_back_as_it_was(schema: dict[str, Any]) -> None:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    obj = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "spec": {"group": "g", "names": {"kind": "K", "plural": "ks"}, "scope": "Cluster", "versions": [version]},
    }
    back = decode_envelope(encode_envelope(obj))
    for each in (back, obj):
        decode_fields(CUSTOMRESOURCEDEFINITIONS, each)
    assert back == obj and back["spec"]["versions"][0]["schema"] == {"openAPIV3Schema": schema}


WRITTEN_OTHERWISE = {
    "apiextensions.v1.JSONSchemaPropsOrArray",
    "apiextensions.v1.JSONSchemaPropsOrBool",
    "apiextensions.v1.JSONSchemaPropsOrStringArray",
}
"""Types whose JSON is that of one of their fields."""


def test_what_protobuf_has_of_a_type_json_has_too() -> None:
    schema = json.loads((API / "schema" / "schema.json").read_text())["types"]
    lost = {}
    for name, fields in json.loads((API / "protobuf" / "protobuf.json").read_text()).items():
        known = schema.get(name, {}).get("f")
        if known is not None and name not in WRITTEN_OTHERWISE:
            # A field of an embedded struct has the struct's own name; its fields stand beside the others in JSON.
            plain = [field[1] for field in fields if field[2] in ("string", "bool", "int32")]
            lost[name] = [field for field in plain if field not in known]
    assert {name: fields for name, fields in lost.items() if fields} == {}
