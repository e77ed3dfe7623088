"""Rules that a real API server showed: of Jobs' status, of claims, devices, profiles, host names, inline volumes."""

from typing import Any

import pytest

from lastcall.kube.api.errors import StatusError
from lastcall.kube.api.field import FieldError
from lastcall.kube.api.meta import Object
from lastcall.kube.api.resources import (
    CERTIFICATESIGNINGREQUESTS,
    CONFIGMAPS,
    ENDPOINTSLICES,
    NAMESPACES,
    NODES,
    PERSISTENTVOLUMES,
    RESOURCESLICES,
    Resource,
)
from lastcall.kube.api.selectors import parse_field_selector
from lastcall.kube.api.validation import validate_update
from lastcall.kube.api.validators.cluster.csi import validate_attachment
from lastcall.kube.api.validators.common import app_armor_profile
from lastcall.kube.api.validators.containers.devices import claim_statuses, claims_of_resources, volume_devices
from lastcall.kube.api.validators.jobs.status import update_job_status
from lastcall.kube.api.validators.others import validate_endpoint_slice
from lastcall.kube.api.validators.pod_spec import validate_pod_spec
from lastcall.kube.api.validators.storage.kinds import change_claim, update_claim_status


def told(errors: list[FieldError]) -> list[tuple[str, str]]:
    return [(error.field, error.detail) for error in errors]


def job(status: Object, **spec: Any) -> Object:
    return {"spec": {"completions": 5, "suspend": False, **spec}, "status": status}


def true(*conditions: str) -> list[Object]:
    return [{"type": each, "status": "True"} for each in conditions]


META = {"name": "x", "namespace": "n", "resourceVersion": "1"}


STARTED = "2024-01-02T00:00:00Z"
INDEXED = {"completionMode": "Indexed", "backoffLimitPerIndex": 1}


@pytest.mark.parametrize(
    ("status", "before", "spec", "expected"),
    [
        ({"terminating": -1}, {}, {}, [("status.terminating", "must be greater than or equal to 0")]),
        (
            {"conditions": true("Complete", "SuccessCriteriaMet"), "startTime": STARTED},
            {},
            {},
            [("status.completionTime", "completionTime is required for Complete jobs")],
        ),
        (
            {"conditions": true("Failed"), "startTime": STARTED, "active": 1},
            {},
            {},
            [
                ("status.conditions", "cannot set Failed=True condition without the FailureTarget=true condition"),
                ("status.active", "active>0 is invalid for finished job"),
            ],
        ),
        (
            {"conditions": [], "failed": 1},
            {"conditions": true("FailureTarget"), "failed": 2},
            {},
            [
                ("status.conditions", "cannot disable the terminal FailureTarget=True condition"),
                ("status.failed", "cannot decrease the failed counter"),
            ],
        ),
        (
            {"startTime": "2024-01-03T00:00:00Z"},
            {"startTime": STARTED},
            {},
            [("status.startTime", "field is immutable for unsuspended job once set")],
        ),
        ({"startTime": None}, {"startTime": STARTED}, {"suspend": True}, []),
        (
            {"completedIndexes": "0-9", "failedIndexes": "1,0"},
            {},
            INDEXED,
            [
                ("status.completedIndexes", 'error parsing completedIndexes: too large index: "9"'),
                ("status.failedIndexes", "error parsing failedIndexes: non-increasing order, previous: 1, current: 0"),
            ],
        ),
        (
            {"completedIndexes": "0,2-3", "failedIndexes": "3-4"},
            {},
            INDEXED,
            [("status.failedIndexes", "failedIndexes and completedIndexes overlap at index: 3")],
        ),
        (
            {"completedIndexes": "1"},
            {},
            {},
            [("status.completedIndexes", "cannot set non-empty completedIndexes when non-indexed completion mode")],
        ),
        (
            {"conditions": true("SuccessCriteriaMet", "FailureTarget")},
            {},
            {},
            [("status.conditions", "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions")],
        ),
        ({"ready": 2, "active": 1}, {}, {}, [("status.ready", "cannot set more ready pods than active")]),
        ({"ready": 2, "active": 1}, {"ready": 2, "active": 1}, {}, []),
    ],
)
def test_the_status_of_a_job_is_consistent_where_it_changes(
    status: Object, before: Object, spec: Object, expected: list[tuple[str, str]]
):
    assert told(update_job_status(job(status, **spec), job(before, **spec))) == expected


def test_a_block_device_is_a_claim_and_nothing_else():
    spec = {"volumes": [{"name": "e", "emptyDir": {}}, {"name": "c", "persistentVolumeClaim": {"claimName": "x"}}]}
    container = {
        "volumeMounts": [{"name": "c", "mountPath": "/c"}],
        "volumeDevices": [{"name": "e", "devicePath": "/e"}, {"name": "c", "devicePath": "/c"}, {"devicePath": "../x"}],
    }
    only = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
    assert told(volume_devices(container, spec, "d")) == [
        ("d[0].name", only),
        ("d[1].name", "must not already exist in volumeMounts"),
        ("d[1].devicePath", "must not already exist as a path in volumeMounts"),
        ("d[2].name", ""),
        ("d[2].name", ""),
        ("d[2].devicePath", "can not contain backsteps ('..')"),
    ]


def test_a_container_uses_claims_of_its_pod():
    container = {"resources": {"claims": [{}, {"name": "x"}, {"name": "r"}, {"name": "r"}]}}
    found = told(claims_of_resources(container, {"resourceClaims": [{"name": "r"}]}, "c"))
    assert found == [("c[0]", ""), ("c[1]", "must be one of the names in pod.spec.resourceClaims: r"), ("c[3]", "")]
    alone = told(claims_of_resources({"resources": {"claims": [{"name": "x"}]}}, {}, "c"))
    assert alone == [("c[0]", "must be one of the names in pod.spec.resourceClaims which is empty")]


def test_what_is_said_of_claims_names_those_of_the_pod():
    spec = {"containers": [{"name": "c", "resources": {"requests": {"x.y/z": "1"}}}]}
    mapping = {"containerName": "c", "resourceName": "x.y/z", "requestName": "a"}
    good = {"extendedResourceClaimStatus": {"requestMappings": [mapping], "resourceClaimName": "a"}}
    assert claim_statuses(good, spec) == []
    fields = [field for field, _ in told(claim_statuses({"extendedResourceClaimStatus": {}}, spec))]
    path = "status.extendedResourceClaimStatus"
    assert fields == [f"{path}.requestMappings", f"{path}.resourceClaimName"]
    wrong = {"resourceClaimStatuses": [{"name": "zz"}]}
    assert told(claim_statuses(wrong, spec)) == [
        ("status.resourceClaimStatuses[0].name", "must match the name of an entry in `spec.resourceClaims`")
    ]


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        ({"type": "RuntimeDefault"}, []),
        ({}, [("p.type", "type is required when appArmorProfile is set")]),
        ({"type": "Localhost"}, [("p.localhostProfile", "must be set when AppArmor type is Localhost")]),
        (
            {"type": "Unconfined", "localhostProfile": "x"},
            [("p.localhostProfile", "can only be set when AppArmor type is Localhost")],
        ),
        (
            {"type": "Localhost", "localhostProfile": " x"},
            [("p.localhostProfile", "must not be padded with whitespace")],
        ),
    ],
)
def test_an_app_armor_profile_is_named_where_it_is_the_machines(profile: Object, expected: list[tuple[str, str]]):
    assert told(app_armor_profile(profile, "p")) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"hostnameOverride": "a.b"}, []),
        ({"hostnameOverride": "a", "hostNetwork": True}, ["may not be specified when hostNetwork is true"]),
        ({"hostnameOverride": "a" * 65}, ["may not be more than 64 bytes"]),
    ],
)
def test_a_host_name_of_ones_own_has_its_limits(spec: Object, expected: list[str]):
    found = validate_pod_spec({"restartPolicy": "Always", "dnsPolicy": "Default", **spec}, is_pod=True)
    assert [error.detail for error in found if error.field == "spec.hostnameOverride"] == expected


def test_a_volume_in_an_attachment_is_a_csi_volume_of_nobody():
    spec = {"attacher": "a", "nodeName": "n", "source": {"inlineVolumeSpec": {"capacity": {"storage": "1Gi"}}}}
    path = "spec.source.inlineVolumeSpec"
    assert told(validate_attachment({"spec": spec})) == [
        (f"{path}.capacity", "may not be specified in the context of inline volumes"),
        (f"{path}.csi", "has to be specified in the context of inline volumes"),
        (f"{path}.accessModes", ""),
        (path, "must specify a volume type"),
    ]


def test_resizing_is_of_storage_and_in_a_known_state():
    status = {"allocatedResourceStatuses": {"a": "NodeResizePending", "storage": "b"}}
    assert [field for field, _ in told(update_claim_status({"status": status}, {}))] == [
        "status.allocatedResourceStatuses",
        "status.allocatedResourceStatuses",
    ]
    fine = {"allocatedResourceStatuses": {"storage": "NodeResizePending", "x.y/z": "NodeResizePending"}}
    assert update_claim_status({"status": fine}, {}) == []


def test_the_group_of_a_data_source_is_looked_at_when_it_is_new():
    def claim(group: str | None) -> Object:
        source = {"dataSource": {"kind": "A", "name": "a", "apiGroup": group}} if group else {}
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **source}
        return {"metadata": {}, "spec": spec}

    def fields(new: Object, old: Object) -> list[str]:
        return [error.field for error in change_claim(new, old)]

    assert fields(claim("1Gi"), claim("a.b")) == ["spec"]
    assert fields(claim("1Gi"), claim(None)) == ["spec.dataSource.apiGroup", "spec"]


def test_an_endpoint_is_reachable_from_elsewhere():
    endpoints = [{"addresses": ["127.0.0.1", "::1"]}]
    found = told(validate_endpoint_slice({"addressType": "IPv4", "endpoints": endpoints}))
    loopback = "may not be in the loopback range (127.0.0.0/8, ::1/128)"
    assert found == [
        ("endpoints[0].addresses[0]", loopback),
        ("endpoints[0].addresses", "must be an IPv4 address"),
        ("endpoints[0].addresses[1]", loopback),
    ]


def test_endpoints_that_a_change_leaves_as_they_are_are_not_looked_at_again() -> None:
    endpoints = [{"addresses": ["10.1.2.3"]}]
    old = {"metadata": META, "addressType": "IPv4", "endpoints": endpoints}
    new = {**old, "addressType": "IPv6"}
    assert [each.field for each in validate_update(ENDPOINTSLICES, new, old)] == ["addressType"]
    other = {**new, "endpoints": [{"addresses": ["10.1.2.4"]}]}
    assert "endpoints[0].addresses" in [each.field for each in validate_update(ENDPOINTSLICES, other, old)]


def test_an_immutable_config_map_gets_not_even_data_without_a_key() -> None:
    old = {"metadata": META, "data": {"a": "b"}, "immutable": True}
    assert [each.field for each in validate_update(CONFIGMAPS, {**old, "binaryData": {}}, old)] == ["binaryData"]
    assert validate_update(CONFIGMAPS, dict(old), old) == []


@pytest.mark.parametrize("resource", [NODES, NAMESPACES, CERTIFICATESIGNINGREQUESTS, RESOURCESLICES])
def test_kinds_of_the_cluster_with_field_labels_of_their_own_have_no_namespace(resource: Resource) -> None:
    with pytest.raises(StatusError, match=r"metadata\.namespace"):
        parse_field_selector(resource, "metadata.namespace=n")
    assert parse_field_selector(PERSISTENTVOLUMES, "metadata.namespace=n")
