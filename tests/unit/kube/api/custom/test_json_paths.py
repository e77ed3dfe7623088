"""The JSON paths of printer columns and scale subresources, and the rows made of them."""

from datetime import UTC, datetime

import pytest

from lastcall.kube.api.custom.json_path import fields_of, parse_path, values_at
from lastcall.kube.api.custom.kinds import CustomResource
from lastcall.kube.api.table.rows import table_for

OBJECT = {
    "metadata": {"name": "w", "creationTimestamp": "2026-01-02T03:04:05Z", "labels": {"a.b/c": "x"}},
    "spec": {"size": 3, "names": ["a", "b"], "ready": True},
    "status": {"conditions": [{"type": "Other", "status": "False"}, {"type": "Ready", "status": "True"}]},
}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".spec.size", [3]),
        (".spec.names[1]", ["b"]),
        (".spec.names[-1]", ["b"]),
        (".spec.names[*]", ["a", "b"]),
        (".spec.missing.more", []),
        (r".metadata.labels.a\.b/c", ["x"]),
        (".metadata.labels['a.b/c']", ["x"]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type!='Ready')].status", ["False"]),
        (".spec.names.size", []),
    ],
)
def test_a_path_leads_to_values(path: str, found: list) -> None:
    assert values_at(OBJECT, path) == found


@pytest.mark.parametrize("path", ["spec", ".spec[", ".spec..", ".a[?(@.b)]", "{.spec}"])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="invalid JSON path"):
        parse_path(path)


def test_only_names_make_a_place_that_can_be_written() -> None:
    assert fields_of(".spec.template.size") == ("spec", "template", "size")
    assert fields_of(".spec.names[0]") is None


def test_columns_show_what_has_their_type() -> None:
    def column(type_: str, path: str, **more) -> dict:
        return {"name": type_, "type": type_, "jsonPath": path, **more}

    columns = (
        column("integer", ".spec.size"),
        column("integer", ".spec.names", priority=1),
        column("string", ".spec.names"),
        column("string", ".spec.size"),
        column("boolean", ".spec.ready"),
        column("date", ".metadata.creationTimestamp"),
        column("string", ".spec.nothing"),
    )
    resource = CustomResource("example.com", "v1", "widgets", "Widget", True, columns=columns)
    table = table_for(resource, [OBJECT], datetime(2026, 1, 2, 3, 5, 5, tzinfo=UTC), minor=36)
    assert table["rows"][0]["cells"] == ["w", 3, None, '["a","b"]', "3", True, "60s", None]
    assert [each["priority"] for each in table["columnDefinitions"]] == [0, 0, 1, 0, 0, 0, 0, 0]
    plain = CustomResource("example.com", "v1", "widgets", "Widget", True)
    assert [each["name"] for each in table_for(plain, [], datetime.now(UTC), minor=36)["columnDefinitions"]] == [
        "Name",
        "Age",
    ]
