"""CustomResourceDefinitions, and what Kubernetes 1.36.2 found wrong with them (POST with dryRun=All)."""

import json
from pathlib import Path

import pytest

from lastcall.kube.api.defaults.kinds import set_defaults
from lastcall.kube.api.field import FieldError
from lastcall.kube.api.resources import CUSTOMRESOURCEDEFINITIONS as CRDS
from lastcall.kube.api.schema.checks import DecodeError
from lastcall.kube.api.schema.decoding import decode_fields
from lastcall.kube.api.validation import validate_create, validate_update
from lastcall.kube.api.validators.definitions.paths import field_path
from lastcall.kube.apiserver.strategies.custom import CustomResourceDefinitionStrategy

RECORDED = json.loads(Path(__file__).with_name("data").joinpath("definitions.json").read_text())


def definition(schema: dict) -> dict:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "crdthings.crd.example.com"},
        "spec": {
            "group": "crd.example.com",
            "scope": "Namespaced",
            "names": {"plural": "crdthings", "kind": "CrdThing"},
            "versions": [version],
        },
    }


def decoded(given: dict) -> dict:
    decode_fields(CRDS, given)
    set_defaults(CRDS, given)
    CustomResourceDefinitionStrategy(CRDS).prepare_for_create(given)
    return given


def lines(errors: list[FieldError]) -> list[str]:
    return sorted(str(each) for each in errors)


@pytest.mark.parametrize("row", RECORDED, ids=lambda row: row["name"])
def test_a_definition_is_judged_as_kubernetes_judges_it(row: dict) -> None:
    given = row.get("definition") or definition(row["schema"])
    wanted = row.get("causes", [])
    if isinstance(wanted, str):
        with pytest.raises(DecodeError) as refused:
            decoded(given)
        assert wanted.endswith(str(refused.value))
    else:
        assert lines(validate_create(CRDS, decoded(given))) == sorted(wanted)


def test_names_are_free_until_they_were_accepted() -> None:
    old, new = decoded(definition({"type": "object"})), decoded(definition({"type": "object"}))
    for each in (old, new):
        each["metadata"]["resourceVersion"] = "1"
    new["spec"]["scope"], new["spec"]["names"]["kind"] = "Cluster", "Other"
    assert validate_update(CRDS, new, old) == []
    old["status"]["conditions"] = [{"type": "Established", "status": "True"}]
    assert lines(validate_update(CRDS, new, old)) == [
        'spec.names.kind: Invalid value: "Other": field is immutable',
        'spec.scope: Invalid value: "Cluster": field is immutable',
    ]


NAMED = {"properties": {"a": {"type": "string"}, "m": {"type": "object", "additionalProperties": {"type": "string"}}}}


@pytest.mark.parametrize(
    ("path", "text"), [(".a", "a"), (".m['x.y']", "m[x.y]"), ("['a']", "a"), (".m['it\\'s']", "m[it's]")]
)
def test_paths_of_fields_lead_through_schemas(path: str, text: str) -> None:
    assert field_path(path, NAMED).text == text


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (".z", "does not refer to a valid field"),
        ("a", "expected [ or . but got: a"),
        (".m[", "unexpected end of JSON path"),
        (".m[x]", "expected single quoted string but got x"),
        (".m['\\q']", "invalid string literal: invalid escape char \\q"),
        (".m['x'", "unexpected end of JSON path"),
    ],
)
def test_a_path_that_leads_nowhere_says_why(path: str, words: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011
        field_path(path, NAMED)
    assert str(refused.value) == words
