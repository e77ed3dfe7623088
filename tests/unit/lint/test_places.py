"""Where findings are: lines and columns through anchors, merge keys, flow style, Lists and several documents."""

import pytest

from lastcall.lint.places import spot_of
from lastcall.lint.sources import read
from lastcall.manifests.paths import parsed_path, path_in, shown_path
from lastcall.manifests.yaml_documents import read_documents

TEXT = """\
# a comment
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app.kubernetes.io/name: web}}
spec:
  containers:
    - name: app
      ports: [{name: http, containerPort: 80}, {containerPort: 81}]
    -   name: second
        image: x
"""


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (("kind",), (3, 1)),
        (("metadata", "name"), (4, 12)),
        (("metadata", "labels", "app.kubernetes.io/name"), (4, 32)),
        (("spec", "containers", 0), (7, 7)),
        (("spec", "containers", 0, "ports", 1, "containerPort"), (8, 49)),
        (("spec", "containers", 1), (9, 9)),
        (("spec", "containers", 1, "lifecycle", "preStop"), (9, 9)),
        (("spec", "containers", 7, "image"), (6, 3)),
        (("spec", "containers", 0, "name", "deeper"), (7, 7)),
        ((), (2, 1)),
    ],
)
def test_a_field_is_found_or_the_nearest_above_it(path, place):
    assert next(read_documents(TEXT)).position_of(path) == place


def test_an_alias_is_where_it_stands_and_what_is_in_it_where_it_is_written():
    document = next(read_documents("a: &x\n  b: 1\nc: *x\n"))
    assert document.position_of(("c",)) == (3, 1)
    assert document.position_of(("c", "b")) == (2, 3)


def test_a_mapping_s_own_key_wins_over_one_that_a_merge_key_brings():
    document = next(read_documents("base: &x\n  b: 1\n  c: 2\nuse:\n  <<: *x\n  b: 3\n"))
    assert document.value["use"] == {"b": 3, "c": 2}
    assert document.position_of(("use", "b")) == (6, 3)
    assert document.position_of(("use", "c")) == (3, 3)
    assert document.line_of("use.b") == 6


def test_an_item_of_a_list_and_a_second_document_have_places_of_their_own(tmp_path):
    file = tmp_path / "all.yaml"
    item = "{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME}}"
    file.write_text(
        f"{item.replace('NAME', 'a')}\n---\napiVersion: v1\nkind: List\nitems:\n"
        f"  - {item.replace('NAME', 'b')}\n  - {item.replace('NAME', 'c')}\n"
    )
    subjects = read([str(file)]).subjects
    spots = [spot_of(each.where, ("metadata", "name")) for each in subjects]
    assert [(each.name, spot.line, spot.column) for each, spot in zip(subjects, spots, strict=True)] == [
        ("a", 1, 46),
        ("b", 6, 50),
        ("c", 7, 50),
    ]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("spec.containers[0].image", ("spec", "containers", 0, "image")),
        ("spec.selector[app.kubernetes.io/name]", ("spec", "selector", "app.kubernetes.io/name")),
        ("", ()),
    ],
)
def test_a_path_is_written_and_read(text, path):
    assert shown_path(path) == text
    assert parsed_path(text) == path


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("spec.selector.app.kubernetes.io/name", ("spec", "selector", "app.kubernetes.io/name")),
        ("spec.list[0].a.b[1].c", ("spec", "list", 0, "a.b", 1, "c")),
        ("spec.hard[requests.cpu]", ("spec", "hard", "requests.cpu")),
        ("spec.other.deep[3]", ("spec", "other", "deep", 3)),
        ("", ()),
        ("]", ()),
    ],
)
def test_a_path_of_kubernetes_is_read_by_the_keys_that_are_there(text, path):
    value = {
        "spec": {
            "selector": {"app.kubernetes.io/name": "x", "app": "y"},
            "list": [{"a": 1, "a.b": [0, {"c": 1}]}],
            "hard": {"requests.cpu": "1"},
        }
    }
    assert path_in(value, text) == path
