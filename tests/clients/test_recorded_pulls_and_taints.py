"""Recordings of a real Kubernetes 1.36.2 whose scenarios take the node, or its pulls, for themselves."""

import pytest
from kept_cluster import make_images
from recorded import REPLAY, TERM_RIGHT_AFTER_THE_START, replayed, slow_registry, unexpected


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
