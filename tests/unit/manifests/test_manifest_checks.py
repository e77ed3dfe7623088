"""What the API server would refuse in a manifest, all of it and each with its place."""

import pytest

from lastcall.kube.api.resources import CONFIGMAPS, PODS, Resource
from lastcall.manifests.checks import applied_bytes, refusals


def pod(**container: object) -> dict:
    return {"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i", **container}]}}


CASES = {
    "a map": (PODS, {"metadata": {"name": "a", "labels": {"x": "y", "z": False}}}, ["metadata.labels.z"]),
    "a list": (
        PODS,
        pod(command=["a", 1, "b", 2]),
        ["spec.containers[0].command[1]", "spec.containers[0].command[3]"],
    ),
    "a list of objects": (
        PODS,
        pod(env=[{"name": "A", "value": True}, {"name": "B", "value": "x"}, {"name": "C", "value": 7}]),
        ["spec.containers[0].env[0].value", "spec.containers[0].env[2].value"],
    ),
    "several kinds": (
        CONFIGMAPS,
        {"metadata": {"name": "a"}, "data": {"a": 1, "b": [], "c": "x"}, "immutable": "no"},
        ["data.a", "data.b", "immutable"],
    ),
    "no list": (PODS, pod(env="x"), ["spec.containers[0].env"]),
}


@pytest.mark.parametrize(("resource", "obj", "fields"), CASES.values(), ids=CASES)
def test_every_value_of_a_wrong_type_is_named(resource: Resource, obj: dict, fields: list[str]) -> None:
    found = list(refusals(obj, resource))
    assert sorted(each.field for each in found) == fields
    assert {each.why for each in found} == {"wrongType"}


def test_an_object_is_left_as_it_is() -> None:
    obj = pod(env=[{"name": "A", "value": True}])
    assert list(refusals(obj, PODS)) and obj == pod(env=[{"name": "A", "value": True}])


@pytest.mark.parametrize(
    ("text", "count"), [("x", 261958), ("<", 43659), ('é"', 65489), ("\u2028", 43659)], ids=["x", "<", "é", "U+2028"]
)
def test_what_kubectl_apply_adds_is_counted_to_the_byte(text: str, count: int) -> None:
    """kubectl 1.36.2 applies each of these, and refuses it with one more byte in `b`."""
    meta = {"name": "a", "annotations": {"own": "v"}}
    obj = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {"a": text * count, "b": ""}}
    left = (256 << 10) - applied_bytes(obj, CONFIGMAPS)
    assert 0 <= left < 6
    obj["data"]["b"] = "y" * left  # type: ignore[index]
    assert applied_bytes(obj, CONFIGMAPS) == 256 << 10
