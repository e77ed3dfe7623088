"""Events that may not be stored, as core/v1 and as events.k8s.io/v1."""

import pytest

from lastcall.kube.api.validators.events import validate_event, validate_new_event

OTHER = "does not match event.namespace"


@pytest.mark.parametrize(
    ("namespace", "involved", "expected"),
    [
        ("a", "a", []),
        ("default", "", []),
        ("a", "b", [f'involvedObject.namespace: Invalid value: "b": {OTHER}']),
        ("a", "", [f'involvedObject.namespace: Invalid value: "": {OTHER}']),
    ],
)
def test_an_event_is_where_its_object_is(namespace: str, involved: str, expected: list[str]) -> None:
    event = {"metadata": {"namespace": namespace}, "involvedObject": {"kind": "Pod", "namespace": involved}}
    assert [str(error) for error in validate_event(event)] == expected


def test_a_new_event_says_who_when_and_why() -> None:
    new = {
        "metadata": {"name": "e", "namespace": "a"},
        "involvedObject": {"kind": "Pod", "namespace": "a"},
        "eventTime": "2030-01-01T00:00:00.000000Z",
        "reportingComponent": "example.com/c",
        "reportingInstance": "i",
        "action": "A",
        "reason": "R",
        "type": "Normal",
    }
    assert validate_new_event(new) == []
    bad = {**new, "type": "Foo", "count": 2, "series": {"count": 1}, "action": "x" * 129, "message": "x" * 1025}
    del bad["reason"]
    assert [str(error) for error in validate_new_event(bad)] == [
        'action: Invalid value: "": can have at most 128 characters',
        "reason: Required value",
        'message: Invalid value: "": can have at most 1024 characters',
        'series.count: Invalid value: "": should be at least 2',
        "series.lastObservedTime: Required value",
        'type: Invalid value: "": has invalid value: Foo',
        'count: Invalid value: "": needs to be unset',
    ]
    old_fashioned = {"metadata": {"namespace": "a"}, "involvedObject": {"namespace": "a"}, "type": "Normal"}
    assert [str(error) for error in validate_new_event(old_fashioned)] == ["eventTime: Required value"]
