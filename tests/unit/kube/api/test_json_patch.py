"""RFC 6902 as Kubernetes 1.36 applies it (each row was asked there), and what a patch may cost."""

import copy

import pytest

from lastcall.kube.api.patch.json_patch import MAX_COPIED_BYTES, PatchError, apply
from lastcall.kube.api.text.json_bounds import MAX_DEPTH, check_bounds

DOC = {"data": {"a": "b"}, "list": [1, {"c": 2}], "null": None}


def op(name: str, path: str, **more: object) -> dict:
    return {"op": name, "path": path, **more}


@pytest.mark.parametrize(
    ("operations", "changed"),
    [
        ([op("add", "/data/b", value=1)], {"data": {"a": "b", "b": 1}}),
        ([op("add", "x/data/b", value=1)], {"data": {"a": "b", "b": 1}}),
        ([op("add", "/data/b")], {"data": {"a": "b", "b": None}}),
        ([op("replace", "/nope", value=1)], {"nope": 1}),
        ([op("replace", "/list/0", value=2)], {"list": [2, {"c": 2}]}),
        ([op("replace", "/list/-1", value=2)], {"list": [1, 2]}),
        ([op("add", "/list/0", value=0)], {"list": [0, 1, {"c": 2}]}),
        ([op("add", "/list/+2", value=0)], {"list": [1, {"c": 2}, 0]}),
        ([op("add", "/list/-1", value=0)], {"list": [1, {"c": 2}, 0]}),
        ([op("add", "/list/-3", value=0)], {"list": [0, 1, {"c": 2}]}),
        ([op("add", "/list/-", value=0)], {"list": [1, {"c": 2}, 0]}),
        ([op("remove", "/list/-1")], {"list": [1]}),
        ([op("remove", "/list/1/c")], {"list": [1, {}]}),
        ([op("copy", "/list/-", **{"from": "/data"}), op("add", "/list/2/x", value=1)],
         {"list": [1, {"c": 2}, {"a": "b", "x": 1}]}),
        ([op("copy", "/data/z", **{"from": "/nope"})], {"data": {"a": "b", "z": None}}),
        ([op("move", "/data/z", **{"from": "/data/a"})], {"data": {"z": "b"}}),
        ([op("move", "/data/a", **{"from": "/data/a"})], {}),
        ([op("add", "/data/x~1y~0z", value=1), op("test", "/data/x~1y~0z", value=1)], {"data": {"a": "b", "x/y~z": 1}}),
        ([op("add", "/data/", value=1)], {"data": {"a": "b", "": 1}}),
        ([op("test", "/null"), op("test", "/nope", value=None), op("test", "/list", value=[1, {"c": 2}])], {}),
    ],
)  # fmt: skip
def test_what_operations_do(operations: list[dict], changed: dict) -> None:
    doc = copy.deepcopy(DOC)
    given = copy.deepcopy(operations)
    assert apply(doc, operations) == {**DOC, **changed}
    assert (doc, operations) == (DOC, given)


@pytest.mark.parametrize(
    "operation",
    [
        {}, op("OP", "/a"), op("add", "", value={}), op("replace", "x", value={}), op("remove", ""),
        op("test", "", value={}),
        {"op": "add", "path": None}, op("remove", "/nope"), op("remove", "/nope/a"), op("remove", "/data/a/b"),
        op("add", "/data/a/b", value=1), op("add", "/nope/b", value=1), op("add", "/null/b", value=1),
        op("add", "/list/3", value=1), op("add", "/list/-4", value=1), op("replace", "/list/-", value=1),
        op("replace", "/list/2", value=1), op("remove", "/list/x"), op("add", "/list/" + "9" * 5000, value=1),
        op("add", "/list/\u0660", value=1), op("move", "/data/b", **{"from": "/nope"}),
        op("move", "/data/a", **{"from": "/data"}),
        op("move", "/x", **{"from": ""}), op("copy", "/x", **{"from": ""}), op("copy", "/x"),
        op("test", "/list/0", value=1.0), op("test", "/list/0", value=True), op("test", "/data/a", value=None),
        op("test", "/nope", value=1), op("add", "/a" * 20_000, value=1),
    ],
)  # fmt: skip
def test_what_cannot_be_done(operation: dict) -> None:
    with pytest.raises(PatchError):
        apply(DOC, [operation])


def test_a_whole_document_is_replaced() -> None:
    assert apply(DOC, [op("replace", "", value={"a": {}}), op("add", "/a/b", value=1)]) == {"a": {"b": 1}}


def test_the_patch_stays_as_it_is_when_a_later_operation_changes_what_it_added() -> None:
    operations = [op("add", "/data/x", value={"y": []}), op("add", "/data/x/y/-", value=1)]
    for _ in range(2):
        assert apply(DOC, operations)["data"]["x"] == {"y": [1]}


def test_a_patch_that_doubles_what_is_there_is_refused_before_it_is_big() -> None:
    double = [op("copy", f"/data/x{number}", **{"from": "/data"}) for number in range(40)]
    with pytest.raises(PatchError):
        apply(DOC, double)
    with pytest.raises(PatchError, match="copies"):
        apply({"a": "x" * (MAX_COPIED_BYTES // 100)}, [op("copy", f"/b{n}", **{"from": "/a"}) for n in range(101)])


def test_a_patch_that_digs_level_by_level_is_refused() -> None:
    digs = [op("add", "/data" + "/x" * level, value={}) for level in range(1, MAX_DEPTH + 1)]
    check_bounds(apply(DOC, digs[: MAX_DEPTH - 2]))
    for operations in (
        digs,
        [op("add", "/data/x", value={"x": {}})] + [op("copy", "/data/x/x", **{"from": "/data/x"})] * 300,
    ):
        with pytest.raises(PatchError):
            apply(DOC, [*operations, op("copy", "/data/y", **{"from": "/data/x"})])
