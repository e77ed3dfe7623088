"""The api package against what a real Kubernetes 1.36.2 answered. The facts in data/ are cut from recordings."""

import json
from pathlib import Path
from typing import Any

import pytest

from lastcall.kube.api import errors, selectors, validation
from lastcall.kube.api.defaults import kinds as defaults
from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.patch import apply as patch
from lastcall.kube.api.pods import spec as pods
from lastcall.kube.api.resources import PODS, Resource
from lastcall.kube.api.schema import checks as schema
from lastcall.kube.api.schema.pruning import prune

DATA = Path(__file__).parent / "data"
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment", True)
OF_ADMISSION = {
    "Pod": {"priority", "preemptionPolicy", "serviceAccount", "serviceAccountName", "tolerations"},
    "Service": {"clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"},
    "Namespace": {"finalizers"},
    "Node": {"taints"},
}


def facts(name: str) -> list[Any]:
    return json.loads((DATA / f"{name}.json").read_text())


def resource_of(case: dict[str, Any]) -> Resource:
    resource = schema.resource_for(case["apiVersion"], case["kind"])
    assert resource is not None
    return resource


def refusal(resource: Resource, obj: dict[str, Any], namespace: str) -> dict[str, Any] | None:
    """The Status that a create of `obj` is answered with; None when it is accepted."""
    try:
        schema.check_fields(resource, obj)
    except schema.DecodeError as error:
        return errors.cannot_be_handled(resource.kind, resource.version, resource.kind, str(error)).status
    prune(resource, obj)
    if namespace:
        obj["metadata"]["namespace"] = namespace
    defaults.set_defaults(resource, obj)
    found = validation.validate_create(resource, obj)
    return errors.invalid(resource, obj["metadata"].get("name", ""), found).status if found else None


@pytest.mark.parametrize("case", facts("invalid"), ids=lambda case: case["name"])
def test_a_bad_manifest_is_refused_with_the_recorded_status(case: dict[str, Any]) -> None:
    assert refusal(resource_of(case), case["body"], case["namespace"]) == case["status"]


@pytest.mark.parametrize("case", facts("selectors"), ids=lambda case: case["text"][:40])
def test_a_selector_is_accepted_or_refused_as_recorded(case: dict[str, Any]) -> None:
    try:
        if case["by"] == "labelSelector":
            selectors.parse_label_selector(case["text"])
        else:
            selectors.parse_field_selector(resource_of(case), case["text"])
        status = None
    except StatusError as error:
        status = error.status
    assert status == case["status"]


def without_admission(kind: str, obj: dict[str, Any]) -> dict[str, Any]:
    """Without what admission and the address pools add, which is not defaulting."""
    copy = json.loads(json.dumps(obj))
    spec = copy.get("spec") or {}
    for key in OF_ADMISSION.get(kind, ()):
        spec.pop(key, None)
    for port in spec.get("ports") or ():
        port.pop("nodePort", None)
    if kind == "Pod":
        token = "kube-api-access-"
        spec["volumes"] = [v for v in spec.get("volumes", ()) if not v["name"].startswith(token)]
        for container in spec["containers"]:
            mounts = container.pop("volumeMounts", [])
            container["volumeMounts"] = [m for m in mounts if not m["name"].startswith(token)]
    return copy


@pytest.mark.parametrize("case", facts("defaults"), ids=lambda case: case["name"])
def test_defaulting_fills_in_what_the_recording_shows(case: dict[str, Any]) -> None:
    resource, obj = resource_of(case), case["body"]
    assert schema.check_fields(resource, obj) == []
    prune(resource, obj)
    defaults.set_defaults(resource, obj)
    if resource is PODS:
        obj["status"] = {"phase": "Pending", "qosClass": pods.qos_class(obj)}
    obj.pop("metadata")
    obj |= {"apiVersion": case["apiVersion"], "kind": case["kind"]}
    assert without_admission(case["kind"], obj) == without_admission(case["kind"], case["answer"])
    again = json.loads(json.dumps(obj))
    defaults.set_defaults(resource, again)
    again.pop("metadata", None)
    assert again == obj


def patched(case: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    if case["type"] == "application/json-patch+json":
        return patch.apply_json_patch(before, case["patch"])
    if case["type"] == "application/merge-patch+json":
        return patch.merge_patch(before, case["patch"])
    return patch.strategic_merge_patch(DEPLOYMENTS, before, case["patch"])


@pytest.mark.parametrize("case", facts("patches"), ids=lambda case: json.dumps(case["patch"])[:60])
def test_a_patch_gives_the_recorded_object_or_error(case: dict[str, Any]) -> None:
    before = json.loads(json.dumps(case["before"]))
    if case["status"] is not None:
        with pytest.raises(StatusError) as caught:
            patched(case, before)
        assert caught.value.status == case["status"]
        return
    after = patched(case, before)
    assert before == case["before"], "a patch must not change the document it is given"
    prune(DEPLOYMENTS, after)
    after.pop("status")  # the recordings are cut to what patches change
    defaults.set_pod_spec_defaults(after["spec"]["template"]["spec"])
    for annotations in (after, case["after"]):
        annotations["metadata"].get("annotations", {}).pop("deployment.kubernetes.io/revision", None)
        if not annotations["metadata"].get("annotations"):
            annotations["metadata"].pop("annotations", None)
    assert after == case["after"]
