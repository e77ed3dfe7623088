"""Recordings of a real Kubernetes 1.36.2 whose scenarios take the node, or its pulls, for themselves."""

import json

import pytest
from kept_cluster import make_images
from oci_registry import Fault, Registry, tar_of
from recorded import REPLAY, replayed, unexpected

RECORDED_IMAGE_SIZE = 686825
"""Bytes; an Event tells it."""


def slow_registry(program: bytes) -> Registry:
    """What the recordings with a slow pull need (INDEX.md): tag okN is served after N seconds, failN is a 404 then."""
    registry = Registry(5999)

    def image(padding: int) -> bytes:
        config = {"Entrypoint": ["/quick"], "Labels": {"padding": "x" * padding}}
        return registry.manifest([tar_of({"quick": program})], config)

    def size(manifest: bytes) -> int:
        value = json.loads(manifest)
        return sum(blob["size"] for blob in [value["config"], *value["layers"]])

    for seconds in (3, 6):
        registry.put(f"slow:ok{seconds}", image(RECORDED_IMAGE_SIZE - size(image(0))))
        registry.faults += [
            Fault(f"HEAD .*/ok{seconds}$", times=99, delay=seconds),
            Fault(f"HEAD .*/fail{seconds}$", times=99, delay=seconds, status=404),
        ]
    return registry


TERM_RIGHT_AFTER_THE_START = {
    "delete-during-pull-ok": [
        # Its end may be seen before its start is.
        "pod p sequence of app state shows running: expected true, seen false",
        'pod p sequence of cond ContainersReady: expected ["True", "False"], seen ["False"]',
        'pod p sequence of cond Ready: expected ["True", "False"], seen ["False"]',
        'pod p sequence of phase: expected ["Pending", "Running", "Succeeded"], seen ["Pending", "Succeeded"]',
        # Its program may have no handler yet: the kernel drops the SIGTERM of a PID 1, and SIGKILL ends it.
        "pod p final phase: expected Succeeded, seen Failed",
        "pod p final condition Initialized: expected True PodCompleted, seen True",
        "pod p final condition Ready: expected False PodCompleted, seen False PodFailed",
        "pod p final condition ContainersReady: expected False PodCompleted, seen False PodFailed",
        "pod p final container app state: expected terminated(Completed,0), seen terminated(Error,137)",
        'pod p sequence of app state: expected ["terminated(Completed,0)"], seen ["terminated(Error,137)"]',
        'pod p sequence of phase: expected ["Pending", "Running", "Succeeded"], seen ["Pending", "Running", "Failed"]',
        'pod p sequence of phase: expected ["Pending", "Running", "Succeeded"], seen ["Pending", "Failed"]',
    ],
    "delete-during-pull-two": [
        "pod p final container second state: expected terminated(Completed,0), seen terminated(Error,137)",
        'pod p sequence of second state: expected ["terminated(Completed,0)"], seen ["terminated(Error,137)"]',
        "pod p sequence of second state shows running: expected true, seen false",
    ],
}
"""Scenario → what may differ: the kubelet ends the container right after its start, on a real node as here."""


@pytest.mark.real_kernel
@pytest.mark.skipif(not REPLAY.exists(), reason="the recordings are not beside the project")
def test_a_deletion_waits_for_a_pull_as_recorded(tmp_path):
    """One scenario after the other, for a node pulls one image at a time."""
    make_images(tmp_path)
    with slow_registry((tmp_path / "quick").read_bytes()):
        result = replayed(tmp_path, "-j", "1", "--have", "slow-registry", "delete-during-pull*")
    assert result["counts"]["agree"] + result["counts"]["differ"] == len(result["scenarios"]) == 3
    chance = {f"{scenario}: {text}" for scenario, texts in TERM_RIGHT_AFTER_THE_START.items() for text in texts}
    assert [text for text in unexpected(result) if text not in chance] == []
    assert result["counts"]["error"] == result["counts"]["skipped"] == 0


@pytest.mark.real_kernel
@pytest.mark.skipif(not REPLAY.exists(), reason="the recordings are not beside the project")
def test_nodes_are_tainted_and_pods_preempted_as_recorded(tmp_path):
    """One scenario after the other, for they take the node for themselves."""
    make_images(tmp_path)
    result = replayed(tmp_path, "-j", "1", "--exclusive", "taint-*", "preemption")
    assert unexpected(result) == []
    assert result["counts"]["error"] == result["counts"]["skipped"] == 0
