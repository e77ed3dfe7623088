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


@pytest.mark.real_kernel
@pytest.mark.skipif(not REPLAY.exists(), reason="the recordings are not beside the project")
def test_a_deletion_waits_for_a_pull_as_recorded(tmp_path):
    """One scenario after the other, for a node pulls one image at a time."""
    make_images(tmp_path)
    with slow_registry((tmp_path / "quick").read_bytes()):
        result = replayed(tmp_path, "-j", "1", "--have", "slow-registry", "delete-during-pull*")
        assert result["counts"]["agree"] + result["counts"]["differ"] == len(result["scenarios"]) == 3
        # Its SIGTERM comes right after its start: on a busy machine a program has no handler yet, and that is once more
        # what a real node does.
        if differing := [run["scenario"] for run in result["scenarios"] if unexpected({"scenarios": [run]})]:
            print(*unexpected(result), sep="\n")
            result = replayed(tmp_path, "-j", "1", "--have", "slow-registry", *differing)
    assert unexpected(result) == []
    assert result["counts"]["error"] == result["counts"]["skipped"] == 0


@pytest.mark.real_kernel
@pytest.mark.skipif(not REPLAY.exists(), reason="the recordings are not beside the project")
def test_nodes_are_tainted_and_pods_preempted_as_recorded(tmp_path):
    """One scenario after the other, for they take the node for themselves."""
    make_images(tmp_path)
    result = replayed(tmp_path, "-j", "1", "--exclusive", "taint-*", "preemption")
    assert unexpected(result) == []
    assert result["counts"]["error"] == result["counts"]["skipped"] == 0
