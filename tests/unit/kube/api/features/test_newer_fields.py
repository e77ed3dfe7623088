"""Fields that are new in 1.37 are known, and dropped: their gates are off (kubernetes-validate 1.37.0)."""

from copy import deepcopy
from typing import Any

import pytest
from api_server import running_server

from lastcall.kube.api.features.disabled_fields import (
    disabled_values,
    drop_disabled_fields,
    drop_disabled_status,
    dropped_fields,
)
from lastcall.kube.api.features.gates import FeatureGates
from lastcall.kube.api.resources import CRONJOBS, DEPLOYMENTS, JOBS, NODES, PODS, SERVICEACCOUNTS, Resource
from lastcall.kube.api.schema.checks import check_fields, known_kind
from lastcall.kube.api.schema.newer import FIELDS, KINDS
from lastcall.kube.api.schema.types import struct
from lastcall.kube.apiserver.openapi.schemas import schema
from lastcall.kube.client.api import APPLY_PATCH

GATES = FeatureGates("1.37")
KEPT: dict[str, Any] = {
    "volumes": [
        {"name": "e", "emptyDir": {}},
        {"name": "c", "configMap": {"name": "c", "items": [{"key": "k", "path": "p"}]}},
        {"name": "p", "projected": {"sources": [
            {"secret": {"name": "s", "items": [{"key": "k", "path": "p"}]}}, {"serviceAccountToken": {"path": "t"}},
        ]}},
    ],
    "containers": [{
        "name": "a",
        "volumeMounts": [{"name": "e", "mountPath": "/e"}],
        "readinessProbe": {"httpGet": {"port": 80}},
        "livenessProbe": {"grpc": {"port": 81}},
        "lifecycle": {"preStop": {"httpGet": {"port": 80}}},
    }],
}  # fmt: skip


def given() -> dict[str, Any]:
    spec = deepcopy(KEPT)
    spec["evictionResponders"] = [{"name": "example.com/a", "priority": 10000}]
    empty, files, projected = (each[kind] for each, kind in zip(
        spec["volumes"], ("emptyDir", "configMap", "projected"), strict=True
    ))  # fmt: skip
    empty["mode"] = 0o755
    files["defaultUser"] = files["items"][0]["user"] = projected["defaultUser"] = 7
    projected["sources"][0]["secret"]["items"][0]["user"] = projected["sources"][1]["serviceAccountToken"]["user"] = 7
    container = spec["containers"][0]
    container["volumeMounts"][0]["bindMountOptions"] = ["noexec"]
    container["readinessProbe"]["httpGet"]["protocol"] = "HTTP2C"
    container["lifecycle"]["preStop"]["httpGet"]["protocol"] = "HTTP2C"
    container["livenessProbe"]["grpc"]["mode"] = "TLS"
    return spec


@pytest.mark.parametrize("version", ["1.36", "1.37"])
def test_they_are_no_unknown_fields_and_are_not_stored(version: str) -> None:
    obj = {"metadata": {"name": "p"}, "spec": given()}
    assert check_fields(PODS, obj) == []
    drop_disabled_fields(PODS, obj, None, FeatureGates(version))
    assert obj["spec"] == KEPT


def test_what_is_dropped_of_a_template_is_told() -> None:
    obj = {"spec": {"template": {"spec": given()}}}
    found = dropped_fields(DEPLOYMENTS, obj, GATES)
    assert "spec.template.spec.volumes[0].emptyDir.mode" in found and len(found) == 11
    assert set(found.values()) == {""}, "no gate here switches them on"


@pytest.mark.parametrize(
    ("resource", "spec", "left"),
    [
        (NODES, {"podPreemptionPolicy": {}, "unschedulable": True}, {"unschedulable": True}),
        (JOBS, {"scheduling": {"policy": {}}, "parallelism": 2}, {"parallelism": 2}),
        (CRONJOBS, {"jobTemplate": {"spec": {"scheduling": {}}}}, {"jobTemplate": {"spec": {}}}),
    ],
)
def test_of_nodes_and_jobs_too(resource: Resource, spec: dict[str, Any], left: dict[str, Any]) -> None:
    obj = {"spec": spec}
    drop_disabled_fields(resource, obj, None, GATES)
    assert obj["spec"] == left


def test_since_1_37_a_template_cannot_have_a_volume_of_no_image() -> None:
    """1.36.2 takes it, and refuses the Pods that are made of it. (kubernetes#135989)"""
    template = {"spec": {"volumes": [{"name": "v", "image": {"reference": "", "pullPolicy": "Always"}}]}}
    obj = {"spec": {"template": template}}
    assert disabled_values(DEPLOYMENTS, obj, None, FeatureGates("1.36")) == []
    (refused,) = disabled_values(DEPLOYMENTS, obj, None, GATES)
    assert str(refused) == "spec.template.spec.volumes[0].image.reference: Required value"
    assert disabled_values(DEPLOYMENTS, obj, obj, GATES) == [], "what is stored may stay"


def test_the_health_of_volumes_is_not_stored() -> None:
    obj = {"status": {"phase": "Running", "volumeHealth": [{"name": "v"}]}}
    drop_disabled_status(PODS, obj, GATES)
    assert obj["status"] == {"phase": "Running"}


@pytest.mark.parametrize("name", FIELDS)
def test_openapi_has_them_since_1_37(name: str) -> None:
    for field in FIELDS[name]:
        assert field in struct(name).fields
        assert field in schema(name, 3, minor=37)["properties"]
        assert field not in schema(name, 3, minor=36)["properties"]


ADDED = [
    (PODS, "default", {"spec": given()}),
    (JOBS, "default", {"spec": {"scheduling": {"policy": {"gang": {"minCount": 1}}},
                                "template": {"spec": {**given(), "restartPolicy": "Never"}}}}),
    (NODES, "", {"spec": {"podPreemptionPolicy": {"x": 1}}}),
]  # fmt: skip


@pytest.mark.loopback
@pytest.mark.parametrize(("resource", "namespace", "obj"), ADDED, ids=[each[0].kind for each in ADDED])
async def test_the_api_server_takes_them_by_post_and_by_apply(
    resource: Resource, namespace: str, obj: dict[str, Any]
) -> None:
    new = ("evictionResponders", "bindMountOptions", "podPreemptionPolicy", "scheduling'", "protocol': 'HTTP2C")
    async with running_server(version="1.37") as running:
        await running.admin.create(SERVICEACCOUNTS, {"metadata": {"name": "default"}}, "default")
        body = {"apiVersion": resource.api_version, "kind": resource.kind, **deepcopy(obj)}
        for each in (body["spec"].get("template") or body).get("spec", {}).get("containers", ()):
            each["image"] = "quick:1"
        made = await running.admin.create(resource, {**deepcopy(body), "metadata": {"name": "a"}}, namespace)
        named = {**body, "metadata": {"name": "b"}}
        applied = await running.admin.patch(
            resource, "b", named, namespace, content_type=APPLY_PATCH, field_manager="m"
        )  # fmt: skip
        for stored in (made, applied):
            assert not [each for each in new if each in str({**stored, "metadata": {}})]


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_kind_that_only_1_37_has_is_no_misspelling(kind: str) -> None:
    assert known_kind(*kind.rsplit("/", 1)) and not known_kind("certificates.k8s.io/v1", "TrustBundle")
