"""The sizes and annotations of a Deployment's ReplicaSets, as tables (deployment/rolling, scaling, revisions).

Source: pkg/controller/deployment/rolling.go, sync.go, util/deployment_util.go.
"""

import pytest

from lastcall.kube.controllers.deployment.revisions import (
    MAX_HISTORY_CHARACTERS,
    REVISION,
    REVISION_HISTORY,
    find_new,
    find_old,
    new_replica_set,
    revision_of,
    template_hash,
    to_clean_up,
    with_replicas_annotations,
    with_revision_annotations,
)
from lastcall.kube.controllers.deployment.rolling import (
    by_age,
    max_surge,
    max_unavailable,
    new_replicas,
    replicas_of,
    shrink_old,
    status_count,
)
from lastcall.kube.controllers.deployment.scaling import DESIRED_REPLICAS, MAX_REPLICAS, is_scaling_event, scale


def deployment(replicas: int = 10, surge: object = 3, unavailable: object = 2, kind: str = "RollingUpdate") -> dict:
    rolling = {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}} if kind == "RollingUpdate" else {}
    spec = {"replicas": replicas, "strategy": {"type": kind, **rolling}, "selector": {"matchLabels": {"a": "b"}}}
    spec["template"] = {"metadata": {"labels": {"a": "b"}}, "spec": {"nodeName": "n"}}
    return {"metadata": {"name": "web", "namespace": "default", "uid": "w"}, "spec": spec}


def replica_set(name: str, size: int, available: int | None = None, *, second: int = 0, **annotations: str) -> dict:
    meta = {"name": name, "uid": name, "creationTimestamp": f"2030-01-01T00:00:{second:02}Z"}
    known = {"desired": DESIRED_REPLICAS, "most": MAX_REPLICAS, "revision": REVISION}
    return {
        "metadata": {**meta, "annotations": {known[key]: value for key, value in annotations.items()}},
        "spec": {"replicas": size, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"nodeName": "n"}}},
        "status": {"replicas": size, "availableReplicas": size if available is None else available},
    }


def names(found: list) -> list[str]:
    return [each["metadata"]["name"] for each in found]


def sizes(steps: list) -> list[tuple[str, int]]:
    return [(each.replica_set["metadata"]["name"], each.replicas) for each in steps]


@pytest.mark.parametrize(
    ("replicas", "surge", "unavailable", "expected"),
    [(10, 3, 2, (3, 2)), (10, "25%", "25%", (3, 2)), (2, 0, 5, (0, 2)), (0, 3, 2, (3, 0)), (5, 0, 0, (0, 1))],
)
def test_surge_and_unavailable_are_numbers_of_pods(
    replicas: int, surge: object, unavailable: object, expected: tuple
) -> None:
    of = deployment(replicas, surge, unavailable)
    assert (max_surge(of), max_unavailable(of)) == expected


def test_no_object_and_no_number_count_as_zero() -> None:
    assert (replicas_of(None), status_count(None, "replicas")) == (0, 0)
    assert (replicas_of({"spec": {}}), status_count({"spec": {}}, "replicas")) == (0, 0)
    assert (replicas_of({"spec": {"replicas": 2}}), status_count({"status": {"replicas": 3}}, "replicas")) == (2, 3)


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        (0, 10, 3),  # 10 + surge 3 - 10
        (3, 9, 4),
        (4, 9, 4),  # no room
        (8, 0, 10),  # never above what is wanted
        (12, 0, 10),
        (5, 20, 5),
    ],
)
def test_the_new_replica_set_grows_into_the_surge(new: int, old: int, expected: int) -> None:
    fresh = replica_set("new", new)
    assert new_replicas(deployment(), [replica_set("old", old), fresh], fresh) == expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ([], (10, 10), []),
        ([("old", 0, 0)], (10, 10), []),
        ([("old", 10, 10)], (3, 0), [("old", 8)]),  # 10 available, 8 needed
        ([("old", 10, 10)], (3, 3), [("old", 5)]),
        ([("old", 8, 8)], (5, 0), []),  # 8 available, 8 needed
        ([("old", 8, 7)], (5, 1), [("old", 7)]),  # the one that does not work costs nothing
        ([("old", 9, 7)], (4, 2), [("old", 7), ("old", 6)]),
        ([("old", 10, 4)], (3, 3), [("old", 5)]),  # what does not work goes first, and only as much as may go
        ([("a", 5, 5), ("b", 5, 5)], (3, 3), [("a", 0)]),
        ([("a", 3, 3), ("b", 7, 7)], (3, 3), [("a", 0), ("b", 5)]),
        ([("a", 3, 5), ("b", 7, 7)], (3, 3), [("a", 0), ("b", 3)]),
    ],
)
def test_old_replica_sets_shrink_as_far_as_availability_allows(old: list, new: tuple, expected: list) -> None:
    others = [replica_set(name, size, available) for name, size, available in old]
    assert sizes(shrink_old(deployment(), others, replica_set("new", *new, second=9))) == expected


def test_replica_sets_are_ordered_by_age_then_by_name() -> None:
    assert names(by_age([replica_set("b", 1), replica_set("c", 1), replica_set("a", 1, second=1)])) == ["b", "c", "a"]
    del (young := replica_set("z", 1))["metadata"]["creationTimestamp"]
    assert names(by_age([replica_set("a", 1), young])) == ["z", "a"]


def two(old: int = 5, new: int = 5, **annotations: str) -> tuple[dict, list[dict]]:
    """Return a new ReplicaSet and the old ones, of which one has Pods."""
    return replica_set("new", new, second=2, **annotations), [
        replica_set("old", old, second=1, **annotations),
        replica_set("empty", 0, **annotations),
    ]


@pytest.mark.parametrize(
    ("replicas", "annotations", "expected"),
    [
        (10, {"desired": "10"}, False), (11, {"desired": "10"}, True), (11, {}, False), (11, {"desired": "x"}, False),
    ],
)  # fmt: skip
def test_a_replica_set_that_was_sized_for_another_number_makes_a_scale(
    replicas: int, annotations: dict, expected: bool
) -> None:
    of = deployment(replicas)
    assert is_scaling_event(of, [replica_set("a", 3), replica_set("b", 1, **annotations)]) is expected
    assert not is_scaling_event(of, [replica_set("b", 0, **annotations)])


@pytest.mark.parametrize(
    ("replicas", "new", "old", "expected"),
    [
        (7, replica_set("new", 3), [replica_set("old", 0)], [("new", 7)]),
        (7, replica_set("new", 0), [replica_set("old", 3)], [("old", 7)]),
        (7, replica_set("new", 0), [replica_set("old", 0)], [("new", 7)]),
        (7, None, [replica_set("b", 0, second=2), replica_set("a", 0, second=1)], [("b", 7)]),
        (7, None, [], []),
        (3, replica_set("new", 3), [], []),
        (0, replica_set("new", 0), [], []),
    ],
)
def test_a_scale_without_a_rollout_goes_to_the_one_with_pods_or_the_newest(
    replicas: int, new: dict | None, old: list, expected: list
) -> None:
    assert sizes(scale(deployment(replicas), new, old)) == expected


ENDED = [("old", 0), ("older", 0)]
# 16 Pods and 13 are allowed: 10 become 8, and of two equals the older shrinks
SHARED = [("new", 8), ("old", 2), ("older", 3)]


@pytest.mark.parametrize(
    ("desired", "available", "expected"),
    [("10", 10, ENDED), ("10", 9, SHARED), ("9", 10, SHARED), ("x", 10, SHARED)],
)
def test_once_the_new_one_is_complete_the_old_ones_end(desired: str, available: int, expected: list) -> None:
    new = replica_set("new", 10, available, second=3, most="16", desired=desired)
    old = [replica_set("older", 3, second=2, most="16"), replica_set("old", 3, second=1, most="16")]
    assert sizes(scale(deployment(), new, old)) == expected


@pytest.mark.parametrize(
    ("replicas", "old", "new", "annotations", "expected"),
    [
        (12, 5, 5, {"most": "10"}, [("new", 6), ("old", 6)]),
        (11, 5, 5, {"most": "10"}, [("new", 6), ("old", 5)]),
        (10, 5, 5, {"most": "10"}, [("old", 5), ("new", 5)]),
        (9, 5, 5, {"most": "10"}, [("old", 4), ("new", 5)]),
        (8, 5, 5, {"most": "10"}, [("old", 4), ("new", 4)]),
        (11, 6, 4, {"most": "10"}, [("old", 7), ("new", 4)]),
        (9, 4, 6, {"most": "10"}, [("new", 5), ("old", 4)]),
        (0, 5, 5, {"most": "10"}, [("old", 0), ("new", 0)]),
        (8, 5, 5, {"most": "20"}, [("old", 3), ("new", 5)]),
        (12, 5, 5, {}, [("new", 7), ("old", 5)]),
        (2, 5, 5, {}, [("old", 0), ("new", 5)]),
    ],
)
def test_a_scale_in_a_rollout_goes_by_size_and_the_largest_gets_the_rest(
    replicas: int, old: int, new: int, annotations: dict, expected: list
) -> None:
    assert sizes(scale(deployment(replicas, 0), *two(old, new, **annotations))) == expected


def test_without_a_noted_size_the_status_of_the_deployment_says_what_there_was() -> None:
    of = deployment(12, 0)
    of["status"] = {"replicas": 10}
    assert sizes(scale(of, *two())) == [("new", 6), ("old", 6)]


def test_the_surge_is_shared_out_too_unless_nothing_is_wanted() -> None:
    assert sizes(scale(deployment(7, 3), *two(most="10"))) == [("old", 5), ("new", 5)]
    assert sizes(scale(deployment(0, 3), *two(most="10"))) == [("old", 0), ("new", 0)]


def test_recreate_shares_nothing_out() -> None:
    assert scale(deployment(12, kind="Recreate"), *two(most="10")) == []


def test_the_hash_is_fnv_1a_of_the_template_in_letters_that_spell_no_words() -> None:
    assert (template_hash({"b": 1, "a": 2}), template_hash({"a": 2, "b": 1}, 0)) == ("6f868fbff9", "6c54c9f4c")
    assert template_hash({"a": 2, "b": 1}, 1) == "6fff7d4cc4"
    assert template_hash({"a": 2, "b": 1}, -1) == "d44d89b6c"


def test_the_new_replica_set_is_the_oldest_with_the_template_whatever_its_hash_label() -> None:
    of = deployment()
    other, same, older = (replica_set(name, 1, second=n) for n, name in ((0, "other"), (2, "same"), (1, "older")))
    other["spec"]["template"] = {"metadata": {"labels": {"a": "c"}}, "spec": {"nodeName": "n"}}
    older["spec"]["template"]["metadata"]["labels"]["pod-template-hash"] = "x"
    assert find_new(of, [other, same, older]) is older
    assert find_new(of, [other]) is None
    assert names(find_old([other, same, older], older)) == ["other", "same"]
    assert names(find_old([other, same], None)) == ["other", "same"]


def test_a_template_without_labels_is_the_same_as_one_with_none() -> None:
    of, bare = deployment(), replica_set("bare", 1)
    of["spec"]["template"] = {"spec": {}}
    bare["spec"]["template"] = {"metadata": {"labels": {"pod-template-hash": "x"}}, "spec": {}}
    assert find_new(of, [bare]) is bare
    bare["spec"]["template"]["metadata"]["annotations"] = {"k": "v"}
    assert find_new(of, [bare]) is None


def test_a_new_replica_set_has_the_template_the_hash_and_no_pods_yet() -> None:
    of = deployment()
    of["spec"]["minReadySeconds"] = 5
    value = template_hash(of["spec"]["template"])
    labels = {"a": "b", "pod-template-hash": value}
    assert new_replica_set(of, None) == {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": f"web-{value}", "namespace": "default", "labels": labels,
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "w",
                                 "controller": True, "blockOwnerDeletion": True}],
        },
        "spec": {"replicas": 0, "selector": {"matchLabels": labels}, "minReadySeconds": 5,
                 "template": {"metadata": {"labels": labels}, "spec": {"nodeName": "n"}}},
    }  # fmt: skip
    assert of["spec"]["template"] == deployment()["spec"]["template"]
    assert "minReadySeconds" not in new_replica_set(deployment(), None)["spec"]


def test_a_template_without_metadata_and_a_selector_without_labels_get_the_hash_alone() -> None:
    of = deployment()
    of["spec"] |= {"template": {"spec": {}}, "selector": {"matchExpressions": []}}
    spec = new_replica_set(of, 3)["spec"]
    label = {"pod-template-hash": template_hash({"spec": {}}, 3)}
    assert spec["template"]["metadata"]["labels"] == spec["selector"]["matchLabels"] == label


def test_what_a_size_was_computed_for_is_noted_once() -> None:
    made = replica_set("new", 1)
    assert with_replicas_annotations(made, deployment())
    assert made["metadata"]["annotations"] == {DESIRED_REPLICAS: "10", MAX_REPLICAS: "13"}
    assert not with_replicas_annotations(made, deployment())
    assert with_replicas_annotations(made, deployment(surge=4))


def test_a_replica_set_carries_the_deployments_annotations_and_its_revision() -> None:
    of, made = deployment(), replica_set("new", 1)
    of["metadata"]["annotations"] = {"mine": "x", REVISION: "9", DESIRED_REPLICAS: "1", MAX_REPLICAS: "1"}
    assert with_revision_annotations(made, of, 4, exists=False)
    assert made["metadata"]["annotations"] == {"mine": "x", REVISION: "4", DESIRED_REPLICAS: "10", MAX_REPLICAS: "13"}
    assert revision_of(made) == 4 and revision_of(replica_set("bare", 1)) == 0


@pytest.mark.parametrize(
    ("before", "revision", "changed", "after"),
    [
        ({REVISION: "4"}, 4, False, {REVISION: "4"}),
        ({REVISION: "4"}, 3, False, {REVISION: "4"}),
        ({}, 1, True, {REVISION: "1"}),
        ({REVISION: "1"}, 4, True, {REVISION: "4", REVISION_HISTORY: "1"}),
        ({REVISION: "4", REVISION_HISTORY: "1,2"}, 6, True, {REVISION: "6", REVISION_HISTORY: "1,2,4"}),
    ],
)
def test_a_revision_only_grows_and_leaves_its_history(before: dict, revision: int, changed: bool, after: dict) -> None:
    made = replica_set("new", 1)
    made["metadata"]["annotations"] = before
    assert with_revision_annotations(made, deployment(), revision, exists=True) is changed
    assert made["metadata"]["annotations"] == after


@pytest.mark.parametrize(("spare", "dropped"), [(5, 0), (4, 1)])
def test_a_long_history_loses_its_oldest_revisions(spare: int, dropped: int) -> None:
    made = replica_set("new", 1)
    rest = "2" * (MAX_HISTORY_CHARACTERS - spare)
    made["metadata"]["annotations"] = {REVISION: "34", REVISION_HISTORY: f"1,{rest}"}
    assert with_revision_annotations(made, deployment(), 35, exists=True)
    assert made["metadata"]["annotations"][REVISION_HISTORY] == ["1," + rest + ",34", rest + ",34"][dropped]
    assert MAX_HISTORY_CHARACTERS == 2000


def numbered(*revisions: int) -> list[dict]:
    return [replica_set(f"r{n}", 0, revision=str(n)) for n in revisions]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(None, []), (2**31 - 1, []), (4, []), (3, []), (2, ["r1"]), (1, ["r1", "r2"]), (0, ["r1", "r2", "r10"])],
)
def test_the_lowest_revisions_beyond_the_limit_go(limit: int | None, expected: list) -> None:
    of = deployment()
    of["spec"] |= {"revisionHistoryLimit": limit} if limit is not None else {}
    assert names(to_clean_up(of, numbered(10, 1, 2))) == expected


@pytest.mark.parametrize(
    "change",
    [
        {"status": {"replicas": 1}},
        {"spec": {"replicas": 1}},
        {"metadata": {"generation": 2}, "status": {"observedGeneration": 1}},
        {"metadata": {"generation": 1}},
        {"metadata": {"deletionTimestamp": "2030-01-01T00:00:00Z"}},
    ],
)
def test_a_replica_set_that_may_still_have_pods_or_ends_already_is_left_alone(change: dict) -> None:
    of = deployment()
    of["spec"]["revisionHistoryLimit"] = 0
    (made,) = numbered(1)
    for key, value in change.items():
        made[key] |= value
    assert to_clean_up(of, [made]) == []
    made["metadata"] |= {"generation": 2}
    made["metadata"].pop("deletionTimestamp", None)
    made["spec"]["replicas"], made["status"] = 0, {"observedGeneration": 2}
    assert to_clean_up(of, [made]) == [made]


def test_a_replica_set_that_ends_already_is_not_counted() -> None:
    of = deployment()
    of["spec"]["revisionHistoryLimit"] = 1
    ending, *others = numbered(1, 2, 3)
    ending["metadata"]["deletionTimestamp"] = "2030-01-01T00:00:00Z"
    assert names(to_clean_up(of, [ending, *others])) == ["r2"]
