"""What two states of an EndpointSlice say."""

from typing import Any

import pytest

from lastcall.trace.endpoints import Endpoint, changes, endpoints_of, service_of

UP = Endpoint("u", True, True, False)
LEAVING = Endpoint("u", False, True, True)
OTHER = Endpoint("v", True, True, False)


def endpoint(**conditions: Any) -> dict[str, Any]:
    target = {"kind": "Pod", "name": "p", "uid": "u"}
    return {"endpoints": [{"addresses": ["10.0.0.1"], "conditions": conditions, "targetRef": target}]}


@pytest.mark.parametrize(
    ("conditions", "known"),
    [
        ({}, (True, True, False)),  # nil ready is true, and serving what ready says
        ({"ready": None}, (True, True, False)),
        ({"ready": False}, (False, False, False)),
        ({"ready": False, "serving": True, "terminating": True}, (False, True, True)),
        ({"ready": True, "serving": False}, (True, False, False)),
    ],
)
def test_conditions_that_are_not_there_have_a_meaning(conditions: dict[str, Any], known: tuple[bool, ...]) -> None:
    assert endpoints_of(endpoint(**conditions)) == {"10.0.0.1": Endpoint("u", *known)}


@pytest.mark.parametrize("target", [None, {"kind": "Node", "uid": "u"}, {"kind": "Pod"}])
def test_endpoints_without_a_pod_are_not_of_use(target: Any) -> None:
    found = endpoint()
    found["endpoints"][0]["targetRef"] = target
    assert endpoints_of(found) == {}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ({}, {"a": UP}, [("u", "EndpointChanged")]),
        ({"a": UP}, {"a": UP}, []),
        ({"a": UP}, {"a": LEAVING}, [("u", "EndpointChanged")]),
        ({"a": LEAVING}, {}, [("u", "EndpointRemoved")]),
        ({"a": UP}, {"a": OTHER}, [("v", "EndpointChanged"), ("u", "EndpointRemoved")]),
        ({"a": UP, "b": UP}, {"b": UP}, [("u", "EndpointRemoved")]),
    ],
)
def test_what_became_of_each_address(
    old: dict[str, Endpoint], new: dict[str, Endpoint], said: list[tuple[str, str]]
) -> None:
    found = list(changes("svc", "slice", "7", old, new))
    assert [(uid, str(each.kind)) for uid, each in found] == said
    assert all((each.facts["service"], each.facts["resourceVersion"]) == ("svc", "7") for _, each in found)


def test_a_slice_without_the_label_is_named_itself() -> None:
    assert service_of({"metadata": {"name": "s", "labels": {"kubernetes.io/service-name": "web"}}}) == "web"
    assert service_of({"metadata": {"name": "s"}}) == "s"
