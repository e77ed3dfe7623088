"""The JSON against its published schema."""

import json
import re
from pathlib import Path

import pytest

from lastcall.timeline import kinds as k
from lastcall.timeline.render.json_v1 import SCHEMA, endings_document

DOCS = Path(__file__).parents[3] / "docs"
PUBLISHED = json.loads((DOCS / "ending-v1.schema.json").read_text())

_TYPES = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
}


def problems(value, schema, where="$"):
    """The part of JSON Schema that the published schema uses."""
    known = {
        "$schema", "$id", "$defs", "$ref", "title", "type", "required", "additionalProperties", "properties", "items",
        "enum", "const", "pattern", "anyOf",
    }  # fmt: skip
    assert set(schema) <= known, f"this check does not know {set(schema) - known}"
    if "$ref" in schema:
        yield from problems(value, PUBLISHED["$defs"][schema["$ref"].rpartition("/")[2]], where)
        return
    if "anyOf" in schema:
        if all(list(problems(value, each, where)) for each in schema["anyOf"]):
            yield f"{where}: fits none of anyOf"
        return
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(
        isinstance(value, _TYPES[t]) and (t == "boolean" or not isinstance(value, bool)) for t in types
    ):
        yield f"{where}: {value!r} is no {types}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where}: {value!r} is none of {schema['enum']}"
    if "const" in schema and value != schema["const"]:
        yield f"{where}: {value!r} is not {schema['const']!r}"
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        yield f"{where}: {value!r} does not match {schema['pattern']}"
    if isinstance(value, dict):
        for name in schema.get("required", []):
            if name not in value:
                yield f"{where}.{name}: missing"
        for name, each in value.items():
            if name in schema.get("properties", {}):
                yield from problems(each, schema["properties"][name], f"{where}.{name}")
            elif schema.get("additionalProperties") is False:
                yield f"{where}.{name}: not in the schema"
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield from problems(each, schema.get("items", {}), f"{where}[{index}]")


def document(*endings, status=0, error=""):
    made = endings_document(
        endings, kubernetes_version="1.36", lastcall_version="0.1.0", exit_status=status, error=error
    )
    return json.loads(json.dumps(made, allow_nan=False))


@pytest.mark.parametrize("name", ["graceful", "sigkill-1.36", "sigkill-1.23"])
def test_real_stories_fit_the_published_schema(tapes, name):
    assert list(problems(document(tapes[name]().ending()), PUBLISHED)) == []


def test_a_story_with_everything_missing_fits_the_schema_too(new_tape):
    tape = new_tape()
    tape.started()
    tape.accepted()
    tape.add(1.4, "init", k.PROCESS_DIED, role="node-1", pid=4, exitCode=None, signal=9)
    made = document(tape.ending(), new_tape().ending(), status=1, error="node-1 was killed by SIGKILL")
    assert list(problems(made, PUBLISHED)) == []
    assert made["pods"][0]["gone"] is None


def test_the_check_finds_what_does_not_fit(tapes):
    made = document(tapes["graceful"]().ending())
    made["pods"][0]["containers"][0]["exitCode"] = "0"
    made["pods"][0]["surprise"] = 1
    del made["schema"]
    found = "\n".join(problems(made, PUBLISHED))
    assert "exitCode: '0' is no" in found
    assert "surprise: not in the schema" in found
    assert "$.schema: missing" in found


def test_the_document_says_what_it_is_and_times_count_from_the_delete(tapes):
    made = document(tapes["sigkill-1.36"]().ending(), status=3)
    assert made["schema"] == SCHEMA == PUBLISHED["$id"]
    (pod,) = made["pods"]
    accepted = next(r for r in pod["records"] if r["kind"] == k.DELETE_ACCEPTED)
    assert accepted["at"] == 0
    assert accepted["wall"] == pod["deletedAt"]
    assert [r["at"] for r in pod["records"]] == sorted(r["at"] for r in pod["records"])
    assert pod["records"][0]["at"] < 0
    budget = pod["budget"]
    left = budget["grace"] - budget["preStop"] - budget["waiting"] - budget["drain"]
    assert left == pytest.approx(budget["unused"] - budget["overrun"], abs=1e-5)


def test_every_field_of_the_schema_is_described_in_the_document():
    text = (DOCS / "ending-v1.md").read_text()
    for name, definition in {"document": PUBLISHED, **PUBLISHED["$defs"]}.items():
        for field in definition.get("properties", {}):
            assert re.search(rf"\b{field}\b", text), f"{name}.{field} is not described"
