"""One pass does what the two do that say what is wrong and what an encoder leaves out."""

import random
from typing import Any

import pytest

from lastcall.kube.api.resources import (
    CERTIFICATESIGNINGREQUESTS,
    CUSTOMRESOURCEDEFINITIONS,
    DEPLOYMENTS,
    EVENTS,
    PODS,
    ROLES,
    SECRETS,
    SERVICES,
    Resource,
)
from lastcall.kube.api.schema.checks import DecodeError, check_fields
from lastcall.kube.api.schema.decoding import decode_fields, decoded_copy
from lastcall.kube.api.schema.pruning import Empties, prune

POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "labels": {"a": "b"}, "annotations": {}, "creationTimestamp": "2026-01-02T03:04:05Z"},
    "spec": {
        "containers": [
            {
                "name": "c",
                "image": "i",
                "command": ["a", "b"],
                "args": [],
                "ports": [{"containerPort": 80, "hostPort": 0, "name": ""}],
                "env": [{"name": "X", "value": ""}],
                "resources": {"limits": {"cpu": "0.5", "memory": "1024Mi"}, "requests": {}},
                "readinessProbe": {"httpGet": {"path": "/", "port": "web"}, "periodSeconds": 3},
                "stdin": False,
            }
        ],
        "volumes": [{"name": "e", "emptyDir": {"sizeLimit": "1024Ki"}}, {"name": "s", "secret": {"secretName": "x"}}],
        "tolerations": [{"operator": "Exists"}],
        "terminationGracePeriodSeconds": 0,
        "nodeSelector": {},
        "affinity": {"nodeAffinity": {}},
    },
    "status": {"conditions": [{"type": "Ready", "status": "True"}], "hostIPs": [{"ip": "1.2.3.4"}], "startTime": None},
}
OBJECTS: list[tuple[Resource, dict[str, Any]]] = [
    (PODS, POD),
    (EVENTS, {"metadata": {"name": "e"}, "involvedObject": {"kind": "Pod"}, "count": 0, "eventTime": None}),
    (SECRETS, {"metadata": {"name": "s"}, "data": {"a": "YQ==", "b": None}, "stringData": {"c": "d"}}),
    (SERVICES, {"spec": {"ports": [{"port": 80, "targetPort": "web", "nodePort": 0}], "selector": {"a": "b"}}}),
    (DEPLOYMENTS, {"spec": {"replicas": 1, "template": {"metadata": {}, "spec": POD["spec"]}, "strategy": {}}}),
]
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"é": {"type": "integer", "minimum": 1.5}, "b": {"items": {}}},
}
VERSION: dict[str, Any] = {"name": "v1", "served": True, "schema": {"openAPIV3Schema": SCHEMA}, "deprecated": False}
OBJECTS += [
    (ROLES, {"metadata": {"name": "é"}, "rules": [{"verbs": [], "apiGroups": []}, {"verbs": ["get"]}]}),
    (CERTIFICATESIGNINGREQUESTS, {"spec": {"request": "YQ==", "usages": ["a"]}, "status": {"certificate": "YQ=="}}),
    (CUSTOMRESOURCEDEFINITIONS, {"spec": {"group": "g", "names": {"plural": "p"}, "versions": [VERSION]}}),
]
ODD: list[Any] = [None, "", "x", 0, 1, True, False, 1.5, 2**40, 2**70, [], {}, [None], [{}], {"a": None}, {"a": 1}]
ODD += ["500m", "2026-01-02T03:04:05Z", "YQ==", ["a"], [1], {"a": "b"}, {"name": "x"}, [{"name": "x", "odd": 1}]]


def outcome(decode: Any, resource: Resource, obj: dict[str, Any]) -> Any:
    obj = copied(obj)
    try:
        return decode(resource, obj), obj
    except DecodeError as error:
        return str(error)


def outcome_of_copy(resource: Resource, obj: dict[str, Any]) -> Any:
    """What two passes say where there is no copy."""
    before = copied(obj)
    copy = decoded_copy(resource, obj)
    assert obj == before
    return outcome(in_two_passes, resource, obj) if copy is None else ([], copy)


def copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: copied(item) for key, item in value.items()}
    return [copied(item) for item in value] if isinstance(value, list) else value


def in_two_passes(resource: Resource, obj: dict[str, Any]) -> list[str]:
    problems = check_fields(resource, obj)
    prune(resource, obj)
    return problems


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of an object."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, item in items for place in [(value, key), *places(item)]]


@pytest.mark.parametrize(("resource", "obj"), OBJECTS)
def test_an_object_in_order_takes_the_same_form(resource: Resource, obj: dict[str, Any]) -> None:
    assert outcome(decode_fields, resource, obj) == outcome(in_two_passes, resource, obj)


@pytest.mark.parametrize(("resource", "obj"), OBJECTS)
def test_something_odd_anywhere_is_found_in_the_same_words(resource: Resource, obj: dict[str, Any]) -> None:
    for number in range(len(places(obj))):
        for odd in ODD:
            changed = copied(obj)
            container, key = places(changed)[number]
            container[key] = odd
            expected = outcome(in_two_passes, resource, changed)
            assert outcome(decode_fields, resource, changed) == expected, (key, odd)
            assert outcome_of_copy(resource, changed) == expected, (key, odd)


def test_a_copy_takes_the_same_form_and_the_original_stays() -> None:
    for resource, obj in OBJECTS:
        given = copied(obj)
        given["metadata"] = {"name": "ascii"}
        copy = decoded_copy(resource, given)
        assert copy is not None or resource is CUSTOMRESOURCEDEFINITIONS
        assert outcome_of_copy(resource, given) == outcome(in_two_passes, resource, given)


def test_bytes_as_numbers_become_text_in_one_pass() -> None:
    request = {"spec": {"request": [1, 2]}}
    assert decode_fields(CERTIFICATESIGNINGREQUESTS, request) == []
    assert request["spec"]["request"] == "AQI="


def test_an_empty_list_that_is_written_as_null_is_noted_in_the_copy_that_has_it() -> None:
    empties: Empties = []
    copy = decoded_copy(ROLES, {"rules": [{"verbs": []}]}, empties)
    assert copy is not None
    assert [(struct is copy["rules"][0], key, value) for struct, key, value in empties] == [(True, "verbs", [])]


def test_several_odd_things_are_found_in_the_same_words() -> None:
    chance = random.Random(7)
    for _ in range(500):
        changed = copied(POD)
        for _ in range(chance.randint(2, 4)):
            container, key = chance.choice(places(changed))
            name = f"odd{key}" if isinstance(container, dict) and chance.random() < 0.3 else key
            container[name] = copied(chance.choice(ODD))
        assert outcome(decode_fields, PODS, changed) == outcome(in_two_passes, PODS, changed)
