"""What counts as a typing error in a name."""

import pytest

from lastcall.manifests.names import closest, closest_field, similar_labels


@pytest.mark.parametrize(
    ("name", "other"),
    [("databse", "database"), ("webb", "web"), ("Web", "web"), ("api-keys", "api-key"), ("frontned", "frontend"),
     ("shop-settigns", "shop-settings")],
)  # fmt: skip
def test_a_slip_is_seen(name: str, other: str):
    assert closest(name, [other]) == other


@pytest.mark.parametrize(
    ("name", "other"),
    [("db-1", "db-2"), ("shard-a", "shard-b"), ("api-deployment", "web-deployment"), ("orders", "users"),
     ("api", "app2"),
     ("config-dev", "config-prod"), ("web", "db"), ("v1", "v12")],
)  # fmt: skip
def test_another_thing_is_none(name: str, other: str):
    assert closest(name, [other]) is None


def test_several_that_may_be_meant_are_none():
    assert closest("web-ap", ["web-api", "web-app"]) is None


def test_fields_may_differ_in_more():
    assert closest_field("terminationGracePeriod", ["terminationGracePeriodSeconds", "hostname"]) is not None
    assert closest_field("nonsense", ["replicas", "selector"]) is None


def test_labels_that_differ_in_one_slip_are_similar():
    assert similar_labels({"app": "webb", "tier": "a"}, {"app": "web", "tier": "a", "x": "y"})
    assert similar_labels({"ap": "web"}, {"app": "web"})
    assert not similar_labels({"app": "webb", "tier": "b"}, {"app": "web", "tier": "a"})
    assert not similar_labels({"app": "redis"}, {"app": "web"})
