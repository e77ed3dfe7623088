"""Numbers and formats of custom objects are accepted and refused as by Kubernetes, whatever the schema asks for."""

import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from lastcall.kube.api.custom.structural import schema_errors
from lastcall.kube.api.custom.values import is_json_integer

RECORDED = json.loads((Path(__file__).parent / "data" / "schema_values.json").read_bytes())
"""[schema of a field, value as JSON, whether Kubernetes 1.36.2 accepted it]"""


@pytest.mark.parametrize(("schema", "text", "accepted"), RECORDED, ids=lambda value: ascii(value)[:40])
def test_a_value_is_accepted_as_by_kubernetes(schema: dict[str, Any], text: str, accepted: bool) -> None:
    if schema.get("multipleOf") == 1e308 and text == "0":
        pytest.skip("Go turns 1e308 into a negative number of 64 bits")
    errors = schema_errors({"type": "object", "properties": {"s": schema}}, {"s": orjson.loads(text)})
    assert (not errors) is accepted, [str(each) for each in errors]


@pytest.mark.parametrize(
    ("value", "whole"),
    [
        (2**63 - 1, True), (2**63, False), (1.0, True), (1e15, True), (1e16, False), (3.0000000001, True), (3.1, False),
        (0.0, True), (1e-320, False), (float("inf"), False), (float("nan"), False), (-(2**63), True), (-2.0, True),
    ],
)  # fmt: skip
def test_what_counts_as_a_whole_number(value: float, whole: bool) -> None:
    assert is_json_integer(value) is whole
