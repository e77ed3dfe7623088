"""Graceful shutdown by groups (nodeshutdown_manager_test.go), and what a manifest becomes (config/common_test.go)."""

import json
from typing import Any

import pytest
import yaml

from lastcall.kube.node.shutdown.decide import (
    ShutdownGracePeriod,
    ShutdownNotSupported,
    check_supported,
    grace_override,
    grace_periods,
    group_by_priority,
    shutdown_status,
)
from lastcall.kube.node.static_pods import manifest
from lastcall.kube.node.static_pods.decide import MAX_BYTES, ManifestError
from lastcall.kube.node.static_pods.manifest import read_manifest
from lastcall.kube.node.versions import behaviour_at

CRITICAL = 2_000_000_000


def pod(priority: int | None = None, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": f"p{priority}"}, "spec": {"priority": priority, **spec}}


@pytest.mark.parametrize(("total", "critical", "expected"), [(30, 10, (20, 10)), (30, 30, (0, 30)), (30, 0, (30, 0))])
def test_critical_pods_have_the_end_of_the_whole_period(total: int, critical: int, expected: tuple[int, int]) -> None:
    ordinary, last = grace_periods(total, critical)
    assert (ordinary, last) == (ShutdownGracePeriod(0, expected[0]), ShutdownGracePeriod(CRITICAL, expected[1]))


@pytest.mark.parametrize(("total", "critical"), [(10, 11), (10, -1)])
def test_critical_pods_have_no_more_than_there_is(total: int, critical: int) -> None:
    with pytest.raises(ValueError, match=f"critical Pods have {critical} s of {total} s"):
        grace_periods(total, critical)


def test_a_pod_is_in_the_highest_group_that_is_not_above_it() -> None:
    """nodeshutdown_manager_test.go:Test_groupByPriority."""
    periods = [ShutdownGracePeriod(1000, 3), ShutdownGracePeriod(0, 5), ShutdownGracePeriod(10, 4)]
    pods = [pod(each) for each in (-5, None, 0, 9, 10, 999, 1000, CRITICAL)]
    groups = group_by_priority(periods, pods)
    assert [(period.priority, [each["metadata"]["name"] for each in members]) for period, members in groups] == [
        (0, ["p-5", "pNone", "p0", "p9"]),
        (10, ["p10", "p999"]),
        (1000, ["p1000", f"p{CRITICAL}"]),
    ]
    assert group_by_priority(periods, [])[0][1] == []


@pytest.mark.parametrize(("own", "bound", "grace"), [(None, 5, 5), (3, 5, 3), (9, 5, 5), (0, 5, 0)])
def test_a_group_bounds_the_grace_of_its_pods(own: int | None, bound: int, grace: int) -> None:
    assert grace_override(ShutdownGracePeriod(0, bound), pod(terminationGracePeriodSeconds=own)) == grace


@pytest.mark.parametrize(("phase", "after"), [("Running", "Failed"), ("Pending", "Failed"), ("Succeeded", "Succeeded")])
def test_a_pod_that_the_shutdown_ends_has_failed_unless_it_had_succeeded(phase: str, after: str) -> None:
    status: dict[str, Any] = {"phase": phase}
    shutdown_status(status)  # type: ignore[arg-type]
    assert (status["phase"], status["reason"]) == (after, "Terminated")
    assert status["message"] == "Pod was terminated in response to imminent node shutdown."
    (condition,) = status["conditions"]
    assert (condition["type"], condition["reason"]) == ("DisruptionTarget", "TerminationByKubelet")


@pytest.mark.parametrize(
    ("version", "priorities", "why"),
    [
        ("1.23", (0, CRITICAL), None),
        ("1.23", (0, 10), "no shutdownGracePeriodByPodPriority"),
        ("1.24", (0, 10), None),
    ],
)
def test_a_version_shuts_down_as_it_could(version: str, priorities: tuple[int, ...], why: str | None) -> None:
    periods = [ShutdownGracePeriod(each, 1) for each in priorities]
    if why is None:
        check_supported(behaviour_at(version), periods)
        return
    with pytest.raises(ShutdownNotSupported, match=why):
        check_supported(behaviour_at(version), periods)


# -- manifests ---------------------------------------------------------------------------------------------------------

WEB: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {"containers": [{"name": "app", "image": "i:1"}]},
}


def read(document: Any, path: str = "web.yaml", node: str = "node-1") -> dict[str, Any]:
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    return read_manifest(data, path=path, node_name=node, seen="now")  # type: ignore[return-value]


def changed(**metadata: Any) -> dict[str, Any]:
    return {**WEB, "metadata": {**WEB["metadata"], **metadata}}


def test_a_manifest_becomes_a_pod_of_the_node() -> None:
    found = read(changed(resourceVersion="7", finalizers=["f"], deletionTimestamp="2030-01-01T00:00:00Z"))
    metadata = found["metadata"]
    assert (metadata["name"], metadata["namespace"], found["spec"]["nodeName"]) == ("web-node-1", "default", "node-1")
    assert not {"resourceVersion", "finalizers", "deletionTimestamp"} & set(metadata)
    assert metadata["annotations"] == {
        "kubernetes.io/config.hash": metadata["uid"],
        "kubernetes.io/config.seen": "now",
        "kubernetes.io/config.source": "file",
    }
    assert found["status"] == {"phase": "Pending"}
    assert found["spec"]["tolerations"] == [{"operator": "Exists", "effect": "NoExecute"}]
    assert found["spec"]["terminationGracePeriodSeconds"] == 30, "defaults are set"
    assert read(found | {"spec": WEB["spec"]} | {"metadata": {"name": "web"}, "status": {"phase": "x"}})["status"] == {
        "phase": "Pending"
    }


def test_own_annotations_namespaces_and_tolerations_stay_and_the_kubelet_s_are_not_taken() -> None:
    toleration = {"operator": "Exists", "effect": "NoExecute"}
    document = changed(namespace="n", annotations={"a": "b", "kubernetes.io/config.mirror": "x"})
    document["spec"] = {**WEB["spec"], "tolerations": [toleration]}
    found = read(document)
    assert found["metadata"]["namespace"] == "n"
    assert found["metadata"]["annotations"]["a"] == "b"
    assert "kubernetes.io/config.mirror" not in found["metadata"]["annotations"]
    assert found["spec"]["tolerations"] == [toleration]


def test_the_uid_is_a_hash_of_what_the_file_says_where_it_is_and_for_whom() -> None:
    uids = {
        read(WEB)["metadata"]["uid"],
        read(changed(labels={"a": "b"}))["metadata"]["uid"],
        read(WEB, path="other.yaml")["metadata"]["uid"],
        read(WEB, node="node-2")["metadata"]["uid"],
    }
    assert len(uids) == 4 and all(len(uid) == 32 for uid in uids)
    assert read(WEB)["metadata"]["uid"] == read(yaml.safe_dump(WEB).encode())["metadata"]["uid"]
    assert read(changed(uid="own-1"))["metadata"]["uid"] == "own-1"


@pytest.mark.parametrize("uid", ["../x", "a/b", "x" * 64, "-x", "a b"])
def test_a_uid_that_is_no_name_of_a_directory_is_refused(uid: str) -> None:
    with pytest.raises(ManifestError, match=r"^metadata\.uid: Invalid value: "):
        read(changed(uid=uid))


@pytest.mark.parametrize(
    ("document", "why"),
    [
        (b"", "^it holds 0 documents"),
        (b"---\n---\n", "^it holds 0 documents"),
        (json.dumps(WEB).encode() + b"\n---\n" + json.dumps(WEB).encode(), "^it holds 2 documents"),
        (b"[1]", "^it holds no object"),
        (b"{a: [", "^it is neither YAML nor JSON: "),
        (b"\xff", "^it is neither YAML nor JSON: "),
        ({**WEB, "apiVersion": "v2"}, "^it holds a v2 Pod: a static Pod is one v1 Pod a file"),
        ({**WEB, "kind": "Node"}, "^it holds a v1 Node: "),
        ({**WEB, "metadata": None}, "^metadata: Required value"),
        ({**WEB, "spec": []}, "^spec: Required value"),
        ({**WEB, "spec": {"containers": 3}}, "containers"),
        ({**WEB, "spec": {"containers": []}}, "containers: Required value"),
        (changed(name="Bad_Name"), "name"),
        (
            {**WEB, "spec": {**WEB["spec"], "serviceAccountName": "robot"}},
            "^static pods may not reference serviceaccounts",
        ),
        (b"{? {a: b} : c}", "^it is (neither YAML nor JSON|not a JSON object): "),
    ],
)
def test_a_file_that_is_no_static_pod_says_why(document: Any, why: str) -> None:
    with pytest.raises(ManifestError, match=why):
        read(document)


def test_a_file_may_have_a_mebibyte_and_no_byte_more() -> None:
    data = json.dumps(WEB).encode()
    assert read(data + b" " * (MAX_BYTES - len(data)))["metadata"]["name"] == "web-node-1"
    with pytest.raises(ManifestError, match=rf"^it has more than {MAX_BYTES} bytes"):
        read(data + b" " * (MAX_BYTES - len(data) + 1))


def test_values_are_counted_as_often_as_they_stand_for_something(monkeypatch: pytest.MonkeyPatch) -> None:
    values = 11  # objects and lists count as one each: the list of documents, then WEB and what is in it
    monkeypatch.setattr(manifest, "MAX_NODES", values)
    assert read(WEB)
    monkeypatch.setattr(manifest, "MAX_NODES", values - 1)
    with pytest.raises(ManifestError, match=f"^it holds more than {values - 1} values"):
        read(WEB)
    monkeypatch.setattr(manifest, "MAX_NODES", 20)
    with pytest.raises(ManifestError, match=r"^it holds more than 20 values"):
        read(b"a: &a [1, 1, 1, 1, 1, 1]\nb: [*a, *a, *a]\n")
    with pytest.raises(ManifestError, match=r"^it is neither YAML nor JSON: .* contains itself"):
        read(b"&a [*a]")


def test_words_are_what_they_are_for_kubernetes() -> None:
    text = """
apiVersion: v1
kind: Pod
metadata: {name: web, annotations: {at: 12:30, on: 2024-01-01, is: =}}
spec:
  hostNetwork: y
  terminationGracePeriodSeconds: 0o36
  containers: [{name: app, image: "i:1"}]
"""
    made = read(text.encode())
    assert made["spec"]["hostNetwork"] is True
    assert made["spec"]["terminationGracePeriodSeconds"] == 30
    annotations = made["metadata"]["annotations"]
    assert (annotations["at"], annotations["true"], annotations["is"]) == ("12:30", "2024-01-01", "=")
