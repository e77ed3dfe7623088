"""Patterns that users write are read as by Go, and matching takes time linear in the text."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from lastcall.kube.api.custom.patterns import pattern
from lastcall.kube.api.custom.structural import schema_errors
from lastcall.kube.api.validators.definitions.spec import validate_definition

RECORDED = json.loads((Path(__file__).parent / "data" / "patterns.json").read_bytes())
"""[pattern, the error or null], as Kubernetes 1.36.2 answered a CustomResourceDefinition."""
NOT_IN_RE2 = {"\\p{Letter}", "\\p{Cn}", "\\p{LC}", "\\p{Assigned}", "\\p{ASCII}"}
OTHER_WORDS = {"(?<=a)"}


@pytest.mark.parametrize(("text", "error"), RECORDED, ids=lambda value: ascii(value)[:30])
def test_a_pattern_is_read_as_by_go(text: str, error: str | None) -> None:
    found = pattern(text)
    if text in NOT_IN_RE2:
        assert "invalid character class range" in found.error
    elif text in OTHER_WORDS:
        assert found.error
    else:
        assert found.error == (error or "")


@pytest.mark.parametrize("text", ["^(a+)+$", "(x+x+)+y", "(.*a){20}", "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.)?)+$"])
def test_no_pattern_takes_more_than_time_linear_in_the_text(text: str) -> None:
    begun = time.perf_counter()
    pattern(text).matches("a" * 100_000 + "!" if "x" not in text else "x" * 100_000)
    assert time.perf_counter() - begun < 30, "with a pattern that goes back it is hours"


def test_a_pattern_without_end_is_refused() -> None:
    for text in ("(\\pL{1000})", "(?:" * 100_000 + "\\pL{9}" * 5000):
        assert pattern(text).error


def test_what_differs_between_go_and_python_goes_by_go() -> None:
    assert not pattern("^a$").matches("a\n")
    assert not pattern("^\\d$").matches("٣")
    assert not pattern("^\\w$").matches("é")
    assert pattern("^\\pL$").matches("é")
    assert pattern("^.$").matches("é")
    assert pattern("b").matches("abc"), "some part of it is enough"
    assert not pattern("a").matches("\ud800")


def a_definition(*schemas: dict[str, Any], **version: Any) -> dict[str, Any]:
    versions = [
        {
            "name": f"v{number}",
            "served": True,
            "storage": number == 1,
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {"s": schema}}},
            **version,
        }
        for number, schema in enumerate(schemas, 1)
    ]
    names = {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"}
    spec = {"group": "ex.com", "scope": "Namespaced", "names": names, "versions": versions}
    spec["conversion"] = {"strategy": "None"}
    return {"metadata": {"name": "foos.ex.com"}, "spec": spec, "status": {"storedVersions": ["v1"]}}


BAD = {"type": "string", "pattern": "("}
WHY = "must be a valid regular expression, but isn't: error parsing regexp: missing closing ): `(`"


@pytest.mark.parametrize(
    ("schemas", "path"),
    [
        ([BAD], "spec.validation.openAPIV3Schema.properties[s].pattern"),
        ([BAD, BAD], "spec.validation.openAPIV3Schema.properties[s].pattern"),
        ([{"type": "string"}, BAD], "spec.versions[1].schema.openAPIV3Schema.properties[s].pattern"),
        ([{"type": "array", "items": BAD}], "spec.validation.openAPIV3Schema.properties[s].items.pattern"),
        (
            [{"type": "object", "additionalProperties": BAD}],
            "spec.validation.openAPIV3Schema.properties[s].additionalProperties.pattern",
        ),
        (
            [{"type": "string", "allOf": [{"pattern": "("}]}],
            "spec.validation.openAPIV3Schema.properties[s].allOf[0].pattern",
        ),
        ([{"type": "string", "not": {"pattern": "("}}], "spec.validation.openAPIV3Schema.properties[s].not.pattern"),
    ],
)
def test_a_definition_whose_pattern_cannot_be_read_is_refused(schemas: list[dict[str, Any]], path: str) -> None:
    found = validate_definition(a_definition(*schemas))
    assert [(each.field, each.bad_value, each.detail) for each in found] == [(path, "(", WHY)]


def test_a_value_for_a_stored_pattern_that_cannot_be_read_is_refused() -> None:
    schema = {"type": "object", "properties": {"s": BAD}}
    (found,) = schema_errors(schema, {"s": "x"})
    assert found.detail.endswith(
        "should match '(, but pattern is invalid: error parsing regexp: missing closing ): `(`'"
    )


@pytest.mark.loopback
def test_re2_is_imported_with_the_first_pattern() -> None:
    code = (
        "import sys; from lastcall.kube.api.custom import patterns, structural;"
        "from lastcall.kube.api.validators.definitions import spec;"
        "assert 're2' not in sys.modules; patterns.pattern('a'); assert 're2' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
