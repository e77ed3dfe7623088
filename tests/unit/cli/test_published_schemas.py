"""Every document that a command prints as JSON has a published schema, which says what is in it and nothing else."""

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from published_schema import ROOT, SCHEMAS, documented, problems

from lastcall.cli.commands import cli
from lastcall.endings.render import about_cluster, envelope

COMMANDS = (["doctor"], ["status"], ["image", "ls"], ["lint", "-"])
CLUSTER = {
    "name": "lastcall", "phase": "running", "since": "2026-01-01T00:00:00Z", "pid": 7, "detached": True,
    "server": "https://127.0.0.1:1", "kubeconfig": "/k", "kubernetesVersion": "1.36", "state": "", "nodeCount": 1,
    "published": [], "directory": "/d", "lastcall": "0", "protocol": 1, "records": 1,
}  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def printed(arguments: list[str], output: str) -> Any:
    result = CliRunner().invoke(cli, [*arguments, "-o", output], input="kind: ConfigMap\napiVersion: v1\n")
    return json.loads(result.stdout)


@pytest.mark.parametrize("name", sorted(SCHEMAS))
def test_a_schema_is_of_the_draft_that_is_documented_and_its_page_names_it(name: str) -> None:
    schema = SCHEMAS[name]
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["additionalProperties"] is False
    if "schema" in schema["properties"]:
        assert schema["properties"]["schema"] == {"const": name} and "schema" in schema["required"]
        _, kind, version = name.split("/")
        file = f"{kind}-{version}.schema.json"
        assert file in (ROOT / "docs" / "ci.md").read_text() + (ROOT / "docs" / "rollout-v1.md").read_text()


DOCUMENTS = sorted(name for name, each in SCHEMAS.items() if "schema" in each["properties"] and "record" not in name)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_document_begins_with_the_same_fields(name: str) -> None:
    _, kind, version = name.split("/")
    begins = envelope(name, about_cluster("1.36", context="prod"))
    assert list(begins) == ["schema", "kind", "version", "tool", "cluster"]
    assert (begins["kind"], f"v{begins['version']}") == (kind, version)
    schema = SCHEMAS[name]
    assert list(schema["properties"])[:5] == list(begins) == schema["required"][:5]
    shared = {"properties": {key: schema["properties"][key] for key in begins}, "additionalProperties": False}
    for cluster in (begins["cluster"], about_cluster(), None):
        assert list(problems({**begins, "cluster": cluster}, shared, root=schema)) == []
    for wrong in ({"kind": "other"}, {"version": 9}, {"tool": {"name": "other", "version": ""}}, {"cluster": "prod"}):
        assert list(problems({**begins, **wrong}, shared, root=schema)) != []


@pytest.mark.loopback
@pytest.mark.parametrize("output", ["json", "json-line"])
@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_what_a_command_prints_is_what_its_schema_says(arguments: list[str], output: str) -> None:
    documented(printed(arguments, output))


@pytest.mark.loopback
@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_field_that_is_missing_or_unknown_is_not_what_the_schema_says(arguments: list[str]) -> None:
    document = printed(arguments, "json")
    rejects(document)


def test_a_cluster_without_one_of_its_fields_is_not_what_the_schema_says() -> None:
    rejects({**envelope("lastcall/cluster/v1", about_cluster("1.36", name="lastcall")), **CLUSTER})
    told = {"name": "old", "phase": "unknown", "message": "of a newer version"}
    clusters = {**envelope("lastcall/clusters/v1"), "clusters": [told]}
    rejects(clusters)
    for bad in ({"name": "old"}, {**told, "more": 1}, CLUSTER):
        with pytest.raises(AssertionError):
            documented({**clusters, "clusters": [bad]})


def rejects(document: dict[str, Any]) -> None:
    documented(document)
    for field in SCHEMAS[document["schema"]]["required"]:
        less = deepcopy(document)
        del less[field]
        with pytest.raises((AssertionError, KeyError)):
            documented(less)
    with pytest.raises(AssertionError):
        documented({**document, "more": 1})
