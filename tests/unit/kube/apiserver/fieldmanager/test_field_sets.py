"""Sets of fields in the form of FieldsV1: their arithmetic, and how paths are printed."""

import random

import pytest

from lastcall.kube.apiserver.fieldmanager.fields import (
    EMPTY,
    check,
    difference,
    exclude,
    has,
    intersection,
    path_text,
    paths,
    set_of,
    union,
)

A, B, AX, AY, AXZ = ("f:a",), ("f:b",), ("f:a", "f:x"), ("f:a", "f:y"), ("f:a", "f:x", "f:z")


def test_a_member_alone_is_an_empty_node_and_with_others_below_it_has_a_dot():
    assert set_of(A) == {"f:a": {}}
    assert set_of(AX) == {"f:a": {"f:x": {}}}
    assert set_of(A, AX) == {"f:a": {".": {}, "f:x": {}}}
    assert has(set_of(A, AX), A)
    assert not has(set_of(AX), A)


def test_taking_an_element_away_leaves_what_is_below_it():
    assert difference(set_of(A, AX, B), set_of(A)) == set_of(AX, B)
    assert difference(set_of(A, AX), set_of(AX)) == set_of(A)
    assert difference(set_of(AX), set_of(AX)) == {}


def test_excluding_an_element_takes_all_below_it_along():
    assert exclude(set_of(A, AX, AXZ, B), set_of(A)) == set_of(B)
    assert exclude(set_of(A, AX, AXZ), set_of(AX)) == set_of(A)


ELEMENTS = ("f:a", "f:b", 'k:{"name":"x"}', 'v:"s"')


def random_paths(random_: random.Random) -> set[tuple[str, ...]]:
    return {tuple(random_.choices(ELEMENTS, k=random_.randint(1, 3))) for _ in range(random_.randint(0, 9))}


@pytest.mark.parametrize("seed", range(200))
def test_sets_behave_like_sets_of_paths(seed: int):
    random_ = random.Random(seed)
    one, other = random_paths(random_), random_paths(random_)
    left, right = set_of(*sorted(one)), set_of(*sorted(other))
    before = repr(left), repr(right)
    assert set(paths(union(left, right))) == one | other
    assert set(paths(difference(left, right))) == one - other
    assert set(paths(intersection(left, right))) == one & other
    kept = {path for path in one if not any(path[: len(prefix)] == prefix for prefix in other)}
    assert set(paths(exclude(left, right))) == kept
    assert union(left, right) == set_of(*sorted(one | other))
    assert all(has(left, path) == (path in one) for path in one | other)
    assert (repr(left), repr(right)) == before, "nothing is changed in place"
    assert EMPTY == {}


def test_paths_come_level_by_level_and_sorted():
    fields = set_of(B, AXZ, AX, ("f:a", 'k:{"port":80}'), ("f:a", 'k:{"port":9}'))
    assert paths(fields) == [B, AX, ("f:a", 'k:{"port":9}'), ("f:a", 'k:{"port":80}'), AXZ]


def test_a_path_is_printed_as_in_the_messages_of_conflicts():
    path = ("f:spec", "f:containers", 'k:{"name":"main"}', "f:ports", 'k:{"containerPort":53,"protocol":"TCP"}')
    assert path_text(path) == '.spec.containers[name="main"].ports[containerPort=53,protocol="TCP"]'
    assert path_text(("f:metadata", "f:finalizers", 'v:"a/b"')) == '.metadata.finalizers[="a/b"]'
    assert path_text(("f:list", "i:0")) == ".list[0]"


@pytest.mark.parametrize(
    ("fields", "good"),
    [({}, True), ({"f:a": {".": {}}}, True), ({"a": {}}, False), ({"f:a": 1}, False), ([], False)],
)
def test_what_is_no_set_is_recognised(fields, good: bool):
    assert check(fields) is good
