"""Recordings of a real Kubernetes 1.36.2, replayed against an embedded cluster on the real kernel.

Without the recordings there is nothing to compare with.
"""

import pytest
from kept_cluster import make_images
from recorded import REPLAY, is_late, replayed, unexpected

HALVES = {
    "ends": ["prestop*", "graceful*", "ignores*", "sidecar*", "force*", "finalizer*", "readi*", "spec*", "volume*",
           "deploy-p*", "deploy-r*", "rs-*", "sts-pod*", "sts-scale*", "ds-*", "job-*"],
    "deletions": ["delete-*", "deletecollection", "crash*", "image*", "init*", "poststart*", "liveness*", "natural*",
            "endpoint*", "termination*", "active*", "admission*", "config*", "missing*", "start*", "exit*", "pending*",
            "scheduling*", "quick*", "eviction*", "namespace*", "deploy-delete-*"],
}  # fmt: skip

MOST_LATE, MOST_OTHERS = 20, 3
"""Scenarios to replay: those whose Events were late, and no more, and those of which something else differs."""

LATE_ALONE = 3
"""Attempts of what differs in nothing but late Events."""


@pytest.mark.real_kernel
@pytest.mark.timeout(1200)
@pytest.mark.skipif(not REPLAY.exists(), reason="the recordings are not beside the project")
@pytest.mark.parametrize("half", HALVES)
def test_pods_live_and_end_as_recorded_on_a_real_kubernetes(tmp_path, half):
    """Five scenarios at a time. What differs is replayed once more, alone as it was recorded, and has to agree.

    Late Events may have more attempts. They are written beside what they tell of, on a busy machine after the replay
    has looked; and times are measured from them, so that what follows seems early. (In virtual time the same recordings
    are held to their seconds.)
    """
    make_images(tmp_path)
    result = replayed(tmp_path, "-j", "5", *HALVES[half])
    assert result["counts"]["agree"] + result["counts"]["differ"] >= 25, result["counts"]
    found = {run["scenario"]: unexpected({"scenarios": [run]}) for run in result["scenarios"]}
    differing = [name for name, texts in found.items() if texts]
    others = [name for name in differing if not all(is_late(text) for text in found[name])]
    print(*unexpected(result), sep="\n")
    assert len(others) <= MOST_OTHERS and len(differing) - len(others) <= MOST_LATE, unexpected(result)
    for _ in range(LATE_ALONE):
        if not differing:
            return
        again = replayed(tmp_path, "-j", "1", *differing)
        assert again["counts"]["agree"] + again["counts"]["differ"] == len(differing), again["counts"]
        told = unexpected(again)
        print("alone:", *told, sep="\n")
        assert all(is_late(text) for text in told), told
        differing = [run["scenario"] for run in again["scenarios"] if unexpected({"scenarios": [run]})]
    assert not differing, told
