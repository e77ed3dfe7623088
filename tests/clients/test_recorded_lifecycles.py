"""Recordings of a real Kubernetes 1.36.2, replayed against an embedded cluster on the real kernel.

Without the recordings there is nothing to compare with. Python 3.11 and 3.13 take turns, so that one CI run replays
each scenario once.
"""

import sys

import pytest
from kept_cluster import make_images
from recorded import REPLAY, replayed, unexpected

HALVES = {
    True: ["prestop*", "graceful*", "ignores*", "sidecar*", "force*", "finalizer*", "readi*", "spec*", "volume*",
           "deploy-p*", "deploy-r*", "rs-*", "sts-pod*", "sts-scale*", "ds-*", "job-*"],
    False: ["delete-*", "deletecollection", "crash*", "image*", "init*", "poststart*", "liveness*", "natural*",
            "endpoint*", "termination*", "active*", "admission*", "config*", "missing*", "start*", "exit*", "pending*",
            "scheduling*", "quick*", "eviction*", "namespace*", "deploy-delete-*"],
}  # fmt: skip

MOST_TO_REPEAT = 20
"""Scenarios; more that differ at once are no matter of pace, not even of that of a machine with other work."""


TIMES_ALONE = 3
"""Attempts of a scenario: its times are measured from the outside, on a machine that has other work."""


@pytest.mark.real_kernel
@pytest.mark.timeout(1200)
@pytest.mark.skipif(not REPLAY.exists(), reason="the recordings are not beside the project")
def test_pods_live_and_end_as_recorded_on_a_real_kubernetes(tmp_path):
    """Eight scenarios at a time; what differs is replayed alone, for the recordings were made alone, too."""
    make_images(tmp_path)
    result = replayed(tmp_path, "-j", "8", *HALVES[sys.version_info >= (3, 12)])
    assert result["counts"]["agree"] + result["counts"]["differ"] >= 25
    differing = [run["scenario"] for run in result["scenarios"] if unexpected({"scenarios": [run]})]
    assert len(differing) <= MOST_TO_REPEAT, unexpected(result)
    if differing:
        print(*unexpected(result), sep="\n")
    for attempt in range(TIMES_ALONE):
        if not differing:
            break
        result = replayed(tmp_path, "-j", "1", *differing)
        found = unexpected(result)
        print(f"alone, attempt {attempt + 1}:", *found, sep="\n")
        differing = [run["scenario"] for run in result["scenarios"] if unexpected({"scenarios": [run]})]
    assert differing == [], found
