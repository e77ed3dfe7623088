"""Quantities, names, selectors and patches: single values and properties."""

import random
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lastcall.kube.api import names, selectors
from lastcall.kube.api.field import go_quote
from lastcall.kube.api.patch import apply as patch
from lastcall.kube.api.pods import spec as pods
from lastcall.kube.api.quantity import QuantityError, canonical, parse_quantity
from lastcall.kube.api.resources import CONFIGMAPS, PODS, SERVED
from lastcall.kube.api.schema import checks as schema
from lastcall.kube.api.schema.pruning import prune

QUANTITIES = [
    ("0.5", "500m"), ("1000m", "1"), ("1024Mi", "1Gi"), ("1.5Gi", "1536Mi"), ("1e3", "1e3"), ("100m", "100m"),
    ("0", "0"), ("-1", "-1"), ("12e6", "12e6"), ("1500M", "1500M"), ("0.1Gi", "107374182400m"), ("1000Ki", "1000Ki"),
    ("0.0000000001", "1n"), ("99999999999999999999", "99999999999999999999"), ("+2", "2"), (".5", "500m"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), QUANTITIES)
def test_a_quantity_comes_back_in_its_canonical_form(text: str, expected: str) -> None:
    assert canonical(text) == expected


@pytest.mark.parametrize("text", ["", "abc", "1.2.3", "1 Gi", "--1", ".", "1Q"])
def test_what_is_no_quantity_is_refused_with_the_text_of_kubernetes(text: str) -> None:
    with pytest.raises(QuantityError, match="quantities must match the regular expression"):
        parse_quantity(text)


def test_a_known_letter_in_a_wrong_suffix_is_a_suffix_problem() -> None:
    with pytest.raises(QuantityError, match="unable to parse quantity's suffix"):
        parse_quantity("1mi")


@given(st.integers(-(10**12), 10**12), st.sampled_from(["", "n", "u", "m", "k", "M", "Ki", "Mi", "Gi"]))
def test_the_canonical_form_means_the_same_amount_and_is_a_fixed_point(number: int, suffix: str) -> None:
    quantity = parse_quantity(f"{number}{suffix}")
    assert parse_quantity(str(quantity)) == quantity
    assert canonical(str(quantity)) == str(quantity)


@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_quantities_are_ordered_by_amount(left: int, right: int) -> None:
    assert (parse_quantity(f"{left}m") < parse_quantity(f"{right}m")) == (left < right)
    assert (parse_quantity(f"{left}m") + parse_quantity(f"{right}m")).value == Fraction(left + right, 1000)


def test_a_generated_name_fits_into_a_label_and_has_a_readable_suffix() -> None:
    name = names.generate_name("x" * 100, random.Random(1))
    assert len(name) == 63
    assert set(name[58:]) <= set("bcdfghjklmnpqrstvwxz2456789")
    assert names.generate_name("web-", random.Random(1)) == names.generate_name("web-", random.Random(1))


@pytest.mark.parametrize("text", ['a"b', "a\\b", "tab\t", "bell\a", "nul\x00", "ü", "\u200b"])
def test_go_quoting_escapes_what_cannot_be_printed(text: str) -> None:
    quoted = go_quote(text)
    assert quoted[0] == quoted[-1] == '"'
    assert quoted[1:-1].isprintable()


KEYS = st.sampled_from(["a", "b", "c", "d"])
VALUES = st.sampled_from(["", "x", "y", "z"])
LABELS = st.dictionaries(KEYS, VALUES)


@given(LABELS, KEYS, st.lists(st.sampled_from(["x", "y", "z"]), min_size=1))
def test_notin_is_the_opposite_of_in_and_exists_of_its_negation(
    labels: dict[str, str], key: str, values: list[str]
) -> None:
    listed = ",".join(values)
    inside = selectors.parse_label_selector(f"{key} in ({listed})").matches(labels)
    outside = selectors.parse_label_selector(f"{key} notin ({listed})").matches(labels)
    assert inside != outside
    present = selectors.parse_label_selector(key).matches(labels)
    assert present != selectors.parse_label_selector(f"!{key}").matches(labels)
    assert inside == (key in labels and labels[key] in values)


@given(LABELS, LABELS)
def test_a_plain_selector_wants_every_label_and_an_empty_one_selects_nothing(
    wanted: dict[str, str], labels: dict[str, str]
) -> None:
    selector = selectors.selector_of_labels(wanted)
    assert selector.matches(labels) == (bool(wanted) and wanted.items() <= labels.items())


@given(LABELS)
def test_a_selector_text_reads_back_as_itself(labels: dict[str, str]) -> None:
    selector = selectors.selector_of_labels(labels or {"a": "x"})
    assert selectors.parse_label_selector(str(selector)) == selector


def test_labels_and_expressions_of_a_selector_must_all_match() -> None:
    expressions = {"matchLabels": {"a": "x"}, "matchExpressions": [{"key": "b", "operator": "In", "values": ["y"]}]}
    selector = selectors.selector_of_expressions(expressions)
    assert selector.matches({"a": "x", "b": "y"})
    assert not selector.matches({"a": "x"})
    assert selectors.selector_of_expressions({}).matches({})
    assert not selectors.selector_of_expressions(None).matches({})


def test_an_unscheduled_pod_is_found_by_an_empty_node_name() -> None:
    selector = selectors.parse_field_selector(PODS, "spec.nodeName=,status.phase!=Failed")
    assert selector.matches({"metadata": {"name": "p"}, "spec": {}})
    assert not selector.matches({"spec": {"nodeName": "node-1"}})
    assert selector.exact("spec.nodeName") == ""
    assert selector.exact("status.phase") is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(KEYS, JSON, max_size=4)


@given(OBJECTS, OBJECTS)
def test_a_merge_patch_applied_twice_changes_nothing_more(doc: dict[str, Any], change: dict[str, Any]) -> None:
    once = patch.merge_patch(doc, change)
    assert patch.merge_patch(once, change) == once


@given(OBJECTS)
def test_an_empty_merge_patch_changes_nothing(doc: dict[str, Any]) -> None:
    assert patch.merge_patch(doc, {}) == doc


@given(st.lists(KEYS, unique=True), st.lists(KEYS, unique=True))
def test_a_strategic_patch_merges_containers_by_name(have: list[str], given_names: list[str]) -> None:
    doc = {"spec": {"containers": [{"name": name, "image": "old", "command": ["x"]} for name in have]}}
    change = {"spec": {"containers": [{"name": name, "image": "new"} for name in given_names]}}
    merged = patch.strategic_merge_patch(PODS, doc, change)["spec"]["containers"]
    assert sorted(item["name"] for item in merged) == sorted({*have, *given_names})
    for item in merged:
        assert item["image"] == ("new" if item["name"] in given_names else "old")
        assert ("command" in item) == (item["name"] in have)


def test_config_map_data_is_free_but_its_fields_are_not() -> None:
    assert schema.check_fields(CONFIGMAPS, {"data": {"any.key": "x"}, "dta": {}}) == ['unknown field "dta"']


def test_decoding_drops_what_go_would_not_encode() -> None:
    obj = {
        "metadata": {"name": "p", "labels": {}, "annotations": None},
        "spec": {"containers": [{"name": "c", "tty": False}]},
    }
    obj["spec"]["containers"][0]["resources"] = {"limits": {"cpu": 0.5, "memory": "1024Mi"}}
    obj["spec"]["bogus"] = 1
    prune(PODS, obj)
    limits = {"cpu": "500m", "memory": "1Gi"}
    container = {"name": "c", "resources": {"limits": limits}}
    assert obj == {"metadata": {"name": "p"}, "spec": {"containers": [container]}, "status": {}}


def test_every_served_kind_has_a_type_and_known_kinds_are_more_than_served_ones() -> None:
    for resource in SERVED:
        assert schema.resource_for(resource.api_version, resource.kind) is resource
        assert schema.check_fields(resource, {"apiVersion": resource.api_version, "kind": resource.kind}) == []
    assert schema.known_kind("v1", "ComponentStatus")
    assert schema.resource_for("v1", "ComponentStatus") is None
    assert not schema.known_kind("apps/v1", "Deploymint")


RESOURCES = [
    ([{}], "BestEffort"),
    ([{"requests": {"cpu": "1"}}], "Burstable"),
    ([{"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1000m", "memory": "1024Mi"}}], "Guaranteed"),
    ([{"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "2", "memory": "1Gi"}}], "Burstable"),
    ([{"requests": {"cpu": "1", "memory": "1Gi"}, "limits": {"cpu": "1", "memory": "1Gi"}}, {}], "Burstable"),
    ([{"limits": {"nvidia.com/gpu": "1"}}], "BestEffort"),
]


@pytest.mark.parametrize(("resources", "expected"), RESOURCES)
def test_the_qos_class_follows_requests_and_limits(resources: list[Any], expected: str) -> None:
    assert pods.qos_class({"spec": {"containers": [{"resources": item} for item in resources]}}) == expected


def test_a_condition_keeps_its_time_until_its_status_changes() -> None:
    status: dict[str, Any] = {}
    assert pods.set_condition(status, {"type": "Ready", "status": "True"}, "t1")
    assert not pods.set_condition(status, {"type": "Ready", "status": "True"}, "t2")
    assert pods.set_condition(status, {"type": "Ready", "status": "True", "reason": "r"}, "t3")
    assert pods.get_condition(status, "Ready") == {
        "type": "Ready",
        "status": "True",
        "reason": "r",
        "lastTransitionTime": "t1",
    }
    assert pods.set_condition(status, {"type": "Ready", "status": "False"}, "t4")
    assert (pods.get_condition(status, "Ready") or {})["lastTransitionTime"] == "t4"
