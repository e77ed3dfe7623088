"""Tables: the columns and cells that a real Kubernetes 1.36.2 sends to `kubectl get`."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from lastcall.kube.api.resources import (
    CUSTOMRESOURCEDEFINITIONS,
    ENDPOINTSLICES,
    EVENTS,
    NODES,
    PODS,
    SERVICES,
    STORAGECLASSES,
)
from lastcall.kube.api.schema import checks as schema
from lastcall.kube.api.table.rows import columns_for, rows_for, table_for
from lastcall.kube.api.table.text import human_duration

FACTS = json.loads((Path(__file__).parent / "data" / "tables.json").read_text())
NOW = datetime(2030, 1, 1, 0, 1, tzinfo=UTC)
BORN = "2030-01-01T00:00:00Z"


@pytest.mark.parametrize("kind", FACTS["columns"])
def test_the_columns_are_the_recorded_ones(kind: str) -> None:
    resource = schema.resource_for(*kind.rsplit("/", 1))
    assert resource is not None
    shown = [[c["name"], c["type"], c["format"], c["priority"]] for c in columns_for(resource, 36)]
    assert shown == FACTS["columns"][kind]


def cells(resource: Any, *objects: Any, now: datetime = NOW) -> list[list[Any]]:
    return [row["cells"] for row in rows_for(resource, objects, now, minor=36)]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("v1/LimitRange", ["", "0001-01-01T00:00:00Z"]),
        ("v1/PersistentVolume", ["", "0", "", "", "", "", "", "<unset>", "", "<unknown>", "<unset>"]),
        ("v1/Service", ["", "", "<none>", "<unknown>", "<none>", "<unknown>", "<none>"]),
        ("apps/v1/Deployment", ["", "0/0", 0, 0, "<unknown>", "", "", ""]),
        ("rbac.authorization.k8s.io/v1/Role", ["", "0001-01-01T00:00:00Z"]),
        ("storage.k8s.io/v1/CSIStorageCapacity", ["", "0001-01-01T00:00:00Z"]),
        ("storage.k8s.io/v1/StorageClass", ["", "", "Delete", "Immediate", False, "<unknown>"]),
        ("admissionregistration.k8s.io/v1/ValidatingAdmissionPolicyBinding", ["", "", "<unset>", "<unknown>"]),
    ],
)
def test_the_row_of_a_bookmark_is_that_of_an_empty_object(kind: str, expected: list[Any]) -> None:
    """As a 1.36.2 answered watches with `sendInitialEvents`."""
    resource = schema.resource_for(*kind.rsplit("/", 1))
    assert cells(resource, {"metadata": {"resourceVersion": "7"}}) == [expected]


def definition(name: str) -> dict[str, Any]:
    versions = [{"name": "v1", "served": True}, {"name": "v2", "served": True}, {"name": "v3", "served": False}]
    spec = {"group": "example.com", "scope": "Namespaced", "versions": versions}
    return {"metadata": {"name": name, "creationTimestamp": BORN}, "spec": spec}


def test_1_37_prints_group_scope_and_served_versions_of_definitions() -> None:
    """(kubernetes#131599)"""
    made = table_for(CUSTOMRESOURCEDEFINITIONS, [definition("a.example.com")], NOW, minor=37)
    names = [(each["name"], each["type"]) for each in made["columnDefinitions"]]
    texts = [(name, "string") for name in ("Name", "Group", "Scope", "Versions")]
    assert names == [*texts, ("Created At", "date")]
    assert made["rows"][0]["cells"] == ["a.example.com", "example.com", "Namespaced", "v1,v2", BORN]
    before = table_for(CUSTOMRESOURCEDEFINITIONS, [definition("a.example.com")], NOW, minor=36)
    assert before["rows"][0]["cells"] == ["a.example.com", BORN]


def storage_class(name: str, born: str, *, default: bool = True) -> dict[str, Any]:
    annotations = {"storageclass.kubernetes.io/is-default-class": "true" if default else "false"}
    return {"metadata": {"name": name, "creationTimestamp": born, "annotations": annotations}, "provisioner": "p"}


def test_1_37_prints_default_beside_the_class_that_claims_get() -> None:
    """1.36.2 prints it beside every class with the annotation. (kubernetes#135964)"""
    old, new = "2029-01-01T00:00:00Z", BORN
    classes = [
        storage_class("c", new),
        storage_class("b", new),
        storage_class("a", old),
        storage_class("d", new, default=False),
    ]
    names = [row["cells"][0] for row in rows_for(STORAGECLASSES, classes, NOW, minor=37)]
    assert names == ["c", "b (default)", "a", "d"]
    assert [row["object"]["metadata"] for row in rows_for(STORAGECLASSES, classes, NOW, minor=37)] == [
        row["object"]["metadata"] for row in rows_for(STORAGECLASSES, classes, NOW, minor=36)
    ]
    assert [row["cells"][0] for row in rows_for(STORAGECLASSES, classes, NOW, minor=36)] == [
        "c (default)", "b (default)", "a (default)", "d",
    ]  # fmt: skip


def test_services_are_printed_as_recorded() -> None:
    now = datetime.fromisoformat(FACTS["services"][0]["metadata"]["creationTimestamp"])
    assert cells(SERVICES, *FACTS["services"], now=now) == FACTS["serviceRows"]


def test_a_node_is_printed_as_recorded() -> None:
    now = datetime.fromisoformat(FACTS["node"]["metadata"]["creationTimestamp"])
    assert cells(NODES, FACTS["node"], now=now) == [FACTS["nodeRow"]]


def pod(status: dict[str, Any], *, init: Any = (), deleted: bool = False, containers: int = 1) -> dict[str, Any]:
    meta = {"name": "p", "creationTimestamp": BORN}
    if deleted:
        meta["deletionTimestamp"] = BORN
    spec = {"containers": [{"name": f"c{index}"} for index in range(containers)], "initContainers": list(init)}
    return {"metadata": meta, "spec": spec, "status": status}


def container(state: dict[str, Any], *, ready: bool = False, restarts: int = 0, **more: Any) -> dict[str, Any]:
    return {"name": "c0", "state": state, "ready": ready, "restartCount": restarts, **more}


RUNNING = container({"running": {}}, ready=True)
DONE = container({"terminated": {"exitCode": 0, "reason": "Completed"}})
FAILED = container({"terminated": {"exitCode": 3, "reason": "Error"}})
GATED = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"}
READY = {"type": "Ready", "status": "True"}
SIDECAR = {"name": "s", "restartPolicy": "Always"}
STARTED = {"name": "s", "state": {"running": {}}, "ready": True, "started": True, "restartCount": 0}
LAST = {"terminated": {"finishedAt": "2030-01-01T00:00:56Z"}}
BACK_OFF = container({"waiting": {"reason": "CrashLoopBackOff"}}, restarts=1, lastState=LAST)

STATES: list[tuple[dict[str, Any], str, str, str]] = [
    (pod({"phase": "Running", "containerStatuses": [RUNNING]}), "1/1", "Running", "0"),
    (pod({"phase": "Pending", "conditions": [GATED]}), "0/1", "SchedulingGated", "0"),
    (pod({"phase": "Pending"}), "0/1", "Pending", "0"),
    (pod({"phase": "Succeeded", "containerStatuses": [DONE]}), "0/1", "Completed", "0"),
    (pod({"phase": "Failed", "containerStatuses": [FAILED]}), "0/1", "Error", "0"),
    (pod({"phase": "Failed", "containerStatuses": [FAILED]}, deleted=True), "0/1", "Error", "0"),
    (pod({"phase": "Running", "containerStatuses": [RUNNING]}, deleted=True), "1/1", "Terminating", "0"),
    (pod({"phase": "Running", "reason": "NodeLost"}, deleted=True), "0/1", "Unknown", "0"),
    (pod({"phase": "Running", "containerStatuses": [BACK_OFF]}), "0/1", "CrashLoopBackOff", "1 (4s ago)"),
    (pod({"phase": "Pending", "initContainerStatuses": [container({"running": {}})]}, init=[{"name": "c0"}]),
     "0/1", "Init:0/1", "0"),
    (pod({"phase": "Failed", "initContainerStatuses": [FAILED]}, init=[{"name": "c0"}]), "0/1", "Init:Error", "0"),
    (pod({"phase": "Pending", "initContainerStatuses": [container({"waiting": {"reason": "ErrImagePull"}})]},
         init=[{"name": "c0"}]), "0/1", "Init:ErrImagePull", "0"),
    (pod({"phase": "Running", "initContainerStatuses": [STARTED], "containerStatuses": [RUNNING]}, init=[SIDECAR]),
     "2/2", "Running", "0"),
    (pod({"phase": "Running", "containerStatuses": [RUNNING, DONE], "conditions": [READY]}, containers=2),
     "1/2", "Running", "0"),
    (pod({"phase": "Running", "containerStatuses": [DONE, RUNNING]}, containers=2), "1/2", "NotReady", "0"),
    (pod({"phase": "Failed", "containerStatuses": [container({"terminated": {"exitCode": 137, "signal": 9}})]}),
     "0/1", "Signal:9", "0"),
    (pod({"phase": "Failed", "containerStatuses": [container({"terminated": {"exitCode": 4}})]}),
     "0/1", "ExitCode:4", "0"),
]  # fmt: skip


@pytest.mark.parametrize(("obj", "ready", "status", "restarts"), STATES)
def test_the_state_of_a_pod_is_one_word(obj: dict[str, Any], ready: str, status: str, restarts: str) -> None:
    assert cells(PODS, obj)[0][1:5] == [ready, status, restarts, "60s"]


def test_a_pod_that_ended_has_a_row_condition() -> None:
    ended, alive = (rows_for(PODS, [pod({"phase": phase})], NOW, minor=36)[0] for phase in ("Failed", "Running"))
    assert ended["conditions"] == [
        {"type": "Completed", "status": "True", "reason": "Failed", "message": "The pod failed."}
    ]
    assert "conditions" not in alive


def test_wide_cells_of_a_pod_say_none_where_there_is_nothing() -> None:
    assert cells(PODS, pod({"phase": "Pending"}))[0][5:] == ["<none>"] * 4


def test_an_endpoint_slice_shows_three_addresses_and_counts_the_rest() -> None:
    endpoints = [{"addresses": [f"10.244.0.{index}"]} for index in range(1, 6)]
    obj = {"metadata": {"name": "e", "creationTimestamp": BORN}, "addressType": "IPv4", "endpoints": endpoints}
    shown = "10.244.0.1,10.244.0.2,10.244.0.3 + 2 more..."
    assert cells(ENDPOINTSLICES, obj) == [["e", "IPv4", "<unset>", shown, "60s"]]
    empty = {**obj, "endpoints": None, "ports": [{"port": 8080}, {"name": "x"}, {}]}
    assert cells(ENDPOINTSLICES, empty)[0][2:4] == ["8080,x,*", "<unset>"]


def test_an_event_of_the_new_api_looks_like_one_of_the_old() -> None:
    common = {"metadata": {"name": "e"}, "type": "Normal", "reason": "Killing"}
    about = {"kind": "Pod", "name": "p", "fieldPath": "spec.containers{main}"}
    old = {**common, "involvedObject": about, "source": {"component": "kubelet", "host": "node-1"}, "count": 2,
           "message": "Stopping container main", "firstTimestamp": BORN, "lastTimestamp": BORN}  # fmt: skip
    new = {**common, "regarding": about, "note": "Stopping container main", "eventTime": "2030-01-01T00:00:00.000000Z",
           "reportingController": "kubelet", "reportingInstance": "node-1", "deprecatedCount": 2}  # fmt: skip
    expected = ["60s", "Normal", "Killing", "pod/p", "spec.containers{main}", "kubelet, node-1",
                "Stopping container main", "60s", 2, "e"]  # fmt: skip
    assert cells(EVENTS, old, new) == [expected, expected]


def test_a_table_carries_what_was_asked_for_of_each_object() -> None:
    obj = pod({"phase": "Running"})
    whole = table_for(PODS, [obj], NOW, "Object", {"resourceVersion": "7"}, minor=36)
    assert whole["metadata"] == {"resourceVersion": "7"}
    assert whole["rows"][0]["object"]["kind"] == "Pod"
    metadata = table_for(PODS, [obj], NOW, minor=36)["rows"][0]["object"]
    assert metadata == {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
    assert table_for(PODS, [obj], NOW, "None", minor=36)["rows"][0]["object"] is None


DURATIONS = [
    (-5, "<invalid>"), (-0.5, "0s"), (0, "0s"), (119, "119s"), (120, "2m"), (200, "3m20s"), (600, "10m"),
    (3 * 3600 - 1, "179m"), (3 * 3600, "3h"), (3 * 3600 + 60, "3h1m"), (8 * 3600, "8h"), (48 * 3600, "2d"),
    (52 * 3600, "2d4h"), (8 * 86400, "8d"), (2 * 365 * 86400, "2y"), (800 * 86400, "2y70d"), (8 * 365 * 86400, "8y"),
]  # fmt: skip


@pytest.mark.parametrize(("seconds", "shown"), DURATIONS)
def test_ages_get_coarser_as_they_grow(seconds: float, shown: str) -> None:
    assert human_duration(timedelta(seconds=seconds)) == shown
